"""Significance tests, and corrections for several tests.

The corrections, the tests of paired labels and those of marginal homogeneity give the same results
as statsmodels, without the time to load it.

`max_t` tests parts of a sample by permutation, adjusted for all of them (studentised max-T): under
the null hypothesis clusters are exchangeable between parts. The statistic of a part is its mean
outcome minus that of the other parts, in standard errors, so that variances may differ between
parts (Chung & Romano 2013). The largest |t| of all parts in a permutation adjusts for their number
(Westfall & Young 1993). A bootstrap cannot: a part without an error has one value in all resamples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, chdtrc, gammaln

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.types import Array, Codes, Frequency

_FLIPS = 9_999
"""Number of sign flips drawn where they cannot be enumerated; also the seed."""
PRIOR = 20.0
"""Weight, as a number of clusters, of the variance of all parts in the variance of one part."""
_DRAWS, _FEWER_DRAWS, _MANY_UNITS = 999, 199, 20_000
"""Number of permutations, also the seed; a smaller number for more rows than the last one."""
_TOLERANCE = 1e-9
"""Tolerance for rounding errors: permutations whose |t| equals that of the data count."""
_SUMS = 6
"""Number of sums that `_t` needs, in this order: those of clusters, sizes, totals, squared totals,
products of size and total, and squared sizes. A cluster's size is its mass in the test, its total
the sum of its outcomes times their mass."""


def holm(p: npt.ArrayLike) -> Array:
    """Return Holm's adjusted p values (1979). NaN stands for a test that was not made.

    >>> holm([0.01, 0.04, np.nan, 0.03]).round(3).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    return _adjusted(p, lambda ps: np.maximum.accumulate(ps * np.arange(len(ps), 0, -1)))


def benjamini_hochberg(p: npt.ArrayLike) -> Array:
    """Return Benjamini & Hochberg's adjusted p values (1995), which bound the false discovery rate.
    NaN stands for a test that was not made. The three smallest of 15 p values, from section 4.1:

    >>> p = [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .324, .4262, .5719]
    >>> benjamini_hochberg([*p, .6528, .759, 1])[:3].round(4).tolist()
    [0.0015, 0.003, 0.0095]
    """

    def step_up(ascending: Array) -> Array:
        by_rank = ascending * len(ascending) / np.arange(1, len(ascending) + 1)
        return np.minimum.accumulate(by_rank[::-1])[::-1]

    return _adjusted(p, step_up)


def _adjusted(p: npt.ArrayLike, adjust: Callable[[Array], Array]) -> Array:
    """Return p values after `adjust` of the defined ones in ascending order; at most 1."""
    p = np.asarray(p, dtype=float)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(adjust(p[order]), 1.0)
    return adjusted


def benjamini_yekutieli(p: npt.ArrayLike) -> Array:
    """Return Benjamini & Yekutieli's adjusted p values (2001), for dependent tests.

    >>> benjamini_yekutieli([0.01, 0.04, 0.03]).round(3).tolist()
    [0.055, 0.073, 0.073]
    """
    p = np.asarray(p, dtype=float)
    penalty = float((1.0 / np.arange(1, np.sum(~np.isnan(p)) + 1)).sum())
    return np.minimum(benjamini_hochberg(p * penalty), 1.0)


def mcnemar_exact(b: int, c: int) -> float:
    """Return McNemar's exact two-sided p from the two discordant counts; 1 if both are 0.

    >>> mcnemar_exact(9, 1).__round__(4)
    0.0215
    """
    return min(1.0, 2.0 * float(bdtr(min(b, c), b + c, 0.5))) if b + c else 1.0


