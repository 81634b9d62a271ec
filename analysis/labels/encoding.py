"""Encoding of readings as a `LabelMatrix`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.labels.combine import Readings
from evenhand.analysis.labels.copies import copies_among
from evenhand.analysis.labels.matrix import KIND_ORDER, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd


MOST_PLACES = 100_000_000
"""Units times raters: each may have a label, and a table holds a place for it."""


def encode(
    readings: Readings,
    scale: Scale,
    units: pd.DataFrame | None = None,
    cluster: str = "pair",
    slices: Sequence[str] = (),
) -> LabelMatrix:
    """Lay readings out as arrays and find each unit's cluster.

    `units` is the `units` table; `cluster` is "pair" (its `cluster_id`) or the name of one of its
    columns, `slices` are names of its columns. Without `units` every unit is its own cluster.
    Raises InputError where a rated unit is not in `units`, a column is not there, or the cluster
    column is empty.
    """
    order = sorted(
        range(len(readings.raters)),
        key=lambda at: (KIND_ORDER[readings.kinds[at]], readings.raters[at]),
    )
    column = np.empty(len(order), dtype=np.intp)
    column[order] = np.arange(len(order))
    at = (readings.unit, column[readings.rater])
    shape = (len(readings.units), len(order))
    if shape[0] * shape[1] > MOST_PLACES:
        counts = {"units": shape[0], "raters": shape[1], "most": MOST_PLACES}
        raise InputError(written("too_large.places", **counts))
    codes = np.full(shape, -1, dtype=readings.code.dtype)
    asked = np.zeros(shape, dtype=bool)
    codes[at], asked[at] = readings.code, True
    positive, confidence = (
        _laid_out(values, at, shape) for values in (readings.positive, readings.confidence)
    )
    reasons = [Counter[str]() for _ in order]
    for row in np.flatnonzero(readings.reason != ""):
        reasons[at[1][row]][readings.reason[row]] += 1

    facts = UnitFacts(readings.units, units)
    clusters = facts.clusters(cluster)
    subject, pair, side = (facts.column(name) for name in ("subject", "cluster_id", "side"))
    raters = tuple(readings.raters[each] for each in order)
    kinds = tuple(readings.kinds[each] for each in order)
    people, graders = (
        [at for at, each in enumerate(kinds) if each == kind] for kind in ("human", "model")
    )
    return LabelMatrix(
        scale=scale,
        raters=raters,
        kinds=kinds,
        codes=codes,
        positive=positive,
        confidence=confidence,
        thresholds=np.broadcast_to([scale.threshold_for(rater) for rater in raters], shape),
        asked=asked,
        reasons=tuple(reasons),
        clusters=clusters.codes,
        n_clusters=len(clusters.values),
        subjects=subject.values,
        subject=subject.codes,
        pairs=pair.values,
        pair=pair.codes,
        side=side.codes,
        slices=facts.slices(slices),
        methods=tuple(readings.methods[each] for each in order),
        draws=tuple(readings.draws[each] for each in order),
        copies=copies_among(codes, people, graders),
        weight=facts.weights(clusters),
        distributions=_distributions(readings, at, shape[0]),
        withheld=_withheld(readings, order, scale),
    )


def _laid_out(values: Array, at: tuple[Codes, Codes], shape: tuple[int, int]) -> Array:
    """Values (units, raters), NaN where there is none; if there is none at all, without memory."""
    if np.isnan(values).all():
        return np.broadcast_to(np.nan, shape)
    out = np.full(shape, np.nan)
    out[at] = values
    return out


def _withheld(readings: Readings, order: Sequence[int], scale: Scale) -> Mask | None:
    """Mask (units, raters in this order) of what is withheld from graders; None where nothing is.
    What is withheld from a grader is withheld from its parts by method (`combine.methods_apart`).
    """
    own = []
    for at in order:
        rater = readings.raters[at]
        whole = rater.removesuffix(f" ({readings.methods[at]})")
        own.append(scale.withheld.get(rater) or scale.withheld.get(whole, frozenset()))
    if not any(own):
        return None
    return np.array([[unit in each for each in own] for unit in readings.units], dtype=bool)


def _distributions(readings: Readings, at: tuple[Codes, Codes], units: int) -> dict[int, Array]:
    """Probabilities of the categories (units, q) of each rater who gave any, by its column.

    `at` holds the unit and the column of each reading.
    """
    given = np.flatnonzero(~np.isnan(readings.probabilities[:, 0]))
    unit, column = at[0][given], at[1][given]
    out = {}
    for rater in np.unique(column).tolist():
        table = np.full((units, readings.probabilities.shape[1]), np.nan)
        own = column == rater
        table[unit[own]] = readings.probabilities[given[own]]
        out[rater] = table
    return out
