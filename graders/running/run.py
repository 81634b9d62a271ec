"""What all graders of a run share, how each one's part of it goes, how much its budget sets aside
for a request, from what replies have really cost, and what it collects: the questions, how each is
put, and what is kept of the replies.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.graders.clients.grader import Ask, BeforeSending, Grader, Identity, Reply, way_of
from evenhand.graders.failures import ATTEMPTS, GraderFailure
from evenhand.graders.money import LIMIT_NAMES, Budget, Tariff, Terms, Tokens, output_limit
from evenhand.graders.options import OpenQuestions, RequestLimits
from evenhand.graders.replies import ASKED_AGAIN, REPEATED, Outcome, Replies, as_draw
from evenhand.graders.scrub import Scrubber, storable
from evenhand.rubrics import PromptText, Reworded
from evenhand.rubrics.rendering import PROMPT_VERSION
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.store.grades import CUT_SHORT, AttackedGrade, GradeAttempt
from evenhand.study.store.logs.replies import known_replies
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders.money import Budget
    from evenhand.graders.options import RequestLimits
    from evenhand.graders.scrub import Scrubber
    from evenhand.study import Study
    from evenhand.study.store.grades import GradeAttempt
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

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress
        self._moved = time.monotonic()
        self._wait: _Wait | None = None

    def expect(self, more: int) -> None:
        self._total += more

    def add(self, label: str) -> None:
        self._done += 1
        self._wait = None
        self.say(label)

    def say(self, label: str) -> None:
        self._moved = time.monotonic()
        self._tell(label)

    def waits(self, rater_id: str, failure: GraderFailure, attempt: int, seconds: float) -> None:
        """Note that a request failed and will be tried again in this many seconds."""
        self._wait = _Wait(rater_id, failure, attempt + 1, time.monotonic() + seconds)

    async def watch(self) -> None:
        """Report what the run waits for, until cancelled."""
        import anyio

        while self._progress:
            await anyio.sleep(min(PATIENCE, 1.0))
            idle = time.monotonic() - self._moved
            if idle >= PATIENCE:
                silence = written("grade.waits_for_reply", seconds=round(idle))
                self._tell(self._wait.sentence() if self._wait else silence)

    def _tell(self, label: str) -> None:
        if self._progress:
            self._progress(self._done, self._total, label)


@dataclass(frozen=True, slots=True)
class _Wait:
    """A failed request that will be tried again."""

    rater_id: str
    failure: GraderFailure
    attempt: int
    next_at: float

    def sentence(self) -> str:
        left = self.next_at - time.monotonic()
        status = self.failure.status
        return written(
            "grade.waits_to_retry" if left > 0 else "grade.tries_again",
            grader=self.rater_id,
            what=written("grade.no_answer") if status is None else status,
            words=str(self.failure)[:MOST_WORDS],
            attempt=self.attempt,
            attempts=ATTEMPTS,
            seconds=max(math.ceil(left), 0),
        )


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


def origin(identity: Identity, model: str) -> dict[str, Any]:
    """Return the facts about the model asked and the tool that asks, for provenance."""
    return {
        **asdict(identity),
        "tool": tool_version(),
        "requested_model": model,
        "prompt_version": PROMPT_VERSION,
    }


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
