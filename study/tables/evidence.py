"""The words that decided an answer: ranges of the texts that a person read.

A range counts Unicode code points of the text as it is stored, from 0, its end not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

MOST_MARKS = 50
"""In one answer."""


@dataclass(frozen=True, order=True)
class Mark:
    """`text` is the variable that the rubric calls it by: response, response_a or response_b."""

    text: str
    start: int
    end: int


def read_marks(given: Any) -> tuple[Mark, ...] | None:
    """Read the marks that a browser sent or a table holds, in their order; None where it is not a
    list of ranges that are not empty and do not overlap, or there are too many.
    """
    if not isinstance(given, list) or len(given) > MOST_MARKS:
        return None
    marks = []
    for each in given:
        match each:
            case {"text": str(text), "start": int(start), "end": int(end)} if (
                len(each) == 3 and bool not in (type(start), type(end)) and 0 <= start < end
            ):
                marks.append(Mark(text, start, end))
            case _:
                return None
    marks.sort()
    overlap = any(a.text == b.text and b.start < a.end for a, b in pairwise(marks))
    return None if overlap else tuple(marks)


def written_marks(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """The marks in their order, as `read_marks` reads them."""
    return [asdict(mark) for mark in sorted(marks)]


def lie_within(marks: Iterable[Mark], texts: Mapping[str, str]) -> bool:
    """Return True if each of the marks is on one of the responses among `texts`, and inside it."""
    return all(
        mark.text.startswith("response")
        and mark.text in texts
        and mark.end <= len(texts[mark.text])
        for mark in marks
    )


def other_way_round(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Return the marks with the two sides exchanged."""
    turned = {"response_a": "response_b", "response_b": "response_a"}
    other = (Mark(turned.get(each.text, each.text), each.start, each.end) for each in marks)
    return tuple(sorted(other))


def pieces(text: str, marked: Iterable[tuple[str, Mark]]) -> list[tuple[str, tuple[str, ...]]]:
    """The text cut where a mark begins or ends: each piece with those who marked it, in the order
    in which they are named.

    >>> pieces("It is so.", [("ann", Mark("response", 0, 5)), ("ben", Mark("response", 3, 8))])
    [('It ', ('ann',)), ('is', ('ann', 'ben')), (' so', ('ben',)), ('.', ())]
    """
    marked = list(marked)
    ends = {0, len(text), *(end for _, mark in marked for end in (mark.start, mark.end))}
    cuts = sorted(end for end in ends if end <= len(text))
    found = []
    for start, end in pairwise(cuts):
        own = (who for who, mark in marked if mark.start <= start and end <= mark.end)
        found.append((text[start:end], tuple(dict.fromkeys(own))))
    return found
