"""What all graders of a run share, and how each one's part of it goes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from evenhand.graders.failures import ATTEMPTS, GraderFailure
from evenhand.graders.replies.outcome import ASKED_AGAIN
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders.money import Budget
    from evenhand.graders.options import RequestLimits
    from evenhand.graders.scrub import Scrubber
    from evenhand.study.store.grades import GradeAttempt
    from evenhand.study.store.logs.improvements import ProposalAttempt
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


def _lacks_probabilities(attempt: AnyAttempt) -> bool:
    asked_for = attempt.provenance.get("method") == "logprobs"
    return asked_for and not getattr(attempt, "prob_method", "")


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that all graders of a run share."""

    scrubber: Scrubber
    limits: RequestLimits
    budget: Budget
    progress: ProgressCounter

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
                to.without_probabilities += _lacks_probabilities(attempt)
            self.progress.add(to.rater_id)
