"""A run: what all of its graders share, how much its budget sets aside for a request, the questions
that it puts and what is kept of the replies; and each grader's part of it, live, many questions at
once, every grade kept as it comes, or by batches, the same requests and keys at half the price.

Every chunk of a batch is written down before it is sent, so that a run may end at any instant. The
next run first looks for what is under way at the provider, collects it, and sends only what is
missing.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, islice, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel

from evenhand.graders.clients.grader import (
    Ask,
    BatchLimits,
    BatchResult,
    BeforeSending,
    Grader,
    Identity,
    Reply,
    way_of,
)
from evenhand.graders.failures import (
    ATTEMPTS,
    FILTERED,
    Filtered,
    GraderFailure,
    Rejected,
    Stopped,
    Transient,
    retrying,
)
from evenhand.graders.money import (
    LIMIT_NAMES,
    Budget,
    OverBudget,
    Tariff,
    Terms,
    Tokens,
    output_limit,
    usage_facts,
)
from evenhand.graders.options import OpenQuestions, RequestLimits
from evenhand.graders.replies import ASKED_AGAIN, MOST_KEPT, REPEATED, Outcome, Replies, as_draw
from evenhand.graders.scrub import Scrubber, storable
from evenhand.rubrics import PromptText, Reworded, Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION
from evenhand.study.prompts.units import AttackedQuestion, Question
from evenhand.study.store.grades import (
    CUT_SHORT,
    TRANSIENT_REASONS,
    AttackedGrade,
    GradeAttempt,
    utc_now,
)
from evenhand.study.store.logs.replies import BatchJournal, BatchRequest, Chunk, known_replies
from evenhand.texts import written

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

    from evenhand.study import Study
    from evenhand.study.store.logs.decisions import ProposalAttempt
    from evenhand.study.store.logs.replies import ResponseAttempt

    AnyAttempt = GradeAttempt | ResponseAttempt | ProposalAttempt
    Attempt = TypeVar("Attempt", GradeAttempt, ResponseAttempt, ProposalAttempt)

MOST_WORDS = 120
"""The most characters of a server's message that are shown while waiting for it."""
PATIENCE = 10.0
"""Seconds without progress after which the display says what the run waits for."""

Progress = Callable[[int, int, str], None]
"""Called with (grades of this run so far, questions of this run, the grader's rater_id)."""


class ProgressCounter:
    """A counter of what a run has collected, which reports to the caller's `progress`."""

    def __init__(self, progress: Progress | None) -> None:
        self._done = self._total = 0
        self._progress = progress
        self._moved = time.monotonic()
        self._waits: Callable[[], str] | None = None

    def expect(self, more: int) -> None:
        self._total += more

    def add(self, label: str) -> None:
        self._done += 1
        self._waits = None
        self.say(label)

    def say(self, label: str) -> None:
        self._moved = time.monotonic()
        self._tell(label)

    def waits(self, rater_id: str, failure: GraderFailure, attempt: int, seconds: float) -> None:
        """Note that a request failed and will be tried again in this many seconds."""
        next_at, status = time.monotonic() + seconds, failure.status

        def sentence() -> str:
            left = next_at - time.monotonic()
            return written(
                "grade.waits_to_retry" if left > 0 else "grade.tries_again",
                grader=rater_id,
                what=written("grade.no_answer") if status is None else status,
                words=str(failure)[:MOST_WORDS],
                attempt=attempt + 1,
                attempts=ATTEMPTS,
                seconds=max(math.ceil(left), 0),
            )

        self._waits = sentence

    async def watch(self) -> None:
        """Report what the run waits for, until cancelled."""
        import anyio

        while self._progress:
            await anyio.sleep(min(PATIENCE, 1.0))
            idle = time.monotonic() - self._moved
            if idle >= PATIENCE:
                silence = written("grade.waits_for_reply", seconds=round(idle))
                self._tell(self._waits() if self._waits else silence)

    def _tell(self, label: str) -> None:
        if self._progress:
            self._progress(self._done, self._total, label)


