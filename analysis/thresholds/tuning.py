"""Graders with probabilities: tune their thresholds, measure their calibration, and find the
confidence above which they can label without a person.

Each of the three parts of the file begins with functions of arrays and ends with functions that add
rows to the results. The *reference* of all figures is people's majority, or another rater.

**Thresholds.** A verdict is affirmative from the threshold up, and changes only at probabilities
that occur. Candidates are these, the default and 1; of equals the nearest to the default is best.

The best threshold jumps from one probability to another, so its bootstrap interval is not valid
(Abrevaya & Huang 2005). Its interval inverts a comparison instead: it spans all thresholds whose
objective is not significantly below the best, in the same resamples.

A tuned threshold is evaluated on held-out clusters, as it looks too good on the units that it was
tuned on. The clusters are split into ten folds, and each fold's verdicts are made with the
threshold that is best on the other nine (`held_out_thresholds`).

The advice is one of three; the last two keep the default:

- *tuned*: on held-out clusters, the lower bound of the gain over the default lies above 0.
- *not_identifiable*: there are fewer than 30 clusters; or neither threshold agrees with the
  reference beyond chance (lower bounds of kappa); or the tuned threshold has no such gain and an
  interval of more than half of the scale.
- *default*: all other cases.

**Calibration**: Brier score, calibration error and reliability, also after recalibration by an
isotonic curve that was fitted on other clusters. Every row has the method by which the probability
was obtained (token probabilities, share of draws, stated); graders with several methods are split
before (`analysis.labels.encoding`).

Shares in bins of few units differ from probabilities by chance, so that the mean distance of a
perfectly calibrated grader is far from 0. The calibration error is therefore the root of the mean
squared distance, which can be debiased exactly (Kumar, Liang & Ma 2019). Reliability, the share of
affirmative verdicts at each stated probability, needs no bins: its curve is the isotonic regression
of the reference on the probability (Dimitriadis, Gneiting & Jordan 2021).

**Routing**: described where its part begins.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtr

from evenhand.analysis.agreement.coefficients import is_tied, label_counts, majority_codes
from evenhand.analysis.agreement.pairs import KappaMeans
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, count_labels, ratio
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, with_weights
from evenhand.analysis.labels.scale import Origin, Scale, Tuning
from evenhand.analysis.people.comparison import CEILING, with_and_among_humans
from evenhand.analysis.request import Request
from evenhand.analysis.requirement import POWER
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.types import Array, Clusters, Codes, Column, DataFrame, Labels, Mask, Numbers
from evenhand.analysis.writer import About, Counts, RubricView, Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings
from evenhand.texts import written

CURVE_POINTS = 41
"""Thresholds at which an objective's curve is kept, spread over those that occur."""
CRITICAL = 1.96
"""Standard errors that a threshold may lie below the best. Its distance from the best, which is
selected, is not normal: near the optimum the objective is a Brownian motion minus a parabola (Kim &
Pollard 1990). In simulations of that limit the interval covers the true optimum in 98.8% of samples
at 1.96, and in 95% at 1.56. Coverage is lower at moderate n (benchmarks/results/calibration.md)."""

_CACHED_CELLS = 40_000
"""Outcomes counted at a time, so that they stay in the processor's cache."""
_TOLERANCE, _DECIMALS = 1e-12, 12
"""Tolerance and decimals of objectives: smaller differences are rounding errors."""
_NO_WARNING = np.errstate(invalid="ignore")
"""Decorator of functions in which 0 / 0 gives NaN without a warning."""


class Graded(NamedTuple):
    """A grader's probabilities of the affirmative label (`positive`), the units' `clusters`, the
    verdicts of a `reference` (1, 0, or -1 for none), and `weight`, None if all are 1; all (units,).
    """

    positive: Array
    reference: Numbers
    clusters: Codes
    weight: Array | None = None

    @classmethod
    def of(cls, labels: LabelMatrix, grader: int, reference: Labels, units: Mask) -> Graded:
        """Return the probabilities of a grader (column) on some units of the labels."""
        positive, clusters = labels.positive[units, grader], labels.clusters[units]
        return cls(positive, reference[units], clusters, labels.weight_of(units))

    def on(self, units: Mask) -> Graded:
        """Return the same on some of the units."""
        weight = None if self.weight is None else self.weight[units]
        return Graded(self.positive[units], self.reference[units], self.clusters[units], weight)


@dataclass(frozen=True)
class Outcomes:
    """Counts of verdicts against a reference: `hits` among the units `affirmed` by the reference,
    and `false_alarms` among the `others`.

    Counts are whole numbers in floating point, and each objective is one quotient of these, so that
    equal objectives are equal to the last bit. Arrays broadcast; leading axes are resamples.
    """

    hits: Array
    false_alarms: Array
    affirmed: Array
    others: Array

    @cached_property
    def units(self) -> Array:
        """Number of units."""
        return self.affirmed + self.others

    @cached_property
    def verdicts(self) -> Array:
        """Number of affirmative verdicts."""
        return self.hits + self.false_alarms

    @cached_property
    def beyond_chance(self) -> Array:
        """Numerator of the share of hits minus the share of false alarms."""
        return self.hits * self.others - self.false_alarms * self.affirmed


def _kappa(outcomes: Outcomes) -> Array:
    """Return Cohen's kappa, as one quotient of counts."""
    # Numerator and denominator are po - pe and 1 - pe, both times half the squared number of units.
    half_difference = (outcomes.others - outcomes.affirmed) / 2.0
    denominator = outcomes.verdicts * half_difference + outcomes.affirmed * outcomes.units / 2.0
    return outcomes.beyond_chance / denominator


OBJECTIVES: dict[str, Callable[[Outcomes], Array]] = {
    "kappa": _NO_WARNING(_kappa),
    "agreement": _NO_WARNING(lambda n: (n.hits - n.false_alarms + n.others) / n.units),
    "f1": _NO_WARNING(lambda n: 2.0 * n.hits / (n.verdicts + n.affirmed)),
    "youden": _NO_WARNING(lambda n: n.beyond_chance / (n.affirmed * n.others)),
    "prevalence": _NO_WARNING(lambda n: (n.units - np.abs(n.verdicts - n.affirmed)) / n.units),
}
"""Objectives of tuning: Cohen's kappa; observed agreement; F1 of the affirmative verdict;
sensitivity + specificity - 1 (Youden 1950); 1 minus the distance between the two shares of
affirmative verdicts. Closed forms, as they are computed millions of times; NaN where undefined.
"""


class Curve(NamedTuple):
    """An objective by threshold: thresholds (points,) ascending, values (rows, points), row 0 the
    data. `complete` is True if no candidate threshold lies between two points.
    """

    thresholds: Array
    values: Array
    complete: bool


class Sweep(NamedTuple):
    """Tuned thresholds, the objective's values there, (rows,) each, and its curve; row 0: data."""

    threshold: Array
    best_value: Array
    curve: Curve


