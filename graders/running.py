"""Run a study's graders: send the requests that are missing, and store every grade. Or forecast
requests and costs, without network or key.

A run is a `Rounds`: its graders share one budget, one set of limits and one display of progress.
Read in this order. `ProgressCounter` and `GraderSummary` count a run's grades. `Reservations` sets
money of the budget aside for a request. `Job` turns questions into requests and replies into stored
records. `LiveRun` asks one grader with concurrent requests, `BatchRun` by the provider's batch
service, at half the price. `only_runner` locks the study, since two runners would pay for the same
grades twice. `grade` and `Rounds` start the graders. Then come forecasts, and the two other uses of
the runner: `respond` collects responses of the models under test, `propose` new texts for a
grader's prompt.

A run may end at any instant: each record is stored as it comes, and each *chunk* (the requests of
one batch) is written to a journal before it is sent. The next run collects what is under way at the
provider and sends only what is missing.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
import sqlalchemy as sa

from evenhand import __version__
from evenhand.errors import InputError
from evenhand.graders import clients, money, replies
from evenhand.graders.baselines import LexicalGrader
from evenhand.graders.clients import Access, Ask, Grader, Reply, open_grader
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
from evenhand.graders.replies import Facts, GraderFailure, Json, Outcome, Stopped, Transient
from evenhand.rubrics import JudgedRubric, PromptText, Reworded, Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION, image_of, is_conversation
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.prompts.units import AttackedQuestion, Question
from evenhand.study.store.grades import ASKED_AGAIN, CUT_SHORT, AttackedGrade, GradeAttempt, utc_now
from evenhand.study.store.logs.decisions import ProposalAttempt, note_proposals, proposals_of
from evenhand.study.store.logs.replies import (
    BatchJournal,
    BatchRequest,
    Chunk,
    ResponseAttempt,
    ResponseLog,
    gave_probabilities_without_reasoning,
    reply_identities,
)
from evenhand.study.tables.files import FILE
from evenhand.texts import written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Iterator

    from tenacity import AsyncRetrying

    from evenhand.graders.clients import BatchResult, BeforeSending
    from evenhand.study import Study
    from evenhand.study.settings.study_toml import ModelPrices

    AnyAttempt = GradeAttempt | ResponseAttempt | ProposalAttempt  # the kinds of stored records
    Attempt = TypeVar("Attempt", GradeAttempt, ResponseAttempt, ProposalAttempt)

T = TypeVar("T")
MAX_MESSAGE = 120  # the most characters of a server's message that are shown while waiting for it
IDLE_SECONDS = 10.0  # seconds without progress after which the display says what the run waits for

Progress = Callable[[int, int, str], None]
"""Called with (grades collected in this run, questions of this run, the grader's rater_id)."""


class ProgressCounter:
    """Count the grades that a run has collected and report them to the caller's `progress`."""

    def __init__(self, progress: Progress | None) -> None:
        self._n_collected = self._n_expected = 0
        self._progress = progress
        self._reported_at = time.monotonic()
        self._describe_retry: Callable[[], str] | None = None

    def expect(self, n_questions: int) -> None:
        """Add questions to the number that the run is to ask."""
        self._n_expected += n_questions

    def add(self, label: str) -> None:
        """Count a grade that has come, and report the count under this label."""
        self._n_collected += 1
        self._describe_retry = None
        self.say(label)

    def say(self, label: str) -> None:
        """Report the count, with a grader's name or a sentence as its label."""
        self._reported_at = time.monotonic()
        self._report(label)

    def note_retry(self, label: str, failure: GraderFailure, attempt: int, seconds: float) -> None:
        """Note that a request failed and will be tried again in this many seconds."""
        retry_at, status = time.monotonic() + seconds, failure.status

        def describe_retry() -> str:
            seconds_left = retry_at - time.monotonic()
            return written(
                "grade.waits_to_retry" if seconds_left > 0 else "grade.tries_again",
                grader=label,
                what=written("grade.no_answer") if status is None else status,
                words=str(failure)[:MAX_MESSAGE],
                attempt=attempt + 1,
                attempts=replies.ATTEMPTS,
                seconds=max(math.ceil(seconds_left), 0),
            )

        self._describe_retry = describe_retry

    async def report_waiting(self) -> None:
        """Report what the run waits for, until cancelled."""
        while self._progress:
            await anyio.sleep(min(IDLE_SECONDS, 1.0))  # looks each second, or as it reports
            idle_seconds = time.monotonic() - self._reported_at
            if idle_seconds >= IDLE_SECONDS:
                no_reply = written("grade.waits_for_reply", seconds=round(idle_seconds))
                self._report(self._describe_retry() if self._describe_retry else no_reply)

    def _report(self, label: str) -> None:
        if self._progress:
            self._progress(self._n_collected, self._n_expected, label)


@dataclass(slots=True, kw_only=True)
class GraderSummary:
    """One grader's part of a run, counted in grades and updated as they come."""

    rater_id: str
    already: int = 0  # grades before this run
    planned: int = 0  # grades to be collected
    scored: int = 0  # grades with a label
    without_probabilities: int = 0  # labels that should have had some
    unscored: Counter[str] = field(default_factory=Counter)  # grades without a label, by reason
    requests: int = 0
    stopped: str = ""  # the reason for an early end
    warnings: tuple[str, ...] = ()

    @property
    def unasked(self) -> int:
        """The number of planned grades that have not come."""
        return self.planned - self.scored - sum(self.unscored.values())


# ---- reservations -------------------------------------------------------------------------------
MIN_OUTPUT_LIMIT = 1_024  # tokens in addition to thinking; no limit on output is set below this
_LONGEST_ANSWERS = 4  # a lowered limit leaves room for this many times the longest answer


class Reservations:
    """Sets amounts of the run's budget aside for the requests of one grader."""

    def __init__(self, budget: money.Budget, tariff: money.Tariff | None) -> None:
        self._budget, self._tariff = budget, tariff
        self.longest_answer = 0  # tokens of the longest answer that has come

    async def set_aside(self, request: Facts) -> Decimal:
        """Reserve a request's worst price in US dollars and return it. The request's limit on
        output is lowered if the budget has less left, or if replies were lost: a lost reply counts
        in full, so the next request should cost little. Raises OverBudget if no limit would do.
        """
        if self._tariff is None:
            return Decimal(0)
        worst_price, lowest_price = self._tariff.at_most(request), self.lowest_price(request)
        is_careful = (
            self._budget.limit is not None and self._budget.lost > 0 and self.longest_answer > 0
        )
        price = lowest_price if is_careful else worst_price
        granted = await self._budget.reserve(price, min_amount=lowest_price)
        if granted < worst_price:
            _lower_output_limit(self._tariff, request, granted)
        return granted

    def price_in_batch(self, request: Facts, reserved: Decimal, n_waiting: int) -> Decimal | None:
        """Return the worst price in US dollars of the next of `n_waiting` requests of a batch. The
        request's limit on output is lowered if the batch would not fit into the budget in addition
        to the amount `reserved`. None if the request does not fit even so.
        """
        if self._tariff is None:
            return Decimal(0)
        worst_price = self._tariff.at_most(request)
        if self._budget.fits(reserved + worst_price * n_waiting):
            return worst_price
        lowest_price = self.lowest_price(request)
        if not self._budget.fits(reserved + lowest_price):
            return None
        if lowest_price < worst_price:
            _lower_output_limit(self._tariff, request, lowest_price)
        return lowest_price

    def lowest_price(self, request: Json) -> Decimal:
        """Return a request's worst price in US dollars at the lowest acceptable output limit."""
        if self._tariff is None:
            return Decimal(0)
        worst_price = self._tariff.at_most(request)
        if not any(name in request for name in money.LIMIT_NAMES):
            return worst_price
        limit = max(MIN_OUTPUT_LIMIT, _LONGEST_ANSWERS * self.longest_answer)
        limit += request.get("thinking", {}).get("budget_tokens", 0)  # Claude's API requires more
        return min(self._tariff.at_most(request, limit), worst_price)

    def record_usage(self, reply: Reply, requested_limit: int) -> Reply:
        """Remember the tokens and service tier of a reply, and return the reply. If an output limit
        below `requested_limit` (tokens) truncated an outcome, it is `CUT_SHORT`: asked again later.
        """
        usage = reply.outcome.evidence.get("usage")
        if isinstance(usage, Mapping):
            answer_tokens = money.Tokens.from_usage(usage).output // len(reply.outcomes)
            self.longest_answer = max(self.longest_answer, answer_tokens)
        tier = money.Terms.from_reply(reply.outcome.evidence).tier
        if self._tariff and tier and tier != self._tariff.tier:
            self._tariff = replace(self._tariff, tier=tier)
        if money.output_limit(reply.request) >= requested_limit:
            return reply
        outcomes = [
            replace(outcome, unscored_reason=CUT_SHORT)
            if outcome.unscored_reason == "truncated" or outcome.evidence.get("truncated")
            else outcome
            for outcome in reply.outcomes
        ]
        return replace(reply, outcomes=outcomes)


def _lower_output_limit(tariff: money.Tariff, request: Facts, granted: Decimal) -> None:
    """Lower a request's limit on output so that it costs at most `granted` US dollars."""
    limit = money.output_limit(request)
    input_price = tariff.at_most(request, 0)
    per_token = (tariff.at_most(request, limit) - input_price) / limit
    limit_name = next(name for name in money.LIMIT_NAMES if name in request)
    request[limit_name] = max(int((granted - input_price) / per_token), 1)


# ---- grades -------------------------------------------------------------------------------------
def grade_key(identity: Json, request: Json, draw: int) -> str:
    """Return the key that grades of the same request share: 40 hexadecimal digits of SHA-256. The
    hash covers the final request, the service it went to (the client's `identity`), the prompt's
    version and the draw; not timeouts or concurrency, which change nothing about the answer.
    """
    service = {name: text for name, text in identity.items() if name != "sdk"}
    hashed = service | {"prompt_version": PROMPT_VERSION, "draw": draw, "request": request}
    text = json.dumps(hashed, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def request_provenance(identity: Json, prompt: PromptText, request: Json, draw: int) -> Facts:
    """Return the provenance of a request, live or in a batch: its key, the hash of its prompt, its
    settings, and the constraint on its answer (`asked_by`).
    """
    text = f"{prompt.system}\0{prompt.user}" + "".join(image.uri for _, image in prompt.images)
    contents = ("model", "system", "messages")  # not settings
    return {
        "grade_key": grade_key(identity, request, draw),
        "prompt_hash": hashlib.sha256(text.encode()).hexdigest()[:16],
        "settings": {name: value for name, value in request.items() if name not in contents},
        "asked_by": clients.constraint_of(request),
    }


def reply_provenance(outcome: Outcome, request_id: str) -> Facts:
    """Return the provenance of a reply: its ids, the model that answered, and its evidence."""
    evidence = dict(outcome.evidence)
    renamed = {"returned_model": evidence.pop("model", ""), "reply_id": evidence.pop("id", "")}
    return renamed | {"request_id": request_id, **evidence}


def grade_of(
    rater_id: str,
    question: Question,
    outcome: Outcome,
    provenance: Json,
    seconds: float | None = None,
) -> GradeAttempt:
    """Return the grade of an outcome. Labels of a pair shown as "ba" are mapped back to "ab"."""
    rubric = question.rubric
    in_order_ab = rubric.swaps.__getitem__ if question.order == "ba" else str  # str: unchanged
    probabilities = p_positive = None
    if outcome.probabilities is not None:
        unsorted = {in_order_ab(key): value for key, value in outcome.probabilities.items()}
        probabilities = {key: unsorted[key] for key in rubric.categories}
        if rubric.affirmative:
            p_positive = min(sum(probabilities[key] for key in rubric.affirmative), 1.0)
    grade = GradeAttempt(
        rater_id=rater_id,
        rubric=rubric.name,
        unit_id=question.unit_id,
        rubric_hash=rubric.hash,
        order=question.order,
        draw=question.draw,
        label=in_order_ab(outcome.label) if outcome.label else "",
        p_positive=p_positive,
        probabilities=probabilities,
        prob_method=outcome.prob_method,
        unscored_reason=outcome.unscored_reason,
        seconds=seconds,
        raw=outcome.raw,
        provenance=replies.storable(dict(provenance)),
    )
    if isinstance(question, AttackedQuestion):  # not a rating of the unit, so stored apart
        attack = {name: getattr(question, name) for name in ("attack", "target", "side", "suite")}
        return AttackedGrade(**vars(grade), **attack)
    return grade


# ---- jobs ---------------------------------------------------------------------------------------
_TOOL = f"evenhand {__version__}"


@dataclass
class Job:
    """Questions for one model behind a network, each asked with one prompt and answered by a text.
    What stands for a question depends on the job: in `respond` its (pair id, side), in `propose`
    the request's hash, in a `GradeJob` a list of draws.

    `make_record` makes the record to store from a question, its provenance, and its outcome or the
    reason why there is none. `common_facts` are in every record's provenance.
    """

    rater_id: str
    prompts_by_question: Mapping[Any, PromptText]
    make_record: Callable[[Any, Facts, Outcome | str], Any]
    store: Callable[[Sequence[Any]], None]  # stores records
    common_facts: Json
    grader: Grader = field(init=False)  # the model's client, set before the job runs

    def __len__(self) -> int:
        return len(self.prompts_by_question)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.prompts_by_question)

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]:
        return [self.prompts_by_question[question] for question in questions]

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(Ask(prompt), before)

    def prepare_follow_up(self, question: Any, reply: Reply) -> Any:
        """Return the part of the question that is to be asked again after a reply, or None."""
        return None

    def request_facts(self, question: Any, prompt: PromptText, request: Json) -> Facts:
        """Return the provenance of a question's request."""
        facts = request_provenance(self.grader.identity, prompt, request, draw=0)
        return facts | dict(self.common_facts)

    def records_of_reply(self, question: Any, reply: Reply, facts: Facts) -> list[Any]:
        """Return the records to store for a reply; `facts` are the provenance of its request."""
        facts |= reply_provenance(reply.outcome, reply.request_id)
        return [self.make_record(question, facts, reply.outcome)]

    def records_of_failure(self, question: Any, reason: str, facts: Facts) -> list[Any]:
        """Return the records to store for a question that has no reply for this reason."""
        return [self.make_record(question, facts, reason)]


