"""The offline baselines' part of a run: no network, so grades are kept in chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evenhand.graders.lexical import LexicalGrader
from evenhand.graders.plan import Question, Work
from evenhand.graders.provenance import grade_of, tool_version
from evenhand.study.store.grades import GradeAttempt

if TYPE_CHECKING:
    from evenhand.study import Study

__all__ = ["OfflineRun"]

_CHUNK = 500


class OfflineRun:
    """Grades all open questions by counting words. Raises InputError where a rubric has no cues."""

    stopped = ""
    warnings: tuple[str, ...] = ()
    requests = 0

    def __init__(self, study: Study, work: Work, on_grades: Callable[[str, int], None]) -> None:
        self.scored = 0
        self.unscored: Counter[str] = Counter()
        self._study = study
        self._work = work
        self._on_grades = on_grades
        self._graders = {
            rubric.name: LexicalGrader(rubric) for rubric, _, places in work.parts if places
        }

    def run(self) -> None:
        questions = iter(self._work)
        while chunk := list(self._grades(islice(questions, _CHUNK))):
            self._study.store.add_grades(chunk)
            self.scored += len(chunk)
            self._on_grades(self._work.rater_id, len(chunk))

    def _grades(self, questions: Iterator[Question]) -> Iterator[GradeAttempt]:
        asked = list(questions)
        shown = self._study.values_of([(q.rubric, q.unit_id, q.order) for q in asked])
        for question, values in zip(asked, shown, strict=True):
            outcome = self._graders[question.rubric.name].grade(values)
            provenance = {"provider": "baseline", "tool": tool_version(), **outcome.evidence}
            yield grade_of(self._work.rater_id, question, outcome, provenance=provenance)
