"""A rater's earlier answers: searched, and listed a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evenhand.rubrics import PeopleText
from evenhand.study.desk.claims import Claim
from evenhand.study.desk.sheets import Task

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


@dataclass(frozen=True)
class Numbered:
    """An answered task, and its number in the order of the rater's answers, from 1 on."""

    number: int
    claim: Claim


def matching(
    search: str, numbered: Sequence[Numbered], shown: Iterable[PeopleText]
) -> Iterator[Numbered]:
    """Yield the answers whose number is `search`, or whose texts (as `shown`) contain it."""
    wanted, number = plain(search), search.strip().removeprefix("#")
    for each, people in zip(numbered, shown, strict=True):
        texts = [people.title, *(block.text for block in people.blocks)]
        if number == str(each.number) or any(wanted in plain(text) for text in texts):
            yield each


def excerpt(people: PeopleText, search: str) -> str:
    """Return the passage of the texts that contains `search`, or else the beginning of the first
    response.
    """
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
