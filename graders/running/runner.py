"""Grading a study: plan what is missing, ask, keep every grade, say how it went; or say, without
network or key, what would be asked and what it would cost. A study, or a part of it, has one
runner: two at once would ask, and pay for, the same twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import groupby, islice
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.graders.baselines import LexicalGrader
from evenhand.graders.clients import Access, Grader, told_by_study
from evenhand.graders.money import Budget, Tariff, Tokens, input_estimate, price_table_date
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
from evenhand.graders.providers import GraderSpec
from evenhand.graders.running import (
    BatchRun,
    GradeJob,
    GraderSummary,
    Job,
    LiveRun,
    Progress,
    ProgressCounter,
    RunContext,
    grade_of,
    run_all,
    tool_version,
)
from evenhand.graders.scrub import Scrubber
from evenhand.rubrics import JudgedRubric, PromptText, Reworded
from evenhand.study.store.logs.replies import BatchJournal, asked_by, gave_without_reasoning
from evenhand.study.store.store import grade_totals
from evenhand.study.tables.files import FILE
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study
    from evenhand.study.settings.study_toml import ModelPrices

# ---- one runner at a time -----------------------------------------------------------------------
_FILE = ".grading.lock"


class Elsewhere(InputError):  # noqa: N818  (the caller made no error)
    """Another process is already collecting these grades."""


@contextmanager
def only_runner(study: Study, shard: Shard = WHOLE) -> Iterator[None]:
    """Hold the study's lock. It ends with the process, however that ends.

    A study on a database server has its lock there, since its runners may be on several machines.
    Raises Elsewhere at once where another runner holds it, even for other graders, and
    InputError for a part of a study that other machines cannot reach, or on Windows.
    """
    if study.store.engine.dialect.name == "postgresql":
        with _on_server(study, shard):
            yield
    elif shard != WHOLE:
        raise InputError(
            "--shard is for machines that share a study on PostgreSQL, and this one is in a file; "
            "move it with `evenhand store copy`, or leave --shard out"
        )
    else:
        with _in_folder(study.folder):
            yield


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InputError(written("lean.no_locks")) from None
    descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise Elsewhere(
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
        own = _SPACE, (shard.of << 16) + shard.index
        is_mine = connection.execute(sa.select(sa.func.pg_try_advisory_lock(*own))).scalar_one()
        if not is_mine and shard != WHOLE:
            raise Elsewhere(f"shard {shard} is being collected by another run, which goes on")
        try:
            held = connection.execute(_HELD, {"space": _SPACE}).scalars() if is_mine else ()
            others = [number >> 16 for number in held if number >> 16 != shard.of]
            if others or not is_mine:
                parts = f" in {others[0]} shards" if others and others[0] > 1 else ""
                raise Elsewhere(
                    f"another run is collecting for this study{parts}; wait until it ends, or stop "
                    "it: what it has collected is kept"
                )
            yield
        finally:
            if is_mine:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(*own)))


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
            written("grade.stopped", grader=each.rater_id, why=each.stopped)
            for each in self.graders
            if each.stopped
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
        with suppress(Elsewhere), only_runner(study, other):
            run.collect(plan_grading(study, graders, replace(options, shard=other), run.scrubber))
    return run.so_far


@dataclass(frozen=True, slots=True)
class Rounds(RunContext):
    """A run: rounds of questions to a study's models, within one budget, under the study's lock."""

    summaries: dict[str, GraderSummary] = field(default_factory=dict)

    @classmethod
    def begin(cls, study: Study, limits: RequestLimits, progress: Progress | None = None) -> Rounds:
        """Return a run that has asked nothing yet."""
        scrubber = Scrubber.from_environment(study.config.providers)
        budget = Budget(limits.budget, limits.spent)
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
        for rubric in (each for task in tasks for each in task.rubrics.values()):
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
                in_batch = Tariff.find(task.spec, batch=True, tier=tier, prices=prices)
                journal = BatchJournal(self.study.store)
                part = BatchRun(job, journal, self, summary, in_batch, live_tariff=tariff)
                remote.append(part)
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
        facts = {"provider": "baseline", "tool": tool_version(), "cost_usd": 0.0}
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
    ) -> tuple[Grader, Tariff | None]:
        """Return a client for a model, asked as this rater was before, and the model's prices."""
        store = self.study.store
        tariff = priced(spec, self.budget, settings.service_tier, self.study.config.prices)
        access = Access(
            spec,
            settings,
            self.scrubber,
            self.limits.timeout,
            way=asked_by(store, rater_id),
            no_reasoning=gave_without_reasoning(store, rater_id),
        )
        return open_grader(access), tariff

    def part(self, name: str, already: int, new: int) -> GraderSummary:
        """Return the summary of what else is asked under this name, with so many more questions."""
        summary = GraderSummary(rater_id=name, already=0, planned=0)
        summary = self.summaries.setdefault(name, summary)
        summary.already += already
        summary.planned += new
        self.progress.expect(new)
        return summary

    @property
    def so_far(self) -> RunSummary:
        """The summary of all that was asked so far."""
        budget = self.budget
        return RunSummary(tuple(self.summaries.values()), budget.exhausted, budget.spent)


@contextmanager
def grading_in_rounds(
    study: Study, limits: RequestLimits = _LIMITS, progress: Progress | None = None
) -> Iterator[Rounds]:
    """Hold the study's lock for several rounds of `grade`, within one budget. Raises InputError
    while another run collects for this study.
    """
    with only_runner(study):
        yield Rounds.begin(study, limits, progress)


