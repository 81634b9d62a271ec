"""Helpers from which the sections' answers are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evenhand.analysis.report.figures import Figure
from evenhand.texts import written

MOST_NAMED = 3
"""Things named in an answer at most; the rest are in its tables."""


def sentences(*said: Sequence[object]) -> list[object]:
    """Sentences in pieces as one answer.

    >>> sentences(["a."], [], ["b ", 1, "."])
    ['a.', ' ', 'b ', 1, '.']
    """
    return _joined([each for each in said if each], " ")


def listed(things: Sequence[Sequence[object]], between: str = ", ") -> list[object]:
    """Things in pieces one after the other, only the first few of them."""
    more = [written("report.and_others")] if len(things) > MOST_NAMED else []
    return [*_joined(things[:MOST_NAMED], between), *(f" {each}" for each in more)]


def _joined(things: Sequence[Sequence[object]], between: str) -> list[object]:
    out: list[object] = []
    for thing in things:
        out += [*([between] if out else []), *thing]
    return out


def defined(figures: Iterable[Figure | None]) -> list[Figure]:
    """Return the figures that have an estimate, the largest first."""
    found = [figure for figure in figures if figure and not figure.reason]
    return sorted(found, key=lambda figure: -figure.bounds[1])


def bare(figure: Figure) -> Figure:
    """The figure without its interval, where that is for something else."""
    return replace(figure, interval="")
