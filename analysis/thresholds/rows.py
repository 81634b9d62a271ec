"""Thresholds of probability graders as rows: for every grader and every reference for tuning.

A threshold that was tuned looks better on the labels it was tuned on than it is. So the verdicts on
those clusters are made as tuning itself is judged: each fold's with a threshold tuned on the other
folds (`held_out_thresholds`). On all other clusters the tuned threshold is used as it is.

A threshold is tuned to a reference: people's majority, or another rater.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.labels.encoding import (
    combine_readings,
    encode,
    methods_apart,
    one_version,
    without_excluded,
)
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Origin, Scale, Tuning
from evenhand.analysis.labels.units import with_weights
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.people.ceiling import CEILING, with_and_among_humans
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.thresholds.sweep import (
    OBJECTIVES,
    Calibration,
    calibrate,
    draws_needed,
    held_out_thresholds,
    held_out_verdicts,
    verdict_outcomes,
)
from evenhand.analysis.types import DataFrame, Labels, Mask
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
    verdicts = labels.verdicts[:, list(labels.humans)]
    positive, negative = ((verdicts == value).sum(axis=1) for value in (1, 0))
    majority = np.where(positive > negative, 1, np.where(negative > positive, 0, -1))
    tied = int(((positive == negative) & (positive > 0)).sum())
    ties = f"{tied} tied units left out" if tied else ""
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
        known = ", ".join(["humans", *labels.raters])
        raise NoReference(f"there is no rater {name!r} on {labels.scale.name!r}; it has {known}")
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
            "note.threshold",
            grader=self.grader,
            threshold=self.threshold,
            origin=self.provenance,
        )


def thresholds_in_force(labels: LabelMatrix) -> list[ThresholdInForce]:
    """List the threshold of each grader that gave probabilities; empty without a binary verdict."""
    if not labels.has_verdicts:
        return []
    scale = labels.scale
    return [
        ThresholdInForce(
            rubric=scale.name,
            grader=grader,
            threshold=scale.threshold_for(grader),
            origin=scale.origin_of(grader),
            tuning=scale.tunings.get(grader),
        )
        for grader in (labels.raters[model] for model in probability_graders(labels))
    ]


def judged_out_of_sample(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with no verdict made by a threshold that was tuned on the verdict's
    cluster.

    Only the `thresholds` of graders with a tuned one differ, on the clusters it was tuned on.
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
        found = held_out_thresholds(*given, tuning.instead_of, labels.weight_of(held))
        if found:  # a single cluster cannot be held out
            thresholds[seen, grader] = found[tuning.objective][seen[held]]
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
        reference = majority[held]
        if name in labels.scale.tunings or len(np.unique(reference[reference >= 0])) < 2:
            continue
        given = labels.positive[held, grader], reference, labels.clusters[held]
        found = held_out_thresholds(*given, labels.scale.threshold_for(name))
        if found:
            thresholds = np.array(labels.thresholds)
            thresholds[held, grader] = found["kappa"]
            retuned[name] = replace(labels, thresholds=thresholds)
    return retuned


def add_in_force_rows(view: RubricView) -> None:
    """`threshold_in_force` of graders whose threshold was tuned, on the units it was tuned on."""
    labels = view.labels
    for grader, tuning in _tuned_graders(labels):
        name = labels.raters[grader]
        seen = _tuned_units(labels, grader, tuning)
        note = join_notes(_tuned_on(tuning), "its verdicts on these: by thresholds tuned on others")
        view.add(IN_FORCE, labels.scale.threshold_for(name), seen, b=name, note=note)


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
    known = np.array([pair in tuning.clusters for pair in labels.pairs] + [False])
    return np.asarray(known[labels.pair] & ~np.isnan(labels.positive[:, grader]))


def _tuned_on(tuning: Tuning) -> Remark:
    whom = "people" if tuning.reference == "humans" else tuning.reference
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
    own, _ = one_version(checked[checked["rubric"] == scale.name], scale.name, rubric_hashes)
    own, _ = without_excluded(own, scale.name, excluded or {})
    own, _ = methods_apart(own, scale.name)
    rows = ResultRows(scale.name)
    clusters = {}
    units = with_weights(units, own)
    labels = encode(combine_readings(own, scale), scale, units, settings.cluster)
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
    objective), of verdicts made with thresholds from other clusters. The view is of the binary
    verdict.
    """
    labels = view.labels
    references = references_of(labels) if references is None else references
    main = main_reference(references)
    for grader in probability_graders(labels):
        for reference in references:
            if reference.name != labels.raters[grader]:
                _Tuning(view, grader, reference).add(reference.name == main)
            if reference.name == "humans":
                _add_held_out_ceiling(view, grader, reference)
    add_in_force_rows(view)


