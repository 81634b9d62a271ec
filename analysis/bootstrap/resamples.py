"""The bootstrap of clusters: one set of resamples that every statistic of a rubric shares.

A resample draws as many clusters as the data have, with replacement, and is fully described by its
*draw counts*: the number of times that each cluster was drawn. Every statistic is a function of
sums of *features*, numbers that add up over units (labelled items) and clusters:

1. Add up the features of the units of each cluster (`Resamples.sums_by_type`).
2. Multiply the draw counts by these sums, for the sums in all resamples (`Resamples.to_rows`).
3. Compute the statistic from each row of sums, which is left to the caller.

Row 0 of every result is the data; a row for each resample follows, then rows of the jackknife, if
any: the data without one cluster each. As all share the resamples, their differences are paired.

Identical clusters are one *type*, so that each is computed only once. Four arrays describe types:

    frequency     (types,)         number of clusters of the type in the data
    weight        (types,)         sampling weight of a cluster, the same in every resample
    mass          (types,)         frequency times sampling weight
    draw counts   (rows, types)    number of times that clusters of the type were drawn

`PatternResamples` takes the same steps with *patterns*, distinct rows of labels, as types, so that
a million units take no longer than their few hundred patterns. Clusters are drawn as before; the
number of units with each pattern in a resample then takes the place of the draw counts.

With more than a million clusters, 2,000 resamples would take hours. Clusters are then assigned to
10,000 random groups, by a hash of their names and the seed, and whole groups are resampled: the
random groups of survey sampling (Wolter 2007, chapter 2). The variance of sums over groups of
independent clusters is that of all clusters. With 10,000 groups the relative error of a standard
error is .7%; with 2,000 resamples it is 1.6% in any case (`python -m benchmarks.scale`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.analysis.bootstrap import intervals
from evenhand.analysis.statistics import Remark
from evenhand.analysis.types import Array, Codes, Frequency, Integers, Mask, Numbers, Sparse

DrawCounts = npt.NDArray[np.unsignedinteger[Any] | np.int64]
Floats = npt.NDArray[np.floating[Any]]
T = TypeVar("T")

_BLOCK = 250  # resamples drawn together, from one random stream: limits memory
_KEEP_BYTES = 1_000_000_000  # largest size of the draw counts that are kept in memory
_FLOAT_CELLS = 5_000_000
"""Largest number of draw counts that are kept as floating point, too (20 MB; 60 MB if in float64
as well): to convert them takes longer than a small product."""
_EXACT_FLOAT32 = 2**24  # limit below which all whole numbers are exact in float32
_WIDE_PRODUCT = 17  # columns from which one product for all resamples is faster than one a block
_CACHED_CELLS = 500_000  # draw counts made floating point at a time: stay in the processor's cache
_WORTH_THREADS = 20_000_000  # operations, such as a cluster drawn, from which threads are faster
_PRODUCTS_PER_OPERATION = 8  # multiplications in a matrix product that take as long as one of these


class Units(NamedTuple):
    """Units of the data, for tests that permute them; one field each, (units,)."""

    position: Codes  # in the caller's arrays of units or patterns
    cluster: Codes
    frequency: Frequency  # number of equal units in the data that this one stands for


class Resamples:
    """Draw counts of types of clusters in the data, in every resample and in the jackknife.

    `frequency` and `weight` are explained above; `weight` is None if clusters were equally likely
    to be selected. `rng` is used for seeds only, so that a block of resamples can be drawn again if
    its draw counts are not kept in memory: because they are large, or `keep` is False. With
    `jackknife`, the data without each cluster follow as rows.

    Callers hold the units of one cluster of each type: `unit_types` (units,) are the types of the
    units' clusters, `chosen` is a mask (units,). What each sum takes, and the sum's first axis:

        sums_by_type     features of units -> types, over one cluster of each
        sums_by_cluster  features of units -> clusters, weighted
        sums             features of units -> rows, over the clusters of each, weighted
        to_clusters      sums by type      -> clusters
        to_rows          sums by type      -> rows, over the clusters of each, weighted
        to_left_out      sums by type      -> jackknife rows, over the clusters left out

    >>> resamples = Resamples([2, 1], 1, np.random.default_rng(7))  # two types, three clusters
    >>> unit_types, feature = np.array([0, 0, 1]), np.array([1.0, 4.0, 7.0])
    >>> by_type = resamples.sums_by_type(unit_types, feature[:, None])
    >>> by_type.tolist(), resamples.to_rows(by_type).tolist()  # data: 2 * 5 + 7; resample: 3 * 7
    ([[5.0], [7.0]], [[17.0], [21.0]])
    """

    def __init__(
        self,
        frequency: npt.ArrayLike,
        n_resamples: int = 0,
        rng: np.random.Generator | None = None,
        weight: Array | None = None,
        keep: bool = True,
        jackknife: bool = False,
    ) -> None:
        self.frequency: Frequency = np.asarray(frequency, dtype=np.int64)
        self.weight = weight
        self.n_resamples = n_resamples
        starts = range(0, n_resamples, _BLOCK)
        self._block_sizes = [min(_BLOCK, n_resamples - start) for start in starts]
        seed = int((rng or np.random.default_rng(0)).integers(2**63))
        seeds = np.random.SeedSequence(seed).spawn(len(self._block_sizes) + 1)
        *self._block_seeds, group_seed = seeds
        # Number of clusters of each type that a row of the jackknife leaves out, (rows, types).
        self._omissions: Any = _jackknife_groups(self.frequency, group_seed) if jackknife else None
        self._kept_counts: list[DrawCounts] | None = None  # of resamples, by block
        self._kept_floats: dict[type[np.floating[Any]], Any] = {}  # of data and resamples, by dtype
        if keep:
            self.keep_counts()

    def __len__(self) -> int:
        """Return the rows of all results: the data, the resamples, the jackknife."""
        return 1 + self.n_resamples + (0 if self._omissions is None else self._omissions.shape[0])

    @property
    def n_types(self) -> int:
        """Number of types of clusters, the second axis of the draw counts."""
        return len(self.frequency)

    @property
    def mass(self) -> Numbers:
        """Frequency times sampling weight of each type in the data, (types,)."""
        return self.frequency if self.weight is None else self.frequency * self.weight

    def sums(self, unit_types: Codes, *features: Numbers) -> Array:
        """Return the sums of features (units,) or (units, k) in every row, (rows, columns)."""
        return self.to_rows(self.sums_by_type(unit_types, np.column_stack(features)))

    def sums_by_type(self, unit_types: Codes, features: Numbers) -> Array:
        """Return the sums of features (units, k) over one cluster of each type, (types, k)."""
        out = np.empty((self.n_types, features.shape[1]))
        for column, values in enumerate(features.T):
            out[:, column] = np.bincount(unit_types, values, self.n_types)
        return out

    def sums_by_cluster(self, unit_types: Codes, features: Numbers) -> Array:
        """Return the weighted sums of features (units, k) over each cluster, (clusters, k)."""
        by_type = self.sums_by_type(unit_types, features)
        return self.to_clusters(by_type if self.weight is None else by_type * self.weight[:, None])

    def to_clusters(self, by_type: Array) -> Array:
        """Return sums by type (types, k) for each cluster in the data, (clusters, k)."""
        return np.repeat(by_type, self.frequency, axis=0)

    def distinct_clusters(self, by_type: Array) -> tuple[Array, Frequency]:
        """Return the different sums over clusters, (n, k), and the number of clusters of each."""
        return by_type, self.frequency

    def to_rows(self, by_type: Numbers) -> Array:
        """Return the weighted sums over the clusters in every row, (rows, ...), from sums by type
        (types, ...): for data and resamples, draw counts @ these; for the jackknife, the data's
        minus those left out. Rows are last in memory, so that computations on the cells of a row,
        such as a table's marginals, run along contiguous rows.
        """
        columns, n_drawn = self._columns(by_type), 1 + self.n_resamples  # rows without jackknife
        out = np.empty((len(self), columns.shape[1]), order="F")
        self._multiply(columns, out[:n_drawn])
        if self._omissions is not None:
            out[n_drawn:] = out[0] - self._omissions @ columns.astype(np.float64)
        return out.reshape(len(self), *by_type.shape[1:])

    def _columns(self, by_type: Numbers) -> Floats:
        """Return weighted sums by type (types, columns); in float32, which is faster, if exact."""
        flat = by_type.reshape(self.n_types, -1)
        if self.weight is not None:
            flat = flat * self.weight[:, None]  # the same in every resample
        is_whole = flat.size > 0 and np.array_equal(flat, np.rint(flat))
        largest = float(np.abs(flat).max()) * float(self.frequency.sum()) if is_whole else np.inf
        return np.ascontiguousarray(flat, np.float32 if largest < _EXACT_FLOAT32 else np.float64)

    def _multiply(self, columns: Floats, out: Array) -> None:
        """Write draw counts @ columns into `out` (rows of data and resamples, columns): in one
        product if there are many columns and draw counts are floating point, else block by block.
        """
        dtype, n_columns = columns.dtype.type, columns.shape[1]
        if self._kept_floats and dtype not in self._kept_floats:
            self._kept_floats[dtype] = self._kept_floats[np.float32].astype(dtype)
        draw_counts = self._kept_floats.get(dtype)
        if draw_counts is not None and n_columns >= _WIDE_PRODUCT:
            np.matmul(columns.T, draw_counts.T, out=out.T)  # transposed: rows are last in memory
            return

        def fill(block: int) -> None:
            first = 1 + block * _BLOCK
            rows = slice(first, first + self._block_sizes[block])
            counts = self._counts(block) if draw_counts is None else draw_counts[rows]
            out[rows] = _product(counts, columns)

        out[0] = _product(self.frequency[None, :], columns)[0]
        self._over_blocks(fill, self.n_types * max(1, n_columns // _PRODUCTS_PER_OPERATION))

    def to_left_out(self, by_type: Array) -> Array:
        """Return the sums over the clusters left out, (jackknife rows, ...), without weights."""
        flat = self._omissions @ by_type.reshape(len(by_type), -1)
        return np.asarray(flat).reshape(len(flat), *by_type.shape[1:])

    def count(self, unit_types: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of chosen units and of their clusters in the data, without weights."""
        n_chosen = np.bincount(unit_types[chosen], minlength=self.n_types)
        return int(n_chosen @ self.frequency), int(self.frequency[n_chosen > 0].sum())

    def mass_with(self, unit_types: Codes, chosen: Mask) -> int:
        """Return the total mass of the clusters with a chosen unit, rounded down."""
        return int(self.mass[np.unique(unit_types[chosen])].sum())

    def units(self, unit_types: Codes) -> Units:
        """Return the caller's units, each with the frequency of its cluster's type."""
        return Units(np.arange(len(unit_types)), unit_types, self.frequency[unit_types])

    def interval(self, values: Array, n_clusters: int, **options: Any) -> intervals.Interval:
        """Return the estimate and its 95% interval from `values` (rows,): `intervals.interval`."""
        return intervals.interval(values, n_clusters, **options)

    def only(self, selected: Codes) -> Resamples:
        """Return the resamples of the selected types only, for a slice: the same draw counts."""
        part = copy(self)
        part.frequency = self.frequency[selected]
        part.weight = None if self.weight is None else self.weight[selected]
        part._keep_blocks([self._counts(n)[:, selected] for n in range(len(self._block_sizes))])
        if self._omissions is not None:
            part._omissions = self._omissions[:, selected]
        return part

    def jackknife_of(self, unit_types: Codes) -> Resamples:
        """Return the jackknife, without resamples, of the clusters of these units' types."""
        has_unit = np.bincount(unit_types, minlength=self.n_types) > 0
        frequency = np.where(has_unit, self.frequency, 0)  # other types stay, with no cluster
        return Resamples(frequency, weight=self.weight, jackknife=True)

    @property
    def clusters_in_row(self) -> float:
        """Mean number of clusters that a row of the jackknife leaves out, if it leaves out any."""
        n_omitted = np.asarray(self._omissions.sum(axis=1)).ravel()  # 0 where `only` kept none
        return float(n_omitted.sum() / max(np.count_nonzero(n_omitted), 1))

    def weighted_blocks(self) -> Iterator[Numbers]:
        """Yield the draw counts (rows, types) of the data, then of each block, times weights."""
        yield self.mass[None, :]
        for block in range(len(self._block_sizes)):
            counts = self._counts(block)
            yield counts if self.weight is None else counts * self.weight

    # Draw counts, without weights, by number of the block: kept in memory, or drawn when needed

    def keep_counts(self) -> None:
        """Draw all draw counts and keep them if they, mostly a byte each, fit in memory."""
        if self.n_resamples * self.n_types <= _KEEP_BYTES:
            self._keep_blocks(self._over_blocks(self._draw_counts, row_cost=self.n_types))

    def _keep_blocks(self, blocks: list[DrawCounts]) -> None:
        """Keep draw counts; if they are few, also as floating point."""
        self._kept_counts, self._kept_floats = blocks, {}
        if self.n_resamples * self.n_types <= _FLOAT_CELLS:
            rows = [self.frequency[None, :], *blocks]
            self._kept_floats[np.float32] = np.concatenate(rows, dtype=np.float32)

    def _counts(self, block: int) -> DrawCounts:
        """Return the draw counts (rows, types) of a block, kept or drawn again."""
        return self._draw_counts(block) if self._kept_counts is None else self._kept_counts[block]

    def _draw_counts(self, block: int) -> DrawCounts:
        """Draw the draw counts (rows, types) of a block, from the random stream of the block."""
        rng = np.random.default_rng(self._block_seeds[block])
        return _multinomial(self.frequency, self._block_sizes[block], rng)

    def _over_blocks(self, work: Callable[[int], T], row_cost: int) -> list[T]:
        """Return the results of `work` on every block, in threads (numpy releases the lock) if its
        `row_cost`, in operations per resample, is high.
        """
        blocks = range(len(self._block_sizes))
        threads = min(os.cpu_count() or 1, len(blocks))
        if threads < 2 or row_cost * self.n_resamples < _WORTH_THREADS:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, blocks))


