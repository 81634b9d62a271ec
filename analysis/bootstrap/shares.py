"""Interval of a share of units in clusters: the one that every share in the results has.

*Wilson's* (1927) on the effective sample size, p (1 - p) over the variance that the clusters give
p, with Student's t in place of the normal quantile (Korn & Graubard 1998). Few clusters may carry
all of the rarer outcome, and then its variance is hardly known: the degrees of freedom are the
effective number of clusters that carry it, (sum y)^2 / sum y^2, less one, and at least two.

*Never beyond the score bound* of the share (`analysis.bootstrap.score`), whose sample has half a
cluster more, of nothing but the outcome or of none of it. With t on two degrees of freedom Wilson's
interval is needlessly wide; a share of independent units has the score bound nearly always.

Of the clusters the share, its variance, and the numbers of units and clusters are used, so that
resamples serve as well as sums over clusters: `alike` makes equal clusters of two kinds with the
same share and variance. Where nothing varies the bounds are Clopper & Pearson's (1934) for none of
so many clusters.

`python -m benchmarks.corrected_rates` shows how often the truth lies outside. Open: where rates
rise with the size of very unequal clusters, it lies above too often.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval, unseen
from evenhand.analysis.bootstrap.score import PSEUDO, Sample, first_contradicted
from evenhand.analysis.types import Array

_NO_VARIANCE = 1e-12
_LEAST_FREEDOM = 2.0
_ENOUGH_CARRIERS = 30.0
"""With so many clusters that carry the rarer outcome, the score bound lies within Wilson's by at
most a twenty-fifth of the interval, and is not computed."""
_PATH = np.geomspace(0.02, 60.0, 32)
"""Tilts of the sample, in standard errors to the first order, at which nulls are looked at."""


def share_interval(
    found: Interval, drawn: Array, n_units: int, n_clusters: int, reach: Reach | None = None
) -> Interval:
    """Return `found` with the bounds of a share, whose resampled values are `drawn`.

    Unchanged where there is no interval, or where nothing varies (see `boundary.widened`). With
    a `reach` the share is one that is corrected by prediction-powered inference.
    """
    if math.isnan(found.low) or n_clusters < 2:
        return found
    variance = float(np.nanvar(drawn)) * n_clusters / (n_clusters - 1)
    if variance < _NO_VARIANCE:
        return found
    low, high = bounds(found.estimate, variance, n_units, n_clusters, reach=reach)
    return replace(found, low=min(low, found.estimate), high=max(high, found.estimate))


def share_bounds(part: Array, whole: Array, alpha: float = ALPHA) -> tuple[float, float, float]:
    """Return a share and its bounds, each of which fails in `alpha` of samples.

    `part` and `whole` (clusters,) are sums over clusters, weighted where clusters are. (NaN, NaN,
    NaN) where the whole is 0.

    >>> [round(each, 4) for each in share_bounds(np.array([1] * 29 + [0]), np.ones(30))]
    [0.9667, 0.832, 0.9984]
    """
    part, whole = part[whole > 0], whole[whole > 0]
    if not len(whole):
        return math.nan, math.nan, math.nan
    total, clusters = float(whole.sum()), len(whole)
    share = float(part.sum()) / total
    squares = float(((part - share * whole) ** 2).sum()) / total**2
    variance = squares * clusters / max(clusters - 1, 1)
    return share, *bounds(share, variance, total, clusters, alpha)


class Reach(NamedTuple):
    """Score reach `below` and `above` a corrected share, and the effective number of clusters that
    carry the rarer outcome, `carriers`.
    """

    below: float
    above: float
    carriers: float


def bounds(
    share: float,
    variance: float,
    n_units: float,
    n_clusters: float,
    alpha: float = ALPHA,
    reach: Reach | None = None,
) -> tuple[float, float]:
    """Return both bounds of a share, each of which fails in `alpha` of samples.

    `variance` is that of the share between samples of clusters. A share of 0 or 1 that varies, as
    one may that is corrected and moved back into its range, counts as one unit.
    """
    if variance < _NO_VARIANCE:
        away = unseen(n_clusters, alpha)
        return share - away * share, share + away * (1.0 - share)
    near = min(max(share, 1.0 / n_units), 1.0 - 1.0 / n_units)
    size = near * (1.0 - near) / variance
    if reach is not None:
        low, high = wilson(near, size, alpha, reach.carriers)
        return max(low, share - reach.below), min(high, share + reach.above)
    cases, times = alike(near, variance, n_clusters)
    sizes = np.ones(len(cases))
    carry = carriers(cases, sizes, times)
    low, high = wilson(near, size, alpha, carry)
    if carry >= _ENOUGH_CARRIERS:
        return low, high
    first, last = ratio_bounds(cases, sizes, times, alpha)
    return max(low, first), min(high, last)


def alike(share: float, variance: float, n_clusters: float) -> tuple[Array, Array]:
    """Return equal clusters of two kinds whose share has this variance.

    `cases` (2,) is the part of a cluster that has the outcome and `times` (2,) the number of such
    clusters. Their skewness is that of a binomial share with this variance. Where clusters cannot
    vary as much, since some are larger than others, they are fewer.

    Five of fifty clusters have cases only; or clusters of ten units have one or two:

    >>> [each.round(2).tolist() for each in alike(0.1, 0.09 / 49, 50)]
    [[1.0, 0.0], [5.0, 45.0]]
    >>> [each.round(2).tolist() for each in alike(0.1, 0.009 / 49, 50)]
    [[0.24, 0.04], [15.29, 34.71]]
    """
    spread = share * (1.0 - share)
    square = variance * (n_clusters - 1.0)
    if square > spread:
        square, n_clusters = spread, 1.0 + spread / variance
    deviation = math.sqrt(square)
    skewness = (1.0 - 2.0 * share) * deviation / spread
    above = (skewness + math.sqrt(skewness**2 + 4.0)) / 2.0
    cases = np.array([share + deviation * above, share - deviation / above])
    part = 1.0 / (1.0 + above**2)
    return np.clip(cases, 0.0, 1.0), np.array([part, 1.0 - part]) * n_clusters


def wilson(
    share: float, n: float, alpha: float = ALPHA, carriers: float = math.inf
) -> tuple[float, float]:
    """Return Wilson's bounds (1927) of a share of n, each of which fails in `alpha` of samples.

    n need not be whole. With the number of clusters that carry the rarer outcome, `carriers`, the
    quantile is Student's. Newcombe (1998, Table I) has 0.2553 to 0.3662 for 81 of 263 and 0 to
    0.1611 for 0 of 20.

    >>> [round(bound, 4) for bound in (*wilson(81 / 263, 263), *wilson(0, 20))]
    [0.2553, 0.3662, 0.0, 0.1611]
    """
    from scipy.special import ndtri, stdtrit

    freedom = max(carriers - 1.0, _LEAST_FREEDOM)
    t = stdtrit(freedom, 1.0 - alpha) if math.isfinite(freedom) else ndtri(1.0 - alpha)
    t2 = float(t) ** 2
    middle = (share + t2 / (2.0 * n)) / (1.0 + t2 / n)
    half = math.sqrt(t2 * (share * (1.0 - share) / n + t2 / (4.0 * n * n))) / (1.0 + t2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def ratio_bounds(
    cases: Array, sizes: Array, times: Array, alpha: float = ALPHA, less: Array | float = 0.0
) -> tuple[float, float]:
    """Return both score bounds of sum (cases - less) / sum sizes, each failing in `alpha` of
    samples.

    `cases`, `sizes` and what is taken `less` are by kind of cluster (kinds,), of which there are
    `times`. Between them half a cluster is added that has as many cases as units, or none. The
    weights are tilted by the influence at the estimate in both directions, and the bounds are the
    first nulls on the way that the data contradict.
    """
    clusters, own = float(times.sum()), cases - less
    total = float(times @ sizes)
    share, mean = float(times @ own) / total, total / clusters
    part = np.concatenate([own, 0.0 * sizes - less, sizes - less])
    whole = np.tile(sizes, 3)
    base = np.concatenate([times, np.tile(times / clusters * PSEUDO / 2.0, 2)])
    influence = (part - share * whole) / mean
    error = math.sqrt(float(base @ influence**2) / float(base.sum()) / clusters)
    towards = np.array([-1.0, 1.0])[:, None, None]
    tilt = towards * (_PATH[:, None] / (error * clusters)) * influence
    weights = base * np.exp(tilt - tilt.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    size = weights @ whole
    value = (weights @ part) / size
    influence = (part - value[..., None] * whole) / size[..., None]
    sample = Sample(
        -towards[..., 0] * share,
        clusters,
        total**2 / float(times @ sizes**2),
        np.array(math.sqrt(clusters / (clusters - 1.0))),
    )
    found = first_contradicted(
        weights, -towards[..., 0] * value, -towards * influence, sample, alpha
    )
    return float(found[0]), -float(found[1])


def carriers(cases: Array, sizes: Array, times: Array) -> float:
    """Return the effective number of clusters that carry the rarer outcome.

    `cases` and `sizes` are by kind of cluster (kinds,), of which there are `times`. 0 where there
    is no case, or nothing else.
    """
    found = []
    for each in (cases, sizes - cases, sizes):
        squares = float(times @ each**2)
        found.append(float(times @ each) ** 2 / squares if squares > 0 else 0.0)
    return min(found)


def powered_reach(cases: Array, graded: Array, sizes: Array, times: Array, beside: float) -> Reach:
    """Return the reach of a share that is corrected by prediction-powered inference.

    By kind of labelled cluster (kinds,), of which there are `times`: people's `cases`, the
    grader's times the weight of the correction, `graded`, and the `sizes`. The part of the
    standard error that lies in units without a label, `beside`, is independent of them and adds
    in squares (Donner & Zou 2012).
    """
    from scipy.special import ndtri

    inside = float(times @ (cases - graded)) / float(times @ sizes)
    low, high = ratio_bounds(cases, sizes, times, less=graded)
    rest = float(ndtri(1.0 - ALPHA)) * beside
    return Reach(
        math.hypot(inside - low, rest),
        math.hypot(high - inside, rest),
        carriers(cases, sizes, times),
    )