@dataclass(slots=True, kw_only=True)
class GraderSummary:
    """The summary of one grader's part of a run, filled in as it goes. `stopped` is the reason if
    it was stopped early, else "".
    """

    rater_id: str
    already: int
    planned: int
    scored: int = 0
    without_probabilities: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    stopped: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def unasked(self) -> int:
        return self.planned - self.scored - sum(self.unscored.values())


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that all graders of a run share. With `batch` they are asked by the providers'
    batch services, and with `cancel` what is under way there is ended.
    """

    scrubber: Scrubber
    limits: RequestLimits
    budget: Budget
    progress: ProgressCounter
    batch: bool = False
    cancel: bool = False

    def scrubbed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Return the attempts with secrets removed from their provenance."""
        return [replace(each, provenance=self.scrubber.tree(each.provenance)) for each in attempts]

    def count(self, attempts: Iterable[AnyAttempt], to: GraderSummary) -> None:
        """Add stored attempts to a grader's summary, except those that were asked again."""
        for attempt in attempts:
            if attempt.provenance.get(ASKED_AGAIN):
                continue
            if attempt.unscored_reason:
                to.unscored[attempt.unscored_reason] += 1
            else:
                to.scored += 1
                asked_for = attempt.provenance.get("method") == "logprobs"
                to.without_probabilities += asked_for and not getattr(attempt, "prob_method", "")
            self.progress.add(to.rater_id)


# ---- reservations -------------------------------------------------------------------------------
ENOUGH = 1_024
"""Tokens. No limit on output is set below this."""
_TIMES_THE_LONGEST = 4


