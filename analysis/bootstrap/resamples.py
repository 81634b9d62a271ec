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

`PatternResamples` takes the same steps with *patterns*, distinct rows of labels, so that a million
units take no longer than their few hundred patterns. Clusters are drawn as before. Their draw
counts times their numbers of units with each pattern give the number of units with each pattern in
a resample: patterns are then the types, and these numbers the draw counts. Results are the same.

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

MAX_LEFT_OUT = 1000
"""Number of clusters above which the jackknife leaves out this many random groups of clusters, not
single ones: skewness adds up over groups, and 1,000 of them determine it well."""

MANY_CLUSTERS, GROUPS = 1_000_000, 10_000
"""Number of clusters above which they are resampled in groups, and the number of groups."""

_BLOCK = 250
"""Resamples drawn together, a *block*: limits memory, and fixes each resample's random stream."""
_KEEP_BYTES = 1_000_000_000  # largest size of the draw counts that are kept in memory
_FLOAT_CELLS = 5_000_000
"""Largest number of draw counts (rows x types; 20 MB, and 40 MB more for sums that are not whole
numbers) that are kept as floating point: to convert them takes longer than a small product."""
_CACHED_CELLS = 500_000  # draw counts made floating point at a time: stay in the processor's cache
_MULTIPLIED_TOGETHER = 5_000  # clusters multiplied by their patterns at a time: limits memory
_DRAWN_TOGETHER = 32_768  # clusters drawn at a time
_MULTINOMIAL_COST = 8  # time of numpy's multinomial for a category, in times to draw a cluster
_WIDE_PRODUCT = 17  # columns from which one product for all resamples is faster than one a block
_WORTH_THREADS = 20_000_000  # operations, such as a cluster drawn, from which threads are faster
_PRODUCTS_PER_OPERATION = 8  # multiplications in a matrix product that take as long as one of these
_EXACT_FLOAT32 = 2**24  # limit below which all whole numbers are exact in float32


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

    Callers hold the units of one cluster of each type. In all methods but `only`, `types` (units,)
    is the type of each unit's cluster, and `chosen` a mask (units,). Sums are over these axes:

        sums            features of units     -> rows, weighted
        to_rows         cluster sums by type  -> rows, weighted
        sums_left_out    cluster sums by type  -> jackknife rows, over the clusters left out
        sums_by_type    features of units     -> types, over one cluster of each
        to_clusters    cluster sums by type  -> clusters
        sums_by_cluster features of units     -> clusters, weighted

    >>> resamples = Resamples([2, 1], 1, np.random.default_rng(7))  # two types, three clusters
    >>> types, feature = np.array([0, 0, 1]), np.array([1.0, 4.0, 7.0])
    >>> resamples.sums(types, feature).tolist()  # data: 2 (1 + 4) + 7; resample: type 1 three times
    [[17.0], [21.0]]
    """

    def __init__(
        self,
        frequency: npt.ArrayLike,
        resamples: int = 0,
        rng: np.random.Generator | None = None,
        weight: Array | None = None,
        keep: bool = True,
        jackknife: bool = False,
    ) -> None:
        self.frequency: Frequency = np.asarray(frequency, dtype=np.int64)
        self.weight = weight
        self.resamples = resamples
        starts = range(0, resamples, _BLOCK)
        self._block_sizes = [min(_BLOCK, resamples - start) for start in starts]
        seed = int((rng or np.random.default_rng(0)).integers(2**63))
        seeds = np.random.SeedSequence(seed).spawn(len(self._block_sizes) + 1)
        *self._block_seeds, group_seed = seeds
        # Number of clusters of each type that a row of the jackknife leaves out, (rows, types).
        self._omissions: Any = _jackknife_groups(self.frequency, group_seed) if jackknife else None
        self._kept_blocks: list[DrawCounts] | None = None
        self._kept_floats: dict[type[np.floating[Any]], Any] = {}
        if keep:
            self.keep()

    def keep(self) -> None:
        """Keep the draw counts if they fit in memory; else each block is drawn when needed."""
        if self.resamples * self.n_types <= _KEEP_BYTES:
            self._keep_blocks(self._over_blocks(self._make_block, row_cost=self.n_types))

    def __len__(self) -> int:
        """Return the rows of all results: the data, the resamples, the jackknife."""
        return 1 + self.resamples + (0 if self._omissions is None else self._omissions.shape[0])

    @property
    def n_types(self) -> int:
        """Number of types of clusters, the second axis of the draw counts."""
        return len(self.frequency)

    @property
    def mass(self) -> Numbers:
        """Frequency times sampling weight of each type in the data, (types,)."""
        return self.frequency if self.weight is None else self.frequency * self.weight

    def sums(self, types: Codes, *features: Numbers) -> Array:
        """Return the sums of features (units,) or (units, k) in every resample, (rows, columns)."""
        return self.to_rows(self.sums_by_type(types, np.column_stack(features)))

    def to_rows(self, by_type: Numbers) -> Array:
        """Return the weighted sums over the clusters of every resample, (rows, ...), from the sums
        over one cluster of each type (types, ...). Rows are last in memory, so that computations on
        the cells of a row, such as a table's marginals, run along contiguous rows.
        """
        flat = by_type.reshape(self.n_types, -1)
        if self.weight is not None:
            flat = flat * self.weight[:, None]  # the same in every resample
        # Sums of whole numbers that float32 holds exactly are twice as fast in it.
        is_whole = flat.size > 0 and np.array_equal(flat, np.rint(flat))
        largest = float(np.abs(flat).max()) * float(self.frequency.sum()) if is_whole else np.inf
        dtype: type[np.floating[Any]] = np.float32 if largest < _EXACT_FLOAT32 else np.float64
        columns: Floats = np.ascontiguousarray(flat, dtype=dtype)
        draw_counts, n_columns = self._floats(dtype), columns.shape[1]
        out = np.empty((len(self), n_columns), order="F")

        def fill(block: int) -> None:
            first = 1 + block * _BLOCK
            rows = slice(first, first + self._block_sizes[block])
            counts = self._block(block) if draw_counts is None else draw_counts[rows]
            out[rows] = _product(counts, columns)

        if draw_counts is not None and n_columns >= _WIDE_PRODUCT:
            np.matmul(columns.T, draw_counts.T, out=out[: 1 + self.resamples].T)
        else:
            out[0] = _product(self.frequency[None, :], columns)[0]
            self._over_blocks(fill, self.n_types * max(1, n_columns // _PRODUCTS_PER_OPERATION))
        if self._omissions is not None:
            out[1 + self.resamples :] = out[0] - self._omissions @ columns.astype(np.float64)
        return out.reshape(len(self), *by_type.shape[1:])

    def sums_left_out(self, by_type: Array) -> Array:
        """Return the sums over the clusters left out, (jackknife rows, ...), without weights."""
        flat = self._omissions @ by_type.reshape(len(by_type), -1)
        return np.asarray(flat).reshape(len(flat), *by_type.shape[1:])

    def sums_by_type(self, types: Codes, features: Numbers) -> Array:
        """Return the sums of features (units, k) over one cluster of each type, (types, k)."""
        out = np.empty((self.n_types, features.shape[1]))
        for column, values in enumerate(features.T):
            out[:, column] = np.bincount(types, values, self.n_types)
        return out

    def to_clusters(self, by_type: Array) -> Array:
        """Return sums by type (types, k) for each cluster in the data, (clusters, k)."""
        return np.repeat(by_type, self.frequency, axis=0)

    def sums_by_cluster(self, types: Codes, features: Numbers) -> Array:
        """Return the weighted sums of features (units, k) over each cluster, (clusters, k)."""
        by_type = self.sums_by_type(types, features)
        return self.to_clusters(by_type if self.weight is None else by_type * self.weight[:, None])

    def distinct_clusters(self, by_type: Array) -> tuple[Array, Frequency]:
        """Return the sums over clusters, equal ones once, (n, k), and the number of each, (n,)."""
        return by_type, self.frequency

    def count(self, types: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of chosen units and of their clusters in the data, without weights."""
        n_chosen = np.bincount(types[chosen], minlength=self.n_types)
        return int(n_chosen @ self.frequency), int(self.frequency[n_chosen > 0].sum())

    def mass_with(self, types: Codes, chosen: Mask) -> int:
        """Return the total mass of the clusters with a chosen unit, rounded down."""
        return int(self.mass[np.unique(types[chosen])].sum())

    def units(self, types: Codes) -> Units:
        """Return the caller's units, each with the frequency of its cluster's type."""
        return Units(np.arange(len(types)), types, self.frequency[types])

    def interval(self, values: Array, n_clusters: int, **options: Any) -> intervals.Interval:
        """Return the estimate and its 95% interval from `values` (rows,): `intervals.interval`."""
        return intervals.interval(values, n_clusters, **options)

    def only(self, types: Codes) -> Resamples:
        """Return the resamples of these types only, for a slice; their draw counts are kept."""
        part = copy(self)
        part.frequency = self.frequency[types]
        part.weight = None if self.weight is None else self.weight[types]
        part._keep_blocks([self._block(n)[:, types] for n in range(len(self._block_sizes))])
        if self._omissions is not None:
            part._omissions = self._omissions[:, types]
        return part

    def jackknife_of(self, types: Codes) -> Resamples:
        """Return the jackknife, without resamples, of the clusters of these units' types."""
        has_unit = np.bincount(types, minlength=self.n_types) > 0
        frequency = np.where(has_unit, self.frequency, 0)  # other types stay, with no cluster
        return Resamples(frequency, weight=self.weight, jackknife=True)

    @property
    def clusters_in_row(self) -> float:
        """Mean number of clusters that a row of the jackknife leaves out, if it leaves out any."""
        n_omitted = np.asarray(self._omissions.sum(axis=1)).ravel()  # 0 where `only` kept none
        return float(n_omitted.sum() / max(np.count_nonzero(n_omitted), 1))

    def blocks(self) -> Iterator[Numbers]:
        """Yield the draw counts of data and resamples, times sampling weights, (rows, types)."""
        yield self.mass[None, :]
        for block in range(len(self._block_sizes)):
            counts = self._block(block)
            yield counts if self.weight is None else counts * self.weight

    def _keep_blocks(self, blocks: list[DrawCounts]) -> None:
        """Keep the draw counts in memory; if they are few, also as floating point."""
        self._kept_blocks, self._kept_floats = blocks, {}
        if self.resamples * self.n_types <= _FLOAT_CELLS:
            rows = [self.frequency[None, :], *blocks]
            self._kept_floats[np.float32] = np.concatenate(rows, dtype=np.float32)

    def _floats(self, dtype: type[np.floating[Any]]) -> Any | None:
        """Return the draw counts of data and resamples as floating point, if kept as such."""
        if self._kept_floats and dtype not in self._kept_floats:
            self._kept_floats[dtype] = self._kept_floats[np.float32].astype(dtype)
        return self._kept_floats.get(dtype)

    def _block(self, block: int) -> DrawCounts:
        """Return the draw counts (rows, types) of a block, kept or made again."""
        return self._make_block(block) if self._kept_blocks is None else self._kept_blocks[block]

    def _over_blocks(self, work: Callable[[int], T], row_cost: int) -> list[T]:
        """Return the results of `work` on every block, in threads (numpy releases the lock) if its
        `row_cost`, in operations per resample, is high. Each block has its own random stream.
        """
        blocks = range(len(self._block_sizes))
        threads = min(os.cpu_count() or 1, len(blocks))
        if threads < 2 or row_cost * self.resamples < _WORTH_THREADS:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, blocks))

    def _make_block(self, block: int) -> DrawCounts:
        """Draw a block of multinomial draw counts (rows, types); cluster by cluster if faster."""
        rng = np.random.default_rng(self._block_seeds[block])
        size, total = self._block_sizes[block], int(self.frequency.sum())  # total: of clusters
        if total > _MULTINOMIAL_COST * self.n_types:
            counts = rng.multinomial(total, self.frequency / total, size=size)
            return counts.astype(np.min_scalar_type(total))
        types = np.repeat(np.arange(self.n_types), self.frequency) if total > self.n_types else None
        step = max(1, _DRAWN_TOGETHER // max(1, total))
        parts = []
        for start in range(0, size, step):
            n_rows = min(step, size - start)
            drawn = rng.integers(0, total, size=(n_rows, total))
            if types is not None:  # from clusters to their types; else each cluster is a type
                drawn = types[drawn]
            if n_rows > 1:  # each row gets other numbers, so that one call counts all
                drawn += np.arange(n_rows)[:, None] * self.n_types
            counts = np.bincount(drawn.ravel(), minlength=n_rows * self.n_types)
            parts.append(counts.astype(np.min_scalar_type(int(counts.max(initial=0)))))
        return np.concatenate(parts).reshape(size, self.n_types)


def _product(draw_counts: Numbers, columns: Floats) -> Floats:
    """Return draw_counts @ columns, converting to floating point in pieces that fit the cache."""
    out = np.zeros((len(draw_counts), columns.shape[1]), dtype=columns.dtype)
    step = max(1, _CACHED_CELLS // max(1, len(draw_counts)))
    for start in range(0, draw_counts.shape[1], step):
        part = draw_counts[:, start : start + step].astype(columns.dtype, copy=False)
        out += part @ columns[start : start + step]
    return out


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
        """Return resamples of clusters that occur `frequency` (clusters,) times in the data."""
        return Resamples(frequency, self.resamples, np.random.default_rng(self.seed))


class PatternResamples(Resamples):
    """Numbers of units with each pattern in the data, in every resample and in the jackknife.

    A type is here a pattern: callers hold one unit of each, `types` (units,) are their patterns,
    `frequency` (patterns,) and the draw counts are numbers of units. There is no `weight`.

    `cells` (clusters, patterns) are the numbers of units of each cluster with each pattern. If
    clusters are *pooled*, `draws` are resamples of random groups of clusters, and `drawn_cells`
    (groups, patterns) are the numbers in each group; else of clusters, and `cells` again.

    >>> from scipy.sparse import csr_array
    >>> cells = csr_array(np.array([[1, 1], [0, 2]]))  # the second cluster has two equal units
    >>> draws = Resamples(np.ones(2), 1, np.random.default_rng(7))
    >>> PatternResamples(cells, cells, draws).to_rows(np.ones((2, 1))).tolist()  # units in each row
    [[4.0], [4.0]]
    """

    def __init__(self, cells: Sparse, drawn_cells: Sparse, draws: Resamples) -> None:
        # Draw counts are kept by the last line, which needs the fields that follow.
        super().__init__(drawn_cells.T @ draws.frequency, draws.resamples, keep=False)
        self._cells, self._drawn_cells, self._draws = cells, drawn_cells, draws
        if draws._omissions is not None:
            self._omissions = (draws._omissions @ drawn_cells).tocsr()
        self._counts: dict[bytes, tuple[int, int]] = {}  # results of `count`
        self.keep()

    def keep(self) -> None:
        """Keep counts of patterns (8 bytes each) if they fit in memory and are no more than counts
        of clusters; else let `draws` keep the latter.
        """
        if self.resamples * self.n_types * 8 <= _KEEP_BYTES and self.n_types <= self._draws.n_types:
            self._keep_blocks(self._over_blocks(self._make_block, row_cost=self._draws.n_types))
        else:
            self._draws.keep()

    @property
    def is_pooled(self) -> bool:
        """True if groups of clusters are drawn."""
        return bool(self._drawn_cells.shape[0] < self._cells.shape[0])

    def to_rows(self, by_type: Numbers) -> Array:
        """Return sums as in `Resamples`; over the clusters if no counts of patterns are kept."""
        if self._kept_blocks is not None or not self.resamples:
            return super().to_rows(by_type)
        by_drawn = np.asarray(self._drawn_cells @ by_type.reshape(self.n_types, -1))
        return self._draws.to_rows(by_drawn).reshape(len(self), *by_type.shape[1:])

    def to_clusters(self, by_type: Array) -> Array:
        """Return the sums over each cluster, (clusters, k), of sums by pattern (patterns, k)."""
        return np.asarray(self._cells @ by_type)

    def distinct_clusters(self, by_type: Array) -> tuple[Array, Frequency]:
        """Return the sums over each cluster, as `to_clusters` does; every cluster occurs once."""
        by_cluster = self.to_clusters(by_type)
        return by_cluster, np.ones(len(by_cluster), dtype=np.int64)

    def count(self, types: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of units and clusters in the data with the chosen patterns."""
        is_chosen = np.zeros(self.n_types, dtype=np.int64)
        is_chosen[types[chosen]] = 1
        key = np.packbits(is_chosen.astype(bool)).tobytes()
        if key not in self._counts:
            n_clusters = int((self._cells @ is_chosen > 0).sum())
            self._counts[key] = int(is_chosen @ self.frequency), n_clusters
        return self._counts[key]

    def mass_with(self, types: Codes, chosen: Mask) -> int:
        """Return the number of clusters that have a chosen pattern, as clusters have no weights."""
        return self.count(types, chosen)[1]

    def units(self, types: Codes) -> Units:
        """Return all units in the data with one of these distinct patterns, with frequency 1."""
        cells = self._cells[:, types].tocoo()  # numbers of units, (clusters, patterns)
        positions, cluster = np.repeat(cells.col, cells.data), np.repeat(cells.row, cells.data)
        return Units(positions, cluster, np.ones(len(positions), dtype=np.int64))

    def interval(self, values: Array, n_clusters: int, **options: Any) -> intervals.Interval:
        """Return the interval as in `Resamples`, with a remark if clusters were pooled."""
        interval = super().interval(values, n_clusters, **options)
        if not self.is_pooled or np.isnan(interval.low):
            return interval
        pooled = Remark("pooled_clusters", (self._drawn_cells.shape[0], self._cells.shape[0]))
        return replace(interval, remarks=(*interval.remarks, pooled))

    def only(self, types: Codes) -> PatternResamples:
        """Return the resamples of some of the patterns only."""
        return PatternResamples(self._cells[:, types], self._drawn_cells[:, types], self._draws)

    def jackknife_of(self, types: Codes) -> PatternResamples:
        """Return the jackknife, without resamples, of the clusters with one of these patterns."""
        is_present = (np.bincount(types, minlength=self.n_types) > 0).astype(np.int64)
        cells = self._cells[np.flatnonzero(self._cells @ is_present > 0)]
        drawn_cells = self._drawn_cells[np.flatnonzero(self._drawn_cells @ is_present > 0)]
        jackknife = Resamples(np.ones(drawn_cells.shape[0]), jackknife=True)
        return PatternResamples(cells, drawn_cells, jackknife)

    @property
    def clusters_in_row(self) -> float:
        """Mean number of clusters that a row of the jackknife leaves out."""
        return float(self._cells.shape[0] / self._omissions.shape[0])

    def _make_block(self, block: int) -> DrawCounts:
        """Return the number of units with each pattern in a block, (rows, patterns)."""
        draw_counts, units_by_drawn = self._draws._block(block), self._drawn_cells.T.tocsc()
        out = np.zeros((self.n_types, len(draw_counts)), dtype=np.int64)
        for start in range(0, draw_counts.shape[1], _MULTIPLIED_TOGETHER):
            part = slice(start, start + _MULTIPLIED_TOGETHER)
            out += units_by_drawn[:, part] @ draw_counts[:, part].T.astype(np.int64)
        return np.ascontiguousarray(out.T).astype(np.min_scalar_type(int(out.max(initial=0))))


def resamples_of_patterns(
    cells: Sparse,
    keys: npt.NDArray[np.uint64],
    draw: Callable[[Frequency], Resamples],
    seed: int,
    many: int = MANY_CLUSTERS,
) -> PatternResamples:
    """Return resamples of clusters by their counts of patterns, `cells` (clusters, patterns).

    `keys` (clusters,) are hashes of the clusters' names, which with the seed determine each
    cluster's group if there are more than `many` clusters. `draw` makes resamples of clusters or
    groups from their frequencies. These need not keep draw counts: `PatternResamples.keep` decides.
    """
    from scipy.sparse import csr_array

    n, drawn_cells = cells.shape[0], cells
    if n > many:  # sums over random groups of clusters
        group = _mixed_bits(keys ^ _mixed_bits(np.array([seed], np.uint64))) % np.uint64(GROUPS)
        membership = np.ones(n, np.int64), (group.astype(np.intp), np.arange(n))
        drawn_cells = (csr_array(membership, shape=(GROUPS, n)) @ cells).tocsr()
    return PatternResamples(cells, drawn_cells, draw(np.ones(drawn_cells.shape[0], np.int64)))


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
