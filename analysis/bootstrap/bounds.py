"""Bounds for verdicts: from clusters' influence on an estimate, or by a test at the null value.

A verdict is wrong as often as its one-sided bound misses, and bootstrap quantiles miss too often in
small or unbalanced samples, where the variance and skewness of an estimate depend on its value.
`python -m benchmarks.decisions` shows how often verdicts by the bounds here are wrong.

*t bounds* (`reach`) use the influence of the jackknife: the estimate minus its value without a
cluster, times the number of the other clusters. Skewness is removed by Hall's monotone cubic
transformation (Hall 1992, section 3). The degrees of freedom follow from the influence's kurtosis
(the variance of the variance, matched as by Satterthwaite 1946).

*Levels of interim analyses* (`level_of_look`, alpha spending). An interim analysis is a *look*. The
default plan has two looks at equal levels: at the present labels, and after as many more as the
first look advised. The second look includes the labels of the first, so the errors of the two are
correlated, and each look may spend more than half of the error (Pocock 1977; Lan & DeMets 1983), if
the second look has at most four times as many labels. A tenth of the error is reserved for further
looks, each of which may spend half of the remainder. A study that declares its looks shares the
whole error evenly among them, each with at most four times the labels of the last, and has no more.

*Score bounds* (`lower_bound`) test whether the data could come from a grader at the margin: just as
far below human agreement as is tolerated. An interval about an estimate ignores errors that have
not occurred yet: if a grader was right on every unit, its estimate has no variance. A score test
uses the variance that the estimate would have *if the bound's value were true* (Wilson 1927 for a
share; Tango 1998 and Farrington & Manning 1990 for differences at a margin). A sample is
represented by weights on a *support*: the observed clusters and, with half a cluster in all, the
same clusters with other labels by the grader. A *null* has other weights, and with them another
value of the statistic. It is reached from the data along the least favourable family, exponential
tilting by the statistic's influence (Efron 1981; DiCiccio & Romano 1990), in small steps because
the statistic is not linear. At each null its distance to the estimate is compared with the standard
deviation there, by Student's quantile, with the skewness removed by Cornish & Fisher's first term
(Hall 1992, section 2.2). The bound is the first value that the data clearly contradict. The degrees
of freedom are those of the standard deviation at the null, 2 n / (kurtosis - 1 - skewness^2),
infinite if errors are of one kind only, and at most the effective number of clusters less one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from evenhand.analysis.types import Array

ALPHA = 0.025
"""Probability with which a one-sided bound may miss."""
_DRAWS, _SEED = 400_000, 20231206
"""Number and seed of the simulated normal variables of `level_together`."""
LOOKS = 2  # number of looks at equal levels if a study declares none
_GROWTH = 4.0  # largest ratio of the labels at a look to those at the last one
_RESERVE = 0.1  # share of the error that is reserved for looks beyond the default ones
PSEUDO = 0.5  # total weight, in clusters, of the labels that were not observed
_CONTINUITY = 0.15
"""Continuity correction of a quantile, as a share of the skewness. If errors are few and of one
kind, a quantile between two whole numbers of errors is exceeded too often. Half an error, a share
of about 0.5, would keep the bounds of all such samples at their level, but cost most of the power
if raters agree nearly always; this share keeps the worst ones near it (`benchmarks.decisions`)."""
_MIN_SKEWNESS, _MIN_FREEDOM = -1.5, 4.0
"""Lowest skewness and degrees of freedom for which the expansion holds, to which `shape` raises
lower ones. These imply errors in less than half a cluster: such a null is never contradicted."""
_OPTIMISM = 0.2
"""Standard errors that `chance_above` subtracts: without them its probabilities are too high in
simulations with true differences drawn evenly about the margin (`benchmarks.deciding_bound`)."""
_STEP, _MAX_STEPS, _MAX_TILT = 0.25, 80, 3.0
"""Step of the null in standard errors, largest number of steps, largest exponent of a tilt."""
_STEPS_TO_NULL = 24
"""Number of steps from the data to a given null."""
_EXCESS_AT_ESTIMATE = -2.0
"""Excess (distance minus quantile) at the estimate itself: 0 minus about 2 standard errors."""
_KAPPA_RANGE = 2.0
"""Length of the range of kappa, -1 to 1: a bound so far below a value excludes nothing."""
_TINY, _STUCK = 1e-12, 1e-4
"""Tolerance for rounding errors, and standard error below which no step leads further."""


def influence(values: Array) -> Array:
    """Return each cluster's influence, (clusters, ...), from data and jackknife (rows, ...). Row 0
    is the estimate, every other row the estimate without one cluster (or one group of clusters).

    >>> influence(np.array([2.0, 2.5, 2.0, 1.5])).tolist()
    [-1.0, 0.0, 1.0]
    """
    jackknife = values[1:]
    return np.asarray((len(jackknife) - 1) * (jackknife.mean(axis=0) - jackknife))


def reach(contributions: Array, alpha: float = ALPHA) -> float:
    """Return the distance from an estimate down to its lower bound, from the clusters' influence,
    `contributions` (clusters,); for their negatives, the distance up to the upper bound. NaN if
    nothing varies, because the data then give no information on further clusters.

    >>> round(reach(np.array([-1.0, 1.0] * 50)), 3)
    0.199
    """
    return float(reaches(contributions[:, None], alpha)[0])


def reaches(contributions: Array, alpha: float = ALPHA) -> Array:
    """Return `reach` of several estimates, from their influence (clusters, estimates)."""
    n = len(contributions)
    if n < 2:
        return np.full(contributions.shape[1], np.nan)
    spread = contributions.std(axis=0, ddof=1)
    spread = np.where(spread > 0, spread, np.nan)
    scaled = (contributions - contributions.mean(axis=0)) / spread
    squared = scaled * scaled
    skew, kurtosis = (squared * scaled).mean(axis=0), (squared * squared).mean(axis=0)
    freedom = np.clip(2.0 * n / np.maximum(kurtosis - 1.0, 1e-9), 1.0, n - 1.0)
    t: Array = stdtrit(freedom, 1.0 - alpha) / math.sqrt(n)
    # The inverse of Hall's transformation, in standard deviations; t where there is no skewness.
    is_symmetric = np.abs(skew) < 1e-9
    safe_skew = np.where(is_symmetric, 1.0, skew)
    cubed = 1.0 + safe_skew * (t - safe_skew / (6.0 * n))
    return np.asarray(spread * np.where(is_symmetric, t, 3.0 / safe_skew * (np.cbrt(cubed) - 1.0)))


def standard_error(contributions: Array) -> float:
    """Return the jackknife's standard error from the clusters' influence (clusters,)."""
    return float(contributions.std(ddof=1)) / math.sqrt(len(contributions))


def reach_over_people(
    reach: Array | float,
    people_variance: Array | float,
    people: int,
    clusters: float,
    alpha: float = ALPHA,
) -> Array:
    """Widen the reach of bounds (estimates,) from these raters to a population of raters.

    `reach` is the reach for these `people` raters, on `clusters` effective clusters, and
    `people_variance` the estimate's variance over raters. The variances over clusters and over
    raters add up (no interaction is subtracted, which errs on the safe side), with Satterthwaite's
    (1946) degrees of freedom for their sum.

    >>> reach_over_people(0.2, np.array([0.0, 0.01]), 3, 100).round(3).tolist()
    [0.2, 0.328]
    """
    cluster_freedom = max(clusters - 1.0, 1.0)
    quantile = stdtrit(cluster_freedom, 1.0 - alpha)
    cluster_variance = np.maximum((reach / quantile) ** 2, 1e-18)  # above 0: it is divided by
    total = cluster_variance + people_variance
    freedom = total**2 / (cluster_variance**2 / cluster_freedom + people_variance**2 / (people - 1))
    factor: Array = np.sqrt(total / cluster_variance) * stdtrit(freedom, 1.0 - alpha) / quantile
    return np.asarray(reach * factor)


def chance_over_people(
    chance: float, distance: float, people_variance: float, people: int, clusters: float
) -> float:
    """Return the probability that an estimate's value in a population of raters is above a limit:
    one minus the level at which the bound of `reach_over_people` is the limit.

    `chance` is the probability for these `people` raters, and `distance` is the estimate minus the
    limit; the other arguments are as in `reach_over_people`.

    >>> chances = [chance_over_people(0.975, 0.2, variance, 3, 100) for variance in (0.0, 0.01)]
    >>> np.round(chances, 3).tolist()
    [0.975, 0.902]
    """
    cluster_freedom = max(clusters - 1.0, 1.0)
    quantile = float(stdtrit(cluster_freedom, chance)) or _TINY  # not 0: it is divided by
    cluster_variance = max((distance / quantile) ** 2, 1e-18)
    total = cluster_variance + people_variance
    freedom = total**2 / (cluster_variance**2 / cluster_freedom + people_variance**2 / (people - 1))
    return float(stdtr(freedom, math.copysign(distance, quantile) / math.sqrt(total)))


def simultaneous_level(contributions: Array, alpha: float = ALPHA) -> float:
    """Return the level of several estimates' bounds at which one or more miss in at most `alpha`.

    `contributions` (clusters, estimates) are the influence of the same clusters: the level is
    higher, the more strongly the estimates are correlated. It is the max-t of their joint normal
    limit, by simulation with a fixed seed (Hothorn, Bretz & Westfall 2008).

    >>> identical = np.array([[-1.0, -1.0], [1.0, 1.0]] * 20)
    >>> 0.024 < simultaneous_level(identical) <= 0.025
    True
    """
    varying = contributions[:, contributions.std(axis=0) > 0]
    if varying.shape[1] < 2:
        return alpha
    # Sorted, so that the result does not depend on raters' names: the draws depend on the order.
    varying = varying[:, np.argsort(varying.std(axis=0))]
    return level_together(np.asarray(np.corrcoef(varying, rowvar=False)), alpha)


def level_together(correlation: Array, alpha: float = ALPHA) -> float:
    """Return the level of each bound at which one or more of the bounds of several jointly normal
    estimates miss in `alpha` of samples, from the estimates' `correlation` (estimates, estimates),
    by simulation with a fixed seed.

    Two looks, the second at twice the labels (Pocock 1977, Table 1, has .0147 for two looks):

    >>> both = np.array([[1.0, 0.5**0.5], [0.5**0.5, 1.0]])
    >>> round(level_together(both), 3)
    0.015
    """
    values, vectors = np.linalg.eigh(correlation)  # the signs of vectors cancel in the root
    root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    normals = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(values)))
    highest = (root.T @ normals.T).max(axis=0)  # four times as fast as along short rows
    level: float = float(ndtr(-np.quantile(highest, 1.0 - alpha)))
    # Sampling error must not carry the level beyond that of one bound, or below Bonferroni's.
    return float(min(alpha, max(level, alpha / len(correlation))))


@lru_cache(maxsize=256)
def level_of_look(look: int, declared: int = 0, alpha: float = ALPHA) -> float:
    """Return the one-sided level of a study's `look`, numbered from 1; 0.0 for look 0, and for
    looks beyond the `declared` number.

    >>> [round(level_of_look(look), 4) for look in (1, 2, 3, 4)]
    [0.0123, 0.0123, 0.0013, 0.0006]
    >>> [round(level_of_look(look, declared=2), 3) for look in (1, 2, 3)]
    [0.014, 0.014, 0.0]
    """
    return _level(look, declared, alpha, _nested_level)


def level_of_reading(reading: int, declared: int = 0) -> float:
    """Return the one-sided level of the `reading`, numbered from 1, of held-out labels; 0.0 beyond
    the `declared` number. Unlike looks, readings may be of different graders and uncorrelated, so
    that levels add up to the error (Bonferroni).

    >>> [round(level_of_reading(reading), 5) for reading in (1, 2, 3, 4)]
    [0.01125, 0.01125, 0.00125, 0.00063]
    >>> [level_of_reading(reading, declared=2) for reading in (1, 2, 3)]
    [0.0125, 0.0125, 0.0]
    """
    return _level(reading, declared, ALPHA, lambda readings, alpha: alpha / readings)


def _level(look: int, declared: int, alpha: float, split: Callable[[int, float], float]) -> float:
    """Return a look's level; `split(looks, error)` is the level of looks that share an error."""
    if not look or 0 < declared < look:
        return 0.0
    if declared:
        return split(declared, alpha)
    if look <= LOOKS:
        return split(LOOKS, alpha * (1.0 - _RESERVE))
    return float(alpha * _RESERVE * 0.5 ** (look - LOOKS))  # half of what is left at each look


