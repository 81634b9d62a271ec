"""Encoding of readings as a `LabelMatrix`, and of plain arrays of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.combine import Readings
from evenhand.analysis.labels.matrix import KIND_ORDER, Coded, LabelMatrix, copies_among
from evenhand.analysis.labels.scale import Level, Scale, category_values
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.types import Array, Codes, Column, DataFrame, Labels, Mask
from evenhand.errors import InputError
from evenhand.texts import written


def encode_labels(labels: Any, categories: Column[Hashable]) -> Labels:
    """Encode labels (units, raters) as codes (units, raters), -1 where missing.

    `labels` is anything that numpy converts to a table: nested lists, an array, a DataFrame; one
    sequence, or one string of labels of one letter, is one rater. None, NaN and "" (unless it is a
    category) are missing. Raises InputError where a label is none of `categories` or the rows have
    different lengths.

    >>> encode_labels([["yes", "no"], ["no", None]], ["yes", "no"]).tolist()
    [[0, 1], [1, -1]]
    """
    import pandas as pd

    if len(categories) < 1 or len(set(categories)) < len(categories):
        raise InputError(f"the categories must all be different, not {_listed(categories)}")
    table = _table(labels)
    whole = table.dtype.kind in "iu" and list(categories) == list(range(len(categories)))
    if whole and table.min() >= 0 and table.max() < len(categories):
        return table.astype(np.int8)  # a look-up of a million labels takes as long as a bootstrap
    table = table.astype(object)
    cells, seen = pd.factorize(table.ravel())
    position: dict[Hashable, int] = {"": -1} | {each: k for k, each in enumerate(categories)}
    lookup = np.array([position.get(each, -2) for each in seen] + [-1], dtype=np.int64)
    codes = lookup[cells].reshape(table.shape)
    if (codes == -2).any():
        row, column = np.argwhere(codes == -2)[0]
        raise InputError(
            f"labels, row {row}, column {column} (from 0): {table[row, column]!r} is none of the "
            f"categories {_listed(categories)}; declare it or correct the label"
        )
    return codes.astype(np.int8)


def coded_raters(
    humans: Labels, graders: Labels, categories: Column[Hashable], level: Level
) -> Coded:
    """Return codes (units, raters) of humans and graders as a view, each unit a cluster."""
    codes = np.hstack([humans, graders])
    return Coded(
        raters=tuple(str(column) for column in range(codes.shape[1])),
        kinds=("human",) * humans.shape[1] + ("model",) * graders.shape[1],
        codes=codes,
        clusters=np.arange(len(codes)),
        categories=tuple(str(category) for category in categories),
        values=category_values(categories, level),
        level=level,
        subset="all",
    )


def _listed(categories: Column[Hashable]) -> str:
    return ", ".join(map(str, categories)) or "none"


def _table(labels: Any) -> npt.NDArray[Any]:
    """Return labels (units, raters) as objects, or an array of whole numbers unchanged."""
    given = list(labels) if isinstance(labels, str) else labels
    whole = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    try:
        table = np.asarray(given, dtype=None if whole else object)
    except ValueError:
        table = np.empty(0, dtype=object)
    if table.ndim == 1 and (whole or not any(isinstance(cell, (list, tuple)) for cell in table)):
        table = table[:, None]
    if table.ndim != 2 or table.size == 0:
        raise InputError(
            "labels must be a table with one row per unit and one column per rater, "
            "with None for a missing label"
        )
    return table


def encode_column(labels: Any, categories: Column[Hashable]) -> Labels:
    """Encode one rater's labels as codes (units,)."""
    codes = encode_labels(labels, categories)
    if codes.shape[1] != 1:
        raise InputError(f"one rater must have one label per unit, not {codes.shape[1]}")
    return codes[:, 0]


def same_length(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
    """Raise InputError if the two sides cannot be of the same units."""
    if len(first) != len(second):
        raise InputError(
            f"the two sides have {len(first)} and {len(second)} units; give the same units, with "
            "None where there is no label"
        )


def cluster_codes(clusters: Column[Hashable] | None, n: int) -> Codes:
    """Return the cluster of each of n units, (units,); without `clusters` each is its own."""
    import pandas as pd

    if clusters is None:
        return np.arange(n)
    codes, _ = pd.factorize(np.asarray(clusters, dtype=object))
    if len(codes) != n or (codes < 0).any():
        raise InputError(f"clusters must name a cluster for each of the {n} units")
    return np.asarray(codes, dtype=np.intp)


MOST_PLACES = 100_000_000
"""Units times raters: each may have a label, and a table holds a place for it."""


def encode(
    readings: Readings,
    scale: Scale,
    units: DataFrame | None = None,
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

    given = np.flatnonzero(~np.isnan(readings.probabilities[:, 0]))
    distributions = {}
    for rater in np.unique(at[1][given]).tolist():
        own = given[at[1][given] == rater]
        table = np.full((shape[0], readings.probabilities.shape[1]), np.nan)
        table[at[0][own]] = readings.probabilities[own]
        distributions[rater] = table
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
        distributions=distributions,
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
