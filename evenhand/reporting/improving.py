"""A better grader for a study, and the proof that it is: `evenhand improve`.

Labelled clusters are parted once, candidates are graded round by round on *choose*, and the best of
them meets *prove* (`analysis.verdicts.improvement`). What was asked is kept as any grade is, so a
run that was killed or ran out of money goes on where it was.
"""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.analysis.bootstrap.influence import level_of_reading
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.units import with_weights
from evenhand.analysis.verdicts.improvement import (
    HARDLY,
    Choice,
    Gain,
    Part,
    chance_of_proof,
    choose,
    clusters_to_part,
    commonest_label,
    content_of,
    errors_needed,
    in_order,
    most_errors,
    part_clusters,
    provable_gain,
    prove,
    round_sizes,
    strata_of,
)
from evenhand.errors import InputError
from evenhand.graders.injection import AuditOptions, audit_in_rounds, forecast_audit
from evenhand.graders.options import GradingOptions, RequestLimits
from evenhand.graders.providers import parse_spec
from evenhand.graders.running import (
    GraderForecast,
    GraderSummary,
    Progress,
    Rounds,
    RunSummary,
    answered,
    forecast_of,
    grading_in_rounds,
    planned,
    priced,
    propose,
    writer_of,
)
from evenhand.reporting.analysing import audits_of
from evenhand.reporting.load import clusters_of, from_study, looked_at
from evenhand.reporting.panel import Shown
from evenhand.reporting.proposals import (
    MOST_PROPOSALS,
    LearnUnit,
    Proposed,
    Start,
    check_installed,
    forecast_gepa,
    proposed_by_gepa,
    table_of,
    units_to_learn,
)
from evenhand.rubrics import Instructions, JudgePrompt, PromptText, Rubric, read_own_words
from evenhand.study import Study
from evenhand.study.store.logs import decisions as log
from evenhand.study.store.logs.decisions import ProofReading, ProposalAttempt, Tried, look_numbers
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.workspace import PROMPTS_FOLDER
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.verdicts.judge import Verdict
    from evenhand.reporting.panel import Line

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


@dataclass(frozen=True, repr=False)
class Improved(Shown):
    """What came of it: the parts' sizes, the choice, the proof of the best candidate (None where
    none was chosen, its `chance` of a proof was too small, or `no_level` was left for one) and the
    ordinary verdict on a better one, from the same labels. `stopped` says why a run ended early,
    which the same command continues; `said` tells of candidates that could not be made;
    `gives_way` is what an injection audit of the best one found, where it fails; `known_before`
    says that the best one had grades on the rubric before it was tried.
    """

    rubric: str
    old: Candidate
    candidates: Sequence[Candidate]
    parts: Mapping[str, int]
    choice: Choice | None = None
    chance: float = math.nan
    no_level: bool = False
    gain: Gain | None = None
    verdict: Verdict | None = None
    spent: float = 0.0
    graders: Sequence[GraderSummary] = ()
    stopped: Sequence[str] = ()
    over_budget: bool = False
    difference: str = ""
    command: str = ""
    said: Sequence[str] = ()
    gives_way: str = ""
    known_before: bool = False

    @property
    def best(self) -> Candidate | None:
        """The candidate that was chosen."""
        wanted = self.choice.best if self.choice else ""
        return next((each for each in self.candidates if each.rater_id == wanted), None)

    @property
    def outcome(self) -> str:
        """The outcome: better, not_shown, worse; "" where the run ended early."""
        if self.gain is not None:
            return self.gain.outcome
        return "not_shown" if self.choice is not None else ""

    @property
    def sentence(self) -> str:
        """The outcome in words, with bounds and price; "" where the run ended early."""
        if self.choice is None:
            return ""
        price, old = written("improve.price", spent=self.spent), self.old.rater_id
        if self.best is None:
            none = written("improve.none_chosen", old=old, count=len(self.candidates))
            return f"{written('improve.not_shown')} {none} {price}"
        if self.gives_way:
            head = written("improve.compared", new=self.best.rater_id, old=old)
            return f"{head} {self.gives_way} {price}"
        if self.gain is None:
            about = {"new": self.best.rater_id, "old": old, "gain": self.choice.gain}
            sizes = {"clusters": self.parts.get("prove", 0), "chance": self.chance}
            futile = written("improve.futile", **about, **sizes)
            if self.no_level:
                futile = written("improve.unread", **about)
            return f"{written('improve.not_shown')} {futile} {price}"
        head = written("improve.compared", new=self.best.rater_id, old=old)
        known = [written("improve.known_before", new=self.best.rater_id)]
        judged = [self.verdict["sentence"]] if self.verdict else []
        found = [self.gain.sentence, *(known if self.known_before else []), price, *judged]
        return " ".join([head, *found])

    @property
    def lines(self) -> list[Line]:
        """The rounds of the choice, the outcome, and the difference of the texts."""
        sizes = {part: self.parts.get(part, 0) for part in ("learn", "choose", "prove")}
        lines: list[Line] = [written("improve.parted", **sizes), *self.said]
        if self.choice is not None:
            lines.append(self._rounds(self.choice))
            if self.gain is not None:
                lines.append(written("improve.on_choose", gain=self.choice.gain))
            lines.append(self.sentence)
        if self.difference:
            lines.append(self.difference)
        if self.outcome == "better":
            lines.append(written("terminal.next", command=self.command))
        return lines

    def _rounds(self, choice: Choice) -> Line:
        origins = {each.rater_id: each.origin for each in (self.old, *self.candidates)}
        columns = [
            written("improve.grader"),
            written("improve.origin"),
            *(written("improve.kappa_on", clusters=each.clusters) for each in choice.rounds),
        ]
        rows = [
            [name, origin, *(_kappa(each.scores.get(name)) for each in choice.rounds)]
            for name, origin in origins.items()
        ]
        return written("improve.choice"), columns, rows


