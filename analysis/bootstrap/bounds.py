"""Bounds for verdicts: from each cluster's contribution to an estimate, or taken at the null.

A verdict is wrong as often as its one-sided bound misses, and bootstrap quantiles miss too often in
small or unbalanced samples, where an estimate's spread and skewness are tied to its value. By
`reach` a bound is a t bound on the clusters' influence, with the skewness taken out by Hall's
monotone cubic transformation (Hall 1992, section 3) and with the degrees of freedom that the
influence's kurtosis leaves (the variance's own variance, matched as Satterthwaite does). Nothing is
drawn, so that bounds far out in the tail cost no more. `python -m benchmarks.decisions` shows how
often verdicts by the bounds here are wrong, and how often right.

Influence is the jackknife's: what the estimate loses without a cluster, times the other clusters.

Looking again after labelling more is another chance to be wrong (alpha spending). The default plan
is two looks at equal levels: one at the labels as they are, one after as many more as the first
advised. As the second look includes the labels of the first, both go wrong together more often than
independent looks, and each may spend more than half of the error (Pocock 1977; Lan & DeMets 1983).
The number of labels at the second look is not known at the first: four times as many are allowed
for. A tenth of the error is kept for further looks, of which each may spend half of what is left.

A study that declares its looks shares the whole error evenly among them, at equal steps, and has
none beyond.

By `lower_bound` a bound asks: could the data come from a grader at the margin? An interval about an
estimate ignores errors that have not occurred yet: where a grader was right on every unit its
estimate has no variance, and where one human slipped once it has nearly none. A score test uses the
variance that the estimate would have *if the bound's value were true* (Wilson 1927 for a share;
Tango 1998 and Farrington & Manning 1990 for differences at a margin). There the errors that the
value implies are included with their weight.

The sample is seen as weights on a support: the clusters that were observed and, with half a cluster
between them, the same clusters with other labels by the grader. The weights are moved along the
least favourable family, exponential tilting by the statistic's influence (Efron 1981; DiCiccio &
Romano 1990), in steps small enough for a statistic that is not linear. At each value on the way
the distance to the estimate is held against its standard deviation there: by Student's quantile,
with the skewness taken out by Cornish & Fisher's first term (Hall 1992, section 2.2). A bound is
the first value that the data clearly contradict, so that "the lower bound is above the margin"
is the test of a grader at the margin.

Degrees of freedom are those that the standard deviation at the null has: where errors are of one
kind only it follows from their share, and none are lost; else n / (kurtosis - 1 - skewness^2) pairs
of them, no more than the effective number of clusters less one.
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
"""How often a one-sided bound may miss."""
_DRAWS = 400_000
_SEED = 20231206


def influence(values: Array) -> Array:
    """Return each cluster's contribution, (clusters, ...), from data and jackknife (rows, ...). Row
    0 is the estimate, every other row the estimate without one cluster (or one group of them).

    >>> influence(np.array([2.0, 2.5, 2.0, 1.5])).tolist()
    [-1.0, 0.0, 1.0]
    """
    left_out = values[1:]
    return np.asarray((len(left_out) - 1) * (left_out.mean(axis=0) - left_out))


def reach(contributions: Array, alpha: float = ALPHA) -> float:
    """Distance from an estimate down to its lower bound; of the negative, up to its upper bound.
    `contributions` (clusters,) are the clusters' influence. NaN where nothing varies, for then they
    give no information on further clusters.

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
    normal: Array = stdtrit(freedom, 1.0 - alpha) / math.sqrt(n)
    # Hall's transformation inverted: the skewed ratios.
    flat = np.abs(skew) < 1e-9
    lean = np.where(flat, 1.0, skew)
    inside = 1.0 + lean * (normal - lean / (6.0 * n))
    return np.asarray(spread * np.where(flat, normal, 3.0 / lean * (np.cbrt(inside) - 1.0)))


def standard_error(contributions: Array) -> float:
    """Return the jackknife's standard error from the clusters' influence (clusters,)."""
    return float(contributions.std(ddof=1)) / math.sqrt(len(contributions))


