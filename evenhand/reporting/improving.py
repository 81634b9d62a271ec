"""A better grader for a study, and the proof that it is: `evenhand improve`.

Labelled clusters are split once, candidates are graded round by round on *choose*, and the best of
them meets *prove* (`analysis.verdicts.versions`). Grades are stored like any others, so a run
that was killed or ran out of money goes on where it was.
"""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.analysis.bootstrap.bounds import level_of_reading
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix, with_weights
from evenhand.analysis.verdicts import versions
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.versions import Choice, Gain, Part
from evenhand.errors import InputError
from evenhand.graders import running
from evenhand.graders.injection import AuditOptions, audit_in_rounds, forecast_audit
from evenhand.graders.options import GradingOptions, RequestLimits
from evenhand.graders.providers import parse_spec
from evenhand.reporting import suggestions
from evenhand.reporting.analysing import audits_of
from evenhand.reporting.load import clusters_of, from_study, looked_at
from evenhand.reporting.panel import Line, Shown
from evenhand.reporting.suggestions import LearnUnit, Proposed, Start
from evenhand.rubrics import Instructions, JudgePrompt, PromptText, Rubric, read_own_words
from evenhand.study import Study
from evenhand.study.store.logs import decisions as log
from evenhand.study.store.logs.decisions import ProofReading, ProposalAttempt, Tried, look_numbers
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.workspace import PROMPTS_FOLDER
from evenhand.texts import written

AUDITED = 20
"""Units of the injection audit of the best candidate: a grader that obeys an attack is found with
eight.
"""


@dataclass(frozen=True, kw_only=True)
class ImproveOptions:
    """The user's options: the old `grader` of a `rubric` and how it is asked; `candidates`, a
    folder of judge prompts made elsewhere; `others`, graders to try as the old one is asked; how
    many `proposals` of instructions GEPA may have written, and by which model (`proposer`, "": the
    old grader's). Where the old one's labels were imported, the first of the `others` is asked in
    its place.
    """

    rubric: str
    grader: str
    grading: GradingOptions = field(default_factory=GradingOptions)
    candidates: Path | None = None
    others: Sequence[str] = ()
    proposals: int = 0
    proposer: str = ""


@dataclass(frozen=True)
class Candidate:
    """A way of grading: the grader's name as typed, how it is asked, and its rater id. `origin`
    says where it comes from: a file's name, another grader or a proposal. One whose labels were
    imported cannot be asked.
    """

    rater_id: str
    origin: str
    grader: str
    grading: GradingOptions
    is_imported: bool = False

    def on(self, units: Collection[str]) -> tuple[str, GradingOptions]:
        """Return what it is asked about these units."""
        return self.grader, replace(self.grading, units=frozenset(units), scope="all")

    @property
    def audit(self) -> AuditOptions:
        """Its injection audit: the first units of that of `audit`."""
        return AuditOptions(self.grader, AUDITED, self.grading)