class Reservations:
    """The amounts that one grader sets aside from the budget for its requests."""

    def __init__(self, budget: Budget, tariff: Tariff | None, longest: int = 0) -> None:
        self._budget = budget
        self._tariff = tariff
        self.longest = longest
        """The tokens of the longest answer so far."""

    async def set_aside(self, request: dict[str, Any]) -> Decimal:
        """Reserve a request's worst price in US dollars and return it. The request's limit on
        output is lowered where that is too much, or where replies were lost: a lost reply counts in
        full, so the next request should cost little. Raises OverBudget where not even a low limit
        fits.
        """
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        least = self._least(self._tariff, request)
        careful = self._budget.limit is not None and self._budget.lost and self.longest
        granted = await self._budget.reserve(least if careful else most, least)
        if granted < most:
            _lower(self._tariff, request, granted)
        return granted

    def fit(self, request: dict[str, Any], taken: Decimal, among: int) -> Decimal | None:
        """Return the worst price in US dollars of the next of `among` requests of a batch. Its
        limit on output is lowered where they would not all fit in addition to what is `taken`; None
        where the request does not fit even so.
        """
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        if self._budget.fits(taken + most * among):
            return most
        least = self._least(self._tariff, request)
        if not self._budget.fits(taken + least):
            return None
        if least < most:
            _lower(self._tariff, request, least)
        return least

    def least(self, request: Mapping[str, Any]) -> Decimal:
        """Return the amount in US dollars that must be free before a request is sent."""
        if self._tariff is None:
            return Decimal(0)
        return self._least(self._tariff, request)

    def learn(self, reply: Reply, asked: int) -> Reply:
        """Remember the tokens that a reply used, and return the reply. Where a lower limit than
        `asked` (tokens) has cut it short, its outcome says so.
        """
        outcomes = (reply.outcome, *reply.more)
        usage = reply.outcome.evidence.get("usage")
        if isinstance(usage, Mapping):
            self.longest = max(self.longest, Tokens.of(usage).output // len(outcomes))
        tier = Terms.of(reply.outcome.evidence).tier
        if self._tariff and tier and tier != self._tariff.tier:
            self._tariff = replace(self._tariff, tier=tier)
        if output_limit(reply.request) >= asked:
            return reply
        first, *more = (
            replace(each, unscored_reason=CUT_SHORT)
            if each.unscored_reason == "truncated"
            else each
            for each in outcomes
        )
        return replace(reply, outcome=first, more=tuple(more))

    def _least(self, tariff: Tariff, request: Mapping[str, Any]) -> Decimal:
        most = tariff.at_most(request)
        if not any(name in request for name in LIMIT_NAMES):
            return most
        limit = max(ENOUGH, _TIMES_THE_LONGEST * self.longest)
        return min(tariff.at_most(request, limit), most)


def _lower(tariff: Tariff, request: dict[str, Any], granted: Decimal) -> None:
    """Lower a request's limit on output so that it costs no more than was granted."""
    limit = output_limit(request)
    bare = tariff.at_most(request, 0)
    each = (tariff.at_most(request, limit) - bare) / limit
    name = next(name for name in LIMIT_NAMES if name in request)
    request[name] = max(int((granted - bare) / each), 1)


# ---- grades and jobs ----------------------------------------------------------------------------
def grade_key(identity: Identity, request: Mapping[str, Any], draw: int) -> str:
    """Return the key that grades of the same request share: 40 hexadecimal digits of SHA-256.

    The hash covers the final request, the service it went to, the prompt's version and the draw;
    not timeouts or concurrency, which change nothing about the answer.
    """
    parts = {
        "provider": identity.provider,
        "base_url": identity.base_url,
        "api_version": identity.api_version,
        "endpoint": identity.endpoint,
        "prompt_version": PROMPT_VERSION,
        "draw": draw,
        "request": request,
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def sent(
    identity: Identity, prompt: PromptText, request: Mapping[str, Any], draw: int
) -> dict[str, Any]:
    """Return the facts about a request, live or in a batch: its key, the hash of its words, its
    settings.
    """
    shown = "".join(image.uri for _, image in prompt.images)
    words = hashlib.sha256(f"{prompt.system}\0{prompt.user}{shown}".encode()).hexdigest()
    said = ("model", "system", "messages")
    return {
        "grade_key": grade_key(identity, request, draw),
        "prompt_hash": words[:16],
        "settings": {name: value for name, value in request.items() if name not in said},
        "asked_by": way_of(request),
    }


def replied(reply: Reply) -> dict[str, Any]:
    """Return the facts that a reply adds: ids, the model that answered, usage, probabilities."""
    evidence = dict(reply.outcome.evidence)
    return {
        "returned_model": evidence.pop("model", ""),
        "reply_id": evidence.pop("id", ""),
        "request_id": reply.request_id,
        **evidence,
    }


def grade_of(
    rater_id: str,
    question: Question,
    outcome: Outcome,
    *,
    provenance: Mapping[str, Any],
    seconds: float | None = None,
) -> GradeAttempt:
    """Return the grade of an outcome; order "ba" swaps the options for their counterparts."""
    rubric = question.rubric
    turn = rubric.swaps.__getitem__ if question.order == "ba" else str
    probabilities = None
    p_positive = None
    if outcome.probabilities is not None:
        turned = {turn(key): p for key, p in outcome.probabilities.items()}
        probabilities = {key: turned[key] for key in rubric.categories}
        if rubric.affirmative:
            p_positive = min(sum(probabilities[key] for key in rubric.affirmative), 1.0)
    grade = GradeAttempt(
        rater_id=rater_id,
        rubric=rubric.name,
        unit_id=question.unit_id,
        rubric_hash=rubric.hash,
        order=question.order,
        draw=question.draw,
        label=turn(outcome.label) if outcome.label else "",
        p_positive=p_positive,
        probabilities=probabilities,
        prob_method=outcome.prob_method,
        unscored_reason=outcome.unscored_reason,
        seconds=seconds,
        raw=outcome.raw,
        provenance=storable(dict(provenance)),
    )
    if isinstance(question, AttackedQuestion):  # no rating of the unit: kept apart
        about = {name: getattr(question, name) for name in ("attack", "target", "side", "suite")}
        return AttackedGrade(**vars(grade), **about)
    return grade


@cache
def tool_version() -> str:
    try:
        return f"evenhand {version('evenhand')}"
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "evenhand"


# ---- jobs ---------------------------------------------------------------------------------------
_PAID_ONCE: dict[str, Any] = {"tokens": {}, "cost_usd": 0.0}
"""The cost facts of every draw of a request except the first, which carries the whole cost."""


class Job:
    """The questions for one model behind a network, which `grader` answers: one request for each
    that is `asked`, whose reply is read as a text. `attempt` makes the record of a question from
    its facts and what came of it, an outcome or the reason why there is none; `store` keeps
    records. `about` are facts of every one.
    """

    rater_id: str
    grader: Grader

    def __init__(
        self,
        rater_id: str,
        asked: Mapping[Any, PromptText],
        attempt: Callable[[Any, dict[str, Any], Outcome | str], Any],
        store: Callable[[Sequence[Any]], None],
        about: Mapping[str, Any],
    ) -> None:
        self.rater_id = rater_id
        self._asked = asked
        self._attempt = attempt
        self._store = store
        self._about = about

    def __len__(self) -> int:
        return len(self._asked)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._asked)

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]:
        return [self._asked[each] for each in questions]

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(Ask(prompt), before)

    def rest(self, question: Any, reply: Reply) -> Any:
        """Return the part of the question that a reply has left open, if any."""
        return None

    def sent(self, question: Any, prompt: PromptText, request: Mapping[str, Any]) -> dict[str, Any]:
        return sent(self.grader.identity, prompt, request, draw=0) | dict(self._about)

    def kept(self, question: Any, reply: Reply, facts: dict[str, Any]) -> list[Any]:
        return [self._attempt(question, facts | replied(reply), reply.outcome)]

    def failed(self, question: Any, reason: str, facts: dict[str, Any]) -> list[Any]:
        return [self._attempt(question, facts, reason)]

    def store(self, records: Sequence[Any]) -> None:
        self._store(records)


