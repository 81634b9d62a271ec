"""Thresholds of probability graders, tuned to a reference: people's majority, or another rater; the
calibration of their probabilities; and cuts of their confidence below which a person labels.

Verdicts change only at probabilities that occur, so every distinct one is tried, as well as the
threshold in use and 1. Among equally good thresholds the one nearest to that in use is taken.

The best threshold jumps from one probability to another, so the bootstrap of it promises nothing
(Abrevaya & Huang 2005). Its interval inverts a comparison instead: it spans all thresholds
whose objective is not significantly below the best one's, in the same resamples.

A tuned threshold looks better on the units it was tuned on than it is, so it is also judged on
clusters that it was not tuned on. The clusters are split into ten folds; each fold's verdicts are
made with the threshold that is best on the other nine (`held_out_thresholds`). Agreement of those
verdicts is what tuning is worth elsewhere. On all other clusters the tuned threshold is used as it
is.

The threshold to use is one of three:

- *tuned*: the tuned threshold wins on held-out items: the lower bound of its gain over the default,
  on clusters that it was not tuned on, lies above 0.
- *not_identifiable*: the data cannot tell. Fewer than 30 clusters; or neither the tuned nor the
  default threshold agrees with the reference beyond chance (lower bounds of kappa); or nothing wins
  and the interval of the threshold spans more than half of the scale.
- *default*: everything else; the default is as good as can be shown.

The last two keep the default.

*Calibration* of a grader's probabilities: Brier score, calibration error, reliability. Also the
effect of recalibration: an isotonic curve from probability to share, fitted on some clusters and
judged on others. Every row names how the probability was obtained (token probabilities, draws,
stated); graders with several ways are split before (`analysis.labels.encoding`).

Shares differ from probabilities by chance alone, in bins of few units by a lot: the plain mean
distance of a perfectly calibrated grader is far from 0. The squared distance can be debiased
exactly (Kumar, Liang & Ma 2019); its root is on the scale of the probabilities.

Reliability, the share affirmative at each stated probability, needs no bins (CORP). The curve is
the isotonic regression of the reference on the probability, which picks its steps itself. Source:
Dimitriadis, Gneiting & Jordan 2021.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Literal

import numpy as np
from scipy.special import bdtr

from evenhand.analysis.agreement.coefficients import is_tied, label_counts, majority_codes
from evenhand.analysis.agreement.pairs import KappaMeans
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, count_labels, ratio
from evenhand.analysis.labels.encoding import (
    cluster_codes,
    combine_readings,
    encode,
    methods_apart,
    one_version,
    same_length,
    without_excluded,
)
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, with_weights
from evenhand.analysis.labels.scale import Origin, Scale, Tuning
from evenhand.analysis.people.comparison import CEILING, with_and_among_humans
from evenhand.analysis.request import Request
from evenhand.analysis.requirement import POWER
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.types import Array, Codes, Column, DataFrame, Labels, Mask, Numbers
from evenhand.analysis.writer import About, Counts, RubricView, Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings
from evenhand.texts import written

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

    `estimate` is the threshold, with its 95% interval; `value` is
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
    `OBJECTIVES`); `clusters` (units,) are resampled, or else units.

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


class NoReference(InputError):  # noqa: N818 - who asked for several rubrics can go on
    """A rubric on which the wanted reference has no labels."""


@dataclass(frozen=True)
class Reference:
    """Verdicts that a grader's threshold is tuned to: (units,), 1, 0 or -1, and a remark."""

    name: str
    verdicts: Labels
    note: Note = ""


def human_majority(labels: LabelMatrix) -> Reference:
    """The humans' majority verdict on each unit; ties are left out and counted (in the data)."""
    counts = count_labels(labels.verdicts[:, list(labels.humans)], 2)
    majority, tied = majority_codes(counts), int(is_tied(counts).sum())
    ties = f"{tied} tied items left out" if tied else ""
    whom = "against the humans' majority"
    if len(labels.humans) == 1:
        whom = f"against the one annotator, {labels.raters[labels.humans[0]]}"
    return Reference("humans", majority.astype(np.int8), join_notes(whom, ties))


def probability_graders(labels: LabelMatrix) -> list[int]:
    """Columns of the graders that gave a probability anywhere."""
    gives = np.asarray((~np.isnan(labels.positive)).any(axis=0))
    return [model for model in labels.models if gives[model]]


def references_of(labels: LabelMatrix) -> list[Reference]:
    """List the references that graders are tuned to: people, if there are any, and graders with
    hard labels.
    """
    tunable = probability_graders(labels)
    people = [human_majority(labels)] if labels.humans else []
    return people + [
        Reference(labels.raters[model], labels.verdicts[:, model])
        for model in labels.models
        if model not in tunable
    ]


def main_reference(references: Sequence[Reference]) -> str:
    """Return the name of the reference that curves are drawn against: people, or else the only one
    there is; empty where there is no such.
    """
    if references and (references[0].name == "humans" or len(references) == 1):
        return references[0].name
    return ""


def reference_named(labels: LabelMatrix, name: str) -> Reference:
    """ "humans", for their majority, or any rater. Raises NoReference where there is none."""
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


IN_FORCE = "threshold_in_force"


