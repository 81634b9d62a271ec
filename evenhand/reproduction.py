"""A published study again, on models and with people of one's own: its price, its steps, and its
progress. It is made of what `new`, `respond`, `grade` and `report` do; what was
published of its design is in `reproductions.toml`.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import graders
from evenhand.errors import InputError
from evenhand.graders import GraderForecast, GradingOptions, RequestLimits, RunSummary
from evenhand.graders.providers import endpoint_of, known_providers
from evenhand.graders.running import USUAL_WORDS, Progress
from evenhand.reporting.analysing import published_figures
from evenhand.reporting.new_study import check_numbers, make_study, preview_of
from evenhand.reporting.noting import changing_settings, note
from evenhand.reporting.panel import Line
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan, unused_folder, usual_rubrics
from evenhand.study.prompts.pairs import read_responses, sides_of
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.settings import study_toml
from evenhand.study.store.logs.replies import ResponseLog
from evenhand.study.store.store import spent_so_far
from evenhand.study.tables.files import atomic_write
from evenhand.study.tables.formats import read_table
from evenhand.study.trust import is_trusted, remember
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import table_of, written

Showing = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of a step by its title."""

_SECONDS = 10
"""That a reply takes, for forecasts."""
_PRICED = 2_000
"""Prompts of each grader that are priced: they differ little while responses are filler."""
_NUMBERED = re.compile(r"\s*(\d+)[.)]\s+(\S.*)")
_ADDRESS = re.compile(r"@https?://|#")
_MARKED = re.compile(r"(\*\*|[\"\u201c*_])([^\"\u201c\u201d*_]+)(?:\*\*|[\"\u201d*_])")


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A published study to be done again in a `folder`: the `source` of `reproductions.toml`, with
    its subjects and graders.

    `responses` is a file of subjects that were asked elsewhere, `settings` one of providers and
    prices, `paraphraser` a model that writes the paraphrases of propositions, `repeats` how often
    each is put. With `batch` graders are asked by the providers' batch services.
    """

    source: str
    folder: Path
    prompts: Path
    subjects: Sequence[str] = ()
    graders: Sequence[str] = ()
    responses: Path | None = None
    settings: Path | None = None
    sample: int | None = None
    seed: int = 1
    raters: int | None = None
    repeats: int = 1
    wordings: Path | None = None
    paraphraser: str = ""
    scope: str = "sample"
    orders: str = "both"
    draws: int = 1
    batch: bool = False

    def __post_init__(self) -> None:
        check_numbers(self.raters_per_unit, self.seed)
        for kind, names in (("subject", self.subjects), ("grader", self.graders)):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f"{kind} {name!r} is named twice; name each {kind} once")
        if not self.subjects and self.responses is None:
            raise InputError("name at least one --subject to ask, or a file of --responses")

    @property
    def raters_per_unit(self) -> int:
        """Annotators of each unit."""
        return 3 if self.raters is None else self.raters

    @property
    def design(self) -> dict[str, Any]:
        """The design as it was published."""
        design: dict[str, Any] = table_of("evenhand", "reproductions.toml")[self.source]
        return design

    def shipped(self, name: str) -> Path:
        """Return the file of the design that comes with evenhand."""
        return Path(str(files("evenhand.data") / self.design[name]))

    @property
    def paraphrases_folder(self) -> Path:
        """The folder of the small study in which a model writes paraphrases."""
        return self.folder.with_name(f"{self.folder.name}-paraphrases")

    @property
    def paraphrases(self) -> Path:
        """The file of propositions with their paraphrases."""
        return self.paraphrases_folder / "propositions.csv"

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

    def plan(self) -> StudyPlan:
        """Return the plan of the study: all that was published of its design."""
        design, wordings = self.design, self.wordings
        prompts: dict[str, Any] = {design["prompts"]: self.prompts}
        if "wordings" in design:
            wordings = wordings or self.shipped("wordings")
        plan = StudyPlan(
            **prompts,
            wordings=wordings,
            repeats=self.repeats,
            crossed=design["prompts"] == "pairs",
            responses=self.responses,
            rubrics=usual_rubrics(propositions=design["prompts"] == "propositions"),
            seed=self.seed,
            raters_per_unit=self.raters_per_unit,
        )
        usual = min(design["sample"], len(plan.read_prompts()))
        return replace(plan, sample=usual if self.sample is None else self.sample)

    def grading(self) -> GradingOptions:
        """Return how graders are asked."""
        orders = ("ab", "ba") if self.orders == "both" else ("ab",)
        return GradingOptions(scope=self.scope, orders=orders, draws=self.draws)

    def chosen(self, study: Study) -> pd.DataFrame:
        """Return the prompts that models get: the sample, or all."""
        pairs = study.store.pairs()
        return pairs if self.scope == "all" else pairs[pairs["sample_position"].notna()]

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


Step = tuple[str, GraderForecast]
"""What one model is still to be asked, by its name in `texts.toml`, and what that costs."""


def _scaled(priced: GraderForecast, new: int, already: int = 0, tries: int = 1) -> GraderForecast:
    """Return the forecast of `new` of the requests that were priced, each made `tries` times at
    most, where `already` are answered.
    """
    scaled = replace(priced, already=already, new=new)
    if not new:
        return replace(scaled, cost=(0.0, 0.0), expected=0.0)
    if priced.cost is None:
        return scaled
    (least, most), share = priced.cost, new / priced.new
    cost, expected = (least * share, most * share * tries), (priced.expected or 0.0) * share
    return replace(scaled, cost=cost, expected=expected)


@dataclass(frozen=True)
class Forecast:
    """The whole before anything is sent: its steps, what people have to do, and what was spent so
    far, in US dollars.
    """

    steps: Sequence[Step]
    work: Sequence[Line]
    spent: float
    concurrency: int
    batch: bool = False
    """True if graders are asked in batches."""

    @cached_property
    def whole(self) -> GraderForecast:
        """All steps together; their cost is None where a price is not known."""
        parts = [part for _, part in self.steps]
        costs = [(*part.cost, part.expected or 0.0) for part in parts if part.cost]
        least, most, likely = (math.fsum(cost[at] for cost in costs) for at in range(3))
        is_known = len(costs) == len(parts)
        return GraderForecast(
            rater_id="",
            already=sum(part.already for part in parts),
            new=sum(part.new for part in parts),
            cost=(least, most) if is_known else None,
            expected=likely if is_known else None,
            warnings=tuple(dict.fromkeys(note for part in parts for note in part.warnings)),
        )

    @property
    def unpriced(self) -> dict[str, str]:
        """The models that are still to be asked at prices that are not known, and the first; by the
        names under which a price is looked up, without an address.
        """
        unknown = (_ADDRESS.split(part.rater_id)[0] for _, part in self.steps if part.cost is None)
        models = [*dict.fromkeys(unknown)]
        return {"models": ", ".join(models), "first": models[0]} if models else {}

    @property
    def lines(self) -> list[Line]:
        """The price, the time and the work, as a table and sentences."""

        def row(name: str, part: GraderForecast) -> list[str]:
            prices = part.cost and (part.cost[0], part.expected or 0.0, part.cost[1])
            dollars = [f"${usd:.2f}" for usd in prices] if prices else ["?"] * 3
            what = written(f"reproduce.{name}")
            return [what, part.rater_id, str(part.already), str(part.new), *dollars]

        names = ("step", "who", "known", "to_ask", "least", "expected", "most")
        columns = [written(f"reproduce.{name}") for name in names]
        in_batches = "grades" if self.batch else ""
        live = sum(each.new for name, each in self.steps if name != in_batches)
        minutes = math.ceil(live / self.concurrency * _SECONDS / 60)
        pace = {"minutes": minutes, "concurrency": self.concurrency, "seconds": _SECONDS}
        return [
            ("", columns, [row(*each) for each in (*self.steps, ("whole", self.whole))]),
            *dict.fromkeys(each.basis for _, each in self.steps if each.basis),
            *([written("reproduce.price_unknown", **self.unpriced)] if self.unpriced else []),
            written("reproduce.time", **pace),
            *([written("reproduce.batch")] if self.whole.new > live else []),
            *([written("reproduce.spent", spent=self.spent)] if self.spent else []),
            *self.work,
            *self.whole.warnings,
        ]


@dataclass(frozen=True)
class Collected:
    """The outcome of a run: the summaries of its steps, and subjects without all responses."""

    responses: Sequence[graders.ResponseSummary]
    grades: RunSummary | None
    notes: Sequence[str]

    @property
    def run(self) -> RunSummary:
        """The summary of all models."""
        grades = self.grades or RunSummary(())
        over_budget = grades.over_budget or any(each.over_budget for each in self.responses)
        return RunSummary((*(each.run for each in self.responses), *grades.graders), over_budget)


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
        if wanted.paraphraser:
            _check_rewritten(wanted)
        asked = filter(None, (*wanted.asked, wanted.paraphraser))
        writers = [graders.parse_spec(name, providers) for name in asked]
        for spec in writers:
            if spec.speaks == "baseline":
                raise InputError(f"{spec.text} writes no responses; name a model as --subject")
        grader_specs = [graders.parse_spec(name, providers) for name in wanted.graders]
        _add_filler(study, wanted)
        steps: list[Step] = []
        if wanted.paraphraser and not wanted.paraphrases.is_file():
            with _present(wanted.paraphrases_folder) as rewriting:
                answers = rewriting and ResponseLog(rewriting.store).answered(wanted.paraphraser)
                answered = len(answers or ())
            priced = graders.forecast_responses(study, wanted.paraphraser, "all")
            propositions = study.store.pairs()["proposition"].nunique()
            priced = _scaled(priced, propositions, tries=wanted.design["tries"])
            steps.append(("paraphrases", _scaled(priced, priced.new - answered, answered)))
        prompts = set(wanted.chosen(real)["pair_id"]) if real else set()
        for name in wanted.asked:
            answers = real and ResponseLog(real.store).answered(name)
            answered = sum(prompt in prompts for prompt, _ in answers or ())
            priced = graders.forecast_responses(study, name, wanted.scope)
            steps.append(("responses", _scaled(priced, priced.new - answered, answered)))
        if wanted.graders:
            options = wanted.grading()
            kept = (
                real and real.subjects() and graders.forecast(real, wanted.graders, options, most=1)
            )
            graded = {each.rater_id: each.already for each in kept or ()}
            for each in graders.forecast(study, wanted.graders, options, batch=batch, most=_PRICED):
                answered = graded.get(each.rater_id, 0)
                steps.append(("grades", _scaled(each, each.new - answered, answered)))
        work, spent = _work(study, wanted), _spent(real, wanted)
        whole = Forecast(steps, work, spent, limits.concurrency, batch)
        if ready:
            if limits.budget is not None and whole.unpriced:
                raise InputError(written("reproduce.no_price", **whole.unpriced))
            graders.check_ready(study, writers, budget=limits.budget)
            graders.check_ready(study, grader_specs, budget=limits.budget, batch=batch)
    return whole


@contextmanager
def opened(wanted: Reproduction) -> Iterator[Study]:
    """Open the study, which is made unless it is there, with all responses of the file."""
    folder = wanted.folder
    if not (folder / study_toml.FILE_NAME).is_file():
        if wanted.paraphraser:
            wanted = replace(wanted, prompts=wanted.paraphrases)
        make_study(folder, wanted.plan())
    with open_study(folder) as study:
        if wanted.responses is not None:
            rubrics = study.rubrics.values()
            table = read_responses(wanted.responses, study.store.pairs(), rubrics)
            if new := study.store.add_responses(table):
                note(study, "import", wanted.responses.name, f"responses: {new}")
        changes = {**wanted.models}
        if not study.config.published:
            changes[""] = {"published": wanted.source}
        with changing_settings(study):
            study_toml.change_config(folder, changes)
    with open_study(folder) as study:
        yield study


def collect(study: Study, wanted: Reproduction, limits: RequestLimits, show: Showing) -> Collected:
    """Ask subjects, then graders, for all that is missing. One budget holds for all that is asked,
    now and in earlier runs. Graders wait for subjects without all of their responses.
    """
    wanted = wanted.resolved(study.config.providers)
    limits = replace(limits, spent=_spent(study, wanted))
    responses: list[graders.ResponseSummary] = []
    grades = None
    for subject in wanted.asked:
        with show(subject) as progress:
            summary = graders.respond(study, subject, wanted.scope, limits, progress)
        limits = replace(limits, spent=float(summary.spent))
        responses.append(summary)
        if summary.over_budget:
            break
    short = _uneven(study, wanted)
    waits = {*wanted.asked} & {*short}
    if wanted.graders and not any(each.over_budget for each in responses):
        by_kind = study.units_by_kind(wanted.scope)
        units = {u for all_ in by_kind.values() for u in all_ if parse_unit_id(u)[1] not in waits}
        options = replace(wanted.grading(), units=units) if waits else wanted.grading()
        if units:
            names, batch = wanted.graders, wanted.batch
            with show(written("reproduce.grades")) as progress:
                grades = graders.grade(study, names, options, limits, progress, batch=batch)
    return Collected(responses, grades, [*short.values()])


def _check_sent(wanted: Reproduction) -> None:
    """Raise InputError where the settings may not send what they name. Trust in the file that was
    given is trust in the folders that take it over.
    """
    given, kept = wanted.settings, wanted.folder / study_toml.FILE_NAME
    read: list[tuple[Path, Any]] = []
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


@contextmanager
def _present(folder: Path) -> Iterator[Study | None]:
    """Open the study in a folder; None where there is none."""
    if not (folder / study_toml.FILE_NAME).is_file():
        yield None
        return
    with open_study(folder) as study:
        yield study


@contextmanager
def _rehearsed(wanted: Reproduction) -> Iterator[tuple[Study, Study | None]]:
    """Yield the study as it would be made, in a place of its own that is removed, with the
    responses that are there already; and the one in the folder, if there is one.
    """
    folder = wanted.folder
    present = (folder / study_toml.FILE_NAME).is_file()
    if not present:
        unused_folder(folder)
    with tempfile.TemporaryDirectory(prefix="evenhand-reproduce-") as home:
        there = Path(home) / "study"
        if wanted.paraphraser:
            file = wanted.paraphrases
            prompts = file if file.is_file() else _filler_paraphrases(wanted, Path(home))
            wanted = replace(wanted, prompts=prompts)
        create_study(there, wanted.plan())
        text = ((folder if present else there) / study_toml.FILE_NAME).read_text("utf-8-sig")
        text = study_toml.with_values(text, {"": {"store": "study.db"}, **wanted.models})
        (there / study_toml.FILE_NAME).write_text(text, "utf-8")
        if present:
            shutil.rmtree(there / RUBRICS_FOLDER)
            shutil.copytree(folder / RUBRICS_FOLDER, there / RUBRICS_FOLDER)
        with open_study(there) as study, _present(folder) as real:
            sample = study.store.sample()
            # Every subject of a file has to have answered each sampled prompt.
            for subject, answered in study.store.answered().groupby("subject"):
                missing = [pair for pair in sample if pair not in set(answered["pair_id"])]
                if missing:
                    about = {"file": wanted.responses, "subject": subject, "first": missing[0]}
                    numbers = {"missing": len(missing), "sampled": len(sample)}
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


def _add_filler(study: Study, wanted: Reproduction) -> None:
    """Give each subject that is asked a response of the usual length where it has none yet."""
    pairs, answered = wanted.chosen(study), study.store.answered()
    there = set(zip(answered["subject"], answered["pair_id"], strict=True))
    filler = " ".join(["words"] * USUAL_WORDS)
    rows = [
        {"pair_id": pair, "side": side, "subject": subject, "response": filler}
        for subject in wanted.asked
        for pair in pairs["pair_id"]
        if (subject, pair) not in there
        for side in sides_of(pairs)
    ]
    if rows:
        study.store.add_responses(pd.DataFrame(rows))


def _spent(real: Study | None, wanted: Reproduction) -> float:
    """Return what the study has cost so far, its paraphrases included."""
    with _present(wanted.paraphrases_folder) as paraphrasing:
        return sum(spent_so_far(each.store) for each in (real, paraphrasing) if each is not None)


def _work(study: Study, wanted: Reproduction) -> list[Line]:
    """Say how many prompts are sampled, what people have to do, and what that is to be paid."""
    preview, config = preview_of(study), study.config
    counts = {"total": preview.total, "noun": preview.noun}
    work = [written("new.sampled", sampled=preview.sampled, seed=config.seed, **counts)]
    if wanted.sample is None and preview.total < (usual := wanted.design["sample"]):
        work.append(written("reproduce.few", usual=usual, **counts))
    labels = sum(each.judgments for each in preview.load.rubrics)
    hours = sum(each.hours for each in preview.load.rubrics)
    raters = config.annotation.raters_per_unit
    work.append(written("reproduce.work", labels=labels, hours=hours, raters=raters))
    if pay := config.pay:
        most = config.annotation.units_per_rater
        people = math.ceil(labels / most) if most else 0
        owed = {"amount": pay.complete, "currency": pay.currency, "people": people}
        name = "pay" if most else "pay_each"
        work.append(written(f"reproduce.{name}", total=people * pay.complete, **owed))
    return [*work, *preview.precision]


def _uneven(study: Study, wanted: Reproduction) -> dict[str, str]:
    """Say of each subject without a response to every prompt how many it has, and of those that
    are asked that graders wait for them.
    """
    pairs, answered = wanted.chosen(study), study.store.answered()
    have = answered[answered["pair_id"].isin(set(pairs["pair_id"]))]
    counts = have.groupby("subject")["pair_id"].nunique()
    short = {}
    for subject in dict.fromkeys([*wanted.asked, *study.subjects()]):
        if (number := int(counts.get(subject, 0))) < len(pairs):
            about = {"subject": subject, "have": number, "all": len(pairs)}
            is_asked = subject in wanted.asked
            short[subject] = written("reproduce.waits" if is_asked else "reproduce.short", **about)
    return short


# Paraphrases: a small study of its own, in which a model "responds" to each proposition with other
# wordings, so that it is resumed, paid and never asked twice like any other.


def _rewriting_plan(wanted: Reproduction) -> StudyPlan:
    return StudyPlan(
        propositions=wanted.prompts,
        wordings=wanted.shipped("rewrite"),
        rubrics=usual_rubrics(propositions=True),
        raters_per_unit=1,
    )


def paraphrase(wanted: Reproduction, limits: RequestLimits, show: Showing) -> RunSummary | None:
    """Have a model write the paraphrases of every proposition into a file of propositions, unless
    they are there; an answer that is no list of six is asked for again, within the budget and a few
    times in a run. Return the run where the model was stopped early. Raises InputError where
    answers are still missing.
    """
    made = (wanted.folder / study_toml.FILE_NAME).is_file() or wanted.paraphrases.is_file()
    if made or not wanted.paraphraser:
        return None
    home, table = wanted.paraphrases_folder, read_table(wanted.prompts)
    if not (home / study_toml.FILE_NAME).is_file():
        create_study(home, _rewriting_plan(wanted))
    study_toml.change_config(home, wanted.models)
    number, tries = wanted.design["paraphrases"], wanted.design["tries"]
    with open_study(home) as study, show(written("reproduce.paraphrases")) as progress:
        pairs = study.store.pairs()
        statements = dict(zip(pairs["prompt_a"], pairs["statement"], strict=True))

        def fault(prompt: str, answer: str) -> str:
            is_whole = len(_rewritten(answer, statements[prompt])) == number
            return "" if is_whole else f"not_{number}_paraphrases"

        for _ in range(tries):
            limits = replace(limits, spent=_spent(None, wanted))
            model = wanted.paraphraser
            summary = graders.respond(study, model, "all", limits, progress, fault=fault)
            run, ended_early = summary.run, summary.over_budget or summary.run.stopped
            if ended_early or run.scored == run.planned:
                break
        answers = study.store.responses()
    if ended_early:
        return RunSummary((run,), summary.over_budget)
    named = pairs.set_index("pair_id")
    texts = {
        named["proposition"][pair]: _rewritten(answer, named["statement"][pair])
        for pair, answer in zip(answers["pair_id"], answers["response"], strict=True)
    }
    missing = [name for name in table["id"] if name not in texts]
    if missing:
        about = {"model": wanted.paraphraser, "missing": len(missing), "first": missing[0]}
        raise InputError(written("reproduce.few_paraphrases", wanted=number, tries=tries, **about))
    atomic_write(wanted.paraphrases, _with_paraphrases(table, texts).encode())
    return None


def _check_rewritten(wanted: Reproduction) -> None:
    """Raise InputError unless the paraphrases of an earlier run, if there are any, are those of
    the same propositions by the same model, named in full.
    """
    home = wanted.paraphrases_folder
    if not (home / study_toml.FILE_NAME).is_file():
        unused_folder(home)
        return
    with open_study(home) as study:
        pairs, models = study.store.pairs(), study.subjects()
    columns = ["proposition", "statement"]
    plan = _rewriting_plan(wanted).read_prompts()
    if not plan[columns].equals(pairs[columns]) or set(models) - {wanted.paraphraser}:
        about = {"folder": home, "model": ", ".join(models)}
        raise InputError(written("reproduce.other_paraphrases", **about))


def _rewritten(answer: str, original: str = "") -> list[str]:
    """Return the different texts of an answer's list, numbered from 1, without the original. Text
    before the list, or after it and a blank line, is not part of it; an answer in which a
    number is missing, or a text may go on in another line, has none.

    >>> _rewritten("Sure! Here they are\\n1. One.\\n\\n2. **Two.**\\n3. One.", "two.")
    ['One.']
    >>> _rewritten("1. One\\nand more.\\n2. Two.")
    []
    """
    lines = answer.splitlines()
    matches = ((at, _NUMBERED.fullmatch(line.rstrip())) for at, line in enumerate(lines))
    numbered = {at: match for at, match in matches if match}
    if [int(match[1]) for match in numbered.values()] != [*range(1, len(numbered) + 1)]:
        return []
    within = lines[min(numbered, default=0) : max(numbered, default=-2) + 2]
    if sum(bool(line.strip()) for line in within) > len(numbered):
        return []
    marked = ((_MARKED.fullmatch(match[2]), match[2]) for match in numbered.values())
    texts = [inner[2].strip() if inner else text for inner, text in marked]
    if any(text.endswith(":") for text in texts):
        return []
    return [text for text in dict.fromkeys(texts) if text.casefold() != original.strip().casefold()]


def _with_paraphrases(table: pd.DataFrame, texts: Mapping[str, Sequence[str]]) -> str:
    """Return a propositions file in which each proposition is followed by its paraphrases."""
    rows = [
        {**row, "text": text}
        for row in table.to_dict("records")
        for text in dict.fromkeys([row["text"], *texts[row["id"]]])
    ]
    return pd.DataFrame(rows).to_csv(index=False)


def _filler_paraphrases(wanted: Reproduction, home: Path) -> Path:
    """Write a propositions file with fillers for the paraphrases to come."""
    table = read_table(wanted.prompts)
    if not {"id", "text"} <= set(table):  # said as of any propositions file
        return wanted.prompts
    if table["id"].duplicated().any():
        raise InputError(written("reproduce.has_paraphrases", file=wanted.prompts.name))
    numbers = range(1, wanted.design["paraphrases"] + 1)
    rows = zip(table["id"], table["text"], strict=True)
    texts = {name: [f"{text} ({n})" for n in numbers] for name, text in rows}
    path = home / "propositions.csv"
    path.write_text(_with_paraphrases(table, texts), "utf-8")
    return path