class Candidates(NamedTuple):
    """Candidate thresholds, nearest to the default first. The other fields are pairs, for the units
    that the reference affirms and for those that it does not: the units' `clusters` in ascending
    order of probability, and the number of units `below` each threshold (thresholds,).
    """

    thresholds: Array
    clusters: tuple[Codes, Codes]
    below: tuple[Codes, Codes]

    @classmethod
    def of(cls, graded: Graded, default: float) -> Candidates:
        """Return every distinct probability, the default, and 1 as candidates."""
        positive, clusters, order = graded.positive, graded.clusters, np.argsort(graded.positive)
        thresholds = np.unique(np.concatenate([positive, [default, 1.0]]))
        thresholds = thresholds[np.argsort(np.abs(thresholds - default), kind="stable")]
        is_affirmed = graded.reference[order] == 1
        affirmed, others = order[is_affirmed], order[~is_affirmed]
        below, others_below = (
            np.searchsorted(positive[part], thresholds) for part in (affirmed, others)
        )
        return cls(thresholds, (clusters[affirmed], clusters[others]), (below, others_below))

    def outcomes(self, weights: Numbers) -> Outcomes:
        """Return outcomes (rows, thresholds) by resample, whose weights are (rows, clusters)."""
        above_and_total, is_whole = [], np.issubdtype(weights.dtype, np.integer)
        for clusters, below in zip(self.clusters, self.below, strict=True):
            # Weight from each threshold up: all units' weight, less that of the units below.
            counts = weights.take(clusters, axis=1)
            shape = counts.shape[0], counts.shape[1] + 1
            cumulative = np.zeros(shape, dtype=np.int32 if is_whole else float)
            np.cumsum(counts, axis=1, dtype=cumulative.dtype, out=cumulative[:, 1:])
            total = cumulative[:, -1:].astype(np.float64)
            above_and_total.append((total - cumulative.take(below, axis=1), total))
        (hits, affirmed), (false_alarms, others) = above_and_total
        return Outcomes(hits, false_alarms, affirmed, others)

    def curve_points(self, included: Codes) -> Codes:
        """Return positions of at most `CURVE_POINTS` thresholds, spread evenly over all of them,
        plus the default and those `included`, ascending by threshold.
        """
        ascending = np.argsort(self.thresholds)
        points = min(CURVE_POINTS, len(ascending))
        evenly = ascending[np.linspace(0, len(ascending) - 1, points).round().astype(np.intp)]
        chosen = np.unique(np.concatenate([evenly, included, [0]]))
        return chosen[np.argsort(self.thresholds[chosen])]


def nearest_best(values: Array) -> Codes:
    """Return the positions (rows,) of the best of values (rows, thresholds): of equally good ones
    the first, which is nearest to the default; 0 where none is defined.
    """
    best: Codes = values.argmax(axis=1)  # a NaN counts as the largest
    with_nan = np.flatnonzero(np.isnan(values[np.arange(len(best)), best]))
    best[with_nan] = np.nan_to_num(values[with_nan], nan=-np.inf).argmax(axis=1)
    return best


def objective_values(objective: str, outcomes: Outcomes, *, is_whole: bool) -> Array:
    """Return an objective's values, rounded unless outcomes are whole numbers, to find ties."""
    values = OBJECTIVES[objective](outcomes)
    return values if is_whole else values.round(_DECIMALS)