def _nested_level(looks: int, alpha: float) -> float:
    """Return the level of each of several looks, each with the labels of the last among its own."""
    steps = np.abs(np.subtract.outer(np.arange(looks), np.arange(looks)))
    return level_together(_GROWTH ** (-steps / 2.0), alpha)  # sqrt(smaller size / larger size)


class Statistic(Protocol):
    """A function of weights (..., support). The points of the support are the observed clusters,
    and the same clusters with other labels; `base` (..., support) are the weights of the data.
    """

    @property
    def base(self) -> Array: ...

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the value (...) and the influence of each point of the support (..., support)."""


@dataclass(frozen=True)
class Kappas:
    """Mean kappa of tables of two raters, weighted by their sizes, plus a term linear in the
    weights of the support, as a function of these weights.

    `sums` (support, tables, 2 + 2q) are what each point of the support adds to each table
    (`table_sums`), `distance` (q, q) are the distances of labels, from 0 to 1. With two `groups` of
    tables of the same sizes, the mean of the second is subtracted. `sign` (...) is 1, or -1 for the
    negative of the statistic. `linear` (..., support) are the points' values of the linear term, a
    mean that no label of the grader can change, such as people's kappa. `base` (..., support) are
    the weights of the data, with those of labels that were not observed.
    """

    sums: Array
    distance: Array
    linear: Array
    base: Array
    groups: int = 1
    sign: float | Array = 1.0

    @property
    def is_empty(self) -> bool:
        """True if there is no table."""
        return not self.sums.size

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the statistic (...) and each point's influence on it (..., support). `weights`
        (..., support) add up to 1. NaN where no table has a kappa.
        """
        if self.is_empty:
            return np.full(weights.shape[:-1], np.nan), np.full(weights.shape, np.nan)
        flat = self.sums.reshape(len(self.sums), -1)
        sums = (weights @ flat).reshape(*weights.shape[:-1], *self.sums.shape[1:])
        kappas, gradient = kappas_of(sums, self.distance, groups=self.groups)
        influence = gradient.reshape(*weights.shape[:-1], -1) @ flat.T
        mean = (weights * self.linear).sum(axis=-1)
        value: Array = self.sign * kappas + mean
        return value, np.asarray(self.sign)[..., None] * influence + (self.linear - mean[..., None])


