"""What a grader still has to be asked: everything in the study less what is finished."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.rubrics import Rubric

if TYPE_CHECKING:
    from evenhand.study.store.store import Store

__all__ = ["Question", "Work", "open_work"]


@dataclass(frozen=True, slots=True)
class Question:
    """One unit under one rubric, as shown in one order; `draw` counts repeats of the same."""

    rubric: Rubric
    unit_id: str
    order: str
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """One grader's open questions. Iterating makes them one at a time."""

    rater_id: str
    already: int
    parts: tuple[tuple[Rubric, str, tuple[tuple[str, int], ...]], ...]

    def __len__(self) -> int:
        return sum(len(places) for _, _, places in self.parts)

    def __iter__(self) -> Iterator[Question]:
        for rubric, order, places in self.parts:
            for unit_id, draw in places:
                yield Question(rubric, unit_id, order, draw)

    def only(self, question: Question) -> Work:
        place = (question.unit_id, question.draw)
        return Work(self.rater_id, 0, ((question.rubric, question.order, (place,)),))

    def without(self, under_way: Container[tuple[str, str, str, int]]) -> Work:
        """The same less what is asked elsewhere: (rubric, unit_id, order, draw)."""
        parts = []
        for rubric, order, places in self.parts:
            left = tuple(p for p in places if (rubric.name, p[0], order, p[1]) not in under_way)
            parts.append((rubric, order, left))
        return Work(self.rater_id, self.already, tuple(parts))


def open_work(
    store: Store,
    rater_id: str,
    units: Mapping[str, Sequence[str]],
    rubrics: Sequence[Rubric],
    accepted: Mapping[str, Collection[str]],
    orders: Sequence[str],
    draws: int = 1,
    *,
    retry_unscored: bool = False,
) -> Work:
    """The questions that this grader has not answered.

    By rubric name, `units` are the unit ids, and `accepted` the hashes of the texts under which an
    answer counts (see `Study.accepted_hashes`).
    """
    parts = []
    already = 0
    for rubric in rubrics:
        finished = store.finished_grades(
            rater_id, rubric.name, accepted[rubric.name], labelled_only=retry_unscored
        )
        for order in orders if rubric.unit == "pair" else ("",):
            wanted = [(unit, draw) for unit in units[rubric.name] for draw in range(draws)]
            missing = tuple(p for p in wanted if (p[0], order, p[1]) not in finished)
            already += len(wanted) - len(missing)
            parts.append((rubric, order, missing))
    return Work(rater_id, already, tuple(parts))