Draws = list[Question]  # of one prompt: they differ only in their number, `Question.draw`


def group_by_prompt(questions: Iterable[Question], max_draws: int) -> Iterator[Draws]:
    """Group consecutive questions by their prompts' key, at most `max_draws` to a list."""
    for _, draws in groupby(questions, key=lambda question: question.prompt_key):
        while group := list(islice(draws, max_draws)):
            yield group


class GradeJob(Job):
    """The open questions of one grader. `draws`, which the base class calls a question, is a list
    of draws of one prompt. One request asks for all of them if the grader can give several, so that
    the prompt is paid once. There is no `prompts_by_question`, `make_record` or `common_facts`:
    methods of this class render prompts and make records.
    """

    def __init__(self, study: Study, grader: Grader, task: GradingTask) -> None:
        self.rater_id, self.store = task.rater_id, study.store.add_grades
        self.grader, self.task, self.study = grader, task, study
        has_repeats = grader.settings.draws > 1
        replies_by_prompt = reply_identities(study.store, self.rater_id) if has_repeats else {}
        self._seen_replies = {  # (the prompt's key, the reply's identity)
            (prompt_key, replies.reply_identity(facts))
            for prompt_key, reply_facts in replies_by_prompt.items()
            for facts in reply_facts
        }
        self._constrained: set[Question] = set()  # first draws of prompts asked again, constrained

    def __len__(self) -> int:
        """Return the number of draws: the most requests that the job may take."""
        return len(self.task.questions)

    def __iter__(self) -> Iterator[Draws]:
        asks_together = self.grader.draws_at_once > 1  # what one request cannot bring follows
        return group_by_prompt(self.task.questions, len(self) if asks_together else 1)

    def prompts(self, questions: Sequence[Draws]) -> list[PromptText]:
        first_draws = [draws[0] for draws in questions]
        units = self.study.values_of(first_draws)
        return [draw.rubric.for_prompt(unit) for draw, unit in zip(first_draws, units, strict=True)]

    def request(self, draws: Draws, prompt: PromptText) -> Facts:
        """Return the request for a batch, with `n` if it asks for several draws."""
        return self.grader.request(prompt) | ({"n": len(draws)} if len(draws) > 1 else {})

    async def ask(self, draws: Draws, prompt: PromptText, before: BeforeSending) -> Reply:
        constrained = draws[0] in self._constrained
        return await self.grader.ask(Ask(prompt, draws[0].rubric, len(draws), constrained), before)

    def prepare_follow_up(self, draws: Draws, reply: Reply) -> Draws:
        """Return the draws that did not come. If the first answer could not be read, return all
        draws, and note that `ask` is to constrain the answer to the rubric's keys; only once.
        """
        first, method = draws[0], self.grader.settings.method
        is_unreadable = reply.outcome.unscored_reason == "unparseable"
        asks_for_key = method in ("label", "logprobs") and first.rubric.prompt is None
        can_constrain = first not in self._constrained and self.grader.can_constrain(reply.request)
        if is_unreadable and asks_for_key and can_constrain:
            self._constrained.add(first)
            return draws
        return draws[len(reply.outcomes) :]

    def request_facts(self, draws: Draws, prompt: PromptText, request: Json) -> Facts:
        """Return the first draw's provenance, and the keys of all draws (`draw_keys`)."""
        identity = self.grader.identity
        facts = request_provenance(identity, prompt, request, draws[0].draw)
        return facts | {"draw_keys": [grade_key(identity, request, draw.draw) for draw in draws]}

    def records_of_reply(self, draws: Draws, reply: Reply, facts: Facts) -> list[GradeAttempt]:
        """Return the grades of a reply. A draw with the reply of an earlier draw is unscored."""
        settings, grades = self.grader.settings, []
        all_facts = _facts_by_draw(facts, len(draws))
        # A server may give fewer answers than the draws that it was asked for.
        for draw, outcome, provenance in zip(draws, reply.outcomes, all_facts, strict=False):
            seconds = provenance.pop("seconds", None)
            provenance |= reply_provenance(outcome, reply.request_id)
            # Sets and numbers have no token probabilities: only their label is read.
            is_label_alone = settings.reading == "logprobs" and not draw.rubric.kind.is_choice
            method = "label" if is_label_alone else settings.reading
            provenance |= {"method": method, "draws": settings.draws}
            if isinstance(draw.rubric, Reworded):
                provenance["own_prompt"] = draw.rubric.words.hash
            if self._is_repeat(draw, provenance):
                outcome = Outcome(unscored_reason=replies.REPEATED, raw=outcome.raw)
            elif settings.method == "draws":
                outcome = replies.as_draw(outcome, draw.rubric)
            grades.append(grade_of(self.rater_id, draw, outcome, provenance, seconds))
        return grades

    def _is_repeat(self, draw: Question, provenance: Facts) -> bool:
        """Return True if one of several draws brought the reply of another; remember the reply."""
        identity = replies.reply_identity(provenance)
        if self.grader.settings.draws == 1 or identity is None:
            return False
        reply = (draw.prompt_key, identity)
        is_repeat = reply in self._seen_replies
        self._seen_replies.add(reply)
        return is_repeat

    def records_of_failure(self, draws: Draws, reason: str, facts: Facts) -> list[GradeAttempt]:
        return [
            grade_of(self.rater_id, draw, Outcome(unscored_reason=reason), provenance=provenance)
            for draw, provenance in zip(draws, _facts_by_draw(facts, len(draws)), strict=True)
        ]


def _facts_by_draw(facts: Facts, n_draws: int) -> Iterator[Facts]:
    """Yield the provenance of each draw, given that of their request: with the draw's `grade_key`,
    if the request has `draw_keys`, and with the request's cost for the first draw, none for others.
    """
    no_cost: Facts = {"tokens": {}, "cost_usd": 0.0, "held_usd": 0.0}
    first_facts = {name: value for name, value in facts.items() if name != "draw_keys"}
    other_facts = first_facts | {name: no_cost[name] for name in no_cost if name in facts}
    for index, key in enumerate(facts.get("draw_keys") or [""] * n_draws):
        yield (other_facts if index else first_facts) | ({"grade_key": key} if key else {})


# ---- live ---------------------------------------------------------------------------------------
FAILURES_IN_A_ROW = 10  # failed requests that stop a grader: the units are not at fault
_PROMPTS_AT_ONCE = 32  # prompts rendered together
_MAX_START_SECONDS = 2.0  # over which the workers start
_MAX_SILENCE = 1.0  # seconds after which a server that has never answered is not asked again
_NO_REPLY = "request_failed"  # one of `TRANSIENT_REASONS`: the next run asks again
_REJECTED = "request_rejected"  # how the reason begins; the status follows
# At the level DEBUG these log what a server sends as it comes, a key that it echoes included.
_LOGS_WITH_HEADERS = ("anthropic", "openai", "httpx2", "aiohttp")
_BUSY_STATUSES = (429, 529)
_BUSY_FACTOR = 0.75  # by which the limit on concurrent requests falls when the server is too busy