@dataclass(frozen=True)
class ThresholdInForce:
    """The threshold of one grader on one rubric; `tuning` describes the data it was tuned on, if it
    was.
    """

    rubric: str
    grader: str
    threshold: float
    origin: Origin
    tuning: Tuning | None = None

    @property
    def provenance(self) -> str:
        """Origin of the threshold, in words."""
        return _tuned_on(self.tuning).text if self.tuning else self.origin

    @property
    def note(self) -> str:
        """Note on a grader whose threshold was tuned; else empty."""
        if self.tuning is None:
            return ""
        place = f"{self.rubric}: " if self.rubric else ""
        return place + written(
            "note.threshold", grader=self.grader, threshold=self.threshold, origin=self.provenance
        )


def thresholds_in_force(labels: LabelMatrix) -> list[ThresholdInForce]:
    """List the threshold of each grader that gave probabilities; empty without a binary label."""
    if not labels.has_verdicts:
        return []
    scale = labels.scale
    in_force = []
    for grader in (labels.raters[model] for model in probability_graders(labels)):
        tuning, threshold = scale.tunings.get(grader), scale.threshold_for(grader)
        origin: Origin = "declared" if grader in scale.thresholds else "default"
        origin = "tuned" if tuning else origin
        in_force.append(ThresholdInForce(scale.name, grader, threshold, origin, tuning))
    return in_force


