"""Labels that are somebody else's: a file that was handed over twice, or under two names.

A grader that repeats one person's labels agrees with that person for no merit of its own. Two who
are both nearly always right agree as often; so it takes more than agreement: on the units on which
the person is at odds with everybody else, the grader must be on that person's side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from evenhand.analysis.types import Labels

ALIKE = 0.98
"""Two raters' share of units with the same label from which they may be copies."""
SIDES_WITH = 0.9
"""Of the units on which the person stands alone, so many with the person."""
MIN_UNITS, MIN_ALONE = 30, 5
"""Units that both labelled, and such on which the person stands alone: with fewer nobody is
suspected."""


@dataclass(frozen=True)
class Copy:
    """Rater `who` gives the labels of rater `of`, on a `share` of the units that both labelled."""

    who: int
    of: int
    share: float


def copies_among(codes: Labels, people: Sequence[int], graders: Sequence[int]) -> tuple[Copy, ...]:
    """Graders that repeat a person's labels, and such that repeat another grader's to the letter.

    `codes` (units, raters) are -1 where there is no label.

    >>> import numpy as np
    >>> ann, ben = np.arange(40) % 2, np.arange(40) % 3 % 2
    >>> copies_among(np.column_stack([ann, ben, ben]), people=[0, 1], graders=[2])
    (Copy(who=2, of=1, share=1.0),)
    """
    found = [
        Copy(grader, person, share)
        for grader in graders
        for person in people
        if (share := _alike(codes, grader, person)) >= ALIKE
        and _is_on_the_side_of(codes, grader, person, people)
    ]
    found += [
        Copy(second, first, 1.0)
        for first, second in combinations(graders, 2)
        if _alike(codes, first, second) == 1.0
        and (codes[codes[:, first] >= 0, first] != codes[:, first].max()).any()
    ]
    return tuple(found)


def _alike(codes: Labels, first: int, second: int) -> float:
    """The share of units with the same label; 0 where too few have both."""
    both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    if both.sum() < MIN_UNITS:
        return 0.0
    return float((codes[both, first] == codes[both, second]).mean())


def _is_on_the_side_of(codes: Labels, grader: int, person: int, people: Sequence[int]) -> bool:
    """Whether it gives the person's label where nobody else does."""
    own = codes[:, [person]]
    others = codes[:, [each for each in people if each != person]]
    alone = (own[:, 0] >= 0) & (codes[:, grader] >= 0)
    alone &= (others >= 0).any(axis=1) & (others != own).all(axis=1)
    same = codes[alone, grader] == codes[alone, person]
    return len(same) >= MIN_ALONE and bool(same.mean() >= SIDES_WITH)
