"""What a run collects: the questions, how each is put, and what is kept of the replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.graders.draws import as_draw
from evenhand.graders.open_questions import OpenQuestions
from evenhand.graders.outcome import BeforeSending, Grader, Outcome, Reply
from evenhand.graders.provenance import failed_grade, grade_key, grade_of, replied, sent
from evenhand.graders.replay import REPEATED, Replies
from evenhand.rubrics import PromptText
from evenhand.study.questions import Question
from evenhand.study.store.grades import GradeAttempt

if TYPE_CHECKING:
    from evenhand.graders.openai_chat import OpenAIGrader
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

    @property
    def grader(self) -> Grader: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]: ...

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply: ...

    def rest(self, question: Any, reply: Reply) -> Any:
        """What of the question a reply has left open, if anything."""
        ...

    def sent(
        self, question: Any, prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]: ...

    def kept(self, question: Any, reply: Reply, facts: dict[str, Any]) -> Sequence[Any]: ...

    def failed(self, question: Any, reason: str, facts: dict[str, Any]) -> Sequence[Any]: ...

    def store(self, records: Sequence[Any]) -> None: ...


class GradeJob:
    """One grader's open questions, and its grades."""

    def __init__(self, study: Study, grader: Grader, questions: OpenQuestions) -> None:
        self.rater_id = questions.rater_id
        self.grader = grader
        self.questions = questions
        self.study = study
        several = grader.settings.draws > 1
        self._replies = Replies(study.store.replies(self.rater_id)) if several else None

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def prompts(self, questions: Sequence[Question]) -> list[PromptText]:
        shown = self.study.values_of(questions)
        return [q.rubric.for_prompt(v) for q, v in zip(questions, shown, strict=True)]

    async def ask(self, question: Question, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(question.rubric, prompt, before)

    def rest(self, question: Question, reply: Reply) -> None:
        return None

    def parse(self, question: Question, body: Mapping[str, Any]) -> Outcome:
        return self.grader.read(body, question.rubric)[0]

    def sent(
        self, question: Question, prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a grade's provenance says of its request."""
        return sent(self.grader.identity, prompt, request, question.draw)

    def kept(self, question: Question, reply: Reply, facts: dict[str, Any]) -> list[GradeAttempt]:
        return [self.grade(question, reply, facts)]

    def grade(self, question: Question, reply: Reply, facts: dict[str, Any]) -> GradeAttempt:
        """The grade that a reply makes; a reply that the question has had already makes none."""
        settings = self.grader.settings
        outcome = reply.outcome
        seconds = facts.get("seconds")
        facts = {name: value for name, value in facts.items() if name != "seconds"}
        facts |= replied(reply)
        facts |= {"method": settings.method, "draws": settings.draws}
        asked = (question.rubric.name, question.unit_id, question.order)
        if self._replies and self._replies.is_repeat(asked, facts):
            outcome = Outcome(unscored_reason=REPEATED, raw=outcome.raw)
        elif settings.method == "draws":
            outcome = as_draw(outcome, question.rubric)
        return grade_of(self.rater_id, question, outcome, provenance=facts, seconds=seconds)

    def failed(self, question: Question, reason: str, facts: dict[str, Any]) -> list[GradeAttempt]:
        return [failed_grade(self.rater_id, question, reason, provenance=facts)]

    def store(self, records: Sequence[GradeAttempt]) -> None:
        self.study.store.add_grades(records)


class DrawsJob:
    """A grader's draws, those about one unit asked for together: what is sent is paid once. A
    question is here a list of draws.
    """

    def __init__(self, job: GradeJob, grader: OpenAIGrader) -> None:
        self.rater_id = job.rater_id
        self.grader = grader
        self._job = job

    def __len__(self) -> int:
        """How many requests it may take."""
        return len(self._job)

    def __iter__(self) -> Iterator[list[Question]]:
        for _, draws in groupby(self._job, key=lambda asked: (asked.key, asked.order)):
            yield list(draws)

    def prompts(self, questions: Sequence[list[Question]]) -> list[PromptText]:
        return self._job.prompts([draws[0] for draws in questions])

    async def ask(
        self, question: list[Question], prompt: PromptText, before: BeforeSending
    ) -> Reply:
        return await self.grader.ask(question[0].rubric, prompt, before, len(question))

    def rest(self, question: list[Question], reply: Reply) -> list[Question]:
        return question[1 + len(reply.more) :]

    def sent(
        self, question: list[Question], prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        return self._job.sent(question[0], prompt, request)

    def kept(
        self, question: list[Question], reply: Reply, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        outcomes = (reply.outcome, *reply.more)
        grades = []
        for draw, outcome in zip(question, outcomes, strict=False):
            key = grade_key(self.grader.identity, reply.request, draw.draw)
            one = replace(reply, outcome=outcome, more=())
            grades.append(self._job.grade(draw, one, facts | {"grade_key": key}))
            facts = facts | {"tokens": {}, "cost_usd": 0.0}  # the first has them all
        return grades

    def failed(
        self, question: list[Question], reason: str, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        return [each for draw in question for each in self._job.failed(draw, reason, facts)]

    def store(self, records: Sequence[GradeAttempt]) -> None:
        self._job.store(records)