class GraderRun:
    """One grader's part of a run (`rounds`), live or by batches, with its counts in `summary`.
    `rounds.scrubbed` removes secrets from records, `rounds.count` adds stored ones to the counts.
    """

    def __init__(
        self, job: Any, rounds: Rounds, summary: GraderSummary, tariff: money.Tariff | None
    ) -> None:
        self._job = job
        self._grader: Grader = job.grader
        self._common_facts = {
            **self._grader.identity,
            "tool": _TOOL,
            "requested_model": self._grader.spec.model,
            "prompt_version": PROMPT_VERSION,
        }
        self._rounds, self._limits, self._budget = rounds, rounds.limits, rounds.budget
        self._summary, self._tariff = summary, tariff
        self.reservations = Reservations(rounds.budget, tariff)

    def _retrying(self, sleep: Callable[[float], Awaitable[None]]) -> AsyncRetrying:
        """Return the retry policy, which reports each wait to the run's progress."""
        on_retry = partial(self._rounds.progress.note_retry, self._summary.rater_id)
        return replies.retrying(wait_scale=self._limits.wait_scale, sleep=sleep, on_retry=on_retry)


def unscored_reason_for(failure: GraderFailure) -> str:
    """Return the `unscored_reason` of a question whose request ended with this failure."""
    if isinstance(failure, replies.Filtered):
        return replies.FILTERED
    return f"{_REJECTED}: {failure.status}" if isinstance(failure, replies.Rejected) else _NO_REPLY


class LiveRun(GraderRun):
    """Asks one model all of its open questions with concurrent requests. The record of a rejected
    request is held back until a reply shows that the grader is not at fault (`_take_rejections`).
    """

    def __init__(
        self, job: Job, rounds: Rounds, summary: GraderSummary, tariff: money.Tariff | None
    ) -> None:
        super().__init__(job, rounds, summary, tariff)
        self._n_under_way = self._n_replies = 0  # requests under way, and those answered
        self._failed_in_a_row = 0  # failed requests since the last reply
        self._rejections: list[Any] = []  # records of rejections that are held back
        self._unwritten: list[Any] = []  # records that are not in the store yet
        self._write_failed = False  # for the last write
        self._stopped = anyio.Event()  # set when the grader is stopped, which ends pauses
        self._throttle = Throttle(self._limits.concurrency)
        self._open_questions = self._render_prompts()  # an iterator that all workers share
        self._began_at = math.nan  # set when the run begins
        self.n_asked_alone = 0  # questions that were asked before the others

    async def run(self, *, close: bool = True, first_only: bool = False) -> None:
        """Ask all open questions, or the first of them only; then `close` the model's client."""
        self._began_at = time.monotonic()
        try:
            self._summary.warnings = tuple(await self._grader.lifecycle())
            request_seconds = await self._ask_one_by_one()
            n_workers = min(self._limits.concurrency, len(self._job) - self.n_asked_alone)
            # The workers start evenly over the time that one request took: requests that start
            # together stay together, and wait for one another at every turn.
            start_seconds = min(request_seconds, _MAX_START_SECONDS)
            async with anyio.create_task_group() as workers:
                for _ in range(0 if first_only or self._summary.stopped else n_workers):
                    workers.start_soon(self._answer_open_questions)
                    await self._pause(start_seconds / n_workers)
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await self._store_rejections()
                finally:
                    if close:
                        await self._grader.close()

    def interrupt(self) -> int:
        """Send nothing more; return the number of requests under way, which are waited for."""
        self._stop(written("grade.was_interrupted"))
        return self._n_under_way

    async def _ask_one_by_one(self) -> float:
        """Ask the first question alone: a wrong key or address then costs one request, and the
        client learns which parameters the server takes. Until it knows, and while requests are
        rejected, ask the next ones alone, too. Return the seconds that the last one took.
        """
        sent_at = self._began_at
        for question, prompt in self._open_questions:
            sent_at = time.monotonic()
            self.n_asked_alone += 1
            await self._ask_and_store(question, prompt)
            if self._summary.stopped or (self._grader.settled and not self._rejections):
                break
        return time.monotonic() - sent_at

    async def _answer_open_questions(self) -> None:
        """Ask one question after another, as one of several workers."""
        for question, prompt in self._open_questions:
            await self._ask_and_store(question, prompt)
            if self._summary.stopped:
                return

    def _render_prompts(self) -> Iterator[tuple[Any, PromptText]]:
        """Yield the questions with their prompts, the first rendered alone, then some at once."""
        questions, n_at_once = iter(self._job), 1
        while group := list(islice(questions, n_at_once)):
            yield from zip(group, self._job.prompts(group), strict=True)
            n_at_once = _PROMPTS_AT_ONCE

    async def _ask_and_store(self, question: Any, prompt: PromptText) -> None:
        """Ask a question and store the reply or the failure; then ask what the reply left open.
        `facts` are the record's provenance, filled on the way: `attempts`; `started_at`, `seconds`,
        tokens and cost of the last one; `held_usd`, US dollars for attempts that may be billed
        although no reply came; the request's facts; `finished_at`; a failure's `error`, `status`.
        """
        facts = dict(self._common_facts)
        try:
            reply = await self._ask_with_retries(question, prompt, facts)
        except Stopped as failure:
            self._stop(str(failure))
            if "held_usd" in facts:  # an earlier attempt may be billed: later runs count it
                facts |= self._job.request_facts(question, prompt, self._grader.request(prompt))
                facts |= {"error": str(failure), "status": None, "finished_at": utc_now()}
                await self._commit(list(self._job.records_of_failure(question, _NO_REPLY, facts)))
        except GraderFailure as failure:
            facts |= self._job.request_facts(question, prompt, self._grader.request(prompt))
            await self._store_failure(question, failure, facts)
        else:
            facts |= self._job.request_facts(question, prompt, reply.request)
            open_part = self._job.prepare_follow_up(question, reply)
            facts["finished_at"] = utc_now()
            if open_part == question:  # all of it is asked again: do not count this reply
                facts[ASKED_AGAIN] = True
            self._failed_in_a_row = 0
            self._n_replies += 1
            records = self._job.records_of_reply(question, reply, facts)
            await self._commit([*self._take_rejections(), *records])
            if open_part:
                await self._ask_and_store(open_part, prompt)

    async def _ask_with_retries(self, question: Any, prompt: PromptText, facts: Facts) -> Reply:
        """Return the reply, or raise the last failure; add to `facts` (see `_ask_and_store`)."""

        async def ask_once() -> Reply:
            try:
                async with self._throttle.slot():
                    return await self._ask_within_budget(question, prompt, facts)
            except Transient as failure:
                # There is advice if the address or the connection may be wrong.
                may_be_unreachable = failure.advice and not self._n_replies
                if may_be_unreachable and time.monotonic() - self._began_at > _MAX_SILENCE:
                    raise Stopped(failure.advice) from None
                raise

        facts["attempts"] = 1
        try:
            return await ask_once()
        except Transient as failure:
            first_failure = failure
        # The retry policy takes a twentieth of a request's time: it is used only after a failure.
        # It counts that failure as its first attempt, and waits before the second.
        async for attempt in self._retrying(self._pause):
            with attempt:
                facts["attempts"] = attempt.retry_state.attempt_number
                if facts["attempts"] == 1:
                    raise first_failure
                reply = await ask_once()
        return reply

    async def _ask_within_budget(self, question: Any, prompt: PromptText, facts: Facts) -> Reply:
        """Return the reply to one attempt, whose worst price is reserved before it is sent."""
        # These are of the request sent last: the client sends another if a parameter is rejected.
        reserved = spent = Decimal(0)
        sent_at, requested_limit, is_lost = 0.0, 0, False

        async def before_sending(request: Facts) -> None:
            """Reserve the request's price, and release that of a rejected one before it."""
            nonlocal reserved, spent, sent_at, requested_limit
            self._budget.settle(reserved, Decimal(0))
            reserved = spent = Decimal(0)
            requested_limit = money.output_limit(request)
            if not self._summary.stopped:
                # The whole reservation counts as spent until a lower cost is known.
                reserved = spent = await self.reservations.set_aside(request)
            if self._summary.stopped:  # before, or by another worker during the wait for money
                raise Stopped(self._summary.stopped)
            self._summary.requests += 1
            facts["started_at"] = utc_now()
            sent_at = time.monotonic()

        self._n_under_way += 1
        try:
            reply = await self._job.ask(question, prompt, before_sending)
            facts["seconds"] = round(time.monotonic() - sent_at, 3)
            usage = money.usage_facts(reply.outcome.evidence, self._tariff, reply.charged)
            facts |= usage
            spent = Decimal(str(usage.get("cost_usd", reserved)))
            reply = self.reservations.record_usage(reply, requested_limit)
        except GraderFailure as failure:
            is_lost = failure.may_be_billed
            spent = reserved if is_lost else Decimal(0)
            raise
        finally:
            self._n_under_way -= 1
            if spent and "cost_usd" not in facts:  # later runs within the budget count it too
                facts["held_usd"] = facts.get("held_usd", 0.0) + float(spent)
            self._budget.settle(reserved, spent, lost=is_lost)
        return reply

    async def _pause(self, seconds: float) -> None:
        """Sleep, or return at once when the grader is stopped."""
        with anyio.move_on_after(seconds):
            await self._stopped.wait()

    async def _store_failure(self, question: Any, failure: GraderFailure, facts: Facts) -> None:
        """Store a failure, or hold it back if rejected; stop the grader after too many of them."""
        facts |= {"error": str(failure), "status": failure.status, "finished_at": utc_now()}
        records = self._job.records_of_failure(question, unscored_reason_for(failure), facts)
        if isinstance(failure, replies.Filtered):
            self._failed_in_a_row = 0
            self._n_replies += 1
            await self._commit([*self._take_rejections(), *records])
            return
        self._failed_in_a_row += 1
        if isinstance(failure, replies.Rejected):
            self._rejections += records
        else:
            await self._commit(list(records))
        if (in_a_row := self._failed_in_a_row) >= FAILURES_IN_A_ROW:
            self._stop(f"{in_a_row} requests in a row failed, the last with: {failure}")
        elif isinstance(failure, Transient) and failure.status is None and not self._n_replies:
            address = self._grader.identity["base_url"]
            self._stop(failure.advice or written("provider.silent", address=address, why=failure))

    def _take_rejections(self) -> list[Any]:
        """Return the records of rejected requests that were held back, and forget them. A reply
        after them shows that the units caused the rejections. If the grader was stopped instead,
        they say nothing about the units, and the next run asks again.
        """
        rejections, self._rejections = self._rejections, []
        if not self._summary.stopped:
            return rejections
        return [replace(record, unscored_reason=_NO_REPLY) for record in rejections]

    async def _store_rejections(self) -> None:
        """Store the rejections that are held back, at the end of the run."""
        self._write_failed = False  # what could not be written is tried once more
        if self._rejections and not self._n_replies and not self._summary.stopped:
            # Nothing was answered, so nothing says that the units are at fault.
            count, why = len(self._rejections), self._rejections[-1].provenance["error"]
            self._stop(written("grade.all_refused", count=count, why=why))
        await self._commit(self._take_rejections())

    async def _commit(self, records: list[Any]) -> None:
        """Store records, in one write with those of replies that come at the same time. The event
        loop's thread writes: a second thread would wait for its turn at every step of the database,
        which with SQLite takes ten times as long. A slow store holds up all requests, but replies
        that come meanwhile share the next write.
        """
        self._unwritten += self._rounds.scrubbed(records)
        with anyio.CancelScope(shield=True):  # a grade that has come is paid for: keep it
            await anyio.lowlevel.checkpoint()  # lets other replies add their records
            if not self._unwritten or self._write_failed:
                return
            try:
                self._job.store(self._unwritten)
            except BaseException:
                self._write_failed = True  # the other workers need not fail as well
                raise
            written_records, self._unwritten = self._unwritten, []
            self._rounds.count(written_records, self._summary)

    def _stop(self, reason: str) -> None:
        """Stop the grader; the first reason counts."""
        self._summary.stopped = self._summary.stopped or reason
        self._stopped.set()


