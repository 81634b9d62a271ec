"""The rubrics on one screen: one question, or all questions on a unit."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.rubrics import Rubric
from evenhand.study.questions import Question

Screen = tuple[Question, ...]
"""The questions asked at once: one, or all of a unit."""


def rubrics_by_screen(rubrics: Iterable[Rubric], whole: bool) -> list[list[Rubric]]:
    """Group the rubrics by screen: each alone, or (`whole`) all of one kind of unit together."""
    groups: dict[str, list[Rubric]] = {}
    for rubric in rubrics:
        groups.setdefault(rubric.unit if whole else rubric.name, []).append(rubric)
    return list(groups.values())
