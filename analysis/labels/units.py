"""Facts about the rated units from the units table: clusters, subjects, slices, groups, lengths.

Units are weighted where some pairs were likelier to be picked for humans than others. A unit that
humans labelled represents 1 / p units like it, p its pair's probability of being picked (Horvitz &
Thompson 1952); every estimate is a quotient of such sums (Hajek 1971). A unit that only graders
labelled was passed over with probability 1 - p and represents 1 / (1 - p): so the humans' part and
the rest both represent all units, alone and together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.analysis.types import Array, Codes, DataFrame, Mask
from evenhand.errors import InputError
from evenhand.study.tables.columns import INCLUSION

WEIGHT = "sampling_weight"
"""The units column that `with_weights` adds."""
_LEAST = 0.05
"""Least probability of being passed over: no such unit represents more than 20."""


def with_weights(units: DataFrame | None, ratings: DataFrame) -> DataFrame | None:
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
    table = units.drop_duplicates("unit_id").set_index("unit_id")
    rated = table.index.isin(ratings["unit_id"])
    if (table.loc[rated, INCLUSION].astype(str).str.strip() == "").all():
        return units
    import pandas as pd

    chance = pd.to_numeric(table[INCLUSION], errors="coerce").to_numpy(dtype=float)
    is_wrong = ~((chance > 0) & (chance <= 1))
    if (is_wrong & rated).any():
        at = int((is_wrong & rated).argmax())
        cell = str(table[INCLUSION].iloc[at])
        raise InputError(
            f"units: {INCLUSION} of item {table.index[at]!r} is {cell!r}; "
            "give every rated item a number above 0 and up to 1, or leave the column out"
        )
    chance = np.where(is_wrong, np.nan, chance)
    cluster = table["cluster_id"] if "cluster_id" in table else table.index.to_series()
    by_people = ratings.loc[ratings["rater_kind"] == "human", "unit_id"]
    labelled = cluster.isin(cluster.reindex(by_people).dropna()).to_numpy()
    weight = 1.0 / np.where(labelled, chance, np.maximum(1.0 - chance, _LEAST))
    first = ~cluster.where(rated).duplicated().to_numpy() & rated
    for part in (labelled, ~labelled):
        if (part & first).any():
            weight[part] /= weight[part & first].mean()
    if np.allclose(weight[rated], 1.0):
        return units
    by_unit = dict(zip(table.index, weight, strict=True))
    return units.assign(**{WEIGHT: units["unit_id"].map(by_unit)})


def effective_size(weight: Array) -> float:
    """Number of equally weighted clusters that would estimate a mean as precisely. This holds if
    weights are unrelated to the values (Kish 1965): the square of the sum over the sum of the
    squares.

    >>> effective_size(np.array([1.5, 0.5]))
    1.6
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


MAX_VALUES = 50
"""A column with more values than this does not divide a sample: it identifies its units."""
MOST_SIDES = 12
"""A column of annotators with more values is not looked at unasked."""


@dataclass(frozen=True)
class UnitColumn:
    """A column as codes (units,), -1 for empty cells, into its values in sorted order."""

    name: str
    values: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> UnitColumn:
        """Encode cells. Codes follow the values, so that the order of rows never matters."""
        values = sorted(set(cells) - {""})
        position = {value: code for code, value in enumerate(values)} | {"": -1}
        codes = np.array([position[cell] for cell in cells], dtype=np.intp)
        return cls(name, tuple(values), codes)

    def parts(self) -> Iterator[tuple[str, Mask]]:
        """Yield the name and the units (units,) of each part of the sample that has any."""
        for code, value in enumerate(self.values):
            chosen = np.asarray(self.codes == code)
            if chosen.any():
                yield f"{self.name}={value}", chosen