def reach_over_people(
    reached: Array | float,
    people_variance: Array | float,
    people: int,
    clusters: float,
    alpha: float = ALPHA,
) -> Array:
    """Widen the reach of bounds (estimates,) from these raters to raters like these.

    `reached` is the reach for these raters, on `clusters` effective clusters.

    `people_variance` is the estimate's variance over raters. The variances over clusters and over
    raters add up (no interaction is subtracted, which errs on the safe side), with Satterthwaite's
    (1946) degrees of freedom for their sum.

    >>> reach_over_people(0.2, np.array([0.0, 0.01]), 3, 100).round(3).tolist()
    [0.2, 0.328]
    """
    quantile = stdtrit(max(clusters - 1.0, 1.0), 1.0 - alpha)
    units = np.maximum((reached / quantile) ** 2, 1e-18)
    both = units + people_variance
    freedom = both**2 / (units**2 / max(clusters - 1.0, 1.0) + people_variance**2 / (people - 1))
    wider: Array = np.sqrt(both / units) * stdtrit(freedom, 1.0 - alpha) / quantile
    return np.asarray(reached * wider)


def simultaneous_level(contributions: Array, alpha: float = ALPHA) -> float:
    """Level at which to bound each of several estimates so that all bounds hold but in `alpha`.

    `contributions` (clusters, estimates) come from the same clusters: the more strongly the
    estimates are correlated, the less is lost. It is the max-t of their joint normal limit, by
    simulation with a fixed seed (Hothorn, Bretz & Westfall 2008).

    >>> alike = np.array([[-1.0, -1.0], [1.0, 1.0]] * 20)
    >>> 0.024 < simultaneous_level(alike) <= 0.025
    True
    """
    varying = contributions[:, contributions.std(axis=0) > 0]
    if varying.shape[1] < 2:
        return alpha
    # Sorted, so that the result does not depend on raters' names: the draws depend on the order.
    varying = varying[:, np.argsort(varying.std(axis=0))]
    return level_together(np.asarray(np.corrcoef(varying, rowvar=False)), alpha)


def level_together(correlation: Array, alpha: float = ALPHA) -> float:
    """Level at which to bound each of several jointly normal estimates. All bounds then hold but in
    `alpha` of samples. `correlation` is (estimates, estimates). By simulation with a fixed seed.

    Two looks, the second at twice the labels (Pocock 1977, Table 1, has .0147 for two looks):

    >>> both = np.array([[1.0, 0.5**0.5], [0.5**0.5, 1.0]])
    >>> round(level_together(both), 3)
    0.015
    """
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T  # no sign left to chance
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(values)))
    highest = (root.T @ drawn.T).max(axis=0)  # four times as fast as along short rows
    level: float = float(ndtr(-np.quantile(highest, 1.0 - alpha)))
    # Sampling error must not carry it beyond one bound's level, or below Bonferroni's.
    return float(min(alpha, max(level, alpha / len(correlation))))


USUAL = 2
"""Looks at equal levels, where none are declared."""
_GROWTH = 4.0
"""Ratio of the labels at the second look to those at the first that is allowed for."""
_KEPT = 0.1
"""The share of the error that is kept for looks beyond the usual ones."""


@lru_cache(maxsize=256)
def level_of_look(look: int, declared: int = 0, alpha: float = ALPHA) -> float:
    """Return the one-sided level of a study's `look`, from 1; 0.0 where none is left. For look 0
    the level is 0.0, too.

    >>> [round(level_of_look(look), 4) for look in (1, 2, 3, 4)]
    [0.0123, 0.0123, 0.0013, 0.0006]
    >>> [round(level_of_look(look, declared=2), 3) for look in (1, 2, 3)]
    [0.015, 0.015, 0.0]
    """
    return _level(look, declared, alpha, _nested)


def level_of_reading(reading: int, declared: int = 0) -> float:
    """Return the one-sided level of the `reading`, from 1, of labels kept for a proof; 0.0 where
    none is left. As `level_of_look`, but readings may be of other graders and have nothing in
    common, so that levels add up to the error (Bonferroni).

    >>> [round(level_of_reading(reading), 5) for reading in (1, 2, 3, 4)]
    [0.01125, 0.01125, 0.00125, 0.00063]
    >>> [level_of_reading(reading, declared=2) for reading in (1, 2, 3)]
    [0.0125, 0.0125, 0.0]
    """
    return _level(reading, declared, ALPHA, lambda sizes, alpha: alpha / len(sizes))


def _level(at: int, declared: int, alpha: float, shared: Callable[[Array, float], float]) -> float:
    """Return the level of look or reading `at`; `shared` is that of each at samples of some sizes,
    so that all together go wrong in `alpha` of studies.
    """
    if not at or 0 < declared < at:
        return 0.0
    if declared:
        return shared(np.arange(1.0, declared + 1.0), alpha)
    if at <= USUAL:
        return shared(np.array([1.0, _GROWTH]), alpha * (1.0 - _KEPT))
    return float(alpha * _KEPT * 0.5 ** (at - USUAL))


