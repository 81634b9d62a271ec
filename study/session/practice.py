"""Practice: units with a known answer, one after the other, each followed by the right answer.

The desk has the interface of the annotators' desk, so that people practise on the page that they
will work on. Practice answers are stored apart and are never labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.rubrics import Rubric, TextBlock
from evenhand.study.desk.answers import (
    Flag,
    Receipt,
    Withdrawal,
    add_answer,
    is_stored,
    standing_flags,
    take_flag,
    take_withdrawal,
    why_refused,
)
from evenhand.study.desk.attention import KnownUnits
from evenhand.study.desk.claims import Claim
from evenhand.study.desk.desk import Desk, Sent, Sheet, Task
from evenhand.study.questions import Question, Screen
from evenhand.study.seeding import digest
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.session import Event, events_of
from evenhand.study.store.schema import practice_labels
from evenhand.study.workspace import Study

# A step of a rater's way through a study.

StepName = Literal[
    "welcome", "consent", "rubric", "practice", "feedback", "comprehension", "background",
    "labelling", "ended",
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A rater's next step."""

    name: StepName
    reason: str = ""
    """The reason why it ended: no_consent, screened_out, returned, timed_out or rejected."""
    attempt: int = 0
    """Number of earlier attempts at this step."""
    missed: frozenset[int] = frozenset()
    """Comprehension questions answered wrongly the last time, from 0 on."""
    rubric: Rubric | None = None
    """The rubric to be read (step "rubric")."""
    screen: Screen = ()
    """The questions to be answered (step "practice"), or just answered (step "feedback")."""


Answers = Mapping[tuple[str, str, int], str]
"""(unit id, rubric, attempt) -> the category chosen, "" where the question was skipped."""


@dataclass(frozen=True)
class Told:
    """Feedback on one question of a practice unit; the answers by their names."""

    title: str
    given: str
    accepted: tuple[str, ...]
    right: bool


@dataclass(frozen=True)
class Feedback:
    """Feedback on a practice unit."""

    blocks: tuple[TextBlock, ...]
    told: tuple[Told, ...]
    explanation: str