def by_request(questions: Iterable[Question], most: int) -> Iterator[list[Question]]:
    """Group consecutive questions that share a prompt, at most `most` to a list."""
    for _, draws in groupby(questions, key=lambda question: question.prompted):
        left = list(draws)
        while left:
            yield left[:most]
            left = left[most:]


class GradeJob(Job):
    """The open questions of one grader, and the grades that its replies make. A question is here a
    list of draws of one prompt: those are asked for together where the grader takes that, so that
    the prompt is paid for once.
    """

    def __init__(self, study: Study, grader: Grader, questions: OpenQuestions) -> None:
        self.rater_id = questions.rater_id
        self.grader = grader
        self.questions = questions
        self.study = study
        several = grader.settings.draws > 1
        known = known_replies(study.store, self.rater_id) if several else {}
        self._replies = Replies(known) if several else None
        self._again: set[Question] = set()

    def __len__(self) -> int:
        """Return the number of draws: the most requests that the job may take."""
        return len(self.questions)

    def __iter__(self) -> Iterator[list[Question]]:
        together = self.grader.draws_at_once > 1
        return by_request(self.questions, len(self.questions) if together else 1)

    def prompts(self, questions: Sequence[list[Question]]) -> list[PromptText]:
        asked = [draws[0] for draws in questions]
        shown = self.study.values_of(asked)
        return [q.rubric.for_prompt(v) for q, v in zip(asked, shown, strict=True)]

    def request(self, question: list[Question], prompt: PromptText) -> dict[str, Any]:
        """Return the request for a batch, with `n` where it asks for several draws."""
        draws = {"n": len(question)} if len(question) > 1 else {}
        return self.grader.request(prompt) | draws

    async def ask(
        self, question: list[Question], prompt: PromptText, before: BeforeSending
    ) -> Reply:
        again = question[0] in self._again
        return await self.grader.ask(Ask(prompt, question[0].rubric, len(question), again), before)

    def rest(self, question: list[Question], reply: Reply) -> list[Question]:
        """Return the draws that did not come; or the question itself, once, where its answer could
        not be read and can be constrained to the keys.
        """
        if (
            reply.outcome.unscored_reason == "unparseable"
            and self.grader.settings.method in ("label", "logprobs")
            and question[0].rubric.prompt is None
            and question[0] not in self._again
            and self.grader.constrains(reply.request)
        ):
            self._again.add(question[0])
            return question
        return question[1 + len(reply.more) :]

    def sent(
        self, question: list[Question], prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the first draw's facts for provenance, and the keys of all draws (`draw_keys`)."""
        identity = self.grader.identity
        first, *keys = (grade_key(identity, request, each.draw) for each in question)
        facts = sent(identity, prompt, request, question[0].draw)
        return facts | {"draw_keys": [first, *keys]}

    def kept(
        self, question: list[Question], reply: Reply, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        outcomes = (reply.outcome, *reply.more)
        return [
            self._grade(draw, replace(reply, outcome=outcome, more=()), own)
            for draw, outcome, own in zip(question, outcomes, _by_draw(facts), strict=False)
        ]

    def _grade(self, question: Question, reply: Reply, facts: dict[str, Any]) -> GradeAttempt:
        """Return the grade of a reply; a reply that the question has had before is unscored."""
        settings = self.grader.settings
        outcome = reply.outcome
        seconds = facts.get("seconds")
        facts = {name: value for name, value in facts.items() if name != "seconds"}
        facts |= replied(reply)
        facts |= {"method": settings.reading, "draws": settings.draws}
        if isinstance(question.rubric, Reworded):
            facts["own_prompt"] = question.rubric.words.hash
        if self._replies and self._replies.is_repeat(question.prompted, facts):
            outcome = Outcome(unscored_reason=REPEATED, raw=outcome.raw)
        elif settings.method == "draws":
            outcome = as_draw(outcome, question.rubric)
        return grade_of(self.rater_id, question, outcome, provenance=facts, seconds=seconds)

    def failed(
        self, question: list[Question], reason: str, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        outcome = Outcome(unscored_reason=reason)
        own = _by_draw(facts) if "draw_keys" in facts else repeat(facts, len(question))
        return [
            grade_of(self.rater_id, draw, outcome, provenance=each)
            for draw, each in zip(question, own, strict=True)
        ]

    def store(self, records: Sequence[GradeAttempt]) -> None:
        self.study.store.add_grades(records)


def _by_draw(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each draw's facts for provenance: its own key; the first carries the cost of all."""
    own = {name: value for name, value in facts.items() if name != "draw_keys"}
    for key in facts["draw_keys"]:
        yield own | {"grade_key": key}
        own |= {name: nothing for name, nothing in _PAID_ONCE.items() if name in own}


# ---- live ---------------------------------------------------------------------------------------

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

    def __init__(
        self, job: Any, context: RunContext, summary: GraderSummary, tariff: Tariff | None
    ) -> None:
        self._job = job
        self._grader: Grader = job.grader
        self._origin = {
            **asdict(self._grader.identity),
            "tool": tool_version(),
            "requested_model": self._grader.spec.model,
            "prompt_version": PROMPT_VERSION,
        }
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
        super().__init__(job, context, summary, tariff)
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
            self._failed_in_a_row = 0
            self._replies += 1
            records = self._job.kept(question, reply, facts)
            await self._commit([*self._release(), *records])
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
    """Return the first error in a group, as callers would see it without concurrency."""
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


# ---- by batches ---------------------------------------------------------------------------------
_NO_PROMPT = PromptText(system="", user="")
_LOOK_EVERY = 20.0
"""Seconds between looks at a batch."""
T = TypeVar("T")
_FRAME = 200  # bytes of a request's line in addition to the request


class BatchRun(Part):
    """Asks one grader all of its open questions by batches, then closes it.

    Where the context says `cancel` nothing is sent: what is under way is cancelled, and what came
    of it is kept.
    """

    _job: GradeJob

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
        super().__init__(job, context, summary, tariff)
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
        try:
            with anyio.CancelScope() as self._scope:
                self._summary.warnings = tuple(await self._grader.lifecycle())
                await self._carry_out()
        except Stopped as failure:
            self._summary.stopped = str(failure)
        except GraderFailure as failure:
            self._summary.stopped = f"the batch service does not answer as it should: {failure}"
        finally:
            with anyio.CancelScope(shield=True):
                await self._grader.close()

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
        facts = {"error": f"no readable reply in {ATTEMPTS} batches"}
        failed = [grade for each in todo for grade in self._job.failed([each], _FAILED, facts)]
        await anyio.to_thread.run_sync(self._job.store, failed)
        self._context.count(failed, self._summary)

    async def _try_live(self, todo: list[Question]) -> list[Question]:
        """Ask the first question live: a wrong key, model or parameter costs one request, not a
        batch, and what it teaches about the model's parameters holds for the batch. Where it leaves
        open how to ask, the next goes live too.
        """
        asked = 0
        for draws in by_request(todo, self._grader.draws_at_once):
            asked += len(draws)
            probe = GradeJob(self._job.study, self._grader, self._job.questions.only(draws))
            live = LiveRun(probe, self._context, self._summary, self._live_tariff)
            self._live = live
            await live.run(close=False)
            self._live = None
            self.reservations.longest = max(self.reservations.longest, live.reservations.longest)
            if self._summary.stopped:
                raise Stopped(self._summary.stopped)
            if self._grader.settled:
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
            base_url=self._grader.identity.base_url,
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
        for request in chunk.requests:
            result = by_name.get(request.custom_id)
            if result is None or (result.body is not None and not result.body.get("usage")):
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
            **self._origin,
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
            outcomes = self._grader.read(result.body, question[0].rubric, len(question))
        facts |= usage_facts(outcomes[0].evidence, self._tariff)
        reply = Reply(request.settings, result.request_id, outcomes[0], tuple(outcomes[1:]))
        usual = output_limit(self._grader.request(_NO_PROMPT))
        grades = self._job.kept(question, self.reservations.learn(reply, usual), facts)
        return [replace(grade, rubric_hash=request.rubric_hash) for grade in grades]

    def _questions(self, request: BatchRequest) -> list[Question] | None:
        """Return the questions of a request; None where the study no longer accepts its text."""
        rubric = self._rubrics.get(request.rubric)
        if rubric is None or request.rubric_hash not in self._accepted[rubric.name]:
            return None
        return questions_of(request, rubric)

    async def _surely(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that is safe to repeat, with the retries of any request."""
        async for attempt in self._retrying(anyio.sleep):
            with attempt:
                return await call()
        raise AssertionError("retrying ends with a result or an error")

    async def _pause(self) -> None:
        await anyio.sleep(_LOOK_EVERY * self._limits.wait_scale)


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
    """Return the journal's record of a request; `nth` tells apart units with the same text."""
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
