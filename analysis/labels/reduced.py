"""Ratings reduced to distinct rows of labels, with their counts in each cluster.

A million units of five raters on five categories are at most 7,776 patterns, however many units
there are. Tables of parts of the ratings add up to that of all, whatever the parts and the order of
their rows, as long as no unit's ratings are split: the form is canonical, and holds whole numbers
only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.copies import copies_among
from evenhand.analysis.labels.matrix import KIND_ORDER, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.types import Array, Codes, Frequency, Labels, Mask
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MAX_CELLS = 500_000_000
"""Upper limit of patterns times raters: beyond it there are too many raters for columns."""


@dataclass(frozen=True)
class Raters:
    """Raters of one rubric: humans first, then adjudicators, then models, each by name."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, kinds: dict[str, str]) -> Raters:
        """Order raters by kind and name.

        >>> Raters.of({"gpt": "model", "ben": "human", "ann": "human"}).names
        ('ann', 'ben', 'gpt')
        """
        names = sorted(kinds, key=lambda name: (KIND_ORDER[kinds[name]], name))
        return cls(tuple(names), tuple(kinds[name] for name in names))

    def members(self, kind: str) -> list[int]:
        """Return the positions of the raters of one kind."""
        return [at for at, each in enumerate(self.kinds) if each == kind]


@dataclass(frozen=True)
class Reduced:
    """Ratings of one rubric as patterns (patterns, 3 x raters).

    A pattern holds codes of labels; whether the unit was assigned to the rater; verdicts from
    probabilities, -1 where there is none.

    Row k of the cells: the `cluster[k]`-th of `clusters` has `times[k]` units of the
    `pattern[k]`-th pattern. `clusters` are in the order of their names; None where every unit is
    its own cluster, and then the cells have one row per pattern.
    """

    raters: Raters
    patterns: Labels
    clusters: pa.Array | None
    cluster: Codes
    pattern: Codes
    times: Frequency
    reasons: tuple[Counter[str], ...]

    @property
    def n_units(self) -> int:
        """Number of units with a rating."""
        return int(self.times.sum())

    def cells(self) -> Any:
        """Return the counts (clusters, patterns), a sparse matrix."""
        from scipy.sparse import csr_array

        n = 1 if self.clusters is None else len(self.clusters)
        shape = (n, len(self.patterns))
        return csr_array((self.times, (self.cluster, self.pattern)), shape=shape)

    @property
    def is_unclustered(self) -> bool:
        """True if every unit is its own cluster."""
        return self.clusters is None or self.n_units == len(self.clusters)


def reduce_ratings(
    ratings: pd.DataFrame,
    clusters: pd.Series | None,
    scale: Scale,
    raters: Raters,
    source: str = "ratings",
) -> Reduced:
    """Reduce ratings of one rubric (a validated `ratings` table) that hold all of each unit's rows.

    `clusters` gives each unit's cluster by its id; `raters` are those of all the ratings there are.
    Raises InputError as `combine_readings` does.
    """
    if scale.is_number:
        raise InputError(
            "labels that are numbers hardly repeat, which an engine needs; leave --engine out"
        )
    readings = combine_readings(ratings, scale, source)
    position = {name: at for at, name in enumerate(raters.names)}
    column = np.array([position[name] for name in readings.raters], dtype=np.intp)[readings.rater]
    n, r = len(readings.units), len(raters.names)
    rows = np.full((n, 3 * r), -1, dtype=np.int8)
    rows[:, r : 2 * r] = 0
    rows[readings.unit, column] = readings.code
    rows[readings.unit, r + column] = 1
    threshold = np.array([scale.threshold_for(name) for name in raters.names])[column]
    verdict = np.where(np.isnan(readings.positive), -1, readings.positive >= threshold)
    rows[readings.unit, 2 * r + column] = verdict
    reasons = [Counter[str]() for _ in raters.names]
    for row in np.flatnonzero(readings.reason != ""):
        reasons[column[row]][readings.reason[row]] += 1
    names, cluster = None, np.zeros(n, dtype=np.intp)
    if clusters is not None:
        import pyarrow as pa

        own = clusters.loc[list(readings.units)].astype(str)
        names, cluster = pa.array(own.tolist(), pa.large_string()), np.arange(n)
    times = np.ones(n, dtype=np.int64)
    return merged([Reduced(raters, rows, names, cluster, np.arange(n), times, tuple(reasons))])


