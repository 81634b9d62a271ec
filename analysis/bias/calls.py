"""Calls of raters as numbers: how affirmative a unit is, and which side of a pair it favours.

A *verdict call* is 1 or 0. A *directed call* is 1 where side a is favoured, -1 where side b is,
else 0: by a pair rubric's options, or, on responses, the verdict on side a minus that on side b.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix, favour_signs
from evenhand.analysis.labels.pair_rule import units_of_both_sides
from evenhand.analysis.types import Array, Codes


@dataclass(frozen=True)
class Calls:
    """Calls `values` (units, raters), NaN for none, with each unit's cluster and subject.

    `unit` (units,) is the unit's row in the label matrix; `subset` names the rows on all of the
    calls.
    """

    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Array
    clusters: Codes
    subjects: tuple[str, ...]
    subject: Codes
    unit: Codes
    subset: str

    @property
    def graders(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(at for at, kind in enumerate(self.kinds) if kind == "model")

    @property
    def people(self) -> Array:
        """The humans' calls (units, humans)."""
        return self.values[:, [kind == "human" for kind in self.kinds]]

    def oriented(self, sign: Array) -> Calls:
        """Swap the sides of directed calls where `sign` (units,) is -1; no call where it is 0."""
        factor = np.where(sign == 0, np.nan, sign)
        return replace(self, values=self.values * factor[:, None])

    def without_graders_but(self, grader: str) -> Calls:
        """Return the calls of humans and this grader."""
        kept = [
            name == grader or kind != "model"
            for name, kind in zip(self.raters, self.kinds, strict=True)
        ]
        return replace(
            self,
            raters=tuple(compress(self.raters, kept)),
            kinds=tuple(compress(self.kinds, kept)),
            values=self.values[:, kept],
        )

    def part(self, name: str) -> str:
        """Return the `subset` of rows on a part of the units."""
        return name + BINARY if self.subset.endswith(BINARY) else name


def verdict_calls(labels: LabelMatrix) -> Calls | None:
    """Return 1 for an affirmative verdict, 0 for another; None where the scale has no verdict."""
    if not labels.has_verdicts:
        return None
    verdicts = labels.verdicts.astype(float)
    verdicts[verdicts < 0] = np.nan
    return _calls(labels, verdicts, np.arange(len(verdicts)), BINARY_ALL)


def directed_calls(labels: LabelMatrix) -> Calls | None:
    """Return the side that every rater favours, or None where rubric or units have no sides."""
    if labels.scale.favours:
        signs = favour_signs(labels.scale.categories, labels.scale.favours)
        return _calls(labels, signs[labels.codes], np.arange(len(labels.codes)), "all")
    verdicts = verdict_calls(labels)
    a, b = units_of_both_sides(labels)
    if verdicts is None or not len(a):
        return None
    return _calls(labels, verdicts.values[a] - verdicts.values[b], a, verdicts.subset)


def _calls(labels: LabelMatrix, values: Array, unit: Codes, subset: str) -> Calls:
    return Calls(
        raters=labels.raters,
        kinds=labels.kinds,
        values=values,
        clusters=labels.clusters[unit],
        subjects=labels.subjects,
        subject=labels.subject[unit],
        unit=unit,
        subset=subset,
    )
