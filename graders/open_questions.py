"""What a grader still has to be asked: everything in the study minus what is finished."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evenhand.rubrics import Rubric
from evenhand.study.questions import Question

if TYPE_CHECKING:
    from evenhand.study.store.store import Store


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """The open questions of one grader. Iterating makes them one at a time."""

    attacked: ClassVar[bool] = False
    """True for the questions of an injection audit."""

    rater_id: str
    already: int
    parts: tuple[tuple[Rubric, str, tuple[tuple[str, int], ...]], ...]
    """(rubric, order, the (unit_id, draw) to ask) for each rubric and order."""

    @property
    def rubrics(self) -> dict[str, Rubric]:
        """The rubrics with the texts that are asked, by name."""
        return {rubric.name: rubric for rubric, *_ in self.parts}

    def __len__(self) -> int:
        return sum(len(asked) for _, _, asked in self.parts)

    def __iter__(self) -> Iterator[Question]:
        for rubric, order, asked in self.parts:
            for unit_id, draw in asked:
                yield Question(unit_id, rubric, order, draw)

    def only(self, draws: Sequence[Question]) -> OpenQuestions:
        """Return the open questions reduced to some draws of one prompt."""
        first, asked = draws[0], tuple((each.unit_id, each.draw) for each in draws)
        return OpenQuestions(self.rater_id, 0, ((first.rubric, first.order, asked),))


def open_questions(
    store: Store,
    rater_id: str,
    units: Mapping[str, Sequence[str]],
    rubrics: Sequence[Rubric],
    accepted: Mapping[str, Collection[str]],
    orders: Sequence[str],
    draws: int = 1,
    *,
    retry_unscored: bool = False,
) -> OpenQuestions:
    """Return the questions that this grader has not answered.

    `units` are unit ids by rubric name; `accepted` are, by rubric name, the hashes of the rubric's
    texts whose answers count (see `Study.accepted_hashes`).
    """
    parts = []
    already = 0
    for rubric in rubrics:
        finished = store.finished_grades(
            rater_id, rubric.name, accepted[rubric.name], labelled_only=retry_unscored
        )
        for order in orders if rubric.unit == "pair" else ("",):
            wanted = [(unit, draw) for unit in units[rubric.name] for draw in range(draws)]
            missing = tuple(w for w in wanted if (w[0], order, w[1]) not in finished)
            already += len(wanted) - len(missing)
            parts.append((rubric, order, missing))
    return OpenQuestions(rater_id, already, tuple(parts))