def kappas_of(sums: Array, distance: Array, groups: int = 1) -> tuple[Array, Array]:
    """Return the mean kappa (...) of tables, weighted by their sizes, and its gradient
    (..., tables, 2 + 2q), from the `sums` (..., tables, 2 + 2q) of `table_sums`.

    Kappa is 1 - d n / (f' D s) with the size n, the summed distance d, the distances D and the
    margins f and s; the denominator is the distance expected by chance, times n^2. With two
    `groups` of tables of the same sizes, the mean of the second is subtracted. Tables without
    distance expected by chance are left out, from both groups; NaN if all are.
    """
    q = len(distance)
    size, summed_distance = sums[..., 0], sums[..., 1]
    first, second = sums[..., 2 : 2 + q], sums[..., 2 + q :]
    chance_by_first, chance_by_second = second @ distance.T, first @ distance
    chance = (first * chance_by_first).sum(axis=-1)
    is_defined = chance > _TINY * np.maximum(size, _TINY) ** 2
    if groups > 1:
        in_all = is_defined.reshape(*is_defined.shape[:-1], groups, -1).all(axis=-2)
        is_defined = np.concatenate([in_all] * groups, axis=-1)
    signs = np.repeat([1.0, -1.0][:groups], sums.shape[-2] // groups)  # by table
    chance, size = np.where(is_defined, chance, 1.0), np.where(is_defined, size, 0.0)
    total = size.sum(axis=-1, keepdims=True) / groups
    total = np.where(total > 0, total, np.nan)
    weighted_kappas = size - summed_distance * size * size / chance  # size times kappa
    value: Array = (signs * weighted_kappas).sum(axis=-1) / total[..., 0]
    # The derivatives of the value: by the size, the summed distance, and both margins.
    gradient = np.zeros_like(sums)
    by_size = signs * (1.0 - 2.0 * size * summed_distance / chance) - value[..., None] / groups
    gradient[..., 0] = np.where(is_defined, by_size, 0.0) / total
    gradient[..., 1] = -signs * size * size / chance / total
    by_chance = (signs * summed_distance * size * size / chance**2 / total)[..., None]
    gradient[..., 2 : 2 + q] = by_chance * chance_by_first
    gradient[..., 2 + q :] = by_chance * chance_by_second
    return value, gradient


def table_sums(tables: Array, distance: Array) -> Array:
    """Return the size, the summed distance and both margins, (..., 2 + 2q), of tables (..., q, q):
    all that kappa with these distances (q, q) depends on.
    """
    first, second = tables.sum(axis=-1), tables.sum(axis=-2)
    size, summed_distance = first.sum(-1), (tables * distance).sum(axis=(-2, -1))
    return np.concatenate([size[..., None], summed_distance[..., None], first, second], axis=-1)


@dataclass(frozen=True)
class Sample:
    """Estimate and precision of the data.

    `estimate` (...) is the statistic's value, `clusters` the number of clusters,
    `effective_clusters` that of equal clusters with the same information, and `stretch` (...) the
    ratio of the jackknife's standard deviation to that of the influence, a linear approximation.
    """

    estimate: Array
    clusters: float
    effective_clusters: float
    stretch: Array


@dataclass(frozen=True)
class _Null:
    """Distribution of the estimate if the true weights are `weights` (..., support), which add up
    to 1 and under which the statistic has this `value` (...) and `influence` (..., support).
    """

    weights: Array
    value: Array
    influence: Array
    sample: Sample

    @classmethod
    def at(cls, weights: Array, statistic: Statistic, sample: Sample) -> _Null:
        """Return the null at weights that need not add up to 1."""
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return cls(weights, *statistic.at(weights), sample)

    @cached_property
    def variance(self) -> Array:
        """Variance of one cluster's influence."""
        return np.asarray((self.weights * self.influence**2).sum(axis=-1))

    @cached_property
    def standard_error(self) -> Array:
        """Standard error of the estimate."""
        return np.asarray(np.sqrt(self.variance / self.sample.clusters) * self.sample.stretch)

    def quantile(self, alpha: float) -> Array:
        """Return the standard errors by which estimates exceed the value in `alpha` of samples."""
        skewness, freedom, uniformity = self.shape()
        normal = -float(ndtri(alpha))
        correction = _skewness_correction(np.array(normal), skewness, uniformity)
        return np.asarray(stdtrit(freedom, 1.0 - alpha) / normal * (normal + correction))

    @property
    def distance(self) -> Array:
        """Standard errors by which the estimate lies above the value."""
        difference: Array = self.sample.estimate - self.value
        return difference / np.maximum(self.standard_error, _TINY)

    def shape(self) -> tuple[Array, Array, Array]:
        """Return the estimate's skewness, the degrees of freedom of its standard deviation, and the
        uniformity of errors: 1 if clusters err in one way only, because skewness and kurtosis then
        determine each other (Pearson's inequality), and less if they err in several ways.
        """
        variance, n = np.maximum(self.variance, _TINY), self.sample.clusters
        squared = self.influence * self.influence  # much faster than higher powers by `**`
        weighted = self.weights * squared
        cluster_skewness = (weighted * self.influence).sum(axis=-1) / variance**1.5
        kurtosis = (weighted * squared).sum(axis=-1) / variance**2
        freedom = 2.0 * n / np.maximum(kurtosis - 1.0 - cluster_skewness**2, 1e-9)
        max_freedom = max(self.sample.effective_clusters - 1.0, 1.0)
        uniformity = (1.0 + cluster_skewness**2) / np.maximum(kurtosis, 1.0)
        skewness = np.maximum(cluster_skewness / math.sqrt(n), _MIN_SKEWNESS)
        return skewness, np.clip(freedom, min(_MIN_FREEDOM, max_freedom), max_freedom), uniformity

    def moved(self, statistic: Statistic, distance: Array) -> _Null:
        """Return the null whose value is further by about `distance`, by exponential tilting."""
        tilt = distance / np.maximum(self.variance, _TINY)
        factors = np.exp(np.clip(tilt[..., None] * self.influence, -_MAX_TILT, _MAX_TILT))
        return _Null.at(self.weights * factors, statistic, self.sample)


def _skewness_correction(normal: Array, skewness: Array, uniformity: Array) -> Array:
    """Return Cornish & Fisher's skewness correction of a normal quantile, plus `_CONTINUITY`."""
    continuity = _CONTINUITY * np.maximum(-skewness, 0.0) * uniformity**2
    return np.asarray(skewness * (normal**2 - 1.0) / 6.0 + continuity)


def lower_bound(statistic: Statistic, sample: Sample, alpha: float) -> Array:
    """Return the lower bound (...) that misses in `alpha` of samples.

    In the example two raters agree on 30 units, half of them yes: they may still differ on one in
    ten of all units, so that kappa may be as low as .79.

    >>> agreeing = np.zeros((2, 1, 2, 2)); agreeing[0, 0, 0, 0] = agreeing[1, 0, 1, 1] = 1.0
    >>> differing = agreeing[:, :, :, ::-1]
    >>> points, base = np.concatenate([agreeing, differing]), np.array([15, 15, 0.125, 0.125])
    >>> distance = 1.0 - np.eye(2)
    >>> kappa = Kappas(table_sums(points, distance), distance, np.zeros(4), base)
    >>> sample = Sample(np.array(1.0), 30, 30, np.array(1.0))
    >>> round(float(lower_bound(kappa, sample, 0.025)), 2)
    0.79
    """
    null = start = _Null.at(statistic.base, statistic, sample)
    bound = np.full(np.shape(sample.estimate), np.nan)
    previous_value, previous_excess = sample.estimate, np.full(bound.shape, _EXCESS_AT_ESTIMATE)
    for _ in range(_MAX_STEPS):
        excess = null.distance - null.quantile(alpha)  # above 0 where the data contradict the null
        is_crossed = np.isnan(bound) & (excess > 0)
        gap = np.where(is_crossed, previous_excess - excess, 1.0)
        share = np.where(is_crossed, previous_excess / gap, 0.0)
        bound = np.where(is_crossed, previous_value + share * (null.value - previous_value), bound)
        if not (np.isnan(bound) & np.isfinite(null.value)).any():
            break
        previous_value, previous_excess = null.value, excess
        null = null.moved(statistic, -_STEP * null.standard_error)
    # Without a crossing, either no labels lead further (the standard error fell to 0), and the
    # bound is the last value; or nothing is excluded, such as at a saddle point, where steps stop.
    last = np.minimum(null.value, sample.estimate)
    is_end = (null.standard_error < _STUCK) & (start.standard_error >= _STUCK)
    return np.where(np.isnan(bound), np.where(is_end, last, last - _KAPPA_RANGE), bound)


def both_bounds(statistic: Kappas, sample: Sample, alpha: float) -> Array:
    """Return the lower and the upper bound (2, ...), each of which misses in `alpha` of samples."""
    signs = np.array([1.0, -1.0]).reshape(2, *[1] * np.ndim(sample.estimate))
    linear, estimate = signs[..., None] * statistic.linear, signs * sample.estimate
    signed = replace(statistic, sign=signs * statistic.sign, linear=linear)
    return signs * lower_bound(signed, replace(sample, estimate=estimate), alpha)


def chance_above(statistic: Kappas, sample: Sample, null: Array) -> Array:
    """Return the approximate probability (...) that the statistic is above the value `null`, given
    the data: one minus the level at which the value would be the lower bound.
    """
    current = _Null.at(statistic.base, statistic, sample)
    for steps_left in range(_STEPS_TO_NULL, 0, -1):  # from the data to the value `null`
        current = current.moved(statistic, (null - current.value) / steps_left)
    skewness, freedom, uniformity = current.shape()
    distance = current.distance - _skewness_correction(current.distance, skewness, uniformity)
    return np.asarray(stdtr(freedom, distance - _OPTIMISM))


def first_contradicted(
    weights: Array, value: Array, influence: Array, sample: Sample, alpha: float
) -> Array:
    """Return the first value (...) on a path of nulls that the data contradict at level `alpha`, or
    the last value if there is none. `weights` and `influence` (..., steps, support) are those of
    the nulls, `value` (..., steps) falls from the estimate of the `sample`, which is (..., 1).
    """
    null = _Null(weights, value, influence, sample)
    excess = null.distance - null.quantile(alpha)
    is_crossed = excess > 0
    has_crossing = is_crossed.any(axis=-1, keepdims=True)
    # The value is interpolated between the steps before and after the crossing. They are the same
    # one if the first step is contradicted already, or none is, so that the last one counts.
    after = np.where(has_crossing, is_crossed.argmax(axis=-1, keepdims=True), excess.shape[-1] - 1)
    before = np.where(has_crossing, np.maximum(after - 1, 0), after)
    steps = np.concatenate([before, after], axis=-1)
    excess_before, excess_after = np.moveaxis(np.take_along_axis(excess, steps, -1), -1, 0)
    value_before, value_after = np.moveaxis(np.take_along_axis(value, steps, -1), -1, 0)
    gap = excess_before - excess_after
    share = np.divide(excess_before, gap, out=np.zeros_like(gap), where=gap < 0)
    return np.asarray(value_before + share * (value_after - value_before))