def planned(study: Study, wanted: Sequence[tuple[str, GradingOptions]]) -> list[GradingTask]:
    """Plan graders that are asked in different ways, one task for each."""
    scrubber = Scrubber.from_environment(study.config.providers)
    plans = (plan_grading(study, [grader], options, scrubber) for grader, options in wanted)
    return [task for tasks in plans for task in tasks]


def priced(
    spec: GraderSpec, budget: Budget, tier: str, prices: Mapping[str, ModelPrices]
) -> Tariff | None:
    """Return the model's prices, or None where they are not known. Raises InputError where they are
    not known and there is a budget.
    """
    tariff = Tariff.find(spec, tier=tier, prices=prices)
    if tariff is None and budget.limit is not None:
        raise InputError(
            f"the price of {spec.text} is not known, so it cannot be kept to a budget; name it in "
            "[prices] of study.toml, or run without --budget"
        )
    return tariff


def open_grader(access: Access) -> Grader:
    """Return a client for one model. Raises InputError where its key is missing."""
    if access.spec.speaks == "messages":
        from evenhand.graders.clients.claude import ClaudeGrader

        return ClaudeGrader(access)
    from evenhand.graders.clients.openai_chat import OpenAIGrader, OtherGrader

    return (OpenAIGrader if access.spec.speaks == "chat" else OtherGrader)(access)


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
        priced(spec, Budget(budget), "", study.config.prices)
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
    tariff = Tariff.find(
        spec, batch=batch, tier=task.settings.service_tier, prices=study.config.prices
    )
    usual, basis = _usual_tokens(study, task)
    warnings = (*told_by_study(spec), *warnings_about(spec, task.settings))
    forecast = replace(forecast, basis=basis, warnings=warnings)
    prompts = _prompts(study, task, most)
    forecast = priced_forecast(forecast, tariff, spec, task.settings, prompts, usual)
    if tariff is None or tariff.named:
        return forecast
    newest = price_table_date()
    age = (datetime.now(UTC).date() - newest).days
    table = written("grade.price_table", table=tariff.source, newest=newest, days=age)
    return replace(forecast, basis=f"{forecast.basis} {table}")


def priced_forecast(
    forecast: GraderForecast,
    tariff: Tariff | None,
    spec: GraderSpec,
    settings: GraderSettings,
    prompts: Iterable[tuple[PromptText, int]],
    usual: Tokens | int,
) -> GraderForecast:
    """Return a forecast with the cost of its prompts, each so many times: those given stand for all
    of them. `usual` are the tokens of a request, or of its answer alone.
    """
    least, worst, likely, sample, priced = Decimal(0), Decimal(0), Decimal(0), None, 0
    for prompt, times in prompts:
        sample = sample or prompt
        priced += times
        if tariff:
            request = request_of(spec, settings, prompt)
            least += times * tariff.at_least(request)
            worst += times * tariff.at_most(request)
            if isinstance(usual, int):
                likely += times * tariff.cost(Tokens(input_estimate(request), output=usual))
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


def _usual_tokens(study: Study, task: GradingTask) -> tuple[Tokens | int, str]:
    """Return the mean tokens of this grader's earlier requests or, where there are none, the tokens
    assumed for an answer; and the sentence that says so.
    """
    totals = grade_totals(study.store)
    mine = totals[(totals["rater_id"] == task.rater_id) & (totals["tokens_input"] > 0)]
    if mine.empty:
        own = any(isinstance(rubric, JudgedRubric) for rubric in task.rubrics.values())
        answer = _REASONED if task.settings.reason or own else _ANSWER
        return answer, written("grade.expected_assumed", answer=answer)
    asked = int(mine["attempts"].sum())
    read, cached, out = (
        round(mine[f"tokens_{kind}"].sum() / asked) for kind in ("input", "cached", "output")
    )
    sentence = written("grade.expected_known", asked=asked, read=read, cached=cached, out=out)
    return Tokens(input=read, cached=cached, output=out), sentence


def _prompts(study: Study, task: GradingTask, most: int) -> Iterator[tuple[PromptText, int]]:
    """Yield prompts with their numbers of draws; evenly spaced ones where there are over `most`."""
    step = max(1, ceil(len(task.questions) / task.settings.draws / most))
    asked = groupby(task.questions, key=lambda question: question.prompted)
    draws = islice(((next(group), 1 + sum(1 for _ in group)) for _, group in asked), 0, None, step)
    while chunk := list(islice(draws, _AT_ONCE)):
        shown = study.values_of([question for question, _ in chunk])
        for (question, times), values in zip(chunk, shown, strict=True):
            yield question.rubric.for_prompt(values), times


def request_of(spec: GraderSpec, settings: GraderSettings, prompt: PromptText) -> Mapping[str, Any]:
    """Return the request that a model would be sent first."""
    if spec.speaks == "messages":
        from evenhand.graders.clients import claude

        return claude.build_request(spec.model, prompt, settings)
    from evenhand.graders.clients import openai_chat

    if spec.speaks != "chat":
        return openai_chat.build_form_request(spec, prompt, settings)
    shape = openai_chat.first_shape(spec, settings)
    return openai_chat.build_request(spec.model, prompt, shape, settings)