def sweep(graded: Graded, resamples: Resamples, default: float) -> dict[str, Sweep]:
    """Tune to each objective in data and resamples; all units have a reference. NaN: undefined."""
    candidates = Candidates.of(graded, default)
    outcomes, is_whole = candidates.outcomes(resamples.mass[None, :]), resamples.weight is None
    on_data = [objective_values(name, outcomes, is_whole=is_whole) for name in OBJECTIVES]
    points = candidates.curve_points(np.array([nearest_best(values)[0] for values in on_data]))
    # By objective, for each chunk of resamples: positions of the best thresholds (chunk,), values
    # there (chunk,), and values at the points of the curve (chunk, points).
    chunks: dict[str, list[tuple[Codes, Array, Array]]] = {name: [] for name in OBJECTIVES}
    step = max(1, _CACHED_CELLS // len(candidates.thresholds))
    for block in resamples.weighted_blocks():
        for start in range(0, len(block), step):
            outcomes = candidates.outcomes(block[start : start + step])
            for objective in OBJECTIVES:
                values = objective_values(objective, outcomes, is_whole=is_whole)
                best = nearest_best(values)
                best_values = values[np.arange(len(best)), best]
                chunks[objective].append((best, best_values, values[:, points]))
    sweeps, thresholds = {}, candidates.thresholds
    for objective, parts in chunks.items():
        best, values, at_points = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        curve = Curve(thresholds[points], at_points, complete=len(points) == len(thresholds))
        tuned = np.where(np.isnan(values), np.nan, thresholds[best])
        sweeps[objective] = Sweep(tuned, values, curve)
    return sweeps


def threshold_interval(swept: Sweep, resamples: Resamples, n_clusters: int) -> Interval:
    """Return the tuned threshold with its 95% interval, by inverting paired comparisons.

    It spans all thresholds at most `CRITICAL` standard errors of the paired difference below the
    best. Below, it extends to the next point of the curve or 0, as thresholds between candidates
    give the verdicts of the upper one; above, only if candidates between points were not compared.
    """
    interval = resamples.interval(swept.threshold, n_clusters)
    if np.isnan(interval.low):
        return interval
    thresholds, values = swept.curve.thresholds, swept.curve.values
    best = int(np.flatnonzero(thresholds == interval.estimate)[0])
    # A resample without both verdicts cannot distinguish thresholds: its shortfalls are 0.
    shortfall = np.nan_to_num(values[:, [best]] - values)
    not_worse = np.flatnonzero(shortfall[0] <= CRITICAL * shortfall[1:].std(axis=0) + _TOLERANCE)
    first, last = int(not_worse[0]), int(not_worse[-1])
    low = float(thresholds[first - 1]) if first > 0 else 0.0
    end = last if swept.curve.complete else last + 1
    return replace(interval, low=low, high=float(thresholds[end]) if end < len(thresholds) else 1.0)


_FOLDS = 10  # most folds


def folds(clusters: Codes) -> Codes:
    """Return the fold, 0 to 9, of each unit (units,). Each cluster is in one fold; from the largest
    on, each goes to the fold with the fewest units.

    >>> folds(np.array([0, 0, 1, 2])).tolist()
    [0, 0, 1, 2]
    """
    _, cluster_of_unit, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    sizes_of_folds = np.zeros(min(_FOLDS, max(len(sizes), 1)), dtype=np.intp)
    fold = np.empty(len(sizes), dtype=np.intp)
    for cluster in np.argsort(-sizes, kind="stable"):
        fold[cluster] = sizes_of_folds.argmin()
        sizes_of_folds[fold[cluster]] += sizes[cluster]
    return fold[cluster_of_unit.reshape(-1)]


def held_out_thresholds(graded: Graded, default: float) -> dict[str, Array]:
    """Return a threshold for each unit (units,), by objective, tuned on all folds but the unit's.
    Units without a reference have a threshold, but are not tuned on. Empty with a single cluster.
    """
    fold = folds(graded.clusters)
    if fold.max(initial=0) < 1:
        return {}
    thresholds = {objective: np.full(len(fold), default) for objective in OBJECTIVES}
    for held_out in range(int(fold.max()) + 1):
        training = graded.on((fold != held_out) & (graded.reference >= 0))
        n, weight = len(training.positive), training.weight
        # Without resamples, each unit may be a cluster, so that weights are those of the units.
        candidates = Candidates.of(training._replace(clusters=np.arange(n)), default)
        weights: Numbers = np.ones(n, np.int64) if weight is None else weight
        outcomes = candidates.outcomes(weights[None])
        for objective in OBJECTIVES:
            values = objective_values(objective, outcomes, is_whole=weight is None)
            thresholds[objective][fold == held_out] = candidates.thresholds[nearest_best(values)[0]]
    return thresholds


def verdict_outcomes(graded: Graded, verdict: Mask, resamples: Resamples) -> Outcomes:
    """Return the outcomes (rows,) of verdicts (units,) against the reference."""
    affirmed = graded.reference == 1
    cells = verdict & affirmed, verdict & ~affirmed, affirmed, ~affirmed
    return Outcomes(*resamples.sums(graded.clusters, *cells).T)


MIN_CLUSTERS = 30
"""Fewest clusters for which a threshold is identifiable."""
TOO_WIDE = 0.5
"""Width of a threshold's interval above which the threshold is not identifiable."""

AdviceKind = Literal["tuned", "default", "not_identifiable"]


class Advice(NamedTuple):
    """Advised threshold, the kind of advice, and the reason."""

    kind: AdviceKind
    threshold: float
    reason: Remark


class TuningResult(NamedTuple):
    """Result of tuning a threshold to one objective.

    `threshold` is the tuned one with its interval, `value` its objective on the units that it was
    tuned on, `at_default` the objective at the default. `gain` is the objective of tuned thresholds
    minus that of the default, on held-out clusters; None with a single cluster.
    """

    threshold: Interval
    value: float
    at_default: Interval
    gain: Interval | None
    advice: Advice
    curve: Curve


def tuning_results(
    graded: Graded, resamples: Resamples, n_clusters: int, default: float
) -> dict[str, TuningResult]:
    """Tune to each objective. All units have a reference, and both verdicts occur in it."""
    held_out = held_out_thresholds(graded, default)

    def kappa(outcomes: Outcomes) -> Interval:
        return resamples.interval(OBJECTIVES["kappa"](outcomes), n_clusters)

    by_default = verdict_outcomes(graded, graded.positive >= default, resamples)
    default_kappa = kappa(by_default)
    results = {}
    for objective, swept in sweep(graded, resamples, default).items():
        values_of = OBJECTIVES[objective]
        at_default = values_of(by_default)
        threshold = threshold_interval(swept, resamples, n_clusters)
        gain, held_out_kappa = None, default_kappa
        if objective in held_out:
            by_tuned = verdict_outcomes(graded, graded.positive >= held_out[objective], resamples)
            gain = resamples.interval(values_of(by_tuned) - at_default, n_clusters)
            held_out_kappa = kappa(by_tuned)
        advice = advise(threshold, default, gain, held_out_kappa, default_kappa, n_clusters)
        results[objective] = TuningResult(
            threshold=threshold, value=float(swept.best_value[0]),
            at_default=resamples.interval(at_default, n_clusters),
            gain=gain, advice=advice, curve=swept.curve,
        )  # fmt: skip
    return results


def advise(
    threshold: Interval,
    default: float,
    gain: Interval | None,
    held_out_kappa: Interval,
    default_kappa: Interval,
    n_clusters: int,
) -> Advice:
    """Return the advice from bounds: tuned, default or not identifiable, as the module explains."""
    tuned_is_informative = held_out_kappa.low > 0
    if n_clusters < MIN_CLUSTERS:
        return Advice("not_identifiable", default, Remark("few_clusters", (MIN_CLUSTERS,)))
    if not tuned_is_informative and not default_kappa.low > 0:  # also if NaN
        return Advice("not_identifiable", default, Remark("agrees_by_chance"))
    if threshold.estimate == default:
        return Advice("default", default, Remark("no_better_threshold"))
    if gain is not None and gain.low > 0 and tuned_is_informative:
        return Advice("tuned", threshold.estimate, Remark("wins_held_out"))
    if threshold.high - threshold.low > TOO_WIDE:
        return Advice("not_identifiable", default, Remark("interval_too_wide"))
    return Advice("default", default, Remark("does_not_win_held_out"))


def draws_needed(threshold: float) -> int:
    """Return the fewest draws for a threshold; 1 at the ends of the scale. Shares of k draws have
    steps of 1 / k; with fewer draws, no step lies between the threshold and the end near it.

    >>> draws_needed(0.1), draws_needed(0.5), draws_needed(0.95), draws_needed(1.0)
    (10, 2, 20, 1)
    """
    distance = min(threshold, 1.0 - threshold)
    return int(np.ceil(1.0 / distance - 1e-9)) if distance > 0 else 1


@dataclass(frozen=True, kw_only=True)
class TunedThreshold(Interval):
    """The threshold with the best agreement with a reference, and the advice to use it or not.

    `estimate` is the threshold, with its 95% interval; `value` is its objective on the units that
    it was tuned on, `at_default` the objective at the default. `held_out_gain` is tuned minus
    default on held-out clusters, `gain_low` its lower bound. `recommended` is the threshold to use,
    `advice` is "tuned", "default" or "not_identifiable", and `reason` explains it.
    """

    value: float
    at_default: float
    held_out_gain: float
    gain_low: float
    recommended: float
    advice: AdviceKind
    reason: str


def tune_threshold(
    positive: Column[float],
    reference: Column[int],
    *,
    objective: str = "kappa",
    default: float = 0.5,
    clusters: Clusters = None,
    bootstrap: Bootstrap | None = None,
) -> TunedThreshold:
    """Return the best of all thresholds of probabilities (units,) against verdicts (units,).

    `objective` is "kappa", "agreement", "f1", "youden" or "prevalence" (see `OBJECTIVES`). Without
    `clusters` (units,), units are resampled. Raises InputError where a probability or a verdict is
    missing or out of range, or the reference has one verdict only.

    >>> positive = [0.1, 0.2, 0.35, 0.6, 0.3, 0.4, 0.7, 0.9] * 5
    >>> tuned = tune_threshold(positive, [p > 0.25 for p in positive])
    >>> tuned.estimate, tuned.value, round(tuned.at_default, 3), tuned.advice
    (0.3, 1.0, 0.333, 'tuned')
    """
    scores, verdicts = _checked(positive, reference)
    if objective not in OBJECTIVES:
        names = ", ".join(OBJECTIVES)
        raise InputError(f"the objective is {objective!r}; it must be one of {names}")
    if len(np.unique(verdicts)) < 2:
        raise InputError("a threshold needs both verdicts in the reference")
    codes = encoding.cluster_codes(clusters, len(scores))
    n_clusters = int(codes.max()) + 1
    resamples = (bootstrap or Bootstrap()).draw(np.ones(n_clusters))
    graded = Graded(scores, verdicts.astype(np.int8), codes)
    tuned = tuning_results(graded, resamples, n_clusters, default)[objective]
    gain, advice = tuned.gain or Interval(np.nan, np.nan, np.nan), tuned.advice
    return TunedThreshold(
        **vars(tuned.threshold), value=tuned.value, at_default=tuned.at_default.estimate,
        held_out_gain=gain.estimate, gain_low=gain.low,
        recommended=advice.threshold, advice=advice.kind, reason=advice.reason.text,
    )  # fmt: skip


def _checked(positive: Column[float], reference: Column[int]) -> tuple[Array, Array]:
    """Return probabilities and verdicts, (units,) each, after checks."""
    scores, verdicts = np.asarray(positive, dtype=float), np.asarray(reference, dtype=float)
    encoding.check_same_length(scores, verdicts)
    if not len(scores) or not ((scores >= 0) & (scores <= 1)).all():
        raise InputError("probabilities are needed for every item, each between 0 and 1")
    if not np.isin(verdicts, (0, 1)).all():
        raise InputError("the reference's verdicts must be 0 or 1, none missing")
    return scores, verdicts


class NoReference(InputError):  # noqa: N818 - callers skip the rubric and go on
    """The reference has no labels on this rubric."""


class Reference(NamedTuple):
    """Verdicts (units,) of a rater or "humans" to compare graders with: 1, 0, or -1 for none."""

    name: str
    verdicts: Labels
    note: Note = ""


def human_majority(labels: LabelMatrix) -> Reference:
    """Return the humans' majority verdicts; ties are left out, and their number is in the note."""
    counts = count_labels(labels.verdicts[:, list(labels.humans)], 2)
    majority, n_tied = majority_codes(counts), int(is_tied(counts).sum())
    ties = f"{n_tied} tied items left out" if n_tied else ""
    basis = "against the humans' majority"
    if len(labels.humans) == 1:
        basis = f"against the one annotator, {labels.raters[labels.humans[0]]}"
    return Reference("humans", majority.astype(np.int8), join_notes(basis, ties))


def probability_graders(labels: LabelMatrix) -> list[int]:
    """Return the columns of the graders that gave any probability."""
    has_probability = np.asarray((~np.isnan(labels.positive)).any(axis=0))
    return [model for model in labels.models if has_probability[model]]


def references_of(labels: LabelMatrix) -> list[Reference]:
    """Return the references: people, if any, and graders with labels but no probabilities."""
    with_probabilities = probability_graders(labels)
    graders = [model for model in labels.models if model not in with_probabilities]
    people = [human_majority(labels)] if labels.humans else []
    return people + [Reference(labels.raters[n], labels.verdicts[:, n]) for n in graders]


def main_reference(references: Sequence[Reference]) -> str:
    """Return the name of the reference for curves: people, or else the only one, or else ""."""
    if references and (references[0].name == "humans" or len(references) == 1):
        return references[0].name
    return ""


def reference_named(labels: LabelMatrix, name: str) -> Reference:
    """Return the reference "humans", for their majority, or a rater; else raise NoReference."""
    if name == "humans":
        if not labels.humans:
            raise NoReference(
                f"no annotator has labelled {labels.scale.name!r}; name another reference"
            )
        return human_majority(labels)
    if name not in labels.raters:
        raters = ", ".join(["humans", *labels.raters])
        raise NoReference(f"there is no rater {name!r} on {labels.scale.name!r}; it has {raters}")
    return Reference(name, labels.verdicts[:, labels.raters.index(name)])


ACTIVE_THRESHOLD = "threshold_in_force"
"""Statistic of a tuned threshold that verdicts are made with."""


class ActiveThreshold(NamedTuple):
    """The threshold of one grader's verdicts on one rubric, and its `tuning` if it was tuned."""

    rubric: str
    grader: str
    threshold: float
    origin: Origin
    tuning: Tuning | None = None

    @property
    def provenance(self) -> str:
        """Origin of the threshold, in words."""
        return _tuned_on_remark(self.tuning).text if self.tuning else self.origin

    @property
    def note(self) -> str:
        """Note on a grader whose threshold was tuned; else empty."""
        if self.tuning is None:
            return ""
        prefix = f"{self.rubric}: " if self.rubric else ""
        return prefix + written(
            "note.threshold", grader=self.grader, threshold=self.threshold, origin=self.provenance
        )


def active_thresholds(labels: LabelMatrix) -> list[ActiveThreshold]:
    """Return the threshold of each grader with probabilities; empty without a binary label."""
    if not labels.has_binary:
        return []
    scale, active = labels.scale, []
    for grader in (labels.raters[model] for model in probability_graders(labels)):
        tuning, threshold = scale.tunings.get(grader), scale.threshold_for(grader)
        origin: Origin = "declared" if grader in scale.thresholds else "default"
        origin = "tuned" if tuning else origin
        active.append(ActiveThreshold(scale.name, grader, threshold, origin, tuning))
    return active


def with_held_out_thresholds(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with other `thresholds` for tuned graders, on the clusters that their own
    were tuned on, so that no verdict is made by a threshold that was tuned on its cluster.
    """
    tuned_graders = list(_tuned_graders(labels))
    if not tuned_graders:
        return labels
    thresholds = np.array(labels.thresholds)
    for grader, tuning in tuned_graders:
        tuned_on = _tuned_units(labels, grader, tuning)
        verdicts = human_majority(labels).verdicts
        if tuning.reference in labels.raters:
            verdicts = labels.verdicts[:, labels.raters.index(tuning.reference)]
        units = _with_probability(labels, grader)
        graded = Graded.of(labels, grader, np.where(tuned_on, verdicts, -1), units)
        retuned = held_out_thresholds(graded, tuning.instead_of)  # the threshold before tuning
        if retuned:  # a single cluster cannot be held out
            thresholds[tuned_on, grader] = retuned[tuning.objective][tuned_on[units]]
    return replace(labels, thresholds=thresholds)


def labels_tuned_on_others(labels: LabelMatrix) -> dict[str, LabelMatrix]:
    """Return, by grader without a tuned threshold, the labels with its verdicts at thresholds that
    are tuned to people's majority on other clusters.
    """
    if not labels.has_binary:
        return {}
    majority, retuned = human_majority(labels).verdicts, {}
    for grader in probability_graders(labels):
        name, units = labels.raters[grader], _with_probability(labels, grader)
        if name in labels.scale.tunings or not has_both_verdicts(labels, grader, majority):
            continue
        graded = Graded.of(labels, grader, majority, units)
        by_objective = held_out_thresholds(graded, labels.scale.threshold_for(name))
        if by_objective:
            thresholds = np.array(labels.thresholds)
            thresholds[units, grader] = by_objective["kappa"]
            retuned[name] = replace(labels, thresholds=thresholds)
    return retuned


def has_both_verdicts(labels: LabelMatrix, grader: int, reference: Labels) -> bool:
    """Return True if the reference (units,) has both verdicts where a grader gave probabilities."""
    return len(np.unique(reference[_with_probability(labels, grader) & (reference >= 0)])) == 2


def _with_probability(labels: LabelMatrix, grader: int) -> Mask:
    """Return the mask (units,) of the units for which a grader (column) gave a probability."""
    return np.asarray(~np.isnan(labels.positive[:, grader]))


def held_out_views(
    labels: LabelMatrix, verdicts: Coded, grader: int, reference: Labels, default: float
) -> dict[str, Coded]:
    """Return all raters' verdicts by objective: the grader's at thresholds tuned on other folds."""
    units = _with_probability(labels, grader)
    graded = Graded.of(labels, grader, reference, units)
    return {
        objective: with_verdicts(verdicts, grader, units, graded.positive >= thresholds)
        for objective, thresholds in held_out_thresholds(graded, default).items()
    }


def with_verdicts(verdicts: Coded, grader: int, units: Mask, affirmed: Mask) -> Coded:
    """Return the verdicts with those of a grader replaced on the masked units (units,)."""
    codes = verdicts.codes.copy()
    codes[units, grader] = np.where(affirmed, 0, 1)  # code 0 is affirmative
    return replace(verdicts, codes=codes)


def clusters_labelled(labels: LabelMatrix, grader: int, reference: str) -> frozenset[str]:
    """Return the ids of the clusters that a grader's threshold is tuned on: with a probability of
    the grader and a label of the reference, "humans" or a rater. Ties count as labelled.
    """
    raters = list(labels.humans) if reference == "humans" else [labels.raters.index(reference)]
    labelled = (labels.verdicts[:, raters] >= 0).any(axis=1) & _with_probability(labels, grader)
    return frozenset(labels.pairs[pair] for pair in set(labels.pair[labelled].tolist()) - {-1})


def _tuned_graders(labels: LabelMatrix) -> Iterator[tuple[int, Tuning]]:
    """Yield the column and the tuning of each grader with a tuned threshold."""
    if labels.has_binary:
        for grader in probability_graders(labels):
            if tuning := labels.scale.tunings.get(labels.raters[grader]):
                yield grader, tuning


def _tuned_units(labels: LabelMatrix, grader: int, tuning: Tuning) -> Mask:
    """Return the mask (units,) of units in clusters that the grader's threshold was tuned on."""
    is_tuned_on = np.array([pair in tuning.clusters for pair in labels.pairs] + [False])  # last: -1
    return np.asarray(is_tuned_on[labels.pair] & _with_probability(labels, grader))


def _tuned_on_remark(tuning: Tuning) -> Remark:
    """Return the remark on the data that a threshold was tuned on."""
    reference = "annotators" if tuning.reference == "humans" else tuning.reference
    return Remark("tuned_on", (len(tuning.clusters), reference, tuning.objective))


AT_THRESHOLD = {
    "kappa": "cohen_kappa_at_threshold",
    "agreement": "observed_agreement_at_threshold",
    "f1": "f1_at_threshold",
}
"""Statistics of objectives at a threshold, for those that have one."""
AT_EVERY_THRESHOLD = ("kappa", "agreement")
"""Objectives with a row at every tuned threshold."""
CURVE = "threshold_curve_kappa"
CEILING_HELD_OUT, KAPPA_HELD_OUT = f"{CEILING}_held_out", "cohen_kappa_held_out"
DEFAULT_SETTINGS = AnalysisSettings()


class ThresholdResults(NamedTuple):
    """Rows of results, and by grader the ids of the clusters that its threshold was tuned on."""

    rows: list[ResultRow]
    clusters: Mapping[str, frozenset[str]]


def threshold_results(
    ratings: DataFrame,
    units: DataFrame | None,
    scale: Scale,
    settings: AnalysisSettings = DEFAULT_SETTINGS,
    *,
    reference: str = "humans",
    seed: int = SEED,
    rubric_hashes: Collection[str] | None = None,
    excluded: Mapping[str, str] | None = None,
) -> ThresholdResults:
    """Return the rows of `add_threshold_rows` for one rubric, as in the `rows` of `analyse`.

    Graders are tuned to the verdicts of `reference`: "humans", for their majority, or a rater.
    `excluded` maps people whose labels are left out to the reason. Without graders' probabilities
    there are no rows. Raises NoReference where the reference has no labels.
    """
    checked, name = validate_ratings(ratings), scale.name
    rated, _ = encoding.one_version(checked[checked["rubric"] == name], name, rubric_hashes)
    rated, _ = encoding.without_excluded(rated, name, excluded or {})
    rated, _ = encoding.split_by_method(rated, name)
    rows, clusters, units = ResultRows(name), {}, with_weights(units, rated, settings.cluster)
    readings = encoding.combine_readings(rated, scale)
    labels = encoding.encode(readings, scale, units, settings.cluster)
    if labels.has_binary and probability_graders(labels):
        references = [reference_named(labels, reference)]
        request = Request(units, settings, seed=seed)
        resamples = request.resampled(np.ones(labels.n_clusters, dtype=np.int64), labels.weight)
        *_, view = RubricView.of_labels(rows, labels, resamples, request)  # the binary one
        rows.record_chance(view.coded, resamples)
        rows.heaviest = float(labels.people_weight.max(initial=1.0))
        add_threshold_rows(view, references)
        clusters = {
            labels.raters[grader]: clusters_labelled(labels, grader, reference)
            for grader in probability_graders(labels)
        }
    return ThresholdResults(list(rows.rows.values()), clusters)


def add_threshold_rows(view: RubricView, references: Sequence[Reference] | None = None) -> None:
    """Add rows for every grader with probabilities and every reference: the tuned threshold and the
    effect of using it. The view is of the binary verdict.

    Tuning is compared with the rubric's threshold or a declared one, never with a tuned one. Rows
    with at = objective are `threshold`, `threshold_recommended`, whose first remark is the kind of
    advice, and `threshold_held_out_gain`. Rows with at = threshold are kappa, agreement and F1 at
    the tuned and the default threshold, and the curve `threshold_curve_kappa`. Against people there
    are also `human_ceiling_difference_held_out` and `cohen_kappa_held_out` (at = objective), of
    verdicts with thresholds from other clusters. `threshold_in_force` is the threshold of a tuned
    grader, on the units that it was tuned on.
    """
    labels = view.labels
    references = references_of(labels) if references is None else references
    main = main_reference(references)
    for grader in probability_graders(labels):
        for reference in references:
            if reference.name != labels.raters[grader]:
                _add_tuning_rows(view, grader, reference, curve=reference.name == main)
            if reference.name == "humans":
                _add_held_out_rows(view, grader, reference)
    for grader, tuning in _tuned_graders(labels):
        name = labels.raters[grader]
        threshold, units = labels.scale.threshold_for(name), _tuned_units(labels, grader, tuning)
        basis = "its verdicts on these: by thresholds tuned on others"
        note = join_notes(_tuned_on_remark(tuning), basis)
        view.add(ACTIVE_THRESHOLD, threshold, units, b=name, note=note)


def _add_tuning_rows(view: RubricView, grader: int, reference: Reference, *, curve: bool) -> None:
    """Add the rows of one grader and one reference; with `curve`, also kappa at all thresholds."""
    labels, resamples, name = view.labels, view.resamples, view.labels.raters[grader]
    compared = _with_probability(labels, grader) & (reference.verdicts >= 0)
    graded, counts = Graded.of(labels, grader, reference.verdicts, compared), view.count(compared)

    def add(statistic: str, figure: Interval, at: str, note: Note = "") -> None:
        about = About(a=reference.name, b=name, at=at, note=join_notes(note, reference.note))
        view.add(statistic, figure, counts, **about)

    if len(np.unique(graded.reference)) < 2:
        reason = "no_variation" if counts.units else "no_pairable_units"
        for objective in OBJECTIVES:
            add("threshold", Interval.undefined(reason), objective)
        return
    default, draws = labels.scale.untuned_threshold_for(name), labels.draws[grader]
    is_declared = default != labels.scale.threshold
    default_name = "the declared one" if is_declared else "the default"
    tuned = tuning_results(graded, resamples, counts.clusters, default)

    # Rows of each objective: the tuned threshold, its gain, and the advice.
    for objective, result in tuned.items():
        interval, advice, gain = result.threshold, result.advice, result.gain
        threshold = interval.estimate
        is_default = threshold == default
        note: Note = f"equals {default_name}" if is_default else f"{default_name} is {default:.3g}"
        add("threshold", interval, objective, note)
        if gain is not None:
            wins, keep = "the tuned threshold wins on held-out items", f"keep {default_name}"
            add("threshold_held_out_gain", gain, objective, wins if gain.low > 0 else keep)
        too_few_draws = tuple(
            Remark("coarse_draws", (draws, value, draws_needed(value)))
            for value in dict.fromkeys((threshold, default))
            if 0 < draws < draws_needed(value)
        )
        advised = replace(interval, estimate=advice.threshold, remarks=())
        note = join_notes(Remark(advice.kind), advice.reason, too_few_draws)
        add("threshold_recommended", advised, objective, note)

    # Rows of each threshold, tuned or default: objectives, with the one that it was tuned to.
    objectives_at = {default: list(AT_THRESHOLD)}
    for objective, result in tuned.items():
        objectives = objectives_at.setdefault(result.threshold.estimate, list(AT_EVERY_THRESHOLD))
        if objective in AT_THRESHOLD and objective not in objectives:
            objectives.append(objective)
    for threshold, objectives in objectives_at.items():
        outcomes = verdict_outcomes(graded, graded.positive >= threshold, resamples)
        basis: Note = "tuned on these items: optimistic"
        if threshold == default:
            basis = Remark("declared_threshold" if is_declared else "default_threshold")
        for objective in objectives:
            interval = resamples.interval(OBJECTIVES[objective](outcomes), counts.clusters)
            add(AT_THRESHOLD[objective], interval, repr(threshold), basis)
    if curve:
        kappas = tuned["kappa"].curve
        for threshold, values in zip(kappas.thresholds.tolist(), kappas.values.T, strict=True):
            add(CURVE, resamples.interval(values, counts.clusters), repr(threshold))


def _add_held_out_rows(view: RubricView, grader: int, reference: Reference) -> None:
    """Add kappa, and its difference from human agreement, of a grader's held-out verdicts."""
    coded, labels, kappas = view.coded, view.labels, view.once(KappaMeans)
    if not has_both_verdicts(labels, grader, reference.verdicts):
        return
    default = labels.scale.untuned_threshold_for(labels.raters[grader])
    views = held_out_views(labels, coded, grader, reference.verdicts, default)
    units = view.count(coded.labelled[:, grader] & coded.labelled_by_any(labels.humans))
    note = join_notes("each verdict by a threshold tuned on other folds", reference.note)
    for objective, held_out in views.items():
        means = with_and_among_humans(kappas, held_out, grader)
        mean, people = means.with_humans, means.among_humans
        if mean is None:
            return
        about = About(a="humans", b=labels.raters[grader], at=objective, note=note)
        view.add(KAPPA_HELD_OUT, mean.values, units, **about)
        if people is not None:
            undefined = max(mean.undefined, people.undefined)
            difference = mean.values - people.values
            view.add(CEILING_HELD_OUT, difference, units, undefined=undefined, **about)


# ---- Calibration ---------------------------------------------------------------------------------

BINS, MIN_IN_BIN = 10, 10
"""Most bins, and fewest units in a bin: with fewer than 100 units there are fewer bins."""


def equal_mass_bins(positive: Array, bins: int | None = None) -> Codes:
    """Return the bin of each unit (units,), of about equal sizes; equal probabilities share a bin.

    >>> equal_mass_bins(np.array([0.1, 0.2, 0.2, 0.2, 0.8, 0.9]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    n_bins = bins or min(BINS, max(1, len(positive) // MIN_IN_BIN))
    bounds = np.unique(np.quantile(positive, np.arange(1, n_bins) / n_bins, method="higher"))
    bin_of_unit = np.searchsorted(bounds, positive, side="right")
    return np.unique(bin_of_unit, return_inverse=True)[1].reshape(-1)


def squared_calibration_error(graded: Graded, bins: int | None = None) -> float:
    """Return the mean over units of their bin's squared gap between the affirmative share and the
    mean probability, minus its bias, the variance of the gaps. It can be below 0.

    Every unit has a reference. In a bin of one cluster the bias equals the squared gap.
    """
    bin_of_unit = equal_mass_bins(graded.positive, bins)
    shape = int(graded.clusters.max()) + 1, int(bin_of_unit.max()) + 1  # clusters, bins
    cell = graded.clusters * shape[1] + bin_of_unit
    weight = np.ones(len(cell)) if graded.weight is None else graded.weight
    sizes, error_sums = (
        np.bincount(cell, values, shape[0] * shape[1]).reshape(shape)
        for values in (weight, weight * (graded.reference - graded.positive))
    )
    bin_sizes = sizes.sum(axis=0)
    gap = error_sums.sum(axis=0) / bin_sizes
    # Deviations from a mean have (n - 1) / n of the variance, for n clusters.
    n_clusters = (sizes > 0).sum(axis=0)
    correction = np.sqrt(n_clusters / np.maximum(n_clusters - 1, 1))
    influence = (error_sums - gap * sizes) / bin_sizes * correction
    variance = np.where(n_clusters > 1, (influence**2).sum(axis=0), gap**2)
    return float(bin_sizes @ (gap**2 - variance) / bin_sizes.sum())


MAX_POINTS = 60
"""Most points of a reliability curve."""
_MIN_DRAWS, _MAX_DRAWS, _DRAWN_UNITS, _BAND_SEED = 100, 400, 20_000_000, 2021
"""Samples simulated for the consistency band: fewest, most, units in all of them, and the seed."""


def isotonic_curve(
    positive: Array, affirmed: Numbers, weight: Array | None = None
) -> tuple[Array, Array]:
    """Return the distinct probabilities, and the share of affirmative verdicts at each by isotonic
    regression, from probabilities, verdicts and weights (units,).

    >>> isotonic_curve(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]))[1].tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.optimize import isotonic_regression

    counts = np.ones(len(positive)) if weight is None else weight
    stated, index = np.unique(positive, return_inverse=True)
    times = np.bincount(index.reshape(-1), weights=counts)
    share = np.bincount(index.reshape(-1), weights=counts * affirmed) / times
    return stated, np.asarray(isotonic_regression(share, weights=times).x)