def sign_flip(differences: npt.ArrayLike) -> float:
    """Return McNemar's two-sided p for units that depend on each other in clusters, by sign flips.

    `differences` (clusters,) are whole numbers: a cluster's discordant units of one kind minus
    those of the other. If there is no difference, either sign of a cluster is equally likely; all
    2^clusters combinations are counted, through the distribution of the sum. If every cluster has
    one discordant unit, this is `mcnemar_exact`. The squared sum over the sum of the squares is the
    score statistic of Obuchowski (1998), of which flips change only the numerator.

    Five clusters with the sum 2 + 1 + 1 + 1 - 1 = 4. Of 32 combinations, 4 have the sum 4, 1 has 6,
    4 have -4, and 1 has -6, so p is 10 / 32:

    >>> round(sign_flip([2, 1, 1, 1, -1]), 4)
    0.3125
    """
    signed = np.asarray(differences, dtype=np.int64)
    sizes, times = np.unique(np.abs(signed[signed != 0]), return_counts=True)
    if len(sizes) < 2:  # differences of one size: only their signs count
        return mcnemar_exact(int((signed > 0).sum()), int((signed < 0).sum()))
    probability = _flipped_sums(sizes, times)
    sums = np.abs(np.arange(len(probability)) - len(probability) // 2)  # 0 is in the middle
    return min(1.0, float(probability[sums >= abs(int(signed.sum()))].sum()))


def sign_flip_above(differences: npt.ArrayLike) -> float:
    """Return the one-sided p of a sign-flip test: the share of flips with as large a sum.

    `differences` (clusters,) are each cluster's sums of paired differences. Whole numbers are
    enumerated exactly; for others 9,999 flips are drawn with a fixed seed, and the data count as
    one of them (Phipson & Smyth 2010).

    >>> sign_flip_above([1, 1, 1, 0, 1]), sign_flip_above([0.5, 0.25, 0.75, 1.0]).__round__(2)
    (0.0625, 0.06)
    """
    signed = np.asarray(differences, dtype=float)
    signed = signed[signed != 0]
    if not len(signed):
        return 1.0
    if np.array_equal(signed, np.rint(signed)):
        sizes, times = np.unique(np.abs(signed).astype(np.int64), return_counts=True)
        probability = _flipped_sums(sizes, times)
        position = len(probability) // 2 + int(signed.sum())  # the sum 0 is in the middle
        return float(min(1.0, probability[position:].sum()))
    signs = np.random.default_rng(_FLIPS).choice([-1.0, 1.0], (_FLIPS, len(signed)))
    return float((1 + (signs @ signed >= signed.sum() - 1e-12).sum()) / (1 + _FLIPS))


def _flipped_sums(sizes: Codes, times: Codes) -> Array:
    """Return the probability of each sum of randomly signed numbers, from the lowest sum to the
    highest. `sizes` (n,) are the distinct numbers, `times` (n,) their frequencies. The sum of
    numbers of one size is binomial; the distributions of different sizes are convolved.
    """
    probability = np.ones(1)
    for size, n in zip(sizes.tolist(), times.tolist(), strict=True):
        n_positive = np.arange(n + 1)
        log_ways = gammaln(n + 1) - gammaln(n_positive + 1) - gammaln(n - n_positive + 1)
        size_probability = np.zeros(2 * size * n + 1)  # of sums from -size * n to size * n
        size_probability[:: 2 * size] = np.exp(log_ways - n * np.log(2.0))
        probability = np.convolve(probability, size_probability)
    return probability


def bootstrap_p(values: Array) -> float:
    """Return the two-sided p of no difference: the share of resamples as far from the data as 0 is
    (Davison & Hinkley 1997, section 4.4: centred resamples represent the null hypothesis).
    `values` (rows,) are the data, then the resamples; NaN if more than a tenth is undefined.
    """
    defined = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or len(defined) < max(0.9 * (len(values) - 1), 1):
        return np.nan
    is_as_far = np.abs(defined - values[0]) >= abs(values[0]) - 1e-12
    return float((1 + is_as_far.sum()) / (1 + len(defined)))


class Homogeneity(NamedTuple):
    """Result of a test of homogeneity: a chi square statistic, its degrees of freedom, and p."""

    statistic: float
    degrees: int
    p: float


def stuart_maxwell(table: npt.ArrayLike) -> Homogeneity:
    """Test marginal homogeneity (Stuart 1955; Maxwell 1970).

    `table` (q, q) are counts of independent units; categories that are never confused are left out.
    With two categories this is McNemar's test without correction. p is 1 if the margins are equal,
    and NaN if categories are only confused within separate groups.

    Stuart (1955), distance vision of 7477 women, right eye by left eye: 11.96 on 3 degrees.

    >>> eyes = [[1520, 266, 124, 66], [234, 1512, 432, 78]]
    >>> eyes += [[117, 362, 1772, 205], [36, 82, 179, 492]]
    >>> result = stuart_maxwell(eyes)
    >>> round(result.statistic, 2), result.degrees, round(result.p, 4)
    (11.96, 3, 0.0075)
    """
    counts = np.asarray(table, dtype=float)
    off_diagonal = counts - np.diag(np.diag(counts))
    rows, columns = off_diagonal.sum(axis=1), off_diagonal.sum(axis=0)
    return _homogeneity(rows - columns, np.diag(rows + columns) - off_diagonal - off_diagonal.T)


def clustered_homogeneity(differences: npt.ArrayLike) -> Homogeneity:
    """Test marginal homogeneity for units that depend on each other within clusters.

    `differences` (clusters, q) is each cluster's number of labels of each category by the first
    rater minus that by the second. The covariance of their sum under the null hypothesis is the sum
    of their outer products (Obuchowski 1998, for two categories). If every unit is its own cluster,
    this is `stuart_maxwell`.

    >>> clustered_homogeneity([[2, -2], [1, -1], [1, -1], [0, 0], [-1, 1]]).statistic.__round__(4)
    1.2857
    """
    differences = np.asarray(differences, dtype=float)
    return _homogeneity(differences.sum(axis=0), differences.T @ differences)


def _homogeneity(difference: Array, covariance: Array) -> Homogeneity:
    """Test by the score statistic that each category's `difference` (q,) has mean 0."""
    if not difference.any():
        return Homogeneity(0.0, 0, 1.0)
    free = np.flatnonzero(np.diag(covariance) > 0)[:-1]  # without one: all differences sum to 0
    difference, covariance = difference[free], covariance[np.ix_(free, free)]
    if np.linalg.matrix_rank(covariance, hermitian=True) < len(free):
        return Homogeneity(np.nan, len(free), np.nan)
    statistic = float(difference @ np.linalg.solve(covariance, difference))
    return Homogeneity(statistic, len(free), float(chdtrc(len(free), statistic)))


@dataclass(frozen=True)
class Parts:
    """Outcomes of units in the parts into which one column of the units table divides a sample.

    `outcome` and `mass` (units, tests) are a unit's outcome and weight in each test, such as the
    test of one grader; a unit with mass 0 is left out. `part` (units,) is the part, -1 for none.
    `times` (units,) is the number of identical units, each its own cluster, that a row represents.
    If all clusters are single units, only units of the same `stratum` (units,) are exchanged.
    """

    outcome: Array
    mass: Array
    part: Codes
    cluster: Codes
    times: Frequency
    stratum: Codes | None = None


class MaxT(NamedTuple):
    """P values (parts, tests) of each part alone, and adjusted for all; NaN without a test."""

    p: Array
    adjusted: Array


def max_t(columns: Sequence[Parts]) -> list[MaxT]:
    """Test whether each part's mean outcome differs from the others', adjusted over all columns.

    Clusters are permuted between parts. If at least half of every part shares its clusters with
    other parts, units are permuted within clusters instead, and their outcomes are centred on the
    cluster's mean; if less does, a cluster's units in one part are permuted together. The data
    count as one permutation (Phipson & Smyth 2010) of 1,000, or of 200 above 20,000 rows. NaN if a
    part, or all others together, has no unit.

    Four parts of 20 units; one error in each of three, five in the last:

    >>> units, outcome = np.arange(80), np.ones((80, 1))
    >>> outcome[[0, 20, 40, 60, 61, 62, 63, 64]] = 0
    >>> parts = Parts(outcome, np.ones((80, 1)), units // 20, units, np.ones_like(units))
    >>> result = max_t([parts])[0]
    >>> result.p.ravel().round(2).tolist(), result.adjusted.ravel().round(2).tolist()
    ([0.19, 0.21, 0.21, 0.02], [0.5, 0.5, 0.5, 0.07])
    """
    largest_column = max((len(column.part) for column in columns), default=0)
    draws = _FEWER_DRAWS if largest_column > _MANY_UNITS else _DRAWS
    values = [_values_of_t(column, draws) for column in columns]
    largest_t = np.zeros(draws)
    for _, permuted in values:
        largest_t = np.maximum(largest_t, permuted.max(axis=(1, 2), initial=0.0))

    def p(observed: Array, permuted: Array) -> Array:
        n_as_large = (permuted >= observed - _TOLERANCE).sum(axis=0)
        return np.where(np.isnan(observed), np.nan, (1 + n_as_large) / (1 + draws))

    largest_t = largest_t[:, None, None]
    return [MaxT(p(observed, permuted), p(observed, largest_t)) for observed, permuted in values]


def max_t_notes(columns: Sequence[Parts]) -> list[list[list[str]]]:
    """Describe the p values of `max_t`, by column, part and test; "" where there is none."""
    results = max_t(columns)
    n_tests = sum(int((~np.isnan(result.p)).sum()) for result in results)

    def note(p: float, adjusted: float) -> str:
        return "" if np.isnan(p) else f"permutation p {p:.4g}; max-T p {adjusted:.4g} of {n_tests}"

    return [
        [list(map(note, p, adjusted)) for p, adjusted in zip(*result, strict=True)]  # of one part
        for result in results
    ]


def _values_of_t(column: Parts, draws: int) -> tuple[Array, Array]:
    """Return |t| in the data (parts, tests), and in permutations (draws, parts, tests) or 0."""
    n_parts, n_tests = int(column.part.max(initial=-1)) + 1, column.outcome.shape[1]
    if not (column.mass[column.part >= 0] > 0).any():
        return np.full((n_parts, n_tests), np.nan), np.zeros((draws, n_parts, n_tests))
    permuted = _permutation_rows(column)
    sums = np.zeros((1 + draws, n_parts, n_tests, _SUMS))
    present = np.unique(permuted.part)
    for draw, part_sums in enumerate(permuted.sums(draws)):
        sums[draw, present] = part_sums.reshape(len(present), n_tests, _SUMS)
    t = _t(sums)
    return t[0], np.nan_to_num(t[1:])


def _t(sums: Array) -> Array:
    """Return |t| (..., parts, tests) from the six `_SUMS` on the last axis: 0 for equal means."""
    n_clusters, size, total, squared_totals, products, squared_sizes = np.moveaxis(sums, -1, 0)
    mean = np.nan_to_num(ratio(total, size))
    deviations = squared_totals - 2.0 * mean * products + mean**2 * squared_sizes
    # `variance` is that of one unit of size: divided by a part's size it is that of the mean. It is
    # shrunk to the `common` value of all clusters, as if PRIOR more clusters had that value.
    common = ratio(_sum_of_parts(squared_totals), _sum_of_parts(squared_sizes))
    variance = np.nan_to_num(ratio(n_clusters * deviations + PRIOR * common * squared_sizes, size))
    variance = variance / (n_clusters + PRIOR)
    other_size = _sum_of_parts(size) - size
    other_mean = ratio(_sum_of_parts(total) - total, other_size)
    weighted = variance * size
    other_variance = ratio(_sum_of_parts(weighted) - weighted, other_size)
    difference = np.abs(ratio(total, size) - other_mean)
    error = np.sqrt(ratio(variance, size) + ratio(other_variance, other_size))
    return np.where(difference < _TOLERANCE, 0.0, ratio(difference, error))


def _sum_of_parts(values: Array) -> Array:
    """Return the sums over parts, (..., 1, tests), of values (..., parts, tests)."""
    return np.asarray(values.sum(axis=-2, keepdims=True))


@dataclass(frozen=True)
class _PermutationRows:
    """Rows whose parts are permuted within blocks. `features` (rows, 6 x tests) are what each row
    adds to the sums of its part (`_SUMS`); `part`, `block` and `times` are (rows,).
    """

    features: Array
    part: Codes
    block: Codes
    times: Frequency

    def sums(self, draws: int) -> Iterator[Array]:
        """Yield the sums (parts, 6 x tests) of the data, and then those of each permutation."""
        rng = np.random.default_rng(_DRAWS)
        if self.times.max() > 1 and self.times.sum() > _MANY_UNITS:
            yield from self._sums_of_tables(draws, rng)
            return
        features = np.repeat(self.features, self.times, axis=0)
        part, block = np.repeat(self.part, self.times), np.repeat(self.block, self.times)
        order, is_one_block = np.argsort(block, kind="stable"), np.ptp(block) == 0
        # In the order of blocks, every position keeps its part, and rows move within their block.
        position_by_part = np.argsort(part[order], kind="stable")
        part_starts = np.flatnonzero(np.diff(part[order][position_by_part], prepend=-1))
        yield np.add.reduceat(features[order[position_by_part]], part_starts)
        for _ in range(draws):
            keys = rng.random(len(order))
            permuted = np.argsort(keys) if is_one_block else np.lexsort((keys, block))
            yield np.add.reduceat(features[permuted[position_by_part]], part_starts)

    def _sums_of_tables(self, draws: int, rng: np.random.Generator) -> Iterator[Array]:
        """Yield the sums as `sums` does, from random tables (kinds of rows, parts) with the margins
        of the data: a million rows are of few kinds.
        """
        _, part = np.unique(self.part, return_inverse=True)
        table = np.eye(int(part.max()) + 1)[part] * self.times[:, None]
        yield table.T @ self.features
        blocks = []
        for block in np.unique(self.block):
            rows = self.block == block
            kind_features, kind = np.unique(self.features[rows], axis=0, return_inverse=True)
            kind_counts = np.bincount(kind.ravel(), self.times[rows]).astype(np.int64)
            blocks.append((kind_features, kind_counts, table[rows].sum(axis=0).astype(np.int64)))
        for _ in range(draws):
            sums = np.zeros((table.shape[1], self.features.shape[1]))
            for kind_features, kind_counts, part_sizes in blocks:
                remaining = kind_counts
                for number, size in enumerate(part_sizes):
                    drawn = rng.multivariate_hypergeometric(remaining, size, method="marginals")
                    sums[number] += drawn @ kind_features
                    remaining = remaining - drawn
            yield sums


def _permutation_rows(column: Parts) -> _PermutationRows:
    """Return the rows that are permuted: clusters, their pieces in each part, or single units."""
    rows = np.flatnonzero((column.part >= 0) & (column.mass > 0).any(axis=1))
    # Sorted by their contents, so that p values do not depend on the order of rows.
    rows = rows[np.lexsort((*column.outcome[rows].T, column.part[rows], column.cluster[rows]))]
    mass, part, times = column.mass[rows], column.part[rows], column.times[rows]
    outcome = np.where(mass > 0, column.outcome[rows], 0.0)
    distinct, cluster = np.unique(column.cluster[rows], return_inverse=True)
    n_parts = int(part.max(initial=0)) + 1
    key = cluster * n_parts + part  # of a piece: a cluster's rows in one part
    pieces, first, piece = np.unique(key, return_index=True, return_inverse=True)
    is_split = np.bincount(pieces // n_parts)[cluster] > 1  # the row's cluster has several parts
    is_mostly_split = (2 * np.bincount(part, is_split) >= np.bincount(part)).all()  # in every part
    if is_split.any() and is_mostly_split:  # units of split clusters, within their clusters
        mass, outcome, part = mass[is_split], outcome[is_split], part[is_split]
        block, times = cluster[is_split], times[is_split]
        size, total = mass, mass * _centred(outcome, mass, times, block)
    else:
        block = np.zeros(len(part), dtype=np.intp)
        size, total = mass, mass * _centred(outcome, mass, times, block)
        if len(distinct) < len(part):  # whole clusters, or their pieces in each part
            size, total = _group_sums(size, piece), _group_sums(total, piece)
            part, block, times = part[first], block[first], times[first]
        elif column.stratum is not None:  # single units, within strata
            block = column.stratum[rows]
    sums = size > 0, size, total, total**2, total * size, size**2  # in the order of `_SUMS`
    features = np.stack(sums, axis=-1).reshape(len(size), -1).astype(float)
    return _PermutationRows(features, part, block, times)


def _centred(outcome: Array, mass: Array, times: Frequency, group: Codes) -> Array:
    """Return outcomes (rows, tests) minus the weighted mean of their group, (rows,)."""
    weighted = mass * outcome, mass
    means = ratio(*(_group_sums(values * times[:, None], group) for values in weighted))
    return np.asarray(outcome - np.nan_to_num(means)[group])


def _group_sums(values: Array, groups: Codes) -> Array:
    """Return the sums of values (units, tests) over groups, (groups, tests)."""
    n_groups = int(groups.max(initial=-1)) + 1
    return np.column_stack([np.bincount(groups, column, n_groups) for column in values.T])
