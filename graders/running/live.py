"""One grader asked over the network: many questions at once, every grade kept as it comes."""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from evenhand.graders.clients.grader import Reply
from evenhand.graders.failures import (
    FILTERED,
    Filtered,
    GraderFailure,
    Rejected,
    Stopped,
    Transient,
    retrying,
)
from evenhand.graders.money import Tariff, output_limit, usage_facts
from evenhand.graders.replies import ASKED_AGAIN
from evenhand.graders.running.jobs import Job, origin
from evenhand.graders.running.run import GraderSummary, ProgressCounter, Reservations, RunContext
from evenhand.study.store.grades import TRANSIENT_REASONS, utc_now
from evenhand.texts import written

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

    from evenhand.rubrics import PromptText

FAILURES_IN_A_ROW = 10
"""The number of failed requests in a row that stops a grader: the units are not at fault."""
_AHEAD = 32  # prompts rendered at once
_LONGEST_START = 2.0  # seconds over which a run's requests begin
_FIRST_CONTACT = 1.0  # seconds after which a server that has never answered is not asked again
_FAILED = TRANSIENT_REASONS[0]
# At the level DEBUG these log what a server sends as it comes, a key that it echoes included.
_LOGS_WITH_HEADERS = ("anthropic", "openai", "httpx2", "aiohttp")
_TOO_BUSY = (429, 529)
_CUT = 0.75


class Part:
    """One grader's part of a run, asked live or by batches; `summary` says how it goes."""

    def __init__(self, context: RunContext, summary: GraderSummary, tariff: Tariff | None) -> None:
        self._context = context
        self._limits = context.limits
        self._budget = context.budget
        self._summary = summary
        self._tariff = tariff
        self.reservations = Reservations(context.budget, tariff)

    async def run(self) -> None:
        """Ask all open questions."""
        raise NotImplementedError

    def interrupt(self) -> int:
        """Begin to end; return how many replies are waited for."""
        raise NotImplementedError

    def _retrying(self, sleep: Callable[[float], Awaitable[None]]) -> AsyncRetrying:
        told = partial(self._context.progress.waits, self._summary.rater_id)
        return retrying(wait_scale=self._limits.wait_scale, sleep=sleep, told=told)


def reason_of(failure: GraderFailure) -> str:
    """Return the reason for which a question is unscored after this failure."""
    if isinstance(failure, Filtered):
        return FILTERED
    return f"request_rejected: {failure.status}" if isinstance(failure, Rejected) else _FAILED


