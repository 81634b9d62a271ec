"""Probability graders as rows: thresholds for every reference, and calibration.

A threshold that was tuned looks better on the labels it was tuned on than it is. So the verdicts on
those clusters are made as tuning itself is judged: each fold's with a threshold tuned on the other
folds (`held_out_thresholds`). On all other clusters the tuned threshold is used as it is.

A threshold is tuned to a reference: people's majority, or another rater.

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
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.agreement.coefficients import is_tied, majority_codes
from evenhand.analysis.agreement.pairs import KappaMeans
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import count_labels, ratio
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
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.thresholds.sweep import (
    OBJECTIVES,
    calibrate,
    draws_needed,
    folds,
    held_out_thresholds,
    held_out_verdicts,
    verdict_outcomes,
)
from evenhand.analysis.types import Array, Codes, Column, DataFrame, Labels, Mask
from evenhand.analysis.writer import About, Counts, RubricView
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings
from evenhand.texts import written


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
    return {name: with_verdicts(verdicts, grader, held, each) for name, each in affirmed.items()}


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
    remark is tuned, default or not_identifiable (see `analysis.thresholds.sweep`);
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