@dataclass(repr=False)
class Improved(Shown):
    """The result: parts' sizes, display names, the choice, the proof of the best candidate (None
    where none was chosen, its `chance` of a proof was too small, or `no_level` was left for one)
    and the ordinary verdict on a better one, from the same labels. `run` sums up what was asked; if
    it ended early, the same command continues it. `remarks` are on candidates that were not
    made; `gives_way` is what an injection audit of the best one shows, where it fails;
    `known_before` says that the best one had grades on the rubric before it was tried.
    """

    rubric: str
    old: Candidate
    candidates: Sequence[Candidate]
    parts: Mapping[str, int]
    names: Mapping[str, str] = field(default_factory=dict)
    choice: Choice | None = None
    chance: float = math.nan
    no_level: bool = False
    gain: Gain | None = None
    verdict: Verdict | None = None
    run: running.RunSummary = field(default_factory=lambda: running.RunSummary(()))
    difference: str = ""
    command: str = ""
    remarks: Sequence[str] = ()
    gives_way: str = ""
    known_before: bool = False

    @property
    def best(self) -> Candidate | None:
        """The candidate that was chosen."""
        wanted = self.choice.best if self.choice else ""
        return next((trial for trial in self.candidates if trial.rater_id == wanted), None)

    @property
    def outcome(self) -> str:
        """The outcome: better, not_shown, worse; "" where the run ended early."""
        return self.gain.outcome if self.gain else "not_shown" if self.choice else ""

    @property
    def sentence(self) -> str:
        """The outcome in words, with bounds and price; "" where the run ended early."""
        if self.choice is None:
            return ""
        price = written("improve.price", spent=float(self.run.spent))
        old = self.names.get(self.old.rater_id, self.old.rater_id)
        if self.best is None:
            none = written("improve.none_chosen", old=old, count=len(self.candidates))
            return f"{written('improve.not_shown')} {none} {price}"
        new = self.names.get(self.best.rater_id, self.best.rater_id)
        if self.gain is None and not self.gives_way:
            sizes = {"clusters": self.parts.get("prove", 0), "chance": self.chance}
            about = {"new": new, "old": old, "gain": self.choice.gain, **sizes}
            why = written("improve.unread" if self.no_level else "improve.futile", **about)
            return f"{written('improve.not_shown')} {why} {price}"
        known = written("improve.known_before", new=new) if self.known_before else ""
        proof = self.gain.sentence if self.gain else self.gives_way
        verdict = self.verdict["sentence"] if self.verdict else ""
        head = written("improve.compared", new=new, old=old)
        return " ".join(filter(None, (head, proof, known, price, verdict)))

    @property
    def lines(self) -> list[Line]:
        """The rounds of the choice, the outcome, and the difference of the texts."""
        sizes = {part: self.parts.get(part, 0) for part in ("learn", "choose", "prove")}
        lines: list[Line] = [written("improve.parted", **sizes), *self.remarks]
        if self.choice is not None:
            rounds = self.choice.rounds
            columns = [written("improve.grader"), written("improve.origin")]
            columns += [written("improve.kappa_on", clusters=stage.clusters) for stage in rounds]
            origins = {trial.rater_id: trial.origin for trial in (self.old, *self.candidates)}
            rows = [
                [self.names.get(key, key), of, *(_kappa(stage.scores.get(key)) for stage in rounds)]
                for key, of in origins.items()
            ]
            lines.append((written("improve.choice"), columns, rows))
            if self.gain is not None:
                lines.append(written("improve.on_choose", gain=self.choice.gain))
            lines.append(self.sentence)
        if self.difference:
            lines.append(self.difference)
        if self.outcome == "better":
            lines.append(written("terminal.next", command=self.command))
        return lines


def _kappa(score: Any) -> str:
    """Return a candidate's kappa in a round; "" where it was left behind before."""
    return "" if score is None else "-" if math.isnan(score.kappa) else f"{score.kappa:.2f}"


def improve(
    study: Study,
    options: ImproveOptions,
    limits: RequestLimits,
    progress: running.Progress | None = None,
    *,
    done_by: str = "",
) -> Improved:
    """Split the labels, try the candidates, choose the best and prove its gain. Safe to interrupt
    and to run again: the same command goes on.

    Raises InputError, with nothing asked, where there are too few labels or no candidates, where a
    candidate's text changes the question or the options, where no gain could be proved, and as
    `grade` does.
    """
    with running.only_runner(study):
        rounds = running.Rounds.begin(study, limits, progress)
        trial = Trial(study, options)
        trial.check_provable()
        trial.note_parts(done_by)
        return _Run(trial, rounds, done_by).improved(rounds)


def provable(study: Study, options: ImproveOptions) -> str:
    """Return which gain a proof can show, before anything is asked. Raises InputError as `improve`
    does.
    """
    trial = Trial(study, options)
    trial.check_provable()
    clusters = len(trial.clusters_in("prove"))
    gain = versions.provable_gain(trial.labels_elsewhere(), clusters, trial.next_level)
    return "" if math.isnan(gain) else written("improve.provable", clusters=clusters, gain=gain)


def labels_to_learn(study: Study, options: ImproveOptions, *, done_by: str = "") -> pd.DataFrame:
    """Return a row for each labelled unit of *learn*, those on which the old grader differs from
    most people first: `unit_id`, the texts, people's `labels` and their `majority`, the old
    `grader`'s label and whether it `agrees`, people's `reasons` and the `words` that they marked.
    Labels are split and the parts stored if they were not yet. Raises InputError as `improve`
    does.
    """
    trial = Trial(study, options)
    table = suggestions.table_of(trial.units_to_learn())
    trial.note_parts(done_by)
    return table


