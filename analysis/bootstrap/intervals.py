"""95% intervals from the replicates of a statistic, and of shares from sums over clusters.

`interval` returns percentile intervals: the 2.5% and 97.5% quantiles of the resamples (Efron 1979).
Resamples of n clusters vary too little, by sqrt((n - 1) / n), and ignore Student's t. Quantiles are
therefore taken further out, so that the interval of a mean is as wide as Student's (Hesterberg
2015, section 5.3). At 5 clusters the tail is 0.1% instead of 2.5%, at 250 it is 2.4%.

`widened` applies if resamples do not vary, for example because all raters agree. n identical
clusters exclude, at 97.5%, only that more than 1 - .025^(1/n) of all clusters differ from them: the
bound of Clopper & Pearson (1934) for 0 of n. The interval extends as far as that share of clusters,
each at an end of the statistic's range, could move the statistic: a kappa of 1 falls by that share
over the disagreement expected by chance, to 1 - share / (1 - pe).

`share_interval` and `share_bounds` bound a share p of units in clusters. Their common steps
(`bounds_from_variance`) need only p, its variance, and the numbers of units and clusters:

1. The effective sample size is p (1 - p) over the variance of p between samples of clusters.
2. Two kinds of equal clusters with the same p and variance take the place of the real ones.
3. Of these, the *carriers* have units with the rarer outcome. With y such units in a cluster, their
   effective number is (sum y)^2 / sum y^2. If it is small, the variance of p is hardly known.
4. The interval is Wilson's (1927) on the effective sample size, with Student's quantile in place of
   the normal one (Korn & Graubard 1998). Degrees of freedom: the carriers less one, at least two.
5. With few carriers it is needlessly wide: the score bounds of p (`ratio_bounds`) limit it.

`python -m benchmarks.corrected_rates` shows how often the truth lies outside. Known limitation: if
rates rise with the size of very unequal clusters, the truth lies above the interval too often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from evenhand.analysis import statistics
from evenhand.analysis.bootstrap.bounds import ALPHA, PSEUDO, Sample, first_contradicted
from evenhand.analysis.types import Array
from evenhand.study.settings.analysis import OrderedWeights

LEVEL = 0.95
Z = 1.959963984540054  # standard errors that a normal interval at `LEVEL` reaches on either side
MIN_CLUSTERS = 5  # fewer give no interval: their resamples do not show the spread
WARN_DEGENERATE, MAX_DEGENERATE = 0.01, 0.10
"""Shares of undefined resamples above which there is a warning, and no interval."""
_ROUNDING = 1e-12  # largest width, or variance, that counts as none, because of rounding errors
_TAIL = (1.0 - LEVEL) / 2.0
_MIN_FREEDOM = 2.0  # fewest degrees of freedom of Student's quantile
_MANY_CARRIERS = 30.0
"""Number of carriers from which the score bound is not computed: it differs from Wilson's by at
most a twenty-fifth of the interval."""


@dataclass(frozen=True)
class Deciding:
    """Level of the bounds that decide a verdict, and what they are compared with."""

    alpha: float = math.nan  # one-sided level; 0 if earlier looks spent the error, NaN: no bounds
    look: int = 1  # number of this interim analysis, from 1
    comparisons: int = 1  # number of comparisons whose bounds hold together
    next_alpha: float = 0.0  # level at the next interim analysis
    margin: float = math.nan  # how far a grader's kappa may lie below that of people; NaN: none
    margin_share: float = 0.0  # the margin as a share of people's kappa; 0 if it is a fixed number
    people: int = 0  # number of people who labelled, if a bound is for a population of people
    from_people: float = 0.0  # share of that bound's variance that comes from the choice of people
    bar: float = math.nan  # value that the statistic itself must clear; NaN: none

    @property
    def limits(self) -> tuple[float, ...]:
        """Values that the bounds are compared with in a decision."""
        if not math.isnan(self.margin):
            return (-self.margin, 0.0)  # of a difference: no worse than the margin; better
        return () if math.isnan(self.bar) else (self.bar,)

    @property
    def remarks(self) -> statistics.Remarks:
        """Remarks for the row's note."""
        level = (self.alpha, self.look, self.comparisons, self.next_alpha)
        applies = {
            statistics.Remark("decided_at", level): not math.isnan(self.alpha),
            statistics.Remark("margin", (self.margin,)): not math.isnan(self.margin),
            statistics.Remark("margin_share", (self.margin_share,)): self.margin_share > 0,
            statistics.Remark("people", (self.people, self.from_people)): self.people > 0,
        }
        return tuple(remark for remark, holds in applies.items() if holds)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval; NaN if undefined, with the reasons in `remarks`.

    If it is `deciding`, `low` and `high` are one-sided bounds at the level of a verdict.
    """

    estimate: float
    low: float
    high: float
    remarks: statistics.Remarks = ()
    deciding: Deciding | None = field(default=None, repr=False)

    @classmethod
    def undefined(cls, reason: statistics.Reason) -> Interval:
        """Return an undefined estimate, with the reason."""
        remark = reason if isinstance(reason, statistics.Remark) else statistics.Remark(reason)
        return cls(math.nan, math.nan, math.nan, (remark,))

    @classmethod
    def point(cls, estimate: float, note: statistics.Note = "") -> Interval:
        """Return an estimate without bounds."""
        return cls(estimate, math.nan, math.nan, statistics.join_notes(note))

    def as_deciding(self, deciding: Deciding | None) -> Interval:
        """Return the interval as bounds that decide a verdict, with their level and margin."""
        return replace(self, deciding=deciding)

    @property
    def note(self) -> str:
        """Text of the remarks."""
        return statistics.text_of(self.remarks)


def interval(
    values: Array,
    n_clusters: int,
    *,
    min_undefined_share: float | None = None,
    reason: statistics.Reason = "no_variation",
) -> Interval:
    """Return the estimate and its 95% interval from replicates (rows,), of which row 0 is the data.

    The share of undefined resamples is that of NaN in `values`, but at least `min_undefined_share`:
    a mean over pairs of raters that leaves out some undefined pairs is not NaN. `reason` explains
    an undefined estimate.
    """
    estimate = float(values[0])
    if np.isnan(estimate):
        return Interval.undefined(reason)
    if n_clusters < MIN_CLUSTERS:
        return Interval.point(estimate, statistics.Remark("too_few_clusters"))
    replicates = values[1:]
    if len(replicates) == 0:
        return Interval.point(estimate, statistics.Remark("not_resampled"))
    defined = replicates[~np.isnan(replicates)]
    nan_share = (len(replicates) - len(defined)) / len(replicates)
    undefined_share = max(nan_share, min_undefined_share or 0.0)
    code = "resamples_undefined"
    if undefined_share > MAX_DEGENERATE:
        code = "most_resamples_undefined"
    elif undefined_share > WARN_DEGENERATE:
        code = "many_resamples_undefined"
    # Resamples undefined for some pairs of raters count in part: rounded up, but for float errors.
    n_undefined = math.ceil(undefined_share * len(replicates) - 1e-9)
    remark = statistics.Remark(code, (n_undefined, len(replicates)))
    remarks: statistics.Remarks = (remark,) if undefined_share else ()
    if undefined_share > MAX_DEGENERATE:
        return Interval.point(estimate, remarks)
    return Interval(estimate, *percentile_bounds(defined, expanded_tail(n_clusters)), remarks)


@lru_cache(maxsize=4096)
def expanded_tail(n_clusters: int) -> float:
    """Return the share of resamples beyond each bound: 2.5%, or less for few clusters (Hesterberg
    2015). It is Phi(-sqrt(n / (n - 1)) t), with t the 97.5% quantile of Student's distribution on
    n - 1 degrees of freedom, like `ExpandProbs(0.025, n)` of the R package resample.

    >>> [round(expanded_tail(n), 4) for n in (5, 10, 20, 50, 250)]
    [0.001, 0.0086, 0.0159, 0.0212, 0.0242]
    """
    t = float(stdtrit(n_clusters - 1, 1.0 - _TAIL))
    return float(ndtr(-math.sqrt(n_clusters / (n_clusters - 1)) * t))


def percentile_bounds(replicates: Array, tail: float = _TAIL) -> tuple[float, float]:
    """Return the lower and upper quantile of resampled values (resamples,), with the share `tail`
    beyond each; interpolated like those of `np.quantile`, which takes four times as long.

    >>> [round(bound, 3) for bound in percentile_bounds(np.arange(101.0))]
    [2.5, 97.5]
    """
    positions = [share * (len(replicates) - 1) for share in (tail, 1.0 - tail)]
    neighbours = [(math.floor(position), math.ceil(position)) for position in positions]
    values = np.partition(replicates, sorted({*neighbours[0], *neighbours[1]}))
    low, high = (
        float(values[below]) + (position % 1.0) * float(values[above] - values[below])
        for position, (below, above) in zip(positions, neighbours, strict=True)
    )
    return low, high


@dataclass(frozen=True)
class Chance:
    """Humans' use of the categories, from which the disagreement expected by chance follows."""

    shares: Array  # of the categories in the humans' labels, (q,)
    ordered: OrderedWeights | None = None  # weights of the deciding kappa; None: labels unordered
    values: tuple[float, ...] = ()  # of the categories, if labels are numbers

    def disagreement(self, name: str) -> float:
        """Return 1 - pe for a statistic, from the raters' pooled shares; for AC and
        Brennan-Prediger from equal shares, with which it is largest. Weights are those of the
        statistic, else those of the deciding kappa.
        """
        entry = statistics.entry_for(name)
        if self.values:
            values = np.asarray(self.values)
            values = values / max(float(np.ptp(values)), 1e-300)
            if (entry.weights or self.ordered) == "linear":
                return float(self.shares @ np.abs(values[:, None] - values) @ self.shares)
            return float(2.0 * self.shares @ (values - self.shares @ values) ** 2)  # mean (x - y)^2
        positions = np.arange(len(self.shares))
        steps = np.abs(positions[:, None] - positions) / max(len(positions) - 1, 1)
        weights = entry.weights or (self.ordered or "identity")
        # `np.sign` is 1 for any two categories that differ.
        distance = {"identity": np.sign(steps), "linear": steps, "quadratic": steps**2}[weights]
        if entry.chance == "uniform":
            return float(distance.mean())
        return float(self.shares @ distance @ self.shares)


