"""A run of a study's graders: plan what is missing, ask, keep every grade, say how it went; or say,
without network or key, what would be asked and what it would cost. A study, or a part of it, has
one runner: two at once would ask, and pay for, the same twice.

What all graders of a run share; how much its budget sets aside for a request; the questions that it
puts and what is kept of the replies; and each grader's part of it: live, many questions at once,
every grade kept as it comes, or by batches, the same requests and keys at half the price. Every
chunk of a batch is written down before it is sent, so that a run may end at any instant. The next
run first looks for what is under way at the provider, collects it, and sends only what is missing.

The same runner collects texts by models: responses to the study's prompts, and proposals of words
for a grader. A request for a proposal that was answered is not sent again: what was sent and what
came back stand in the study's log before anybody reads them.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import math
import os
import re
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import sqlalchemy as sa

from evenhand import __version__
from evenhand.errors import InputError
from evenhand.graders import money
from evenhand.graders.baselines import LexicalGrader
from evenhand.graders.clients import (
    Access,
    Ask,
    BatchResult,
    BeforeSending,
    Grader,
    Reply,
    first_request,
    open_grader,
    told_by_study,
    way_of,
)
from evenhand.graders.options import (
    TIMEOUT,
    WHOLE,
    GraderSettings,
    GradingOptions,
    GradingTask,
    RequestLimits,
    Shard,
    plan_grading,
    warnings_about,
)
from evenhand.graders.providers import GraderSpec, Scrubber, parse_spec
from evenhand.graders.replies import (
    ASKED_AGAIN,
    ATTEMPTS,
    FILTERED,
    MOST_KEPT,
    REPEATED,
    Facts,
    Filtered,
    GraderFailure,
    Json,
    Outcome,
    Rejected,
    Stopped,
    Transient,
    as_draw,
    reply_identity,
    retrying,
    storable,
)
from evenhand.rubrics import JudgedRubric, PromptText, Reworded, Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.prompts.units import AttackedQuestion, Question
from evenhand.study.store.grades import (
    CUT_SHORT,
    TRANSIENT_REASONS,
    AttackedGrade,
    GradeAttempt,
    utc_now,
)
from evenhand.study.store.logs.decisions import ProposalAttempt, note_proposals, proposals_of
from evenhand.study.store.logs.replies import (
    BatchJournal,
    BatchRequest,
    Chunk,
    ResponseAttempt,
    ResponseLog,
    gave_without_reasoning,
    known_replies,
)
from evenhand.study.store.store import grade_totals
from evenhand.study.tables.files import FILE
from evenhand.texts import written

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

    from evenhand.study import Study
    from evenhand.study.settings.study_toml import ModelPrices

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
        self._report(label)

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
        while self._progress:
            await anyio.sleep(min(PATIENCE, 1.0))
            idle = time.monotonic() - self._moved
            if idle >= PATIENCE:
                silence = written("grade.waits_for_reply", seconds=round(idle))
                self._report(self._waits() if self._waits else silence)

    def _report(self, label: str) -> None:
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


# ---- reservations -------------------------------------------------------------------------------
ENOUGH = 1_024
"""Tokens. No limit on output is set below this."""
_TIMES_THE_LONGEST = 4


class Reservations:
    """The amounts that one grader sets aside from the budget for its requests."""

    def __init__(self, budget: money.Budget, tariff: money.Tariff | None) -> None:
        self._budget, self._tariff = budget, tariff
        self.longest = 0
        """The tokens of the longest answer so far."""

    async def set_aside(self, request: Facts) -> Decimal:
        """Reserve a request's worst price in US dollars and return it. The request's limit on
        output is lowered where that is too much, or where replies were lost: a lost reply counts in
        full, so the next request should cost little. Raises OverBudget where not even a low limit
        fits.
        """
        if self._tariff is None:
            return Decimal(0)
        most, least = self._tariff.at_most(request), self.least(request)
        careful = self._budget.limit is not None and self._budget.lost and self.longest
        granted = await self._budget.reserve(least if careful else most, least)
        if granted < most:
            _lower(self._tariff, request, granted)
        return granted

    def fit(self, request: Facts, taken: Decimal, among: int) -> Decimal | None:
        """Return the worst price in US dollars of the next of `among` requests of a batch. Its
        limit on output is lowered where they would not all fit in addition to what is `taken`; None
        where the request does not fit even so.
        """
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        if self._budget.fits(taken + most * among):
            return most
        least = self.least(request)
        if not self._budget.fits(taken + least):
            return None
        if least < most:
            _lower(self._tariff, request, least)
        return least

    def least(self, request: Json) -> Decimal:
        """Return the amount in US dollars that must be free before a request is sent."""
        if self._tariff is None:
            return Decimal(0)
        most = self._tariff.at_most(request)
        if not any(name in request for name in money.LIMIT_NAMES):
            return most
        limit = max(ENOUGH, _TIMES_THE_LONGEST * self.longest)
        return min(self._tariff.at_most(request, limit), most)

    def learn(self, reply: Reply, asked: int) -> Reply:
        """Remember the tokens that a reply used, and return the reply. Where a lower limit than
        `asked` (tokens) has cut it short, its outcome says so.
        """
        outcomes = (reply.outcome, *reply.more)
        usage = reply.outcome.evidence.get("usage")
        if isinstance(usage, Mapping):
            self.longest = max(self.longest, money.Tokens.of(usage).output // len(outcomes))
        tier = money.Terms.of(reply.outcome.evidence).tier
        if self._tariff and tier and tier != self._tariff.tier:
            self._tariff = replace(self._tariff, tier=tier)
        if money.output_limit(reply.request) >= asked:
            return reply
        first, *more = (
            replace(outcome, unscored_reason=CUT_SHORT)
            if outcome.unscored_reason == "truncated"
            else outcome
            for outcome in outcomes
        )
        return replace(reply, outcome=first, more=tuple(more))


def _lower(tariff: money.Tariff, request: Facts, granted: Decimal) -> None:
    """Lower a request's limit on output so that it costs no more than was granted."""
    limit = money.output_limit(request)
    bare = tariff.at_most(request, 0)
    per_token = (tariff.at_most(request, limit) - bare) / limit
    name = next(name for name in money.LIMIT_NAMES if name in request)
    request[name] = max(int((granted - bare) / per_token), 1)