def _nested(sizes: Array, alpha: float) -> float:
    """Return the level of each look at nested samples of these sizes."""
    if len(sizes) == 1:
        return alpha
    ratio = sizes[:, None] / sizes[None, :]
    return level_together(np.sqrt(np.minimum(ratio, 1.0 / ratio)), alpha)


PSEUDO = 0.5
"""Total weight, in clusters, of the labels that were not observed."""
_WHOLE = 0.15
"""Correction for whole numbers of errors. Where errors are few and of one kind, a quantile between
two counts is exceeded too often. Half an error (about half the skewness, in standard errors) would
keep every such sample within the level, at the price of most of the power where raters agree nearly
always; this value keeps the worst of them near it (`benchmarks.decisions`)."""
_MOST_SKEWED, _LEAST_FREEDOM = -1.5, 4.0
"""Beyond these the expansion does not hold. A value that implies so little error, less than half a
cluster in all, is never contradicted, so that no bound is found there."""
_TOO_SURE = 0.2
"""Standard errors by which a level read as a probability is too optimistic, in simulation with true
differences drawn evenly about the margin (benchmarks/results/deciding-bound.md)."""
_STEP = 0.25
"""Step of the null, in standard errors."""
_MOST_STEPS = 80
_MOST_TILT = 3.0
_TINY, _STUCK = 1e-12, 1e-4


class Statistic(Protocol):
    """A function of the weights of a support; `base` (..., support) are the weights of the data,
    with those of labels not observed.
    """

    @property
    def base(self) -> Array: ...

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return its value (...) and each point's influence on it (..., support)."""


@dataclass(frozen=True)
class Kappas:
    """Mean kappa of tables of two raters, each counting by its size, plus a term linear in the
    weights, as a function of the weights.

    `sums` (support, tables, 2 + 2q) are what each point of the support adds to each table
    (`table_sums`), `distance` (q, q) the distances of labels, from 0 to 1. With two `groups` of as
    many tables, the mean of the second is subtracted; `sign` (...) is 1, or -1 for a negative.
    `linear` (..., support) adds its mean under the weights: the part of the statistic that no label
    of the grader can change. `base` (..., support) are the weights of the data, with those of
    labels not observed.
    """

    sums: Array
    distance: Array
    linear: Array
    base: Array
    groups: int = 1
    sign: float | Array = 1.0

    @property
    def is_empty(self) -> bool:
        """True where there is no table."""
        return not self.sums.size

    def at(self, weights: Array) -> tuple[Array, Array]:
        """Return the statistic (...) and each point's influence on it (..., support). `weights`
        (..., support) add up to 1. NaN where no table has a kappa.
        """
        if self.is_empty:
            return np.full(weights.shape[:-1], np.nan), np.full(weights.shape, np.nan)
        flat = self.sums.reshape(len(self.sums), -1)
        sums = (weights @ flat).reshape(*weights.shape[:-1], *self.sums.shape[1:])
        kappas, slope = kappas_of(sums, self.distance, groups=self.groups)
        moves = np.asarray(self.sign)[..., None] * (slope.reshape(*weights.shape[:-1], -1) @ flat.T)
        mean = (weights * self.linear).sum(axis=-1)
        value: Array = self.sign * kappas + mean
        return value, moves + (self.linear - mean[..., None])