def unseen(n_clusters: float, tail: float = _TAIL) -> float:
    """Return the largest share of all clusters that may differ from the observed ones, if these are
    identical, at the one-sided level 1 - `tail`.

    >>> round(unseen(60), 4)
    0.0596
    """
    return float(1.0 - tail ** (1.0 / n_clusters))


def widened(
    interval: Interval,
    n_clusters: int,
    kind: statistics.Kind | None,
    chance_disagreement: float = 1.0,
) -> Interval:
    """Return an interval without width, widened as far as the number of clusters allows. Intervals
    with a width are returned unchanged, as are those of a "place", such as a median, which may have
    no width. The `kind` gives the statistic's range; None, for an unknown range, gives no bounds.
    With c = 1 / `chance_disagreement`, a "coefficient" is from 1 - c to 1, a "difference" from c
    below to c above the estimate, a "share" or "unit" from 0 to 1, any other from -1 to 1.

    >>> widened(Interval(1.0, 1.0, 1.0), 60, "coefficient", 0.5).low.__round__(4)
    0.8807
    """
    if kind == "place" or not interval.high - interval.low <= _ROUNDING:  # true also for NaN
        return interval
    if kind is None or n_clusters < 1:
        remarks = (*interval.remarks, statistics.Remark("no_resample_differs"))
        return Interval.point(interval.estimate, remarks)
    estimate, share = interval.estimate, unseen(n_clusters)
    largest_change = 1.0 / chance_disagreement if chance_disagreement > 0 else math.inf
    floor = 0.0 if kind in ("share", "unit") else -1.0  # lowest value of these kinds
    if kind == "coefficient":
        lowest, highest = 1.0 - largest_change, 1.0
    elif kind == "difference":
        lowest, highest = estimate - largest_change, estimate + largest_change
    else:
        lowest, highest = floor, 1.0
    # Bounds stay within 0 or -1 and 1; if the estimate lies outside, the bound is the estimate.
    low, high = estimate - share * (estimate - lowest), estimate + share * (highest - estimate)
    low, high = max(low, min(floor, estimate)), min(high, max(1.0, estimate))
    remarks = (*interval.remarks, statistics.Remark("as_clusters_allow", (n_clusters,)))
    return replace(interval, low=low, high=high, remarks=remarks)


