"""The exact sweep over thresholds: the best one, and those not significantly worse.

Verdicts change only at probabilities that occur, so every distinct one is tried, as well as the
threshold in use and 1. Among equally good thresholds the one nearest to that in use is taken.

The best threshold jumps from one probability to another, so the bootstrap of it promises nothing
(Abrevaya & Huang 2005). Its interval inverts a comparison instead: it spans all thresholds
whose objective is not significantly below the best one's, in the same resamples.

A tuned threshold looks better on the units it was tuned on than it is, so it is also judged on
clusters that it was not tuned on. The clusters are split into ten folds; each fold's verdicts are
made with the threshold that is best on the other nine. Agreement of those verdicts is what tuning
is worth elsewhere.

The threshold to use is one of three:

- *tuned*: the tuned threshold wins on held-out items: the lower bound of its gain over the default,
  on clusters that it was not tuned on, lies above 0.
- *not_identifiable*: the data cannot tell. Fewer than 30 clusters; or neither the tuned nor the
  default threshold agrees with the reference beyond chance (lower bounds of kappa); or nothing wins
  and the interval of the threshold spans more than half of the scale.
- *default*: everything else; the default is as good as can be shown.

The last two keep the default.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples
from evenhand.analysis.labels.encoding import cluster_codes, same_length
from evenhand.analysis.statistics import Remark
from evenhand.analysis.types import Array, Codes, Column, Labels, Mask, Numbers
from evenhand.errors import InputError

CURVE_POINTS = 41
"""Thresholds at which the whole course of an objective is kept, spread over those that occur."""
CRITICAL = 1.96
"""Standard errors that a threshold may lie below the best. The best is picked, so a threshold's
distance from it is not normal: near the optimum the objective is a Brownian motion minus a parabola
(Kim & Pollard 1990). By simulation of that limit the interval, from the lowest to the highest
threshold kept, holds the true optimum in 98.8% of samples at 1.96 and in 95% at 1.56; at moderate n
it holds it less often than in the limit, hence not less (benchmarks/results/calibration.md)."""

_CACHED_CELLS = 40_000
"""Outcomes counted at a time: they stay in the processor's cache."""
_NO_DIFFERENCE = 1e-12
_DECIMALS = 12
_UNDEFINED_IS_NAN = np.errstate(invalid="ignore")


@dataclass(frozen=True)
class Outcomes:
    """Counts of verdicts against a reference: how many of those `affirmed` by the reference are
    `hits`, and how many of the `others` are affirmed falsely (`false`).

    Whole numbers as floating point, so that equal objectives are equal to the last bit: each is one
    quotient of whole numbers. Arrays that broadcast; leading axes are resamples.
    """

    hits: Array
    false: Array
    affirmed: Array
    others: Array

    @cached_property
    def units(self) -> Array:
        """Number of units."""
        return self.affirmed + self.others

    @cached_property
    def verdicts(self) -> Array:
        """Number of affirmative verdicts."""
        return self.hits + self.false

    @cached_property
    def beyond_chance(self) -> Array:
        """The share of hits minus the share of false ones, over a common denominator."""
        return self.hits * self.others - self.false * self.affirmed


def _kappa(given: Outcomes) -> Array:
    room = given.verdicts * ((given.others - given.affirmed) / 2.0)
    return given.beyond_chance / (room + given.affirmed * given.units / 2.0)


OBJECTIVES: dict[str, Callable[[Outcomes], Array]] = {
    "kappa": _UNDEFINED_IS_NAN(_kappa),
    "agreement": _UNDEFINED_IS_NAN(lambda of: (of.hits - of.false + of.others) / of.units),
    "f1": _UNDEFINED_IS_NAN(lambda of: 2.0 * of.hits / (of.verdicts + of.affirmed)),
    "youden": _UNDEFINED_IS_NAN(lambda of: of.beyond_chance / (of.affirmed * of.others)),
    "prevalence": _UNDEFINED_IS_NAN(
        lambda of: (of.units - np.abs(of.verdicts - of.affirmed)) / of.units
    ),
}
"""Objectives of tuning: Cohen's kappa; observed agreement; F1 of the affirmative verdict;
sensitivity + specificity - 1 (Youden 1950); 1 minus the distance between the two shares of
affirmative verdicts. In closed form, as millions of outcomes go through them; NaN where undefined.
"""