# ---- grades -------------------------------------------------------------------------------------
def grade_key(identity: Mapping[str, str], request: Json, draw: int) -> str:
    """Return the key that grades of the same request share: 40 hexadecimal digits of SHA-256.

    The hash covers the final request, the service it went to, the prompt's version and the draw;
    not timeouts or concurrency, which change nothing about the answer.
    """
    service = {name: text for name, text in identity.items() if name != "sdk"}
    parts = service | {"prompt_version": PROMPT_VERSION, "draw": draw, "request": request}
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def sent(identity: Mapping[str, str], prompt: PromptText, request: Json, draw: int) -> Facts:
    """Return the facts about a request, live or in a batch: its key, the hash of its words, its
    settings.
    """
    shown = "".join(image.uri for _, image in prompt.images)
    words = hashlib.sha256(f"{prompt.system}\0{prompt.user}{shown}".encode()).hexdigest()
    settings = request.keys() - {"model", "system", "messages"}
    return {
        "grade_key": grade_key(identity, request, draw),
        "prompt_hash": words[:16],
        "settings": {name: value for name, value in request.items() if name in settings},
        "asked_by": way_of(request),
    }


def replied(outcome: Outcome, request_id: str) -> Facts:
    """Return the facts that a reply adds: ids, the model that answered, usage, probabilities."""
    evidence = dict(outcome.evidence)
    returned = {"returned_model": evidence.pop("model", ""), "reply_id": evidence.pop("id", "")}
    return returned | {"request_id": request_id, **evidence}


def grade_of(
    rater_id: str,
    question: Question,
    outcome: Outcome,
    *,
    provenance: Json,
    seconds: float | None = None,
) -> GradeAttempt:
    """Return the grade of an outcome; order "ba" swaps the options for their counterparts."""
    rubric = question.rubric
    turn = rubric.swaps.__getitem__ if question.order == "ba" else str
    probabilities = p_positive = None
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


# ---- jobs ---------------------------------------------------------------------------------------
_TOOL = f"evenhand {__version__}"
_PAID_ONCE: Facts = {"tokens": {}, "cost_usd": 0.0}
"""The cost facts of every draw of a request except the first, which carries the whole cost."""


@dataclass
class Job:
    """The questions for one model behind a network, which `grader` answers: one request for each
    that is `asked`, whose reply is read as a text. `attempt` makes the record of a question from
    its facts and what came of it, an outcome or the reason why there is none; `store` keeps
    records. `about` are facts of every one.
    """

    rater_id: str
    asked: Mapping[Any, PromptText]
    attempt: Callable[[Any, Facts, Outcome | str], Any]
    store: Callable[[Sequence[Any]], None]
    about: Json
    grader: Grader = field(init=False)

    def __len__(self) -> int:
        return len(self.asked)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.asked)

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]:
        return [self.asked[question] for question in questions]

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(Ask(prompt), before)

    def rest(self, question: Any, reply: Reply) -> Any:
        """Return the part of the question that a reply has left open, if any."""
        return None

    def sent(self, question: Any, prompt: PromptText, request: Json) -> Facts:
        return sent(self.grader.identity, prompt, request, draw=0) | dict(self.about)

    def kept(self, question: Any, reply: Reply, facts: Facts) -> list[Any]:
        facts |= replied(reply.outcome, reply.request_id)
        return [self.attempt(question, facts, reply.outcome)]

    def failed(self, question: Any, reason: str, facts: Facts) -> list[Any]:
        return [self.attempt(question, facts, reason)]


Draws = list[Question]
"""Questions of one prompt, which may be asked for together."""


def by_request(questions: Iterable[Question], most: int) -> Iterator[Draws]:
    """Group consecutive questions that share a prompt, at most `most` to a list."""
    for _, draws in groupby(questions, key=lambda question: question.prompted):
        while some := list(islice(draws, most)):
            yield some


class GradeJob(Job):
    """The open questions of one grader, and the grades that its replies make. A question is here a
    list of draws of one prompt: those are asked for together where the grader takes that, so that
    the prompt is paid for once.
    """

    def __init__(self, study: Study, grader: Grader, task: GradingTask) -> None:
        self.rater_id, self.store = task.rater_id, study.store.add_grades
        self.grader, self.task, self.study = grader, task, study
        several = grader.settings.draws > 1
        known = known_replies(study.store, self.rater_id) if several else {}
        self._seen = {
            (prompted, reply_identity(facts))
            for prompted, replies in known.items()
            for facts in replies
        }
        self._again: set[Question] = set()

    def __len__(self) -> int:
        """Return the number of draws: the most requests that the job may take."""
        return len(self.task.questions)

    def __iter__(self) -> Iterator[Draws]:
        together = self.grader.draws_at_once > 1
        return by_request(self.task.questions, len(self) if together else 1)

    def prompts(self, questions: Sequence[Draws]) -> list[PromptText]:
        asked = [draws[0] for draws in questions]
        shown = self.study.values_of(asked)
        return [q.rubric.for_prompt(v) for q, v in zip(asked, shown, strict=True)]

    def request(self, question: Draws, prompt: PromptText) -> Facts:
        """Return the request for a batch, with `n` where it asks for several draws."""
        draws = {"n": len(question)} if len(question) > 1 else {}
        return self.grader.request(prompt) | draws

    async def ask(self, question: Draws, prompt: PromptText, before: BeforeSending) -> Reply:
        again = question[0] in self._again
        return await self.grader.ask(Ask(prompt, question[0].rubric, len(question), again), before)

    def rest(self, question: Draws, reply: Reply) -> Draws:
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

    def sent(self, question: Draws, prompt: PromptText, request: Json) -> Facts:
        """Return the first draw's facts for provenance, and the keys of all draws (`draw_keys`)."""
        identity = self.grader.identity
        first, *keys = (grade_key(identity, request, draw.draw) for draw in question)
        facts = sent(identity, prompt, request, question[0].draw)
        return facts | {"draw_keys": [first, *keys]}

    def kept(self, question: Draws, reply: Reply, facts: Facts) -> list[GradeAttempt]:
        """Return the grades of a reply; a reply that the question has had before is unscored."""
        settings, grades = self.grader.settings, []
        outcomes, by_draw = (reply.outcome, *reply.more), _by_draw(facts, len(question))
        for draw, outcome, about in zip(question, outcomes, by_draw, strict=False):
            seconds = about.pop("seconds", None)
            about |= replied(outcome, reply.request_id)
            about |= {"method": settings.reading, "draws": settings.draws}
            if isinstance(draw.rubric, Reworded):
                about["own_prompt"] = draw.rubric.words.hash
            if self._is_repeat(draw, about):
                outcome = Outcome(unscored_reason=REPEATED, raw=outcome.raw)
            elif settings.method == "draws":
                outcome = as_draw(outcome, draw.rubric)
            grades.append(grade_of(self.rater_id, draw, outcome, provenance=about, seconds=seconds))
        return grades

    def _is_repeat(self, question: Question, facts: Facts) -> bool:
        """Return True if one of several draws brought a reply that came before, and remember it."""
        reply = (question.prompted, reply_identity(facts))
        if self.grader.settings.draws == 1 or reply[1] is None:
            return False
        is_repeat = reply in self._seen
        self._seen.add(reply)
        return is_repeat

    def failed(self, question: Draws, reason: str, facts: Facts) -> list[GradeAttempt]:
        outcome = Outcome(unscored_reason=reason)
        return [
            grade_of(self.rater_id, draw, outcome, provenance=about)
            for draw, about in zip(question, _by_draw(facts, len(question)), strict=True)
        ]


