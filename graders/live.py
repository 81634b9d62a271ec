"""One grader asked over the network: many questions at once, every grade kept as it comes."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from graders.failures import GraderFailure, Rejected, Stopped, Transient, retrying
from graders.outcome import Grader, Reply
from graders.plan import Question, Work
from graders.provenance import failed_grade, grade_of, origin, replied
from graders.scrub import Scrubber
from graders.throttle import Throttle
from study.grades import TRANSIENT_REASONS, GradeAttempt, utc_now

if TYPE_CHECKING:
    from rubrics import PromptText
    from study import Study

__all__ = ["FAILURES_IN_A_ROW", "LiveRun", "Pace", "run_all"]

FAILURES_IN_A_ROW = 10
"""So many failed requests with no reply between them stop a grader: it is not the unit's fault."""

_FAILED = TRANSIENT_REASONS[0]

# At the level DEBUG these log what a server sends as it comes, a key that it echoes included.
_LOGS_WITH_HEADERS = ("anthropic", "openai", "httpx2", "httpcore2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many requests at once, how many seconds one may take, and a factor on all waits."""

    concurrency: int = 32
    timeout: float = 600.0
    wait_scale: float = 1.0


class LiveRun:
    """Asks one grader all of its open questions, then closes it.

    `stopped` says afterwards why it was stopped early, if it was. What a stopped grader leaves
    unasked, and what failed on the way, the next run asks again.
    """

    def __init__(
        self,
        study: Study,
        grader: Grader,
        work: Work,
        scrubber: Scrubber,
        pace: Pace,
        on_grade: Callable[[str], None],
    ) -> None:
        self.stopped = ""
        self.scored = 0
        self.unscored: Counter[str] = Counter()
        self.requests = 0
        self._study = study
        self._grader = grader
        self._work = work
        self._scrubber = scrubber
        self._pace = pace
        self._on_grade = on_grade
        self._row = 0
        self._replies = 0
        self._held: list[GradeAttempt] = []

    async def run(self) -> None:
        self._halted = anyio.Event()
        self._throttle = Throttle(self._pace.concurrency)
        questions = iter(self._work)
        try:
            # The first goes alone: what it teaches about the server holds for the rest, and a wrong
            # key or address costs one request.
            await self._answer(next(questions))
            async with anyio.create_task_group() as workers:
                for _ in range(min(self._pace.concurrency, len(self._work) - 1)):
                    workers.start_soon(self._work_through, questions)
        finally:
            with anyio.CancelScope(shield=True):
                await self._commit(self._release())
                await self._grader.close()

    async def _work_through(self, questions: Iterator[Question]) -> None:
        for question in questions:
            if self.stopped:
                return
            await self._answer(question)

    async def _answer(self, question: Question) -> None:
        prompt = await anyio.to_thread.run_sync(self._prompt, question)
        facts: dict[str, Any] = origin(self._grader.identity, self._grader.spec.model, prompt)
        try:
            reply = await self._asked(question, prompt, facts)
        except Stopped as failure:
            self._halt(str(failure))
        except GraderFailure as failure:
            await self._keep_failure(question, failure, facts)
        else:
            await self._keep_reply(question, reply, facts)

    def _prompt(self, question: Question) -> PromptText:
        values = self._study.values(question.rubric, question.unit_id, question.order)
        return question.rubric.for_prompt(values)

    async def _asked(self, question: Question, prompt: PromptText, facts: dict[str, Any]) -> Reply:
        async for attempt in retrying(wait_scale=self._pace.wait_scale, sleep=self._pause):
            with attempt:
                facts["attempts"] = attempt.retry_state.attempt_number
                async with self._throttle.slot():
                    if self.stopped:
                        raise Stopped(self.stopped)
                    self.requests += 1
                    facts["started_at"] = utc_now()
                    began = time.monotonic()
                    reply = await self._grader.ask(question.rubric, prompt)
                    facts["seconds"] = round(time.monotonic() - began, 3)
        return reply

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._halted.wait()

    async def _keep_reply(self, question: Question, reply: Reply, facts: dict[str, Any]) -> None:
        self._row = 0
        self._replies += 1
        facts |= replied(self._grader.identity, reply, question.draw) | {"finished_at": utc_now()}
        grade = grade_of(
            self._work.rater_id,
            question,
            reply.outcome,
            provenance=facts,
            seconds=facts.pop("seconds"),
        )
        await self._commit([*self._release(), grade])

    async def _keep_failure(
        self, question: Question, failure: GraderFailure, facts: dict[str, Any]
    ) -> None:
        facts |= {"error": str(failure), "status": failure.status, "finished_at": utc_now()}
        rejected = isinstance(failure, Rejected)
        reason = f"request_rejected: {failure.status}" if rejected else _FAILED
        grade = failed_grade(self._work.rater_id, question, reason, provenance=facts)
        self._row += 1
        if rejected:
            self._held.append(grade)
        else:
            await self._commit([grade])
        if self._row >= FAILURES_IN_A_ROW:
            self._halt(f"{self._row} requests in a row failed, the last so: {failure}")
        elif isinstance(failure, Transient) and failure.status is None and not self._replies:
            place = self._grader.identity.base_url
            self._halt(f"no reply from {place}; check the address and the network ({failure})")

    def _release(self) -> list[GradeAttempt]:
        """The rejections held back until it is known whether the units or the grader caused them.

        After a later reply they are the units' own. If the grader was stopped over them they say
        nothing about the units, and the next run asks again.
        """
        held, self._held = self._held, []
        return [replace(grade, unscored_reason=_FAILED) for grade in held] if self.stopped else held

    async def _commit(self, grades: list[GradeAttempt]) -> None:
        clean = [
            replace(grade, provenance=self._scrubber.tree(grade.provenance)) for grade in grades
        ]
        with anyio.CancelScope(shield=True):  # a grade that has come is paid for: keep it
            await anyio.to_thread.run_sync(self._study.store.add_grades, clean)
        for grade in clean:
            if grade.label:
                self.scored += 1
            else:
                self.unscored[grade.unscored_reason] += 1
            self._on_grade(self._work.rater_id)

    def _halt(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        self._halted.set()


def run_all(runs: Sequence[LiveRun]) -> None:
    """Carry out several graders' runs side by side; one that is stopped leaves the others be."""
    for name in _LOGS_WITH_HEADERS:
        logging.getLogger(name).setLevel(logging.INFO)

    async def side_by_side() -> None:
        async with anyio.create_task_group() as group:
            for run in runs:
                group.start_soon(run.run)

    try:
        anyio.run(side_by_side)
    except BaseExceptionGroup as group:
        raise _first_of(group) from None


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error in a group, so that callers see what they would see without concurrency."""
    first = group.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first