def judged_out_of_sample(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with no verdict made by a threshold that was tuned on the verdict's
    cluster. Only the `thresholds` of graders with a tuned one differ, on the clusters it was tuned
    on.
    """
    tuned = list(_tuned_graders(labels))
    if not tuned:
        return labels
    thresholds = np.array(labels.thresholds)
    for grader, tuning in tuned:
        seen = _tuned_units(labels, grader, tuning)
        verdicts = human_majority(labels).verdicts
        if tuning.reference in labels.raters:  # and still counts
            verdicts = labels.verdicts[:, labels.raters.index(tuning.reference)]
        reference = np.where(seen, verdicts, -1)
        held = ~np.isnan(labels.positive[:, grader])
        given = labels.positive[held, grader], reference[held], labels.clusters[held]
        retuned = held_out_thresholds(*given, tuning.instead_of, labels.weight_of(held))
        if retuned:  # a single cluster cannot be held out
            thresholds[seen, grader] = retuned[tuning.objective][seen[held]]
    return replace(labels, thresholds=thresholds)


def tuned_on_others(labels: LabelMatrix) -> dict[str, LabelMatrix]:
    """Return, by grader, the labels with its verdicts at thresholds tuned to people on other
    clusters. For graders without a tuned threshold.
    """
    if not labels.has_verdicts:
        return {}
    majority, retuned = human_majority(labels).verdicts, {}
    for grader in probability_graders(labels):
        name, held = labels.raters[grader], ~np.isnan(labels.positive[:, grader])
        if name in labels.scale.tunings or not has_both(labels, grader, majority):
            continue
        given = labels.positive[held, grader], majority[held], labels.clusters[held]
        by_objective = held_out_thresholds(*given, labels.scale.threshold_for(name))
        if by_objective:
            thresholds = np.array(labels.thresholds)
            thresholds[held, grader] = by_objective["kappa"]
            retuned[name] = replace(labels, thresholds=thresholds)
    return retuned


def has_both(labels: LabelMatrix, grader: int, reference: Labels) -> bool:
    """Return True if the reference (units,) has both verdicts where a grader gave probabilities."""
    held = ~np.isnan(labels.positive[:, grader]) & (reference >= 0)
    return len(np.unique(reference[held])) == 2


def held_out_views(
    labels: LabelMatrix, verdicts: Coded, grader: int, reference: Labels, default: float
) -> dict[str, Coded]:
    """Return the `verdicts` by objective, with a grader's at thresholds that were tuned to the
    reference (units,) on other clusters.
    """
    held = ~np.isnan(labels.positive[:, grader])
    given = labels.positive[held, grader], reference[held], labels.clusters[held]
    affirmed = held_out_verdicts(*given, default, labels.weight_of(held))
    return {name: with_verdicts(verdicts, grader, held, pair) for name, pair in affirmed.items()}


def with_verdicts(verdicts: Coded, grader: int, held: Mask, affirmed: Mask) -> Coded:
    """Return the verdicts, with other ones of a grader on the units (units,) in the mask `held`."""
    codes = verdicts.codes.copy()
    codes[held, grader] = np.where(affirmed, 0, 1)
    return replace(verdicts, codes=codes)


def clusters_labelled(labels: LabelMatrix, grader: int, reference: str) -> frozenset[str]:
    """The clusters (ids) that a grader's threshold is tuned on: with a probability of the grader
    and a label of the reference, "humans" or a rater. A tie of people counts as a label.
    """
    who = list(labels.humans) if reference == "humans" else [labels.raters.index(reference)]
    labelled = (labels.verdicts[:, who] >= 0).any(axis=1) & ~np.isnan(labels.positive[:, grader])
    return frozenset(labels.pairs[pair] for pair in set(labels.pair[labelled].tolist()) - {-1})


def _tuned_graders(labels: LabelMatrix) -> Iterator[tuple[int, Tuning]]:
    if labels.has_verdicts:
        for grader in probability_graders(labels):
            if tuning := labels.scale.tunings.get(labels.raters[grader]):
                yield grader, tuning


def _tuned_units(labels: LabelMatrix, grader: int, tuning: Tuning) -> Mask:
    """The units (units,) in clusters that the grader's threshold was tuned on."""
    is_tuned_on = np.array([pair in tuning.clusters for pair in labels.pairs] + [False])
    return np.asarray(is_tuned_on[labels.pair] & ~np.isnan(labels.positive[:, grader]))


def _tuned_on(tuning: Tuning) -> Remark:
    whom = "annotators" if tuning.reference == "humans" else tuning.reference
    return Remark("tuned_on", (len(tuning.clusters), whom, tuning.objective))


AT_THRESHOLD = {
    "kappa": "cohen_kappa_at_threshold",
    "agreement": "observed_agreement_at_threshold",
    "f1": "f1_at_threshold",
}
"""Name of an objective's value in results, where it has one."""
EVERYWHERE = ("kappa", "agreement")
"""Objectives that are shown at every threshold."""
CURVE = "threshold_curve_kappa"
CEILING_HELD_OUT, KAPPA_HELD_OUT = f"{CEILING}_held_out", "cohen_kappa_held_out"
USUAL = AnalysisSettings()


@dataclass(frozen=True)
class ThresholdResults:
    """The rows, and by grader the clusters (ids) that its threshold was tuned on."""

    rows: list[ResultRow]
    clusters: Mapping[str, frozenset[str]]


def threshold_results(
    ratings: DataFrame,
    units: DataFrame | None,
    scale: Scale,
    settings: AnalysisSettings = USUAL,
    *,
    reference: str = "humans",
    seed: int = SEED,
    rubric_hashes: Collection[str] | None = None,
    excluded: Mapping[str, str] | None = None,
) -> ThresholdResults:
    """The rows of `add_threshold_rows` for one rubric, as in the `rows` of `analyse`.

    `reference` is "humans", for their majority, or any rater, whose verdicts are then what graders
    are tuned to; `settings` say what is resampled, and how; `excluded` are the people, with the
    reason, whose labels are left out. No rows where no grader gave probabilities on the rubric.
    Raises InputError where there is no such reference.
    """
    checked = validate_ratings(ratings)
    of_rubric, _ = one_version(checked[checked["rubric"] == scale.name], scale.name, rubric_hashes)
    of_rubric, _ = without_excluded(of_rubric, scale.name, excluded or {})
    of_rubric, _ = methods_apart(of_rubric, scale.name)
    rows = ResultRows(scale.name)
    clusters = {}
    units = with_weights(units, of_rubric)
    labels = encode(combine_readings(of_rubric, scale), scale, units, settings.cluster)
    if labels.has_verdicts and probability_graders(labels):
        wanted = [reference_named(labels, reference)]
        request = Request(units, settings, seed=seed)
        once = np.ones(labels.n_clusters, dtype=np.int64)
        *_, view = RubricView.of_labels(
            rows, labels, lambda: request.resampled(once, labels.weight), request
        )
        rows.know_chance(view.coded, view.resamples)
        rows.heaviest = float(labels.people_weight.max(initial=1.0))
        add_threshold_rows(view, wanted)
        clusters = {
            labels.raters[grader]: clusters_labelled(labels, grader, reference)
            for grader in probability_graders(labels)
        }
    return ThresholdResults(list(rows.rows.values()), clusters)


def add_threshold_rows(view: RubricView, references: Sequence[Reference] | None = None) -> None:
    """Add rows for every probability grader and reference: the tuned threshold and the effect of
    using it.

    The default that tuning is compared with is the rubric's threshold or the one that was declared,
    never one that was tuned. With at = objective: `threshold`; `threshold_recommended`, whose first
    remark is tuned, default or not_identifiable;
    `threshold_held_out_gain`. With at = threshold: kappa, agreement and F1 at the tuned and the
    default one; along the curve `threshold_curve_kappa`.
    Against people also `human_ceiling_difference_held_out` and `cohen_kappa_held_out` (at =
    objective), of verdicts made with thresholds from other clusters. `threshold_in_force` of
    graders whose threshold was tuned, on the units it was tuned on. The view is of the binary
    verdict.
    """
    labels = view.labels
    references = references_of(labels) if references is None else references
    main = main_reference(references)
    for grader in probability_graders(labels):
        for reference in references:
            if reference.name != labels.raters[grader]:
                _add_tuning_rows(view, grader, reference, curve=reference.name == main)
            if reference.name == "humans":
                _add_held_out_ceiling(view, grader, reference)
    for grader, tuning in _tuned_graders(labels):
        name = labels.raters[grader]
        threshold = labels.scale.threshold_for(name)
        note = join_notes(_tuned_on(tuning), "its verdicts on these: by thresholds tuned on others")
        view.add(IN_FORCE, threshold, _tuned_units(labels, grader, tuning), b=name, note=note)


def _add_tuning_rows(view: RubricView, grader: int, reference: Reference, *, curve: bool) -> None:
    """Add the rows of one grader and one reference, with the `curve` of kappa over thresholds."""
    labels, resamples, name = view.labels, view.resamples, view.labels.raters[grader]
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    units, clusters = view.count(held), labels.clusters[held]
    positive, verdicts = labels.positive[held, grader], reference.verdicts[held]

    def add(statistic: str, figure: Interval, at: str, note: Note = "") -> None:
        of = About(a=reference.name, b=name, at=at, note=join_notes(note, reference.note))
        view.add(statistic, figure, units, **of)

    if len(np.unique(verdicts)) < 2:
        reason = "no_variation" if units[0] else "no_pairable_units"
        for objective in OBJECTIVES:
            add("threshold", Interval.undefined(reason), objective)
        return
    default, draws = labels.scale.untuned_threshold_for(name), labels.draws[grader]
    is_declared = default != labels.scale.threshold
    origin = "declared_threshold" if is_declared else "default_threshold"
    usual = "the declared one" if is_declared else "the default"
    tuned = calibrate(positive, verdicts, clusters, resamples, units[1], default)
    shown = {default: list(AT_THRESHOLD)}
    for objective, found in tuned.items():
        threshold, advice, gain = found.threshold.estimate, found.advice, found.gain
        equals = f"equals {usual}" if threshold == default else f"{usual} is {default:.3g}"
        add("threshold", found.threshold, objective, equals)
        if gain is not None:
            wins = "the tuned threshold wins on held-out items" if gain.low > 0 else f"keep {usual}"
            add("threshold_held_out_gain", gain, objective, wins)
        coarse = tuple(
            Remark("coarse_draws", (draws, at, draws_needed(at)))
            for at in dict.fromkeys((threshold, default))
            if 0 < draws < draws_needed(at)
        )
        advised = replace(found.threshold, estimate=advice.threshold, remarks=())
        why = join_notes(Remark(advice.kind), advice.reason, coarse)
        add("threshold_recommended", advised, objective, why)
        objectives = shown.setdefault(threshold, list(EVERYWHERE))
        if objective in AT_THRESHOLD and objective not in objectives:
            objectives.append(objective)
    for threshold, objectives in shown.items():
        outcomes = verdict_outcomes(positive >= threshold, verdicts == 1, clusters, resamples)
        optimistic = "tuned on these items: optimistic"
        note: Note = Remark(origin) if threshold == default else optimistic
        for objective in objectives:
            reached = resamples.interval(OBJECTIVES[objective](outcomes), units[1])
            add(AT_THRESHOLD[objective], reached, repr(threshold), note)
    if curve:
        course = tuned["kappa"].curve
        for at, values in zip(course.thresholds.tolist(), course.values.T, strict=True):
            add(CURVE, resamples.interval(values, units[1]), repr(at))


def _add_held_out_ceiling(view: RubricView, grader: int, reference: Reference) -> None:
    """Add the ceiling difference of a grader whose thresholds are chosen on other clusters."""
    coded, labels, kappas = view.coded, view.labels, view.once(KappaMeans)
    if not has_both(labels, grader, reference.verdicts):
        return
    default = labels.scale.untuned_threshold_for(labels.raters[grader])
    views = held_out_views(labels, coded, grader, reference.verdicts, default)
    units = view.count(coded.labelled[:, grader] & coded.labelled_by_any(labels.humans))
    note = join_notes("each verdict by a threshold tuned on other folds", reference.note)
    for objective, retuned in views.items():
        _, mean, people = with_and_among_humans(kappas, retuned, grader)
        if mean is None:
            return
        of = About(a="humans", b=labels.raters[grader], at=objective, note=note)
        view.add(KAPPA_HELD_OUT, mean.values, units, **of)
        if people is not None:
            apart, lost = mean.values - people.values, max(mean.undefined, people.undefined)
            view.add(CEILING_HELD_OUT, apart, units, undefined=lost, **of)


BINS = 10
MIN_IN_BIN = 10
"""Units in a bin at least: with fewer than 100 units there are fewer bins."""


def equal_mass_bins(positive: Array, bins: int | None = None) -> Codes:
    """Bins (units,) of about equally many units; equal probabilities share a bin.

    >>> equal_mass_bins(np.array([0.1, 0.2, 0.2, 0.2, 0.8, 0.9]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    wanted = bins or min(BINS, max(1, len(positive) // MIN_IN_BIN))
    shares = np.arange(1, wanted) / wanted
    bounds = np.unique(np.quantile(positive, shares, method="higher"))
    place = np.searchsorted(bounds, positive, side="right")
    return np.unique(place, return_inverse=True)[1].reshape(-1)


def squared_calibration_error(
    positive: Array,
    affirmed: Array,
    clusters: Codes,
    counts: Array | None = None,
    bins: int | None = None,
) -> float:
    """The mean squared gap, in bins, of the share affirmative and the mean probability, minus its
    bias, the variance of the gaps: free of what chance adds, below 0 by chance.

    Takes probabilities, 0 or 1, and the clusters, each (units,); `counts` (clusters,) is how often
    each cluster counts, 1 unless given. The variance of a gap in a bin of a single cluster is all
    of the gap.
    """
    place = equal_mass_bins(positive, bins)
    shape = (int(clusters.max()) + 1, int(place.max()) + 1)
    cell = clusters * shape[1] + place
    frequency = np.ones((1, 1)) if counts is None else counts[: shape[0], None]
    units, apart = (
        np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape)
        for weights in (np.ones(len(place)), affirmed - positive)
    )
    inside = (frequency * units).sum(axis=0)
    gap = (frequency * apart).sum(axis=0) / inside
    # Deviations from a mean are a little smaller than errors, the more so the fewer clusters.
    clusters_in = (units > 0).sum(axis=0)
    wider = np.sqrt(clusters_in / np.maximum(clusters_in - 1, 1))
    influence = frequency * (apart - gap * units) / inside * wider
    variance = np.where(clusters_in > 1, (influence**2).sum(axis=0), gap**2)
    return float(inside @ (gap**2 - variance) / inside.sum())


MAX_POINTS = 60
"""Points through which a curve is drawn at most."""
_DRAWS = 400
_DRAWN_UNITS = 20_000_000
_FEWEST_DRAWS = 100


def isotonic_curve(
    positive: Array, affirmed: Array, weight: Array | None = None
) -> tuple[Array, Array]:
    """The distinct probabilities, and the share of affirmatives at each that rises best with them.
    `weight` (units,) is how much each unit counts, here and below; 1 unless given.

    >>> isotonic_curve(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]))[1].tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.optimize import isotonic_regression

    counts = np.ones(len(positive)) if weight is None else weight
    stated, place = np.unique(positive, return_inverse=True)
    times = np.bincount(place.reshape(-1), weights=counts)
    share = np.bincount(place.reshape(-1), weights=counts * affirmed) / times
    return stated, np.asarray(isotonic_regression(share, weights=times).x)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Points of the curve, both ends of its steps: `stated` probability, `share` affirmative, and
    which `step` they are on; `low` and `high` are the bounds of a calibrated grader's share in 95%.
    All (points,); `step_of_unit` (units,) says where each unit is.
    """

    stated: Array
    share: Array
    step: Codes
    low: Array
    high: Array
    step_of_unit: Codes


def reliability_curve(
    positive: Array, affirmed: Array, clusters: Codes, weight: Array | None = None
) -> ReliabilityCurve:
    """The isotonic curve with its consistency band, from arrays (units,). For the band the
    reference is simulated as if the probabilities were true, and the curve fitted to it; the errors
    of units in one cluster are correlated in the simulation as in the data.
    """
    from scipy.optimize import isotonic_regression

    stated, share = isotonic_curve(positive, affirmed, weight)
    step = np.cumsum(np.diff(share, prepend=share[0]) > 0)
    change = np.flatnonzero(np.diff(step))
    ends = np.unique([0, *change, *(change + 1), len(step) - 1])
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, MAX_POINTS).round().astype(int))]
    # The correlation of two units' errors within a cluster, from 0 to 1; 0 for single units.
    expected = np.interp(positive, stated, share)
    both, most = (
        float((np.bincount(clusters, weights=errors) ** 2).sum() - (errors**2).sum())
        for errors in (affirmed - expected, np.sqrt(expected * (1.0 - expected)))
    )
    together = float(np.clip(both / most, 0.0, 1.0)) if most > 1e-12 else 0.0
    counts = np.ones(len(positive)) if weight is None else weight
    place, n_clusters = np.searchsorted(stated, positive), int(clusters.max()) + 1
    times, rng = np.bincount(place, weights=counts), np.random.default_rng(2021)
    draws = int(np.clip(_DRAWN_UNITS // len(positive), _FEWEST_DRAWS, _DRAWS))
    curves = np.empty((draws, len(ends)))
    for draw in range(draws):
        chance = rng.random(len(positive))
        if together > 0:
            shared = rng.random(len(positive)) < np.sqrt(together)
            chance = np.where(shared, rng.random(n_clusters)[clusters], chance)
        drawn = np.bincount(place, weights=counts * (chance < positive)) / times
        curves[draw] = isotonic_regression(drawn, weights=times).x[ends]
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    of_unit = np.asarray(step[place], dtype=np.intp)
    return ReliabilityCurve(stated[ends], share[ends], step[ends], low, high, of_unit)


def recalibrated(
    positive: Array, affirmed: Array, clusters: Codes, weight: Array | None = None
) -> Array | None:
    """Probabilities (units,) put through an isotonic curve that was fitted on other clusters.

    Between the probabilities that the curve was fitted on it runs straight, outside of them it is
    level. `weight` (units,) is how much each counts. None with a single cluster. Source: Zadrozny &
    Elkan 2002.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return None
    out = np.empty(len(positive))
    for held_out in range(int(fold.max()) + 1):
        test = fold == held_out
        weights = None if weight is None else weight[~test]
        stated, share = isotonic_curve(positive[~test], affirmed[~test], weights)
        out[test] = np.interp(positive[test], stated, share)
    return out