def forecast_improving(study: Study, options: ImproveOptions) -> list[running.GraderForecast]:
    """Forecast the requests and their cost, without network or key, as if candidates were left
    behind from the last one on. Writes nothing. Raises InputError as `improve` does.
    """
    trial = Trial(study, options)
    given = {candidate.rater_id for candidate in trial.candidates}
    asked: list[running.GraderForecast] = []
    if trial.proposals:  # candidates that cost as much as those that may come of them are added
        asked, proposed = suggestions.forecast_gepa(study, trial.start(), trial.proposer)
        trial.add(proposed)
    made = {candidate.rater_id for candidate in trial.candidates} - given
    learn = trial.clusters_in("learn") if options.proposals else []
    choose = trial.clusters_in("choose")
    prove = trial.clusters_in("prove")
    sizes = versions.round_sizes(len(choose), len(trial.candidates))
    most: Counter[str] = Counter()
    left = list(trial.candidates)
    for size in sizes:
        for run in left:
            most[run.rater_id] = size
        left = left[: math.ceil(len(left) / 2)]
    wanted = trial.asked(trial.old, [*learn, *choose, *prove])
    of_old = len(wanted)
    for at, candidate in enumerate(trial.candidates):
        last = prove if at == 0 else []
        if candidate.rater_id in made:
            last = [*last, *learn]  # where GEPA tries each of them
        wanted += trial.asked(candidate, [*choose[: most[candidate.rater_id]], *last])
    forecasts = [running.forecast_of(study, task) for task in running.planned(study, wanted)]
    for at, candidate in enumerate(trial.candidates, start=of_old):
        if candidate.rater_id in made:  # words that are not known yet
            forecasts[at] = replace(forecasts[at], rater_id=candidate.origin, sample=None)
    audits = []
    if reworded := [candidate for candidate in trial.candidates if trial.is_reworded(candidate)]:
        (audit,) = forecast_audit(study, reworded[-1].audit)
        name = written("improve.audited", grader=written("improve.best"))
        audits.append(replace(audit, rater_id=name, sample=None))
    return [*forecasts[:of_old], *asked, *forecasts[of_old:], *audits]