def run_side_by_side(runs: Sequence[LiveRun | BatchRun], progress: ProgressCounter) -> None:
    """Run several graders concurrently; one that stops does not stop the others."""
    for name in _LOGS_WITH_HEADERS:
        log = logging.getLogger(name)
        log.setLevel(max(log.getEffectiveLevel(), logging.INFO))

    interrupted = False

    async def listen(all_runs: anyio.CancelScope) -> None:
        """Handle Ctrl-C: the first waits for requests under way, the second ends the run."""
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if interrupted:
                    all_runs.cancel()
                interrupted = True
                if n_under_way := sum(run.interrupt() for run in runs):
                    progress.say(written("grade.interrupted", count=n_under_way))

    async def run_graders() -> None:
        async with anyio.create_task_group() as background:
            background.start_soon(progress.report_waiting)
            if threading.current_thread() is threading.main_thread():
                background.start_soon(listen, background.cancel_scope)
            async with anyio.create_task_group() as group:
                for run in runs:
                    group.start_soon(run.run)
            background.cancel_scope.cancel()
        if interrupted:
            raise KeyboardInterrupt

    gc.freeze()  # saves 3% of a run, in which the collector would scan the libraries' objects
    try:
        anyio.run(run_graders)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):  # raise the first alone
            error = error.exceptions[0]
        raise error from None
    finally:
        gc.unfreeze()


