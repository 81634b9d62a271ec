"""Duplicated labels: a file that was handed over twice, or under two names.

A grader that repeats one human's labels agrees with that human for no merit of its own. Two raters
who are both nearly always right agree as often; so agreement is not enough: on the units on which
the human differs from everybody else, the grader must side with that human. Where two humans have
identical labels neither is ever alone, and it cannot be decided who is right and who copied: the
identity is reported, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.types import Frequency, Labels, Mask
from evenhand.texts import written

ALIKE = 0.98
"""Share of units with the same label from which two raters may be copies."""
SIDES_WITH = 0.9
"""Share that a copy must match of the units on which the human's label is unique."""
MIN_UNITS, MIN_ALONE = 30, 5
"""Minimum of units that both labelled, and of units on which the human's label is unique (or on
which two identical humans chose another than their most frequent category), to suspect a copy."""


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
    """Find graders that repeat a human's labels, and identical graders or humans.

    `codes` (units, raters) are -1 where there is no label; `times` (units,) is how often each unit
    occurs in the data, once unless given.

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
        for first, second in _sharing(codes, times, alike)
        if _alike(codes, times, first, second) == 1.0 and _rarer(codes, times, first) >= rarer
    ]
    return tuple(found)


def people_alike(copies: Sequence[Copy], raters: Sequence[str], people: Sequence[int]) -> list[str]:
    """Write a sentence for each group of humans with identical labels; `raters` are names.

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


def _sharing(codes: Labels, times: Frequency, raters: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of raters with labels of so many units in common that they can be alike."""
    from scipy.sparse import csr_array

    held = csr_array(codes[:, list(raters)] >= 0, dtype=np.int64)
    shared = (held.T @ (held * times[:, None])).tocoo()
    enough = (shared.data >= MIN_UNITS) & (shared.row < shared.col)
    return sorted(
        (raters[int(a)], raters[int(b)])
        for a, b in zip(shared.row[enough], shared.col[enough], strict=True)
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _rarer(codes: Labels, times: Frequency, rater: int) -> int:
    """Count a rater's labels other than their most frequent one."""
    own = codes[:, rater]
    counts = np.bincount(own[own >= 0], times[own >= 0])
    return int(counts.sum() - counts.max(initial=0))


def _alike(codes: Labels, times: Frequency, first: int, second: int) -> float:
    """Return the share of units with the same label; 0 where too few have both."""
    both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    if times[both].sum() < MIN_UNITS:
        return 0.0
    return _share(codes[both, first] == codes[both, second], times[both])


def _share(chosen: Mask, times: Frequency) -> float:
    return float(times[chosen].sum() / times.sum())


def _is_on_the_side_of(
    codes: Labels, times: Frequency, grader: int, person: int, people: Sequence[int]
) -> bool:
    """Return True if the grader gives the human's label where no other human does."""
    own = codes[:, [person]]
    others = codes[:, [each for each in people if each != person]]
    alone = (own[:, 0] >= 0) & (codes[:, grader] >= 0)
    alone &= (others >= 0).any(axis=1) & (others != own).all(axis=1)
    same = codes[alone, grader] == codes[alone, person]
    return bool(times[alone].sum() >= MIN_ALONE and _share(same, times[alone]) >= SIDES_WITH)