def add_probability_rows(view: RubricView) -> None:
    """Add calibration rows for every probability grader, against people or else the only reference
    there is.

    `brier`, `ece`, and `brier_recalibrated`, cross-fitted by cluster; and with at = probability
    `reliability`, the share affirmative, and `reliability_probability`, with the bounds of that
    share for a calibrated grader.
    """
    references = references_of(view.labels)
    if main_reference(references):
        for grader in probability_graders(view.labels):
            _add_quality(view, grader, references[0])


def _add_quality(view: RubricView, grader: int, reference: Reference) -> None:
    labels, resamples = view.labels, view.resamples
    held = ~np.isnan(labels.positive[:, grader]) & (reference.verdicts >= 0)
    units, method = view.count(held), labels.methods[grader]
    positive, affirmed = labels.positive[held, grader], reference.verdicts[held].astype(float)
    clusters, weight = labels.clusters[held], labels.weight_of(held)

    def add(
        statistic: str, figure: Interval, at: str = "", note: Note = "", on: Counts = units
    ) -> None:
        about = join_notes(note, method, reference.note)
        of = About(a=reference.name, b=labels.raters[grader], at=at, note=about)
        view.add(statistic, figure, on, **of)

    if not units[0]:
        for statistic in ("brier", "ece"):
            add(statistic, Interval.undefined("no_pairable_units"))
        return

    def brier(stated: Array) -> Interval:
        """The mean squared distance (Brier 1950)."""
        squares = (stated - affirmed) ** 2
        sums = resamples.sums(clusters, squares, np.ones(len(squares)))
        return resamples.interval(ratio(*sums.T), units[1])

    add("brier", brier(positive))
    squared = squared_calibration_error(positive, affirmed, clusters, resamples.weight)
    add("ece", Interval.point(math.sqrt(max(0.0, squared))))
    better = recalibrated(positive, affirmed, clusters, weight)
    if better is not None:
        add("brier_recalibrated", brier(better), "", "isotonic, fitted on other clusters")
    curve = reliability_curve(positive, affirmed, clusters, weight)
    for stated, share, low, high, step in zip(
        curve.stated, curve.share, curve.low, curve.high, curve.step, strict=True
    ):
        here = resamples.count(clusters, curve.step_of_unit == step)
        add("reliability", Interval.point(share), repr(float(stated)), on=here)
        band = Interval(float(stated), min(low, stated), max(high, stated))
        add("reliability_probability", band, repr(float(stated)), on=here)


