"""Tasks and sheets: a task is one question as shown to a rater, a sheet the tasks asked at once.
And the list of a rater's earlier answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenhand.rubrics import PeopleText, Rubric
from evenhand.study.desk.answers import Given
from evenhand.study.desk.claims import Claim
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
    answered_as: int = 0
    """The number of the first of these tasks among the rater's answers, where it is answered."""

    @property
    def number(self) -> int:
        """The number that the first of these tasks has, or will have, among the answers."""
        return self.answered_as or self.done + 1


# A rater's earlier answers: searched, and listed a page at a time


PAGE = 30
"""Answers on a page of the list."""
LONGEST_SEARCH = 200
_EXCERPT = 160
_BEFORE = 40
"""Characters of an excerpt before the text that was found."""


@dataclass(frozen=True)
class EarlierAnswer:
    """A line of the list: the task with its answer, and its number among the rater's answers."""

    number: int
    task: Task
    excerpt: str
    flagged: bool


@dataclass(frozen=True)
class EarlierPage:
    """A page of answers from place `start` on, the latest first, of `found` in all."""

    rows: tuple[EarlierAnswer, ...] = ()
    start: int = 0
    found: int = 0


Numbered = tuple[int, Claim]
"""An answered task, after its number in the order of the rater's answers, from 1 on."""


def matching(
    search: str, numbered: Sequence[Numbered], shown: Iterable[PeopleText]
) -> Iterator[Numbered]:
    """Yield the answers whose number is `search`, or whose texts (as `shown`) contain it."""
    wanted, number = plain(search), search.strip().removeprefix("#")
    for each, people in zip(numbered, shown, strict=True):
        texts = [people.title, *(block.text for block in people.blocks)]
        if number == str(each[0]) or any(wanted in plain(text) for text in texts):
            yield each


def excerpt(people: PeopleText, search: str) -> str:
    """Return the passage of the texts with `search`, or the beginning of the first response."""
    wanted = plain(search)
    responses = sorted(people.blocks, key=lambda block: block.kind != "response")
    for block in responses if wanted else ():
        at = plain(block.text).find(wanted)
        if at >= 0:
            text = " ".join(block.text.split())
            begin = max(0, at - _BEFORE)
            return ("… " if begin else "") + text[begin : begin + _EXCERPT]
    return responses[0].text[:_EXCERPT] if responses else ""


def plain(text: str) -> str:
    """Return the text in lower case with single spaces, for comparisons.

    >>> plain(" The  ANSWER\\n is") == plain("the answer is ")
    True
    """
    return " ".join(text.split()).lower()