class Trial:
    """A study's labels, split, with the old grader and the candidates. People's labels are those
    at its beginning: what they label meanwhile waits for the next run. Raises InputError as
    `improve` does, in `graders` where it is about the candidates.
    """

    def __init__(self, study: Study, options: ImproveOptions) -> None:
        if options.rubric not in study.rubrics:
            rubrics = ", ".join(study.rubrics)
            raise InputError(f"the study has no rubric {options.rubric!r}; it has {rubrics}")
        self.study = study
        self.rubric = study.rubrics[options.rubric]
        if not self.rubric.kind.is_single:
            raise InputError(written("improve.several", rubric=self.rubric.name))
        self._options = options
        self._grading = replace(options.grading, rubrics=[self.rubric.name])
        self._made: list[tuple[str, GradingOptions, str]] = []
        ratings = study.ratings()
        self._first = ratings[ratings["rubric"] == self.rubric.name]
        self._graded_first = set(
            self._first.loc[self._first["rater_kind"] == "model", "rater_id"].tolist()
        )
        self.asker = options.grader
        """The grader that is asked with other words: the old one, or if its labels were imported
        the first to be tried in its place; "" where there is none.
        """
        if options.grader in self._graded_first:
            try:
                parse_spec(options.grader, study.config.providers)
            except InputError:  # as that of imported labels, which no provider knows
                self.asker = next(iter(options.others), "")
        self.proposals = options.proposals
        """How many proposals GEPA may have written."""
        self.proposer = options.proposer or self.asker
        """The model that writes proposals."""
        if self.proposals not in range(suggestions.MOST_PROPOSALS + 1):
            raise InputError(written("improve.count_proposals", most=suggestions.MOST_PROPOSALS))
        if self.proposals:
            if self.rubric.prompt or not self.rubric.kind.listed:
                raise InputError(written("improve.no_proposals", rubric=self.rubric.name))
            running.parse_proposer(study, self.proposer)
            if find_spec("gepa") is None:
                raise InputError(written("improve.no_gepa"))
        dataset = from_study(study)
        log.check_clusters(study.store, self.rubric.name, dataset.settings.cluster)
        # Here all grades count, those that led to an earlier winner too: it is compared on others.
        self._scale = replace(dataset.scales[self.rubric.name], withheld={})
        scales = {self.rubric.name: self._scale}
        self._dataset = replace(dataset, ratings=self._first, scales=scales)
        self.rule = rule = dataset.decision
        self.clusters = clusters_of(dataset)
        ratings = self.ratings()
        strata = versions.strata_of(ratings, self.clusters)
        commonest = versions.commonest_label(ratings)
        needed = versions.clusters_to_part(strata, commonest, rule.min_clusters, rule.min_rarer)
        self._known_parts = log.parts_of(study.store, self.rubric.name)
        if needed and not self._known_parts:
            about = {"rubric": self.rubric.name, "have": len(strata), "needed": needed}
            raise InputError(written("improve.too_few", **about))
        order = {"seed": study.config.seed, "rubric": self.rubric.name}
        self.parts: dict[str, Part] = versions.part_clusters(strata, self._known_parts, **order)  # type: ignore[arg-type]
        people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
        self.units: dict[str, list[str]] = {}
        """The units that people labelled, by cluster."""
        for unit in sorted(set(people["unit_id"])):
            if cluster := self.clusters.get(unit):
                self.units.setdefault(cluster, []).append(unit)

    @cached_property
    def graders(self) -> list[Candidate]:
        """The old grader, then the candidates."""
        return list(self._candidates(self._options, self._made))

    def _candidates(
        self, options: ImproveOptions, made: Sequence[tuple[str, GradingOptions, str]]
    ) -> Iterator[Candidate]:
        """Yield the old grader, then candidates that differ from it and from one another: `made`
        are those that GEPA proposed. The asker reads all other words.
        """
        old, grading = options.grader, self._grading
        ways: list[tuple[str, GradingOptions, str]] = []
        raters: set[str] = set()
        if self.asker == old:
            ways.append((old, grading, written("improve.old")))
        elif not self.asker:
            raise InputError(written("improve.imported", grader=old))
        else:
            yield Candidate(old, written("improve.old"), old, grading, is_imported=True)
            raters.add(old)
        files = sorted(options.candidates.glob("*.toml")) if options.candidates else []
        if options.candidates and not files:
            raise InputError(written("improve.no_files", folder=options.candidates))
        for file in files:
            asked = replace(grading, prompt=(prompt := read_own_words(file)))
            if isinstance(prompt, JudgePrompt):
                if missing := missing_from(prompt, self.rubric):
                    raise InputError(written("improve.changed", file=file.name, missing=missing))
                asked = replace(asked, method="")
            ways.append((self.asker, asked, file.name))
        ways += [(other, grading, written("improve.other_grader")) for other in options.others]
        ways += made
        for grader, asked, origin in ways:
            rater = self._rater(grader, asked)
            if rater not in raters:
                yield Candidate(rater, origin, grader, asked)
            raters.add(rater)
        if len(raters) < 2 and not options.proposals:
            raise InputError(written("improve.no_candidates"))

    def _rater(self, grader: str, asked: GradingOptions) -> str:
        """Return the rater id of a grader that is asked in this way."""
        (task,) = running.planned(self.study, [(grader, asked)])
        return task.rater_id

    @property
    def old(self) -> Candidate:
        return self.graders[0]

    @property
    def candidates(self) -> list[Candidate]:
        return self.graders[1:]

    def _counted(self) -> pd.DataFrame:
        """Return the rubric's ratings that count: people's as they were, graders' as they are."""
        now = self.study.ratings()
        is_graded = (now["rubric"] == self.rubric.name) & (now["rater_kind"] == "model")
        people = self._first[self._first["rater_kind"] != "model"]
        both = pd.concat([people, now[is_graded]], ignore_index=True)
        both = both[both["unit_id"].isin(self.clusters.keys())]
        return replace(self._dataset, ratings=both).counted(self.rubric.name)

    def units_to_learn(self) -> list[LearnUnit]:
        """Return the units to learn from, with the old grader's labels."""
        clusters, old = self.clusters_in("learn"), self._options.grader
        if self.asker == old:  # without a look at the candidates
            old = self._rater(old, self._grading)
        ratings, graded = self._ratings_of([], clusters), self.grades_of(old, clusters)
        return suggestions.units_to_learn(self.study, self.rubric.name, ratings, old, graded)

    def start(self) -> Start:
        """Return what GEPA begins with."""
        prompt = self.old.grading.prompt
        words = prompt.instructions if isinstance(prompt, Instructions) else ""
        units, old = self.units_to_learn(), self.old.rater_id
        return Start(self.rubric, old, words or self.rubric.instructions, units, self.proposals)

    def add(self, proposed: Proposed) -> None:
        """Add candidates that read these words, asked as the old grader is."""
        self._made = [self._way(*word) for word in proposed.words]
        del self.graders

    def reworded(self, words: Instructions) -> Candidate:
        """Return the old grader with these words, as GEPA tries it."""
        alone = replace(self._options, candidates=None, others=())
        way = self._way(words, written("improve.while_learning"))
        _, candidate = self._candidates(alone, [way])
        return candidate

    def _way(self, words: Instructions, origin: str) -> tuple[str, GradingOptions, str]:
        grading = self.old.grading
        method = "" if isinstance(grading.prompt, JudgePrompt) else grading.method
        return self.asker, replace(grading, prompt=words, method=method), origin

    def is_reworded(self, candidate: Candidate) -> bool:
        """Return True if a candidate reads other words than the old grader."""
        return candidate.grading.prompt not in (None, self.old.grading.prompt)

    def ratings(self) -> pd.DataFrame:
        """The rubric's ratings that count; of people only those of the declared reference, where
        there is one.
        """
        ratings = self._counted()
        if reference := self.rule.reference:
            is_reference = ratings["rater_id"] == reference
            kinds = ratings["rater_kind"].where(~is_reference, "human")
            is_left = (ratings["rater_kind"] != "human") | is_reference
            ratings = ratings.assign(rater_kind=kinds)[is_left]
        return ratings

    def note_parts(self, done_by: str) -> None:
        """Write down the parts of clusters that had none."""
        new = {unit: part for unit, part in self.parts.items() if unit not in self._known_parts}
        if new:
            cluster = self._dataset.settings.cluster
            log.note_parts(self.study.store, self.rubric.name, new, cluster, done_by)

    def note_candidates(self, done_by: str, more: Sequence[Candidate] = ()) -> None:
        """Write down the candidates: once their requests can be sent, and before they are; and
        `more` that are tried while it learns.
        """
        store, rubric, old = self.study.store, self.rubric.name, self.old.rater_id
        log.note_old(store, rubric, old, is_new=old not in self._graded_first, done_by=done_by)
        tried = {
            candidate.rater_id: Tried(
                origin=candidate.origin,
                is_new=candidate.rater_id not in self._graded_first,
                has_own_text=self.is_reworded(candidate),
            )
            for candidate in (*self.candidates, *more)
        }
        log.note_candidates(store, rubric, tried, done_by)

    def clusters_in(self, part: Part) -> list[str]:
        """Return the labelled clusters of a part, in the order in which they are used."""
        clusters = [unit for unit in self.units if self.parts[unit] == part]
        return versions.in_order(clusters, seed=self.study.config.seed, rubric=self.rubric.name)

    def units_in(self, clusters: Collection[str]) -> set[str]:
        """Return the labelled units of these clusters."""
        return {unit for cluster in clusters for unit in self.units[cluster]}

    def asked(
        self, candidate: Candidate, clusters: Sequence[str]
    ) -> list[tuple[str, GradingOptions]]:
        """Return what a grader is asked on these clusters; nothing if its labels were imported."""
        return [] if candidate.is_imported else [candidate.on(self.units_in(clusters))]

    def labels_of(self, raters: Collection[str], clusters: Collection[str]) -> LabelMatrix:
        """Return the labels of people and these graders on these clusters, and on no other."""
        ratings, ids = self._ratings_of(raters, clusters), sorted(self.units_in(clusters))
        table = pd.DataFrame({"unit_id": ids, "cluster_id": [self.clusters[u] for u in ids]})
        if INCLUSION in (units := self._dataset.units):
            table[INCLUSION] = table["unit_id"].map(units.set_index("unit_id")[INCLUSION])
        weighted = with_weights(table, ratings)
        return encode(combine_readings(ratings, self._scale), self._scale, weighted, "pair")

    def _ratings_of(self, raters: Collection[str], clusters: Collection[str]) -> pd.DataFrame:
        """Return the ratings of people and these graders on these clusters."""
        ratings = self.ratings()
        wanted = (ratings["rater_kind"] == "human") | ratings["rater_id"].isin(list(raters))
        return ratings[wanted & ratings["unit_id"].isin(self.units_in(clusters))]

    def grades_of(self, rater: str, clusters: Collection[str]) -> dict[str, str]:
        """Return a grader's labels by unit, as they are compared with people's."""
        ratings = self._ratings_of([rater], clusters)
        readings = combine_readings(ratings[ratings["rater_id"] == rater], self._scale)
        return {
            readings.units[unit]: self._scale.categories[code]
            for unit, code in zip(readings.unit, readings.code, strict=True)
            if code >= 0
        }

    def labels_elsewhere(self) -> LabelMatrix:
        """Return the labels of people and the old grader outside the proof."""
        clusters = [*self.clusters_in("learn"), *self.clusters_in("choose")]
        return self.labels_of([self.old.rater_id], clusters)

    @property
    def next_level(self) -> float:
        """The level of the next reading of the labels for the proof; 0.0 where none is left."""
        read = log.contents_read(self.study.store, self.rubric.name)
        return level_of_reading(len(read) + 1, self.rule.looks)

    def check_provable(self) -> None:
        """Raise InputError where questions are open, and no gain could be proved whatever the
        candidates say: no level is left, or the old grader is hardly ever wrong.
        """
        run = _Run(self)
        with suppress(_Stopped):
            run.propose()
            run.choose()
            return
        if not (level := self.next_level):
            name = self.rubric.name
            readings = len(log.contents_read(self.study.store, name))
            raise InputError(written("improve.no_level_left", rubric=name, readings=readings))
        old, clusters = self.old.rater_id, len(self.clusters_in("prove"))
        if few := versions.too_few_errors(self.labels_elsewhere(), old, clusters, level):
            figures = {"errors": few[0], "clusters": clusters, "needed": few[1]}
            raise InputError(written("improve.impossible", old=old, **figures))

    def verdict_on(self, new: str, clusters: Collection[str], reading: int) -> Verdict | None:
        """Return the ordinary verdict on a grader from these clusters alone. It is a look of the
        study, as its report's on the same labels is; and since each `reading` may be of another
        grader, its level is at most that of a look of this number. The audit is of this run, too.
        """
        ratings, units = self._counted(), self.units_in(clusters)
        wanted = (ratings["rater_kind"] != "model") | (ratings["rater_id"] == new)
        present = looked_at(self.study, self._first)
        look = look_numbers(self.study.store, present, record=True).get(self.rubric.name, 1)
        looks = {self.rubric.name: max(look, reading)}
        attacked = attacked_table(self.study.store, self.study.accepted_hashes())
        dataset = replace(
            self._dataset,
            ratings=ratings[wanted & ratings["unit_id"].isin(units)],
            facts=replace(self._dataset.facts, looks=looks, attacked=attacked),
        ).named()
        verdicts = dataset.analyse().verdicts
        return next((case for case in verdicts if case["grader"] == dataset.call(new)), None)


