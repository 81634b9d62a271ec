"""Weights of units where some pairs were likelier to be picked for humans than others.

A unit that humans labelled represents 1 / p units like it, p its pair's probability of being picked
(Horvitz & Thompson 1952); every estimate is a quotient of such sums (Hajek 1971). A unit that only
graders labelled was passed over with probability 1 - p and represents 1 / (1 - p): so the humans'
part and the rest both represent all units, alone and together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.types import Array, Mask
from evenhand.errors import InputError
from evenhand.study.tables.columns import INCLUSION

if TYPE_CHECKING:
    import pandas as pd

WEIGHT = "sampling_weight"
"""The units column that `with_weights` adds."""
_LEAST = 0.05
"""Least probability of being passed over: no such unit represents more than 20."""


def with_weights(units: pd.DataFrame | None, ratings: pd.DataFrame) -> pd.DataFrame | None:
    """Add the weights of one rubric's rated units to a `units` table.

    They come from the column `inclusion_probability`; the table is unchanged where there is none,
    or where all weights are equal.

    Weights are 1 on average over the clusters that humans labelled, and over the others. Raises
    InputError where a rated unit has no probability above 0 and up to 1.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "inclusion_probability": [0.2, 0.6]})
    >>> people = pd.DataFrame({"unit_id": ["u1", "u2"], "rater_kind": "human"})
    >>> with_weights(units, people)["sampling_weight"].tolist()
    [1.5, 0.5]
    """
    if units is None or INCLUSION not in units:
        return units
    known = units.drop_duplicates("unit_id").set_index("unit_id")
    rated = known.index.isin(ratings["unit_id"])
    if (known.loc[rated, INCLUSION].astype(str).str.strip() == "").all():
        return units
    chance = _probabilities(known, rated)
    cluster = known["cluster_id"] if "cluster_id" in known else known.index.to_series()
    by_people = ratings.loc[ratings["rater_kind"] == "human", "unit_id"]
    labelled = cluster.isin(cluster.reindex(by_people).dropna()).to_numpy()
    weight = 1.0 / np.where(labelled, chance, np.maximum(1.0 - chance, _LEAST))
    first = ~cluster.where(rated).duplicated().to_numpy() & rated
    for part in (labelled, ~labelled):
        if (part & first).any():
            weight[part] /= weight[part & first].mean()
    if np.allclose(weight[rated], 1.0):
        return units
    by_unit = dict(zip(known.index, weight, strict=True))
    return units.assign(**{WEIGHT: units["unit_id"].map(by_unit)})


def effective_size(weight: Array) -> float:
    """Number of equally weighted clusters that would estimate a mean as precisely.

    This holds if weights are unrelated to the values (Kish 1965): the square of the sum over the
    sum of the squares.

    >>> effective_size(np.array([1.5, 0.5]))
    1.6
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


def _probabilities(known: pd.DataFrame, rated: Mask) -> Array:
    """Return the probabilities (units,) of a table by unit_id; `rated` units must have one."""
    import pandas as pd

    chance = pd.to_numeric(known[INCLUSION], errors="coerce").to_numpy(dtype=float)
    wrong = ~((chance > 0) & (chance <= 1))
    if (wrong & rated).any():
        at = int((wrong & rated).argmax())
        cell = str(known[INCLUSION].iloc[at])
        raise InputError(
            f"units: {INCLUSION} of unit {known.index[at]!r} is {cell!r}; "
            "give every rated unit a number above 0 and up to 1, or leave the column out"
        )
    return np.where(wrong, np.nan, chance)
