"""Rater codes as people type them: capital letters, outer spaces and full-width forms do not
matter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from evenhand.study.refused import Refused

_LONGEST = 256
"""Letters of what was typed that are looked at; a code has 64."""


def as_written(typed: str) -> str:
    """Return the typed code without outer spaces and normalised (Unicode's NFKC).

    >>> as_written("  \uff21nn ")
    'Ann'
    """
    return unicodedata.normalize("NFKC", typed[:_LONGEST]).strip()


def folded(code: str) -> str:
    """The form in which codes are compared.

    >>> folded(" ANN ") == folded("ann")
    True
    """
    return as_written(code).casefold()


def known_spelling(typed: str, known: Collection[str]) -> str | None:
    """Return the known code that was meant, or None. An exact match comes first: an older study may
    have `Ann` and `ann` as two people.

    Raises Refused where several known codes match and none exactly.
    """
    code = as_written(typed)
    if code in known:
        return code
    same = [each for each in known if folded(each) == folded(code)]
    if len(same) > 1:
        raise Refused("several_spellings")
    return same[0] if same else None
