"""Grading a study: plan what is missing, ask, keep every grade, say how it went. A study, or a part
of it, has one runner: two at once would ask, and pay for, the same twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.graders.baselines import LexicalGrader
from evenhand.graders.clients.grader import Access, Grader
from evenhand.graders.money import Budget, Tariff
from evenhand.graders.options import (
    TIMEOUT,
    WHOLE,
    GraderSettings,
    GradingOptions,
    GradingTask,
    OpenQuestions,
    RequestLimits,
    Shard,
    plan_grading,
)
from evenhand.graders.running.run import (
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
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import Reworded
from evenhand.study.store.logs.replies import BatchJournal, asked_by, gave_without_reasoning
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
_CHUNK = 500


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
    run = Rounds.begin(study, limits, progress)
    scrubber = run.context.scrubber
    with only_runner(study, shard):
        tasks = plan_grading(study, graders, options, scrubber)
        run.under(batch=batch, cancel=cancel).collect(tasks)
    for other in shard.others():
        if run.so_far.over_budget or run.so_far.stopped:
            break
        with suppress(Elsewhere), only_runner(study, other):
            tasks = plan_grading(study, graders, replace(options, shard=other), scrubber)
            run.collect(tasks)
    return run.so_far


@dataclass(frozen=True, slots=True)
class Rounds:
    """A run: rounds of questions to a study's models, within one budget, under the study's lock."""

    study: Study
    context: RunContext
    summaries: dict[str, GraderSummary] = field(default_factory=dict)

    @classmethod
    def begin(cls, study: Study, limits: RequestLimits, progress: Progress | None = None) -> Rounds:
        """Return a run that has asked nothing yet."""
        scrubber = Scrubber.from_environment(study.config.providers)
        budget = Budget(limits.budget, limits.spent)
        return cls(study, RunContext(scrubber, limits, budget, ProgressCounter(progress)))

    def under(self, **changes: Any) -> Rounds:
        """Return the same run in a context with these changes."""
        return replace(self, context=replace(self.context, **changes))

    @property
    def spent(self) -> float:
        """US dollars spent so far, with replies that were lost."""
        return float(self.context.budget.spent)

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
        tasks = planned(self.study, wanted)
        limits = self.context.limits
        for start in range(0, len(tasks), limits.concurrency):
            some = tasks[start : start + limits.concurrency]
            busy = max(sum(len(task.questions) > 0 for task in some), 1)
            each = replace(limits, concurrency=limits.concurrency // busy)
            self.under(limits=each).collect(some, opened)
            if self.context.budget.exhausted:
                break
        return self.so_far

    def collect(
        self,
        tasks: Sequence[GradingTask],
        opened: Callable[[], None] = lambda: None,
        name: str = "",
    ) -> None:
        """Ask every grader its open questions, and add how it went to its summary, which may have
        another `name`. `opened` is called once nothing stands against the first request.
        """
        for rubric in (each for task in tasks for each in task.questions.rubrics.values()):
            if isinstance(rubric, Reworded):
                self.study.keep_prompt(rubric.words.hash, rubric.words.source)
        parts: list[OfflineRun | LiveRun | BatchRun] = []
        for task in tasks:
            asked = task.questions
            summary = self.part(name or asked.rater_id, asked.already, len(asked))
            if len(asked) or self.context.cancel:
                parts.append(self._carried(task, summary))
        opened()
        for part in parts:  # offline first, then all graders behind a network side by side
            if isinstance(part, OfflineRun):
                part.run()
        if remote := [part for part in parts if not isinstance(part, OfflineRun)]:
            run_all(remote, self.context.progress)

    def put(
        self, spec: GraderSpec, settings: GraderSettings, job: Job, summary: GraderSummary
    ) -> None:
        """Put a job's questions to a model. Raises InputError where a key or a price is missing."""
        job.grader, tariff = self._opened(spec, settings)
        run_all([LiveRun(job, self.context, summary, tariff)], self.context.progress)

    def _carried(
        self, task: GradingTask, summary: GraderSummary
    ) -> OfflineRun | LiveRun | BatchRun:
        """Return one grader's part of the run, live or by batches. Raises InputError where its key,
        a rubric's cues or, under a budget, its price is missing.
        """
        study, context, spec = self.study, self.context, task.spec
        if spec.speaks == "baseline":
            return OfflineRun(study, task.questions, context, summary)
        grader, tariff = self._opened(spec, task.settings, task.questions.rater_id)
        job = GradeJob(study, grader, task.questions)
        if not context.batch:
            return LiveRun(job, context, summary, tariff)
        tier, prices = task.settings.service_tier, study.config.prices
        in_batch = Tariff.find(spec, batch=True, tier=tier, prices=prices)
        journal = BatchJournal(study.store)
        return BatchRun(job, journal, context, summary, in_batch, live_tariff=tariff)

    def _opened(
        self, spec: GraderSpec, settings: GraderSettings, rater_id: str = ""
    ) -> tuple[Grader, Tariff | None]:
        """Return a client for a model, asked as this rater was before, and the model's prices."""
        study, context = self.study, self.context
        tariff = priced(spec, context.budget, settings.service_tier, study.config.prices)
        access = Access(
            spec,
            settings,
            context.scrubber,
            context.limits.timeout,
            way=asked_by(study.store, rater_id),
            no_reasoning=gave_without_reasoning(study.store, rater_id),
        )
        return open_grader(access), tariff

    def part(self, name: str, already: int, new: int) -> GraderSummary:
        """Return the summary of what else is asked under this name, with so many more questions."""
        found = self.summaries.setdefault(name, GraderSummary(rater_id=name, already=0, planned=0))
        found.already += already
        found.planned += new
        self.context.progress.expect(new)
        return found

    @property
    def so_far(self) -> RunSummary:
        """The summary of all that was asked so far."""
        budget = self.context.budget
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
    return [
        task
        for grader, options in wanted
        for task in plan_grading(study, [grader], options, scrubber)
    ]


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
    import anyio
    from anyio.lowlevel import checkpoint

    scrubber = Scrubber.from_environment(study.config.providers)
    for spec in specs:
        if spec.speaks == "baseline":
            continue
        priced(spec, Budget(budget), "", study.config.prices)
        grader = open_grader(Access(spec, GraderSettings("text"), scrubber, TIMEOUT))
        try:
            if batch:
                grader.batches(checkpoint)
        finally:
            anyio.run(grader.close)


class OfflineRun:
    """Grades all open questions by counting words. Raises InputError where a rubric has no cues."""

    def __init__(
        self, study: Study, questions: OpenQuestions, context: RunContext, summary: GraderSummary
    ) -> None:
        self._study = study
        self._questions = questions
        self._context = context
        self._summary = summary
        self._graders = {
            rubric.name: LexicalGrader(rubric) for rubric in {each.rubric for each in questions}
        }

    def run(self) -> None:
        facts = {"provider": "baseline", "tool": tool_version(), "cost_usd": 0.0}
        questions, rater = iter(self._questions), self._questions.rater_id
        while chunk := list(islice(questions, _CHUNK)):
            shown = zip(chunk, self._study.values_of(chunk), strict=True)
            outcomes = ((each, self._graders[each.rubric.name].grade(v)) for each, v in shown)
            grades = [grade_of(rater, q, o, provenance=facts | o.evidence) for q, o in outcomes]
            self._study.store.add_grades(grades)
            self._context.count(grades, self._summary)