@dataclass(frozen=True)
class Curve:
    """An objective's course: thresholds (points,) ascending, values (rows, points), row 0 the data.
    `complete` means that no threshold that occurs lies between two points.
    """

    thresholds: Array
    values: Array
    complete: bool


@dataclass(frozen=True)
class Sweep:
    """Tuned thresholds of every resample (rows,), their value there, and the objective's course.
    Row 0 is the data.
    """

    threshold: Array
    tuned: Array
    curve: Curve


@dataclass(frozen=True)
class Candidates:
    """The thresholds worth trying on some probabilities, nearest to the default first. For the
    units that the reference affirms, and for the others: the `clusters` that they are in, sorted by
    probability, and how many of them lie `below` each threshold.
    """

    thresholds: Array
    clusters: tuple[Codes, Codes]
    below: tuple[Codes, Codes]

    @classmethod
    def of(cls, positive: Array, affirmed: Mask, clusters: Codes, default: float) -> Candidates:
        """Collect every distinct probability of some units (units,), the default, and 1."""
        thresholds = np.unique(np.concatenate([positive, [default, 1.0]]))
        thresholds = thresholds[np.argsort(np.abs(thresholds - default), kind="stable")]
        order = np.argsort(positive)
        kinds = (order[affirmed[order]], order[~affirmed[order]])
        of_first, of_second = (np.searchsorted(positive[kind], thresholds) for kind in kinds)
        return cls(thresholds, (clusters[kinds[0]], clusters[kinds[1]]), (of_first, of_second))

    def outcomes(self, weights: Numbers) -> Outcomes:
        """Count the outcomes of each threshold in each resample, (rows, thresholds). `weights`
        (rows, clusters) are how much each cluster counts.
        """
        counted, whole = [], np.issubdtype(weights.dtype, np.integer)
        for clusters, below in zip(self.clusters, self.below, strict=True):
            counts = weights.take(clusters, axis=1)
            shape = counts.shape[0], counts.shape[1] + 1
            running = np.zeros(shape, dtype=np.int32 if whole else float)
            np.cumsum(counts, axis=1, dtype=running.dtype, out=running[:, 1:])
            everything = running[:, -1:].astype(np.float64)
            counted.append((everything - running.take(below, axis=1), everything))
        (hits, affirmed), (false, others) = counted
        return Outcomes(hits, false, affirmed, others)

    def spread(self, besides: Codes) -> Codes:
        """Choose `CURVE_POINTS` thresholds at most, spread evenly over all of them, plus the
        default and those in `besides`: positions, ascending by threshold.
        """
        ascending = np.argsort(self.thresholds)
        points = min(CURVE_POINTS, len(ascending))
        even = ascending[np.linspace(0, len(ascending) - 1, points).round().astype(np.intp)]
        chosen = np.unique(np.concatenate([even, besides, [0]]))
        return chosen[np.argsort(self.thresholds[chosen])]


def best_of(values: Array) -> Codes:
    """The first of the best (rows,) of values (rows, thresholds); 0 where none is defined. As the
    thresholds nearest to the default come first, that is the one that changes least.
    """
    best: Codes = values.argmax(axis=1)  # takes an undefined value for the best
    lost = np.flatnonzero(np.isnan(values[np.arange(len(best)), best]))
    best[lost] = np.where(np.isnan(values[lost]), -np.inf, values[lost]).argmax(axis=1)
    return best


def values_of(objective: str, outcomes: Outcomes, *, whole: bool) -> Array:
    """An objective's values at outcomes that are whole numbers, or sums of weights: these are
    rounded, so that what is equal but for rounding is equal.
    """
    values = OBJECTIVES[objective](outcomes)
    return values if whole else values.round(_DECIMALS)


