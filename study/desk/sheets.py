"""Tasks and sheets: a task is one question as shown to a rater, a sheet the tasks asked at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.rubrics import PeopleText, Rubric
from evenhand.study.desk.answers import Given
from evenhand.study.desk.own_flags import OwnFlag
from evenhand.study.desk.pace import Pace


@dataclass(frozen=True)
class Task:
    """A question, ready to be shown: `values` are the rubric's variables in the order `order`."""

    task_id: str
    rubric: Rubric
    order: str
    values: Mapping[str, str]
    given: Given | None = None
    """The present answer, where the task is looked at again."""

    @property
    def people(self) -> PeopleText:
        """The rubric's own words and the unit."""
        return self.rubric.for_people(self.values)

    def people_in(self, language: str) -> PeopleText:
        """Return the task's text for people in a language, if the rubric is translated into it."""
        return self.rubric.in_language(language).for_people(self.values)


@dataclass(frozen=True)
class Sheet:
    """The tasks of one screen, and the rater's progress."""

    tasks: tuple[Task, ...]
    done: int
    total: int
    before: str = ""
    """The task that was answered before these; "" means the last one of all."""
    pace: Pace | None = None
    flags: tuple[OwnFlag, ...] = ()
    """The rater's own flags on these tasks that were not withdrawn."""