def share_interval(
    interval: Interval, replicates: Array, n_units: int, n_clusters: int, reach: Reach | None = None
) -> Interval:
    """Return the interval with the bounds of a share, from its resampled values, `replicates`
    (resamples,); unchanged if it has no bounds, or if nothing varies (see `widened`). `reach` is
    for a share that is corrected by prediction-powered inference.
    """
    if math.isnan(interval.low) or n_clusters < 2:
        return interval
    variance = float(replicates[~np.isnan(replicates)].var()) * n_clusters / (n_clusters - 1)
    if variance < _ROUNDING:
        return interval
    low, high = bounds_from_variance(interval.estimate, variance, n_units, n_clusters, reach=reach)
    return replace(interval, low=min(low, interval.estimate), high=max(high, interval.estimate))


def share_bounds(part: Array, whole: Array, alpha: float = ALPHA) -> tuple[float, float, float]:
    """Return a share and its bounds, each of which misses in `alpha` of samples. `part` and `whole`
    (clusters,) are sums over clusters, weighted if clusters are. All are NaN if the whole is 0.

    >>> [round(value, 4) for value in share_bounds(np.array([1] * 29 + [0]), np.ones(30))]
    [0.9667, 0.832, 0.9984]
    """
    part, whole = part[whole > 0], whole[whole > 0]
    if not len(whole):
        return math.nan, math.nan, math.nan
    total, clusters = float(whole.sum()), len(whole)
    share = float(part.sum()) / total
    squares = float(((part - share * whole) ** 2).sum()) / total**2
    variance = squares * clusters / max(clusters - 1, 1)
    # Infinite units: they only matter for a share of 0 or 1, and one that varies is neither here.
    return share, *bounds_from_variance(share, variance, math.inf, clusters, alpha)