class Throttle:
    """A limit on concurrent requests. It falls by a quarter when the server is too busy for one
    sent since the last fall, and rises by one, up to `max_limit`, after as many replies as itself.
    """

    def __init__(self, max_limit: int) -> None:
        self._max_limit = max_limit
        self._limiter = anyio.CapacityLimiter(max_limit)
        self._lowered_at = 0.0
        self._n_replies = 0

    @property
    def limit(self) -> int:
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until one more request may run, and count it while the block runs."""
        async with self._limiter:
            sent_at = time.monotonic()
            try:
                yield
            except Transient as failure:
                if failure.status in _BUSY_STATUSES and sent_at >= self._lowered_at:
                    self._set(int(self.limit * _BUSY_FACTOR))
                    self._lowered_at = time.monotonic()
                raise
            self._n_replies += 1
            if self._n_replies >= self.limit:
                self._set(self.limit + 1)

    def _set(self, limit: int) -> None:
        self._limiter.total_tokens = min(max(limit, 1), self._max_limit)
        self._n_replies = 0


# ---- by batches ---------------------------------------------------------------------------------
_POLL_SECONDS = 20.0  # seconds between two queries for a batch's state
_LINE_OVERHEAD = 200  # bytes of a request's line in addition to the request


class _RequestToSend(NamedTuple):
    """A request of a chunk: its record in the journal, its body, its worst price in US dollars."""

    record: BatchRequest
    body: Facts
    worst_price: Decimal


class BatchRun(GraderRun):
    """Asks one grader all of its open questions by batches, each sent as a chunk of requests. A run
    that is to `cancel` only cancels the batches under way and keeps the grades that they gave.
    """

    _job: GradeJob

    def __init__(
        self, job: GradeJob, rounds: Rounds, summary: GraderSummary, tariff: money.Tariff | None
    ) -> None:
        tier, prices = job.task.settings.service_tier, rounds.study.config.prices
        batch_tariff = money.Tariff.find(job.task.spec, batch=True, tier=tier, prices=prices)
        super().__init__(job, rounds, summary, batch_tariff)
        self._live_tariff = tariff
        self._service = job.grader.batches(self._pause)
        self._journal = BatchJournal(job.study.store)
        self._rubrics = job.study.rubrics | dict(job.task.rubrics)
        self._accepted_hashes = job.study.accepted_hashes()
        self._to_ask_again: list[Question] = []
        self._planned: dict[Question, Question] = {}  # by itself without an attack's text
        self._held: dict[str, Decimal] = {}  # by chunk, US dollars reserved for it
        self._live_run: LiveRun | None = None
        self._cancel_scope: anyio.CancelScope | None = None

    def interrupt(self) -> int:
        """Stop waiting for batches, which go on; return the number of live requests under way."""
        if self._live_run is not None:
            return self._live_run.interrupt()
        if self._cancel_scope is not None:
            self._cancel_scope.cancel()
        return 0

    async def run(self) -> None:
        """Send and collect batches; then close the model's client."""
        try:
            with anyio.CancelScope() as self._cancel_scope:
                self._summary.warnings = tuple(await self._grader.lifecycle())
                await self._send_and_collect_all()
        except Stopped as failure:
            self._summary.stopped = str(failure)
        except GraderFailure as failure:
            self._summary.stopped = f"the batch service does not answer as it should: {failure}"
        finally:
            # What is under way may be billed. Other graders must not wait for it to be settled.
            for price in self._held.values():
                self._budget.settle(price, price, lost=True)
            with anyio.CancelScope(shield=True):
                await self._grader.close()

    async def _send_and_collect_all(self) -> None:
        """Collect the chunks under way, send what is missing, and resend what had no reply."""
        chunks = await self._chunks_under_way()
        under_way = {
            draw
            for chunk in chunks
            for request in chunk.requests
            for draw in self._accepted_draws(request)
        }
        planned = self._planned = {draw: draw for draw in self._job.task.questions}
        open_draws = [draw for draw in planned if draw not in under_way]
        n_unplanned = len(under_way - planned.keys())  # other options than this run's asked these
        self._rounds.extend_summary(self._summary.rater_id, 0, n_unplanned)
        if self._rounds.cancel:
            for chunk in chunks:
                state = await self._call_with_retries(partial(self._service.state, chunk.batch_id))
                if not state.ended:
                    await self._call_with_retries(partial(self._service.cancel, chunk.batch_id))
            await self._collect_all(chunks)
            return
        if not self._rounds.batch:  # only what is under way comes by batch
            await self._collect_all(chunks)
            if (open_draws := open_draws + self._to_ask_again) and not self._summary.stopped:
                await self._ask_live(open_draws)
            return
        if open_draws and not chunks:
            open_draws = await self._ask_live(open_draws, first_only=True)
        for _ in range(replies.ATTEMPTS):
            await self._send_and_collect(open_draws, chunks)
            chunks, open_draws, self._to_ask_again = [], self._to_ask_again, []
            if not open_draws or self._summary.stopped:
                return
        facts = {"error": f"no readable reply in {replies.ATTEMPTS} batches"}
        failed = self._job.records_of_failure(open_draws, _NO_REPLY, facts)
        await anyio.to_thread.run_sync(self._job.store, failed)
        self._rounds.count(failed, self._summary)

    def _accepted_draws(self, request: BatchRequest) -> Draws:
        """Return a request's questions, none if its rubric's text is no longer accepted."""
        rubric = self._rubrics.get(request.rubric)  # of the task, perhaps a text that is tried
        if rubric is None:
            return []
        accepted_hashes = (rubric.hash, *self._accepted_hashes[rubric.name])
        return draws_of_request(request, rubric) if request.rubric_hash in accepted_hashes else []

    async def _ask_live(self, draws: list[Question], *, first_only: bool = False) -> list[Question]:
        """Ask open draws live, or the first of them only (see `LiveRun._ask_one_by_one`): a mistake
        then costs one request, not a batch. Return the draws that were not among the first.
        """
        task = replace(self._job.task, questions=draws, already=0)
        job = GradeJob(self._job.study, self._grader, task)
        groups = list(job)  # now, as a reply may change how draws are grouped
        run = self._live_run = LiveRun(job, self._rounds, self._summary, self._live_tariff)
        await run.run(close=False, first_only=first_only)
        self._live_run = None
        longest = max(self.reservations.longest_answer, run.reservations.longest_answer)
        self.reservations.longest_answer = longest
        if self._summary.stopped:
            raise Stopped(self._summary.stopped)
        return [draw for group in groups[run.n_asked_alone :] for draw in group]

    async def _chunks_under_way(self) -> list[Chunk]:
        """Return the chunks under way, with batch ids looked up where they were not noted."""
        chunks = []
        for chunk in chunks_under_way(self._job.study, self._job.task):
            if not chunk.batch_id:
                find = partial(self._service.find, chunk, self._journal.known_batches())
                if (batch_id := await self._call_with_retries(find)) is None:
                    self._journal.abandoned(chunk.chunk)
                    continue
                chunk = replace(chunk, batch_id=batch_id)
                self._journal.submitted(chunk.chunk, batch_id)
            self._held[chunk.chunk] = _worst_price(chunk)
            self._budget.hold(_worst_price(chunk))
            chunks.append(chunk)
        return chunks

    async def _send_and_collect(self, open_draws: list[Question], chunks: list[Chunk]) -> None:
        """Send the chunks that fit into the budget and collect them, until all draws are sent or
        the grader is stopped. Raises OverBudget where more never will fit.
        """
        waiting = deque(group_by_prompt(open_draws, self._grader.draws_at_once))
        while True:
            while waiting and (requests := await self._next_requests(waiting)):
                chunks.append(await self._submit(requests))
            await self._collect_all(chunks)
            chunks = []
            if self._summary.stopped or not waiting:
                return
            prompt = await self._prompt_of(waiting[0])
            price = self.reservations.lowest_price(self._job.request(waiting[0], prompt))
            if not self._budget.fits(price):
                await self._budget.reserve(price)  # waits for other graders, or raises OverBudget
                self._budget.settle(price, Decimal(0))  # given back: a chunk reserves its own

    async def _prompt_of(self, draws: Draws) -> PromptText:
        """Return the prompt of these draws, rendered in another thread."""
        return (await anyio.to_thread.run_sync(self._job.prompts, [draws]))[0]

    async def _next_requests(self, waiting: deque[Draws]) -> list[_RequestToSend]:
        """Take the next chunk's requests from those waiting; none if not even one fits into the
        budget. Prompts are rendered as their chunk is built.
        """
        requests: list[_RequestToSend] = []
        total_bytes, total_price = 0, Decimal(0)
        times_seen: Counter[str] = Counter()
        while waiting and len(requests) < self._service.most_requests:
            draws = waiting[0]
            prompt = await self._prompt_of(draws)
            body = self._job.request(draws, prompt)
            total_bytes += len(json.dumps(body, ensure_ascii=False).encode()) + _LINE_OVERHEAD
            if requests and total_bytes > self._service.most_bytes:
                break
            if (price := self.reservations.price_in_batch(body, total_price, len(waiting))) is None:
                break
            facts = self._job.request_facts(draws, prompt, body)
            times_seen[facts["grade_key"]] += 1
            record = _batch_request(draws, facts, times_seen[facts["grade_key"]])
            requests.append(_RequestToSend(record, body, price))
            total_price += price
            waiting.popleft()
        return requests

    async def _submit(self, requests: Sequence[_RequestToSend]) -> Chunk:
        """Reserve the price of a chunk of requests, write it to the journal, send it, and return it
        with its batch id.
        """
        rater_id = self._job.rater_id
        bodies_by_id = [(request.record.custom_id, request.body) for request in requests]
        n_chunks = self._journal.count(rater_id)  # the same requests, repeated, are another chunk
        hashed = "\n".join([rater_id, str(n_chunks), *(custom_id for custom_id, _ in bodies_by_id)])
        worst_price = sum(request.worst_price for request in requests)
        chunk = Chunk(
            chunk=hashlib.sha256(hashed.encode()).hexdigest()[:40],
            rater_id=rater_id,
            base_url=self._grader.identity["base_url"],
            requests=tuple(request.record for request in requests),
            at_most_usd=float(worst_price) if self._tariff else None,
        )
        self._held[chunk.chunk] = _worst_price(chunk)
        self._budget.hold(_worst_price(chunk))
        await anyio.to_thread.run_sync(self._journal.intend, chunk)
        batch_id = await self._send_chunk(chunk, bodies_by_id)
        await anyio.to_thread.run_sync(self._journal.submitted, chunk.chunk, batch_id)
        self._summary.requests += len(requests)
        return replace(chunk, batch_id=batch_id)

    async def _send_chunk(self, chunk: Chunk, bodies_by_id: list[tuple[str, Facts]]) -> str:
        """Send a chunk and return its batch id; look for the batch before sending it again."""
        async for attempt in self._retrying(anyio.sleep):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    batch_id = await self._service.find(chunk, self._journal.known_batches())
                    if batch_id is not None:
                        return batch_id
                try:
                    return await self._service.submit(chunk.chunk, bodies_by_id)
                except GraderFailure as failure:
                    if not isinstance(failure, Transient):
                        self._journal.abandoned(chunk.chunk)
                        self._budget.settle(self._held.pop(chunk.chunk), Decimal(0))
                    raise
        raise AssertionError("retrying ends with a result or an error")

    async def _collect_all(self, chunks: list[Chunk]) -> None:
        """Wait until every chunk has ended, and store the grades of each as soon as it has."""
        waiting = list(chunks)
        while waiting:
            for chunk in list(waiting):
                state = await self._call_with_retries(partial(self._service.state, chunk.batch_id))
                if state.failed:
                    self._journal.abandoned(chunk.chunk)
                    self._budget.settle(self._held.pop(chunk.chunk), Decimal(0))
                    raise Stopped(f"the provider refused the batch: {state.failed}")
                if state.ended:
                    await self._collect(chunk)
                    waiting.remove(chunk)
                else:
                    fields = {"batch": chunk.batch_id, "done": state.done, "total": state.total}
                    self._rounds.progress.say(written("grade.batch", **fields))
            if waiting:
                await self._pause()

    async def _collect(self, chunk: Chunk) -> None:
        """Store the grades of an ended chunk, and note the draws that are to be asked again. If the
        study no longer accepts the rubric's text, none are, and a reply is stored without a label.
        If the results are gone, asking again may pay twice: only a run that is to cancel gives the
        chunk up, at its worst price.
        """
        results = await self._call_with_retries(partial(self._service.results, chunk.batch_id))
        if results is None:
            address = self._grader.identity["base_url"]
            gone = (
                f"{address} no longer has batch {chunk.batch_id} or its results; unless another "
                "key sent it, give it up with --batch --cancel: the next run asks, and pays, again"
            )
            if not self._rounds.cancel:
                self._summary.stopped = gone
                return
            self._summary.warnings += (gone,)
        results_by_id = {result.custom_id: result for result in results or ()}
        grades: list[GradeAttempt] = []
        to_ask_again: list[Question] = []
        for request in chunk.requests:
            result, draws = results_by_id.get(request.custom_id), self._accepted_draws(request)
            if result is None or isinstance(result.failure, Transient):
                to_ask_again += draws
            elif isinstance(result.failure, Stopped):  # nothing is stored: the next run asks
                self._summary.stopped = self._summary.stopped or str(result.failure)
            else:  # a reply, or a failure that is stored for each draw as a grade without a label
                new_grades = self._grades_of_result(chunk, request, result, draws)
                if not draws:  # not planned by this run
                    self._rounds.extend_summary(self._summary.rater_id, 0, len(new_grades))
                grades += new_grades
                to_ask_again += draws[len(new_grades) :]  # those that the reply did not bring
        n_requests = len(chunk.requests)
        are_rejected = [grade.unscored_reason.startswith(_REJECTED) for grade in grades]
        are_all_rejected = bool(grades) and all(are_rejected) and not to_ask_again
        if are_all_rejected and n_requests >= FAILURES_IN_A_ROW:
            # The grader is at fault, not the units: the next run asks again.
            why = grades[0].provenance["error"]
            self._summary.stopped = f"all {n_requests} requests of a batch were rejected: {why}"
            grades = [replace(grade, unscored_reason=_NO_REPLY) for grade in grades]
        costs = (grade.provenance.get("cost_usd", 0.0) for grade in grades)
        cost, worst_price = Decimal(str(round(math.fsum(costs), 9))), _worst_price(chunk)
        # Both services state that they do not bill requests that expired, were canceled or failed.
        replies = [results_by_id.get(request.custom_id) for request in chunk.requests]
        bodies = [reply.body for reply in replies if reply]
        lacks_usage = any(body is not None and not body.get("usage") for body in bodies)
        if worst_price > cost and (None in replies or lacks_usage):
            failed = self._job.records_of_failure(to_ask_again[:1], _NO_REPLY, {ASKED_AGAIN: True})
            held = {"held_usd": float(worst_price - cost)}  # later runs within the budget count it
            for grade in (grades or failed)[:1]:
                grades = [replace(grade, provenance=grade.provenance | held), *grades[1:]]
            cost = worst_price
        clean = self._rounds.scrubbed(grades)
        await anyio.to_thread.run_sync(self._journal.collected, chunk.chunk, chunk.batch_id, clean)
        self._budget.settle(self._held.pop(chunk.chunk), cost)
        self._rounds.count(clean, self._summary)
        if self._job.task.attacked:  # only the plan has an attack's text: others wait for theirs
            planned = [self._planned[draw] for draw in to_ask_again if draw in self._planned]
            self._rounds.extend_summary(self._summary.rater_id, 0, len(planned) - len(to_ask_again))
            to_ask_again = planned
        self._to_ask_again += to_ask_again

    def _grades_of_result(
        self, chunk: Chunk, request: BatchRequest, result: BatchResult, accepted_draws: Draws
    ) -> list[GradeAttempt]:
        """Return the grades in one line of a batch's results, one for each draw that came.
        `accepted_draws`: the request's questions, none if its rubric's text is no longer accepted.
        """
        # Questions need a rubric. If the study has lost theirs, they get any other: it is not used,
        # as the grades get no label, and `asked` gives them the name and the hash that were sent.
        rubric = self._rubrics.get(request.rubric) or next(iter(self._rubrics.values()))
        asked: Facts = {"rubric": request.rubric, "rubric_hash": request.rubric_hash}
        draws = accepted_draws or draws_of_request(request, rubric)
        facts: Facts = {
            **self._common_facts,
            "draw_keys": [key for _, key in request.draws],
            "prompt_hash": request.prompt_hash,
            "settings": request.settings,
            "asked_by": clients.constraint_of(request.settings),
            "batch_id": chunk.batch_id,
            "chunk": chunk.chunk,
            "started_at": chunk.created_at,
            "finished_at": utc_now(),
        }
        if result.failure is not None or result.body is None:
            failure = result.failure or replies.Rejected("no reply")
            facts |= {"error": str(failure), "status": failure.status}
            grades = self._job.records_of_failure(draws, unscored_reason_for(failure), facts)
            return [replace(grade, **asked) for grade in grades]
        outcomes = self._grader.read(result.body, rubric if accepted_draws else None, len(draws))
        if not accepted_draws:
            outcomes = [replace(outcome, unscored_reason="rubric_changed") for outcome in outcomes]
        facts |= money.usage_facts(outcomes[0].evidence, self._tariff)
        reply = Reply(request.settings, result.request_id, outcomes)
        usual_request = self._grader.request(PromptText(system="", user=""))  # for its limit
        reply = self.reservations.record_usage(reply, money.output_limit(usual_request))
        grades = self._job.records_of_reply(draws, reply, facts)
        return [replace(grade, **asked) for grade in grades]

    async def _call_with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that is safe to repeat, under the retry policy."""
        async for attempt in self._retrying(anyio.sleep):
            with attempt:
                return await call()
        raise AssertionError("retrying ends with a result or an error")

    async def _pause(self) -> None:
        """Sleep between two queries for a batch's state."""
        await anyio.sleep(_POLL_SECONDS * self._limits.wait_scale)


