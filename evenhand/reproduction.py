"""A published study again, on models and with people of one's own: its price, its steps, and its
progress. It is made of what `new`, `respond`, `grade` and `report` do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from evenhand import graders
from evenhand.errors import InputError
from evenhand.graders import GraderForecast, GradingOptions, RequestLimits, RunSummary
from evenhand.graders.providers import endpoint_of, known_providers
from evenhand.graders.running import USUAL_WORDS, Forecast, Progress
from evenhand.reporting.analysing import published_figures
from evenhand.reporting.new_study import check_numbers, make_study, work_lines
from evenhand.reporting.noting import changing_settings, note
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import FIGURES, PublishedStudy, StudyPlan, unused_folder
from evenhand.study.prompts.pairs import read_responses, sides_of
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings import study_toml
from evenhand.study.store.logs.replies import ResponseLog
from evenhand.study.store.store import spent_so_far
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table
from evenhand.study.trust import is_trusted, remember
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

Showing = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of a step by its title."""

_PRICED = 2_000
"""Prompts of each grader that are priced: they differ little while responses are filler."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A `published` study to be done again in a `folder`, with its subjects and graders; None is as
    in its design.

    `responses` is a file of subjects that were asked elsewhere, `settings` one of providers and
    prices, `repeats` how often each prompt is put. With `batch` graders are asked by the providers'
    batch services.
    """

    published: PublishedStudy
    folder: Path
    pairs: Path | None = None
    propositions: Path | None = None
    subjects: Sequence[str] = ()
    graders: Sequence[str] = ()
    responses: Path | None = None
    settings: Path | None = None
    sample: int | None = None
    seed: int = 1
    raters: int | None = None
    repeats: int | None = None
    wordings: Path | None = None
    scope: str = ""
    orders: str = "both"
    draws: int = 1
    batch: bool = False

    def __post_init__(self) -> None:
        check_numbers(3 if self.raters is None else self.raters, self.seed)
        for kind, names in (("subject", self.subjects), ("grader", self.graders)):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"{kind} {name!r} is named twice; name each {kind} once")
        if not self.subjects and self.responses is None:
            raise InputError("name at least one --subject to ask, or a file of --responses")

    @cached_property
    def prompts(self) -> Path:
        """The file of prompts. Raises InputError where none, or one of another kind, is named."""
        return self.published.prompts(pairs=self.pairs, propositions=self.propositions)

    def resolved(self, providers: Mapping[str, study_toml.ProviderSettings]) -> Reproduction:
        """Return it with the full name of every model, with an address that the environment gives:
        the name under which the study keeps it. Raises InputError where a name is not valid, or two
        are names of one model.
        """

        def full(name: str) -> str:
            return graders.parse_spec(name, providers).text

        return replace(
            self,
            subjects=[full(name) if name in self.asked else name for name in self.subjects],
            graders=[full(grader) for grader in self.graders],
        )

    def plan(self) -> StudyPlan:
        """Return the plan of the study."""
        return self.published.plan(
            self.prompts,
            self.wordings,
            repeats=self.repeats or self.published.design.repeats,
            responses=self.responses,
            sample=self.sample,
            seed=self.seed,
            raters_per_unit=self.raters
            or self.published.design.settings.annotation.raters_per_unit,
        )

    @property
    def reach(self) -> str:
        """Whether models get the sample, or all."""
        return self.scope or self.published.design.scope

    def grading(self) -> GradingOptions:
        """Return how graders are asked."""
        orders = ("ab", "ba") if self.orders == "both" else ("ab",)
        return GradingOptions(scope=self.reach, orders=orders, draws=self.draws)

    @cached_property
    def asked(self) -> list[str]:
        """The subjects that are asked: those named whose responses are in no file."""
        table = pd.DataFrame() if self.responses is None else read_table(self.responses)
        answered = set(table["subject"]) if "subject" in table else set()
        return [subject for subject in self.subjects if subject not in answered]

    @cached_property
    def models(self) -> study_toml.Changes:
        """The providers and prices of the `settings`, which study.toml takes over."""
        return study_toml.read_model_settings(self.settings).changes if self.settings else {}