@dataclass(frozen=True)
class ProbabilityScores:
    """Calibration and sharpness of probabilities, against a reference.

    `brier` is the mean squared distance from the reference. `ece` is the calibration error, the
    root of the mean squared distance of probabilities and shares in bins of equal size, free of
    what chance adds. `brier_recalibrated` is of probabilities put through an isotonic curve that
    was fitted on other clusters, NaN where there is one cluster only.
    """

    brier: float
    ece: float
    brier_recalibrated: float


def score_probabilities(
    positive: Column[float], reference: Column[int], *, clusters: Column[Hashable] | None = None
) -> ProbabilityScores:
    """Brier score and calibration error of probabilities (units,) against verdicts (units,).

    The errors of units in one of the `clusters` (units,), any hashable, may be correlated.

    >>> found = score_probabilities([0.05, 0.15, 0.85, 0.95], [False, False, True, True])
    >>> round(found.brier, 4), round(found.ece, 4)
    (0.0125, 0.0)
    """
    scores, affirmed = np.asarray(positive, dtype=float), np.asarray(reference, dtype=float)
    same_length(scores, affirmed)
    if not len(scores) or not ((scores >= 0) & (scores <= 1)).all():
        raise InputError("probabilities are needed for every item, each between 0 and 1")
    of = cluster_codes(clusters, len(scores))
    squared = squared_calibration_error(scores, affirmed, of)
    better = recalibrated(scores, affirmed, of)
    after = np.nan if better is None else float(np.mean((better - affirmed) ** 2))
    brier = float(np.mean((scores - affirmed) ** 2))
    return ProbabilityScores(brier, math.sqrt(max(0.0, squared)), after)