def chunks_under_way(study: Study, task: GradingTask) -> list[Chunk]:
    """Return the grader's chunks under way that are the task's to collect. An audit collects those
    of audits; words of the user's own are for one rubric, and others' replies would be misread.
    """
    chunks = BatchJournal(study.store).under_way(task.rater_id)
    chunks = [chunk for chunk in chunks if any(r.trial for r in chunk.requests) == task.attacked]
    if not any(isinstance(rubric, Reworded) for rubric in task.rubrics.values()):
        return chunks
    return [chunk for chunk in chunks if {r.rubric for r in chunk.requests} <= task.rubrics.keys()]


def _worst_price(chunk: Chunk) -> Decimal:
    """Return a chunk's worst price in US dollars; 0 if the model's prices are not known."""
    return Decimal(str(chunk.at_most_usd or 0))


def _batch_request(draws: Sequence[Question], facts: Json, number: int) -> BatchRequest:
    """Return the journal's record of a request; `number` tells units with the same text apart."""
    first, key = draws[0], facts["grade_key"]
    other_keys = zip(draws[1:], facts["draw_keys"][1:], strict=True)
    return BatchRequest(
        custom_id=key if number == 1 else f"{key}-{number}",
        rubric=first.rubric.name,
        rubric_hash=first.rubric.hash,
        unit_id=first.unit_id,
        order=first.order,
        draw=first.draw,
        prompt_hash=facts["prompt_hash"],
        settings=facts["settings"],
        more=[(draw.draw, draw_key) for draw, draw_key in other_keys],
        trial=(*first.trial, first.suite) if isinstance(first, AttackedQuestion) else (),
    )


def draws_of_request(request: BatchRequest, rubric: Rubric) -> Draws:
    """Return the questions of a request, one for each draw, with this version of its rubric."""
    prompted = (request.unit_id, rubric, request.order)
    if request.trial:  # attack, target, side, suite
        return [AttackedQuestion(*prompted, draw, *request.trial) for draw, _ in request.draws]
    return [Question(*prompted, draw) for draw, _ in request.draws]


# ---- one runner at a time -----------------------------------------------------------------------
_LOCK_NAME = ".grading.lock"


class RunLocked(InputError):  # noqa: N818  (the caller made no error)
    """Another process is already collecting these grades."""


@contextmanager
def only_runner(study: Study, shard: Shard = WHOLE) -> Iterator[None]:
    """Hold the study's lock, which the process releases however it ends. A study on a database
    server is locked there, since its runners may be on several machines. Raises RunLocked at once
    if another runner holds the lock, even for other graders. Raises InputError for a shard of a
    study that other machines cannot reach, and on Windows.
    """
    if study.store.engine.dialect.name == "postgresql":
        with _postgresql_lock(study, shard):
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
    lock_file = os.open(study.folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock_file, 32).decode("ascii", "replace").strip() or "unknown"
            raise RunLocked(
                f"another run (process {holder}) is collecting for this study; wait until it ends, "
                "or stop it: what it has collected is kept"
            ) from None
        os.ftruncate(lock_file, 0)
        os.pwrite(lock_file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock_file)


_LOCK_SPACE = 0x65766763  # "evgc"
_SHARD_BITS = 16
"""A runner's advisory lock is two numbers: `_LOCK_SPACE`, which tells it from other locks, and one
made of the number of shards and, in the last `_SHARD_BITS` bits, the shard's index."""
_KEEPALIVE = {"idle": 20, "interval": 10, "count": 3}  # seconds, seconds, lost probes
_LOCKS_IN_SPACE = sa.text(
    "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def _postgresql_lock(study: Study, shard: Shard) -> Iterator[None]:
    """Hold an advisory lock of the study's database. It belongs to a connection, so it ends with
    the process, and within a minute if the whole machine has failed.
    """
    with study.store.engine.connect().execution_options(
        isolation_level="AUTOCOMMIT", evenhand_write=False
    ) as connection:
        for name, value in _KEEPALIVE.items():
            connection.exec_driver_sql(f"SET tcp_keepalives_{name} = {value}")
        key = _LOCK_SPACE, (shard.of << _SHARD_BITS) + shard.index
        is_locked = connection.execute(sa.select(sa.func.pg_try_advisory_lock(*key))).scalar_one()
        if not is_locked and shard != WHOLE:
            raise RunLocked(f"shard {shard} is being collected by another run, which goes on")
        try:
            locks = connection.execute(_LOCKS_IN_SPACE, {"space": _LOCK_SPACE}).scalars()
            # Other shards of the same `shard.of` may go on; those of another number share units.
            shard_counts = {lock >> _SHARD_BITS for lock in locks}  # of all runs, this one included
            other_counts = shard_counts - {shard.of} if is_locked else set()
            if other_counts or not is_locked:  # not locked: another run grades the whole study
                n_shards = min(other_counts, default=1)
                parts = f" in {n_shards} shards" if n_shards > 1 else ""
                raise RunLocked(
                    f"another run is collecting for this study{parts}; wait until it ends, or stop "
                    "it: what it has collected is kept"
                )
            yield
        finally:
            if is_locked:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(*key)))


# ---- grading ------------------------------------------------------------------------------------
_DEFAULT_OPTIONS, _DEFAULT_LIMITS = GradingOptions(), RequestLimits()
_QUESTIONS_AT_ONCE = 500  # questions whose texts are read from the store together


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run."""

    graders: tuple[GraderSummary, ...]  # in the order in which they were named
    over_budget: bool = False  # it ended because the next request might have cost too much
    spent: Decimal = Decimal(0)  # US dollars, with what was spent before

    @property
    def scored(self) -> int:
        """The number of grades with a label."""
        return sum(grader.scored for grader in self.graders)

    @property
    def unscored(self) -> int:
        """The number of grades without a label."""
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
    options: GradingOptions = _DEFAULT_OPTIONS,
    limits: RequestLimits = _DEFAULT_LIMITS,
    progress: Progress | None = None,
    *,
    batch: bool = False,
    cancel: bool = False,
) -> RunSummary:
    """Collect the grades that are missing. Safe to interrupt and to run again at any time.

    With `batch` the questions go to the providers' batch services; `cancel` then cancels the
    batches under way there. A shard has its share of the budget. What is left of it is used for
    shards that no other run is collecting, as their run broke off or has not begun. A grader that
    fails for good is stopped, as the summary reports; the others go on. Raises InputError before
    any request if a grader is unknown, has no key or cannot grade a rubric, and while another run
    collects for this study.
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
        if run.summary.over_budget or run.summary.stopped:
            break
        with suppress(RunLocked), only_runner(study, other):
            run.collect(plan_grading(study, graders, replace(options, shard=other), run.scrubber))
    return run.summary