def _kappa(score: Any) -> str:
    """Return a candidate's kappa in a round; "" where it was left behind before."""
    if score is None:
        return ""
    return "-" if math.isnan(score.kappa) else f"{score.kappa:.2f}"


def improve(
    study: Study,
    options: ImproveOptions,
    limits: RequestLimits,
    progress: Progress | None = None,
    *,
    done_by: str = "",
) -> Improved:
    """Part the labels, try the candidates, choose the best and prove its gain. Safe to interrupt
    and to run again: the same command goes on.

    Raises InputError, with nothing asked, where there are too few labels or no candidates, where a
    candidate's text changes the question or the options, where no gain could be proved, and as
    `grade` does.
    """
    with grading_in_rounds(study, limits, progress) as rounds:
        trial = Trial(study, options)
        trial.check_provable()
        trial.note_parts(done_by)
        return _Run(trial, rounds, done_by).improved()


def provable(study: Study, options: ImproveOptions) -> str:
    """Return which gain a proof can show, before anything is asked. Raises InputError as `improve`
    does.
    """
    trial = Trial(study, options)
    trial.check_provable()
    clusters = len(trial.clusters_in("prove"))
    gain = provable_gain(trial.labels_elsewhere(), clusters, trial.next_level)
    return "" if math.isnan(gain) else written("improve.provable", clusters=clusters, gain=gain)


def labels_to_learn(study: Study, options: ImproveOptions, *, done_by: str = "") -> pd.DataFrame:
    """Return a row for each labelled unit of *learn*, those on which the old grader differs from
    most people first: `unit_id`, the texts, people's `labels` and their `majority`, the old
    `grader`'s label and whether it `agrees`, people's `reasons` and the `words` that they marked.
    Labels are parted and the parts written down if they were not. Raises InputError as `improve`
    does.
    """
    trial = Trial(study, options)
    found = table_of(trial.units_to_learn())
    trial.note_parts(done_by)
    return found