# Route units: the grader's labels count above a confidence cut, a person labels those below it.
#
# Feng, Park, Liu & Tsvetkov (2023, appendix A.2) drop what their stance grader labels with a
# confidence below 0.9. The declared cut is shown with all others. The cut for routing comes with a
# promise: the labels above it agree often enough. The promise is that of Jung, Brahman & Choi
# (2024), by fixed-sequence testing as in Learn then Test (Angelopoulos, Bates, Candes, Jordan & Lei
# 2025). Cuts are tested from the highest down, each at the full level, against the hypothesis that
# labels above it are wrong more often than allowed. The first cut where this cannot be ruled out
# ends the sequence, and the last before it is the answer. A wrong promise needs a false rejection
# at one certain cut, the highest that is not good enough; so the level is that of a single test,
# however many cuts are tried.
#
# The sequence does not depend on any labels. Its cuts lie at ranks of the confidence, a twentieth
# of the units apart. It starts at the highest cut that keeps a quarter of the units and would pass
# if no label were wrong: cuts above that could only end it. Skipping a cut for how little it keeps
# leaves the level as it is where agreement does not fall as confidence rises; where it does fall,
# no harm was seen (benchmarks/results/routing.md).
#
# The tests hold in finite samples. With one unit in each cluster, the wrong labels among those kept
# are binomial, and the test is exact. With several, a cluster's units may all be wrong together,
# and only the mean over clusters of a bounded number is tested: by a bet (Waudby-Smith & Ramdas
# 2024). A bet of a fixed share of the capital on every cluster gains nothing on average where
# labels are wrong more often than allowed, so the capital grows to 1 / p with probability p at most
# (Markov). The largest cluster seen is taken to be as large as any.

