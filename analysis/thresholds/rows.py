"""Thresholds of probability graders as rows: for every grader and everything it can be tuned to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.agreement.pairs import KappaMeans
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY, LabelMatrix
from evenhand.analysis.notes import Code, Note, Remark, Remarks, join_notes
from evenhand.analysis.people.ceiling import CEILING, with_and_among_humans
from evenhand.analysis.results import ResultRows
from evenhand.analysis.thresholds.advice import Calibration, calibrate, draws_needed
from evenhand.analysis.thresholds.held_out import held_out_verdicts, verdict_outcomes
from evenhand.analysis.thresholds.sweep import OBJECTIVES
from evenhand.analysis.types import Labels

AT_THRESHOLD = {
    "kappa": "cohen_kappa_at_threshold",
    "agreement": "observed_agreement_at_threshold",
    "f1": "f1_at_threshold",
    "youden": "youden_at_threshold",
    "prevalence": "prevalence_match_at_threshold",
}
"""What an objective's value is called in results."""
EVERYWHERE = ("kappa", "agreement")
"""Objectives that are shown at every threshold, and along the curve."""
CEILING_HELD_OUT, KAPPA_HELD_OUT = f"{CEILING}_held_out", "cohen_kappa_held_out"
_SUBSET = "all" + BINARY


@dataclass(frozen=True)
class Reference:
    """What a grader's threshold is tuned to: verdicts (units,), 1, 0 or -1, and a remark."""

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
        whom = f"against the one person, {labels.raters[labels.humans[0]]}"
    return Reference("humans", majority.astype(np.int8), join_notes(whom, ties))


def probability_graders(labels: LabelMatrix) -> list[int]:
    """Columns of the graders that gave a probability anywhere."""
    gives = np.asarray((~np.isnan(labels.positive)).any(axis=0))
    return [model for model in labels.models if gives[model]]


def references_of(labels: LabelMatrix) -> list[Reference]:
    """What graders are tuned to: people, where there are any, and graders with hard labels."""
    tunable = probability_graders(labels)
    people = [human_majority(labels)] if labels.humans else []
    return people + [
        Reference(labels.raters[model], labels.verdicts[:, model])
        for model in labels.models
        if model not in tunable
    ]


def main_reference(references: Sequence[Reference]) -> str:
    """Whom curves are drawn against: people, or else the only reference there is."""
    if references and (references[0].name == "humans" or len(references) == 1):
        return references[0].name
    return ""


def add_threshold_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    kappas: KappaMeans,
    references: Sequence[Reference] | None = None,
) -> None:
    """For every probability grader and reference: the tuned threshold and what it would bring.

    The default that tuning is compared with is the rubric's threshold or the one that was declared,
    never one that was tuned. With at = objective: `threshold`; `threshold_recommended`, whose first
    remark is tuned, default or not_identifiable (see `analysis.thresholds.advice`);
    `threshold_held_out_gain`. With at = threshold: the objective at the tuned and the default one,
    and its `_corrected` form, which takes the optimism of tuning off; along the curve
    `threshold_curve_kappa` and `_agreement`.
    Against people also `human_ceiling_difference_held_out` and `cohen_kappa_held_out` (at =
    objective), of verdicts made with thresholds from other clusters. `kappas` are those of the
    binary verdict.
    """
    references = references_of(labels) if references is None else references
    main = main_reference(references)
    for grader in probability_graders(labels):
        for reference in references:
            if reference.name != labels.raters[grader]:
                _Tuning(rows, labels, resamples, grader, reference).add(reference.name == main)
            if reference.name == "humans":
                _add_held_out_ceiling(rows, labels, kappas, grader, reference)