class Reach(NamedTuple):
    """Clusters that count for the bounds of a corrected share, and its score bounds, if any."""

    carriers: float  # effective number of labelled clusters (see the module); of a mean, of all
    below: float = math.inf  # distance down to the lower score bound; inf: Wilson's bound holds
    above: float = math.inf  # distance up to the upper score bound; likewise


@lru_cache(maxsize=4096)
def bounds_from_variance(
    share: float,
    variance: float,
    n_units: float,
    n_clusters: float,
    alpha: float = ALPHA,
    reach: Reach | None = None,
) -> tuple[float, float]:
    """Return both bounds of a share, each of which misses in `alpha` of samples, by the steps in
    the module's docstring. `variance` is that of the share between samples of clusters. With a
    `reach`, its carriers and score bounds are used. A corrected share that was clipped to 0 or 1
    still varies: it is taken to lie one unit inside.
    """
    if variance < _ROUNDING:
        unseen_share = unseen(n_clusters, alpha)  # all observed clusters are alike
        return share - unseen_share * share, share + unseen_share * (1.0 - share)
    inner_share = min(max(share, 1.0 / n_units), 1.0 - 1.0 / n_units)
    effective_n = inner_share * (1.0 - inner_share) / variance
    if reach is not None:
        low, high = wilson(inner_share, effective_n, alpha, reach.carriers)
        return max(low, share - reach.below), min(high, share + reach.above)
    cases, times = two_kinds_of_clusters(inner_share, variance, n_clusters)
    sizes = np.ones(len(cases))
    n_carriers = effective_carriers(cases, sizes, times)
    low, high = wilson(inner_share, effective_n, alpha, n_carriers)
    if n_carriers >= _MANY_CARRIERS * (1 - 1e-9):  # rounding errors
        return low, high
    score_low, score_high = ratio_bounds(cases, sizes, times, alpha)
    return max(low, score_low), min(high, score_high)