COVERAGE, AGREEMENT = "confidence_coverage", "confidence_agreement"
MAX_CUTS = 20


@dataclass(frozen=True)
class Graded:
    """Labels of one grader on units with a majority of people, all (units,): its confidence, and
    whether it agreed with the majority; `out` writes rows on these units.
    """

    out: Writer
    grader: str
    confidence: Array
    agreed: Mask


def add_confidence_rows(view: RubricView) -> None:
    """Add coverage against agreement for every grader with a confidence.

    `confidence_coverage` and `confidence_agreement` (at = cut): the share of its labels that the
    cut keeps, and how often those agree with the majority of people - on the coarser categories
    with unclear as one more where the rubric has them.
    """
    declared = view.request.settings.confidence_cut
    for graded in graded_with_confidence(view):
        out, cuts = graded.out, candidate_cuts(graded.confidence, declared)
        keeps, every = graded.confidence[:, None] >= cuts, np.ones(len(graded.agreed), dtype=bool)
        *both, units = out.sums(keeps, keeps & graded.agreed[:, None], every).T
        kept, agreed = np.split(np.array(both), 2)
        for at, cut in enumerate(cuts.tolist()):
            note = Remark("declared_cut") if cut == declared else ""
            about = About(a="humans", b=graded.grader, at=repr(cut), note=note)
            add = partial(out.add, reason="nothing_kept", **about)
            add(COVERAGE, ratio(kept[at], units), every)
            add(AGREEMENT, ratio(agreed[at], kept[at]), keeps[:, at])


def graded_with_confidence(view: RubricView) -> Iterator[Graded]:
    """Yield every grader with a confidence, on the units where people have a majority."""
    labels = view.labels
    if not labels.humans:
        return
    coded = labels.on_sorted()
    majority = majority_codes(label_counts(coded, labels.humans))
    for grader in labels.models:
        grades, confidence = coded.codes[:, grader], labels.confidence[:, grader]
        held = (majority >= 0) & (grades >= 0) & ~np.isnan(confidence)
        if held.any():
            yield Graded(
                view.on(coded.subset, labels.clusters[held]),
                labels.raters[grader],
                # Means over draws that differ in the last digit only are one confidence.
                np.round(confidence[held], 12),
                (grades == majority)[held],
            )


def candidate_cuts(confidence: Array, declared: float) -> Array:
    """Cuts to try, in ascending order: the declared one and the distinct confidences (units,). If
    there are more than 20, those that split the units into twentieths.

    >>> candidate_cuts(np.array([0.6, 0.8, 0.8]), 0.9).tolist()
    [0.6, 0.8, 0.9]
    """
    distinct = np.unique(confidence)
    if len(distinct) > MAX_CUTS:
        ranks = np.arange(MAX_CUTS) / MAX_CUTS
        distinct = np.quantile(confidence, ranks, method="higher")
    return np.unique(np.append(distinct, declared))


FIRST = 0.25
"""No cut is tested that keeps less: the first test would be one of few units, however many there
are, and a lower share saves little."""
REALISTIC = 20
"""Largest multiple of the present sample for which a number of units is named."""
STEPS = 20
"""Cuts are tested a twentieth of the units apart."""
MOST = 0.99
"""The largest share of what may be staked without risking ruin at one cluster."""


@dataclass(frozen=True)
class AboveCut:
    """The test that labels above a cut are wrong more often than `allowed`, at a one-sided `level`.
    `clusters` (units,) are codes from 0 up. Units count alike, as in `confidence_agreement`.

    >>> one_each = AboveCut(np.arange(60), 0.05, 0.05)
    >>> kept, none, one = np.ones(60, bool), np.zeros(60, bool), np.arange(60) < 1
    >>> round(one_each.p(kept, none), 4), round(one_each.p(kept, one), 4)
    (0.0461, 0.1916)
    """

    clusters: Codes
    allowed: float
    level: float

    @cached_property
    def largest(self) -> int:
        """Units in the largest cluster."""
        return int(np.bincount(self.clusters).max())

    def passes(self, kept: Mask, wrong: Mask) -> bool:
        """Return True if labels kept, some of them wrong, both (units,), meet the promise."""
        return self.p(kept, wrong) <= self.level

    def p(self, kept: Mask, wrong: Mask) -> float:
        """Return the probability of at most this number of wrong labels among those kept, if labels
        are wrong more often than allowed; an upper bound where clusters have several units.
        """
        if self.largest > 1:
            return math.exp(-max(self._capital(self._stake, kept, wrong), 0.0))
        return float(bdtr((kept & wrong).sum(), kept.sum(), self.allowed))

    @property
    def price(self) -> float:
        """Number of units that are worth one unit that is alone in its cluster: 1 to `largest`."""
        if self.largest == 1:
            return 1.0
        every = np.ones(len(self.clusters), dtype=bool)
        return -len(every) * math.log1p(-self.allowed) / self._capital(self._stake, every, ~every)

    def chance(self, kept: float, rate: float) -> float:
        """Return the probability that this number of kept labels passes if they are wrong at this
        rate.
        """
        alone = math.floor(kept / self.price + 1e-9)
        passing = bdtr(np.arange(alone + 1), alone, self.allowed) <= self.level
        return float(bdtr(passing.sum() - 1, alone, rate)) if passing.any() else 0.0

    @cached_property
    def _stake(self) -> float:
        """Optimal fixed stake for this number of clusters by Waudby-Smith & Ramdas (2024, section
        4.2); for the variance, that of a cut which keeps half of the units with half of the wrong
        labels allowed.
        """
        n = len(np.unique(self.clusters))
        variance = self.allowed * (1.0 - self.allowed) / 4.0
        return min(
            MOST, (1.0 - self.allowed) * math.sqrt(-2.0 * math.log(self.level) / n / variance)
        )

    def _capital(self, stake: float, kept: Mask, wrong: Mask) -> float:
        """The logarithm of the capital after betting on all clusters, from a start of 1."""
        gains = np.where(kept, self.allowed - wrong, 0.0) / self.largest / (1.0 - self.allowed)
        return float(np.log1p(stake * np.bincount(self.clusters, weights=gains)).sum())