class LiveRun(Part):
    """Asks one model all of its open questions, then closes it; `summary` says how it goes.

    What a grader that is stopped early leaves unasked, and what failed on the way, the next run
    asks again.
    """

    def __init__(
        self, job: Job, context: RunContext, summary: GraderSummary, tariff: Tariff | None
    ) -> None:
        super().__init__(context, summary, tariff)
        self._job = job
        self._grader = job.grader
        self._origin = origin(job.grader.identity, job.grader.spec.model)
        self._under_way = 0
        self._failed_in_a_row = 0
        self._replies = 0
        self._held: list[Any] = []
        self._unwritten: list[Any] = []
        self._write_failed = False

    async def run(self, *, close: bool = True) -> None:
        self._halted = anyio.Event()
        self._throttle = Throttle(self._limits.concurrency)
        self._prompted = self._with_prompts()
        self._began = time.monotonic()
        try:
            self._summary.warnings = tuple(await self._grader.lifecycle())
            # The first goes alone: what it teaches about the server holds for the rest, and a wrong
            # key or address costs one request. Where it leaves open how to ask, so does the next.
            began, alone = time.monotonic(), 0
            for question, prompt in self._prompted:
                began, alone = time.monotonic(), alone + 1
                await self._answer(question, prompt)
                if self._grader.settled or self._summary.stopped:
                    break
            workers = min(self._limits.concurrency, len(self._job) - alone)
            # The others follow evenly over the time that it took: requests that start as one bunch
            # stay one, and wait for each other at every turn.
            gap = min(time.monotonic() - began, _LONGEST_START) / max(workers, 1)
            async with anyio.create_task_group() as group:
                for _ in range(0 if self._summary.stopped else workers):
                    group.start_soon(self._work_through)
                    await self._pause(gap)
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(close)

    def interrupt(self) -> int:
        """Send nothing more; returns how many replies are under way, which are waited for."""
        self._halt(written("grade.was_interrupted"))
        return self._under_way

    async def _end(self, close: bool) -> None:
        self._write_failed = False  # what could not be written is tried once more
        if self._held and not self._replies and not self._summary.stopped:
            # Nothing was answered, so nothing says that the units are at fault.
            why = self._held[-1].provenance["error"]
            self._halt(written("grade.all_refused", count=len(self._held), why=why))
        try:
            await self._commit(self._release())
        finally:
            if close:
                await self._grader.close()

    async def _work_through(self) -> None:
        for question, prompt in self._prompted:  # all workers draw from the same
            await self._answer(question, prompt)
            if self._summary.stopped:
                return

    def _with_prompts(self) -> Iterator[tuple[Any, PromptText]]:
        """Yield the questions with their prompts, which are rendered some at a time."""
        questions = iter(self._job)
        ahead = 1
        while asked := list(islice(questions, ahead)):
            yield from zip(asked, self._job.prompts(asked), strict=True)
            ahead = _AHEAD

    async def _answer(self, question: Any, prompt: PromptText) -> None:
        facts = dict(self._origin)
        try:
            reply = await self._asked(question, prompt, facts)
        except Stopped as failure:
            self._halt(str(failure))
            if "held_usd" in facts:
                facts |= self._job.sent(question, prompt, self._grader.request(prompt))
                facts |= {"error": str(failure), "status": None, "finished_at": utc_now()}
                await self._commit(list(self._job.failed(question, _FAILED, facts)))
        except GraderFailure as failure:
            facts |= self._job.sent(question, prompt, self._grader.request(prompt))
            await self._keep_failure(question, failure, facts)
        else:
            facts |= self._job.sent(question, prompt, reply.request)
            rest = self._job.rest(question, reply)
            facts |= {"finished_at": utc_now()} | ({ASKED_AGAIN: True} if rest == question else {})
            await self._keep_reply(question, reply, facts)
            if rest:
                await self._answer(rest, prompt)

    async def _asked(self, question: Any, prompt: PromptText, facts: dict[str, Any]) -> Reply:
        async def once() -> Reply:
            try:
                async with self._throttle.slot():
                    return await self._paid(question, prompt, facts)
            except Transient as failure:
                silent = failure.mend and not self._replies
                if silent and time.monotonic() - self._began > _FIRST_CONTACT:
                    raise Stopped(failure.mend) from None
                raise

        facts["attempts"] = 1
        try:
            return await once()
        except Transient as failure:
            first = failure
        # Only now, since to follow the policy costs a twentieth of a request's time.
        async for attempt in self._retrying(self._pause):
            with attempt:
                facts["attempts"] = attempt.retry_state.attempt_number
                if facts["attempts"] == 1:
                    raise first
                reply = await once()
        return reply

    async def _paid(self, question: Any, prompt: PromptText, facts: dict[str, Any]) -> Reply:
        """Return one reply. Its request's worst price is set aside before the request is sent."""
        held = spent = Decimal(0)
        began, limit, lost = 0.0, 0, False

        async def before(request: dict[str, Any]) -> None:
            """Set aside the price of the request to be sent, in place of that of a refused one,
            which cost nothing.
            """
            nonlocal held, spent, began, limit
            self._budget.settle(held, Decimal(0))
            held = spent = Decimal(0)
            limit = output_limit(request)
            if not self._summary.stopped:
                # What is set aside is spent, unless it is known to be less.
                held = spent = await self.reservations.set_aside(request)
            if self._summary.stopped:
                raise Stopped(self._summary.stopped)
            self._summary.requests += 1
            facts["started_at"] = utc_now()
            began = time.monotonic()

        self._under_way += 1
        try:
            reply = await self._job.ask(question, prompt, before)
            facts["seconds"] = round(time.monotonic() - began, 3)
            price = usage_facts(reply.outcome.evidence, self._tariff, reply.charged)
            facts |= price
            spent = Decimal(str(price.get("cost_usd", held)))
            reply = self.reservations.learn(reply, limit)
        except GraderFailure as failure:
            lost = failure.may_be_billed
            spent = held if lost else Decimal(0)
            if spent:  # of a reply that never came; later runs of one budget count it too
                facts["held_usd"] = facts.get("held_usd", 0.0) + float(spent)
            raise
        finally:
            self._under_way -= 1
            self._budget.settle(held, spent, lost=lost)
        return reply

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._halted.wait()

    async def _keep_reply(self, question: Any, reply: Reply, facts: dict[str, Any]) -> None:
        self._failed_in_a_row = 0
        self._replies += 1
        records = self._job.kept(question, reply, facts)
        await self._commit([*self._release(), *records])

    async def _keep_failure(
        self, question: Any, failure: GraderFailure, facts: dict[str, Any]
    ) -> None:
        facts |= {"error": str(failure), "status": failure.status, "finished_at": utc_now()}
        records = self._job.failed(question, reason_of(failure), facts)
        if isinstance(failure, Filtered):
            self._failed_in_a_row = 0
            self._replies += 1
            await self._commit([*self._release(), *records])
            return
        self._failed_in_a_row += 1
        if isinstance(failure, Rejected):
            self._held += records
        else:
            await self._commit(list(records))
        if self._failed_in_a_row >= FAILURES_IN_A_ROW:
            in_a_row = self._failed_in_a_row
            self._halt(f"{in_a_row} requests in a row failed, the last with: {failure}")
        elif isinstance(failure, Transient) and failure.status is None and not self._replies:
            address = self._grader.identity.base_url
            self._halt(failure.mend or written("provider.silent", address=address, why=failure))

    def _release(self) -> list[Any]:
        """Return the rejections held back until it is known whether the units or the grader caused
        them.

        After a later reply the units caused them. If the grader was stopped over them they say
        nothing about the units, and the next run asks again.
        """
        held, self._held = self._held, []
        if not self._summary.stopped:
            return held
        return [replace(each, unscored_reason=_FAILED) for each in held]

    async def _commit(self, records: list[Any]) -> None:
        self._unwritten += self._context.scrubbed(records)
        with anyio.CancelScope(shield=True):  # a grade that has come is paid for: keep it
            await anyio.lowlevel.checkpoint()  # replies that come together share one write
            if self._unwritten and not self._write_failed:
                self._write()

    def _write(self) -> None:
        """Make records durable.

        Written in the loop's own thread: a second thread would wait for its turn at every step of
        the database, which with SQLite takes ten times as long. A slow store holds up all requests,
        but what comes meanwhile shares the next write.
        """
        try:
            self._job.store(self._unwritten)
        except BaseException:
            self._write_failed = True  # the others that wait need not find out for themselves
            raise
        together, self._unwritten = self._unwritten, []
        self._context.count(together, self._summary)

    def _halt(self, reason: str) -> None:
        self._summary.stopped = self._summary.stopped or reason
        self._halted.set()