def kappas_of(sums: Array, distance: Array, groups: int = 1) -> tuple[Array, Array]:
    """Return the mean kappa (...) of tables, each counting by its size, and its gradient
    (..., tables, 2 + 2q), from `sums` (..., tables, 2 + 2q) as `table_sums` gives them.

    kappa is 1 - d S / (f' D s) with the size S, the summed distance d and the margins f and s. Of
    two `groups` of as many tables, the mean of the second is subtracted. Tables without
    disagreement expected by chance are left out; NaN where none is left.
    """
    q = len(distance)
    size, apart = sums[..., 0], sums[..., 1]
    first, second = sums[..., 2 : 2 + q], sums[..., 2 + q :]
    of_first, of_second = second @ distance.T, first @ distance
    chance = (first * of_first).sum(axis=-1)
    is_defined = chance > _TINY * np.maximum(size, _TINY) ** 2
    if groups > 1:
        both = is_defined.reshape(*is_defined.shape[:-1], groups, -1).all(axis=-2)
        is_defined = np.concatenate([both] * groups, axis=-1)
    signs = np.repeat([1.0, -1.0][:groups], sums.shape[-2] // groups)
    e, s = np.where(is_defined, chance, 1.0), np.where(is_defined, size, 0.0)
    total = s.sum(axis=-1, keepdims=True) / groups
    total = np.where(total > 0, total, np.nan)
    value: Array = (signs * (s - apart * s * s / e)).sum(axis=-1) / total[..., 0]
    slope = np.zeros_like(sums)
    of_size = signs * (1.0 - 2.0 * s * apart / e) - value[..., None] / groups
    slope[..., 0] = np.where(is_defined, of_size, 0.0) / total
    slope[..., 1] = -signs * s * s / e / total
    pull = (signs * apart * s * s / e**2 / total)[..., None]
    slope[..., 2 : 2 + q], slope[..., 2 + q :] = pull * of_first, pull * of_second
    return value, slope


def table_sums(tables: Array, distance: Array) -> Array:
    """Return the size, the summed distance and both margins, (..., 2 + 2q), of tables (..., q, q):
    all that kappa with these distances (q, q) depends on.
    """
    first, second = tables.sum(axis=-1), tables.sum(axis=-2)
    apart = (tables * distance).sum(axis=(-2, -1))
    return np.concatenate([first.sum(-1)[..., None], apart[..., None], first, second], axis=-1)


@dataclass(frozen=True)
class Sample:
    """Estimate and precision of the data.

    `estimate` (...) is the statistic's value, `clusters` their number, `worth` the number of equal
    clusters that they are worth, and `stretch` (...) the ratio of the jackknife's standard
    deviation to that of the influence, which ignores that the statistic is not linear.
    """

    estimate: Array
    clusters: float
    worth: float
    stretch: Array


@dataclass(frozen=True)
class _Null:
    """Distribution of the estimate if the statistic has the value that it has under the weights."""

    weights: Array
    value: Array
    influence: Array
    sample: Sample

    @cached_property
    def variance(self) -> Array:
        return np.asarray((self.weights * self.influence**2).sum(axis=-1))

    @cached_property
    def standard_error(self) -> Array:
        error: Array = np.sqrt(self.variance / self.sample.clusters) * self.sample.stretch
        return error

    def quantile(self, alpha: float) -> Array:
        """Standard errors above the value that the estimate exceeds in `alpha` of samples."""
        skewness, freedom, alike = self.shape()
        normal = -float(ndtri(alpha))
        wider = stdtrit(freedom, 1.0 - alpha) / normal
        return np.asarray(wider * (normal + _bent(np.array(normal), skewness, alike)))

    @property
    def distance(self) -> Array:
        """Standard errors by which the estimate lies above the value."""
        away: Array = (self.sample.estimate - self.value) / np.maximum(self.standard_error, _TINY)
        return away

    def shape(self) -> tuple[Array, Array, Array]:
        """Return skewness, degrees of freedom, and how far the errors are of one kind.

        Skewness is the estimate's, the degrees of freedom those of its standard deviation.

        The last is 1 where a cluster either errs or not, for then skewness and kurtosis determine
        each other (Pearson's inequality), and less where it errs in many ways.
        """
        variance, n = np.maximum(self.variance, _TINY), self.sample.clusters
        squared = self.influence * self.influence  # powers above the second are slow
        part = self.weights * squared
        third = (part * self.influence).sum(axis=-1) / variance**1.5
        fourth = (part * squared).sum(axis=-1) / variance**2
        freedom = 2.0 * n / np.maximum(fourth - 1.0 - third**2, 1e-9)
        most = max(self.sample.worth - 1.0, 1.0)
        alike = (1.0 + third**2) / np.maximum(fourth, 1.0)
        skewness = np.maximum(third / math.sqrt(n), _MOST_SKEWED)
        return skewness, np.clip(freedom, min(_LEAST_FREEDOM, most), most), alike

    def moved(self, statistic: Statistic, distance: Array) -> _Null:
        """Return the null at a value further off."""
        tilt = distance / np.maximum(self.variance, _TINY)
        grown = np.exp(np.clip(tilt[..., None] * self.influence, -_MOST_TILT, _MOST_TILT))
        weights = self.weights * grown
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return _Null(weights, *statistic.at(weights), self.sample)


def _bent(normal: Array, skewness: Array, alike: Array) -> Array:
    """Return the skewness correction of a quantile, and the margin for whole numbers of errors."""
    whole = _WHOLE * np.maximum(-skewness, 0.0) * alike**2
    return np.asarray(skewness * (normal**2 - 1.0) / 6.0 + whole)


def _begin(statistic: Statistic, sample: Sample) -> _Null:
    weights = statistic.base / statistic.base.sum(axis=-1, keepdims=True)
    return _Null(weights, *statistic.at(weights), sample)


def lower_bound(statistic: Statistic, sample: Sample, alpha: float) -> Array:
    """Return the lower bound (...) that fails in `alpha` of samples. Thirty units on which two
    raters agree throughout, half of them yes: as many as one in ten may still be different, so that
    kappa may be as low as .79.

    >>> same = np.zeros((2, 1, 2, 2)); same[0, 0, 0, 0] = same[1, 0, 1, 1] = 1.0
    >>> other = same[:, :, :, ::-1]
    >>> points, base = np.concatenate([same, other]), np.array([15.0, 15.0, 0.125, 0.125])
    >>> apart = 1.0 - np.eye(2)
    >>> kappa = Kappas(table_sums(points, apart), apart, np.zeros(4), base)
    >>> sample = Sample(np.array(1.0), 30, 30, np.array(1.0))
    >>> round(float(lower_bound(kappa, sample, 0.025)), 2)
    0.79
    """
    at = start = _begin(statistic, sample)
    bound = np.full(np.shape(sample.estimate), np.nan)
    before_value, before = sample.estimate, np.full(bound.shape, -2.0)
    for _ in range(_MOST_STEPS):
        beyond = at.distance - at.quantile(alpha)
        crossed = np.isnan(bound) & (beyond > 0)
        share = np.where(crossed, before / np.where(crossed, before - beyond, 1.0), 0.0)
        bound = np.where(crossed, before_value + share * (at.value - before_value), bound)
        if not (np.isnan(bound) & np.isfinite(at.value)).any():
            break
        before_value, before = at.value, beyond
        at = at.moved(statistic, -_STEP * at.standard_error)
    # Either no labels lead any further, and the truth may lie as far as this; or nothing is ruled
    # out, as where the data themselves are at a saddle point, from which no step leads.
    ended = np.minimum(at.value, sample.estimate)
    reached = (at.standard_error < _STUCK) & (start.standard_error >= _STUCK)
    ended = np.where(reached, ended, ended - 2.0)
    return np.where(np.isnan(bound), ended, bound)


def both_bounds(statistic: Kappas, sample: Sample, alpha: float) -> Array:
    """Return the lower and the upper bound (2, ...), each of which fails in `alpha` of samples."""
    sides = np.array([1.0, -1.0]).reshape(2, *[1] * np.ndim(sample.estimate))
    linear, estimate = sides[..., None] * statistic.linear, sides * sample.estimate
    either = replace(statistic, sign=sides * statistic.sign, linear=linear)
    return sides * lower_bound(either, replace(sample, estimate=estimate), alpha)


def chance_above(statistic: Kappas, sample: Sample, null: Array) -> Array:
    """Approximate probability (...) that the statistic is above a value, given the data. It is one
    minus the level at which the value would be the lower bound.
    """
    at = _begin(statistic, sample)
    for left in range(24, 0, -1):
        at = at.moved(statistic, (null - at.value) / left)
    skewness, freedom, alike = at.shape()
    bent = at.distance - _bent(at.distance, skewness, alike)
    return np.asarray(stdtr(freedom, bent - _TOO_SURE))


def first_contradicted(
    weights: Array, value: Array, influence: Array, sample: Sample, alpha: float
) -> Array:
    """Return the first value (...) on a path of nulls that `alpha` of samples would contradict.
    `weights` and `influence` (..., steps, support) are those of the nulls, `value` (..., steps)
    falls from the estimate, which is (..., 1). The last value, where none is contradicted.
    """
    null = _Null(weights, value, influence, sample)
    beyond = null.distance - null.quantile(alpha)
    crossed = beyond > 0
    after = np.where(crossed.any(axis=-1), crossed.argmax(axis=-1), -1)[..., None]
    before = np.where(after > 0, after - 1, after)
    near, far = (np.take_along_axis(beyond, at, axis=-1)[..., 0] for at in (before, after))
    first, last = (np.take_along_axis(value, at, axis=-1)[..., 0] for at in (before, after))
    step = np.divide(near, near - far, out=np.zeros_like(near), where=near < far)
    return np.asarray(first + step * (last - first))