@dataclass(frozen=True)
class Promise:
    """The lowest `cut` that keeps the promise, NaN where none does; and by what factor the sample
    must grow until one does in 80% of studies, if labels stay as often wrong as they are; infinite
    where no realistic number would do.
    """

    cut: float
    growth: float = 1.0


def promised_cut(
    confidence: Array, wrong: Mask, clusters: Codes, target: float, level: float
) -> Promise:
    """The lowest cut above which labels agree with a share of `target` or more, wrong in at most
    `level` of studies. `confidence`, `wrong` and `clusters` are (units,).

    >>> sure = np.arange(200) / 200
    >>> promised_cut(sure, sure < 0.3, np.arange(200), 0.95, 0.05)
    Promise(cut=0.305, growth=1.0)
    """
    _, codes = np.unique(clusters, return_inverse=True)
    test = AboveCut(codes, 1.0 - target, level)
    if not (test.allowed > 0 and level > 0):
        return Promise(math.nan, math.inf)
    # The cuts in the order of testing: a matter of confidence only.
    n, falling, none_wrong = len(confidence), np.sort(confidence)[::-1], np.zeros_like(wrong)
    ranks = range(math.ceil(n * FIRST) - 1, n)
    start = bisect_left(
        ranks, True, key=lambda rank: test.passes(confidence >= falling[rank], none_wrong)
    )
    tried = ranks[start:]
    cuts = np.unique(falling[[*tried[:: max(1, n // STEPS)], *tried[-1:]]])[::-1].tolist()
    passing = list(takewhile(lambda cut: test.passes(confidence >= cut, wrong), cuts))
    if passing:
        return Promise(passing[-1])
    # By what factor the sample must grow until the first cut is likely to pass.
    surest = np.argsort(-confidence, kind="stable")
    least = test.price * math.ceil(math.log(test.level) / math.log1p(-test.allowed))
    for growth in np.geomspace(1.0, REALISTIC, STEPS + 1)[1:]:
        share = max(least / (growth * n), FIRST)
        rate = wrong[surest[: math.ceil(share * n)]].mean()
        if share <= 1.0 and test.chance(max(least, share * growth * n), rate) >= POWER:
            return Promise(math.nan, float(growth))
    return Promise(math.nan, math.inf)


CUT, SHARE, ROUTED_AGREEMENT = (f"routing_{what}" for what in ("cut", "share", "agreement"))
ERROR = 0.05
"""Share of studies in which a promise may be wrong, over all looks at the labels."""


def add_routing_rows(view: RubricView) -> None:
    """Add rows for every grader with a confidence (at = target): `routing_cut`, the lowest that
    promises an agreement of `confidence_target` with the majority of people, wrong in at most
    `ERROR` of studies; the share of its labels that the cut keeps, and how often these agree here.

    The promise is for one grader that was chosen beforehand. There is none where pairs were not
    equally likely to be picked: it counts units.
    """
    request = view.request
    look, target = request.facts.looks.get(view.rows.rubric, 1), request.settings.confidence_target
    level = level_of_look(look, request.decision.looks, ERROR)
    for graded in graded_with_confidence(view):
        best = promised_cut(graded.confidence, ~graded.agreed, graded.out.clusters, target, level)
        out, n = graded.out, len(graded.agreed)
        every, keeps = np.ones(n, dtype=bool), graded.confidence >= best.cut
        about = About(a="humans", b=graded.grader, at=repr(target))
        if out.resamples.weight is not None:
            out.add(CUT, math.nan, every, reason=Remark("unequal_chances"), **about)
            continue
        why = Remark("promise_out_of_reach", (n,))
        if not level > 0:
            why = Remark("no_level")
        elif not math.isinf(best.growth):
            why = Remark("promise_needs_more", (n, math.ceil(n * (best.growth - 1.0))))
        stated = About(note=Remark("promised_at", (level,)), **about)
        out.add(CUT, best.cut, every, reason=why, **stated)
        if not math.isnan(best.cut):
            out.add(SHARE, out.share(keeps, every), every, **about)
            out.add(ROUTED_AGREEMENT, float(graded.agreed[keeps].mean()), keeps, **about)
