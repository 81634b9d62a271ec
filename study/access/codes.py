"""Rater codes as people write them: capital letters, outer spaces and full-width forms make no
other person.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from evenhand.study.refused import Refused

_LONGEST = 256
"""Letters of what was typed that are looked at; a code has 64."""


def as_written(typed: str) -> str:
    """What was typed, without outer spaces and in the usual letters (Unicode's NFKC).

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
    """The known code that was meant; None where there is none. The very spelling comes first: an
    older study may have `Ann` and `ann` as two people.

    Raises Refused where it could be several and is none of them as it stands.
    """
    code = as_written(typed)
    if code in known:
        return code
    same = [each for each in known if folded(each) == folded(code)]
    if len(same) > 1:
        raise Refused("several_spellings")
    return same[0] if same else None
