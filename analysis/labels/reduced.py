"""Ratings reduced to distinct rows of labels, with their counts in each cluster.

A million units of five raters on five categories are at most 7,776 patterns, however many units
there are. Tables of parts of the ratings add up to that of all, whatever the parts and the order of
their rows, as long as no unit's ratings are split: the form is canonical, and holds whole numbers
only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.encoding import combine_readings
from evenhand.analysis.labels.matrix import KIND_ORDER, LabelMatrix, copies_among, distinct_bytes
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.types import Array, DataFrame, Frequency, Labels, Mask, Sparse
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MAX_CELLS = 500_000_000
"""Upper limit of patterns times raters: beyond it there are too many raters for columns."""


def by_kind(kinds: Mapping[str, str]) -> dict[str, str]:
    """Order raters, {name: kind}: humans first, then adjudicators, then models, each by name.

    >>> list(by_kind({"gpt": "model", "ben": "human", "ann": "human"}))
    ['ann', 'ben', 'gpt']
    """
    return dict(sorted(kinds.items(), key=lambda rater: (KIND_ORDER[rater[1]], rater[0])))


@dataclass(frozen=True)
class Reduced:
    """Ratings of one rubric as patterns (patterns, 3 x raters), and their counts in each cluster.

    A pattern holds codes of labels; whether the unit was assigned to the rater; verdicts from
    probabilities, -1 where there is none. `raters` are {name: kind} as `by_kind` orders them.

    `cells` (clusters, patterns) is a sparse matrix of whole numbers. `clusters` are in the order of
    their names; None where every unit is its own cluster, and then the cells have one row.
    """

    raters: Mapping[str, str]
    patterns: Labels
    clusters: pa.Array | None
    cells: Sparse
    reasons: tuple[Counter[str], ...]

    @property
    def n_units(self) -> int:
        """Number of units with a rating."""
        return int(self.cells.sum())

    @property
    def times(self) -> Frequency:
        """Number of units of each pattern."""
        return np.asarray(self.cells.sum(axis=0), dtype=np.int64)

    @property
    def is_unclustered(self) -> bool:
        """True if every unit is its own cluster."""
        return self.clusters is None or self.n_units == len(self.clusters)


def reduce_ratings(
    ratings: DataFrame,
    clusters: pd.Series | None,
    scale: Scale,
    raters: Mapping[str, str],
    source: str = "ratings",
) -> Reduced:
    """Reduce ratings of one rubric (a validated `ratings` table) that hold all of each unit's rows.

    `clusters` gives each unit's cluster by its id; `raters` are those of all the ratings there are.
    Raises InputError as `combine_readings` does.
    """
    import pyarrow as pa
    from scipy.sparse import csr_array, eye_array

    if scale.is_number:
        raise InputError(
            "labels that are numbers hardly repeat, which an engine needs; leave --engine out"
        )
    readings = combine_readings(ratings, scale, source)
    position = {name: at for at, name in enumerate(raters)}
    column = np.array([position[name] for name in readings.raters], dtype=np.intp)[readings.rater]
    n, r = len(readings.units), len(raters)
    rows = np.full((n, 3 * r), -1, dtype=np.int8)
    rows[:, r : 2 * r] = 0
    rows[readings.unit, column] = readings.code
    rows[readings.unit, r + column] = 1
    threshold = np.array([scale.threshold_for(name) for name in raters])[column]
    verdict = np.where(np.isnan(readings.positive), -1, readings.positive >= threshold)
    rows[readings.unit, 2 * r + column] = verdict
    reasons = [Counter[str]() for _ in raters]
    for row in np.flatnonzero(readings.reason != ""):
        reasons[column[row]][readings.reason[row]] += 1
    names, cells = None, csr_array(np.ones((1, n), dtype=np.int64))
    if clusters is not None:
        own = clusters.loc[list(readings.units)].astype(str)
        names = pa.array(own.tolist(), pa.large_string())
        cells = eye_array(n, dtype=np.int64, format="csr")
    return merged([Reduced(raters, rows, names, cells, tuple(reasons))])


def merged(parts: Sequence[Reduced]) -> Reduced:
    """Merge the tables of several parts; no unit may be in two of them.

    Patterns are ordered as in `LabelMatrix.folded`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from scipy.sparse import block_diag, csr_array

    rows = np.concatenate([part.patterns for part in parts])
    if rows.size > MAX_CELLS:
        raise InputError(
            f"{len(rows):,} different rows of labels by {rows.shape[1] // 3:,} raters do not fit; "
            "keep the ratings of fewer raters, or pool those who labelled little under one rater_id"
        )
    first, at = distinct_bytes(rows)
    patterns = rows[first]
    cells = block_diag([part.cells for part in parts], format="coo")
    names, of = None, np.zeros(len(parts), dtype=np.intp)
    if parts[0].clusters is not None:
        given = pa.chunked_array([part.clusters for part in parts])
        names = pc.unique(given).sort()
        of = pc.index_in(given, names).to_numpy()
    shape = (1 if names is None else len(names), len(patterns))
    cells = csr_array((cells.data, (of[cells.row], at[cells.col])), shape=shape)  # adds up
    reasons = [sum(each, Counter[str]()) for each in zip(*(p.reasons for p in parts), strict=True)]
    return Reduced(parts[0].raters, patterns, names, cells, tuple(reasons))


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
    n, r = len(reduced.patterns), len(reduced.raters)
    names, kinds = tuple(reduced.raters), tuple(reduced.raters.values())
    codes, asked, given = (reduced.patterns[:, k * r : (k + 1) * r] for k in range(3))
    people, models = ([at for at in range(r) if kinds[at] == kind] for kind in ("human", "model"))
    unknown: Array = np.broadcast_to(np.nan, (n, r))
    nothing = np.full(n, -1, dtype=np.intp)
    return PatternMatrix(
        scale=scale,
        raters=names,
        kinds=kinds,
        codes=np.ascontiguousarray(codes),
        positive=unknown,
        confidence=unknown,
        thresholds=np.broadcast_to([scale.threshold_for(name) for name in names], (n, r)),
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
        copies=copies_among(codes, people, models, reduced.times),
        given=np.ascontiguousarray(given),
    )


def name_keys(names: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash the clusters' names (clusters,), the same on every machine."""
    import pandas as pd

    return pd.util.hash_array(names.to_numpy(zero_copy_only=False)).astype(np.uint64)