def forecast_improving(study: Study, options: ImproveOptions) -> list[GraderForecast]:
    """Forecast the requests and their cost, without network or key, as if candidates were left
    behind from the last one on. Writes nothing. Raises InputError as `improve` does.
    """
    trial = Trial(study, options)
    known = {each.rater_id for each in trial.candidates}
    asked: list[GraderForecast] = []
    if trial.proposals:  # candidates that cost as much as those that may come of them are added
        asked, proposed = forecast_gepa(study, trial.start(), trial.proposer)
        trial.add(proposed)
    made = {each.rater_id for each in trial.candidates} - known
    learn = trial.clusters_in("learn") if options.proposals else []
    choose = trial.clusters_in("choose")
    prove = trial.clusters_in("prove")
    sizes = round_sizes(len(choose), len(trial.candidates))
    most: Counter[str] = Counter()
    left = list(trial.candidates)
    for size in sizes:
        for each in left:
            most[each.rater_id] = size
        left = left[: math.ceil(len(left) / 2)]
    wanted = trial.asked(trial.old, [*learn, *choose, *prove])
    own = len(wanted)
    for at, each in enumerate(trial.candidates):
        last = prove if at == 0 else []
        if each.rater_id in made:
            last = [*last, *learn]  # where GEPA tries each of them
        wanted += trial.asked(each, [*choose[: most[each.rater_id]], *last])
    found = [forecast_of(study, task) for task in planned(study, wanted)]
    for at, each in enumerate(trial.candidates, start=own):
        if each.rater_id in made:  # words that are not known yet
            found[at] = replace(found[at], rater_id=each.origin, sample=None)
    audits = []
    if reworded := [each for each in trial.candidates if trial.is_reworded(each)]:
        (audit,) = forecast_audit(study, reworded[-1].audit)
        name = written("improve.audited", grader=written("improve.best"))
        audits.append(replace(audit, rater_id=name, sample=None))
    return [*found[:own], *asked, *found[own:], *audits]


