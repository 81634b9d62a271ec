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
from evenhand.study.creation import (
    FIGURES,
    USUAL_SAMPLE,
    DesignSettings,
    Paraphrasing,
    PublishedStudy,
    StudyPlan,
    unused_folder,
)
from evenhand.study.prompts.pairs import (
    filler_paraphrases,
    read_responses,
    rewritten,
    sides_of,
    with_paraphrases,
)
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
    prices, `paraphraser` a model that writes the paraphrases of propositions, `repeats` how often
    each is put. With `batch` graders are asked by the providers' batch services.
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
    paraphraser: str = ""
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

    @property
    def paraphrasing(self) -> Paraphrasing:
        """How a model is asked for paraphrases. Raises InputError where the design has none."""
        if (how := self.published.design.paraphrases) is None:
            raise InputError(written("reproduce.no_paraphrases", name=self.published.name))
        return how

    @property
    def paraphrases_folder(self) -> Path:
        """The folder of the small study in which a model writes paraphrases."""
        return self.folder.with_name(f"{self.folder.name}-paraphrases")

    @property
    def paraphrases(self) -> Path:
        """The file of propositions with their paraphrases."""
        return self.paraphrases_folder / "propositions.csv"

    @property
    def rewriting(self) -> Reproduction:
        """The small study in which the `paraphraser` "responds" to each proposition with other
        wordings, so that it is resumed, paid and never asked twice like any other subject.
        """
        others = {"sample": USUAL_SAMPLE, "scope": "all", "settings": DesignSettings()}
        changes = {"wordings": self.paraphrasing.wordings, "repeats": 1, **others}
        design = self.published.design.model_copy(update=changes)
        return Reproduction(
            published=replace(self.published, design=design),
            folder=self.paraphrases_folder,
            propositions=self.prompts,
            subjects=[self.paraphraser],
            settings=self.settings,
        )

    def resolved(self, providers: Mapping[str, study_toml.ProviderSettings]) -> Reproduction:
        """Return it with the full name of every model, with an address that the environment gives:
        the name under which the study keeps it. Raises InputError where a name is not valid, or two
        are names of one model.
        """

        def full(name: str) -> str:
            return graders.parse_spec(name, providers).text

        return replace(
            self,
            subjects=[full(each) if each in self.asked else each for each in self.subjects],
            graders=[full(each) for each in self.graders],
            paraphraser=full(self.paraphraser) if self.paraphraser else "",
        )

    def plan(self, prompts: Path) -> StudyPlan:
        """Return the plan of the study on these prompts."""
        return self.published.plan(
            prompts,
            self.wordings,
            repeats=self.repeats or self.published.design.repeats,
            responses=self.responses,
            sample=self.sample,
            seed=self.seed,
            raters_per_unit=self.raters or 3,
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
        there = set(table["subject"]) if "subject" in table else set()
        return [each for each in self.subjects if each not in there]

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
            if spec.speaks == "baseline":
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
        if wanted.paraphraser:
            first = foresee(wanted.rewriting, limits, ready=ready).steps
            with _present(wanted.paraphrases_folder) as kept:
                if kept and {*kept.subjects()} - {wanted.paraphraser}:
                    about = {"folder": kept.folder, "model": ", ".join(kept.subjects())}
                    raise InputError(written("reproduce.other_paraphrases", **about))
            for _, part in () if wanted.paraphrases.is_file() else first:
                cost = part.cost and (part.cost[0], part.cost[1] * wanted.paraphrasing.tries)
                steps.append(("paraphrases", replace(part, cost=cost)))
        for name in wanted.asked:
            answered = ResponseLog(real.store).answered(name) if real else set()
            priced = graders.forecast_responses(study, name, wanted.reach, answered)
            steps.append(("responses", priced))
        if wanted.graders:
            options = wanted.grading()
            known: dict[str, int] = {}
            if real is not None and real.subjects():
                now = graders.forecast(real, wanted.graders, options, most=1)
                known = {each.rater_id: each.already for each in now}
            for each in graders.forecast(study, wanted.graders, options, batch=batch, most=_PRICED):
                steps.append(("grades", each.left(known.get(each.rater_id, 0))))
        spent = _spent(real, wanted)
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
        made = wanted.plan(wanted.paraphrases if wanted.paraphraser else wanted.prompts)
        make_study(folder, made)
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


def collect(
    study: Study,
    wanted: Reproduction,
    limits: RequestLimits,
    show: Showing,
    fault: Callable[[str, str], str] | None = None,
) -> Collected:
    """Ask subjects, then graders, for all that is missing; answers in which a `fault` is found are
    none. One budget holds for all that is asked, now and in earlier runs. Graders wait for subjects
    without all of their responses.
    """
    wanted = wanted.resolved(study.config.providers)
    limits, reach = replace(limits, spent=_spent(study, wanted)), wanted.reach
    run, grades, lines = RunSummary(()), RunSummary(()), list[str]()
    for subject in wanted.asked:
        with show(subject) as progress:
            summary = graders.respond(study, subject, reach, limits, progress, fault=fault)
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
        trusted = [each for each in declared if is_trusted(file.parent, each)]
        for home in (wanted.folder, wanted.paraphrases_folder):
            remember(home, trusted)


def _present(folder: Path) -> AbstractContextManager[Study | None]:
    """Open the study in a folder; None where there is none."""
    is_there = (folder / study_toml.FILE_NAME).is_file()
    return open_study(folder) if is_there else nullcontext()


@contextmanager
def _rehearsed(wanted: Reproduction) -> Iterator[tuple[Study, Study | None]]:
    """Yield the study as it would be made, in a place of its own that is removed, with the
    responses that are there already; and the one in the folder, if there is one.
    """
    folder, file = wanted.folder, wanted.prompts
    with _present(folder) as real, tempfile.TemporaryDirectory(prefix="evenhand-") as home:
        if real is None:
            unused_folder(folder)
        if wanted.paraphraser:
            file = wanted.paraphrases
            if not file.is_file():
                file = Path(home) / file.name
                text = filler_paraphrases(wanted.prompts, wanted.paraphrasing.number)
                file.write_text(text, "utf-8")
        there = Path(home) / "study"
        create_study(there, wanted.plan(file))
        config = (there if real is None else folder) / study_toml.FILE_NAME
        text = config.read_text("utf-8-sig")
        text = study_toml.with_values(text, {"": {"store": "study.db"}, **wanted.models})
        (there / study_toml.FILE_NAME).write_text(text, "utf-8")
        if real is not None:
            shutil.rmtree(there / RUBRICS_FOLDER)
            shutil.copytree(folder / RUBRICS_FOLDER, there / RUBRICS_FOLDER)
        with open_study(there) as study:
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


def _spent(real: Study | None, wanted: Reproduction) -> float:
    """Return what the study has cost so far, its paraphrases included."""
    with _present(wanted.paraphrases_folder) as paraphrasing:
        return sum(spent_so_far(each.store) for each in (real, paraphrasing) if each is not None)


# Paraphrases


def paraphrase(wanted: Reproduction, limits: RequestLimits, show: Showing) -> RunSummary | None:
    """Have a model write the paraphrases of every proposition into a file of propositions, unless
    they are there; an answer that is no list of so many is asked for again, within the budget and a
    few times in a run. Return the run where the model was stopped early. Raises InputError where
    answers are still missing.
    """
    made = (wanted.folder / study_toml.FILE_NAME).is_file()
    if made or not wanted.paraphraser or wanted.paraphrases.is_file():
        return None
    rewriting, how = wanted.rewriting, wanted.paraphrasing
    with opened(rewriting) as study:
        pairs = study.store.pairs()
        statements = dict(zip(pairs["prompt_a"], pairs["statement"], strict=True))

        def fault(prompt: str, answer: str) -> str:
            is_whole = len(rewritten(answer, statements[prompt])) == how.number
            return "" if is_whole else f"not_{how.number}_paraphrases"

        for _ in range(how.tries):
            run = collect(study, rewriting, limits, show, fault).run
            if run.over_budget or run.stopped:
                return run
            if not run.unscored:
                break
        answers = study.store.responses().merge(pairs, on="pair_id")
    texts = {
        name: rewritten(answer, statement)
        for name, answer, statement in answers[["proposition", "response", "statement"]].to_numpy()
    }
    table = read_table(wanted.prompts)
    missing = [name for name in table["id"] if name not in texts]
    if missing:
        about = {"model": wanted.paraphraser, "missing": len(missing), "first": missing[0]}
        numbers = {"wanted": how.number, "tries": how.tries}
        raise InputError(written("reproduce.few_paraphrases", **about, **numbers))
    atomic_write(wanted.paraphrases, with_paraphrases(table, texts).encode())
    return None