def missing_from(prompt: JudgePrompt, rubric: Rubric) -> str:
    """Return the first of the rubric's question and its options' keys that a prompt does not have
    word for word; "" where it has all: people and graders are to be asked the same.
    """
    text = " ".join(f"{prompt.system} {prompt.template}".split())
    if (question := " ".join(rubric.question.split())) not in text:
        return question
    keys = (option.key for option in rubric.kind.listed)
    missing = (key for key in keys if not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text))
    return next(missing, "")


class _Stopped(Exception):  # noqa: N818  (nobody made an error)
    """A round of grading ended early, or would ask what it may not."""


class _Run:
    """One run: rounds of grading, and what has come of them. Without `rounds` nothing is asked or
    written down, and it stops at the first question that is open.
    """

    def __init__(
        self, trial: Trial, rounds: running.Rounds | None = None, done_by: str = ""
    ) -> None:
        self.trial, self.rounds, self.done_by = trial, rounds, done_by
        self._asked: dict[str, set[str]] = {}
        sizes = Counter[str](trial.parts[unit] for unit in trial.units)
        about = (trial.rubric.name, trial.old, trial.candidates, sizes, trial.study.config.names)
        self.found = Improved(*about)

    def improved(self, rounds: running.Rounds) -> Improved:
        """Choose, prove, and keep what came of it."""
        result, trial = self.found, self.trial
        try:
            if trial.proposals:
                spec, _ = running.parse_proposer(trial.study, trial.proposer)
                running.tariff_for(spec, rounds.budget, "", trial.study.config.prices)
                self.propose()
                trial.note_candidates(self.done_by)
            self.choose()
            if result.best is not None:
                clusters, best = trial.clusters_in("choose"), result.best.rater_id
                log.note_choice(trial.study.store, result.rubric, best, clusters, self.done_by)
                self._prove(rounds, result.best)
        except _Stopped:  # nothing is said before the proof
            result.choice, result.chance, result.difference = None, math.nan, ""
        result.run = rounds.so_far
        if result.choice is not None:
            self._keep(result, result.choice)
        return result

    def _labels(self, raters: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
        """Return the labels of these graders, once they have been asked about the clusters that
        they were not asked about in this run.
        """
        by_id = {grader.rater_id: grader for grader in self.trial.graders}
        wanted = []
        for rater in raters:
            asked = self._asked.setdefault(rater, set())
            wanted += self.trial.asked(by_id[rater], [c for c in clusters if c not in asked])
            asked.update(clusters)
        self._grade(wanted)
        return self.trial.labels_of(raters, clusters)

    def _grade(
        self, wanted: Sequence[tuple[str, GradingOptions]], more: Sequence[Candidate] = ()
    ) -> None:
        """Ask graders; `more` are candidates to be written down. Raises _Stopped where it ended
        early.
        """
        trial = self.trial
        if self.rounds is None:
            if any(len(task.questions) for task in running.planned(trial.study, wanted)):
                raise _Stopped
            return
        _go_on(self.rounds.grade(wanted, lambda: trial.note_candidates(self.done_by, more)))

    def propose(self) -> None:
        """Have GEPA make candidates from the clusters to learn from, if it may."""
        trial, study = self.trial, self.trial.study
        if not trial.proposals:
            return
        learn = trial.clusters_in("learn")
        self._labels([trial.old.rater_id], learn)

        def answer(asked: PromptText, about: Mapping[str, Any]) -> ProposalAttempt:
            if self.rounds is None:
                attempt = running.stored_proposal(study, trial.rubric.name, trial.proposer, asked)
            else:
                attempt = running.propose(
                    self.rounds, trial.rubric.name, trial.proposer, asked, about
                )
            if attempt is None:
                raise _Stopped
            return attempt

        def tried(words: Instructions, units: Sequence[str]) -> dict[str, str]:
            candidate = trial.reworded(words)
            self._grade([candidate.on(units)], [candidate])
            return trial.grades_of(candidate.rater_id, learn)

        proposed = suggestions.proposed_by_gepa(trial.start(), study.config.seed, answer, tried)
        trial.add(proposed)
        self.found.candidates, self.found.remarks = trial.candidates, tuple(proposed.remarks)

    def choose(self) -> None:
        """Choose the best candidate."""
        trial, clusters = self.trial, self.trial.clusters_in("choose")
        old, *names = (grader.rater_id for grader in trial.graders)
        self.found.choice = versions.choose(old, names, clusters, self._labels, trial.rule)

    def _prove(self, rounds: running.Rounds, best: Candidate) -> None:
        """Prove the gain of the best candidate, unless that is hardly to be expected."""
        result, trial = self.found, self.trial
        old, new = result.old.rater_id, best.rater_id
        store, rubric = trial.study.store, trial.rubric.name
        clusters = trial.clusters_in("prove")
        labels = trial.labels_of([old, new], clusters)
        is_read = versions.content_of(labels, old, new) in log.contents_read(store, rubric)
        if not is_read:
            on_choose = trial.labels_of([old, new], trial.clusters_in("choose"))
            level = trial.next_level
            result.chance = versions.chance_of_proof(on_choose, old, new, len(clusters), level)
            result.no_level = not level
            if result.chance < versions.HARDLY:
                return
        self._audit(rounds, best)
        if result.gives_way:
            return
        if not is_read:
            labels = self._labels([old, new], clusters)
        reading = ProofReading(old=old, new=new, content=versions.content_of(labels, old, new))
        look = log.read_proof(store, rubric, reading, self.done_by)
        result.gain = versions.prove(labels, old, new, trial.rule, look)
        if result.gain.outcome == "better":
            result.verdict = trial.verdict_on(new, clusters, look)
            result.known_before = not log.candidates_of(store, rubric)[new].is_new
        command = ["evenhand", "grade", str(trial.study.folder), f"--rubric={rubric}"]
        result.command = shlex.join([*command, *_options_of(trial, best), "--scope=all"])

    def _audit(self, rounds: running.Rounds, best: Candidate) -> None:
        """Audit the best candidate where it reads other words, before the proof is read: what was
        written from responses may hold what one of them asks for.
        """
        result, trial = self.found, self.trial
        if not trial.is_reworded(best):
            return
        before, after = (_text(trial.rubric, entry.grading.prompt) for entry in (trial.old, best))
        # The words that a judge with imported labels read are not known.
        name = trial.rubric.name if trial.old.is_imported else trial.old.rater_id
        difference = difflib.unified_diff(before, after, name, best.rater_id, lineterm="")
        result.difference = "\n".join(difference)
        _go_on(audit_in_rounds(rounds, best.audit))
        bounds = trial.rule.injection
        for audit in audits_of(trial.study, best.rater_id):
            if audit.rubric == trial.rubric.name and (beyond := audit.beyond(bounds)):
                figures = beyond[0].figures(bounds.of(beyond[0].name))
                result.gives_way = written("improve.gives_way", **figures)
                return

    def _keep(self, result: Improved, choice: Choice) -> None:
        """Write down what came of it: figures of all candidates, and where the best comes from."""
        gain, best = result.gain, result.best
        # Spent since the labels were split: on all grades of the split units, those of earlier
        # candidates too, on audits of candidates, and on proposals.
        store, units = self.trial.study.store, self.trial.units_in(self.trial.units)
        raters = {result.old.rater_id, *log.candidates_of(store, result.rubric)}
        detail: dict[str, Any] = {
            "outcome": result.outcome,
            "old": result.old.rater_id,
            "new": best.rater_id if best else "",
            "origin": best.origin if best else "",
            "prompt": best.grading.prompt.hash if best and best.grading.prompt else "",
            "price": log.price_of(store, result.rubric, raters, units),
            "parts": dict(result.parts),
            "rounds": [
                {
                    "clusters": stage.clusters,
                    "kappas": {name: _number(score.kappa) for name, score in stage.scores.items()},
                }
                for stage in choice.rounds
            ],
            "verdict": result.verdict["verdict"] if result.verdict else "",
            "gives_way": result.gives_way,
            "known_before": result.known_before,
            "said": list(result.remarks),
            "no_level": result.no_level,
            "asked": [f"--rubric={result.rubric}", *_options_of(self.trial, result.old)],
            "rubric_hash": self.trial.rubric.hash,
        }
        if gain is not None:
            names = ("estimate", "low", "high", "before", "after", "level")
            detail |= {name: _number(getattr(gain, name)) for name in names}
            detail |= {"look": gain.look, "clusters": gain.clusters, "units": gain.units}
            detail |= {"difference": result.difference, "command": result.command}
        log.note_end(store, result.rubric, detail, self.done_by)


def _go_on(summary: running.RunSummary) -> None:
    """Raise _Stopped where a round ended early."""
    if summary.over_budget or summary.stopped:
        raise _Stopped


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(rubric: Rubric, prompt: JudgePrompt | Instructions | None) -> list[str]:
    """Return the lines of what a grader reads, with the names of a unit's texts in braces."""
    if isinstance(prompt, JudgePrompt):
        return f"{prompt.system}\n{prompt.template}".strip().splitlines()
    if rubric.images:
        return ((prompt and prompt.instructions) or rubric.instructions).splitlines()
    asked = prompt.for_rubric(rubric) if prompt else rubric
    shown = asked.for_prompt({name: f"{{{name}}}" for name in rubric.variables})
    return f"{shown.system}\n\n{shown.user}".strip().splitlines()


def _options_of(trial: Trial, candidate: Candidate) -> list[str]:
    """Return the options by which a grader is asked as this one was."""
    folder, asked = trial.study.folder, candidate.grading
    options = {
        "--grader": candidate.grader,
        "--prompt": asked.prompt and folder / PROMPTS_FOLDER / f"{asked.prompt.hash}.toml",
        "--method": asked.method,
        "--draws": asked.draws if asked.draws != 1 else None,
        "--max-tokens": asked.max_tokens,
        "--effort": asked.effort,
        "--service-tier": asked.service_tier,
        "--orders": "ab" if tuple(asked.orders) == ("ab",) else None,
    }
    words = [f"{name}={value}" for name, value in options.items() if value]
    for name, number in {"--temperature": asked.temperature, "--seed": asked.seed}.items():
        words += [] if number is None else [f"{name}={number}"]
    return words
