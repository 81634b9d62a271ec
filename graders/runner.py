"""Grading a study: plan what is missing, ask, keep every grade, say how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.graders.locking import only_runner
from evenhand.graders.plan import Work
from evenhand.graders.planning import Choice, GraderPlan, plan_grading
from evenhand.graders.scrub import Scrubber
from evenhand.graders.settings import Settings
from evenhand.graders.spec import GraderSpec

if TYPE_CHECKING:
    from evenhand.graders.batch import BatchRun
    from evenhand.graders.jobs import GradeJob
    from evenhand.graders.live import LiveRun, Pace
    from evenhand.graders.money import Purse, Tariff
    from evenhand.graders.offline import OfflineRun
    from evenhand.graders.outcome import Grader
    from evenhand.study import Study

    Part = OfflineRun | LiveRun | BatchRun

__all__ = ["GraderSummary", "Progress", "RunSummary", "grade", "open_grader", "priced"]

Progress = Callable[[int, int, str], None]
"""Called with (grades of this run so far, questions of this run, the grader's rater_id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderSummary:
    """How one grader's part of a run went. `stopped` says why, where it was stopped early."""

    rater_id: str
    already: int
    planned: int
    scored: int = 0
    unscored: Mapping[str, int] = field(default_factory=dict)
    requests: int = 0
    stopped: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def unasked(self) -> int:
        return self.planned - self.scored - sum(self.unscored.values())


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went, grader by grader, in the order in which they were named.

    `over_budget`: it ended because the next request might have cost more than was left.
    """

    graders: tuple[GraderSummary, ...]
    over_budget: bool = False

    @property
    def scored(self) -> int:
        return sum(grader.scored for grader in self.graders)

    @property
    def unscored(self) -> int:
        return sum(sum(grader.unscored.values()) for grader in self.graders)

    @property
    def stopped(self) -> tuple[str, ...]:
        """One sentence for every grader that was stopped early."""
        return tuple(f"{g.rater_id} was stopped: {g.stopped}" for g in self.graders if g.stopped)


def grade(
    study: Study,
    grader_specs: Sequence[str],
    rubrics: Sequence[str] | None = None,
    scope: str = "sample",
    concurrency: int = 32,
    progress: Progress | None = None,
    *,
    orders: Sequence[str] = ("ab",),
    draws: int = 1,
    method: str = "",
    retry_unscored: bool = False,
    batch: bool = False,
    cancel: bool = False,
    budget: float | None = None,
    timeout: float = 600.0,
    wait_scale: float = 1.0,
) -> RunSummary:
    """Collect the grades that are missing. Safe to interrupt and to run again at any time.

    `rubrics` to `retry_unscored` are those of `planning.Choice`. With `batch` the questions go to
    the providers' batch services; `cancel` then ends what is under way there. `budget` is the most
    that this run may spend, in US dollars. `timeout` is in seconds for one request; `wait_scale`
    multiplies the waits. Raises InputError, with nothing asked, where a grader is unknown, has no
    key or cannot grade a rubric, and while another run collects for this study. A grader that fails
    for good is stopped, and the summary says so; the others go on.
    """
    from evenhand.graders.live import Pace
    from evenhand.graders.money import Purse

    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}; it must be at least 1")
    pace = Pace(concurrency=concurrency, timeout=timeout, wait_scale=wait_scale)
    scrubber = Scrubber.from_environment()
    choice = Choice(
        rubrics=rubrics,
        scope=scope,
        orders=orders,
        draws=draws,
        method=method,
        retry_unscored=retry_unscored,
    )
    with only_runner(study.folder):
        plans = plan_grading(study, grader_specs, choice, scrubber)
        counter = _Counter(sum(len(plan.work) for plan in plans), progress)
        run = _Run(study, scrubber, pace, counter, Purse(budget), batch, cancel)
        parts = {plan.work.rater_id: run.part(plan) for plan in plans if len(plan.work) or cancel}
        _carry_out(list(parts.values()))
    summaries = tuple(_summary(plan.work, parts.get(plan.work.rater_id)) for plan in plans)
    return RunSummary(summaries, run.purse.exhausted)


class _Counter:
    """Counts the run's grades and reports them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, rater_id: str, count: int = 1) -> None:
        self._done += count
        self.say(rater_id)

    def say(self, label: str) -> None:
        if self._progress:
            self._progress(self._done, self._total, label)


@dataclass(frozen=True, slots=True)
class _Run:
    """What all graders of a run share."""

    study: Study
    scrubber: Scrubber
    pace: Pace
    counter: _Counter
    purse: Purse
    batch: bool
    cancel: bool

    def part(self, plan: GraderPlan) -> Part:
        """One grader's part of the run, its key, its price and its rubrics checked."""
        if plan.spec.provider == "baseline":
            from evenhand.graders.offline import OfflineRun

            return OfflineRun(self.study, plan.work, self.counter.add)
        from evenhand.graders.jobs import GradeJob
        from evenhand.graders.live import LiveRun

        tariff = priced(plan.spec, self.purse)
        grader = open_grader(plan.spec, plan.settings, self.scrubber, self.pace.timeout)
        job = GradeJob(self.study, grader, plan.work)
        if self.batch:
            return self._batch(job, plan.spec, tariff)
        return LiveRun(
            job, self.scrubber, self.pace, self.counter.add, purse=self.purse, tariff=tariff
        )

    def _batch(self, job: GradeJob, spec: GraderSpec, live: Tariff | None) -> BatchRun:
        from evenhand.graders.batch import BatchRun
        from evenhand.graders.money import Tariff
        from evenhand.study.store.batches import BatchLedger

        return BatchRun(
            job,
            BatchLedger(self.study.store),
            self.scrubber,
            self.pace,
            self.counter.add,
            self.counter.say,
            purse=self.purse,
            tariff=Tariff.find(spec, batch=True),
            live_tariff=live,
            cancel=self.cancel,
        )


def priced(spec: GraderSpec, purse: Purse) -> Tariff | None:
    """The model's prices. Raises InputError under a budget where they are not known."""
    from evenhand.graders.money import Tariff

    tariff = Tariff.find(spec)
    if tariff is None and purse.limit is not None:
        raise InputError(
            f"the price of {spec.text} is not known, so it cannot be kept to a budget; run it "
            "without --budget"
        )
    return tariff


def open_grader(spec: GraderSpec, settings: Settings, scrubber: Scrubber, timeout: float) -> Grader:
    """A client for one model. Raises InputError where its key is missing."""
    if spec.provider == "anthropic":
        from evenhand.graders.claude import ClaudeGrader

        return ClaudeGrader(spec, settings, scrubber, timeout=timeout)
    from evenhand.graders.openai_chat import OpenAIGrader

    return OpenAIGrader(spec, settings, scrubber, timeout=timeout)


def _carry_out(parts: Sequence[Part]) -> None:
    """Offline parts first, then all graders behind a network side by side."""
    from evenhand.graders.live import run_all
    from evenhand.graders.offline import OfflineRun

    for part in parts:
        if isinstance(part, OfflineRun):
            part.run()
    if remote := [part for part in parts if not isinstance(part, OfflineRun)]:
        run_all(remote)


def _summary(work: Work, part: Part | None) -> GraderSummary:
    if part is None:
        return GraderSummary(rater_id=work.rater_id, already=work.already, planned=0)
    return GraderSummary(
        rater_id=work.rater_id,
        already=work.already,
        planned=len(work),
        scored=part.scored,
        unscored=dict(part.unscored),
        requests=part.requests,
        stopped=part.stopped,
        warnings=tuple(part.warnings),
    )