@dataclass(frozen=True, slots=True)
class Rounds:
    """A run in rounds of requests to a study's models. The caller holds `only_runner`."""

    study: Study
    scrubber: Scrubber
    limits: RequestLimits
    budget: money.Budget  # of all rounds
    progress: ProgressCounter
    batch: bool = False  # this and the next as in `grade`
    cancel: bool = False
    summaries: dict[str, GraderSummary] = field(default_factory=dict)  # by grader, of all rounds

    @classmethod
    def begin(cls, study: Study, limits: RequestLimits, progress: Progress | None = None) -> Rounds:
        """Return a run that has asked nothing yet."""
        scrubber = Scrubber.from_environment(study.config.providers)
        budget = money.Budget(limits.budget, limits.spent)
        return cls(study, scrubber, limits, budget, ProgressCounter(progress))

    def grade(
        self,
        gradings: Sequence[tuple[str, GradingOptions]],
        on_ready: Callable[[], None] = lambda: None,
    ) -> RunSummary:
        """Collect missing grades of (grader, its options); return the summary of all rounds.
        Graders run concurrently and share the limit on concurrent requests; graders beyond that
        limit follow after the others. `on_ready` is called just before each group's first request.
        """
        tasks, concurrency = plan_tasks(self.study, gradings), self.limits.concurrency
        for start in range(0, len(tasks), concurrency):
            group = tasks[start : start + concurrency]
            n_busy = max(sum(len(task.questions) > 0 for task in group), 1)
            limits = replace(self.limits, concurrency=concurrency // n_busy)
            # The copy shares this run's budget, progress and summaries.
            replace(self, limits=limits).collect(group, on_ready)
            if self.budget.exhausted:
                break
        return self.summary

    def collect(
        self,
        tasks: Sequence[GradingTask],
        on_ready: Callable[[], None] = lambda: None,
        name: str = "",
    ) -> None:
        """Ask every grader its open questions, live or by batches, and count its grades in the
        summary of its rater id, or of `name`. Call `on_ready` just before the first request. Raises
        InputError before that without a key, a baseline's cue words or, under a budget, a price.
        """
        for task in tasks:
            for rubric in task.rubrics.values():
                if isinstance(rubric, Reworded):  # with words or a prompt of the user's own
                    self.study.keep_prompt(rubric.words.hash, rubric.words.source)
        baselines: list[Callable[[], None]] = []
        runs: list[LiveRun | BatchRun] = []
        for task in tasks:
            summary = self.extend_summary(name or task.rater_id, task.already, len(task.questions))
            if not task.questions and not self.cancel:
                continue
            if task.spec.api_format == "baseline":
                rubrics = {question.rubric for question in task.questions}
                graders = {rubric.name: LexicalGrader(rubric) for rubric in rubrics}
                baselines.append(partial(self._run_baseline, task, graders, summary))
                continue
            grader, tariff = self._open_client(task.spec, task.settings, task.rater_id)
            is_batched = self.batch or chunks_under_way(self.study, task)
            run_class: type[LiveRun | BatchRun] = BatchRun if is_batched else LiveRun
            runs.append(run_class(GradeJob(self.study, grader, task), self, summary, tariff))
        on_ready()
        for grade_all in baselines:
            grade_all()
        if runs:
            run_side_by_side(runs, self.progress)

    def _run_baseline(
        self, task: GradingTask, graders: Mapping[str, LexicalGrader], summary: GraderSummary
    ) -> None:
        """Grade a baseline's open questions by counting words; `graders` are by rubric name."""
        facts = {"provider": "baseline", "tool": _TOOL, "cost_usd": 0.0}
        questions = iter(task.questions)
        while chunk := list(islice(questions, _QUESTIONS_AT_ONCE)):
            grades = []
            for question, values in zip(chunk, self.study.values_of(chunk), strict=True):
                outcome = graders[question.rubric.name].grade(values)
                grades.append(grade_of(task.rater_id, question, outcome, facts | outcome.evidence))
            self.study.store.add_grades(grades)
            self.count(grades, summary)

    def run_job(
        self, spec: GraderSpec, settings: GraderSettings, job: Job, summary: GraderSummary
    ) -> None:
        """Ask a model a job's questions. Raises InputError if a key or a price is missing."""
        job.grader, tariff = self._open_client(spec, settings)
        run_side_by_side([LiveRun(job, self, summary, tariff)], self.progress)

    def _open_client(
        self, spec: GraderSpec, settings: GraderSettings, rater_id: str = ""
    ) -> tuple[Grader, money.Tariff | None]:
        """Return a client for a model, and the model's prices, if known."""
        tariff = tariff_for(spec, self.budget, settings.service_tier, self.study.config.prices)
        no_reasoning = gave_probabilities_without_reasoning(self.study.store, rater_id)
        timeout = self.limits.timeout
        return open_grader(Access(spec, settings, self.scrubber, timeout, no_reasoning)), tariff

    def extend_summary(self, name: str, n_already: int, n_new: int) -> GraderSummary:
        """Add numbers of questions to the summary of this name, which is created if missing."""
        summary = self.summaries.setdefault(name, GraderSummary(rater_id=name))
        summary.already += n_already
        summary.planned += n_new
        self.progress.expect(n_new)
        return summary

    def scrubbed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Return the attempts with secrets removed from their provenance."""
        clean = self.scrubber.tree
        return [replace(attempt, provenance=clean(attempt.provenance)) for attempt in attempts]

    def count(self, attempts: Iterable[AnyAttempt], summary: GraderSummary) -> None:
        """Count stored attempts in a grader's summary, except those that were asked again."""
        for attempt in attempts:
            if attempt.provenance.get(ASKED_AGAIN):
                continue
            if attempt.unscored_reason:
                summary.unscored[attempt.unscored_reason] += 1
            else:
                summary.scored += 1
                has_probabilities = bool(getattr(attempt, "prob_method", ""))
                if attempt.provenance.get("method") == "logprobs" and not has_probabilities:
                    summary.without_probabilities += 1
            self.progress.add(summary.rater_id)

    @property
    def summary(self) -> RunSummary:
        """The summary of all rounds up to now."""
        return RunSummary(tuple(self.summaries.values()), self.budget.exhausted, self.budget.spent)


def plan_tasks(study: Study, gradings: Sequence[tuple[str, GradingOptions]]) -> list[GradingTask]:
    """Return one task for each grader, which may have its own options."""
    scrubber = Scrubber.from_environment(study.config.providers)
    plans = (plan_grading(study, [grader], options, scrubber) for grader, options in gradings)
    return [task for plan in plans for task in plan]


def tariff_for(
    spec: GraderSpec, budget: money.Budget, tier: str, prices: Mapping[str, ModelPrices]
) -> money.Tariff | None:
    """Return the model's prices, or None. Raises InputError if unknown under a budget."""
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
    """Raise InputError if a model cannot be asked: its key is missing, under a budget its price is
    not known, or for a `batch` its provider has no batch service.
    """
    scrubber = Scrubber.from_environment(study.config.providers)
    for spec in specs:
        if spec.api_format == "baseline":
            continue
        tariff_for(spec, money.Budget(budget), "", study.config.prices)  # for its InputError
        grader = open_grader(Access(spec, GraderSettings("text"), scrubber, TIMEOUT))
        try:
            if batch:
                grader.batches(anyio.lowlevel.checkpoint)  # for its InputError; nothing waits
        finally:
            anyio.run(grader.close)


# ---- what a run would ask and cost --------------------------------------------------------------
_MAX_PRICED = 20_000  # above this number of prompts, only evenly spaced ones are read and priced
_ANSWER_TOKENS = 20  # tokens of an answer without thinking
_REASONED_TOKENS = 200  # tokens of an answer that may give a reason first


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderForecast:
    """The forecast of one grader's part of a run, with costs in US dollars."""

    rater_id: str
    already: int  # questions that are graded
    new: int  # questions to be asked
    cost: tuple[float, float] | None = None  # least, with answers of one token, and most, if known
    expected: float | None = None  # the likely cost
    basis: str = ""  # a sentence on the assumption behind it
    sample: PromptText | None = None  # the first prompt
    warnings: tuple[str, ...] = ()

    def remaining(self, answered: int) -> GraderForecast:
        """Return the forecast after `answered` of the new requests, without the sample prompt."""
        n_new = self.new - answered
        forecast = replace(self, already=answered, new=n_new, sample=None)
        if self.cost is None and n_new:
            return forecast
        share = n_new / (self.new or 1)
        min_cost, max_cost = self.cost or (0.0, 0.0)  # free if nothing is left to ask
        expected = share * (self.expected or 0.0)
        return replace(forecast, cost=(share * min_cost, share * max_cost), expected=expected)


_MODEL_END = re.compile(r"@https?://|#")  # where a rater id's address or settings begin
_REPLY_SECONDS = 10  # assumed seconds for a reply


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run of several steps."""

    steps: Sequence[tuple[str, GraderForecast]]  # each with the kind of its requests
    work: Sequence[str]  # sentences on the annotators' work
    spent: float  # US dollars spent before
    concurrency: int
    batch: bool = False  # True if the steps named "grades" are asked in batches

    @cached_property
    def total(self) -> GraderForecast:
        """The sum of all steps; its cost is None if a price is not known."""
        parts = [part for _, part in self.steps]
        already, new = sum(part.already for part in parts), sum(part.new for part in parts)
        total = GraderForecast(rater_id="", already=already, new=new)
        costs = [part.cost for part in parts if part.cost]
        if len(costs) < len(parts):
            return total
        cost = math.fsum(low for low, _ in costs), math.fsum(high for _, high in costs)
        return replace(total, cost=cost, expected=math.fsum(part.expected or 0.0 for part in parts))

    @property
    def unpriced(self) -> dict[str, str]:
        """The models without a known price and the first of them, for a sentence; empty if none.
        Names are those under which a price is looked up, without an address.
        """
        rater_ids = [part.rater_id for _, part in self.steps if part.cost is None]
        models = [*dict.fromkeys(_MODEL_END.split(rater_id)[0] for rater_id in rater_ids)]
        return {"models": ", ".join(models), "first": models[0]} if models else {}

    @property
    def lines(self) -> list[str]:
        """Sentences on unknown prices, the time, the money spent, the work, and warnings."""
        n_live = sum(step.new for name, step in self.steps if not self.batch or name != "grades")
        minutes = math.ceil(n_live / self.concurrency * _REPLY_SECONDS / 60)
        pace = {"minutes": minutes, "concurrency": self.concurrency, "seconds": _REPLY_SECONDS}
        return [
            *([written("reproduce.price_unknown", **self.unpriced)] if self.unpriced else []),
            written("reproduce.time", **pace),
            *([written("reproduce.batch")] if self.total.new > n_live else []),
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
    max_priced: int = _MAX_PRICED,
) -> list[GraderForecast]:
    """Forecast the part of each grader: render its prompts and price them. Above `max_priced`
    prompts only evenly spaced ones are priced. Raises InputError as the run itself would.
    """
    tasks = plan_grading(study, graders, options, Scrubber.from_environment(study.config.providers))
    return [forecast_of(study, task, batch=batch, max_priced=max_priced) for task in tasks]


def forecast_of(
    study: Study, task: GradingTask, *, batch: bool = False, max_priced: int = _MAX_PRICED
) -> GraderForecast:
    """Forecast one grader's part of a run, as `forecast` does."""
    spec, new = task.spec, len(task.questions)
    forecast = GraderForecast(rater_id=task.rater_id, already=task.already, new=new)
    if spec.api_format == "baseline":
        return replace(forecast, cost=(0.0, 0.0))
    tier, prices = task.settings.service_tier, study.config.prices
    tariff = money.Tariff.find(spec, batch=batch, tier=tier, prices=prices)
    tokens_per_request, basis = _tokens_per_request(study, task)
    warnings = (*clients.warnings_about_secrets(spec), *warnings_about(spec, task.settings))
    prompts = _prompts_to_price(study, task, max_priced)
    if tariff and not tariff.study_prices:
        basis = f"{basis} {written('grade.price_table', table=tariff.source)}"
    forecast = replace(forecast, basis=basis, warnings=warnings)
    return priced_forecast(forecast, tariff, spec, task.settings, prompts, tokens_per_request)


def priced_forecast(
    forecast: GraderForecast,
    tariff: money.Tariff | None,
    spec: GraderSpec,
    settings: GraderSettings,
    prompts: Iterable[tuple[PromptText, int]],
    tokens_per_request: money.Tokens | int,
) -> GraderForecast:
    """Return a forecast with the cost of its prompts, each with a number of draws. If they are
    fewer than the forecast's new requests, the cost is scaled up. `tokens_per_request` are the
    likely tokens of a request, or of its answer alone.
    """
    min_cost = max_cost = expected = Decimal(0)
    first_prompt, n_priced = None, 0
    for prompt, n_draws in prompts:
        first_prompt = first_prompt or prompt
        n_priced += n_draws
        if tariff:
            request = clients.first_request(spec, settings, prompt)
            min_cost += n_draws * tariff.at_least(request)
            max_cost += n_draws * tariff.at_most(request)
            tokens = tokens_per_request
            if isinstance(tokens, int):
                tokens = money.Tokens(money.input_estimate(request), output=tokens)
            expected += n_draws * tariff.cost(tokens)
    if tariff is None:
        return replace(forecast, sample=first_prompt, basis="")
    basis = forecast.basis
    if n_priced < forecast.new:
        share = Decimal(forecast.new) / n_priced
        min_cost, max_cost, expected = min_cost * share, max_cost * share, expected * share
        basis = f"{basis} {written('grade.some_priced', priced=n_priced, total=forecast.new)}"
    cost = (float(min_cost), float(max_cost))
    return replace(forecast, sample=first_prompt, basis=basis, cost=cost, expected=float(expected))


def _tokens_per_request(study: Study, task: GradingTask) -> tuple[money.Tokens | int, str]:
    """Return mean tokens of earlier requests, else assumed ones, and a sentence that says which."""
    totals = study.grade_totals()
    totals = totals[(totals["rater_id"] == task.rater_id) & (totals["tokens_input"] > 0)]
    if totals.empty:
        has_own_prompt = any(isinstance(rubric, JudgedRubric) for rubric in task.rubrics.values())
        answer = _REASONED_TOKENS if task.settings.reason or has_own_prompt else _ANSWER_TOKENS
        return answer, written("grade.expected_assumed", answer=answer)
    n_requests = int(totals["attempts"].sum())
    means = totals[["tokens_input", "tokens_cached", "tokens_output"]].sum() / n_requests
    n_input, n_cached, n_output = map(round, means)
    counts = {"read": n_input, "cached": n_cached, "out": n_output}
    sentence = written("grade.expected_known", asked=n_requests, **counts)
    return money.Tokens(input=n_input, cached=n_cached, output=n_output), sentence


def _prompts_to_price(
    study: Study, task: GradingTask, max_prompts: int
) -> Iterator[tuple[PromptText, int]]:
    """Yield prompts with their numbers of draws, evenly spaced ones if over `max_prompts`."""
    step = max(1, math.ceil(len(task.questions) / task.settings.draws / max_prompts))
    spaced = islice(group_by_prompt(task.questions, max_draws=len(task.questions)), 0, None, step)
    while groups := list(islice(spaced, _QUESTIONS_AT_ONCE)):
        texts = study.values_of([draws[0] for draws in groups])
        for draws, values in zip(groups, texts, strict=True):
            yield draws[0].rubric.for_prompt(values), len(draws)


# ---- responses of models ------------------------------------------------------------------------
USUAL_WORDS = 500  # words of a response, for forecasts
_RESPONSE_TOKENS = 700  # tokens of a response, for forecasts
_PromptKey = tuple[str, str]  # (pair id, side)


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """The summary of a run that collected responses."""

    run: GraderSummary
    added: int  # responses that it added to the study: whole pairs only
    over_budget: bool
    spent: Decimal  # US dollars, by its end

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
    limits: RequestLimits = _DEFAULT_LIMITS,
    progress: Progress | None = None,
    *,
    system: str = "",
    thinking: str = "",
    effort: str = "",
) -> ResponseSummary:
    """Send every prompt to a model under test, as its users would, and store its responses.
    `subject` is written like a grader and becomes the subject's name, with the `system` prompt,
    `thinking` ("off", "adaptive" or a number of tokens) and `effort` in it: the same model asked in
    another way is another subject. A refusal is a response. A pair's two responses enter the study
    together. Safe to interrupt and to run again. Raises InputError as `grade` does.
    """
    spec = parse_spec(subject, study.config.providers)
    if spec.api_format == "baseline":
        raise InputError("a baseline writes no responses; name a model instead")
    settings = GraderSettings.for_subject(spec, effort=effort, thinking=thinking)
    subject = _subject_name(spec, settings, system)
    if scope not in ("sample", "all"):
        raise InputError(f"scope is {scope!r}; it must be sample or all")
    with only_runner(study):
        log = ResponseLog(study.store)
        prompts, answered = _study_prompts(study, scope), log.answered(subject)
        open_prompts = {
            key: PromptText(system=system, user=text)
            for key, text in prompts.items()
            if key not in answered
        }
        run = Rounds.begin(study, limits, progress)
        summary = run.extend_summary(subject, len(prompts) - len(open_prompts), len(open_prompts))

        def make_record(key: _PromptKey, facts: Facts, reply: Outcome | str) -> ResponseAttempt:
            pair, side = key
            record = partial(ResponseAttempt, subject=subject, pair_id=pair, side=side)
            if isinstance(reply, str):
                return record(unscored_reason=reply, provenance=facts)
            if not (reason := reply.unscored_reason):
                return record(response=reply.raw, provenance=facts)
            return record(unscored_reason=reason, provenance=facts | {"raw": reply.raw})

        facts = {"system_prompt": system} if system else {}
        job = Job(subject, open_prompts, make_record, log.append, facts)
        try:
            if open_prompts:
                run.run_job(spec, settings, job, summary)
        finally:
            added = log.add_whole_pairs(subject)
    return ResponseSummary(summary, added, run.summary.over_budget, run.summary.spent)