def run_all(parts: Sequence[Part], progress: ProgressCounter) -> None:
    """Carry out several graders' parts side by side; one that stops does not stop the others."""
    for name in _LOGS_WITH_HEADERS:
        log = logging.getLogger(name)
        log.setLevel(max(log.getEffectiveLevel(), logging.INFO))

    interrupted = False

    async def listen(all_: anyio.CancelScope) -> None:
        """Handle Ctrl-C: the first waits for what is under way, the second ends the run."""
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if interrupted:
                    all_.cancel()
                interrupted = True
                if waits := sum(part.interrupt() for part in parts):
                    progress.say(written("grade.interrupted", count=waits))

    async def side_by_side() -> None:
        async with anyio.create_task_group() as watch:
            watch.start_soon(progress.watch)
            if threading.current_thread() is threading.main_thread():
                watch.start_soon(listen, watch.cancel_scope)
            async with anyio.create_task_group() as group:
                for part in parts:
                    group.start_soon(part.run)
            watch.cancel_scope.cancel()
        if interrupted:
            raise KeyboardInterrupt

    gc.freeze()  # else the collector walks the libraries' own objects again and again: 3% of a run
    try:
        anyio.run(side_by_side)
    except BaseExceptionGroup as group:
        raise _first_of(group) from None
    finally:
        gc.unfreeze()


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error in a group, so that callers see what they would see without
    concurrency.
    """
    first = group.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first


class Throttle:
    """A limit on concurrent requests that falls by a quarter when the server is too busy and rises
    by one for every full round of replies. One fall per round: requests that were already under way
    when the limit fell say nothing new.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter = anyio.CapacityLimiter(most)
        self._last_cut = 0.0
        self._replies = 0

    @property
    def limit(self) -> int:
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold room for one request."""
        async with self._limiter:
            sent = time.monotonic()
            try:
                yield
            except Transient as failure:
                if failure.status in _TOO_BUSY and sent >= self._last_cut:
                    self._set(int(self.limit * _CUT))
                    self._last_cut = time.monotonic()
                raise
            self._replies += 1
            if self._replies >= self.limit:
                self._set(self.limit + 1)

    def _set(self, limit: int) -> None:
        self._limiter.total_tokens = min(max(limit, 1), self._most)
        self._replies = 0
