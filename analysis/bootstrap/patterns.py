"""Distinct rows of labels and how often each occurs in the data.

A bootstrap of units depends on nothing else, so a million labels cost what their few hundred
patterns cost. Rows are first encoded as whole numbers, which are counted in one pass, not sorted.

A resample is determined by how often each pattern comes up in it: the clusters' weights times their
counts of patterns. That product is taken once, in exact whole numbers, and every statistic is then
a function of few patterns instead of many clusters. The draws of clusters are those of `Resamples`,
so the numbers are the same, too.

With more than a million clusters 2,000 resamples would take hours. Clusters are then dealt at
random into 10,000 groups, by a hash of their names and the seed, and whole groups are resampled:
the random groups of survey sampling (Wolter 2007, chapter 2). Sums over groups of independent
clusters are independent, and their variance is that of all clusters; as they are no more than
10,000 a standard error is off by .7% of itself, where 2,000 resamples have it off by 1.6% already.
`python -m benchmarks.scale` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Counts, Resamples
from evenhand.analysis.notes import Reason, Remark
from evenhand.analysis.types import Array, Codes, Frequency, Integers, Mask, Numbers, Sparse

Small = npt.NDArray[np.integer[Any] | np.bool_]

_COUNTABLE = 4_000_000
_LARGEST_KEY = 2**62


def distinct_rows(columns: Sequence[Small]) -> tuple[Codes, Codes]:
    """Find the distinct rows of columns (rows,).

    Returns the position of one row (patterns,) of each kind, and how many such rows there are.
    Codes are small whole numbers from -1 up.

    >>> distinct_rows([np.array([0, 1, 0, 0]), np.array([2, -1, 2, 0])])
    (array([3, 2, 1]), array([1, 2, 1]))
    """
    key, size = np.zeros(len(columns[0]), dtype=np.intp), 1
    for column in columns:
        width = int(column.max(initial=0)) + 2
        if size * width >= _LARGEST_KEY:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key *= width
        key += column
        key += 1
        size *= width
    if size > _COUNTABLE:
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        return first, counts
    counts = np.bincount(key, minlength=1)
    used = np.flatnonzero(counts)
    at = np.empty(len(counts), dtype=np.intp)
    at[key] = np.arange(len(key))
    return at[used], counts[used]


def count_labels(codes: Integers, q: int) -> Array:
    """Count raters by category, (units, q), from codes (units, raters), -1 missing."""
    return np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1).astype(float)


def count_patterns(codes: Integers, q: int) -> tuple[Array, Codes]:
    """Return distinct counts of the categories (patterns, q) over units, and how often each occurs.

    `codes` (units, raters) are 0 to q - 1, -1 missing. Statistics of a group of raters need no
    more: five raters on five categories have at most 126 patterns if nothing is missing.

    >>> counts, times = count_patterns(np.array([[0, 1, 0], [1, 0, 0], [1, 1, -1]]), 2)
    >>> counts.tolist(), times.tolist()
    ([[2.0, 1.0], [0.0, 2.0]], [2, 1])
    """
    base = codes.shape[1] + 1
    if base**q >= _LARGEST_KEY:
        counts = count_labels(codes, q)
        kept, times = distinct_rows(list(counts.T.astype(np.intp)))
        return counts[kept], times
    # The key is the counts' digits to the base, so a rater's label adds one at its digit.
    digit = np.array([base**code for code in range(q)] + [0], dtype=np.intp)
    key = np.zeros(len(codes), dtype=np.intp)
    for rater in range(codes.shape[1]):
        key += digit[np.ascontiguousarray(codes[:, rater])]
    if base**q <= _COUNTABLE:
        every = np.bincount(key, minlength=1)
        used = np.flatnonzero(every)
        times = every[used]
    else:
        used, times = np.unique(key, return_counts=True)
    return (used[:, None] // digit[:q] % base).astype(float), times


MANY_CLUSTERS = 1_000_000
"""More clusters than this are resampled in groups."""
GROUPS = 10_000
_KEEP_BYTES = 1_000_000_000
_MULTIPLIED = 5_000
"""Clusters multiplied at a time: bounds memory."""


class PatternResamples(Resamples):
    """Weights of patterns (rows, patterns) in the data, in every resample and in the jackknife.

    `cells` (clusters, patterns) counts each cluster's units of each pattern, and `members` those of
    each unit that was `drawn`: the clusters, or groups of them.

    >>> from scipy.sparse import csr_array
    >>> cells = csr_array(np.array([[1, 1], [0, 2]]))
    >>> drawn = Resamples(np.ones(2), 1, np.random.default_rng(7))
    >>> PatternResamples(cells, cells, drawn).totals(np.ones((2, 1))).tolist()
    [[4.0], [4.0]]
    """

    def __init__(self, cells: Sparse, members: Sparse, drawn: Resamples) -> None:
        self._cells, self._members, self._drawn = cells, members, drawn
        self.frequency: Frequency = np.asarray(members.T @ drawn.frequency, dtype=np.int64)
        self.weight, self.resamples, self._sizes = None, drawn.resamples, drawn._sizes
        self._seeds = drawn._seeds
        left_out = drawn._left_out
        self._left_out = None if left_out is None else (left_out @ members).tocsr()
        self._counted: dict[bytes, tuple[int, int]] = {}
        few = self.resamples * self.n_types * 8 <= _KEEP_BYTES and self.n_types <= drawn.n_types
        self._keep(None)
        if few:
            self._keep(self._each_block(self._draw, drawn.n_types))
        else:
            drawn.hold()

    @property
    def is_pooled(self) -> bool:
        """True if groups of clusters were drawn."""
        return bool(self._members.shape[0] < self._cells.shape[0])

    def totals(self, features: Numbers) -> Array:
        """Sum as in `Resamples`; via the clusters where there are more patterns than clusters."""
        if self._kept is not None or not self.resamples:
            return super().totals(features)
        flat = features.reshape(self.n_types, -1)
        summed = self._drawn.totals(np.asarray(self._members @ flat))
        return summed.reshape(len(self), *features.shape[1:])

    def interval(
        self,
        values: Array,
        n_clusters: int,
        *,
        undefined: float | None = None,
        reason: Reason = "no_variation",
    ) -> Interval:
        """Return the interval as in `Resamples`, with a remark if clusters were grouped."""
        found = super().interval(values, n_clusters, undefined=undefined, reason=reason)
        if not self.is_pooled or np.isnan(found.low):
            return found
        pooled = Remark("pooled_clusters", (self._members.shape[0], self._cells.shape[0]))
        return replace(found, remarks=(*found.remarks, pooled))

    def each_cluster(self, sums: Array) -> Array:
        """Return sums over the patterns (patterns, k) for each cluster."""
        return np.asarray(self._cells @ sums)

    def signed(self, sums: Array) -> tuple[Array, Frequency]:
        """Return sums over patterns (patterns, k) for each cluster, which occurs once."""
        found = self.each_cluster(sums)
        return found, np.ones(len(found), dtype=np.int64)

    @property
    def clusters_in_row(self) -> float:
        """Clusters that a row of the jackknife leaves out, as in `Resamples`."""
        return float(self._cells.shape[0] / self._left_out.shape[0])

    def mass_of(self, clusters: Codes, chosen: Mask) -> int:
        """Count the clusters in the data that have one of the chosen units."""
        return self.count(clusters, chosen)[1]

    def count(self, clusters: Codes, chosen: Mask) -> tuple[int, int]:
        """Count (units, clusters) in the data among the chosen patterns."""
        wanted = np.zeros(self.n_types, dtype=np.int64)
        wanted[clusters[chosen]] = 1
        key = np.packbits(wanted.astype(bool)).tobytes()
        if key not in self._counted:
            held = self._cells @ wanted > 0
            self._counted[key] = int(wanted @ self.frequency), int(held.sum())
        return self._counted[key]

    def units(self, clusters: Codes) -> tuple[Codes, Codes, Frequency]:
        """Return the pattern of every unit in the data, its cluster, and ones."""
        cells = self._cells[:, clusters].tocoo()
        rows, cluster = np.repeat(cells.col, cells.data), np.repeat(cells.row, cells.data)
        return rows, cluster, np.ones(len(rows), dtype=np.int64)

    def left_out(self, clusters: Codes) -> PatternResamples:
        """Return the jackknife as in `Resamples`; clusters without these patterns do not count."""
        wanted = (np.bincount(clusters, minlength=self.n_types) > 0).astype(np.int64)
        cells, members = (
            each[np.flatnonzero(each @ wanted > 0)] for each in (self._cells, self._members)
        )
        each_once = np.ones(members.shape[0])
        drawn = Resamples(each_once, 0, np.random.default_rng(0), "bca")
        return PatternResamples(cells, members, drawn)

    def only(self, clusters: Codes) -> PatternResamples:
        """Restrict the resamples to some of the patterns."""
        chosen = self._cells[:, clusters], self._members[:, clusters]
        return PatternResamples(*chosen, self._drawn)

    def _draw(self, block: int) -> Counts:
        """Count how often each pattern comes up in a block of resamples (rows, patterns)."""
        drawn, patterns = self._drawn._block(block), self._members.T.tocsc()
        out = np.zeros((self.n_types, len(drawn)), dtype=np.int64)
        for start in range(0, drawn.shape[1], _MULTIPLIED):
            part = slice(start, start + _MULTIPLIED)
            out += patterns[:, part] @ drawn[:, part].T.astype(np.int64)
        return np.ascontiguousarray(out.T).astype(np.min_scalar_type(int(out.max(initial=0))))


def resamples_of_patterns(
    cells: Sparse,
    keys: npt.NDArray[np.uint64],
    draw: Callable[[Frequency], Resamples],
    seed: int,
    many: int = MANY_CLUSTERS,
) -> PatternResamples:
    """Return resamples of clusters by their counts of patterns, `cells` (clusters, patterns).

    `keys` (clusters,) are hashes of the clusters' names: with the seed they determine each
    cluster's group where there are more than `many`. `draw` makes resamples of clusters, and need
    not keep them.
    """
    n = cells.shape[0]
    if n <= many:
        return PatternResamples(cells, cells, draw(np.ones(n, dtype=np.int64)))
    members = _grouped(cells, keys, seed)
    return PatternResamples(cells, members, draw(np.ones(members.shape[0], np.int64)))


def _grouped(cells: Sparse, keys: npt.NDArray[np.uint64], seed: int) -> Sparse:
    """Sum over random groups of clusters: (groups, patterns)."""
    from scipy.sparse import csr_array

    group = _mixed(keys ^ _mixed(np.array([seed], dtype=np.uint64))) % np.uint64(GROUPS)
    n = len(keys)
    of = csr_array((np.ones(n, np.int64), (group.astype(np.intp), np.arange(n))), shape=(GROUPS, n))
    return (of @ cells).tocsr()


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of the keys: each output bit depends on all bits of a key.

    The finaliser of SplitMix64 (Steele, Lea & Flood 2014).
    """
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