class ReliabilityCurve(NamedTuple):
    """Points at both ends of the curve's steps, (points,) each: the `stated` probability, the
    affirmative `share`, the number of the `step`, and the bounds, `low` and `high`, of a calibrated
    grader's share in 95% of samples. `step_of_unit` (units,) is the step of each unit.
    """

    stated: Array
    share: Array
    step: Codes
    low: Array
    high: Array
    step_of_unit: Codes


def reliability_curve(graded: Graded) -> ReliabilityCurve:
    """Return the isotonic curve with its consistency band, from curves fitted to references that
    are simulated with the stated probabilities, and with the data's correlation within clusters.
    """
    from scipy.optimize import isotonic_regression

    positive, clusters, weight = graded.positive, graded.clusters, graded.weight
    stated, share = isotonic_curve(positive, graded.reference, weight)
    step = np.cumsum(np.diff(share, prepend=share[0]) > 0)
    last_of_step = np.flatnonzero(np.diff(step))
    ends = np.unique([0, *last_of_step, *(last_of_step + 1), len(step) - 1])  # thinned below
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, MAX_POINTS).round().astype(int))]
    # Correlation of two units' errors within a cluster, from 0 to 1; 0 if all have one unit: the
    # errors' products over all such pairs of units, and these products if they correlated fully.
    expected = np.interp(positive, stated, share)
    observed, at_most = (
        float((np.bincount(clusters, weights=errors) ** 2).sum() - (errors**2).sum())
        for errors in (graded.reference - expected, np.sqrt(expected * (1.0 - expected)))
    )
    correlation = float(np.clip(observed / at_most, 0.0, 1.0)) if at_most > 1e-12 else 0.0
    # A unit uses the random number of its cluster, not its own, with the probability
    # root(correlation): two units of a cluster then share it with the probability `correlation`.
    counts = np.ones(len(positive)) if weight is None else weight
    index, n_clusters = np.searchsorted(stated, positive), int(clusters.max()) + 1
    weights, rng = np.bincount(index, weights=counts), np.random.default_rng(_BAND_SEED)
    draws = int(np.clip(_DRAWN_UNITS // len(positive), _MIN_DRAWS, _MAX_DRAWS))
    curves = np.empty((draws, len(ends)))
    for draw in range(draws):
        uniform = rng.random(len(positive))
        if correlation > 0:
            by_cluster = rng.random(len(positive)) < np.sqrt(correlation)
            uniform = np.where(by_cluster, rng.random(n_clusters)[clusters], uniform)
        drawn = np.bincount(index, weights=counts * (uniform < positive)) / weights
        curves[draw] = isotonic_regression(drawn, weights=weights).x[ends]
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    step_of_unit = np.asarray(step[index], dtype=np.intp)
    return ReliabilityCurve(stated[ends], share[ends], step[ends], low, high, step_of_unit)


def recalibrated(graded: Graded) -> Array | None:
    """Return the probabilities (units,) recalibrated by an isotonic curve that is fitted on other
    folds; None with a single cluster. The curve is linear between the probabilities that it was
    fitted on, and constant beyond them. Source: Zadrozny & Elkan 2002.
    """
    fold = folds(graded.clusters)
    if fold.max(initial=0) < 1:
        return None
    calibrated = np.empty(len(fold))
    for held_out in range(int(fold.max()) + 1):
        test, training = fold == held_out, graded.on(fold != held_out)
        curve = isotonic_curve(training.positive, training.reference, training.weight)
        calibrated[test] = np.interp(graded.positive[test], *curve)
    return calibrated


def add_probability_rows(view: RubricView) -> None:
    """Add calibration rows of graders with probabilities, against people or the only reference.

    They are `brier`, `ece`, and `brier_recalibrated`, cross-fitted by cluster. With at =
    probability, `reliability` is the affirmative share, and the interval of
    `reliability_probability` is that of a calibrated grader's share.
    """
    references = references_of(view.labels)
    if main_reference(references):
        for grader in probability_graders(view.labels):
            _add_calibration_rows(view, grader, references[0])


def _add_calibration_rows(view: RubricView, grader: int, reference: Reference) -> None:
    """Add the calibration rows of one grader against one reference."""
    labels, resamples = view.labels, view.resamples
    compared = _with_probability(labels, grader) & (reference.verdicts >= 0)
    all_counts, method = view.count(compared), labels.methods[grader]
    graded = Graded.of(labels, grader, reference.verdicts, compared)

    def add(
        statistic: str, figure: Interval, at: str = "", note: Note = "", counts: Counts = all_counts
    ) -> None:
        notes = join_notes(note, method, reference.note)
        about = About(a=reference.name, b=labels.raters[grader], at=at, note=notes)
        view.add(statistic, figure, counts, **about)

    if not all_counts.units:
        for statistic in ("brier", "ece"):
            add(statistic, Interval.undefined("no_pairable_units"))
        return

    def brier(stated: Array) -> Interval:
        """Return the mean squared distance of probabilities (units,) from the verdicts."""
        squares = (stated - graded.reference) ** 2
        sums = resamples.sums(graded.clusters, squares, np.ones(len(squares)))
        return resamples.interval(ratio(*sums.T), all_counts.clusters)

    add("brier", brier(graded.positive))
    add("ece", Interval.point(math.sqrt(max(0.0, squared_calibration_error(graded)))))
    cross_fitted = recalibrated(graded)
    if cross_fitted is not None:
        add("brier_recalibrated", brier(cross_fitted), note="isotonic, fitted on other clusters")
    curve = reliability_curve(graded)
    for stated, share, low, high, step in zip(
        curve.stated, curve.share, curve.low, curve.high, curve.step, strict=True
    ):
        step_counts = resamples.count(graded.clusters, curve.step_of_unit == step)
        add("reliability", Interval.point(share), repr(float(stated)), counts=step_counts)
        band = Interval(float(stated), min(low, stated), max(high, stated))
        add("reliability_probability", band, repr(float(stated)), counts=step_counts)


@dataclass(frozen=True)
class ProbabilityScores:
    """Calibration and sharpness of probabilities, against a reference.

    `brier` is the mean squared distance from the reference. `ece` is the calibration error, the
    root of the debiased mean squared distance between probabilities and shares in bins of equal
    size. `brier_recalibrated` is the Brier score of probabilities recalibrated by an isotonic curve
    that was fitted on other clusters, NaN with a single cluster.
    """

    brier: float
    ece: float
    brier_recalibrated: float


def score_probabilities(
    positive: Column[float], reference: Column[int], *, clusters: Clusters = None
) -> ProbabilityScores:
    """Return the Brier score and calibration error of probabilities and verdicts, (units,) each.

    Errors may be correlated within `clusters` (units,), hashable ids. Raises InputError where a
    probability or a verdict is missing or out of range.

    >>> scores = score_probabilities([0.05, 0.15, 0.85, 0.95], [False, False, True, True])
    >>> round(scores.brier, 4), round(scores.ece, 4)
    (0.0125, 0.0)
    """
    scores, affirmed = _checked(positive, reference)
    graded = Graded(scores, affirmed, encoding.cluster_codes(clusters, len(scores)))
    squared, calibrated = squared_calibration_error(graded), recalibrated(graded)
    brier_after = np.nan if calibrated is None else float(np.mean((calibrated - affirmed) ** 2))
    brier = float(np.mean((scores - affirmed) ** 2))
    return ProbabilityScores(brier, math.sqrt(max(0.0, squared)), brier_after)


# ---- Routing -------------------------------------------------------------------------------------
#
# The grader labels units with a confidence above a cut, a person labels the others.
#
# Feng, Park, Liu & Tsvetkov (2023, appendix A.2) drop labels of their stance grader with a
# confidence below 0.9. Such a declared cut is shown with all others. The routing cut has the
# guarantee of selective prediction that labels above it agree often enough (Jung, Brahman & Choi
# 2024), by fixed-sequence testing as in Learn then Test (Angelopoulos, Bates, Candes, Jordan & Lei
# 2025). Cuts are tested from the highest down, each at the full level, against the hypothesis that
# labels above it are wrong more often than allowed. The first cut where this is not rejected ends
# the sequence, and the last one before it is the routing cut. The guarantee fails only by a false
# rejection at one certain cut, the highest that is not good enough; so the level is that of a
# single test, however many cuts are tried.
#
# The sequence does not depend on labels. Its cuts lie at ranks of the confidence, a twentieth of
# units apart. It starts at the highest cut that keeps a quarter of the units and would pass if
# no label were wrong, as higher cuts could only end it. Skipping cuts that keep few units does not
# change the level where agreement does not fall as confidence rises; where it falls, simulations
# showed no harm (benchmarks/results/routing.md).
#
# The tests are valid in finite samples. With one unit in each cluster, the number of wrong labels
# is binomial, and the test is exact. With several, a cluster's labels may all be wrong together,
# and the mean over clusters of a bounded number is tested, by betting (Waudby-Smith & Ramdas 2024):
# a fixed stake on every cluster gains nothing on average where labels are wrong more often than
# allowed, so the capital reaches 1 / p with probability p at most (Markov). It is assumed that no
# cluster is larger than the largest in the sample.

COVERAGE, AGREEMENT = "confidence_coverage", "confidence_agreement"
MAX_CUTS = 20
"""Most cuts whose coverage and agreement are reported."""


class ConfidentGrades(NamedTuple):
    """Labels of one grader on units with a majority of people: its `confidence`, and the mask
    `agreed` with the majority, (units,) each. `out` writes rows on these units.
    """

    out: Writer
    grader: str
    confidence: Array
    agreed: Mask


def add_confidence_rows(view: RubricView) -> None:
    """Add coverage and agreement at every cut for every grader with a confidence.

    `confidence_coverage` (at = cut) is the share of the grader's labels that the cut keeps, and
    `confidence_agreement` the share of the kept labels that agree with the majority of people, on
    the coarser categories if the rubric has them, with "unclear" as one more.
    """
    declared = view.request.settings.confidence_cut
    for graded in confident_grades(view):
        out, cuts = graded.out, candidate_cuts(graded.confidence, declared)
        kept, units = graded.confidence[:, None] >= cuts, np.ones(len(graded.agreed), dtype=bool)
        sums = out.sums(kept, kept & graded.agreed[:, None], units).T
        n_kept, n_agreed, (n_units,) = np.split(sums, [len(cuts), 2 * len(cuts)])  # by cut
        for k, cut in enumerate(cuts.tolist()):
            note = Remark("declared_cut") if cut == declared else ""
            about = About(a="humans", b=graded.grader, at=repr(cut), note=note)
            add = partial(out.add, reason="nothing_kept", **about)
            add(COVERAGE, ratio(n_kept[k], n_units), units)
            add(AGREEMENT, ratio(n_agreed[k], n_kept[k]), kept[:, k])


def confident_grades(view: RubricView) -> Iterator[ConfidentGrades]:
    """Yield the labels of every grader with a confidence."""
    labels = view.labels
    if not labels.humans:
        return
    coded = labels.on_collapsed_or_unclear()
    majority = majority_codes(label_counts(coded, labels.humans))
    for grader in labels.models:
        grades, confidence = coded.codes[:, grader], labels.confidence[:, grader]
        compared = (majority >= 0) & (grades >= 0) & ~np.isnan(confidence)
        if compared.any():
            out, agreed = view.on(coded.subset, labels.clusters[compared]), grades == majority
            # Means over draws that differ only by rounding are one confidence.
            rounded = np.round(confidence[compared], 12)
            yield ConfidentGrades(out, labels.raters[grader], rounded, agreed[compared])


def candidate_cuts(confidence: Array, declared: float) -> Array:
    """Return the cuts to show, ascending: the declared one, and the distinct confidences (units,)
    or, if these are more than 20, those that split the units into twentieths.

    >>> candidate_cuts(np.array([0.6, 0.8, 0.8]), 0.9).tolist()
    [0.6, 0.8, 0.9]
    """
    distinct = np.unique(confidence)
    if len(distinct) > MAX_CUTS:
        distinct = np.quantile(confidence, np.arange(MAX_CUTS) / MAX_CUTS, method="higher")
    return np.unique(np.append(distinct, declared))


MIN_SHARE = 0.25
"""Smallest share of units that a tested cut keeps: with less, the first test would have few units,
and little labelling is saved."""
MAX_GROWTH = 20
"""Largest multiple of the sample size that is reported as needed."""
STEPS = 20
"""Cuts are tested a twentieth of the units apart; as many sizes of a larger sample are tried."""
MAX_STAKE = 0.99
"""Largest stake; at 1 a single cluster could lose all of the capital."""


@dataclass(frozen=True)
class CutTest:
    """One-sided test, at this `level`, of the hypothesis that labels above a cut are wrong more
    often than `allowed`. `clusters` (units,) are codes from 0 up. Units are not weighted.

    >>> one_each = CutTest(np.arange(60), 0.05, 0.05)
    >>> kept, none, one = np.ones(60, bool), np.zeros(60, bool), np.arange(60) < 1
    >>> round(one_each.p_value(kept, none), 4), round(one_each.p_value(kept, one), 4)
    (0.0461, 0.1916)
    """

    clusters: Codes
    allowed: float
    level: float

    @cached_property
    def largest_size(self) -> int:
        """Number of units in the largest cluster."""
        return int(np.bincount(self.clusters).max())

    def passes(self, kept: Mask, wrong: Mask) -> bool:
        """Return True if the test rejects for these masks of kept and wrong labels, (units,)."""
        return self.p_value(kept, wrong) <= self.level

    def p_value(self, kept: Mask, wrong: Mask) -> float:
        """Return the probability, under the hypothesis, of at most this number of wrong labels
        among the kept ones; an upper bound where clusters have several units.
        """
        if self.largest_size > 1:
            return math.exp(-max(self._log_capital(kept, wrong), 0.0))
        return float(bdtr((kept & wrong).sum(), kept.sum(), self.allowed))

    @property
    def design_effect(self) -> float:
        """Units in clusters that inform as much as one independent unit, from 1 to `largest_size`:
        the ratio of log p for independent units to log p for these, if no label is wrong.
        """
        if self.largest_size == 1:
            return 1.0
        units = np.ones(len(self.clusters), dtype=bool)
        return -len(units) * math.log1p(-self.allowed) / self._log_capital(units, ~units)

    def power(self, kept: float, rate: float) -> float:
        """Return the probability that `kept` labels pass if they are wrong at this rate."""
        n = math.floor(kept / self.design_effect + 1e-9)  # independent units
        passes = bdtr(np.arange(n + 1), n, self.allowed) <= self.level  # by the number of errors
        most_errors = passes.sum() - 1
        return float(bdtr(most_errors, n, rate)) if most_errors >= 0 else 0.0

    @cached_property
    def _stake(self) -> float:
        """Optimal fixed stake for this number of clusters (Waudby-Smith & Ramdas 2024, section
        4.2), for a cut that keeps half of the units, with half of the wrong labels allowed.
        """
        n = len(np.unique(self.clusters))
        variance = self.allowed * (1.0 - self.allowed) / 4.0
        stake = (1.0 - self.allowed) * math.sqrt(-2.0 * math.log(self.level) / n / variance)
        return min(MAX_STAKE, stake)

    def _log_capital(self, kept: Mask, wrong: Mask) -> float:
        """Return the logarithm of the capital, from 1, after betting on all clusters."""
        # Each unit's part of its cluster's gain, which is -1 if the largest has only wrong labels.
        gains = np.where(kept, self.allowed - wrong, 0.0) / self.largest_size / (1.0 - self.allowed)
        return float(np.log1p(self._stake * np.bincount(self.clusters, weights=gains)).sum())


class RoutingCut(NamedTuple):
    """The lowest `cut` with the guarantee, NaN if none has it; and the factor by which the sample
    must grow for a cut to have it in 80% of studies, infinite above `MAX_GROWTH`.
    """

    cut: float
    growth: float = 1.0


def guaranteed_cut(
    confidence: Array, wrong: Mask, clusters: Codes, target: float, level: float
) -> RoutingCut:
    """Return the lowest cut above which a share of `target` or more of the labels agrees; this
    fails in at most a share `level` of studies. `confidence`, `wrong`, `clusters` are (units,).

    >>> confidence = np.arange(200) / 200
    >>> guaranteed_cut(confidence, confidence < 0.3, np.arange(200), 0.95, 0.05)
    RoutingCut(cut=0.305, growth=1.0)
    """
    _, codes = np.unique(clusters, return_inverse=True)
    test = CutTest(codes, 1.0 - target, level)
    if not (test.allowed > 0 and level > 0):
        return RoutingCut(math.nan, math.inf)
    # The cuts to test, at ranks of the confidence: the first is the highest that would pass if no
    # label were wrong, the last keeps all units.
    n, descending, none_wrong = len(confidence), np.sort(confidence)[::-1], np.zeros_like(wrong)
    ranks = range(math.ceil(n * MIN_SHARE) - 1, n)
    start = bisect_left(
        ranks, True, key=lambda rank: test.passes(confidence >= descending[rank], none_wrong)
    )
    tested_ranks = [*ranks[start :: max(1, n // STEPS)], *ranks[start:][-1:]]
    cuts = np.unique(descending[tested_ranks])[::-1].tolist()
    passing = list(takewhile(lambda cut: test.passes(confidence >= cut, wrong), cuts))
    if passing:
        return RoutingCut(passing[-1])
    # Find the factor by which the sample must grow for its first cut to pass. It keeps just enough
    # units to pass without errors, or `MIN_SHARE`; errors are as frequent as in this share here.
    order = np.argsort(-confidence, kind="stable")
    min_kept = test.design_effect * math.ceil(math.log(test.level) / math.log1p(-test.allowed))
    for growth in np.geomspace(1.0, MAX_GROWTH, STEPS + 1)[1:]:
        share = max(min_kept / (growth * n), MIN_SHARE)
        rate = wrong[order[: math.ceil(share * n)]].mean()
        if share <= 1.0 and test.power(max(min_kept, share * growth * n), rate) >= POWER:
            return RoutingCut(math.nan, float(growth))
    return RoutingCut(math.nan, math.inf)


CUT, SHARE, ROUTED_AGREEMENT = "routing_cut", "routing_share", "routing_agreement"
ERROR = 0.05
"""Share of studies in which a guarantee may fail, over all interim analyses."""


def add_routing_rows(view: RubricView) -> None:
    """Add rows for every grader with a confidence (at = target): `routing_cut`, the lowest cut with
    a guaranteed agreement of `confidence_target` with the majority of people, which fails in at
    most `ERROR` of studies; the share of its labels that the cut keeps, and their agreement here.

    The guarantee is for one grader, chosen beforehand, and no weighted sample: tests count units.
    """
    request = view.request
    look = request.facts.looks.get(view.rows.rubric, 1)  # number of the interim analysis
    level = level_of_look(look, request.decision.looks, ERROR)
    target = request.settings.confidence_target
    for graded in confident_grades(view):
        out, n = graded.out, len(graded.agreed)
        routing = guaranteed_cut(graded.confidence, ~graded.agreed, out.clusters, target, level)
        units, kept = np.ones(n, dtype=bool), graded.confidence >= routing.cut
        about = About(a="humans", b=graded.grader, at=repr(target))
        if out.resamples.weight is not None:
            out.add(CUT, math.nan, units, reason=Remark("unequal_chances"), **about)
            continue
        if not level > 0:
            reason = Remark("no_level")
        elif math.isinf(routing.growth):
            reason = Remark("promise_out_of_reach", (n,))
        else:
            reason = Remark("promise_needs_more", (n, math.ceil(n * (routing.growth - 1.0))))
        at_level = About(note=Remark("promised_at", (level,)), **about)
        out.add(CUT, routing.cut, units, reason=reason, **at_level)
        if not math.isnan(routing.cut):
            out.add(SHARE, out.share(kept, units), units, **about)
            out.add(ROUTED_AGREEMENT, float(graded.agreed[kept].mean()), kept, **about)
