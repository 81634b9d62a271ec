"""Reproduction of a published study with the user's own models and annotators.

`Reproduction` holds the user's options, `forecast_costs` estimates the costs before anything is
sent or written, `prepare_study` makes or opens the study, and `collect` asks its subjects and
graders, with the functions of `new`, `respond` and `grade`.
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
from evenhand.reporting.new_study import check_raters_and_seed, make_study, work_lines
from evenhand.reporting.noting import changing_settings, note
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import FIGURES, PublishedStudy, StudyPlan, unused_folder
from evenhand.study.prompts.pairs import read_responses, sides_of
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings import study_toml
from evenhand.study.store.logs.replies import ResponseLog
from evenhand.study.store.store import total_spent
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table
from evenhand.study.trust import is_trusted, remember
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

ShowProgress = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of a step, given its title."""

_MAX_PRICED = 2_000
"""Prompts of each grader that are priced: they differ little while responses are filler."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A `published` study to be repeated in a `folder`, with subjects (models that respond) and
    graders of the user's choice; options that are None are as in its design. `pairs` or
    `propositions` is the file of prompts; `responses` has responses of some subjects, `settings`
    providers and prices; `repeats` is the number of responses to each prompt. With `batch` graders
    are asked by the providers' batch services.
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
        check_raters_and_seed(3 if self.raters is None else self.raters, self.seed)
        for kind, names in (("subject", self.subjects), ("grader", self.graders)):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"{kind} {name!r} is named twice; name each {kind} once")
        if not self.subjects and self.responses is None:
            raise InputError("name at least one --subject to ask, or a file of --responses")

    @cached_property
    def prompts(self) -> Path:
        """The file of prompts. Raises InputError if none, or one of another kind, is named."""
        return self.published.prompts(pairs=self.pairs, propositions=self.propositions)

    def resolved(self, providers: Mapping[str, study_toml.ProviderSettings]) -> Reproduction:
        """Return the reproduction with every model's full name, as the study stores it, with the
        address that the environment gives. Raises InputError where a name is not valid, or two
        names are of one model.
        """

        def full_name(name: str) -> str:
            return graders.parse_spec(name, providers).text

        to_ask = self.asked_subjects  # others, which have responses in the file, may be no models
        subjects = [full_name(name) if name in to_ask else name for name in self.subjects]
        return replace(self, subjects=subjects, graders=[*map(full_name, self.graders)])

    def plan(self) -> StudyPlan:
        """Return the plan of the study."""
        design = self.published.design
        raters = self.raters or design.settings.annotation.raters_per_unit
        return self.published.plan(
            self.prompts, self.wordings, repeats=self.repeats or design.repeats,
            responses=self.responses, sample=self.sample, seed=self.seed, raters_per_unit=raters,
        )  # fmt: skip

    @property
    def chosen_scope(self) -> str:
        """The prompts that models are asked: "sample" or "all"."""
        return self.scope or self.published.design.scope

    def grading(self) -> GradingOptions:
        """Return the options with which graders are asked."""
        orders = ("ab", "ba") if self.orders == "both" else ("ab",)
        return GradingOptions(scope=self.chosen_scope, orders=orders, draws=self.draws)

    @cached_property
    def asked_subjects(self) -> list[str]:
        """The named subjects without responses in the file, which are to be asked."""
        table = pd.DataFrame() if self.responses is None else read_table(self.responses)
        answered = set(table["subject"]) if "subject" in table else set()
        return [subject for subject in self.subjects if subject not in answered]

    @cached_property
    def model_settings(self) -> study_toml.Changes:
        """The providers and prices in the `settings` file, to be copied into study.toml."""
        return study_toml.read_model_settings(self.settings).changes if self.settings else {}


def forecast_costs(options: Reproduction, limits: RequestLimits, *, ready: bool = True) -> Forecast:
    """Forecast the whole reproduction before anything is sent or written. Raises InputError where a
    file or a model is not valid, where the folder has another study or, if it must be `ready` to
    begin, where a key or, under a budget, a price is missing.
    """
    _check_and_trust_providers(options)
    with _rehearse(options) as (study, existing):  # `study` is temporary
        if existing is not None and existing.config.published:
            published_figures(existing)  # only for its InputError
        providers, batch = study.config.providers, options.batch
        options = options.resolved(providers)
        subjects = options.asked_subjects
        subject_specs = [graders.parse_spec(name, providers) for name in subjects]
        for spec in subject_specs:
            if spec.api_format == "baseline":
                raise InputError(f"{spec.text} writes no responses; name a model as --subject")
        _add_filler(study, subjects, options.chosen_scope)
        steps: list[tuple[str, GraderForecast]] = []
        for name in subjects:
            answered = ResponseLog(existing.store).answered(name) if existing else set()
            forecast = graders.forecast_responses(study, name, options.chosen_scope, answered)
            steps.append(("responses", forecast))
        if options.graders:
            steps += [("grades", grades) for grades in _forecasts(study, existing, options)]
        spent = total_spent(existing.store) if existing else 0.0
        # A sample that the user chose is not called too small.
        work = work_lines(study, usual=0 if options.sample else options.published.design.sample)
        total = Forecast(steps, work, spent, limits.concurrency, batch)
        if ready:
            if limits.budget is not None and total.unpriced:
                raise InputError(written("reproduce.no_price", **total.unpriced))
            grader_specs = [graders.parse_spec(name, providers) for name in options.graders]
            graders.check_ready(study, subject_specs, budget=limits.budget)
            graders.check_ready(study, grader_specs, budget=limits.budget, batch=batch)
    return total


def _check_and_trust_providers(options: Reproduction) -> None:
    """Raise InputError where a provider names environment variables that it may not be sent. Those
    that are trusted in the settings file's folder are trusted in the study's from now on, too.
    """
    file, study_file = options.settings, options.folder / study_toml.FILE_NAME
    sources: list[tuple[Path, study_toml.ModelSettings | study_toml.StudyConfig]] = []
    if file is not None:
        sources.append((file, study_toml.read_model_settings(file)))
    if study_file.is_file():
        sources.append((study_file, study_toml.read_config(options.folder)))
    for source, settings in sources:
        for name, provider in known_providers(settings.providers).items():
            if name in settings.providers:
                endpoint_of(provider, typed="")  # only for its InputError
        declared = study_toml.declarations(settings).values()
        remember(options.folder, [value for value in declared if is_trusted(source.parent, value)])


@contextmanager
def _rehearse(options: Reproduction) -> Iterator[tuple[Study, Study | None]]:
    """Yield a temporary study as it would be made, and the existing one in the folder or None,
    whose settings, rubrics and responses the temporary one has.
    """
    folder = options.folder
    opened = open_study(folder) if (folder / study_toml.FILE_NAME).is_file() else nullcontext()
    with opened as existing, tempfile.TemporaryDirectory(prefix="evenhand-") as scratch:
        if existing is None:
            unused_folder(folder)  # only for its InputError
        rehearsal = Path(scratch) / "study"
        create_study(rehearsal, options.plan())
        config = (rehearsal if existing is None else folder) / study_toml.FILE_NAME
        changes = {"": {"store": "study.db"}, **options.model_settings}  # not the existing store
        text = study_toml.with_values(config.read_text("utf-8-sig"), changes)
        (rehearsal / study_toml.FILE_NAME).write_text(text, "utf-8")
        if existing is not None:
            shutil.rmtree(rehearsal / RUBRICS_FOLDER)
            shutil.copytree(folder / RUBRICS_FOLDER, rehearsal / RUBRICS_FOLDER)
        with open_study(rehearsal) as study:
            for subject, prompts in study.unanswered(study.store.subjects(), "sample").items():
                if prompts:  # which the file of responses does not answer
                    fields = {"file": options.responses, "subject": subject, "first": prompts[0]}
                    numbers = {"missing": len(prompts), "sampled": len(study.store.sample())}
                    raise InputError(written("reproduce.uneven", **fields, **numbers))
            if existing is not None:
                if not existing.store.pairs().equals(study.store.pairs()):
                    raise InputError(written("reproduce.another", folder=folder))
                raters = existing.config.annotation.raters_per_unit
                if options.raters not in (None, raters):
                    numbers = {"wanted": options.raters, "raters": raters}
                    raise InputError(written("reproduce.other_raters", folder=folder, **numbers))
                study.store.add_responses(existing.store.responses())
            yield study, existing


def _add_filler(study: Study, subjects: Sequence[str], scope: str) -> None:
    """Fill missing responses of a temporary study with text of usual length, to price grades."""
    filler, sides = " ".join(["words"] * USUAL_WORDS), sides_of(study.store.pairs())
    rows = [
        {"pair_id": pair, "side": side, "subject": subject, "response": filler}
        for subject, pairs in study.unanswered(subjects, scope).items()
        for pair in pairs
        for side in sides
    ]
    if rows:
        study.store.add_responses(pd.DataFrame(rows))


def _forecasts(study: Study, existing: Study | None, options: Reproduction) -> list[GraderForecast]:
    """Forecast the grades of a temporary study, without those that the existing one has."""
    names, grading = options.graders, options.grading()
    n_graded: dict[str, int] = {}
    if existing is not None and existing.store.subjects():
        present = graders.forecast(existing, names, grading, max_priced=1)  # no price is needed
        n_graded = {forecast.rater_id: forecast.already for forecast in present}
    forecasts = graders.forecast(study, names, grading, batch=options.batch, max_priced=_MAX_PRICED)
    return [forecast.remaining(n_graded.get(forecast.rater_id, 0)) for forecast in forecasts]


@contextmanager
def prepare_study(options: Reproduction) -> Iterator[Study]:
    """Yield the study, made if need be, with the responses and providers of the user's files."""
    folder, published = options.folder, options.published
    if not (folder / study_toml.FILE_NAME).is_file():
        make_study(folder, options.plan())
    with open_study(folder) as study:
        if options.responses is not None:
            table = read_responses(options.responses, study.store.pairs(), study.rubrics.values())
            if n_new := study.store.add_responses(table):
                note(study, "import", options.responses.name, f"responses: {n_new}")
        figures = study.config.published or published.figures_file
        changes = {**options.model_settings, "": {"published": figures}}  # "": the top level
        if figures == FIGURES and not (folder / FIGURES).is_file():
            atomic_write(folder / FIGURES, (published.folder / FIGURES).read_bytes())
        with changing_settings(study):
            study_toml.change_config(folder, changes)
    with open_study(folder) as study:  # with the changed settings
        yield study


