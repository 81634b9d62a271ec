"""Grading a study: plan what is missing, ask, keep every grade, say how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.graders.choice import BOTH_ORDERS, Choice, GraderPlan, plan_grading
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.running.locking import Elsewhere, only_runner
from evenhand.graders.running.run import (
    TIMEOUT,
    GraderSummary,
    Pace,
    Progress,
    ProgressCounter,
    RunContext,
)
from evenhand.graders.scrub import Scrubber
from evenhand.graders.sharding import WHOLE, Shard
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import JudgedRubric
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders.clients.grader import Grader
    from evenhand.graders.money import Budget, Tariff
    from evenhand.graders.running.batch import BatchRun
    from evenhand.graders.running.live import LiveRun
    from evenhand.graders.running.offline import OfflineRun
    from evenhand.rubrics import JudgePrompt, Rubric
    from evenhand.study import Study
    from evenhand.study.settings.providers import ModelPrices


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run, grader by grader, in the order in which they were named.

    `over_budget` is True if it ended because the next request might have cost more than was left.
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
        """The reasons of the graders that were stopped early, one sentence each."""
        return tuple(
            written("grade.stopped", grader=each.rater_id, why=each.stopped)
            for each in self.graders
            if each.stopped
        )


def grade(
    study: Study,
    grader_specs: Sequence[str],
    rubrics: Sequence[str] | None = None,
    scope: str = "sample",
    concurrency: int = 32,
    progress: Progress | None = None,
    *,
    orders: Sequence[str] = BOTH_ORDERS,
    draws: int = 1,
    method: str = "",
    max_tokens: int = 0,
    effort: str = "",
    service_tier: str = "",
    temperature: float | None = None,
    seed: int | None = None,
    retry_unscored: bool = False,
    batch: bool = False,
    cancel: bool = False,
    budget: float | None = None,
    text: Rubric | None = None,
    prompt: JudgePrompt | None = None,
    shard: Shard = WHOLE,
    timeout: float = TIMEOUT,
    wait_scale: float = 1.0,
) -> RunSummary:
    """Collect the grades that are missing. Safe to interrupt and to run again at any time.

    `rubrics` to `retry_unscored`, `text` and `prompt` are those of `choice.Choice`. With `batch`
    the questions go to the providers' batch services; `cancel` then ends what is under way there.
    `budget` is the most that this run may spend, in US dollars. `timeout` is in seconds for one
    request; `wait_scale` multiplies the waits. A `shard` is asked with its share of the budget, and
    what is left of that share goes to shards that no other run is collecting: those whose run broke
    off or has not begun. Raises InputError, with nothing asked, where a grader is unknown, has no
    key or cannot grade a rubric, and while another run collects for this study. A grader that fails
    for good is stopped, and the summary says so; the others go on.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}; it must be at least 1")
    if not timeout > 0:
        raise InputError(f"timeout is {timeout}; it must be above 0")
    pace = Pace(concurrency=concurrency, timeout=timeout, wait_scale=wait_scale)
    scrubber = Scrubber.from_environment(study.config.providers)
    choice = Choice(
        rubrics=rubrics,
        scope=scope,
        orders=orders,
        draws=draws,
        method=method,
        max_tokens=max_tokens,
        effort=effort,
        service_tier=service_tier,
        temperature=temperature,
        seed=seed,
        retry_unscored=retry_unscored,
        text=text,
        prompt=prompt,
        shard=shard,
    )
    if batch and shard != WHOLE:
        raise InputError("a batch is worked on by the provider; leave --shard or --batch out")
    share = None if budget is None else budget / shard.of
    context = new_context(scrubber, pace, share, 0, progress)
    summaries: dict[str, GraderSummary] = {}
    with only_runner(study, shard):
        plans = plan_grading(study, grader_specs, choice, scrubber)
        _collect(study, plans, context, summaries, batch=batch, cancel=cancel)
    for other in shard.others():
        if context.budget.exhausted or any(each.stopped for each in summaries.values()):
            break
        with suppress(Elsewhere), only_runner(study, other):
            plans = plan_grading(study, grader_specs, replace(choice, shard=other), scrubber)
            _collect(study, plans, context, summaries)
    return RunSummary(tuple(summaries.values()), context.budget.exhausted)


def _collect(
    study: Study,
    plans: Sequence[GraderPlan],
    context: RunContext,
    summaries: dict[str, GraderSummary],
    *,
    batch: bool = False,
    cancel: bool = False,
) -> None:
    """Carry out plans, and add their results to the graders' summaries."""
    for plan in plans:
        asked = plan.questions
        summary = summaries.setdefault(
            asked.rater_id, GraderSummary(rater_id=asked.rater_id, already=0, planned=0)
        )
        summary.already += asked.already
        summary.planned += len(asked)
        context.progress.expect(len(asked))
    own = [summaries[plan.questions.rater_id] for plan in plans]
    carry_out(study, plans, context, own, batch=batch, cancel=cancel)