def two_kinds_of_clusters(share: float, variance: float, n_clusters: float) -> tuple[Array, Array]:
    """Return clusters of equal size, of two kinds, that take the place of the real ones: they have
    this share and `variance`, and the skewness of a binomial share. By kind, `cases` (2,) is the
    share of a cluster's units with the outcome, and `times` (2,) the number of clusters.

    If clusters of equal size cannot vary as much as the real ones do, there are fewer of them.

    A tenth of all units are cases: five of fifty clusters only, or with a tenth of that variance:

    >>> [part.round(2).tolist() for part in two_kinds_of_clusters(0.1, 0.09 / 49, 50)]
    [[1.0, 0.0], [5.0, 45.0]]
    >>> [part.round(2).tolist() for part in two_kinds_of_clusters(0.1, 0.009 / 49, 50)]
    [[0.24, 0.04], [15.29, 34.71]]
    """
    max_variance = share * (1.0 - share)
    cluster_variance = variance * (n_clusters - 1.0)
    if cluster_variance > max_variance:
        cluster_variance, n_clusters = max_variance, 1.0 + max_variance / variance
    deviation = math.sqrt(cluster_variance)
    skewness = (1.0 - 2.0 * share) * deviation / max_variance
    # Values at `upper` and -1 / `upper` deviations from the mean have this skewness.
    upper = (skewness + math.sqrt(skewness**2 + 4.0)) / 2.0
    cases = np.array([share + deviation * upper, share - deviation / upper])
    weight = 1.0 / (1.0 + upper**2)
    return np.clip(cases, 0.0, 1.0), np.array([weight, 1.0 - weight]) * n_clusters


