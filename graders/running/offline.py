"""The offline baselines' part of a run: no network, so grades are kept in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evenhand.graders.baselines.lexical import LexicalGrader
from evenhand.graders.plan import OpenQuestions
from evenhand.graders.running.provenance import grade_of, tool_version
from evenhand.graders.running.run import GraderSummary, RunContext
from evenhand.study.questions import Question
from evenhand.study.store.grades import GradeAttempt

if TYPE_CHECKING:
    from evenhand.study import Study

_CHUNK = 500


class OfflineRun:
    """Grades all open questions by counting words. Raises InputError where a rubric has no cues."""

    def __init__(
        self, study: Study, questions: OpenQuestions, context: RunContext, summary: GraderSummary
    ) -> None:
        self._study = study
        self._questions = questions
        self._context = context
        self._summary = summary
        self._graders = {
            rubric.name: LexicalGrader(rubric) for rubric in {each.rubric for each in questions}
        }

    def run(self) -> None:
        questions = iter(self._questions)
        while chunk := list(self._grades(list(islice(questions, _CHUNK)))):
            self._study.store.add_grades(chunk)
            self._context.count(chunk, self._summary)

    def _grades(self, questions: list[Question]) -> Iterator[GradeAttempt]:
        shown = self._study.values_of(questions)
        for question, values in zip(questions, shown, strict=True):
            outcome = self._graders[question.rubric.name].grade(values)
            facts = {"provider": "baseline", "tool": tool_version(), "cost_usd": 0.0}
            provenance = facts | outcome.evidence
            yield grade_of(self._questions.rater_id, question, outcome, provenance=provenance)
