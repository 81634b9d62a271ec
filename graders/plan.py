"""What a grader still has to be asked: everything in the study less what is finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rubrics import Rubric

if TYPE_CHECKING:
    from study.store import Store

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
    parts: tuple[tuple[Rubric, str, tuple[str, ...]], ...]

    def __len__(self) -> int:
        return sum(len(units) for _, _, units in self.parts)

    def __iter__(self) -> Iterator[Question]:
        for rubric, order, units in self.parts:
            for unit_id in units:
                yield Question(rubric, unit_id, order)


def open_work(
    store: Store,
    rater_id: str,
    units: Mapping[str, Sequence[str]],
    rubrics: Sequence[Rubric],
    orders: Sequence[str],
) -> Work:
    """The questions that this grader has not answered. `units` are the unit ids by rubric name."""
    parts = []
    already = 0
    for rubric in rubrics:
        finished = store.finished_grades(rater_id, rubric.name, rubric.hash)
        for order in orders if rubric.unit == "pair" else ("",):
            asked = units[rubric.name]
            missing = tuple(unit for unit in asked if (unit, order, 0) not in finished)
            already += len(asked) - len(missing)
            parts.append((rubric, order, missing))
    return Work(rater_id, already, tuple(parts))