class UnitFacts:
    """Rated units, in the order of their ids, with their rows of a `units` table (or none). Methods
    that look up a column raise InputError where a unit is not in the table.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "response_words": ["12", ""]})
    >>> UnitFacts(["u2", "u1"], units).numbers("response_words")
    array([nan, 12.])
    """

    def __init__(self, unit_ids: Sequence[str], units: DataFrame | None) -> None:
        self.ids, self.table = list(unit_ids), None
        if units is not None:
            self.table = units.drop_duplicates("unit_id").set_index("unit_id")

    def cells(self, name: str) -> list[str]:
        """Return a column as text, "" where a cell is empty or there is no such column."""
        if self._rated is None or name not in self._rated:
            return [""] * len(self.ids)
        column = self._rated[name]
        return column.astype(str).where(column.notna(), "").tolist()

    @cached_property
    def _rated(self) -> DataFrame | None:
        """Rows of the rated units. Raises InputError where one has none."""
        if self.table is None:
            return None
        import pandas as pd

        at = self.table.index.get_indexer(pd.Index(self.ids))
        if (at < 0).any():
            missing = [self.ids[place] for place in np.flatnonzero(at < 0)]
            raise InputError(
                f"the units table has no row for item {missing[0]!r}, which is rated "
                f"({len(missing)} such items); add it or leave the units table out"
            )
        return self.table.iloc[at]

    def column(self, name: str) -> UnitColumn:
        """Return a column as codes, without values where there is no such column."""
        return UnitColumn.of(name, self.cells(name))

    def numbers(self, name: str) -> Array:
        """Return a column as numbers, NaN where a cell holds none."""
        import pandas as pd

        if self._rated is None or name not in self._rated:
            return np.full(len(self.ids), np.nan)
        return np.asarray(pd.to_numeric(pd.Series(self.cells(name)), errors="coerce"), dtype=float)

    def texts(self) -> list[str]:
        """Return the columns whose numbers of words are in another column (NAME_words)."""
        names = [] if self.table is None else [str(name) for name in self.table]
        return [name for name in names if f"{name}_words" in names]

    def slices(self, names: Sequence[str]) -> tuple[UnitColumn, ...]:
        """Return the columns to slice by. Raises InputError where one is missing."""
        return tuple(self._asked_for(name, "slice by") for name in names)

    def clusters(self, by: str = "pair") -> UnitColumn:
        """Return each unit's cluster: by "pair" (`cluster_id`), "unit" (its own), or a column.
        Without a table, or without `cluster_id`, every unit is its own cluster. Raises InputError
        where the column is missing, or a cluster is empty.
        """
        name = "cluster_id" if by == "pair" else by
        has_pairs = self.table is not None and "cluster_id" in self.table
        if by == "unit" or (by == "pair" and not has_pairs):
            return UnitColumn.of("unit_id", self.ids)
        clusters = self._asked_for(name, "cluster by")
        if (clusters.codes < 0).any():
            empty = self.ids[int(clusters.codes.argmin())]
            raise InputError(
                f"units: {name} of item {empty!r} is empty; every item needs a cluster"
            )
        return clusters

    def weights(self, clusters: UnitColumn) -> Array | None:
        """Return the weight of each cluster, (clusters,); None where all count equally. See
        `analysis.labels.units`. Raises InputError where a cluster's units differ.
        """
        if self.table is None or WEIGHT not in self.table:
            return None
        of_units = self.numbers(WEIGHT)
        weight = np.zeros(len(clusters.values))
        weight[clusters.codes] = of_units
        if (differs := weight[clusters.codes] != of_units).any():
            mixed = clusters.values[clusters.codes[int(differs.argmax())]]
            raise InputError(
                f"units: the pairs of {clusters.name} {mixed!r} were not equally likely to be "
                'picked, so it cannot be weighted as a whole; let pairs be the clusters ("pair")'
            )
        return weight

    def _asked_for(self, name: str, purpose: str) -> UnitColumn:
        if self.table is None:
            raise InputError(
                f"the column {name!r} to {purpose} needs a units table; give one or leave it out"
            )
        if name not in self.table:
            columns = ", ".join(str(column) for column in self.table) or "none"
            raise InputError(f"units has no column {name!r} to {purpose}; it has {columns}")
        return self.column(name)


def check_values(column: str, values: Sequence[str]) -> None:
    """Raise InputError if a column has too many values to slice by."""
    if len(values) > MAX_VALUES:
        raise InputError(
            f"the column {column!r} has {len(values)} values, and at most {MAX_VALUES} can be "
            "sliced by; group them into fewer, or slice by another column"
        )
