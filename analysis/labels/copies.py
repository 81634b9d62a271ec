"""Labels that are somebody else's: a file that was handed over twice, or under two names.

A grader that repeats one person's labels agrees with that person for no merit of its own. Two who
are both nearly always right agree as often; so it takes more than agreement: on the units on which
the person is at odds with everybody else, the grader must be on that person's side. Where two
people are alike to the letter neither is ever alone, and who is right cannot be told from who
copied: that they are alike is said, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenhand.analysis.types import Frequency, Labels, Mask
from evenhand.texts import written

ALIKE = 0.98
"""Two raters' share of units with the same label from which they may be copies."""
SIDES_WITH = 0.9
"""Of the units on which the person stands alone, so many with the person."""
MIN_UNITS, MIN_ALONE = 30, 5
"""Units that both labelled, and such on which the person stands alone, or on which two people who
are alike chose another than their most frequent category: with fewer nobody is suspected."""


@dataclass(frozen=True)
class Copy:
    """Rater `who` gives the labels of rater `of`, on a `share` of the units that both labelled."""

    who: int
    of: int
    share: float


def copies_among(
    codes: Labels,
    people: Sequence[int],
    graders: Sequence[int],
    times: Frequency | None = None,
) -> tuple[Copy, ...]:
    """Graders that repeat a person's labels; graders, and people, that repeat one another's to the
    letter.

    `codes` (units, raters) are -1 where there is no label; `times` (units,) says how often each
    unit stands in the data, once unless given.

    >>> ann, ben = np.arange(40) % 2, np.arange(40) % 3 % 2
    >>> copies_among(np.column_stack([ann, ben, ben]), people=[0, 1], graders=[2])
    (Copy(who=2, of=1, share=1.0),)
    """
    times = np.ones(len(codes), dtype=np.int64) if times is None else times
    found = [
        Copy(grader, person, share)
        for grader in graders
        for person in people
        if (share := _alike(codes, times, grader, person)) >= ALIKE
        and _is_on_the_side_of(codes, times, grader, person, people)
    ]
    found += [
        Copy(second, first, 1.0)
        for alike, rarer in ((graders, 1), (people, MIN_ALONE))
        for first, second in combinations(alike, 2)
        if _alike(codes, times, first, second) == 1.0 and _rarer(codes, times, first) >= rarer
    ]
    return tuple(found)


def people_alike(copies: Sequence[Copy], raters: Sequence[str], people: Sequence[int]) -> list[str]:
    """A sentence for each group of people whose labels are alike to the letter; `raters` are names.

    >>> people_alike([Copy(1, 0, 1.0), Copy(2, 0, 1.0), Copy(2, 1, 1.0)], "abc", [0, 1, 2])[0][:48]
    'a, b and c gave the same label on every unit tha'
    """
    own = [each for each in copies if each.who in people]
    repeating = {each.who for each in own}
    groups = {each.of: [each.of] for each in own if each.of not in repeating}
    for each in own:
        if each.of in groups:
            groups[each.of].append(each.who)
    return [
        written("note.same_people", names=_listed([raters[at] for at in group]))
        for group in groups.values()
    ]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _rarer(codes: Labels, times: Frequency, rater: int) -> int:
    """How many of a rater's labels are not their most frequent one."""
    own = codes[:, rater]
    counts = np.bincount(own[own >= 0], times[own >= 0])
    return int(counts.sum() - counts.max(initial=0))


def _alike(codes: Labels, times: Frequency, first: int, second: int) -> float:
    """The share of units with the same label; 0 where too few have both."""
    both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    if times[both].sum() < MIN_UNITS:
        return 0.0
    return _share(codes[both, first] == codes[both, second], times[both])


def _share(chosen: Mask, times: Frequency) -> float:
    return float(times[chosen].sum() / times.sum())


def _is_on_the_side_of(
    codes: Labels, times: Frequency, grader: int, person: int, people: Sequence[int]
) -> bool:
    """Whether it gives the person's label where nobody else does."""
    own = codes[:, [person]]
    others = codes[:, [each for each in people if each != person]]
    alone = (own[:, 0] >= 0) & (codes[:, grader] >= 0)
    alone &= (others >= 0).any(axis=1) & (others != own).all(axis=1)
    same = codes[alone, grader] == codes[alone, person]
    return bool(times[alone].sum() >= MIN_ALONE and _share(same, times[alone]) >= SIDES_WITH)