def wilson(
    share: float, n: float, alpha: float = ALPHA, carriers: float = math.inf
) -> tuple[float, float]:
    """Return Wilson's bounds (1927) of a share of n, each of which misses in `alpha` of samples.

    n need not be whole. With an effective number of `carriers`, the quantile is Student's. Newcombe
    (1998, Table I) has 0.2553 to 0.3662 for 81 of 263 and 0 to 0.1611 for 0 of 20.

    >>> [round(bound, 4) for bound in (*wilson(81 / 263, 263), *wilson(0, 20))]
    [0.2553, 0.3662, 0.0, 0.1611]
    """
    freedom = max(carriers - 1.0, _MIN_FREEDOM)
    t = stdtrit(freedom, 1.0 - alpha) if math.isfinite(freedom) else ndtri(1.0 - alpha)
    t2 = float(t) ** 2
    middle = (share + t2 / (2.0 * n)) / (1.0 + t2 / n)
    half = math.sqrt(t2 * (share * (1.0 - share) / n + t2 / (4.0 * n * n))) / (1.0 + t2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


_TILTS = np.geomspace(0.02, 60.0, 32)
"""Steps of `ratio_bounds`: about the numbers of standard errors that they move the share by."""


def ratio_bounds(
    cases: Array, sizes: Array, times: Array, alpha: float = ALPHA, subtracted: Array | float = 0.0
) -> tuple[float, float]:
    """Return score bounds of sum(cases - subtracted) / sum(sizes), each missing in `alpha` of
    samples. `cases`, `sizes` and `subtracted` are by kind of cluster (kinds,), and `times` (kinds,)
    is the number of clusters of each kind.

    From the share in the data, walk down and up through samples in which it is lower or higher; a
    bound is the first share that the data contradict (`analysis.bootstrap.bounds`). These samples
    are the data with other weights, *tilted* exponentially by each cluster's influence on the share
    (Efron 1981). Their clusters, the *support* (3 x kinds,), are each kind as it is, without cases,
    and with cases only. The latter two were not observed and weigh `PSEUDO` clusters in all.
    """
    n_clusters, total_size = float(times.sum()), float(times @ sizes)
    numerators = cases - subtracted
    share, mean_size = float(times @ numerators) / total_size, total_size / n_clusters
    support_numerators = np.concatenate([numerators, 0.0 * sizes - subtracted, sizes - subtracted])
    support_sizes = np.tile(sizes, 3)
    support_times = np.concatenate([times, np.tile(times / n_clusters * PSEUDO / 2.0, 2)])
    # The influence of each cluster of the support on the share, and the share's standard error.
    influence = (support_numerators - share * support_sizes) / mean_size
    error = math.sqrt(float(support_times @ influence**2 / support_times.sum()) / n_clusters)
    # A tilt multiplies a cluster's weight by exp(tilt x influence / (error x clusters)). It is
    # negative on the way down to the lower bound, positive on the way up to the upper.
    sign = np.array([1.0, -1.0])[:, None]  # 1: lower bound, -1: upper bound
    exponents = -sign[..., None] * (_TILTS[:, None] / (error * n_clusters)) * influence
    weights = support_times * np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)  # (2, tilts, support)
    # The share in every tilted sample, (2, tilts), and each cluster's influence on that share.
    tilted_mean_size = weights @ support_sizes
    tilted_share = (weights @ support_numerators) / tilted_mean_size
    residuals = support_numerators - tilted_share[..., None] * support_sizes
    tilted_influence = residuals / tilted_mean_size[..., None]
    # `first_contradicted` walks down only: the upper bound is the lower one of the negative share.
    effective_clusters = total_size**2 / float(times @ sizes**2)
    stretch = np.array(math.sqrt(n_clusters / (n_clusters - 1.0)))  # see `Sample`
    sample = Sample(sign * share, n_clusters, effective_clusters, stretch)
    walk = weights, sign * tilted_share, sign[..., None] * tilted_influence
    low, negative_high = first_contradicted(*walk, sample, alpha)
    return float(low), -float(negative_high)


def effective_carriers(cases: Array, sizes: Array, times: Array) -> float:
    """Return the effective number of carriers (see the module); 0 if there is only one outcome.
    `cases` and `sizes` are by kind of cluster (kinds,), `times` (kinds,) their numbers.
    """
    numbers = []
    for values in (cases, sizes - cases, sizes):  # with the outcome, without it, and all
        squares = float(times @ values**2)
        numbers.append(float(times @ values) ** 2 / squares if squares > 0 else 0.0)
    return min(numbers)


def powered_reach(
    cases: Array, graded: Array, sizes: Array, times: Array, unlabelled: float
) -> Reach:
    """Return the reach of a share that is corrected by prediction-powered inference.

    By kind of labelled cluster (kinds,), of which there are `times`: people's `cases`, the grader's
    cases times the weight of the correction (`graded`), and the `sizes`. `unlabelled` is the part
    of the standard error that comes from units without a label; it is independent of the labelled
    part, so that their squares add up (Donner & Zou 2012).
    """
    labelled_part = float(times @ (cases - graded)) / float(times @ sizes)
    low, high = ratio_bounds(cases, sizes, times, subtracted=graded)
    unlabelled_reach = float(ndtri(1.0 - ALPHA)) * unlabelled
    below = math.hypot(labelled_part - low, unlabelled_reach)
    above = math.hypot(high - labelled_part, unlabelled_reach)
    return Reach(effective_carriers(cases, sizes, times), below, above)