def _by_draw(facts: Facts, draws: int) -> Iterator[Facts]:
    """Yield each draw's facts for provenance: its own key; the first carries the cost of all."""
    keys = [{"grade_key": key} for key in facts.get("draw_keys", ())] or [{}] * draws
    common = {name: value for name, value in facts.items() if name != "draw_keys"}
    for key in keys:
        yield common | key
        common |= {name: nothing for name, nothing in _PAID_ONCE.items() if name in common}


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
    """A grader's part of a run, asked live or by batches; `summary` says how it goes."""

    def __init__(
        self, job: Any, context: Rounds, summary: GraderSummary, tariff: money.Tariff | None
    ) -> None:
        self._job = job
        self._grader: Grader = job.grader
        self._origin = {
            **self._grader.identity,
            "tool": _TOOL,
            "requested_model": self._grader.spec.model,
            "prompt_version": PROMPT_VERSION,
        }
        self._context, self._limits, self._budget = context, context.limits, context.budget
        self._summary, self._tariff = summary, tariff
        self.reservations = Reservations(context.budget, tariff)

    def _retrying(self, sleep: Callable[[float], Awaitable[None]]) -> AsyncRetrying:
        waits = partial(self._context.progress.waits, self._summary.rater_id)
        return retrying(wait_scale=self._limits.wait_scale, sleep=sleep, on_retry=waits)


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

    async def run(self, *, close: bool = True) -> None:
        """Ask all open questions."""
        self._under_way = self._failed_in_a_row = self._replies = 0
        self._held, self._unwritten = list[Any](), list[Any]()
        self._write_failed, self._halted = False, anyio.Event()
        self._throttle = Throttle(self._limits.concurrency)
        self._prompted = self._with_prompts()
        self._began = time.monotonic()
        try:
            self._summary.warnings = tuple(await self._grader.lifecycle())
            # The first goes alone: what it teaches about the server holds for the rest, and a wrong
            # key or address costs one request. Where it leaves open how to ask, so does the next.
            began, alone = self._began, 0
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

    def interrupt(self) -> int:
        """Send nothing more; returns how many replies are under way, which are waited for."""
        self._halt(written("grade.was_interrupted"))
        return self._under_way

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

    async def _asked(self, question: Any, prompt: PromptText, facts: Facts) -> Reply:
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

    async def _paid(self, question: Any, prompt: PromptText, facts: Facts) -> Reply:
        """Return one reply. Its request's worst price is set aside before the request is sent."""
        held = spent = Decimal(0)
        began, limit, lost = 0.0, 0, False

        async def before(request: Facts) -> None:
            """Set aside the price of the request to be sent, in place of that of a refused one,
            which cost nothing.
            """
            nonlocal held, spent, began, limit
            self._budget.settle(held, Decimal(0))
            held = spent = Decimal(0)
            limit = money.output_limit(request)
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
            price = money.usage_facts(reply.outcome.evidence, self._tariff, reply.charged)
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

    async def _keep_failure(self, question: Any, failure: GraderFailure, facts: Facts) -> None:
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
        if (in_a_row := self._failed_in_a_row) >= FAILURES_IN_A_ROW:
            self._halt(f"{in_a_row} requests in a row failed, the last with: {failure}")
        elif isinstance(failure, Transient) and failure.status is None and not self._replies:
            address = self._grader.identity["base_url"]
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
        return [replace(record, unscored_reason=_FAILED) for record in held]

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