class Trial:
    """A study's labels, parted, with the old grader and the candidates. People's labels are those
    at its beginning: what they label meanwhile waits for the next run. Raises InputError as
    `improve` does, in `candidates` where it is about these.
    """

    def __init__(self, study: Study, options: ImproveOptions) -> None:
        if options.rubric not in study.rubrics:
            known = ", ".join(study.rubrics)
            raise InputError(f"the study has no rubric {options.rubric!r}; it has {known}")
        self.study = study
        self.rubric = study.rubrics[options.rubric]
        if not self.rubric.kind.is_single:
            raise InputError(written("improve.several", rubric=self.rubric.name))
        self._options = options
        self._made: list[tuple[str, GradingOptions, str]] = []
        self.asker = self._asker()
        """The grader that is asked with other words: the old one, or if its labels were imported
        the first to be tried in its place; "" where there is none.
        """
        self.proposals = options.proposals
        """How many proposals GEPA may have written."""
        self.proposer = options.proposer or self.asker
        """The model that writes proposals."""
        self._check_proposals()
        dataset = from_study(study)
        log.check_clusters(study.store, self.rubric.name, dataset.settings.cluster)
        ratings = study.ratings()
        self._first = ratings[ratings["rubric"] == self.rubric.name]
        # Here all grades count, those that led to an earlier winner too: it is compared on others.
        self._scale = replace(dataset.scales[self.rubric.name], withheld={})
        scales = {self.rubric.name: self._scale}
        self._dataset = replace(dataset, ratings=self._first, scales=scales)
        self.rule = dataset.decision
        self.clusters = clusters_of(dataset)
        self.known_parts = log.parts_of(study.store, self.rubric.name)
        self.parts = self._parted()
        ratings = self.ratings()
        people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
        self.units: dict[str, list[str]] = {}
        """The units that people labelled, by cluster."""
        for unit in sorted(set(people["unit_id"])):
            if cluster := self.clusters.get(unit):
                self.units.setdefault(cluster, []).append(unit)

    def _asker(self) -> str:
        grader, others = self._options.grader, self._options.others
        ratings = self.study.ratings()
        own = ratings[(ratings["rubric"] == self.rubric.name) & (ratings["rater_kind"] == "model")]
        if can_be_asked(self.study, grader) or grader not in set(own["rater_id"]):
            return grader
        return others[0] if others else ""

    @cached_property
    def _graders(self) -> list[Candidate]:
        return list(self._candidates(self._options, self._made))

    def _candidates(
        self, options: ImproveOptions, made: Sequence[tuple[str, GradingOptions, str]]
    ) -> Iterator[Candidate]:
        """Yield the old grader, then candidates that differ from it and from one another: `made`
        are those that GEPA proposed. The asker reads all other words.
        """
        old, grading = options.grader, replace(options.grading, rubrics=[self.rubric.name])
        ways: list[tuple[str, GradingOptions, str]] = []
        known: set[str] = set()
        if self.asker == old:
            ways.append((old, grading, written("improve.old")))
        elif not self.asker:
            raise InputError(written("improve.imported", grader=old))
        else:
            yield Candidate(old, written("improve.old"), old, grading, is_imported=True)
            known.add(old)
        files = sorted(options.candidates.glob("*.toml")) if options.candidates else []
        if options.candidates and not files:
            raise InputError(written("improve.no_files", folder=options.candidates))
        for file in files:
            prompt = read_own_words(file)
            if isinstance(prompt, JudgePrompt):
                if missing := missing_from(prompt, self.rubric):
                    raise InputError(written("improve.changed", file=file.name, missing=missing))
                asked = replace(grading, prompt=prompt, method="")
            else:
                asked = replace(grading, prompt=prompt)
            ways.append((self.asker, asked, file.name))
        ways += [(other, grading, written("improve.other_grader")) for other in options.others]
        ways += made
        for grader, asked, origin in ways:
            (task,) = planned(self.study, [(grader, asked)])
            rater = task.rater_id
            if rater not in known:
                yield Candidate(rater, origin, grader, asked)
            known.add(rater)
        if len(known) < 2 and not options.proposals:
            raise InputError(written("improve.no_candidates"))

    @property
    def old(self) -> Candidate:
        return self._graders[0]

    @property
    def old_rater(self) -> str:
        """The old grader's rater id, without a look at the candidates."""
        if self.asker != self._options.grader:
            return self._options.grader
        grading = replace(self._options.grading, rubrics=[self.rubric.name])
        (task,) = planned(self.study, [(self._options.grader, grading)])
        return task.rater_id

    @property
    def candidates(self) -> list[Candidate]:
        return self._graders[1:]

    def _counted(self) -> pd.DataFrame:
        """Return the rubric's ratings that count: people's as they were, graders' as they are."""
        now = self.study.ratings()
        is_own = (now["rubric"] == self.rubric.name) & (now["rater_kind"] == "model")
        people = self._first[self._first["rater_kind"] != "model"]
        both = pd.concat([people, now[is_own]], ignore_index=True)
        both = both[both["unit_id"].isin(self.clusters.keys())]
        return replace(self._dataset, ratings=both).counted(self.rubric.name)

    def _check_proposals(self) -> None:
        """Raise InputError where no proposals can be written for this grader."""
        if self.proposals not in range(MOST_PROPOSALS + 1):
            raise InputError(written("improve.count_proposals", most=MOST_PROPOSALS))
        if not self.proposals:
            return
        if self.rubric.prompt or not self.rubric.kind.listed:
            raise InputError(written("improve.no_proposals", rubric=self.rubric.name))
        writer_of(self.study, self.proposer)
        check_installed()

    def units_to_learn(self) -> list[LearnUnit]:
        """Return the units to learn from, with the old grader's labels."""
        clusters, old = self.clusters_in("learn"), self.old_rater
        ratings, graded = self._ratings_of([], clusters), self.grades_of(old, clusters)
        return units_to_learn(self.study, self.rubric.name, ratings, old, graded)

    def start(self) -> Start:
        """Return what GEPA begins with."""
        prompt = self.old.grading.prompt
        words = prompt.instructions if isinstance(prompt, Instructions) else ""
        units, old = self.units_to_learn(), self.old.rater_id
        return Start(self.rubric, old, words or self.rubric.instructions, units, self.proposals)

    def add(self, proposed: Proposed) -> None:
        """Add candidates that read these words, asked as the old grader is."""
        self._made = [self._way(*each) for each in proposed.words]
        del self._graders

    def reworded(self, words: Instructions) -> Candidate:
        """Return the old grader with these words, as GEPA tries it."""
        alone = replace(self._options, candidates=None, others=())
        way = self._way(words, written("improve.while_learning"))
        _, found = self._candidates(alone, [way])
        return found

    def _way(self, words: Instructions, origin: str) -> tuple[str, GradingOptions, str]:
        grading = self.old.grading
        method = "" if isinstance(grading.prompt, JudgePrompt) else grading.method
        return self.asker, replace(grading, prompt=words, method=method), origin

    def is_reworded(self, candidate: Candidate) -> bool:
        """Return True if a candidate reads other words than the old grader."""
        own = candidate.grading.prompt
        return own is not None and own != self.old.grading.prompt

    def ratings(self) -> pd.DataFrame:
        """The rubric's ratings that count; of people only those of the declared reference, where
        there is one.
        """
        found = self._counted()
        if reference := self.rule.reference:
            found = found[(found["rater_kind"] != "human") | (found["rater_id"] == reference)]
            is_reference = found["rater_id"] == reference
            kinds = found["rater_kind"].where(~is_reference, "human")
            found = found.assign(rater_kind=kinds)
        return found

    def _parted(self) -> dict[str, Part]:
        ratings = self.ratings()
        strata = strata_of(ratings, self.clusters)
        commonest = commonest_label(ratings)
        rule = self.rule
        needed = clusters_to_part(strata, commonest, rule.min_clusters, rule.min_rarer)
        if needed and not self.known_parts:
            raise InputError(
                written("improve.too_few", rubric=self.rubric.name, have=len(strata), needed=needed)
            )
        seed, known = self.study.config.seed, self.known_parts
        return part_clusters(strata, known, seed=seed, rubric=self.rubric.name)  # type: ignore[arg-type]

    def note_parts(self, done_by: str) -> None:
        """Write down the parts of clusters that had none."""
        new = {each: part for each, part in self.parts.items() if each not in self.known_parts}
        if new:
            cluster = self._dataset.settings.cluster
            log.note_parts(self.study.store, self.rubric.name, new, cluster, done_by)

    def note_candidates(self, done_by: str, more: Sequence[Candidate] = ()) -> None:
        """Write down the candidates: once their requests can be sent, and before they are; and
        `more` that are tried while it learns.
        """
        graded = set(self._first.loc[self._first["rater_kind"] == "model", "rater_id"])
        store, rubric, old = self.study.store, self.rubric.name, self.old.rater_id
        log.note_old(store, rubric, old, is_new=old not in graded, done_by=done_by)
        tried = {
            each.rater_id: Tried(
                origin=each.origin,
                is_new=each.rater_id not in graded,
                has_own_text=self.is_reworded(each),
            )
            for each in (*self.candidates, *more)
        }
        log.note_candidates(store, rubric, tried, done_by)

    def clusters_in(self, part: Part) -> list[str]:
        """Return the labelled clusters of a part, in the order in which they are used."""
        own = [each for each in self.units if self.parts[each] == part]
        return in_order(own, seed=self.study.config.seed, rubric=self.rubric.name)

    def units_in(self, clusters: Collection[str]) -> set[str]:
        """Return the labelled units of these clusters."""
        return {unit for each in clusters for unit in self.units[each]}

    def asked(
        self, candidate: Candidate, clusters: Sequence[str]
    ) -> list[tuple[str, GradingOptions]]:
        """Return what a grader is asked on these clusters; nothing if its labels were imported."""
        return [] if candidate.is_imported else [candidate.on(self.units_in(clusters))]

    def labels_of(self, raters: Collection[str], clusters: Collection[str]) -> LabelMatrix:
        """Return the labels of people and these graders on these clusters, and on no other."""
        ratings, ids = self._ratings_of(raters, clusters), sorted(self.units_in(clusters))
        table = pd.DataFrame({"unit_id": ids, "cluster_id": [self.clusters[u] for u in ids]})
        if INCLUSION in (known := self._dataset.units):
            table[INCLUSION] = table["unit_id"].map(known.set_index("unit_id")[INCLUSION])
        weighted = with_weights(table, ratings)
        return encode(combine_readings(ratings, self._scale), self._scale, weighted, "pair")

    def _ratings_of(self, raters: Collection[str], clusters: Collection[str]) -> pd.DataFrame:
        """Return the ratings of people and these graders on these clusters."""
        ratings = self.ratings()
        wanted = (ratings["rater_kind"] == "human") | ratings["rater_id"].isin(list(raters))
        return ratings[wanted & ratings["unit_id"].isin(self.units_in(clusters))]

    def grades_of(self, rater: str, clusters: Collection[str]) -> dict[str, str]:
        """Return a grader's labels by unit, as they are compared with people's."""
        ratings = self.ratings()
        is_own = (ratings["rater_id"] == rater) & ratings["unit_id"].isin(self.units_in(clusters))
        found = combine_readings(ratings[is_own], self._scale)
        return {
            found.units[unit]: self._scale.categories[code]
            for unit, code in zip(found.unit, found.code, strict=True)
            if code >= 0
        }

    def labels_elsewhere(self) -> LabelMatrix:
        """Return the labels of people and the old grader outside the proof."""
        clusters = [*self.clusters_in("learn"), *self.clusters_in("choose")]
        return self.labels_of([self.old.rater_id], clusters)

    @property
    def next_level(self) -> float:
        """The level of the next reading of the labels for the proof; 0.0 where none is left."""
        readings = log.contents_read(self.study.store, self.rubric.name)
        return level_of_reading(len(readings) + 1, self.rule.looks)

    def check_provable(self) -> None:
        """Raise InputError where questions are open, and no gain could be proved whatever the
        candidates say: no level is left, or the old grader is hardly ever wrong.
        """
        clusters, level = self.clusters_in("prove"), self.next_level
        if not self._has_open_questions():
            return
        if not level:
            readings = log.contents_read(self.study.store, self.rubric.name)
            about = {"rubric": self.rubric.name, "readings": len(readings)}
            raise InputError(written("improve.no_level_left", **about))
        old, needed = self.old.rater_id, errors_needed(level)
        errors = most_errors(self.labels_elsewhere(), old) * len(clusters)
        if errors < needed:  # False for NaN: of a grader without grades nothing is known
            about = {"old": old, "errors": errors, "clusters": len(clusters), "needed": needed}
            raise InputError(written("improve.impossible", **about))

    def _has_open_questions(self) -> bool:
        """Return True if anything is still to be asked before a winner is known."""

        def known(raters: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
            self._check_asked([way for each in raters for way in self.asked(by_id[each], clusters)])
            return self.labels_of(raters, clusters)

        try:
            made = [self._way(*each) for each in self._proposed_so_far().words]
            by_id = {each.rater_id: each for each in self._candidates(self._options, made)}
            old, *names = by_id
            choose(old, names, self.clusters_in("choose"), known, self.rule)
        except _OpenQuestion:
            return True
        return False

    def _proposed_so_far(self) -> Proposed:
        """Return what GEPA made from known answers. Raises _OpenQuestion where a label or an answer
        is still to be asked for.
        """
        if not self.proposals:
            return Proposed()
        learn = self.clusters_in("learn")
        self._check_asked(self.asked(self.old, learn))

        def known(asked: PromptText, about: Mapping[str, Any]) -> ProposalAttempt:
            if answer := answered(self.study, self.rubric.name, self.proposer, asked):
                return answer
            raise _OpenQuestion

        def tried(words: Instructions, units: Sequence[str]) -> Mapping[str, str]:
            way = self.reworded(words)
            self._check_asked([way.on(units)])
            return self.grades_of(way.rater_id, learn)

        return proposed_by_gepa(self.start(), self.study.config.seed, known, tried)

    def _check_asked(self, wanted: Sequence[tuple[str, GradingOptions]]) -> None:
        """Raise _OpenQuestion where a grader is still to be asked some of this."""
        if any(len(task.questions) for task in planned(self.study, wanted)):
            raise _OpenQuestion

    def verdict_on(self, new: str, clusters: Collection[str], reading: int) -> Verdict | None:
        """Return the ordinary verdict on a grader from these clusters alone. It is a look of the
        study, as its report's on the same labels is; and since each `reading` may be of another
        grader, its level is at most that of a look of this number. The audit is of this run, too.
        """
        ratings, units = self._counted(), self.units_in(clusters)
        wanted = (ratings["rater_kind"] != "model") | (ratings["rater_id"] == new)
        present = looked_at(self.study, self._first)
        look = look_numbers(self.study.store, present, record=True).get(self.rubric.name, 1)
        attacked = attacked_table(self.study.store, self.study.accepted_hashes())
        dataset = replace(
            self._dataset,
            ratings=ratings[wanted & ratings["unit_id"].isin(units)],
            facts=replace(
                self._dataset.facts, looks={self.rubric.name: max(look, reading)}, attacked=attacked
            ),
        )
        found = dataset.analyse().verdicts
        return next((each for each in found if each["grader"] == new), None)


def can_be_asked(study: Study, grader: str) -> bool:
    """Return False for a name that no provider knows, as that of imported labels."""
    try:
        parse_spec(grader, study.config.providers)
    except InputError:
        return False
    return True


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


class _OpenQuestion(Exception):  # noqa: N818  (nobody made an error)
    """A label is needed that was not asked for yet."""


class _Stopped(Exception):  # noqa: N818  (nobody made an error)
    """A round of grading ended early."""

    def __init__(self, summary: RunSummary) -> None:
        self.summary = summary


def _go_on(summary: RunSummary) -> None:
    """Raise _Stopped where a round ended early."""
    if summary.over_budget or summary.stopped:
        raise _Stopped(summary)


@dataclass
class _Run:
    """One run: rounds of grading, and what they have found so far."""

    trial: Trial
    rounds: Rounds
    done_by: str
    _asked: dict[str, set[str]] = field(default_factory=dict)

    def improved(self) -> Improved:
        """Choose, prove, and keep what came of it."""
        trial = self.trial
        sizes = Counter[str](trial.parts[each] for each in trial.units)
        found = Improved(trial.rubric.name, trial.old, trial.candidates, sizes)
        try:
            if trial.proposals:
                found = self._proposed(found)
            found = self._chosen(found)
            if found.best is not None:
                found = self._proved(found, found.best)
        except _Stopped as stop:
            return replace(
                found,
                choice=None,  # nothing is said before the proof
                stopped=stop.summary.stopped,
                over_budget=stop.summary.over_budget,
                **self._so_far,
            )
        found = replace(found, **self._so_far)
        self._keep(found)
        return found

    @property
    def _so_far(self) -> dict[str, Any]:
        return {"spent": self.rounds.spent, "graders": tuple(self.rounds.summaries.values())}

    @property
    def _by_id(self) -> dict[str, Candidate]:
        return {each.rater_id: each for each in (self.trial.old, *self.trial.candidates)}

    def _labels(self, raters: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
        """Return the labels of these graders, once they have been asked for them."""
        self._ask(raters, clusters)
        return self.trial.labels_of(raters, clusters)

    def _ask(self, raters: Sequence[str], clusters: Sequence[str]) -> None:
        """Ask graders about the clusters that they were not asked about in this run."""
        wanted = []
        for rater in raters:
            known = self._asked.setdefault(rater, set())
            new = [each for each in clusters if each not in known]
            known.update(new)
            wanted += self.trial.asked(self._by_id[rater], new)
        _go_on(self.rounds.grade(wanted, lambda: self.trial.note_candidates(self.done_by)))

    def _proposed(self, found: Improved) -> Improved:
        """Have GEPA make candidates from the clusters to learn from, and write them down."""
        trial, study = self.trial, self.trial.study
        spec, _ = writer_of(study, trial.proposer)
        priced(spec, self.rounds.budget, "", study.config.prices)
        self._ask([trial.old.rater_id], trial.clusters_in("learn"))
        seed = study.config.seed
        proposed = proposed_by_gepa(trial.start(), seed, self._answered, self._tried)
        trial.add(proposed)
        trial.note_candidates(self.done_by)
        return replace(found, candidates=trial.candidates, said=tuple(proposed.said))

    def _answered(self, asked: PromptText, about: Mapping[str, Any]) -> ProposalAttempt:
        """Return the answer of the model that writes, asked once."""
        trial = self.trial
        answer = propose(self.rounds, trial.rubric.name, trial.proposer, asked, about)
        if answer is None:
            raise _Stopped(self.rounds.so_far)
        return answer

    def _tried(self, words: Instructions, units: Sequence[str]) -> dict[str, str]:
        """Return the old grader's labels of some units to learn from, under other words."""
        trial = self.trial
        candidate = trial.reworded(words)
        note = partial(trial.note_candidates, self.done_by, [candidate])
        _go_on(self.rounds.grade([candidate.on(units)], note))
        return trial.grades_of(candidate.rater_id, trial.clusters_in("learn"))

    def _audited(self, found: Improved, best: Candidate) -> Improved:
        """Audit the best candidate where it reads other words, before the proof is read: what was
        written from responses may hold what one of them asks for.
        """
        trial = self.trial
        found = replace(found, difference=_difference(trial.rubric, trial.old, best))
        if not trial.is_reworded(best):
            return found
        _go_on(audit_in_rounds(self.rounds, best.audit))
        bounds = trial.rule.injection
        for audit in audits_of(trial.study, best.rater_id):
            if audit.rubric == trial.rubric.name and (beyond := audit.beyond(bounds)):
                figures = beyond[0].figures(bounds.of(beyond[0].name))
                said = written("improve.gives_way", **figures)
                return replace(found, gives_way=said)
        return found

    def _chosen(self, found: Improved) -> Improved:
        trial = self.trial
        names = [each.rater_id for each in trial.candidates]
        clusters = trial.clusters_in("choose")
        choice = choose(trial.old.rater_id, names, clusters, self._labels, trial.rule)
        if choice.best:
            log.note_choice(
                trial.study.store, trial.rubric.name, choice.best, clusters, self.done_by
            )
        return replace(found, choice=choice)

    def _proved(self, found: Improved, best: Candidate) -> Improved:
        trial, old, new = self.trial, self.trial.old.rater_id, best.rater_id
        store, rubric = trial.study.store, trial.rubric.name
        choose, clusters = trial.clusters_in("choose"), trial.clusters_in("prove")
        known = trial.labels_of([old, new], clusters)
        is_read = content_of(known, old, new) in log.contents_read(store, rubric)
        if not is_read:
            on_choose = trial.labels_of([old, new], choose)
            level = trial.next_level
            chance = chance_of_proof(on_choose, old, new, len(clusters), level)
            found = replace(found, chance=chance, no_level=not level)
            if chance < HARDLY:
                return found
        found = self._audited(found, best)
        if found.gives_way:
            return found
        if not is_read:
            self._ask([old, new], clusters)
            known = trial.labels_of([old, new], clusters)
        reading = ProofReading(old=old, new=new, content=content_of(known, old, new))
        look = log.read_proof(store, rubric, reading, self.done_by)
        gain = prove(known, old, new, trial.rule, look)
        is_better = gain.outcome == "better"
        command = ["evenhand", "grade", str(trial.study.folder), f"--rubric={rubric}"]
        return replace(
            found,
            gain=gain,
            verdict=trial.verdict_on(new, clusters, look) if is_better else None,
            known_before=is_better and not log.candidates_of(store, rubric)[new].is_new,
            command=shlex.join([*command, *_options_of(trial, best), "--scope=all"]),
        )

    def _keep(self, found: Improved) -> None:
        """Write down what came of it: figures of all candidates, and where the best comes from."""

        if found.choice is None:
            return
        gain, best = found.gain, found.best
        # Spent since the labels were parted: on all grades of the parted units, those of earlier
        # candidates too, on audits of candidates, and on proposals.
        store, units = self.trial.study.store, self.trial.units_in(self.trial.units)
        raters = {found.old.rater_id, *log.candidates_of(store, found.rubric)}
        detail: dict[str, Any] = {
            "outcome": found.outcome,
            "old": found.old.rater_id,
            "new": best.rater_id if best else "",
            "origin": best.origin if best else "",
            "prompt": best.grading.prompt.hash if best and best.grading.prompt else "",
            "price": log.price_of(store, found.rubric, raters, units),
            "parts": dict(found.parts),
            "rounds": [
                {
                    "clusters": each.clusters,
                    "kappas": {name: _number(score.kappa) for name, score in each.scores.items()},
                }
                for each in found.choice.rounds
            ],
            "verdict": found.verdict["verdict"] if found.verdict else "",
            "gives_way": found.gives_way,
            "known_before": found.known_before,
            "said": list(found.said),
            "no_level": found.no_level,
            "asked": [f"--rubric={found.rubric}", *_options_of(self.trial, found.old)],
            "rubric_hash": self.trial.study.rubrics[found.rubric].hash,
        }
        if gain is not None:
            names = ("estimate", "low", "high", "before", "after", "level")
            detail |= {name: _number(getattr(gain, name)) for name in names}
            detail |= {"look": gain.look, "clusters": gain.clusters, "units": gain.units}
            detail |= {"difference": found.difference, "command": found.command}
        log.note_end(store, found.rubric, detail, self.done_by)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _difference(rubric: Rubric, old: Candidate, new: Candidate) -> str:
    """Return the difference of the texts that two graders read; "" where they read the same."""
    if new.grading.prompt is None or new.grading.prompt == old.grading.prompt:
        return ""
    before, after = (_text(rubric, each.grading.prompt) for each in (old, new))
    name = rubric.name if old.is_imported else old.rater_id  # what that one read is not known
    lines = difflib.unified_diff(before, after, name, new.rater_id, lineterm="")
    return "\n".join(lines)


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
