"""References that a grader's threshold can be tuned to: people's majority, or another rater."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Note, join_notes
from evenhand.analysis.types import Labels
from evenhand.errors import InputError


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
