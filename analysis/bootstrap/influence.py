"""Bounds for verdicts, from each cluster's contribution to an estimate.

A verdict is wrong as often as its one-sided bound misses, and bootstrap quantiles miss too often in
small or unbalanced samples, where an estimate's spread and skewness are tied to its value. Here a
bound is a t bound on the clusters' influence, with the skewness taken out by Hall's monotone cubic
transformation (Hall 1992, section 3) and with the degrees of freedom that the influence's kurtosis
leaves (the variance's own variance, matched as Satterthwaite does). Nothing is drawn, so that
bounds far out in the tail cost no more. `python -m benchmarks.decisions` shows how often
verdicts taken from them are wrong.

Influence is the jackknife's: what the estimate loses without a cluster, times the other clusters.

Looking again after labelling more is another chance to be wrong (alpha spending). The default plan
is two looks at equal levels: one at the labels as they are, one after as many more as the first
advised. As the second look includes the labels of the first, both go wrong together more often than
independent looks, and each may spend more than half of the error (Pocock 1977; Lan & DeMets 1983).
The number of labels at the second look is not known at the first: four times as many are allowed
for. A tenth of the error is kept for further looks, of which each may spend half of what is left.

A study that declares its looks shares the whole error evenly among them, at equal steps, and has
none beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, stdtrit

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
