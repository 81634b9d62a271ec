"""What all graders of a run share, how each one's part of it goes, and how much its budget sets
aside for a request, from what replies have really cost.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.graders.clients.grader import Reply
from evenhand.graders.failures import ATTEMPTS, GraderFailure
from evenhand.graders.money import LIMIT_NAMES, Budget, Tariff, Terms, Tokens, output_limit
from evenhand.graders.replies import ASKED_AGAIN
from evenhand.study.store.grades import CUT_SHORT
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders.money import Budget
    from evenhand.graders.options import RequestLimits
    from evenhand.graders.scrub import Scrubber
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