def run_all(parts: Sequence[LiveRun | BatchRun], progress: ProgressCounter) -> None:
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
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):  # the first, as without concurrency
            error = error.exceptions[0]
        raise error from None
    finally:
        gc.unfreeze()


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
        context: Rounds,
        summary: GraderSummary,
        tariff: money.Tariff | None,
        *,
        live_tariff: money.Tariff | None,
    ) -> None:
        super().__init__(job, context, summary, tariff)
        self._service = job.grader.batches(self._pause)
        self._journal = BatchJournal(job.study.store)
        self._rubrics = job.study.rubrics | dict(job.task.rubrics)
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
        under_way = {
            (asked.unit_id, asked.rubric, asked.order, *asked.trial[:3], draw)
            for chunk in chunks
            for asked in chunk.requests
            for draw, _ in asked.draws
        }
        questions = self._job.task.questions
        todo = [asked for asked in questions if (*asked.prompted, asked.draw) not in under_way]
        if self._context.cancel:
            for chunk in chunks:
                await self._surely(partial(self._service.cancel, chunk.batch_id))
            await self._collect_all(chunks)
            return
        if todo and not chunks:
            todo = await self._try_live(todo)
        for _ in range(ATTEMPTS):
            await self._send_and_collect(todo, chunks)
            chunks, todo, self._again = [], self._again, []
            if not todo or self._summary.stopped:
                return
        facts = {"error": f"no readable reply in {ATTEMPTS} batches"}
        failed = [grade for asked in todo for grade in self._job.failed([asked], _FAILED, facts)]
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
            task = replace(self._job.task, questions=draws, already=0)
            probe = GradeJob(self._job.study, self._grader, task)
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
        chunks = []
        for chunk in self._journal.under_way(self._job.rater_id):
            if any(request.trial for request in chunk.requests) != self._job.task.attacked:
                continue  # an audit's batches are its own
            if not chunk.batch_id:
                find = partial(self._service.find, chunk, self._journal.known_batches())
                batch_id = await self._surely(find)
                if batch_id is None:
                    self._journal.abandoned(chunk.chunk)
                    continue
                chunk = replace(chunk, batch_id=batch_id)
                self._journal.submitted(chunk.chunk, batch_id)
            self._budget.hold(_at_most(chunk))
            chunks.append(chunk)
        return chunks

    async def _send_and_collect(self, todo: list[Question], chunks: list[Chunk]) -> None:
        """Send all that fits into the budget, collect it, and go on while more fits, until all is
        sent or the grader is stopped. Raises OverBudget where more never will fit.
        """
        waiting = deque(by_request(todo, self._grader.draws_at_once))
        while True:
            while waiting:
                requests, worst = await self._fitting(waiting)
                if not requests:
                    break
                chunks.append(await self._submit(requests, worst))
            await self._collect_all(chunks)
            chunks = []
            if self._summary.stopped or not waiting:
                return
            if not self._budget.fits(worst):
                await self._budget.reserve(worst)
                self._budget.settle(worst, Decimal(0))  # others have settled: build again

    async def _fitting(
        self, waiting: deque[Draws]
    ) -> tuple[list[tuple[BatchRequest, Facts]], Decimal]:
        """Take the requests of the next chunk from what waits, with their bodies, and set their
        worst price in US dollars aside, which is returned, too. Where none fits into the budget,
        the price is the lowest for the next one. Prompts are rendered as their chunk is built.
        """
        requests: list[tuple[BatchRequest, Facts]] = []
        size, worst = 0, Decimal(0)
        seen: Counter[str] = Counter()
        while waiting and len(requests) < self._service.most_requests:
            question = waiting[0]
            prompt = (await anyio.to_thread.run_sync(self._job.prompts, [question]))[0]
            body = self._job.request(question, prompt)
            length = len(json.dumps(body, ensure_ascii=False).encode()) + _FRAME
            if requests and size + length > self._service.most_bytes:
                break
            price = self.reservations.fit(body, worst, len(waiting))
            if price is None:
                if not requests:
                    return [], self.reservations.least(body)
                break
            sent = self._job.sent(question, prompt, body)
            seen[sent["grade_key"]] += 1
            requests.append((_request(question, sent, seen[sent["grade_key"]]), body))
            size, worst = size + length, worst + price
            waiting.popleft()
        self._budget.hold(worst)
        return requests, worst

    async def _submit(
        self, requests: Sequence[tuple[BatchRequest, Facts]], worst: Decimal
    ) -> Chunk:
        rater = self._job.rater_id
        named = [(request.custom_id, body) for request, body in requests]
        names = "\n".join([rater, str(self._journal.count(rater)), *(name for name, _ in named)])
        chunk = Chunk(
            chunk=hashlib.sha256(names.encode()).hexdigest()[:40],
            rater_id=rater,
            base_url=self._grader.identity["base_url"],
            requests=tuple(request for request, _ in requests),
            at_most_usd=float(worst) if self._tariff else None,
        )
        await anyio.to_thread.run_sync(self._journal.intend, chunk)
        batch_id = await self._sent(chunk, named)
        await anyio.to_thread.run_sync(self._journal.submitted, chunk.chunk, batch_id)
        self._summary.requests += len(requests)
        return replace(chunk, batch_id=batch_id)

    async def _sent(self, chunk: Chunk, named: list[tuple[str, Facts]]) -> str:
        """Submit once: after a failure that may hide a success, look before sending again."""
        attempts = 0

        async def once() -> str:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                batch_id = await self._service.find(chunk, self._journal.known_batches())
                if batch_id is not None:
                    return batch_id
            try:
                return await self._service.submit(chunk.chunk, named)
            except Transient:
                raise
            except GraderFailure:
                self._journal.abandoned(chunk.chunk)
                raise

        return await self._surely(once)

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
            result, rubric = by_name.get(request.custom_id), self._rubrics.get(request.rubric)
            is_accepted = rubric and request.rubric_hash in self._accepted[rubric.name]
            asked = questions_of(request, rubric) if rubric and is_accepted else None
            if result is None or isinstance(result.failure, Transient):
                again += asked or ()
                continue
            if isinstance(result.failure, Stopped):  # the unit stays open
                self._summary.stopped = self._summary.stopped or str(result.failure)
                continue
            came = self._grades(chunk, request, result, asked)
            grades += came
            again += (asked or ())[len(came) :]  # fewer draws than were asked for
        asked_for = len(chunk.requests)
        rejected = [grade.unscored_reason.startswith("request_rej") for grade in grades]
        if rejected and all(rejected) and not again and asked_for >= FAILURES_IN_A_ROW:
            # The grader's fault, not the units': the next run asks again.
            why = grades[0].provenance["error"]
            self._summary.stopped = f"all {asked_for} requests of a batch were rejected: {why}"
            grades = [replace(grade, unscored_reason=_FAILED) for grade in grades]
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
        costs = (grade.provenance.get("cost_usd", 0.0) for grade in grades)
        return Decimal(str(round(math.fsum(costs), 9)))

    def _grades(
        self, chunk: Chunk, request: BatchRequest, result: BatchResult, asked: Draws | None
    ) -> list[GradeAttempt]:
        """Return the grades in one line of a batch's results, one for each draw that came; `asked`
        are the questions, None where the study no longer accepts their text.
        """
        rubric = self._rubrics.get(request.rubric) or next(iter(self._rubrics.values()))
        question = asked or questions_of(request, rubric)
        facts: Facts = {
            **self._origin,
            "draw_keys": [key for _, key in request.draws],
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
        facts |= money.usage_facts(outcomes[0].evidence, self._tariff)
        reply = Reply(request.settings, result.request_id, outcomes[0], tuple(outcomes[1:]))
        usual = money.output_limit(self._grader.request(_NO_PROMPT))
        grades = self._job.kept(question, self.reservations.learn(reply, usual), facts)
        return [replace(grade, rubric_hash=request.rubric_hash) for grade in grades]

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


def _request(question: Sequence[Question], sent: Json, nth: int) -> BatchRequest:
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
        more=[(draw.draw, draw_key) for draw, draw_key in others],
        trial=trial,
    )


def questions_of(request: BatchRequest, rubric: Rubric) -> Draws:
    """Return the questions of a request, one for each draw, under this text of its rubric."""
    kind = AttackedQuestion if request.trial else Question  # attack, target, side, suite
    about = (request.unit_id, rubric, request.order)
    return [kind(*about, draw, *request.trial) for draw, _ in request.draws]


# ---- one runner at a time -----------------------------------------------------------------------
_FILE = ".grading.lock"


class RunLocked(InputError):  # noqa: N818  (the caller made no error)
    """Another process is already collecting these grades."""