@dataclass(frozen=True)
class _Tuning:
    """The rows of one grader and one reference."""

    rows: ResultRows
    labels: LabelMatrix
    resamples: Resamples
    grader: int
    reference: Reference

    def add(self, curve: bool) -> None:
        labels, resamples = self.labels, self.resamples
        held = ~np.isnan(labels.positive[:, self.grader]) & (self.reference.verdicts >= 0)
        numbers = resamples.count(labels.clusters, held)
        positive, verdicts = labels.positive[held, self.grader], self.reference.verdicts[held]
        if len(np.unique(verdicts)) < 2:
            reason: Code = "no_variation" if numbers[0] else "no_pairable_units"
            for objective in OBJECTIVES:
                self._row(numbers, "threshold", Interval.undefined(reason), objective)
            return
        clusters = labels.clusters[held]
        default = labels.scale.untuned_threshold_for(labels.raters[self.grader])
        found = calibrate(positive, verdicts, clusters, resamples, numbers[1], default)
        for calibration in found.values():
            self._add_objective(numbers, calibration)
        chosen = {default: list(OBJECTIVES)}
        for name, calibration in found.items():
            wanted = chosen.setdefault(calibration.threshold.estimate, list(EVERYWHERE))
            wanted += [name] if name not in wanted else []
        for threshold, objectives in chosen.items():
            outcomes = verdict_outcomes(positive >= threshold, verdicts == 1, clusters, resamples)
            note: Note = Remark(self._kind(default))
            if threshold != default:
                note = "tuned on these units: optimistic"
            for name in objectives:
                reached = resamples.interval(OBJECTIVES[name](outcomes), numbers[1])
                self._row(numbers, AT_THRESHOLD[name], reached, repr(threshold), note)
        if curve:
            self._add_curves(numbers, found)

    def _add_objective(self, numbers: tuple[int, int], found: Calibration) -> None:
        tuned, usual = found.threshold.estimate, "the default"
        if self._kind(found.default) == "declared_threshold":
            usual = "the declared one"
        beside = f"{usual} is {found.default:.3g}"
        if tuned == found.default:
            beside = f"equals {usual}"
        self._row(numbers, "threshold", found.threshold, found.objective, beside)
        if found.gain is not None:
            wins = "the tuned threshold wins held out" if found.gain.low > 0 else f"keep {usual}"
            self._row(numbers, "threshold_held_out_gain", found.gain, found.objective, wins)
        self._row(
            numbers,
            "threshold_recommended",
            replace(found.threshold, estimate=found.advice.threshold, remarks=()),
            found.objective,
            join_notes(Remark(found.advice.kind), found.advice.reason, self._resolution(found)),
        )
        self._row(
            numbers,
            f"{AT_THRESHOLD[found.objective]}_corrected",
            Interval(found.corrected, np.nan, np.nan),
            repr(tuned),
            f"tuned for {found.objective}, less its optimism of {found.optimism:.3g}",
        )

    def _kind(self, default: float) -> Code:
        """What the threshold is that tuning is compared with."""
        own = default != self.labels.scale.threshold
        return "declared_threshold" if own else "default_threshold"

    def _resolution(self, found: Calibration) -> Remarks:
        """What to say where a share of draws is too coarse for the tuned or default threshold."""
        draws = self.labels.draws[self.grader]
        tuned = found.threshold.estimate
        coarse = [at for at in dict.fromkeys((tuned, found.default)) if draws < draws_needed(at)]
        return tuple(
            Remark("coarse_draws", (draws, at, draws_needed(at))) for at in coarse if draws
        )

    def _add_curves(self, numbers: tuple[int, int], found: dict[str, Calibration]) -> None:
        for objective in EVERYWHERE:
            curve = found[objective].curve
            for at, values in zip(curve.thresholds.tolist(), curve.values.T, strict=True):
                reached = self.resamples.interval(values, numbers[1])
                self._row(numbers, f"threshold_curve_{objective}", reached, repr(at))

    def _row(
        self, numbers: tuple[int, int], statistic: str, found: Interval, at: str, note: Note = ""
    ) -> None:
        self.rows.add(
            statistic,
            found,
            numbers,
            rater_a=self.reference.name,
            rater_b=self.labels.raters[self.grader],
            subset=_SUBSET,
            at=at,
            note=join_notes(note, self.reference.note),
        )


def _add_held_out_ceiling(
    rows: ResultRows, labels: LabelMatrix, kappas: KappaMeans, grader: int, reference: Reference
) -> None:
    """The ceiling difference of a grader whose thresholds are chosen on other clusters."""
    coded, resamples = kappas.coded, kappas.resamples
    held = ~np.isnan(labels.positive[:, grader])
    if len(np.unique(reference.verdicts[held & (reference.verdicts >= 0)])) < 2:
        return
    name = labels.raters[grader]
    default = labels.scale.untuned_threshold_for(name)
    verdicts = held_out_verdicts(
        labels.positive[held, grader], reference.verdicts[held], labels.clusters[held], default
    )
    within = coded.labelled[:, grader]
    numbers = resamples.count(coded.clusters, within & coded.labelled_by_any(labels.humans))
    for objective, verdict in verdicts.items():
        codes = coded.codes.copy()
        codes[held, grader] = np.where(verdict, 0, 1)
        retuned = replace(coded, codes=codes)
        mean, people = with_and_among_humans(kappas, retuned, grader)
        if mean is None:
            return
        note = "each verdict by a threshold tuned on other folds"
        given = {KAPPA_HELD_OUT: resamples.interval(mean.values, numbers[1])}
        if people is not None:
            apart = mean.values - people.values
            lost = max(mean.undefined, people.undefined)
            given[CEILING_HELD_OUT] = resamples.interval(apart, numbers[1], undefined=lost)
        for statistic, found in given.items():
            rows.add(
                statistic,
                found,
                numbers,
                rater_a="humans",
                rater_b=name,
                subset=_SUBSET,
                at=objective,
                note=join_notes(note, reference.note),
            )
