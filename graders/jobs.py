"""What a run collects: the questions, how each is put, and what is kept of the replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.graders.draws import as_draw
from evenhand.graders.open_questions import OpenQuestions
from evenhand.graders.outcome import BeforeSending, Grader, Outcome, Reply
from evenhand.graders.provenance import failed_grade, grade_of, replied, sent
from evenhand.rubrics import PromptText
from evenhand.study.questions import Question
from evenhand.study.store.grades import GradeAttempt

if TYPE_CHECKING:
    from evenhand.study import Study


class Record(Protocol):
    """One attempt as the store keeps it."""

    @property
    def unscored_reason(self) -> str: ...

    @property
    def provenance(self) -> dict[str, Any]: ...


class Job(Protocol):
    """Questions for one model behind a network. `grader` is who answers them."""

    rater_id: str
    grader: Grader

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]: ...

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply: ...

    def sent(
        self, question: Any, prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]: ...

    def kept(self, question: Any, reply: Reply, facts: dict[str, Any]) -> Any: ...

    def failed(self, question: Any, reason: str, facts: dict[str, Any]) -> Any: ...

    def store(self, records: Sequence[Any]) -> None: ...


class GradeJob:
    """One grader's open questions, and its grades."""

    def __init__(self, study: Study, grader: Grader, questions: OpenQuestions) -> None:
        self.rater_id = questions.rater_id
        self.grader = grader
        self.questions = questions
        self.study = study

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def prompts(self, questions: Sequence[Question]) -> list[PromptText]:
        shown = self.study.values_of(questions)
        return [q.rubric.for_prompt(v) for q, v in zip(questions, shown, strict=True)]

    async def ask(self, question: Question, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(question.rubric, prompt, before)

    def parse(self, question: Question, body: Mapping[str, Any]) -> Outcome:
        return self.grader.parse(body, question.rubric)

    def sent(
        self, question: Question, prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a grade's provenance says of its request."""
        return sent(self.grader.identity, prompt, request, question.draw)

    def kept(self, question: Question, reply: Reply, facts: dict[str, Any]) -> GradeAttempt:
        settings = self.grader.settings
        outcome = reply.outcome
        if settings.method == "draws":
            outcome = as_draw(outcome, question.rubric)
        seconds = facts.pop("seconds", None)
        facts = facts | replied(reply)
        facts |= {"method": settings.method, "draws": settings.draws}
        return grade_of(self.rater_id, question, outcome, provenance=facts, seconds=seconds)

    def failed(self, question: Question, reason: str, facts: dict[str, Any]) -> GradeAttempt:
        return failed_grade(self.rater_id, question, reason, provenance=facts)

    def store(self, records: Sequence[GradeAttempt]) -> None:
        self.study.store.add_grades(records)