def foresee(wanted: Reproduction, limits: RequestLimits, *, ready: bool = True) -> Forecast:
    """Price the whole before anything is sent or written. Raises InputError where a file or a model
    is not valid, the study in the folder is another or, if it must be `ready` to begin, a key or
    under a budget a price is missing.
    """
    _check_sent(wanted)
    with _rehearsed(wanted) as (study, real):
        if real is not None and real.config.published:
            published_figures(real)
        providers, batch = study.config.providers, wanted.batch
        wanted = wanted.resolved(providers)
        writers = [graders.parse_spec(name, providers) for name in wanted.asked]
        for spec in writers:
            if spec.api_format == "baseline":
                raise InputError(f"{spec.text} writes no responses; name a model as --subject")
        sides, missing = sides_of(study.store.pairs()), study.unanswered(wanted.asked, wanted.reach)
        # Each subject that is asked has a response of the usual length where it has none yet.
        filler = " ".join(["words"] * USUAL_WORDS)
        rows = [
            {"pair_id": pair, "side": side, "subject": subject, "response": filler}
            for subject in wanted.asked
            for pair in missing[subject]
            for side in sides
        ]
        if rows:
            study.store.add_responses(pd.DataFrame(rows))
        steps: list[tuple[str, GraderForecast]] = []
        for name in wanted.asked:
            answered = ResponseLog(real.store).answered(name) if real else set()
            priced = graders.forecast_responses(study, name, wanted.reach, answered)
            steps.append(("responses", priced))
        if wanted.graders:
            options = wanted.grading()
            known: dict[str, int] = {}
            if real is not None and real.subjects():
                now = graders.forecast(real, wanted.graders, options, max_priced=1)
                known = {run.rater_id: run.already for run in now}
            for run in graders.forecast(
                study, wanted.graders, options, batch=batch, max_priced=_PRICED
            ):
                steps.append(("grades", run.remaining(known.get(run.rater_id, 0))))
        spent = spent_so_far(real.store) if real else 0.0
        work = work_lines(study, usual=0 if wanted.sample else wanted.published.design.sample)
        whole = Forecast(steps, work, spent, limits.concurrency, batch)
        if ready:
            if limits.budget is not None and whole.unpriced:
                raise InputError(written("reproduce.no_price", **whole.unpriced))
            specs = [graders.parse_spec(name, providers) for name in wanted.graders]
            graders.check_ready(study, writers, budget=limits.budget)
            graders.check_ready(study, specs, budget=limits.budget, batch=batch)
    return whole


@contextmanager
def opened(wanted: Reproduction) -> Iterator[Study]:
    """Open the study, which is made unless it is there, with all responses of the file."""
    folder, published = wanted.folder, wanted.published
    if not (folder / study_toml.FILE_NAME).is_file():
        make_study(folder, wanted.plan())
    with open_study(folder) as study:
        if wanted.responses is not None:
            rubrics = study.rubrics.values()
            table = read_responses(wanted.responses, study.store.pairs(), rubrics)
            if new := study.store.add_responses(table):
                note(study, "import", wanted.responses.name, f"responses: {new}")
        figures = study.config.published or published.figures_file
        changes = {**wanted.models, "": {"published": figures}}
        if figures == FIGURES and not (folder / FIGURES).is_file():
            atomic_write(folder / FIGURES, (published.folder / FIGURES).read_bytes())
        with changing_settings(study):
            study_toml.change_config(folder, changes)
    with open_study(folder) as study:
        yield study


@dataclass(frozen=True)
class Collected:
    """The outcome of a run: of all models, of graders alone, and sentences on subjects."""

    run: RunSummary
    grades: RunSummary
    lines: Sequence[str]