def merged(parts: Sequence[Reduced]) -> Reduced:
    """Merge the tables of several parts; no unit may be in two of them."""
    import pyarrow as pa

    raters, first = parts[0].raters, parts[0].clusters
    patterns, at = _distinct(np.concatenate([part.patterns for part in parts]))
    names, of = None, np.zeros(1, dtype=np.intp)
    if first is not None:
        given = pa.chunked_array([part.clusters for part in parts]).combine_chunks()
        names, of = _sorted_names(given)
    starts = np.cumsum([0, *(len(part.patterns) for part in parts)])
    ends = np.cumsum([0, *(0 if part.clusters is None else len(part.clusters) for part in parts)])
    pattern = [at[part.pattern + start] for part, start in zip(parts, starts, strict=False)]
    cluster = [of[part.cluster + start] for part, start in zip(parts, ends, strict=False)]
    cells = _added_up(
        np.concatenate(cluster),
        np.concatenate(pattern),
        np.concatenate([part.times for part in parts]),
        len(patterns),
    )
    reasons = [sum(each, Counter[str]()) for each in zip(*(p.reasons for p in parts), strict=True)]
    return Reduced(raters, patterns, names, *cells, tuple(reasons))


def _distinct(rows: Labels) -> tuple[Labels, Codes]:
    """Return the distinct rows, ordered as in `LabelMatrix.folded`, and the index of each row."""
    if rows.size > MAX_CELLS:
        raise InputError(
            f"{len(rows):,} different rows of labels by {rows.shape[1] // 3:,} raters do not fit; "
            "keep the ratings of fewer raters, or pool those who labelled little under one rater_id"
        )
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, at = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], at.reshape(-1)


def _sorted_names(given: pa.Array) -> tuple[pa.Array, Codes]:
    """Return the distinct names in their order, and the index of each."""
    import pyarrow.compute as pc

    coded = given.dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order.to_numpy()] = np.arange(len(order))
    return coded.dictionary.take(order), rank[coded.indices.to_numpy()]


def _added_up(
    cluster: Codes, pattern: Codes, times: Frequency, n_patterns: int
) -> tuple[Codes, Codes, Frequency]:
    """Add up cells of the same cluster and pattern, in the order of clusters and patterns."""
    key = cluster * n_patterns + pattern
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    total = np.add.reduceat(times[order], first) if len(first) else times
    return key[first] // n_patterns, key[first] % n_patterns, total


@dataclass(frozen=True)
class PatternMatrix(LabelMatrix):
    """Labels as patterns, each a row and a cluster of its own.

    Of probabilities it holds only the verdicts that they give, `given` (patterns, raters), -1 where
    there is none.
    """

    given: Labels = None  # type: ignore[assignment]

    @property
    def verdicts(self) -> Labels:
        """Binary verdicts (patterns, raters): 1 affirmative, 0 not, -1 missing."""
        return np.where(self.given < 0, super().verdicts, self.given).astype(np.int8)

    @property
    def scored(self) -> Mask:
        """Mask (patterns, raters) of usable labels or probabilities."""
        return (self.codes >= 0) | (self.given >= 0)


def pattern_matrix(reduced: Reduced, scale: Scale) -> PatternMatrix:
    """Return the patterns of one rubric as labels."""
    raters, n, r = reduced.raters, len(reduced.patterns), len(reduced.raters.names)
    codes, asked, given = (reduced.patterns[:, k * r : (k + 1) * r] for k in range(3))
    times = np.bincount(reduced.pattern, reduced.times, minlength=n).astype(np.int64)
    unknown: Array = np.broadcast_to(np.nan, (n, r))
    nothing = np.full(n, -1, dtype=np.intp)
    return PatternMatrix(
        scale=scale,
        raters=raters.names,
        kinds=raters.kinds,
        codes=np.ascontiguousarray(codes),
        positive=unknown,
        confidence=unknown,
        thresholds=np.broadcast_to([scale.threshold_for(name) for name in raters.names], (n, r)),
        asked=asked > 0,
        reasons=reduced.reasons,
        clusters=np.arange(n),
        n_clusters=n,
        subjects=(),
        subject=nothing,
        pairs=(),
        pair=nothing,
        side=nothing,
        methods=("",) * r,
        draws=(0,) * r,
        copies=copies_among(codes, raters.members("human"), raters.members("model"), times),
        given=np.ascontiguousarray(given),
    )


def name_keys(names: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash the clusters' names (clusters,), the same on every machine."""
    import pandas as pd

    return pd.util.hash_array(names.to_numpy(zero_copy_only=False)).astype(np.uint64)