def forecast_responses(
    study: Study, subject: str, scope: str = "sample", answered: Collection[_PromptKey] = ()
) -> GraderForecast:
    """Forecast a model's responses to all prompts but those `answered`, without network or key,
    with an assumed length. Raises InputError if the model is not valid.
    """
    spec = parse_spec(subject, study.config.providers)
    settings = GraderSettings.for_subject(spec)
    all_prompts = _study_prompts(study, scope)
    new = [(PromptText("", text), 1) for key, text in all_prompts.items() if key not in answered]
    forecast = GraderForecast(
        rater_id=spec.text,
        already=0,
        new=len(new),
        basis=written("grade.expected_response", tokens=_RESPONSE_TOKENS),
        warnings=(*clients.warnings_about_secrets(spec), *warnings_about(spec, settings)),
    )
    tariff = money.Tariff.find(spec, prices=study.config.prices)
    forecast = priced_forecast(forecast, tariff, spec, settings, new, _RESPONSE_TOKENS)
    forecast = forecast.remaining(0)  # without the sample, and free if no response is missing
    return replace(forecast, already=len(all_prompts) - len(new))


def _subject_name(spec: GraderSpec, settings: GraderSettings, system: str) -> str:
    """Return a subject's name: the model, and the options with which it was asked, if any.

    >>> _subject_name(parse_spec("anthropic:m"), GraderSettings("text", effort="low"), "Be brief.")
    'anthropic:m#system-213c22ed#effort-low'
    """
    options = {
        "system": hashlib.sha256(system.encode()).hexdigest()[:8] if system else "",
        "thinking": settings.thinking,
        "effort": settings.effort,
    }
    return "#".join([spec.text, *(f"{name}-{value}" for name, value in options.items() if value)])


def _study_prompts(study: Study, scope: str) -> dict[_PromptKey, str]:
    """Return the prompts of all pairs, or of the sample's, by pair id and side. Raises InputError
    for an image or a conversation, which would not reach a model as its users send it.
    """
    pairs = study.store.pairs()
    if scope == "sample":
        pairs = pairs[pairs["sample_position"].notna()].sort_values("sample_position")
    prompts = {
        (row["pair_id"], side): row[f"prompt_{side}"]
        for row in pairs.to_dict("records")
        for side in sides_of(pairs)
    }
    for (pair, _), text in prompts.items():
        if image_of(text) or is_conversation(text):
            raise InputError(
                f"the prompt of {pair!r} is an image or a conversation, and only texts are sent; "
                "import responses to it with `evenhand import DIR FILE --kind responses`"
            )
    return prompts


# ---- proposals ----------------------------------------------------------------------------------
_PROPOSAL_TOKENS = 800  # tokens of a usual proposal


def propose(
    rounds: Rounds, rubric: str, proposer: str, prompt: PromptText, about: Mapping[str, Any]
) -> ProposalAttempt | None:
    """Ask a model for a proposal, within the budget of these rounds, and return its answer; None if
    the rounds ended early, as their summary reports. `about` (see `ProposalAttempt`) is stored with
    the answer. A request that was answered before is not sent again. Raises InputError if the model
    is not known, writes nothing or has no key, or if its price is not known under a budget.
    """
    study = rounds.study
    spec, settings = parse_proposer(study, proposer)
    stored = stored_proposal(study, rubric, proposer, prompt)
    name = written("improve.proposer", model=spec.text)
    summary = rounds.extend_summary(name, int(stored is not None), int(stored is None))
    if stored:
        return stored

    def make_record(request: str, facts: dict[str, Any], reply: Outcome | str) -> ProposalAttempt:
        outcome = Outcome(unscored_reason=reply) if isinstance(reply, str) else reply
        return ProposalAttempt(
            rubric=rubric,
            proposer=spec.text,
            request=request,
            system=prompt.system,
            user=prompt.user,
            about=about,
            reply=outcome.raw,
            unscored_reason=outcome.unscored_reason,
            provenance=facts,
        )

    store = partial(note_proposals, study.store)
    job = Job(spec.text, {_request_hash(spec, prompt): prompt}, make_record, store, {})
    rounds.run_job(spec, settings, job, summary)
    return stored_proposal(study, rubric, proposer, prompt)


def stored_proposal(
    study: Study, rubric: str, proposer: str, prompt: PromptText
) -> ProposalAttempt | None:
    """Return a model's stored answer to this request, or None."""
    spec, _ = parse_proposer(study, proposer)
    return proposals_of(study.store, rubric).get(_request_hash(spec, prompt))


def forecast_proposals(
    study: Study, rubric: str, proposer: str, prompts: Sequence[PromptText]
) -> GraderForecast:
    """Forecast requests for proposals. Raises InputError if the model is not valid."""
    spec, settings = parse_proposer(study, proposer)
    stored = proposals_of(study.store, rubric)
    new = [(prompt, 1) for prompt in prompts if _request_hash(spec, prompt) not in stored]
    forecast = GraderForecast(
        rater_id=written("improve.proposer", model=spec.text),
        already=len(prompts) - len(new),
        new=len(new),
        basis=written("grade.expected_assumed", answer=_PROPOSAL_TOKENS),
    )
    tariff = money.Tariff.find(spec, prices=study.config.prices)
    return priced_forecast(forecast, tariff, spec, settings, new, _PROPOSAL_TOKENS)


def parse_proposer(study: Study, proposer: str) -> tuple[GraderSpec, GraderSettings]:
    """Return the model and settings for proposals. Raises InputError if the model is not valid."""
    spec = parse_spec(proposer, study.config.providers)
    if spec.api_format == "baseline":
        raise InputError(written("improve.writes_nothing", proposer=spec.text))
    return spec, GraderSettings.for_subject(spec)


def _request_hash(spec: GraderSpec, prompt: PromptText) -> str:
    """Return the key of a request: 16 hexadecimal digits of SHA-256 over the model and prompt."""
    text = json.dumps([spec.text, prompt.system, prompt.user], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
