"""Labels and probabilities of humans and graders on the units with enough human labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.distributions import distances
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Note
from evenhand.analysis.types import Array, Mask

MIN_PEOPLE = 5
"""Humans who must label a unit: halves of fewer are not groups."""
MIN_UNITS = 30
"""Units that must have `MIN_PEOPLE` human labels."""


@dataclass(frozen=True)
class People:
    """Humans' labels: `counts` (units, q), valid where `enough` humans labelled, (units,)."""

    counts: Array
    enough: Mask

    @classmethod
    def of(cls, coded: Coded, members: Sequence[int]) -> People:
        """Count the labels of some humans.

        Units that too few of them labelled have meaningless counts: one label of each category,
        often enough that any statistic is defined.
        """
        counts = label_counts(coded, members)
        enough = counts.sum(axis=1) >= MIN_PEOPLE
        return cls(np.where(enough[:, None], counts, float(MIN_PEOPLE)), enough)

    @cached_property
    def one_person(self) -> Array:
        """Squared distance of one human from all, (units,)."""
        return distances.disagreement(self.counts)

    @cached_property
    def groups(self) -> Array:
        """Components of the distance between two groups, (units, 3).

        The total variation of a quarter and of half of the humans, and the steps from there to all.
        """
        half, quarter = distances.group_sizes(self.counts)
        apart = (distances.between_groups(self.counts, size) for size in (quarter, half))
        return np.column_stack([*apart, distances.reach(self.counts)])


@dataclass(frozen=True)
class Stated:
    """Probabilities and labels stated by a grader.

    `shares` (units, q) are probabilities, NaN where there are none; `label` (units, q) is its one
    label as probabilities too, NaN where there is none. `certain` (units,) marks units where the
    label is used as the probabilities; `method` is the source of the probabilities.
    """

    name: str
    shares: Array
    label: Array
    certain: Mask
    method: Note = ""

    @property
    def known(self) -> Mask:
        """True where it gives probabilities or a label, (units,)."""
        return ~np.isnan(self.shares[:, 0])

    @property
    def labelled(self) -> Mask:
        """True where it has a label, (units,)."""
        return ~np.isnan(self.label[:, 0])


def stated_by(labels: LabelMatrix, coded: Coded, grader: int) -> Stated:
    """Return a grader's probabilities of the categories; without any, its label is a certainty."""
    code = coded.codes[:, grader]
    label = np.eye(coded.q)[code]
    label[code < 0] = np.nan
    shares = _probabilities(labels, coded, grader)
    certain = np.isnan(shares[:, 0]) & (code >= 0)
    shares = np.where(certain[:, None], label, shares)
    return Stated(labels.raters[grader], shares, label, certain, labels.methods[grader])


def _probabilities(labels: LabelMatrix, coded: Coded, grader: int) -> Array:
    """Probabilities of the categories or verdicts (units, q) that sum to 1, NaN where none."""
    positive = labels.positive[:, grader, None]
    out = np.full((len(positive), coded.q), np.nan)
    if coded.is_binary:
        return np.hstack([positive, 1.0 - positive])
    affirmative = labels.scale.affirmative_codes
    if coded.q == 2 and len(affirmative) == 1:
        first = positive if affirmative[0] == 0 else 1.0 - positive
        out = np.hstack([first, 1.0 - first])
    given = labels.distributions.get(grader)
    if given is None:
        return out
    total = given.sum(axis=1, keepdims=True)
    return np.where(total > 0, given / np.where(total > 0, total, 1.0), out)


def baselines_at(shares: Array, names: Sequence[str], units: int) -> list[Stated]:
    """Return the constant and the random baseline on `units` units.

    They give always the most frequent category, and always the humans' overall shares (q,).
    """
    constant = np.eye(len(shares))[int(shares.argmax())]
    return [
        Stated(name, np.tile(each, (units, 1)), np.tile(each, (units, 1)), np.full(units, hard))
        for name, each, hard in zip(names, (constant, shares), (True, False), strict=True)
    ]
