"""The bootstrap of clusters: one set of resamples that every statistic of a rubric shares.

A resample draws as many clusters as there are, with replacement, and is fully described by its
*draw counts*: the number of times that each cluster was drawn. Every statistic is a function of
sums of *features*, numbers that add up over units and clusters. So resampling is one product *draw
counts x per-cluster sums* (`Resamples.totals`), and differences between statistics are paired. Row
0 of every result is the data; rows of the jackknife are the data without one cluster each.

A *type* is a cluster of the data, or several identical ones. Four arrays describe types:

    frequency     (types,)         number of clusters of the type in the data
    weight        (types,)         sampling weight of a cluster, the same in every resample
    mass          (types,)         frequency times sampling weight
    draw counts   (rows, types)    number of times that clusters of the type were drawn

`PatternResamples` resamples distinct rows of labels, *patterns*, so that a million labels take no
longer than their few hundred patterns. A resample of clusters determines the number of times that
each pattern occurs: the clusters' draw counts times their numbers of patterns, a product that is
computed once, in exact whole numbers. The results are the same as those of resampling clusters.

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

from evenhand.analysis.bootstrap.intervals import Interval, interval
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
_WORTH_THREADS = 20_000_000  # operations from which threads are faster; 8 multiplications are one
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
    `jackknife`, the data without each cluster follow as rows. In all methods, `clusters` (units,)
    is the type of each unit's cluster, and `chosen` (units,) a mask of units.

    >>> Resamples(np.ones(3), 2, np.random.default_rng(7)).totals(np.ones((3, 1))).tolist()
    [[3.0], [3.0], [3.0]]
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
            self._keep_blocks(self._over_blocks(self._draw, row_cost=self.n_types))

    def __len__(self) -> int:
        """Return the rows of all computed arrays: the data, the resamples, the jackknife."""
        return 1 + self.resamples + (0 if self._omissions is None else self._omissions.shape[0])

    @property
    def n_types(self) -> int:
        """Number of types of clusters, the second axis of the draw counts."""
        return len(self.frequency)

    @property
    def mass(self) -> Numbers:
        """Frequency times sampling weight of each type in the data, (types,)."""
        return self.frequency if self.weight is None else self.frequency * self.weight

    def blocks(self) -> Iterator[Numbers]:
        """Yield the draw counts of data and resamples, times sampling weights, (rows, types)."""
        yield self.mass[None, :]
        for block in range(len(self._block_sizes)):
            counts = self._block(block)
            yield counts if self.weight is None else counts * self.weight

    def only(self, types: Codes) -> Resamples:
        """Return the resamples of some types, faster for a slice; their draw counts are kept."""
        part = copy(self)
        part.frequency = self.frequency[types]
        part.weight = None if self.weight is None else self.weight[types]
        part._keep_blocks([self._block(n)[:, types] for n in range(len(self._block_sizes))])
        if self._omissions is not None:
            part._omissions = self._omissions[:, types]
        return part

    def totals(self, features: Numbers) -> Array:
        """Return the weighted sums of features (types, ...) over the clusters of every resample,
        (rows, ...). Rows are last in memory, so that computations on the cells of a row, such as a
        table's marginals, run along contiguous rows.
        """
        shape = features.shape[1:]
        flat = features.reshape(self.n_types, -1)
        if self.weight is not None:
            flat = flat * self.weight[:, None]  # the same in every resample
        # Sums of whole numbers that float32 holds exactly are twice as fast in it.
        is_whole = flat.size > 0 and np.array_equal(flat, np.rint(flat))
        largest = float(np.abs(flat).max()) * float(self.frequency.sum()) if is_whole else np.inf
        dtype: type[np.floating[Any]] = np.float32 if largest < _EXACT_FLOAT32 else np.float64
        sums: Floats = np.ascontiguousarray(flat, dtype=dtype)
        draw_counts, n_columns = self._floats(dtype), sums.shape[1]
        out = np.empty((len(self), n_columns), order="F")

        def fill(block: int) -> None:
            first = 1 + block * _BLOCK
            rows = slice(first, first + self._block_sizes[block])
            counts = self._block(block) if draw_counts is None else draw_counts[rows]
            out[rows] = _product(counts, sums)

        if draw_counts is not None and n_columns >= _WIDE_PRODUCT:
            np.matmul(sums.T, draw_counts.T, out=out[: 1 + self.resamples].T)
        else:
            out[0] = _product(self.frequency[None, :], sums)[0]
            self._over_blocks(fill, row_cost=self.n_types * max(1, n_columns // 8))
        if self._omissions is not None:
            out[1 + self.resamples :] = out[0] - self._omissions @ sums.astype(np.float64)
        return out.reshape(len(self), *shape)

    def interval(self, values: Array, n_clusters: int, **options: Any) -> Interval:
        """Return the estimate and its 95% interval from replicates (rows,) (see `interval`)."""
        return interval(values, n_clusters, **options)

    def sums(self, clusters: Codes, *features: Numbers) -> Array:
        """Return the sums of features (units,) or (units, k) in every resample, (rows, columns)."""
        return self.totals(self.cluster_sums(clusters, np.column_stack(features)))

    def cluster_sums(self, clusters: Codes, units: Numbers) -> Array:
        """Return the sums of features (units, k) over one cluster of each type, (types, k)."""
        out = np.empty((self.n_types, units.shape[1]))
        for column, values in enumerate(units.T):
            out[:, column] = np.bincount(clusters, values, self.n_types)
        return out

    def each_cluster(self, sums: Array) -> Array:
        """Return sums by type (types, ...) for each cluster of the type, (clusters, ...)."""
        return np.repeat(sums, self.frequency, axis=0)

    def by_cluster(self, clusters: Codes, units: Numbers) -> Array:
        """Return the weighted sums of features (units, k) over each cluster, (clusters, k)."""
        sums = self.cluster_sums(clusters, units)
        return self.each_cluster(sums if self.weight is None else sums * self.weight[:, None])

    def signed(self, sums: Array) -> tuple[Array, Frequency]:
        """Return sums (types, k) to which a test gives random signs, and the frequency of each."""
        return sums, self.frequency

    def omitted_sums(self, sums: Array) -> Array:
        """Return the totals (jackknife rows, ...) of sums (types, ...) over clusters left out."""
        flat = self._omissions @ sums.reshape(len(sums), -1)
        return np.asarray(flat).reshape(len(flat), *sums.shape[1:])

    @property
    def clusters_in_row(self) -> float:
        """Mean number of clusters that a row of the jackknife leaves out, if it leaves out any."""
        n_omitted = np.asarray(self._omissions.sum(axis=1)).ravel()  # 0 where `only` kept none
        return float(n_omitted.sum() / max(np.count_nonzero(n_omitted), 1))

    def mass_of(self, clusters: Codes, chosen: Mask) -> int:
        """Return the total mass of the clusters with a chosen unit, rounded down."""
        return int(self.mass[np.unique(clusters[chosen])].sum())

    def left_out(self, clusters: Codes) -> Resamples:
        """Return the jackknife, without resamples, of the types that occur in `clusters`."""
        counted = np.where(np.bincount(clusters, minlength=self.n_types) > 0, self.frequency, 0)
        return Resamples(counted, weight=self.weight, jackknife=True)

    def count(self, clusters: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of chosen units and of their clusters in the data, without weights."""
        n_chosen = np.bincount(clusters[chosen], minlength=self.n_types)
        return int(n_chosen @ self.frequency), int(self.frequency[n_chosen > 0].sum())

    def units(self, clusters: Codes) -> Units:
        """Return the units in `clusters`, each with the frequency of its cluster's type."""
        return Units(np.arange(len(clusters)), clusters, self.frequency[clusters])

    def _keep_blocks(self, blocks: list[DrawCounts]) -> None:
        """Keep the draw counts in memory; if they are few, also as floating point."""
        self._kept_blocks, self._kept_floats = blocks, {}
        if self.resamples * self.n_types <= _FLOAT_CELLS:
            rows = [self.frequency[None, :], *blocks]
            self._kept_floats[np.float32] = np.concatenate(rows, dtype=np.float32)

    def _floats(self, dtype: type[np.floating[Any]]) -> Any | None:
        """Return the draw counts in data and resamples as floating point; None if not kept so."""
        if self._kept_floats and dtype not in self._kept_floats:
            self._kept_floats[dtype] = self._kept_floats[np.float32].astype(dtype)
        return self._kept_floats.get(dtype)

    def _block(self, block: int) -> DrawCounts:
        """Return the draw counts (rows, types) of a block, kept or drawn again."""
        return self._draw(block) if self._kept_blocks is None else self._kept_blocks[block]

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

    def _draw(self, block: int) -> DrawCounts:
        """Draw a block of multinomial draw counts (rows, types); cluster by cluster if faster."""
        rng = np.random.default_rng(self._block_seeds[block])
        size, total = self._block_sizes[block], int(self.frequency.sum())
        if total > _MULTINOMIAL_COST * self.n_types:
            multinomial = rng.multinomial(total, self.frequency / total, size=size)
            return multinomial.astype(np.min_scalar_type(total))
        types = np.repeat(np.arange(self.n_types), self.frequency) if total > self.n_types else None
        step = max(1, _DRAWN_TOGETHER // max(1, total))
        parts = []
        for start in range(0, size, step):
            n_rows = min(step, size - start)
            drawn = rng.integers(0, total, size=(n_rows, total))
            if types is not None:  # from a cluster in the data to its type
                drawn = types[drawn]
            if n_rows > 1:  # each row gets other numbers, so that one call counts all
                drawn += np.arange(n_rows)[:, None] * self.n_types
            counts = np.bincount(drawn.ravel(), minlength=n_rows * self.n_types)
            parts.append(counts.astype(np.min_scalar_type(int(counts.max(initial=0)))))
        return np.concatenate(parts).reshape(size, self.n_types)


@dataclass(frozen=True)
class Bootstrap:
    """Number of resamples and seed; with 0 `resamples` estimates have no interval."""

    resamples: int = 2000
    seed: int = 20231206

    def draw(self, frequency: npt.ArrayLike) -> Resamples:
        """Return resamples of clusters that occur `frequency` (clusters,) times in the data."""
        return Resamples(frequency, self.resamples, np.random.default_rng(self.seed))


def ratio(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where whole is 0, up to rounding errors; shapes broadcast.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    return np.asarray(part / np.where(np.abs(whole) > 1e-12, whole, np.nan))


def _product(draw_counts: Numbers, sums: Floats) -> Floats:
    """Return draw_counts @ sums, converting to floating point in pieces that fit the cache."""
    out = np.zeros((len(draw_counts), sums.shape[1]), dtype=sums.dtype)
    step = max(1, _CACHED_CELLS // max(1, len(draw_counts)))
    for start in range(0, draw_counts.shape[1], step):
        part = draw_counts[:, start : start + step].astype(sums.dtype, copy=False)
        out += part @ sums[start : start + step]
    return out


def _jackknife_groups(frequency: Frequency, seed: np.random.SeedSequence) -> Any:
    """Return the clusters that rows of the jackknife leave out, by type, sparse (rows, types)."""
    from scipy.sparse import csr_array

    clusters = np.repeat(np.arange(len(frequency)), frequency)
    group = np.arange(len(clusters))
    if len(clusters) > MAX_LEFT_OUT:
        group = np.random.default_rng(seed).permutation(group) % MAX_LEFT_OUT
    shape = (int(group.max(initial=-1)) + 1, len(frequency))
    return csr_array((np.ones(len(clusters)), (group, clusters)), shape=shape)


def count_labels(codes: Integers, q: int) -> Array:
    """Return the numbers of labels by category, (units, q), from codes (units, raters)."""
    return np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1).astype(float)


class PatternResamples(Resamples):
    """Numbers of units with each pattern in the data, in every resample and in the jackknife.

    `cells` (clusters, patterns) are the numbers of units of each cluster with each pattern.
    `members` (drawn clusters, patterns) are the same numbers for what `draws` resamples: `cells`
    itself, or if clusters are pooled, sums over groups of clusters. In the methods of `Resamples`
    patterns take the place of types: `n_types` is the number of patterns, `frequency` the number of
    units with each, the argument `clusters` is each unit's pattern, and there is no `weight`.

    >>> from scipy.sparse import csr_array
    >>> cells = csr_array(np.array([[1, 1], [0, 2]]))
    >>> draws = Resamples(np.ones(2), 1, np.random.default_rng(7))
    >>> PatternResamples(cells, cells, draws).totals(np.ones((2, 1))).tolist()
    [[4.0], [4.0]]
    """

    def __init__(self, cells: Sparse, members: Sparse, draws: Resamples) -> None:
        super().__init__(members.T @ draws.frequency, draws.resamples, keep=False)  # kept below
        self._cells, self._members, self._draws = cells, members, draws
        if draws._omissions is not None:
            self._omissions = (draws._omissions @ members).tocsr()
        self._counts: dict[bytes, tuple[int, int]] = {}
        self.keep()

    def keep(self) -> None:
        """Keep counts of patterns (8 bytes each) if they fit in memory and are no more than counts
        of clusters; else let `draws` keep the latter.
        """
        if self.resamples * self.n_types * 8 <= _KEEP_BYTES and self.n_types <= self._draws.n_types:
            self._keep_blocks(self._over_blocks(self._draw, row_cost=self._draws.n_types))
        else:
            self._draws.keep()

    @property
    def is_pooled(self) -> bool:
        """True if groups of clusters are drawn."""
        return bool(self._members.shape[0] < self._cells.shape[0])

    def totals(self, features: Numbers) -> Array:
        """Return sums as in `Resamples`; over the clusters if no counts of patterns are kept."""
        if self._kept_blocks is not None or not self.resamples:
            return super().totals(features)
        summed = self._draws.totals(np.asarray(self._members @ features.reshape(self.n_types, -1)))
        return summed.reshape(len(self), *features.shape[1:])

    def interval(self, values: Array, n_clusters: int, **options: Any) -> Interval:
        """Return the interval as in `Resamples`, with a remark if clusters were grouped."""
        interval = super().interval(values, n_clusters, **options)
        if not self.is_pooled or np.isnan(interval.low):
            return interval
        pooled = Remark("pooled_clusters", (self._members.shape[0], self._cells.shape[0]))
        return replace(interval, remarks=(*interval.remarks, pooled))

    def each_cluster(self, sums: Array) -> Array:
        """Return the sums over each cluster, (clusters, k), of patterns' sums (patterns, k)."""
        return np.asarray(self._cells @ sums)

    def signed(self, sums: Array) -> tuple[Array, Frequency]:
        """Return the sums over each cluster, as `each_cluster` does; every cluster occurs once."""
        cluster_sums = self.each_cluster(sums)
        return cluster_sums, np.ones(len(cluster_sums), dtype=np.int64)

    @property
    def clusters_in_row(self) -> float:
        """Clusters that a row of the jackknife leaves out, as in `Resamples`."""
        return float(self._cells.shape[0] / self._omissions.shape[0])

    def mass_of(self, patterns: Codes, chosen: Mask) -> int:
        """Return the number of clusters that have a chosen pattern, as patterns have no weights."""
        return self.count(patterns, chosen)[1]

    def count(self, patterns: Codes, chosen: Mask) -> tuple[int, int]:
        """Return the numbers of units and clusters in the data with the chosen patterns."""
        is_chosen = np.zeros(self.n_types, dtype=np.int64)
        is_chosen[patterns[chosen]] = 1
        key = np.packbits(is_chosen.astype(bool)).tobytes()
        if key not in self._counts:
            n_clusters = int((self._cells @ is_chosen > 0).sum())
            self._counts[key] = int(is_chosen @ self.frequency), n_clusters
        return self._counts[key]

    def units(self, patterns: Codes) -> Units:
        """Return all units in the data with one of these distinct `patterns`, with frequency 1."""
        cells = self._cells[:, patterns].tocoo()  # numbers of units, (clusters, patterns)
        positions, cluster = np.repeat(cells.col, cells.data), np.repeat(cells.row, cells.data)
        return Units(positions, cluster, np.ones(len(positions), dtype=np.int64))

    def left_out(self, patterns: Codes) -> PatternResamples:
        """Return the jackknife of the clusters that have one of these patterns (units,)."""
        is_present = (np.bincount(patterns, minlength=self.n_types) > 0).astype(np.int64)
        cells = self._cells[np.flatnonzero(self._cells @ is_present > 0)]
        members = self._members[np.flatnonzero(self._members @ is_present > 0)]
        data = Resamples(np.ones(members.shape[0]), jackknife=True)
        return PatternResamples(cells, members, data)

    def only(self, patterns: Codes) -> PatternResamples:
        """Return the resamples of some of the patterns only."""
        return PatternResamples(self._cells[:, patterns], self._members[:, patterns], self._draws)

    def _draw(self, block: int) -> DrawCounts:
        """Return the number of units with each pattern in a block, (rows, patterns)."""
        draw_counts, patterns = self._draws._block(block), self._members.T.tocsc()
        out = np.zeros((self.n_types, len(draw_counts)), dtype=np.int64)
        for start in range(0, draw_counts.shape[1], _MULTIPLIED_TOGETHER):
            part = slice(start, start + _MULTIPLIED_TOGETHER)
            out += patterns[:, part] @ draw_counts[:, part].T.astype(np.int64)
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

    n, members = cells.shape[0], cells
    if n > many:  # `members` are sums over random groups of clusters
        group = _mixed_bits(keys ^ _mixed_bits(np.array([seed], np.uint64))) % np.uint64(GROUPS)
        entries = np.ones(n, np.int64), (group.astype(np.intp), np.arange(n))
        members = (csr_array(entries, shape=(GROUPS, n)) @ cells).tocsr()
    return PatternResamples(cells, members, draw(np.ones(members.shape[0], np.int64)))


def _mixed_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return keys with mixed bits, by the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
