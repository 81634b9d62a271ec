"""The threshold that turned each grader's probabilities into verdicts, and its origin.

A threshold that was tuned looks better on the labels it was tuned on than it is. So the verdicts on
those clusters are made as tuning itself is judged: each fold's with a threshold tuned on the other
folds (`analysis.thresholds.sweep`). On all other clusters the tuned threshold is used as it is.

A threshold is tuned to a reference: people's majority, or another rater.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Origin, Tuning
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.thresholds.sweep import held_out_thresholds
from evenhand.analysis.types import Labels, Mask
from evenhand.analysis.writer import Writer
from evenhand.errors import InputError
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
        whom = f"against the one person, {labels.raters[labels.humans[0]]}"
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
                f"no person has labelled {labels.scale.name!r}; name another reference"
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
        found = held_out_thresholds(
            labels.positive[held, grader],
            reference[held],
            labels.clusters[held],
            tuning.instead_of,
            labels.weight_of(held),
        )
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
        found = held_out_thresholds(
            labels.positive[held, grader],
            reference,
            labels.clusters[held],
            labels.scale.threshold_for(name),
        )
        if found:
            thresholds = np.array(labels.thresholds)
            thresholds[held, grader] = found["kappa"]
            retuned[name] = replace(labels, thresholds=thresholds)
    return retuned


def add_in_force_rows(out: Writer, labels: LabelMatrix) -> None:
    """`threshold_in_force` of every grader whose threshold was tuned, on the units it was tuned on.

    `out` writes rows on the binary verdict.
    """
    for grader, tuning in _tuned_graders(labels):
        name = labels.raters[grader]
        seen = _tuned_units(labels, grader, tuning)
        note = join_notes(_tuned_on(tuning), "its verdicts on these: by thresholds tuned on others")
        at = Interval.point(labels.scale.threshold_for(name))
        out.add_interval(IN_FORCE, at, seen, b=name, note=note)


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