@dataclass(frozen=True)
class Collection:
    """Summaries of what was asked of all models and of graders alone, and sentences on subjects."""

    run: RunSummary  # its `graders` are subjects and graders
    grades: RunSummary
    lines: Sequence[str]


def collect(
    study: Study, options: Reproduction, limits: RequestLimits, show: ShowProgress
) -> Collection:
    """Ask subjects for missing responses, then graders for missing grades, within one budget for
    this run and earlier ones. Graders wait for subjects whose responses are incomplete.
    """
    options = options.resolved(study.config.providers)
    limits, scope = replace(limits, spent=total_spent(study.store)), options.chosen_scope
    run, grades, lines = RunSummary(()), RunSummary(()), list[str]()
    for subject in options.asked_subjects:
        with show(subject) as progress:
            summary = graders.respond(study, subject, scope, limits, progress)
        limits = replace(limits, spent=float(summary.spent))
        run = RunSummary((*run.graders, summary.run), summary.over_budget)
        lines.append(summary.line)
        if run.over_budget:
            break
    subjects = dict.fromkeys([*options.asked_subjects, *study.store.subjects()])
    unanswered = {name: pairs for name, pairs in study.unanswered(subjects, scope).items() if pairs}
    waiting_for = {*unanswered} & {*options.asked_subjects}  # those whose responses are incomplete
    for subject, pairs in unanswered.items():
        key = "waits" if subject in waiting_for else "short"
        lines.append(written(f"reproduce.{key}", subject=subject, missing=len(pairs)))
    if options.graders and not run.over_budget:
        all_units = [unit for units in study.units_by_kind(scope).values() for unit in units]
        ready_units = {unit for unit in all_units if parse_unit_id(unit).subject not in waiting_for}
        grading = replace(options.grading(), units=ready_units if waiting_for else None)
        if ready_units:
            names, batch = options.graders, options.batch
            with show(written("reproduce.grades")) as progress:
                grades = graders.grade(study, names, grading, limits, progress, batch=batch)
        run = RunSummary((*run.graders, *grades.graders), grades.over_budget)
    return Collection(run, grades, lines)