def sweep(
    positive: Array, reference: Labels, clusters: Codes, resamples: Resamples, default: float
) -> dict[str, Sweep]:
    """Tune the threshold of probabilities (units,) to a reference (units,) of 0 and 1. One sweep
    for each objective. Resamples that leave the objective undefined have NaN.
    """
    candidates = Candidates.of(positive, reference == 1, clusters, default)
    first = candidates.outcomes(resamples.mass[None, :])
    whole = resamples.weight is None
    best_on_data = [best_of(values_of(name, first, whole=whole))[0] for name in OBJECTIVES]
    points = candidates.spread(np.array(best_on_data, dtype=np.intp))
    chunks: dict[str, list[tuple[Codes, Array, Array]]] = {name: [] for name in OBJECTIVES}
    step = max(1, _CACHED_CELLS // len(candidates.thresholds))
    for block in resamples.blocks():
        for start in range(0, len(block), step):
            outcomes = candidates.outcomes(block[start : start + step])
            for objective in OBJECTIVES:
                values = values_of(objective, outcomes, whole=whole)
                best = best_of(values)
                reached = values[np.arange(len(best)), best]
                chunks[objective].append((best, reached, values[:, points]))
    sweeps, tried = {}, candidates.thresholds
    for objective, parts in chunks.items():
        best, tuned, course = (np.concatenate(blocks) for blocks in zip(*parts, strict=True))
        curve = Curve(tried[points], course, complete=len(points) == len(tried))
        threshold = np.where(np.isnan(tuned), np.nan, tried[best])
        sweeps[objective] = Sweep(threshold, tuned, curve)
    return sweeps


def threshold_interval(swept: Sweep, resamples: Resamples, n_clusters: int) -> Interval:
    """The tuned threshold with its 95% interval, by inverting paired comparisons.

    From the lowest to the highest threshold that lies no more than `CRITICAL` standard errors of
    the paired difference below the best. Between two points of the curve nothing was compared, so
    the interval reaches to the next point that is ruled out; below the lowest probability
    verdicts change no more, so it reaches to 0 there.
    """
    plain = resamples.interval(swept.threshold, n_clusters)
    if np.isnan(plain.low):
        return plain
    at, values = swept.curve.thresholds, swept.curve.values
    # A resample without both verdicts cannot distinguish thresholds.
    behind = np.nan_to_num(values[:, [int(np.flatnonzero(at == plain.estimate)[0])]] - values)
    kept = np.flatnonzero(behind[0] <= CRITICAL * behind[1:].std(axis=0) + _NO_DIFFERENCE)
    low = float(at[kept[0] - 1]) if kept[0] else 0.0
    after = int(kept[-1]) + (0 if swept.curve.complete else 1)
    high = float(at[after]) if after < len(at) else 1.0
    return replace(plain, low=low, high=high)


_FOLDS = 10


def folds(clusters: Codes) -> Codes:
    """Assign a fold, 0 to 9, to each unit (units,). Clusters stay whole, and the largest go first
    to the emptiest fold.

    >>> folds(np.array([0, 0, 1, 2])).tolist()
    [0, 0, 1, 2]
    """
    _, cluster_of_unit, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    held = np.zeros(min(_FOLDS, max(len(sizes), 1)), dtype=np.intp)
    fold = np.empty(len(sizes), dtype=np.intp)
    for cluster in np.argsort(-sizes, kind="stable"):
        fold[cluster] = held.argmin()
        held[fold[cluster]] += sizes[cluster]
    return fold[cluster_of_unit.reshape(-1)]


def held_out_thresholds(
    positive: Array, reference: Labels, clusters: Codes, default: float, weight: Array | None = None
) -> dict[str, Array]:
    """Thresholds (units,) by objective, each tuned on the other folds than the unit's own.
    `positive` are probabilities (units,); units whose `reference` is -1 are not tuned on, but get a
    threshold too. `weight` (units,) is how much each counts. Empty with a single cluster.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return {}
    thresholds = {objective: np.full(len(positive), default) for objective in OBJECTIVES}
    for held_out in range(int(fold.max()) + 1):
        train, test = np.flatnonzero((fold != held_out) & (reference >= 0)), fold == held_out
        places = np.arange(len(train))
        counts: Numbers = np.ones(len(train), dtype=np.int64)
        if weight is not None:
            counts = weight[train]
        candidates = Candidates.of(positive[train], reference[train] == 1, places, default)
        outcomes = candidates.outcomes(counts[None])
        for objective in OBJECTIVES:
            values = values_of(objective, outcomes, whole=weight is None)
            thresholds[objective][test] = candidates.thresholds[best_of(values)[0]]
    return thresholds


def held_out_verdicts(
    positive: Array, reference: Labels, clusters: Codes, default: float, weight: Array | None = None
) -> dict[str, Mask]:
    """Verdicts (units,) by objective, made with these thresholds."""
    by_objective = held_out_thresholds(positive, reference, clusters, default, weight)
    return {objective: positive >= thresholds for objective, thresholds in by_objective.items()}


def verdict_outcomes(
    verdict: Mask, affirmed: Mask, clusters: Codes, resamples: Resamples
) -> Outcomes:
    """Count the outcomes of verdicts (units,) against a reference (units,), in every resample
    (rows,).
    """
    cells = verdict & affirmed, verdict & ~affirmed, affirmed, ~affirmed
    return Outcomes(*resamples.sums(clusters, *cells).T)


MIN_CLUSTERS = 30
TOO_WIDE = 0.5
"""An interval of the threshold that spans more than this says nothing of where to put it."""

Kind = Literal["tuned", "default", "not_identifiable"]


@dataclass(frozen=True)
class Advice:
    """Advised threshold, the kind of advice, and the reason."""

    kind: Kind
    threshold: float
    reason: Remark


@dataclass(frozen=True)
class Calibration:
    """Result of tuning a threshold to one objective.

    `threshold` is the tuned one with its interval, `value` the objective there on the units tuned
    on, `at_default` the objective at the `default`. `gain` is tuned minus default, held out; None
    where there is one cluster only.
    """

    objective: str
    default: float
    threshold: Interval
    value: float
    at_default: Interval
    gain: Interval | None
    advice: Advice
    curve: Curve


def calibrate(
    positive: Array,
    reference: Labels,
    clusters: Codes,
    resamples: Resamples,
    n_clusters: int,
    default: float,
) -> dict[str, Calibration]:
    """Tune the threshold of probabilities (units,) to a reference (units,) of 0 and 1. Results are
    by objective. Both verdicts must occur in the reference; `n_clusters` is the number of clusters
    of the units.
    """
    affirmed = reference == 1
    weight = None if resamples.weight is None else resamples.weight[clusters]
    held_out = held_out_verdicts(positive, reference, clusters, default, weight)

    def kappa(outcomes: Outcomes) -> Interval:
        return resamples.interval(OBJECTIVES["kappa"](outcomes), n_clusters)

    by_default = verdict_outcomes(positive >= default, affirmed, clusters, resamples)
    default_kappa = kappa(by_default)
    calibrations = {}
    for objective, swept in sweep(positive, reference, clusters, resamples, default).items():
        function = OBJECTIVES[objective]
        usual = function(by_default)
        threshold = threshold_interval(swept, resamples, n_clusters)
        gain, informative = None, default_kappa
        if objective in held_out:
            elsewhere = verdict_outcomes(held_out[objective], affirmed, clusters, resamples)
            gain = resamples.interval(function(elsewhere) - usual, n_clusters)
            informative = kappa(elsewhere)
        calibrations[objective] = Calibration(
            objective=objective,
            default=default,
            threshold=threshold,
            value=float(swept.tuned[0]),
            at_default=resamples.interval(usual, n_clusters),
            gain=gain,
            advice=advise(threshold, default, gain, informative, default_kappa, n_clusters),
            curve=swept.curve,
        )
    return calibrations


def advise(
    threshold: Interval,
    default: float,
    gain: Interval | None,
    held_out_kappa: Interval,
    default_kappa: Interval,
    n_clusters: int,
) -> Advice:
    """Tuned, default, or not identifiable; decided from bounds (see the module)."""
    informed = held_out_kappa.low > 0
    if n_clusters < MIN_CLUSTERS:
        return Advice("not_identifiable", default, Remark("few_clusters", (MIN_CLUSTERS,)))
    if not informed and not default_kappa.low > 0:
        return Advice("not_identifiable", default, Remark("agrees_by_chance"))
    if threshold.estimate == default:
        return Advice("default", default, Remark("no_better_threshold"))
    if gain is not None and gain.low > 0 and informed:
        return Advice("tuned", threshold.estimate, Remark("wins_held_out"))
    if threshold.high - threshold.low > TOO_WIDE:
        return Advice("not_identifiable", default, Remark("interval_too_wide"))
    return Advice("default", default, Remark("does_not_win_held_out"))


def draws_needed(threshold: float) -> int:
    """Smallest number of draws for a threshold: shares of k draws come in steps of 1 / k, and fewer
    than this leave no step between the threshold and the nearer end of the scale. 1 at the ends.

    >>> draws_needed(0.1), draws_needed(0.5), draws_needed(0.95), draws_needed(1.0)
    (10, 2, 20, 1)
    """
    nearer = min(threshold, 1.0 - threshold)
    return int(np.ceil(1.0 / nearer - 1e-9)) if nearer > 0 else 1


@dataclass(frozen=True, kw_only=True)
class TunedThreshold(Interval):
    """The threshold that matches a reference best, what it is worth, and whether to use it.

    `estimate` is the threshold, with its 95% interval (see `analysis.thresholds.sweep`); `value` is
    the objective on the units tuned on, `at_default` at the threshold in use; `held_out_gain` is
    tuned minus default on clusters not tuned on, `gain_low` its lower bound. `recommended` is the
    threshold to use, `advice` is "tuned", "default" or "not_identifiable" (see `Advice`), and
    `reason` explains it.
    """

    value: float
    at_default: float
    held_out_gain: float
    gain_low: float
    recommended: float
    advice: Kind
    reason: str


def tune_threshold(
    positive: Column[float],
    reference: Column[int],
    *,
    objective: str = "kappa",
    default: float = 0.5,
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> TunedThreshold:
    """Sweep every threshold of probabilities (units,) against verdicts (units,), exactly.

    `objective` is "kappa", "agreement", "f1", "youden" or "prevalence" (see
    `analysis.thresholds.sweep.OBJECTIVES`); `clusters` (units,) are resampled, or else units.

    >>> positive = [0.1, 0.2, 0.35, 0.6, 0.3, 0.4, 0.7, 0.9] * 5
    >>> found = tune_threshold(positive, [p > 0.25 for p in positive])
    >>> found.estimate, found.value, round(found.at_default, 3), found.advice
    (0.3, 1.0, 0.333, 'tuned')
    """
    scores, verdicts = np.asarray(positive, dtype=float), np.asarray(reference, dtype=bool)
    same_length(scores, verdicts)
    if objective not in OBJECTIVES:
        names = ", ".join(OBJECTIVES)
        raise InputError(f"the objective is {objective!r}; it must be one of {names}")
    if np.isnan(scores).any() or len(np.unique(verdicts)) < 2:
        raise InputError(
            "a threshold needs a probability for every item and both verdicts in the reference"
        )
    of = cluster_codes(clusters, len(scores))
    n = int(of.max()) + 1
    resamples = (bootstrap or Bootstrap()).draw(np.ones(n))
    tuned = calibrate(scores, verdicts.astype(np.int8), of, resamples, n, default)[objective]
    gain = tuned.gain or Interval(np.nan, np.nan, np.nan)
    return TunedThreshold(
        **vars(tuned.threshold),
        value=tuned.value,
        at_default=tuned.at_default.estimate,
        held_out_gain=gain.estimate,
        gain_low=gain.low,
        recommended=tuned.advice.threshold,
        advice=tuned.advice.kind,
        reason=tuned.advice.reason.text,
    )
