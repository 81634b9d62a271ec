"""What people are asked: a unit under a rubric, and the screens that such places make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from evenhand.rubrics import Rubric

__all__ = ["Place", "Screen", "rubrics_by_screen"]


@dataclass(frozen=True)
class Place:
    """A unit under a rubric: one of all that people are to label."""

    unit_id: str
    rubric: Rubric

    @cached_property
    def key(self) -> tuple[str, str]:
        return (self.unit_id, self.rubric.name)


Screen = tuple[Place, ...]
"""What is asked at once: one place, or all of a unit."""


def rubrics_by_screen(rubrics: Iterable[Rubric], whole: bool) -> list[list[Rubric]]:
    """The rubrics that stand on one screen: each alone, or (`whole`) all of one kind of unit."""
    groups: dict[str, list[Rubric]] = {}
    for rubric in rubrics:
        groups.setdefault(rubric.unit if whole else rubric.name, []).append(rubric)
    return list(groups.values())