class PracticeDesk(Desk):
    """Hands out practice units and takes in the answers. No sheet comes ahead, since what would
    have been right stands between two units; and as it has been shown, no answer is changed.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        _ = study.blinding_key  # now: it cannot be read within another transaction
        settings = study.config.training
        self.units = KnownUnits(study, settings.file if settings else "", "practice")
        self._pass_mark = settings.pass_mark if settings else 0.0
        self._attempts = settings.attempts if settings else 1

    def next_step(
        self, connection: sa.Connection, rater_id: str, log: Sequence[Event]
    ) -> Step | None:
        """Return the next step of the practice; None once it is passed."""
        if not self.units.screens:
            return None
        answers = self._answers(connection, rater_id)
        read = {
            (event.detail["unit"], event.detail["rubric"], event.detail["attempt"])
            for event in log
            if event.kind == "feedback_read"
        }
        for attempt in range(self._attempts):
            for screen in self.units.screens:
                if any((*question.key, attempt) not in answers for question in screen):
                    return Step("practice", attempt=attempt, screen=screen)
                if (*screen[0].key, attempt) not in read:
                    return Step("feedback", attempt=attempt, screen=screen)
            if self._share_right(answers, attempt) >= self._pass_mark:
                return None
        return Step("ended", reason="screened_out", attempt=self._attempts)

    def feedback(self, rater_id: str, step: Step, language: str = "") -> Feedback:
        """Return the feedback on the screen of a step "feedback", in a language of the rubrics."""
        with self.study.store.read() as connection:
            answers = self._answers(connection, rater_id)
        tasks = [self._task(rater_id, asked, step.attempt) for asked in step.screen]
        blocks = {block.variable: block for task in tasks for block in task.people.blocks}
        return Feedback(
            tuple(blocks.values()),
            tuple(
                self._told(asked, answers[(*asked.key, step.attempt)], language)
                for asked in step.screen
                if self.units.accepted(asked.key)
            ),
            self.units.units[step.screen[0].unit_id].explanation,
        )

    # What the page of the annotators asks of a desk

    def next_sheet(self, rater_id: str) -> Sheet | None:
        """The practice unit that is to be answered; None where it is another step's turn."""
        with self.study.store.read() as connection:
            step = self.next_step(connection, rater_id, events_of(connection, rater_id))
            done, total = self._progress(connection, rater_id, step)
        if step is None or step.name != "practice":
            return None
        tasks = (self._task(rater_id, asked, step.attempt) for asked in step.screen)
        claims = [self._claim(rater_id, asked, step.attempt) for asked in step.screen]
        with self.study.store.read() as connection:
            flags = standing_flags(connection, rater_id, claims)
        return Sheet(tuple(tasks), done, total, flags=flags)

    def progress(self, rater_id: str) -> tuple[int, int]:
        """(questions answered, all questions) of this attempt."""
        with self.study.store.read() as connection:
            step = self.next_step(connection, rater_id, events_of(connection, rater_id))
            return self._progress(connection, rater_id, step)

    def submit_all(self, rater_id: str, sent: Sequence[Sent]) -> list[Receipt]:
        """Store practice answers; they are on disk when this returns."""
        with self.study.store.write() as connection:
            return [self._receipt(connection, rater_id, each) for each in sent]

    def _receipt(self, connection: sa.Connection, rater_id: str, sent: Sent) -> Receipt:
        found = next(
            (
                (question, attempt)
                for attempt in range(self._attempts)
                for question in self.units.questions.values()
                if self._is_task(sent.task_id, rater_id, question, attempt)
            ),
            None,
        )
        if found is None:
            return Receipt("unknown_task")
        question, attempt = found
        claim = self._claim(rater_id, question, attempt)
        if isinstance(sent, Withdrawal):
            return take_withdrawal(connection, claim, sent)
        if isinstance(sent, Flag):
            return take_flag(connection, claim, sent)
        if refused := why_refused(sent, question.rubric, self.units.values(question.key, "ab")):
            return Receipt(refused)
        if is_stored(connection, practice_labels, claim, sent.submit_id):
            return Receipt("duplicate")
        if (*question.key, attempt) in self._answers(connection, rater_id):
            return Receipt("already_labelled")
        stored = add_answer(
            self.study.store, connection, practice_labels, claim, sent, question.rubric
        )
        return Receipt("stored" if stored else "unknown_task")

    def _answers(self, connection: sa.Connection, rater_id: str) -> dict[tuple[str, str, int], str]:
        query = sa.select(practice_labels).where(practice_labels.c.rater_id == rater_id)
        rows: Sequence[Any] = connection.execute(query).all()
        return {(row.unit_id, row.rubric, row.draw): row.label for row in rows}

    def _progress(
        self, connection: sa.Connection, rater_id: str, step: Step | None
    ) -> tuple[int, int]:
        attempt = step.attempt if step else self._attempts - 1
        answers = self._answers(connection, rater_id)
        questions = self.units.questions
        return sum((*key, attempt) in answers for key in questions), len(questions)

    def _share_right(self, answers: Answers, attempt: int) -> float:
        """The share of right answers among those questions that have a right one."""
        asked = {key: self.units.accepted(key) for key in self.units.questions}
        right = [
            answers[(*key, attempt)] in accepted for key, accepted in asked.items() if accepted
        ]
        return sum(right) / len(right)

    def _told(self, question: Question, given: str, language: str) -> Told:
        accepted = self.units.accepted(question.key)
        rubric = question.rubric.in_language(language)
        return Told(
            rubric.title,
            rubric.name_of(given),
            tuple(rubric.name_of(key) for key in accepted),
            given in accepted,
        )

    def _task(self, rater_id: str, question: Question, attempt: int) -> Task:
        claim = self._claim(rater_id, question, attempt)
        values = self.units.values(question.key, "ab")
        return Task(claim.task_id, question.rubric, claim.order, values)

    def _claim(self, rater_id: str, question: Question, attempt: int) -> Claim:
        return Claim(
            task_id=self._digest(self.study.blinding_key, rater_id, question, attempt),
            rater_id=rater_id,
            unit_id=question.unit_id,
            rubric=question.rubric.name,
            rubric_hash=question.rubric.hash,
            order="ab" if question.rubric.has_sides else "",
            draw=attempt,
            claimed_at=utc_now(),
        )

    def _is_task(self, task_id: str, rater_id: str, question: Question, attempt: int) -> bool:
        """Return True if the id is the task's: its present one or, on a page left open over an
        upgrade, the one from before 0.3.0.
        """
        keys = (self.study.blinding_key, self.study.config.seed)
        return task_id in (self._digest(key, rater_id, question, attempt) for key in keys)

    @staticmethod
    def _digest(key: int | bytes, rater_id: str, question: Question, attempt: int) -> str:
        return digest(key, "practice", rater_id, *question.key, str(attempt))[:24]