@dataclass(frozen=True)
class _Tuning:
    """The rows of one grader and one reference."""

    view: RubricView
    grader: int
    reference: Reference

    def add(self, curve: bool) -> None:
        labels, resamples = self.view.labels, self.view.resamples
        held = ~np.isnan(labels.positive[:, self.grader]) & (self.reference.verdicts >= 0)
        units, clusters = self.view.count(held), labels.clusters[held]
        positive, verdicts = labels.positive[held, self.grader], self.reference.verdicts[held]
        if len(np.unique(verdicts)) < 2:
            reason: Code = "no_variation" if units[0] else "no_pairable_units"
            for objective in OBJECTIVES:
                self._add("threshold", Interval.undefined(reason), units, objective)
            return
        default = labels.scale.untuned_threshold_for(labels.raters[self.grader])
        found = calibrate(positive, verdicts, clusters, resamples, units[1], default)
        for calibration in found.values():
            self._add_objective(units, calibration)
        chosen = {default: list(AT_THRESHOLD)}
        for name, calibration in found.items():
            wanted = chosen.setdefault(calibration.threshold.estimate, list(EVERYWHERE))
            wanted += [name] if name in AT_THRESHOLD and name not in wanted else []
        for threshold, objectives in chosen.items():
            outcomes = verdict_outcomes(positive >= threshold, verdicts == 1, clusters, resamples)
            note: Note = Remark(self._kind(default))
            if threshold != default:
                note = "tuned on these items: optimistic"
            for name in objectives:
                reached = resamples.interval(OBJECTIVES[name](outcomes), units[1])
                self._add(AT_THRESHOLD[name], reached, units, repr(threshold), note)
        if curve:
            course = found["kappa"].curve
            for at, values in zip(course.thresholds.tolist(), course.values.T, strict=True):
                self._add(CURVE, resamples.interval(values, units[1]), units, repr(at))

    def _add_objective(self, units: Counts, found: Calibration) -> None:
        objective, tuned = found.objective, found.threshold.estimate
        declared = self._kind(found.default) == "declared_threshold"
        usual = "the declared one" if declared else "the default"
        beside = f"{usual} is {found.default:.3g}"
        if tuned == found.default:
            beside = f"equals {usual}"
        self._add("threshold", found.threshold, units, objective, beside)
        if found.gain is not None:
            wins = "the tuned threshold wins held out" if found.gain.low > 0 else f"keep {usual}"
            self._add("threshold_held_out_gain", found.gain, units, objective, wins)
        advised = replace(found.threshold, estimate=found.advice.threshold, remarks=())
        draws = self.view.labels.draws[self.grader]
        coarse = tuple(
            Remark("coarse_draws", (draws, at, draws_needed(at)))
            for at in dict.fromkeys((tuned, found.default))
            if 0 < draws < draws_needed(at)
        )
        why = join_notes(Remark(found.advice.kind), found.advice.reason, coarse)
        self._add("threshold_recommended", advised, units, objective, why)

    def _kind(self, default: float) -> Code:
        """Code for the origin of the threshold that tuning is compared with."""
        own = default != self.view.labels.scale.threshold
        return "declared_threshold" if own else "default_threshold"

    def _add(
        self, statistic: str, found: Interval, units: Counts, at: str, note: Note = ""
    ) -> None:
        of = About(a=self.reference.name, b=self.view.labels.raters[self.grader], at=at)
        of["note"] = join_notes(note, self.reference.note)
        self.view.add(statistic, found, units, **of)


def _add_held_out_ceiling(view: RubricView, grader: int, reference: Reference) -> None:
    """Add the ceiling difference of a grader whose thresholds are chosen on other clusters."""
    coded, labels, kappas = view.coded, view.labels, view.once(KappaMeans)
    held = ~np.isnan(labels.positive[:, grader])
    if len(np.unique(reference.verdicts[held & (reference.verdicts >= 0)])) < 2:
        return
    name = labels.raters[grader]
    default = labels.scale.untuned_threshold_for(name)
    given = labels.positive[held, grader], reference.verdicts[held], labels.clusters[held]
    verdicts = held_out_verdicts(*given, default, labels.weight_of(held))
    units = view.count(coded.labelled[:, grader] & coded.labelled_by_any(labels.humans))
    note = join_notes("each verdict by a threshold tuned on other folds", reference.note)
    for objective, verdict in verdicts.items():
        codes = coded.codes.copy()
        codes[held, grader] = np.where(verdict, 0, 1)
        _, mean, people = with_and_among_humans(kappas, replace(coded, codes=codes), grader)
        if mean is None:
            return
        of = About(a="humans", b=name, at=objective, note=note)
        view.add(KAPPA_HELD_OUT, mean.values, units, **of)
        if people is not None:
            apart, lost = mean.values - people.values, max(mean.undefined, people.undefined)
            view.add(CEILING_HELD_OUT, apart, units, undefined=lost, **of)
