"""One grader asked by batches: the same questions, requests and keys as live, at half the price.

Every chunk is written down before it is sent, so that a run may end at any instant. The next run
first looks for what is under way at the provider, collects it, and sends only what is missing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from evenhand.graders.clients.batches import BatchLimits, BatchResult
from evenhand.graders.clients.grader import Reply, way_of
from evenhand.graders.failures import ATTEMPTS, GraderFailure, Rejected, Stopped, Transient
from evenhand.graders.money import Budget, OverBudget, Tariff, output_limit, usage_facts
from evenhand.graders.replies import MOST_KEPT, Outcome
from evenhand.graders.running.jobs import GradeJob, by_request, origin
from evenhand.graders.running.live import FAILURES_IN_A_ROW, LiveRun, Part, reason_of
from evenhand.graders.running.run import GraderSummary, Reservations, RunContext
from evenhand.rubrics import PromptText, Rubric
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.store.grades import TRANSIENT_REASONS, GradeAttempt, utc_now
from evenhand.study.store.logs.replies import BatchJournal, BatchRequest, Chunk
from evenhand.texts import written

if TYPE_CHECKING:
    pass

_FAILED = TRANSIENT_REASONS[0]
_NO_PROMPT = PromptText(system="", user="", keys=())
_LOOK_EVERY = 20.0
"""Seconds between looks at a batch."""
T = TypeVar("T")
_FRAME = 200  # bytes of a request's line in addition to the request


class BatchRun(Part):
    """Asks one grader all of its open questions by batches, then closes it.

    Where the context says `cancel` nothing is sent: what is under way is cancelled, and what came
    of it is kept.
    """

    def __init__(
        self,
        job: GradeJob,
        journal: BatchJournal,
        context: RunContext,
        summary: GraderSummary,
        tariff: Tariff | None,
        *,
        live_tariff: Tariff | None,
    ) -> None:
        super().__init__(context, summary, tariff)
        self._job = job
        self._service = job.grader.batches(self._pause)
        self._journal = journal
        self._rubrics = job.study.rubrics | job.questions.rubrics
        self._accepted = job.study.accepted_hashes()
        self._live_tariff = live_tariff
        self._again: list[Question] = []
        self._live: LiveRun | None = None
        self._scope: anyio.CancelScope | None = None

    def interrupt(self) -> int:
        """Stop waiting for batches, which go on without us; return how many replies asked live are
        under way, which are waited for.
        """
        if self._live is not None:
            return self._live.interrupt()
        if self._scope is not None:
            self._scope.cancel()
        return 0

    async def run(self) -> None:
        grader = self._job.grader
        try:
            with anyio.CancelScope() as self._scope:
                self._summary.warnings = tuple(await grader.lifecycle())
                await self._carry_out()
        except Stopped as failure:
            self._summary.stopped = str(failure)
        except GraderFailure as failure:
            self._summary.stopped = f"the batch service does not answer as it should: {failure}"
        finally:
            with anyio.CancelScope(shield=True):
                await grader.close()

    async def _carry_out(self) -> None:
        chunks = await self._continued()
        asked = under_way(chunks)
        todo = [each for each in self._job.questions if (*each.prompted, each.draw) not in asked]
        if self._context.cancel:
            for chunk in chunks:
                await self._surely(partial(self._service.cancel, chunk.batch_id))
            await self._collect_all(chunks)
            return
        if todo and not chunks:
            todo = await self._try_live(todo)
        for _ in range(ATTEMPTS):
            over = await self._send_and_collect(todo, chunks)
            chunks, todo, self._again = [], self._again, []
            if over is not None:
                raise over
            if not todo or self._summary.stopped:
                return
        await self._give_up(todo)

    async def _try_live(self, todo: list[Question]) -> list[Question]:
        """Ask the first question live: a wrong key, model or parameter costs one request, not a
        batch, and what it teaches about the model's parameters holds for the batch. Where it leaves
        open how to ask, the next goes live too.
        """
        asked = 0
        for draws in by_request(todo, self._job.grader.draws_at_once):
            asked += len(draws)
            probe = GradeJob(self._job.study, self._job.grader, self._job.questions.only(draws))
            live = LiveRun(probe, self._context, self._summary, self._live_tariff)
            self._live = live
            await live.run(close=False)
            self._live = None
            self.reservations.longest = max(self.reservations.longest, live.reservations.longest)
            if self._summary.stopped:
                raise Stopped(self._summary.stopped)
            if self._job.grader.settled:
                break
        return todo[asked:]

    async def _continued(self) -> list[Chunk]:
        """Return the chunks under way, found again where the provider's id was never noted."""
        found = []
        for chunk in self._journal.under_way(self._job.rater_id):
            if any(request.trial for request in chunk.requests) != self._job.questions.attacked:
                continue  # an audit's batches are its own
            if not chunk.batch_id:
                known = self._journal.known_batches()
                find = partial(self._service.find, chunk, known)
                batch_id = await self._surely(find)
                if batch_id is None:
                    self._journal.abandoned(chunk.chunk)
                    continue
                chunk = replace(chunk, batch_id=batch_id)
                self._journal.submitted(chunk.chunk, batch_id)
            self._budget.hold(_at_most(chunk))
            found.append(chunk)
        return found

    async def _send_and_collect(
        self, todo: list[Question], chunks: list[Chunk]
    ) -> OverBudget | None:
        """Send all that fits into the budget, collect it, and go on while more fits. Return the
        OverBudget that ended this, or None where everything was sent or the grader was stopped.
        """
        chunker = Chunker(self._job, self._service.limits, self.reservations, todo)
        while True:
            while (built := await chunker.build(self._budget)) is not None:
                chunks.append(await self._submit(*built))
            await self._collect_all(chunks)
            chunks = []
            if self._summary.stopped or not chunker.left:
                return None
            worst = chunker.next_costs
            if not self._budget.fits(worst):
                try:
                    await self._budget.reserve(worst)
                except OverBudget as over:
                    return over
                self._budget.settle(worst, Decimal(0))  # others have settled: build again

    async def _submit(
        self, requests: list[BatchRequest], bodies: list[dict[str, Any]], worst: Decimal
    ) -> Chunk:
        rater = self._job.rater_id
        names = "\n".join(
            [rater, str(self._journal.count(rater)), *(r.custom_id for r in requests)]
        )
        chunk = Chunk(
            chunk=hashlib.sha256(names.encode()).hexdigest()[:40],
            rater_id=rater,
            base_url=self._job.grader.identity.base_url,
            requests=tuple(requests),
            at_most_usd=float(worst) if self._tariff else None,
        )
        await anyio.to_thread.run_sync(self._journal.intend, chunk)
        named = [(r.custom_id, body) for r, body in zip(requests, bodies, strict=True)]
        batch_id = await self._sent(chunk, named)
        await anyio.to_thread.run_sync(self._journal.submitted, chunk.chunk, batch_id)
        self._summary.requests += len(requests)
        return replace(chunk, batch_id=batch_id)

    async def _sent(self, chunk: Chunk, named: list[tuple[str, dict[str, Any]]]) -> str:
        """Submit once: after a failure that may hide a success, look before sending again."""
        async for attempt in self._retrying(anyio.sleep):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    found = await self._service.find(chunk, self._journal.known_batches())
                    if found is not None:
                        return found
                try:
                    return await self._service.submit(chunk.chunk, named)
                except Transient:
                    raise
                except GraderFailure:
                    self._journal.abandoned(chunk.chunk)
                    raise
        raise AssertionError("retrying ends with a result or an error")

    async def _collect_all(self, chunks: list[Chunk]) -> None:
        waiting = list(chunks)
        while waiting:
            for chunk in list(waiting):
                state = await self._surely(partial(self._service.state, chunk.batch_id))
                if state.failed:
                    self._journal.abandoned(chunk.chunk)
                    self._budget.settle(_at_most(chunk), Decimal(0))
                    raise Stopped(f"the provider refused the batch: {state.failed}")
                if state.ended:
                    await self._collect(chunk)
                    waiting.remove(chunk)
                else:
                    at = {"done": state.done, "total": state.total}
                    self._context.progress.say(written("grade.batch", batch=chunk.batch_id, **at))
            if waiting:
                await self._pause()

    async def _collect(self, chunk: Chunk) -> None:
        results = await self._surely(lambda: self._service.results(chunk.batch_id))
        by_name = {result.custom_id: result for result in results}
        grades: list[GradeAttempt] = []
        again: list[Question] = []
        for request in chunk.requests:
            result = by_name.get(request.custom_id)
            asked = self._questions(request)
            if result is None or isinstance(result.failure, Transient):
                again += asked or ()
                continue
            if isinstance(result.failure, Stopped):  # the unit stays open
                self._summary.stopped = self._summary.stopped or str(result.failure)
                continue
            came = self._grades(chunk, request, result)
            grades += came
            again += (asked or ())[len(came) :]  # fewer draws than were asked for
        rejected = [grade for grade in grades if grade.unscored_reason.startswith("request_rej")]
        if (
            rejected
            and len(rejected) == len(grades)
            and not again
            and len(chunk.requests) >= FAILURES_IN_A_ROW
        ):
            # The grader's fault, not the units': the next run asks again.
            grades = [replace(grade, unscored_reason=_FAILED) for grade in grades]
            self._summary.stopped = (
                f"all {len(chunk.requests)} requests of a batch were rejected: "
                f"{rejected[0].provenance['error']}"
            )
        clean = self._context.scrubbed(grades)
        await anyio.to_thread.run_sync(self._journal.collected, chunk.chunk, chunk.batch_id, clean)
        self._budget.settle(_at_most(chunk), self._spent(chunk, by_name, clean))
        self._context.count(clean, self._summary)
        self._again += again

    def _spent(
        self, chunk: Chunk, by_name: Mapping[str, BatchResult], grades: Sequence[GradeAttempt]
    ) -> Decimal:
        """Return the cost of a chunk in US dollars: its worst price where a reply is missing or
        reports no usage. Both services state that they do not bill requests that expired, were
        canceled or failed.
        """
        if not all(_is_priced(by_name.get(request.custom_id)) for request in chunk.requests):
            return _at_most(chunk)
        known = (grade.provenance.get("cost_usd", 0.0) for grade in grades)
        return Decimal(str(round(math.fsum(known), 9)))

    def _grades(
        self, chunk: Chunk, request: BatchRequest, result: BatchResult
    ) -> list[GradeAttempt]:
        """Return the grades in one line of a batch's results, one for each draw that came."""
        asked = self._questions(request)
        rubric = self._rubrics.get(request.rubric) or next(iter(self._rubrics.values()))
        question = asked or questions_of(request, rubric)
        keys = [key for _, key in request.draws]
        facts: dict[str, Any] = {
            **origin(self._job.grader.identity, self._job.grader.spec.model),
            "draw_keys": keys,
            "prompt_hash": request.prompt_hash,
            "settings": request.settings,
            "asked_by": way_of(request.settings),
            "batch_id": chunk.batch_id,
            "chunk": chunk.chunk,
            "started_at": chunk.created_at,
            "finished_at": utc_now(),
        }
        if result.failure is not None or result.body is None:
            failure = result.failure or Rejected("no reply")
            facts |= {"error": str(failure), "status": failure.status}
            return self._job.failed(question, reason_of(failure), facts)
        if asked is None:
            raw = str(result.body)[:MOST_KEPT]
            outcomes = [Outcome(unscored_reason="rubric_changed", raw=raw)] * len(question)
        else:
            outcomes = self._job.grader.read(result.body, question[0].rubric, len(question))
        facts |= usage_facts(outcomes[0].evidence, self._tariff)
        reply = Reply(request.settings, result.request_id, outcomes[0], tuple(outcomes[1:]))
        usual = output_limit(self._job.grader.request(_NO_PROMPT))
        grades = self._job.kept(question, self.reservations.learn(reply, usual), facts)
        return [replace(grade, rubric_hash=request.rubric_hash) for grade in grades]

    def _questions(self, request: BatchRequest) -> list[Question] | None:
        """Return the questions of a request, or None where the study no longer accepts answers to
        the text that was asked.
        """
        rubric = self._rubrics.get(request.rubric)
        if rubric is None or request.rubric_hash not in self._accepted[rubric.name]:
            return None
        return questions_of(request, rubric)

    async def _give_up(self, todo: list[Question]) -> None:
        facts = {"error": f"no readable reply in {ATTEMPTS} batches"}
        failed = [grade for each in todo for grade in self._job.failed([each], _FAILED, facts)]
        await anyio.to_thread.run_sync(self._job.store, failed)
        self._context.count(failed, self._summary)

    async def _surely(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that is safe to repeat, with the retries of any request."""
        async for attempt in self._retrying(anyio.sleep):
            with attempt:
                return await call()
        raise AssertionError("retrying ends with a result or an error")

    async def _pause(self) -> None:
        await anyio.sleep(_LOOK_EVERY * self._limits.wait_scale)


def _is_priced(result: BatchResult | None) -> bool:
    """Return True if the cost of one line of a batch is known."""
    if result is None:
        return False
    return result.body is None or bool(result.body.get("usage"))


def _at_most(chunk: Chunk) -> Decimal:
    return Decimal(str(chunk.at_most_usd or 0))


class Chunker:
    """A source of chunks, one after another. Prompts are rendered as their chunk is built."""

    def __init__(
        self,
        job: GradeJob,
        limits: BatchLimits,
        reservations: Reservations,
        questions: Sequence[Question],
    ) -> None:
        self._job = job
        self._limits = limits
        self._reservations = reservations
        self._questions = list(by_request(questions, job.grader.draws_at_once))
        self._next = 0
        self.next_costs = Decimal(0)
        """The lowest amount in US dollars to set aside for the next request, if it did not fit."""

    @property
    def left(self) -> int:
        return len(self._questions) - self._next

    async def build(
        self, budget: Budget
    ) -> tuple[list[BatchRequest], list[dict[str, Any]], Decimal] | None:
        """Return the next chunk's requests, their bodies and their worst price, which is set aside;
        None where nothing is left, or nothing more fits into the budget.
        """
        requests: list[BatchRequest] = []
        bodies: list[dict[str, Any]] = []
        size, worst = 0, Decimal(0)
        seen: Counter[str] = Counter()
        while self.left and len(requests) < self._limits.requests:
            question = self._questions[self._next]
            prompt = (await anyio.to_thread.run_sync(self._job.prompts, [question]))[0]
            body = self._job.request(question, prompt)
            length = len(json.dumps(body, ensure_ascii=False).encode()) + _FRAME
            if requests and size + length > self._limits.size:
                break
            price = self._reservations.fit(body, worst, self.left)
            if price is None:
                self.next_costs = self._reservations.least(body)
                break
            sent = self._job.sent(question, prompt, body)
            seen[sent["grade_key"]] += 1
            requests.append(_request(question, sent, seen[sent["grade_key"]]))
            bodies.append(body)
            size, worst = size + length, worst + price
            self._next += 1
        if not requests:
            return None
        budget.hold(worst)
        return requests, bodies, worst


def _request(question: Sequence[Question], sent: Mapping[str, Any], nth: int) -> BatchRequest:
    """Return the journal's record of a request. Units with the same text make the same request, but
    ids within a batch must differ, so `nth` numbers them.
    """
    first, key = question[0], sent["grade_key"]
    others = zip(question[1:], sent["draw_keys"][1:], strict=True)
    trial = (*first.trial, first.suite) if isinstance(first, AttackedQuestion) else ()
    return BatchRequest(
        custom_id=key if nth == 1 else f"{key}-{nth}",
        rubric=first.rubric.name,
        rubric_hash=first.rubric.hash,
        unit_id=first.unit_id,
        order=first.order,
        draw=first.draw,
        prompt_hash=sent["prompt_hash"],
        settings=sent["settings"],
        more=[(each.draw, own) for each, own in others],
        trial=trial,
    )


def questions_of(request: BatchRequest, rubric: Rubric) -> list[Question]:
    """Return the questions of a request, one for each draw, under this text of its rubric."""
    about = (request.unit_id, rubric, request.order)
    if not request.trial:
        return [Question(*about, draw) for draw, _ in request.draws]
    attack, target, side, suite = request.trial
    return [
        AttackedQuestion(*about, draw, attack=attack, target=target, side=side, suite=suite)
        for draw, _ in request.draws
    ]


def under_way(chunks: Iterable[Chunk]) -> set[tuple[object, ...]]:
    """Return the keys of all draws in these chunks: the values that determine the prompt
    (`Question.prompted`), and the draw's number.
    """
    return {
        (asked.unit_id, asked.rubric, asked.order, *asked.trial[:3], draw)
        for chunk in chunks
        for asked in chunk.requests
        for draw, _ in asked.draws
    }