@contextmanager
def only_runner(study: Study, shard: Shard = WHOLE) -> Iterator[None]:
    """Hold the study's lock. It ends with the process, however that ends.

    A study on a database server has its lock there, since its runners may be on several machines.
    Raises RunLocked at once where another runner holds it, even for other graders, and
    InputError for a part of a study that other machines cannot reach, or on Windows.
    """
    if study.store.engine.dialect.name == "postgresql":
        with _on_server(study, shard):
            yield
        return
    if shard != WHOLE:
        raise InputError(
            "--shard is for machines that share a study on PostgreSQL, and this one is in a file; "
            "move it with `evenhand store copy`, or leave --shard out"
        )
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InputError(written("lean.no_locks")) from None
    descriptor = os.open(study.folder / _FILE, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise RunLocked(
                f"another run (process {holder}) is collecting for this study; wait until it ends, "
                "or stop it: what it has collected is kept"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


_SPACE = 0x65766763
"""Among the advisory locks of the database; the second number says which part of how many."""
_NOTICED = (
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_HELD = sa.text(
    "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def _on_server(study: Study, shard: Shard) -> Iterator[None]:
    """Hold the lock of a study on a database server. It is the server's own and belongs to a
    connection: it ends with the process, and within a minute where a whole machine is gone.
    """
    with study.store.engine.connect().execution_options(
        isolation_level="AUTOCOMMIT", evenhand_write=False
    ) as connection:
        for setting in _NOTICED:
            connection.exec_driver_sql(setting)
        key = _SPACE, (shard.of << 16) + shard.index
        is_mine = connection.execute(sa.select(sa.func.pg_try_advisory_lock(*key))).scalar_one()
        if not is_mine and shard != WHOLE:
            raise RunLocked(f"shard {shard} is being collected by another run, which goes on")
        try:
            held = connection.execute(_HELD, {"space": _SPACE}).scalars() if is_mine else ()
            others = [number >> 16 for number in held if number >> 16 != shard.of]
            if others or not is_mine:
                parts = f" in {others[0]} shards" if others and others[0] > 1 else ""
                raise RunLocked(
                    f"another run is collecting for this study{parts}; wait until it ends, or stop "
                    "it: what it has collected is kept"
                )
            yield
        finally:
            if is_mine:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(*key)))


# ---- grading ------------------------------------------------------------------------------------
_ALL, _LIMITS = GradingOptions(), RequestLimits()
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run, grader by grader, in the order in which they were named.

    `over_budget` is True if it ended because the next request might have cost more than was left;
    `spent` is in US dollars, with what was spent before.
    """

    graders: tuple[GraderSummary, ...]
    over_budget: bool = False
    spent: Decimal = Decimal(0)

    @property
    def scored(self) -> int:
        return sum(grader.scored for grader in self.graders)

    @property
    def unscored(self) -> int:
        return sum(sum(grader.unscored.values()) for grader in self.graders)

    @property
    def stopped(self) -> tuple[str, ...]:
        """The reasons of the graders that were stopped early, one sentence each."""
        return tuple(
            written("grade.stopped", grader=grader.rater_id, why=grader.stopped)
            for grader in self.graders
            if grader.stopped
        )


def grade(
    study: Study,
    graders: Sequence[str],
    options: GradingOptions = _ALL,
    limits: RequestLimits = _LIMITS,
    progress: Progress | None = None,
    *,
    batch: bool = False,
    cancel: bool = False,
) -> RunSummary:
    """Collect the grades that are missing. Safe to interrupt and to run again at any time.

    With `batch` the questions go to the providers' batch services; `cancel` then ends what is under
    way there. A shard is asked with its share of the budget, and what is left of that share goes to
    shards that no other run is collecting: those whose run broke off or has not begun. Raises
    InputError, with nothing asked, where a grader is unknown, has no key or cannot grade a rubric,
    and while another run collects for this study. A grader that fails for good is stopped, and the
    summary says so; the others go on.
    """
    shard = options.shard
    if batch and shard != WHOLE:
        raise InputError("a batch is worked on by the provider; leave --shard or --batch out")
    if limits.budget is not None:
        limits = replace(limits, budget=limits.budget / shard.of)
    run = replace(Rounds.begin(study, limits, progress), batch=batch, cancel=cancel)
    with only_runner(study, shard):
        run.collect(plan_grading(study, graders, options, run.scrubber))
    for other in shard.others():
        if run.so_far.over_budget or run.so_far.stopped:
            break
        with suppress(RunLocked), only_runner(study, other):
            run.collect(plan_grading(study, graders, replace(options, shard=other), run.scrubber))
    return run.so_far


@dataclass(frozen=True, slots=True)
class Rounds:
    """A run: rounds of questions to a study's models, within one budget, under the study's lock.
    With `batch` graders are asked by the providers' batch services, and with `cancel` what is under
    way there is ended.
    """

    study: Study
    scrubber: Scrubber
    limits: RequestLimits
    budget: money.Budget
    progress: ProgressCounter
    batch: bool = False
    cancel: bool = False
    summaries: dict[str, GraderSummary] = field(default_factory=dict)

    @classmethod
    def begin(cls, study: Study, limits: RequestLimits, progress: Progress | None = None) -> Rounds:
        """Return a run that has asked nothing yet."""
        scrubber = Scrubber.from_environment(study.config.providers)
        budget = money.Budget(limits.budget, limits.spent)
        return cls(study, scrubber, limits, budget, ProgressCounter(progress))

    @property
    def spent(self) -> float:
        """US dollars spent so far, with replies that were lost."""
        return float(self.budget.spent)

    def grade(
        self,
        wanted: Sequence[tuple[str, GradingOptions]],
        opened: Callable[[], None] = lambda: None,
    ) -> RunSummary:
        """Collect the grades that are missing, of all these graders side by side; together they
        have as many requests under way as one has, and where there are more graders, some come
        after the others. `opened` is called once the first requests can be sent, before they are.
        The summary is of all rounds so far.
        """
        tasks, most = planned(self.study, wanted), self.limits.concurrency
        for start in range(0, len(tasks), most):
            some = tasks[start : start + most]
            busy = max(sum(len(task.questions) > 0 for task in some), 1)
            share = replace(self.limits, concurrency=most // busy)
            replace(self, limits=share).collect(some, opened)
            if self.budget.exhausted:
                break
        return self.so_far

    def collect(
        self,
        tasks: Sequence[GradingTask],
        opened: Callable[[], None] = lambda: None,
        name: str = "",
    ) -> None:
        """Ask every grader its open questions, live or by batches, and add how it went to its
        summary, which may have another `name`. `opened` is called once nothing stands against the
        first request. Raises InputError before, where a key, a rubric's cues or, under a budget, a
        price is missing.
        """
        for rubric in (asked for task in tasks for asked in task.rubrics.values()):
            if isinstance(rubric, Reworded):
                self.study.keep_prompt(rubric.words.hash, rubric.words.source)
        offline: list[Callable[[], None]] = []
        remote: list[LiveRun | BatchRun] = []
        for task in tasks:
            summary = self.part(name or task.rater_id, task.already, len(task.questions))
            if not task.questions and not self.cancel:
                continue
            if task.spec.speaks == "baseline":
                rubrics = {question.rubric for question in task.questions}
                readers = {rubric.name: LexicalGrader(rubric) for rubric in rubrics}
                offline.append(partial(self._count_words, task, readers, summary))
                continue
            grader, tariff = self._opened(task.spec, task.settings, task.rater_id)
            job = GradeJob(self.study, grader, task)
            if self.batch:
                tier, prices = task.settings.service_tier, self.study.config.prices
                in_batch = money.Tariff.find(task.spec, batch=True, tier=tier, prices=prices)
                remote.append(BatchRun(job, self, summary, in_batch, live_tariff=tariff))
            else:
                remote.append(LiveRun(job, self, summary, tariff))
        opened()
        for count in offline:
            count()
        if remote:  # all graders behind a network side by side
            run_all(remote, self.progress)

    def _count_words(
        self, task: GradingTask, readers: Mapping[str, LexicalGrader], summary: GraderSummary
    ) -> None:
        """Grade all open questions by counting words."""
        facts = {"provider": "baseline", "tool": _TOOL, "cost_usd": 0.0}
        questions = iter(task.questions)
        while chunk := list(islice(questions, _AT_ONCE)):
            grades = []
            for question, values in zip(chunk, self.study.values_of(chunk), strict=True):
                outcome = readers[question.rubric.name].grade(values)
                about = facts | outcome.evidence
                grades.append(grade_of(task.rater_id, question, outcome, provenance=about))
            self.study.store.add_grades(grades)
            self.count(grades, summary)

    def put(
        self, spec: GraderSpec, settings: GraderSettings, job: Job, summary: GraderSummary
    ) -> None:
        """Put a job's questions to a model. Raises InputError where a key or a price is missing."""
        job.grader, tariff = self._opened(spec, settings)
        run_all([LiveRun(job, self, summary, tariff)], self.progress)

    def _opened(
        self, spec: GraderSpec, settings: GraderSettings, rater_id: str = ""
    ) -> tuple[Grader, money.Tariff | None]:
        """Return a client for a model, and the model's prices."""
        tariff = priced(spec, self.budget, settings.service_tier, self.study.config.prices)
        off = gave_without_reasoning(self.study.store, rater_id)
        access = Access(spec, settings, self.scrubber, self.limits.timeout, no_reasoning=off)
        return open_grader(access), tariff

    def part(self, name: str, already: int, new: int) -> GraderSummary:
        """Return the summary of what else is asked under this name, with so many more questions."""
        summary = GraderSummary(rater_id=name, already=0, planned=0)
        summary = self.summaries.setdefault(name, summary)
        summary.already += already
        summary.planned += new
        self.progress.expect(new)
        return summary

    def scrubbed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Return the attempts with secrets removed from their provenance."""
        clean = self.scrubber.tree
        return [replace(attempt, provenance=clean(attempt.provenance)) for attempt in attempts]

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

    @property
    def so_far(self) -> RunSummary:
        """The summary of all that was asked so far."""
        budget = self.budget
        return RunSummary(tuple(self.summaries.values()), budget.exhausted, budget.spent)


def planned(study: Study, wanted: Sequence[tuple[str, GradingOptions]]) -> list[GradingTask]:
    """Plan graders that are asked in different ways, one task for each."""
    scrubber = Scrubber.from_environment(study.config.providers)
    plans = (plan_grading(study, [grader], options, scrubber) for grader, options in wanted)
    return [task for tasks in plans for task in tasks]


def priced(
    spec: GraderSpec, budget: money.Budget, tier: str, prices: Mapping[str, ModelPrices]
) -> money.Tariff | None:
    """Return the model's prices, or None where they are not known. Raises InputError where they are
    not known and there is a budget.
    """
    tariff = money.Tariff.find(spec, tier=tier, prices=prices)
    if tariff is None and budget.limit is not None:
        raise InputError(
            f"the price of {spec.text} is not known, so it cannot be kept to a budget; name it in "
            "[prices] of study.toml, or run without --budget"
        )
    return tariff


def check_ready(
    study: Study, specs: Iterable[GraderSpec], *, budget: float | None = None, batch: bool = False
) -> None:
    """Raise InputError where a model could not be asked: its key is missing or, under a budget, its
    price, or its provider has no `batch` service that it is to be asked by.
    """
    scrubber = Scrubber.from_environment(study.config.providers)
    for spec in specs:
        if spec.speaks == "baseline":
            continue
        priced(spec, money.Budget(budget), "", study.config.prices)
        grader = open_grader(Access(spec, GraderSettings("text"), scrubber, TIMEOUT))
        try:
            if batch:
                grader.batches(anyio.lowlevel.checkpoint)
        finally:
            anyio.run(grader.close)


# ---- what a run would ask and cost --------------------------------------------------------------
_MANY = 20_000
"""Above this number of prompts, only evenly spaced ones are read and priced."""
_ANSWER, _REASONED = 20, 200
"""Tokens of an answer without thinking, and of one that may give a reason first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderForecast:
    """The forecast of one grader's part of a run. `cost` in US dollars runs from answers of one
    token to the most that all requests could cost; None where there is no known price. `expected`
    is the likely cost, and `basis` says what it rests on.
    """

    rater_id: str
    already: int
    new: int
    cost: tuple[float, float] | None = None
    expected: float | None = None
    basis: str = ""
    sample: PromptText | None = None
    warnings: tuple[str, ...] = ()

    def left(self, answered: int) -> GraderForecast:
        """Return the forecast of what is left of as many new requests, without the sample."""
        new = self.new - answered
        rest, share = replace(self, already=answered, new=new, sample=None), new / (self.new or 1)
        if self.cost is None and new:
            return rest
        least, most = self.cost or (0.0, 0.0)
        expected = share * (self.expected or 0.0)
        return replace(rest, cost=(share * least, share * most), expected=expected)


_ADDRESS = re.compile(r"@https?://|#")
_SECONDS = 10
"""That a reply takes, for forecasts."""


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run of several `steps`, each the name in `texts.toml` of what a model is
    asked for and its forecast; the `work` of people, in sentences; and what was spent so far, in US
    dollars. With `batch` graders are asked in batches.
    """

    steps: Sequence[tuple[str, GraderForecast]]
    work: Sequence[str]
    spent: float
    concurrency: int
    batch: bool = False

    @cached_property
    def whole(self) -> GraderForecast:
        """All steps together; their cost is None where a price is not known."""
        parts = [part for _, part in self.steps]
        costs = [(*part.cost, part.expected or 0.0) for part in parts if part.cost]
        least, most, likely = (math.fsum(cost[at] for cost in costs) for at in range(3))
        already, new = sum(part.already for part in parts), sum(part.new for part in parts)
        whole = GraderForecast(rater_id="", already=already, new=new)
        is_known = len(costs) == len(parts)
        return replace(whole, cost=(least, most), expected=likely) if is_known else whole

    @property
    def unpriced(self) -> dict[str, str]:
        """The models that are still to be asked at prices that are not known, and the first; by the
        names under which a price is looked up, without an address.
        """
        unknown = (_ADDRESS.split(part.rater_id)[0] for _, part in self.steps if part.cost is None)
        models = [*dict.fromkeys(unknown)]
        return {"models": ", ".join(models), "first": models[0]} if models else {}

    @property
    def lines(self) -> list[str]:
        """What is not known of the price, the time and the work, as sentences."""
        in_batches = "grades" if self.batch else ""
        live = sum(step.new for name, step in self.steps if name != in_batches)
        minutes = math.ceil(live / self.concurrency * _SECONDS / 60)
        pace = {"minutes": minutes, "concurrency": self.concurrency, "seconds": _SECONDS}
        return [
            *([written("reproduce.price_unknown", **self.unpriced)] if self.unpriced else []),
            written("reproduce.time", **pace),
            *([written("reproduce.batch")] if self.whole.new > live else []),
            *([written("reproduce.spent", spent=self.spent)] if self.spent else []),
            *self.work,
            *dict.fromkeys(note for _, part in self.steps for note in part.warnings),
        ]


def forecast(
    study: Study,
    graders: Sequence[str],
    options: GradingOptions,
    *,
    batch: bool = False,
    most: int = _MANY,
) -> list[GraderForecast]:
    """Render questions and price them: evenly spaced ones above the number of `most`. Raises
    InputError as the run itself would.
    """
    scrubber = Scrubber.from_environment(study.config.providers)
    tasks = plan_grading(study, graders, options, scrubber)
    return [forecast_of(study, task, batch=batch, most=most) for task in tasks]


def forecast_of(
    study: Study, task: GradingTask, *, batch: bool = False, most: int = _MANY
) -> GraderForecast:
    """Forecast the part of one grader: render its questions and price them."""
    spec, new = task.spec, len(task.questions)
    forecast = GraderForecast(rater_id=task.rater_id, already=task.already, new=new)
    if spec.speaks == "baseline":
        return replace(forecast, cost=(0.0, 0.0))
    tariff = money.Tariff.find(
        spec, batch=batch, tier=task.settings.service_tier, prices=study.config.prices
    )
    usual, basis = _usual_tokens(study, task)
    warnings = (*told_by_study(spec), *warnings_about(spec, task.settings))
    prompts = _prompts(study, task, most)
    if tariff and not tariff.named:
        basis = f"{basis} {written('grade.price_table', table=tariff.source)}"
    forecast = replace(forecast, basis=basis, warnings=warnings)
    return priced_forecast(forecast, tariff, spec, task.settings, prompts, usual)


def priced_forecast(
    forecast: GraderForecast,
    tariff: money.Tariff | None,
    spec: GraderSpec,
    settings: GraderSettings,
    prompts: Iterable[tuple[PromptText, int]],
    usual: money.Tokens | int,
) -> GraderForecast:
    """Return a forecast with the cost of its prompts, each so many times: those given stand for all
    of them. `usual` are the tokens of a request, or of its answer alone.
    """
    least, worst, likely, sample, priced = Decimal(0), Decimal(0), Decimal(0), None, 0
    for prompt, times in prompts:
        sample = sample or prompt
        priced += times
        if tariff:
            request = first_request(spec, settings, prompt)
            least += times * tariff.at_least(request)
            worst += times * tariff.at_most(request)
            if isinstance(usual, int):
                likely += times * tariff.cost(
                    money.Tokens(money.input_estimate(request), output=usual)
                )
            else:
                likely += times * tariff.cost(usual)
    if tariff is None:
        return replace(forecast, sample=sample, basis="")
    basis = forecast.basis
    if priced < forecast.new:
        share = Decimal(forecast.new) / priced
        least, worst, likely = least * share, worst * share, likely * share
        basis = f"{basis} {written('grade.some_priced', priced=priced, total=forecast.new)}"
    cost = (float(least), float(worst))
    return replace(forecast, sample=sample, basis=basis, cost=cost, expected=float(likely))


def _usual_tokens(study: Study, task: GradingTask) -> tuple[money.Tokens | int, str]:
    """Return the mean tokens of this grader's earlier requests or, where there are none, the tokens
    assumed for an answer; and the sentence that says so.
    """
    totals = grade_totals(study.store)
    of_grader = totals[(totals["rater_id"] == task.rater_id) & (totals["tokens_input"] > 0)]
    if of_grader.empty:
        has_own_prompt = any(isinstance(rubric, JudgedRubric) for rubric in task.rubrics.values())
        answer = _REASONED if task.settings.reason or has_own_prompt else _ANSWER
        return answer, written("grade.expected_assumed", answer=answer)
    asked = int(of_grader["attempts"].sum())
    read, cached, out = (
        round(of_grader[f"tokens_{kind}"].sum() / asked) for kind in ("input", "cached", "output")
    )
    sentence = written("grade.expected_known", asked=asked, read=read, cached=cached, out=out)
    return money.Tokens(input=read, cached=cached, output=out), sentence


def _prompts(study: Study, task: GradingTask, most: int) -> Iterator[tuple[PromptText, int]]:
    """Yield prompts with their numbers of draws; evenly spaced ones where there are over `most`."""
    step = max(1, math.ceil(len(task.questions) / task.settings.draws / most))
    asked = groupby(task.questions, key=lambda question: question.prompted)
    draws = islice(((next(group), 1 + sum(1 for _ in group)) for _, group in asked), 0, None, step)
    while chunk := list(islice(draws, _AT_ONCE)):
        shown = study.values_of([question for question, _ in chunk])
        for (question, times), values in zip(chunk, shown, strict=True):
            yield question.rubric.for_prompt(values), times


# ---- responses of models ------------------------------------------------------------------------
USUAL_WORDS = 500
"""Words of a response, for forecasts."""
_RESPONSE = 700
"""Tokens of a response, for forecasts."""


_Side = tuple[str, str]
"""(pair id, side) of a prompt."""


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """The summary of a run, the number of responses that it added to the study (whole pairs only),
    and what was spent by its end, in US dollars.
    """

    run: GraderSummary
    added: int
    over_budget: bool
    spent: Decimal

    @property
    def line(self) -> str:
        """A sentence on how many responses there are, and how many are still missing."""
        run, left = self.run, self.run.planned - self.run.scored
        numbers = {"added": self.added, "known": run.already, "collected": run.scored, "left": left}
        return written("grade.responses", subject=run.rater_id, **numbers)


def respond(
    study: Study,
    subject: str,
    scope: str = "sample",
    limits: RequestLimits = _LIMITS,
    progress: Progress | None = None,
    *,
    system: str = "",
    thinking: str = "",
    effort: str = "",
) -> ResponseSummary:
    """Put every prompt to a model, as its users would, and keep what it says.

    `subject` is written like a grader and becomes the subject's name, with the `system` prompt,
    `thinking` ("off", "adaptive" or a number of tokens) and `effort` in it: the same model asked in
    another way is another subject. A refusal is a response. A pair's two responses enter the study
    together. Safe to interrupt and to run again.
    Raises InputError as `runner.grade` does.
    """
    spec = parse_spec(subject, study.config.providers)
    if spec.speaks == "baseline":
        raise InputError("a baseline writes no responses; name a model instead")
    settings = GraderSettings.for_subject(spec, effort=effort, thinking=thinking)
    subject = _named(spec, settings, system)
    if scope not in ("sample", "all"):
        raise InputError(f"scope is {scope!r}; it must be sample or all")
    with only_runner(study):
        log = ResponseLog(study.store)
        prompts, answered = _study_prompts(study, scope), log.answered(subject)
        asked = {
            side: PromptText(system=system, user=text)
            for side, text in prompts.items()
            if side not in answered
        }
        run = Rounds.begin(study, limits, progress)
        summary = run.part(subject, len(prompts) - len(asked), len(asked))

        def response(side: _Side, facts: dict[str, Any], came: Outcome | str) -> ResponseAttempt:
            about = {"subject": subject, "pair_id": side[0], "side": side[1]}
            if isinstance(came, str):
                return ResponseAttempt(**about, unscored_reason=came, provenance=facts)
            reason = came.unscored_reason
            facts |= {"raw": came.raw} if reason else {}
            text = "" if reason else came.raw
            return ResponseAttempt(**about, response=text, unscored_reason=reason, provenance=facts)

        about = {"system_prompt": system} if system else {}
        job = Job(subject, asked, response, log.append, about)
        try:
            if asked:
                run.put(spec, settings, job, summary)
        finally:
            added = log.add_whole_pairs(subject)
    return ResponseSummary(summary, added, run.so_far.over_budget, run.so_far.spent)


def forecast_responses(
    study: Study, subject: str, scope: str = "sample", answered: Collection[_Side] = ()
) -> GraderForecast:
    """Price a model's responses to all prompts but those `answered`, without network or key. How
    long they will be is assumed. Raises InputError where the model is not valid.
    """
    spec = parse_spec(subject, study.config.providers)
    settings = GraderSettings.for_subject(spec)
    every = _study_prompts(study, scope)
    texts = [text for side, text in every.items() if side not in answered]
    prompts = [PromptText(system="", user=text) for text in texts]
    basis = written("grade.expected_response", tokens=_RESPONSE)
    warnings = (*told_by_study(spec), *warnings_about(spec, settings))
    forecast = GraderForecast(
        rater_id=spec.text, already=0, new=len(prompts), basis=basis, warnings=warnings
    )
    tariff = money.Tariff.find(spec, prices=study.config.prices)
    asked = ((prompt, 1) for prompt in prompts)
    forecast = priced_forecast(forecast, tariff, spec, settings, asked, _RESPONSE)
    return replace(forecast.left(0), already=len(every) - len(prompts))


def _named(spec: GraderSpec, settings: GraderSettings, system: str) -> str:
    """Return a subject's name: the model, and the options with which it was asked, if any.

    >>> from evenhand.graders.providers import parse_spec
    >>> _named(parse_spec("anthropic:m"), GraderSettings("text", effort="low"), "Be brief.")
    'anthropic:m#system-213c22ed#effort-low'
    """
    parts = {
        "system": hashlib.sha256(system.encode()).hexdigest()[:8] if system else "",
        "thinking": settings.thinking,
        "effort": settings.effort,
    }
    return "#".join([spec.text, *(f"{name}-{value}" for name, value in parts.items() if value)])


def _study_prompts(study: Study, scope: str) -> dict[_Side, str]:
    pairs = study.store.pairs()
    if scope == "sample":
        pairs = pairs[pairs["sample_position"].notna()].sort_values("sample_position")
    return {
        (row["pair_id"], side): row[f"prompt_{side}"]
        for row in pairs.to_dict("records")
        for side in sides_of(pairs)
    }


# ---- proposals ----------------------------------------------------------------------------------
_PROPOSAL = 800
"""Tokens of a usual proposal."""


def propose(
    rounds: Rounds, rubric: str, proposer: str, wanted: PromptText, about: Mapping[str, Any]
) -> ProposalAttempt | None:
    """Put a request to a model, within the budget of these rounds, and return its answer; None
    where the rounds ended early, as their summary says. `about` is kept with it.

    Raises InputError where the model is not known, writes nothing or has no key, or, under a
    budget, its price is not known.
    """
    study = rounds.study
    spec, settings = writer_of(study, proposer)
    kept = answered(study, rubric, proposer, wanted)
    name = written("improve.proposer", model=spec.text)
    summary = rounds.part(name, int(kept is not None), int(kept is None))
    if kept:
        return kept

    def proposal(question: str, facts: dict[str, Any], came: Outcome | str) -> ProposalAttempt:
        outcome = Outcome(unscored_reason=came) if isinstance(came, str) else came
        return ProposalAttempt(
            rubric=rubric,
            proposer=spec.text,
            request=question,
            system=wanted.system,
            user=wanted.user,
            about=about,
            reply=outcome.raw,
            unscored_reason=outcome.unscored_reason,
            provenance=facts,
        )

    store = partial(note_proposals, study.store)
    job = Job(spec.text, {_digest(spec, wanted): wanted}, proposal, store, {})
    rounds.put(spec, settings, job, summary)
    return answered(study, rubric, proposer, wanted)


def answered(
    study: Study, rubric: str, proposer: str, wanted: PromptText
) -> ProposalAttempt | None:
    """Return a model's answer to this request that is kept; None where there is none."""
    spec, _ = writer_of(study, proposer)
    return proposals_of(study.store, rubric).get(_digest(spec, wanted))


def forecast_proposals(
    study: Study, rubric: str, proposer: str, wanted: Sequence[PromptText]
) -> GraderForecast:
    """Forecast what requests for proposals cost, without network or key. Raises InputError where
    the model is not known or writes nothing.
    """
    spec, settings = writer_of(study, proposer)
    kept = proposals_of(study.store, rubric)
    new = [(prompt, 1) for prompt in wanted if _digest(spec, prompt) not in kept]
    forecast = GraderForecast(
        rater_id=written("improve.proposer", model=spec.text),
        already=len(wanted) - len(new),
        new=len(new),
        basis=written("grade.expected_assumed", answer=_PROPOSAL),
    )
    tariff = money.Tariff.find(spec, prices=study.config.prices)
    return priced_forecast(forecast, tariff, spec, settings, new, _PROPOSAL)


def writer_of(study: Study, proposer: str) -> tuple[GraderSpec, GraderSettings]:
    """Return the model that writes, and how it is asked. Raises InputError where the model is not
    known or writes nothing.
    """
    spec = parse_spec(proposer, study.config.providers)
    if spec.speaks == "baseline":
        raise InputError(written("improve.writes_nothing", proposer=spec.text))
    return spec, GraderSettings.for_subject(spec)


def _digest(spec: GraderSpec, prompt: PromptText) -> str:
    """Return 16 hexadecimal digits of SHA-256 over the model and the words sent to it."""
    text = json.dumps([spec.text, prompt.system, prompt.user], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
