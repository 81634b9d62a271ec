"""What all graders of a run share, and how each one's part of it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from evenhand.graders.money import Budget
    from evenhand.graders.scrub import Scrubber
    from evenhand.study.store.grades import GradeAttempt
    from evenhand.study.store.response_log import ResponseAttempt

    Attempt = TypeVar("Attempt", GradeAttempt, ResponseAttempt)

Progress = Callable[[int, int, str], None]
"""Called with (grades of this run so far, questions of this run, the grader's rater_id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many requests at once, how many seconds one may take, and a factor on all waits."""

    concurrency: int = 32
    timeout: float = 600.0
    wait_scale: float = 1.0


class ProgressCounter:
    """Counts what a run has collected and tells whoever watches."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, label: str) -> None:
        self._done += 1
        self.say(label)

    def say(self, label: str) -> None:
        if self._progress:
            self._progress(self._done, self._total, label)


@dataclass(slots=True, kw_only=True)
class GraderSummary:
    """How one grader's part of a run goes, filled in as it does. `stopped` says why, where it was
    stopped early.
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


def _lacks_probabilities(attempt: GradeAttempt | ResponseAttempt) -> bool:
    asked_for = attempt.provenance.get("method") == "logprobs"
    return asked_for and not getattr(attempt, "prob_method", "")


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all graders of a run share."""

    scrubber: Scrubber
    pace: Pace
    budget: Budget
    progress: ProgressCounter

    def scrubbed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The same attempts, no secret in what they say of how they came about."""
        return [replace(each, provenance=self.scrubber.tree(each.provenance)) for each in attempts]

    def count(self, attempts: Iterable[GradeAttempt | ResponseAttempt], to: GraderSummary) -> None:
        """Count to a grader what is on disk."""
        for attempt in attempts:
            if attempt.unscored_reason:
                to.unscored[attempt.unscored_reason] += 1
            else:
                to.scored += 1
                to.without_probabilities += _lacks_probabilities(attempt)
            self.progress.add(to.rater_id)