def new_context(
    scrubber: Scrubber, pace: Pace, budget: float | None, total: int, progress: Progress | None
) -> RunContext:
    """Return the context that a run's graders share: a counter of `total` questions, and a budget
    of at most `budget` US dollars.
    """
    from evenhand.graders.money import Budget

    return RunContext(scrubber, pace, Budget(budget), ProgressCounter(total, progress))


def carry_out(
    study: Study,
    plans: Sequence[GraderPlan],
    context: RunContext,
    summaries: Sequence[GraderSummary],
    *,
    batch: bool = False,
    cancel: bool = False,
) -> None:
    """Ask every grader its open questions; each one's summary says how it went."""
    for plan in plans:
        for rubric in plan.questions.rubrics.values():
            if isinstance(rubric, JudgedRubric):
                study.keep_prompt(rubric.prompt.hash, rubric.prompt.source)
    _carry_out(
        [
            _part(study, plan, context, summary, batch=batch, cancel=cancel)
            for plan, summary in zip(plans, summaries, strict=True)
            if len(plan.questions) or cancel
        ],
        context.progress,
    )


def _part(
    study: Study,
    plan: GraderPlan,
    context: RunContext,
    summary: GraderSummary,
    *,
    batch: bool,
    cancel: bool,
) -> OfflineRun | LiveRun | BatchRun:
    """Return one grader's part of the run. Raises InputError where its key, a rubric's cues or,
    under a budget, its price is missing.
    """
    if plan.spec.speaks == "baseline":
        from evenhand.graders.running.offline import OfflineRun

        return OfflineRun(study, plan.questions, context, summary)
    from evenhand.graders.money import Tariff
    from evenhand.graders.running.jobs import GradeJob, live_job
    from evenhand.graders.running.live import LiveRun
    from evenhand.study.store.logs.replies import asked_by, gave_without_reasoning

    tier, prices = plan.settings.service_tier, study.config.prices
    tariff = priced(plan.spec, context.budget, tier, prices)
    known = gave_without_reasoning(study.store, plan.questions.rater_id)
    timeout = context.pace.timeout
    way = asked_by(study.store, plan.questions.rater_id)
    scrubber = context.scrubber
    grader = open_grader(plan.spec, plan.settings, scrubber, timeout, no_reasoning=known, way=way)
    job = GradeJob(study, grader, plan.questions)
    if not batch:
        return LiveRun(live_job(job), context, summary, tariff)
    from evenhand.graders.running.batch import BatchRun
    from evenhand.study.store.logs.batches import BatchJournal

    journal = BatchJournal(study.store)
    in_batch = Tariff.find(plan.spec, batch=True, tier=tier, prices=prices)
    return BatchRun(job, journal, context, summary, in_batch, live_tariff=tariff, cancel=cancel)


def priced(
    spec: GraderSpec, budget: Budget, tier: str, prices: Mapping[str, ModelPrices]
) -> Tariff | None:
    """Return the model's prices, or None where they are not known. Raises InputError where they are
    not known and there is a budget.
    """
    from evenhand.graders.money import Tariff

    tariff = Tariff.find(spec, tier=tier, prices=prices)
    if tariff is None and budget.limit is not None:
        raise InputError(
            f"the price of {spec.text} is not known, so it cannot be kept to a budget; name it in "
            "[prices] of study.toml, or run without --budget"
        )
    return tariff


def open_grader(
    spec: GraderSpec,
    settings: GraderSettings,
    scrubber: Scrubber,
    timeout: float,
    *,
    no_reasoning: bool = False,
    way: str = "",
) -> Grader:
    """Return a client for one model. Raises InputError where its key is missing. `no_reasoning`
    says that the model is known to give probabilities without reasoning; `way` is how it took
    labels before (see `clients.constraint`).
    """
    if spec.speaks == "messages":
        from evenhand.graders.clients.claude import ClaudeGrader

        return ClaudeGrader(spec, settings, scrubber, timeout=timeout, way=way)
    if spec.speaks == "chat":
        from evenhand.graders.clients.openai_chat import OpenAIGrader

        return OpenAIGrader(
            spec, settings, scrubber, timeout=timeout, no_reasoning=no_reasoning, way=way
        )
    from evenhand.graders.clients.other_form import OtherGrader

    return OtherGrader(spec, settings, scrubber, timeout=timeout)


def _carry_out(parts: Sequence[OfflineRun | LiveRun | BatchRun], progress: ProgressCounter) -> None:
    """Run offline parts first, then all graders behind a network side by side."""
    from evenhand.graders.running.live import run_all
    from evenhand.graders.running.offline import OfflineRun

    for part in parts:
        if isinstance(part, OfflineRun):
            part.run()
    if remote := [part for part in parts if not isinstance(part, OfflineRun)]:
        run_all(remote, progress)