def _product(draw_counts: Numbers, columns: Floats) -> Floats:
    """Return draw_counts @ columns, converting to floating point in pieces that fit the cache."""
    out = np.zeros((len(draw_counts), columns.shape[1]), dtype=columns.dtype)
    step = max(1, _CACHED_CELLS // max(1, len(draw_counts)))
    for start in range(0, draw_counts.shape[1], step):
        part = draw_counts[:, start : start + step].astype(columns.dtype, copy=False)
        out += part @ columns[start : start + step]
    return out


_MULTINOMIAL_COST = 8  # time of numpy's multinomial for a type, in times to draw a cluster
_DRAWN_TOGETHER = 32_768  # clusters drawn at a time


def _multinomial(frequency: Frequency, size: int, rng: np.random.Generator) -> DrawCounts:
    """Return the draw counts of `size` resamples, (size, types); drawn by cluster if faster."""
    n_types, n_clusters = len(frequency), int(frequency.sum())
    if n_clusters > _MULTINOMIAL_COST * n_types:
        counts = rng.multinomial(n_clusters, frequency / n_clusters, size=size)
        return counts.astype(np.min_scalar_type(n_clusters))
    type_of_cluster = np.repeat(np.arange(n_types), frequency)
    step = max(1, _DRAWN_TOGETHER // max(1, n_clusters))
    parts = []
    for start in range(0, size, step):
        n_rows = min(step, size - start)
        drawn = rng.integers(0, n_clusters, size=(n_rows, n_clusters))
        if n_clusters > n_types:  # else each cluster is a type
            drawn = type_of_cluster[drawn]
        if n_rows > 1:  # each row gets other numbers, so that one call counts all
            drawn += np.arange(n_rows)[:, None] * n_types
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_types)
        parts.append(counts.astype(np.min_scalar_type(int(counts.max(initial=0)))))
    return np.concatenate(parts).reshape(size, n_types)


MAX_LEFT_OUT = 1000
"""Number of clusters above which the jackknife leaves out this many random groups of clusters, not
single ones: skewness adds up over groups, and 1,000 of them determine it well."""


def _jackknife_groups(frequency: Frequency, seed: np.random.SeedSequence) -> Any:
    """Return the numbers of clusters that rows of the jackknife leave out, sparse (rows, types)."""
    from scipy.sparse import csr_array

    type_of_cluster = np.repeat(np.arange(len(frequency)), frequency)
    row = np.arange(len(type_of_cluster))  # that leaves out each cluster
    if len(row) > MAX_LEFT_OUT:
        row = np.random.default_rng(seed).permutation(row) % MAX_LEFT_OUT
    shape = (int(row.max(initial=-1)) + 1, len(frequency))
    return csr_array((np.ones(len(row)), (row, type_of_cluster)), shape=shape)


@dataclass(frozen=True)
class Bootstrap:
    """Number of resamples and seed; with 0 `resamples` estimates have no interval."""

    resamples: int = 2000
    seed: int = 20231206

    def draw(self, frequency: npt.ArrayLike) -> Resamples:
        """Return resamples of clusters whose types occur `frequency` (types,) times in the data."""
        return Resamples(frequency, self.resamples, np.random.default_rng(self.seed))


class PatternResamples(Resamples):
    """Numbers of units with each pattern in the data, in every resample and in the jackknife.

    A type is here a pattern: callers hold one unit of each, `unit_types` (units,) are the patterns
    of these, `frequency` and the draw counts are numbers of units. There is no `weight`.

    What is drawn at once is a *group* of clusters: a random one if clusters are *pooled*, else one
    cluster. `groups` are the resamples of groups. `by_cluster` (clusters, patterns) and `by_group`
    (groups, patterns) are numbers of units; they are the same if no clusters are pooled.

    >>> from scipy.sparse import csr_array
    >>> units = csr_array(np.array([[1, 1], [0, 2]]))  # the second cluster has two equal units
    >>> groups = Resamples(np.ones(2), 1, np.random.default_rng(7))
    >>> resamples = PatternResamples(units, units, groups)
    >>> np.vstack(list(resamples.weighted_blocks())).tolist()  # resampled: the second cluster twice
    [[1, 3], [0, 4]]
    """

    _MULTIPLIED_TOGETHER = 5_000  # groups multiplied by their patterns at a time: limits memory

    def __init__(self, by_cluster: Sparse, by_group: Sparse, groups: Resamples) -> None:
        # Draw counts are kept by the last line, which needs the fields that follow.
        super().__init__(by_group.T @ groups.frequency, groups.n_resamples, keep=False)
        self._by_cluster, self._by_group, self._groups = by_cluster, by_group, groups
        if groups._omissions is not None:
            self._omissions = (groups._omissions @ by_group).tocsr()
        self._counts_by_mask: dict[bytes, tuple[int, int]] = {}  # results of `count`
        self.keep_counts()

    @property
    def is_pooled(self) -> bool:
        """True if groups of several clusters are drawn."""
        return bool(self._by_group.shape[0] < self._by_cluster.shape[0])

    def to_clusters(self, by_type: Array) -> Array:
        """Return the sums over each cluster, (clusters, k), of sums by pattern (patterns, k)."""
        return np.asarray(self._by_cluster @ by_type)

    def distinct_clusters(self, by_type: Array) -> tuple[Array, Frequency]:
        """Return the sums over each cluster, (clusters, k), without a search for equal ones."""
        sums = self.to_clusters(by_type)
        return sums, np.ones(len(sums), dtype=np.int64)

    def to_rows(self, by_type: Numbers) -> Array:
        """Return sums as in `Resamples`; from sums by group if counts of patterns are not kept."""
        if self._kept_counts is not None or not self.n_resamples:
            return super().to_rows(by_type)
        group_sums = np.asarray(self._by_group @ by_type.reshape(self.n_types, -1))
        return self._groups.to_rows(group_sums).reshape(len(self), *by_type.shape[1:])

    def count(self, unit_types: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of units and clusters in the data with the chosen patterns."""
        is_chosen = np.zeros(self.n_types, dtype=np.int64)
        is_chosen[unit_types[chosen]] = 1
        key = np.packbits(is_chosen.astype(bool)).tobytes()
        if key not in self._counts_by_mask:
            n_clusters = int((self._by_cluster @ is_chosen > 0).sum())
            self._counts_by_mask[key] = int(is_chosen @ self.frequency), n_clusters
        return self._counts_by_mask[key]

    def mass_with(self, unit_types: Codes, chosen: Mask) -> int:
        """Return the number of clusters that have a chosen pattern, as clusters have no weights."""
        return self.count(unit_types, chosen)[1]

    def units(self, unit_types: Codes) -> Units:
        """Return all units in the data with one of these distinct patterns, with frequency 1."""
        counts = self._by_cluster[:, unit_types].tocoo()  # numbers of units, (clusters, patterns)
        positions, cluster = np.repeat(counts.col, counts.data), np.repeat(counts.row, counts.data)
        return Units(positions, cluster, np.ones(len(positions), dtype=np.int64))

    def interval(self, values: Array, n_clusters: int, **options: Any) -> intervals.Interval:
        """Return the interval as in `Resamples`, with a remark if clusters were pooled."""
        interval = super().interval(values, n_clusters, **options)
        if not self.is_pooled or np.isnan(interval.low):
            return interval
        pooled = Remark("pooled_clusters", (self._by_group.shape[0], self._by_cluster.shape[0]))
        return replace(interval, remarks=(*interval.remarks, pooled))

    def only(self, selected: Codes) -> PatternResamples:
        """Return the resamples of the selected patterns only."""
        by_cluster, by_group = self._by_cluster[:, selected], self._by_group[:, selected]
        return PatternResamples(by_cluster, by_group, self._groups)

    def jackknife_of(self, unit_types: Codes) -> PatternResamples:
        """Return the jackknife, without resamples, of the clusters with one of these patterns."""
        is_present = (np.bincount(unit_types, minlength=self.n_types) > 0).astype(np.int64)
        by_cluster = self._by_cluster[np.flatnonzero(self._by_cluster @ is_present > 0)]
        by_group = self._by_group[np.flatnonzero(self._by_group @ is_present > 0)]
        jackknife = Resamples(np.ones(by_group.shape[0]), jackknife=True)
        return PatternResamples(by_cluster, by_group, jackknife)

    @property
    def clusters_in_row(self) -> float:
        """Mean number of clusters that a row of the jackknife leaves out."""
        return float(self._by_cluster.shape[0] / self._omissions.shape[0])

    def keep_counts(self) -> None:
        """Keep counts of patterns (8 bytes each) if they fit in memory and are no more than counts
        of groups; else let `groups` keep the latter.
        """
        n_groups, n_cells = self._groups.n_types, self.n_resamples * self.n_types
        if n_cells * 8 <= _KEEP_BYTES and self.n_types <= n_groups:
            self._keep_blocks(self._over_blocks(self._draw_counts, row_cost=n_groups))
        else:
            self._groups.keep_counts()

    def _draw_counts(self, block: int) -> DrawCounts:
        """Return the number of units with each pattern in a block, (rows, patterns)."""
        group_counts, by_group = self._groups._counts(block), self._by_group.T.tocsc()
        out = np.zeros((self.n_types, len(group_counts)), dtype=np.int64)
        for start in range(0, group_counts.shape[1], self._MULTIPLIED_TOGETHER):
            part = slice(start, start + self._MULTIPLIED_TOGETHER)
            out += by_group[:, part] @ group_counts[:, part].T.astype(np.int64)
        return np.ascontiguousarray(out.T).astype(np.min_scalar_type(int(out.max(initial=0))))


MANY_CLUSTERS, GROUPS = 1_000_000, 10_000
"""Number of clusters above which they are resampled in groups, and the number of groups."""


def resamples_of_patterns(
    by_cluster: Sparse,
    keys: npt.NDArray[np.uint64],
    draw: Callable[[Frequency], Resamples],
    seed: int,
    many: int = MANY_CLUSTERS,
) -> PatternResamples:
    """Return resamples of clusters by their numbers of units, `by_cluster` (clusters, patterns).

    `keys` (clusters,) are hashes of the clusters' names, which with the seed determine each
    cluster's group if there are more than `many` clusters. `draw` makes resamples of groups from
    their frequencies. These need not keep draw counts: `PatternResamples.keep_counts` decides.
    """
    from scipy.sparse import csr_array

    n, by_group = by_cluster.shape[0], by_cluster
    if n > many:
        group = _mixed_bits(keys ^ _mixed_bits(np.array([seed], np.uint64))) % np.uint64(GROUPS)
        membership = np.ones(n, np.int64), (group.astype(np.intp), np.arange(n))
        by_group = (csr_array(membership, shape=(GROUPS, n)) @ by_cluster).tocsr()
    return PatternResamples(by_cluster, by_group, draw(np.ones(by_group.shape[0], np.int64)))


def _mixed_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return keys with mixed bits, by the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def ratio(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where whole is 0, up to rounding errors; shapes broadcast.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    return np.asarray(part / np.where(np.abs(whole) > 1e-12, whole, np.nan))


def count_labels(codes: Integers, q: int) -> Array:
    """Return the numbers of labels by category, (units, q), from codes (units, raters)."""
    return np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1).astype(float)