def collect(study: Study, wanted: Reproduction, limits: RequestLimits, show: Showing) -> Collected:
    """Ask subjects, then graders, for all that is missing. One budget holds for all that is asked,
    now and in earlier runs. Graders wait for subjects without all of their responses.
    """
    wanted = wanted.resolved(study.config.providers)
    limits, reach = replace(limits, spent=spent_so_far(study.store)), wanted.reach
    run, grades, lines = RunSummary(()), RunSummary(()), list[str]()
    for subject in wanted.asked:
        with show(subject) as progress:
            summary = graders.respond(study, subject, reach, limits, progress)
        limits = replace(limits, spent=float(summary.spent))
        run = RunSummary((*run.graders, summary.run), summary.over_budget)
        lines.append(summary.line)
        if run.over_budget:
            break
    waits = set()
    subjects = dict.fromkeys([*wanted.asked, *study.subjects()])
    for subject, missing in study.unanswered(subjects, reach).items():
        if missing:
            what = "waits" if subject in wanted.asked else "short"
            waits |= {subject} & {*wanted.asked}
            lines.append(written(f"reproduce.{what}", subject=subject, missing=len(missing)))
    if wanted.graders and not run.over_budget:
        by_kind = study.units_by_kind(reach)
        units = {u for all_ in by_kind.values() for u in all_ if parse_unit_id(u)[1] not in waits}
        options = replace(wanted.grading(), units=units if waits else None)
        if units:
            with show(written("reproduce.grades")) as progress:
                how = (options, limits, progress)
                grades = graders.grade(study, wanted.graders, *how, batch=wanted.batch)
        run = RunSummary((*run.graders, *grades.graders), grades.over_budget)
    return Collected(run, grades, lines)


def _check_sent(wanted: Reproduction) -> None:
    """Raise InputError where the settings may not send what they name. Trust in the file that was
    given is trust in the folders that take it over.
    """
    given, kept = wanted.settings, wanted.folder / study_toml.FILE_NAME
    read: list[tuple[Path, study_toml.ModelSettings | study_toml.StudyConfig]] = []
    read += [(given, study_toml.read_model_settings(given))] if given else []
    read += [(kept, study_toml.read_config(wanted.folder))] if kept.is_file() else []
    for file, settings in read:
        for name, row in known_providers(settings.providers).items():
            if name in settings.providers:
                endpoint_of(row, "")
        declared = study_toml.declarations(settings).values()
        trusted = [variable for variable in declared if is_trusted(file.parent, variable)]
        remember(wanted.folder, trusted)


@contextmanager
def _rehearsed(wanted: Reproduction) -> Iterator[tuple[Study, Study | None]]:
    """Yield the study as it would be made, in a place of its own that is removed, with the
    responses that are there already; and the one in the folder, if there is one.
    """
    folder = wanted.folder
    is_there = (folder / study_toml.FILE_NAME).is_file()
    present = open_study(folder) if is_there else nullcontext()
    with present as real, tempfile.TemporaryDirectory(prefix="evenhand-") as home:
        if real is None:
            unused_folder(folder)
        rehearsal = Path(home) / "study"
        create_study(rehearsal, wanted.plan())
        config = (rehearsal if real is None else folder) / study_toml.FILE_NAME
        text = config.read_text("utf-8-sig")
        text = study_toml.with_values(text, {"": {"store": "study.db"}, **wanted.models})
        (rehearsal / study_toml.FILE_NAME).write_text(text, "utf-8")
        if real is not None:
            shutil.rmtree(rehearsal / RUBRICS_FOLDER)
            shutil.copytree(folder / RUBRICS_FOLDER, rehearsal / RUBRICS_FOLDER)
        with open_study(rehearsal) as study:
            for subject, missing in study.unanswered(study.subjects(), "sample").items():
                if missing:  # of the file
                    about = {"file": wanted.responses, "subject": subject, "first": missing[0]}
                    numbers = {"missing": len(missing), "sampled": len(study.store.sample())}
                    raise InputError(written("reproduce.uneven", **about, **numbers))
            if real is not None:
                if not real.store.pairs().equals(study.store.pairs()):
                    raise InputError(written("reproduce.another", folder=folder))
                raters = real.config.annotation.raters_per_unit
                if wanted.raters not in (None, raters):
                    numbers = {"wanted": wanted.raters, "raters": raters}
                    raise InputError(written("reproduce.other_raters", folder=folder, **numbers))
                study.store.add_responses(real.store.responses())
            yield study, real
