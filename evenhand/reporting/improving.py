"""Find a better grader for a study, and test that it is better: `evenhand improve`.

Clusters of labelled units (rated items) are split once into *learn*, *choose* and *prove*: the
training, selection and test set (`analysis.verdicts.versions`). Candidates grade *choose* round by
round, each on more clusters and without the worse half; *prove* tests the best and the old grader.

Each comparison on *prove* is a *reading*, which spends a part of the test's error rate; comparing
the same labels and grades again is no new reading. A *look* is an interim analysis of the study:
readings and looks are numbered apart, and `rule.looks` limits the number of either.

`Trial` holds the split labels and the candidates. `_Selection` proposes and chooses candidates from
stored grades; `_Run` also requests missing grades, and tests the best. `Improvement` is the result.
Grades are stored like any others, so the same command continues a run that was killed or ran out of
money. If stored grades do not lead to a choice, `check_provable` asks whether any gain could be
shown before a request is sent.
"""

import difflib
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pandas as pd

from evenhand.analysis.bootstrap.bounds import level_of_reading
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix, with_weights
from evenhand.analysis.verdicts import versions
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.versions import Choice, Gain, Part, Score
from evenhand.errors import InputError
from evenhand.graders import running
from evenhand.graders.injection import AuditOptions, audit_in_rounds, forecast_audit
from evenhand.graders.options import GradingOptions, RequestLimits
from evenhand.graders.providers import parse_spec
from evenhand.reporting import suggestions
from evenhand.reporting.analysing import audits_of
from evenhand.reporting.load import clusters_of, from_study, label_hashes
from evenhand.reporting.panel import Line, Printable
from evenhand.rubrics import Instructions, JudgePrompt, PromptText, Rubric, read_own_words
from evenhand.study import Study
from evenhand.study.store.logs import decisions as log
from evenhand.study.store.logs.decisions import ProofReading, ProposalAttempt, look_numbers
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.tables.columns import INCLUSION
from evenhand.study.workspace import PROMPTS_FOLDER
from evenhand.texts import written

Grading = tuple[str, GradingOptions]  # a grader's name as typed, and its options for some units
AUDITED = 20  # units of an injection audit; eight suffice to find a grader that obeys an attack


@dataclass(frozen=True, kw_only=True)
class ImproveOptions:
    """The user's options."""

    rubric: str
    grader: str  # the old one, asked with new prompts; if it was imported, the first other one is
    grading: GradingOptions = field(default_factory=GradingOptions)  # of all graders
    candidates: Path | None = None  # a folder of grader prompts made elsewhere
    other_graders: Sequence[str] = ()  # to try as they are
    proposals: int = 0  # the number of instructions that GEPA may request
    proposer: str = ""  # the model that writes them; "" for the old grader's


@dataclass(frozen=True)
class Candidate:
    """A grader to compare with the old one, or the old one itself."""

    rater_id: str
    origin: str  # in words: a file's name, another grader or a proposal
    grader: str  # its name as typed
    grading: GradingOptions
    is_imported: bool = False  # an old grader whose labels were imported cannot be asked

    def grading_of(self, units: Collection[str]) -> Grading:
        """Return the grader and its options for grading these units, for `running.plan_tasks`."""
        return self.grader, replace(self.grading, units=frozenset(units), scope="all")

    @property
    def audit(self) -> AuditOptions:
        """Options of its injection audit: the first units that `evenhand audit` would attack."""
        return AuditOptions(self.grader, AUDITED, self.grading)


@dataclass(repr=False)
class Improvement(Printable):
    """The result of `improve`. There is no test (`gain`) if no candidate was chosen, its `chance`
    of success was too small, no error rate was left, or it failed its injection audit.
    """

    rubric: str
    old: Candidate
    candidates: Sequence[Candidate]
    part_sizes: Mapping[str, int]  # clusters of each part
    names: Mapping[str, str]  # display names by rater id
    choice: Choice | None = None  # the selection; None where the run ended early
    chance: float = math.nan  # of showing a gain
    has_no_level: bool = False  # no error rate is left
    gain: Gain | None = None  # the test of the best candidate
    verdict: Verdict | None = None  # the ordinary one on a better grader, from the same labels
    run: running.RunSummary = field(default_factory=lambda: running.RunSummary(()))
    difference: str = ""  # a diff of the two prompts
    command: str = ""  # which grades the study with the best candidate
    remarks: Sequence[str] = ()  # on proposals that were refused
    audit_failure: str = ""  # a sentence on the failed injection audit
    was_known: bool = False  # the best candidate had grades on the rubric before

    @property
    def best(self) -> Candidate | None:
        """The candidate that was chosen, if any."""
        rater_id = self.choice.best if self.choice else ""
        return next((entry for entry in self.candidates if entry.rater_id == rater_id), None)

    @property
    def outcome(self) -> str:
        """The outcome: better, not_shown, worse; "" where the run ended early."""
        return self.gain.outcome if self.gain else ("not_shown" if self.choice else "")

    @property
    def sentence(self) -> str:
        """The outcome in words, with bounds and price; "" where the run ended early."""
        if self.choice is None:
            return ""
        price = written("improve.price", spent=float(self.run.spent))
        old = self.names.get(self.old.rater_id, self.old.rater_id)
        if self.best is None:
            reason = written("improve.none_chosen", old=old, count=len(self.candidates))
            return f"{written('improve.not_shown')} {reason} {price}"
        new = self.names.get(self.best.rater_id, self.best.rater_id)
        if self.gain is None and not self.audit_failure:
            sizes = {"clusters": self.part_sizes.get("prove", 0), "chance": self.chance}
            figures = {"new": new, "old": old, "gain": self.choice.gain, **sizes}
            reason = written(f"improve.{'unread' if self.has_no_level else 'futile'}", **figures)
            return f"{written('improve.not_shown')} {reason} {price}"
        warning = written("improve.known_before", new=new) if self.was_known else ""
        proof = self.gain.sentence if self.gain else self.audit_failure
        verdict = self.verdict["sentence"] if self.verdict else ""
        head = written("improve.compared", new=new, old=old)
        return " ".join(filter(None, (head, proof, warning, price, verdict)))

    @property
    def lines(self) -> list[Line]:
        """The rounds of the choice, the outcome, and the difference of the texts."""
        sizes = {part: self.part_sizes.get(part, 0) for part in ("learn", "choose", "prove")}
        lines: list[Line] = [written("improve.parted", **sizes), *self.remarks]
        if self.choice is not None:
            rounds = self.choice.rounds
            columns = [written("improve.grader"), written("improve.origin")]
            columns += [written("improve.kappa_on", clusters=stage.clusters) for stage in rounds]
            rows = []
            for grader in (self.old, *self.candidates):
                kappas = [_kappa_cell(stage.scores.get(grader.rater_id)) for stage in rounds]
                name = self.names.get(grader.rater_id, grader.rater_id)
                rows.append([name, grader.origin, *kappas])
            lines.append((written("improve.choice"), columns, rows))
            if self.gain is not None:
                lines.append(written("improve.on_choose", gain=self.choice.gain))
            lines.append(self.sentence)
        if self.difference:
            lines.append(self.difference)
        if self.outcome == "better":
            lines.append(written("terminal.next", command=self.command))
        return lines


def _kappa_cell(score: Score | None) -> str:
    """Return a grader's kappa in a round as text: "" if it was dropped before, "-" if undefined."""
    if score is None:
        return ""
    return "-" if math.isnan(score.kappa) else f"{score.kappa:.2f}"


def improve(
    study: Study,
    options: ImproveOptions,
    limits: RequestLimits,
    progress: running.Progress | None = None,
    *,
    done_by: str = "",
) -> Improvement:
    """Split the labels, grade with the candidates, choose the best and test its gain. Raises
    InputError, before any request, if there are too few labels or no candidates, if a candidate's
    prompt changes the question or the options, if no gain could be shown, and as `grade` does.
    """
    with running.only_runner(study):
        rounds = running.Rounds.begin(study, limits, progress)
        trial = Trial(study, options)
        check_provable(trial)
        trial.note_parts(done_by)
        return _Run(trial, rounds, done_by).choose_and_prove()


def provable(study: Study, options: ImproveOptions) -> str:
    """Return a sentence on the gain in kappa that a test can show, "" if unknown, without any
    request. Raises InputError as `improve` does.
    """
    trial = Trial(study, options)
    check_provable(trial)
    clusters = len(trial.clusters_in("prove"))
    gain = versions.provable_gain(trial.labels_outside_test(), clusters, trial.next_level)
    return "" if math.isnan(gain) else written("improve.provable", clusters=clusters, gain=gain)


def labels_to_learn(study: Study, options: ImproveOptions, *, done_by: str = "") -> pd.DataFrame:
    """Return a row for each labelled unit of *learn*, those on which the old grader differs from
    most annotators first: `unit_id`, the texts, annotators' `labels` and their `majority`, the old
    `grader`'s label and whether it `agrees`, annotators' `reasons` and the `words` they marked.
    Stores the split of the labels if there was none. Raises InputError as `improve` does.
    """
    trial = Trial(study, options, with_candidates=False)
    table = suggestions.table_of(trial.units_to_learn())
    trial.note_parts(done_by)
    return table


def forecast_improving(study: Study, options: ImproveOptions) -> list[running.GraderForecast]:
    """Forecast the requests and their cost, without network or key. Assumes that each round drops
    the last half of the candidates, so that the first is the best, and that it is tested. Writes
    nothing. Raises InputError as `improve` does.
    """
    trial = Trial(study, options)
    known_candidates = trial.candidates  # of the options, without proposals
    proposal_forecasts: list[running.GraderForecast] = []
    if trial.proposals:  # placeholders that cost as much as the candidates which GEPA may propose
        gepa = trial.gepa_input()
        proposal_forecasts, placeholders = suggestions.forecast_gepa(study, gepa, trial.proposer)
        trial.add(placeholders)
    learn = trial.clusters_in("learn") if options.proposals else []
    choose, prove = trial.clusters_in("choose"), trial.clusters_in("prove")
    last_sizes = _last_round_sizes(len(choose), len(trial.candidates))

    def forecasts_of(
        grader: Candidate, clusters: Sequence[str], **changes: Any
    ) -> list[running.GraderForecast]:
        tasks = running.plan_tasks(study, trial.gradings_of(grader, clusters))
        return [replace(running.forecast_of(study, task), **changes) for task in tasks]

    forecasts = forecasts_of(trial.old, [*learn, *choose, *prove]) + proposal_forecasts
    for index, candidate in enumerate(trial.candidates):
        clusters = choose[: last_sizes[index]] + (prove if index == 0 else [])
        if candidate in known_candidates:
            forecasts += forecasts_of(candidate, clusters)
        else:  # GEPA tries each proposal on *learn*, and its instructions are not known yet
            as_proposal = {"rater_id": candidate.origin, "sample": None}
            forecasts += forecasts_of(candidate, [*clusters, *learn], **as_proposal)
    if reworded := [candidate for candidate in trial.candidates if trial.is_reworded(candidate)]:
        (audit,) = forecast_audit(study, reworded[-1].audit)  # a proposal's, if there are any
        name = written("improve.audited", grader=written("improve.best"))
        forecasts.append(replace(audit, rater_id=name, sample=None))
    return forecasts


def _last_round_sizes(n_clusters: int, n_candidates: int) -> list[int]:
    """Return the number of clusters that each candidate grades in its last round, which has the
    most, if each round drops the last half of the candidates.

    >>> versions.round_sizes(75, 5), _last_round_sizes(75, 5)
    ([20, 38, 75], [75, 75, 38, 20, 20])
    """
    sizes, n_remaining = [0] * n_candidates, n_candidates
    for size in versions.round_sizes(n_clusters, n_candidates):
        sizes[:n_remaining] = [size] * n_remaining
        n_remaining = math.ceil(n_remaining / 2)
    return sizes


class Trial:
    """A study's labels on one rubric, split, with the old grader and, unless `with_candidates` is
    false, the candidates. Raises InputError as `improve` does. Annotators' labels are those at the
    start; later ones wait for the next run. From the stored ratings to the labels compared:

    _initial_ratings    all ratings on the rubric at the start
    _counted_ratings()  annotators' of these and graders' at present, if an analysis counts them
    ratings()           the same, with a declared reference rater in place of annotators
    _ratings_of()       those of annotators and some graders on some clusters
    labels_of()         the same, encoded for the statistics
    grades_of()         one grader's labels on some clusters, by unit
    """

    def __init__(self, study: Study, options: ImproveOptions, with_candidates: bool = True) -> None:
        if options.rubric not in study.rubrics:
            rubrics = ", ".join(study.rubrics)
            raise InputError(f"the study has no rubric {options.rubric!r}; it has {rubrics}")
        self.study, self._options = study, options
        self.rubric = study.rubrics[options.rubric]
        if not self.rubric.kind.is_single:
            raise InputError(written("improve.several", rubric=self.rubric.name))
        # Each group needs those above it. First what asks the graders.
        self._grading = replace(options.grading, rubrics=[self.rubric.name])
        ratings = study.ratings()
        self._initial_ratings = ratings[ratings["rubric"] == self.rubric.name]
        is_grade = self._initial_ratings["rater_kind"] == "model"
        self._initial_graders = {*self._initial_ratings.loc[is_grade, "rater_id"]}  # rater ids
        self.asked_grader = self._asked_grader()
        self.proposals = options.proposals  # the number of proposals that GEPA may request
        self.proposer = options.proposer or self.asked_grader  # the model that writes proposals
        self._check_proposals()
        # What `ratings()` counts, and by what clusters.
        dataset = from_study(study)
        log.check_clusters(study.store, self.rubric.name, dataset.settings.cluster)
        # Grades that chose an earlier winner are withheld from reports, but count here: the test
        # set holds other clusters.
        self._scale = replace(dataset.scales[self.rubric.name], withheld={})
        scales = {self.rubric.name: self._scale}
        self._dataset = replace(dataset, ratings=self._initial_ratings, scales=scales)
        self.rule = dataset.decision  # the settings of the verdict
        self.cluster_of_unit = clusters_of(dataset)
        # The split.
        self._stored_parts = cast("dict[str, Part]", log.parts_of(study.store, self.rubric.name))
        ratings = self.ratings()
        self.parts = self._split(ratings)  # by cluster
        human_labels = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
        self.units_by_cluster: dict[str, list[str]] = {}  # those that annotators labelled
        for unit in sorted(set(human_labels["unit_id"])):
            if cluster := self.cluster_of_unit.get(unit):
                self.units_by_cluster.setdefault(cluster, []).append(unit)
        # The graders to compare. Candidates with the old grader's rater id are left out.
        old, origin = options.grader, written("improve.old")
        self.old = Candidate(old, origin, old, self._grading, is_imported=True)  # as it is stored
        if self.asked_grader == old:
            self.old = self._candidate(old, self._grading, origin)
        self._candidates_of_options = self._read_candidates() if with_candidates else []
        self.candidates = self._candidates_of_options  # those of the options, then proposed ones

    def _asked_grader(self) -> str:
        """Return the grader that is asked with other prompts: the old one, or if its labels were
        imported the first of the other graders; "" if there is none.
        """
        old = self._options.grader
        if old in self._initial_graders:
            try:
                parse_spec(old, self.study.config.providers)
            except InputError:  # no provider has the name: its labels were imported
                return next(iter(self._options.other_graders), "")
        return old

    def _check_proposals(self) -> None:
        """Raise InputError if the proposals that are asked for cannot be made."""
        if self.proposals not in range(suggestions.MOST_PROPOSALS + 1):
            raise InputError(written("improve.count_proposals", most=suggestions.MOST_PROPOSALS))
        if self.proposals:
            if self.rubric.prompt or not self.rubric.kind.listed:
                raise InputError(written("improve.no_proposals", rubric=self.rubric.name))
            running.parse_proposer(self.study, self.proposer)
            if find_spec("gepa") is None:
                raise InputError(written("improve.no_gepa"))

    def _split(self, ratings: pd.DataFrame) -> dict[str, Part]:
        """Return the part of each cluster, stored or new. Raises InputError for too few labels."""
        rule, rubric, stored = self.rule, self.rubric.name, self._stored_parts
        strata = versions.strata_of(ratings, self.cluster_of_unit)
        majority = versions.majority_label(ratings)
        needed = versions.clusters_to_split(strata, majority, rule.min_clusters, rule.min_rarer)
        if needed and not stored:
            figures = {"have": len(strata), "needed": needed}
            raise InputError(written("improve.too_few", rubric=rubric, **figures))
        return versions.split_clusters(strata, stored, seed=self.study.config.seed, rubric=rubric)

    def _read_candidates(self) -> list[Candidate]:
        """Return the candidates of the options: the prompts in a folder, then other graders."""
        options, grading = self._options, self._grading
        if not self.asked_grader:
            raise InputError(written("improve.imported", grader=options.grader))
        files = sorted(options.candidates.glob("*.toml")) if options.candidates else []
        if options.candidates and not files:
            raise InputError(written("improve.no_files", folder=options.candidates))
        candidates = []
        for file in files:
            prompt = read_own_words(file)
            prompted = replace(grading, prompt=prompt)
            if isinstance(prompt, JudgePrompt):
                if missing := missing_from(prompt, self.rubric):
                    raise InputError(written("improve.changed", file=file.name, missing=missing))
                prompted = replace(prompted, method="")  # a whole prompt asks for a label
            candidates.append(self._candidate(self.asked_grader, prompted, file.name))
        origin = written("improve.other_grader")
        candidates += [self._candidate(other, grading, origin) for other in options.other_graders]
        candidates = self._without_repeats(candidates)
        if not candidates and not options.proposals:
            raise InputError(written("improve.no_candidates"))
        return candidates

    def _without_repeats(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the first candidate of each rater id, without that of the old grader."""
        by_id: dict[str, Candidate] = {}
        for candidate in candidates:
            if candidate.rater_id != self.old.rater_id:
                by_id.setdefault(candidate.rater_id, candidate)
        return [*by_id.values()]

    def _candidate(self, grader: str, grading: GradingOptions, origin: str) -> Candidate:
        """Return a grader with these options, under the rater id by which its labels are stored."""
        (task,) = running.plan_tasks(self.study, [(grader, grading)])
        return Candidate(task.rater_id, origin, grader, grading)

    def add(self, proposed: suggestions.Proposals) -> None:
        """Add a candidate for each set of proposed instructions, in place of any earlier ones."""
        candidates = [self.reworded(entry.instructions, entry.origin) for entry in proposed.to_try]
        self.candidates = self._without_repeats([*self._candidates_of_options, *candidates])

    def reworded(self, instructions: Instructions, origin: str) -> Candidate:
        """Return the old grader with these instructions, as GEPA tries and proposes it."""
        grading = self.old.grading
        # A whole prompt always asks for a label; instructions then get the default method.
        method = "" if isinstance(grading.prompt, JudgePrompt) else grading.method
        grading = replace(grading, prompt=instructions, method=method)
        return self._candidate(self.asked_grader, grading, origin)

    def is_reworded(self, candidate: Candidate) -> bool:
        """Return True if a candidate's prompt is neither the rubric's (None) nor the old one's."""
        return candidate.grading.prompt not in (None, self.old.grading.prompt)

    def clusters_in(self, part: Part) -> list[str]:
        """Return the labelled clusters of a part, in the order in which they are used."""
        clusters = [cluster for cluster in self.units_by_cluster if self.parts[cluster] == part]
        return versions.hash_order(clusters, seed=self.study.config.seed, rubric=self.rubric.name)

    def units_in(self, clusters: Collection[str]) -> set[str]:
        """Return the labelled units of these clusters."""
        return {unit for cluster in clusters for unit in self.units_by_cluster[cluster]}

    def gradings_of(self, candidate: Candidate, clusters: Sequence[str]) -> list[Grading]:
        """Return a candidate with its options on these clusters; [] if its labels were imported."""
        return [] if candidate.is_imported else [candidate.grading_of(self.units_in(clusters))]

    def _counted_ratings(self) -> pd.DataFrame:
        """Return the rubric's ratings that count: annotators' at the start, graders' at present."""
        ratings = self.study.ratings()
        is_grade = (ratings["rubric"] == self.rubric.name) & (ratings["rater_kind"] == "model")
        human_ratings = self._initial_ratings[self._initial_ratings["rater_kind"] != "model"]
        ratings = pd.concat([human_ratings, ratings[is_grade]], ignore_index=True)
        ratings = ratings[ratings["unit_id"].isin(self.cluster_of_unit.keys())]
        return replace(self._dataset, ratings=ratings).counted(self.rubric.name)

    def ratings(self) -> pd.DataFrame:
        """Return the ratings that count; a declared reference rater replaces annotators."""
        ratings = self._counted_ratings()
        if reference := self.rule.reference:
            is_reference = ratings["rater_id"] == reference
            is_replaced = (ratings["rater_kind"] == "human") & ~is_reference
            kinds = ratings["rater_kind"].where(~is_reference, "human")
            ratings = ratings.assign(rater_kind=kinds)[~is_replaced]
        return ratings

    def _ratings_of(self, rater_ids: Collection[str], clusters: Collection[str]) -> pd.DataFrame:
        """Return the ratings of annotators and these graders on these clusters."""
        ratings = self.ratings()
        is_rater = (ratings["rater_kind"] == "human") | ratings["rater_id"].isin(list(rater_ids))
        return ratings[is_rater & ratings["unit_id"].isin(self.units_in(clusters))]

    def labels_of(self, rater_ids: Collection[str], clusters: Collection[str]) -> LabelMatrix:
        """Return the labels of annotators and these graders on these clusters alone."""
        ratings, units = self._ratings_of(rater_ids, clusters), sorted(self.units_in(clusters))
        cluster_ids = [self.cluster_of_unit[unit] for unit in units]
        table = pd.DataFrame({"unit_id": units, "cluster_id": cluster_ids})
        all_units = self._dataset.units.set_index("unit_id")
        if INCLUSION in all_units:  # units were sampled with unequal probabilities
            table[INCLUSION] = table["unit_id"].map(all_units[INCLUSION])
        combined = combine_readings(ratings, self._scale)
        return encode(combined, self._scale, with_weights(table, ratings, "pair"))

    def grades_of(self, rater_id: str, clusters: Collection[str]) -> dict[str, str]:
        """Return a grader's combined labels by unit, as they are compared with annotators'."""
        ratings = self._ratings_of([rater_id], clusters)
        combined = combine_readings(ratings[ratings["rater_id"] == rater_id], self._scale)
        return {
            combined.units[unit_code]: self._scale.categories[code]
            for unit_code, code in zip(combined.unit, combined.code, strict=True)
            if code >= 0  # -1: no label
        }

    def labels_outside_test(self) -> LabelMatrix:
        """Return the labels of annotators and the old grader on *learn* and *choose*."""
        clusters = [*self.clusters_in("learn"), *self.clusters_in("choose")]
        return self.labels_of([self.old.rater_id], clusters)

    def units_to_learn(self) -> list[suggestions.LearnUnit]:
        """Return the units of *learn*, with labels of annotators alone and of the old grader."""
        clusters, old = self.clusters_in("learn"), self.old.rater_id
        ratings, grades = self._ratings_of([], clusters), self.grades_of(old, clusters)
        return suggestions.units_to_learn(self.study, self.rubric.name, ratings, old, grades)

    def gepa_input(self) -> suggestions.GepaInput:
        """Return the input of GEPA: the old grader's instructions, and its labels on *learn*."""
        prompt = self.old.grading.prompt
        prompt_text = prompt.instructions if isinstance(prompt, Instructions) else ""
        text, units = prompt_text or self.rubric.instructions, self.units_to_learn()
        return suggestions.GepaInput(self.rubric, self.old.rater_id, text, units, self.proposals)

    def note_parts(self, done_by: str) -> None:
        """Store the parts of clusters that had none."""
        stored, column = self._stored_parts, self._dataset.settings.cluster
        if new_parts := {name: part for name, part in self.parts.items() if name not in stored}:
            log.note_parts(self.study.store, self.rubric.name, new_parts, column, done_by)

    def note_candidates(self, done_by: str, proposals: Sequence[Candidate] = ()) -> None:
        """Store candidates, and `proposals` tried on *learn*, before their first requests."""
        store, rubric, old = self.study.store, self.rubric.name, self.old.rater_id
        log.note_start(store, rubric, old, is_new=old not in self._initial_graders, done_by=done_by)
        tried = {
            candidate.rater_id: log.CandidateRecord(
                origin=candidate.origin,
                is_new=candidate.rater_id not in self._initial_graders,
                has_own_text=self.is_reworded(candidate),
            )
            for candidate in (*self.candidates, *proposals)
        }
        log.note_candidates(store, rubric, tried, done_by)

    @property
    def next_level(self) -> float:
        """The one-sided level of the next reading of *prove*; 0.0 if no error rate is left."""
        n_readings = len(log.contents_read(self.study.store, self.rubric.name))
        return level_of_reading(n_readings + 1, self.rule.looks)

    def verdict_on(self, rater_id: str, clusters: Collection[str], reading: int) -> Verdict | None:
        """Return the ordinary verdict on a grader from these clusters alone, with this run's
        injection audit. It counts as a look at the study, as a report on the same labels would. Its
        level is that of this look's number or, if larger, of that of the `reading` of *prove*:
        there may be more readings than looks, as each may be of another grader.
        """
        ratings, units = self._counted_ratings(), self.units_in(clusters)
        is_rater = (ratings["rater_kind"] != "model") | (ratings["rater_id"] == rater_id)
        hashes = label_hashes(self._dataset)
        look = look_numbers(self.study.store, hashes, record=True).get(self.rubric.name, 1)
        looks = {self.rubric.name: max(look, reading)}
        attacked = attacked_table(self.study.store, self.study.accepted_hashes())
        dataset = replace(
            self._dataset,
            ratings=ratings[is_rater & ratings["unit_id"].isin(units)],
            facts=replace(self._dataset.facts, looks=looks, attacked=attacked),
        ).named()
        verdicts, name = dataset.analyse().verdicts, dataset.name_of(rater_id)
        return next((verdict for verdict in verdicts if verdict["grader"] == name), None)


def missing_from(prompt: JudgePrompt, rubric: Rubric) -> str:
    """Return the first of the rubric's question and its options' keys that a prompt does not have
    word for word, "" if it has all: annotators and graders must be asked the same question.
    """
    text = " ".join(f"{prompt.system} {prompt.template}".split())
    if (question := " ".join(rubric.question.split())) not in text:
        return question
    keys = (option.key for option in rubric.kind.listed)
    return next((key for key in keys if not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text)), "")


class _Stopped(Exception):  # noqa: N818 - not an error
    """A round of grading ended early, or a rehearsal (`check_provable`) lacks a stored grade."""


class _Selection:
    """Proposes and chooses candidates from stored grades. Raises _Stopped if any is missing."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._graded_clusters: dict[str, set[str]] = {}  # passed to `_grade` before, by rater id
        self.result = Improvement(
            rubric=trial.rubric.name,
            old=trial.old,
            candidates=trial.candidates,
            part_sizes=Counter(trial.parts[cluster] for cluster in trial.units_by_cluster),
            names=trial.study.config.names,
        )

    def propose(self) -> None:
        """Add the candidates that GEPA makes from *learn*, if proposals were asked for."""
        trial = self.trial
        if not trial.proposals:
            return
        learn = trial.clusters_in("learn")
        self._grade_clusters([trial.old.rater_id], learn)

        def grade(instructions: Instructions, units: Sequence[str]) -> dict[str, str]:
            candidate = trial.reworded(instructions, written("improve.while_learning"))
            self._grade([candidate.grading_of(units)], [candidate])
            return trial.grades_of(candidate.rater_id, learn)

        gepa, seed = trial.gepa_input(), trial.study.config.seed
        proposed = suggestions.proposed_by_gepa(gepa, seed, self._answer, grade)
        trial.add(proposed)
        self.result.candidates, self.result.remarks = trial.candidates, tuple(proposed.remarks)

    def choose(self) -> None:
        """Choose the best candidate on *choose*."""
        trial, clusters = self.trial, self.trial.clusters_in("choose")
        old, candidates = trial.old.rater_id, [entry.rater_id for entry in trial.candidates]
        labels_of = self._graded_labels
        self.result.choice = versions.choose(old, candidates, clusters, labels_of, trial.rule)

    def _graded_labels(self, rater_ids: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
        """Grade these clusters, and return graders' and annotators' labels on them."""
        self._grade_clusters(rater_ids, clusters)
        return self.trial.labels_of(rater_ids, clusters)

    def _grade_clusters(self, rater_ids: Sequence[str], clusters: Sequence[str]) -> None:
        """Let graders grade these clusters, but none twice."""
        by_id = {grader.rater_id: grader for grader in (self.trial.old, *self.trial.candidates)}
        gradings = []
        for rater_id in rater_ids:
            graded = self._graded_clusters.setdefault(rater_id, set())
            ungraded = [cluster for cluster in clusters if cluster not in graded]
            gradings += self.trial.gradings_of(by_id[rater_id], ungraded)
            graded.update(clusters)
        self._grade(gradings)

    def _grade(self, gradings: Sequence[Grading], proposals: Sequence[Candidate] = ()) -> None:
        """Raise _Stopped if a grade is missing; `_Run` sends requests for it instead."""
        if any(len(task.questions) for task in running.plan_tasks(self.trial.study, gradings)):
            raise _Stopped

    def _answer(self, request: PromptText, about: Mapping[str, Any]) -> ProposalAttempt:
        """Return the proposer's stored answer, or raise _Stopped; `_Run` sends the request."""
        rubric, proposer = self.trial.rubric.name, self.trial.proposer
        attempt = running.stored_proposal(self.trial.study, rubric, proposer, request)
        if attempt is None:
            raise _Stopped
        return attempt


def check_provable(trial: Trial) -> None:
    """Raise InputError if the choice needs further requests although no gain could be shown
    whatever they return: no level is left, or the old grader is hardly ever wrong.
    """
    rehearsal = _Selection(trial)
    try:
        rehearsal.propose()
        rehearsal.choose()
        return
    except _Stopped:  # requests are needed
        pass
    if not (level := trial.next_level):
        name = trial.rubric.name
        readings = len(log.contents_read(trial.study.store, name))
        raise InputError(written("improve.no_level_left", rubric=name, readings=readings))
    old, n_clusters = trial.old.rater_id, len(trial.clusters_in("prove"))
    if shortage := versions.too_few_errors(trial.labels_outside_test(), old, n_clusters, level):
        errors, needed = shortage
        figures = {"errors": errors, "clusters": n_clusters, "needed": needed}
        raise InputError(written("improve.impossible", old=old, **figures))


class _Run(_Selection):
    """One run of `improve`, which sends the requests that are missing, within `rounds`."""

    def __init__(self, trial: Trial, rounds: running.Rounds, done_by: str) -> None:
        super().__init__(trial)
        self.rounds, self.done_by = rounds, done_by

    def _grade(self, gradings: Sequence[Grading], proposals: Sequence[Candidate] = ()) -> None:
        """Store candidates and `proposals`, then grade. Raises _Stopped if ended early."""
        trial, done_by = self.trial, self.done_by
        summary = self.rounds.grade(gradings, lambda: trial.note_candidates(done_by, proposals))
        _check_finished(summary)

    def _answer(self, request: PromptText, about: Mapping[str, Any]) -> ProposalAttempt:
        rubric, proposer = self.trial.rubric.name, self.trial.proposer
        attempt = running.propose(self.rounds, rubric, proposer, request, about)
        if attempt is None:
            raise _Stopped
        return attempt

    def choose_and_prove(self) -> Improvement:
        """Choose the best candidate, test its gain, store and return the result."""
        result, trial = self.result, self.trial
        try:
            if trial.proposals:
                spec, _ = running.parse_proposer(trial.study, trial.proposer)
                prices = trial.study.config.prices
                running.tariff_for(spec, self.rounds.budget, tier="", prices=prices)  # may raise
                self.propose()
                trial.note_candidates(self.done_by)
            self.choose()
            if result.best is not None:
                clusters, best = trial.clusters_in("choose"), result.best.rater_id
                log.note_choice(trial.study.store, result.rubric, best, clusters, self.done_by)
                self._prove(result.best)
        except _Stopped:  # a run that ended early has no result
            result.choice, result.chance, result.difference = None, math.nan, ""
        result.run = self.rounds.summary
        if result.choice is not None:
            self._store_result(result.choice)
        return result

    def _prove(self, best: Candidate) -> None:
        """Test the best candidate's gain unless that is too unlikely or its audit fails."""
        result, trial = self.result, self.trial
        old, new = result.old.rater_id, best.rater_id
        store, rubric = trial.study.store, trial.rubric.name
        clusters = trial.clusters_in("prove")
        stored_labels = trial.labels_of([old, new], clusters)
        content = versions.content_hash(stored_labels, old, new)
        was_read = content in log.contents_read(store, rubric)
        if not was_read:  # else the outcome is known, and repeating the test costs nothing
            choose_labels = trial.labels_of([old, new], trial.clusters_in("choose"))
            level, n_clusters = trial.next_level, len(clusters)
            result.chance = versions.chance_of_proof(choose_labels, old, new, n_clusters, level)
            result.has_no_level = not level
            if result.chance < versions.MIN_PROOF_CHANCE:
                return
        self._audit(best)
        if result.audit_failure:
            return
        labels = stored_labels if was_read else self._graded_labels([old, new], clusters)
        reading = ProofReading(old=old, new=new, content=versions.content_hash(labels, old, new))
        reading_number = log.note_reading(store, rubric, reading, self.done_by)
        result.gain = versions.prove(labels, old, new, trial.rule, reading_number)
        if result.gain.outcome == "better":
            result.verdict = trial.verdict_on(new, clusters, reading_number)
            result.was_known = not log.candidates_of(store, rubric)[new].is_new
        command = ["evenhand", "grade", str(trial.study.folder), f"--rubric={rubric}"]
        result.command = shlex.join([*command, *_options_of(trial, best), "--scope=all"])

    def _audit(self, best: Candidate) -> None:
        """Audit the best candidate for prompt injection if it has another prompt, and compare the
        prompts: one that was written from responses may repeat an attack that a response contains.
        """
        result, trial = self.result, self.trial
        if not trial.is_reworded(best):
            return
        # The prompt behind imported labels is unknown: the rubric's own is shown in its place.
        old_lines = _prompt_lines(trial.rubric, trial.old.grading.prompt)
        old_name = trial.rubric.name if trial.old.is_imported else trial.old.rater_id
        new_lines, new_name = _prompt_lines(trial.rubric, best.grading.prompt), best.rater_id
        diff_lines = difflib.unified_diff(old_lines, new_lines, old_name, new_name, lineterm="")
        result.difference = "\n".join(diff_lines)
        _check_finished(audit_in_rounds(self.rounds, best.audit))
        bounds = trial.rule.injection
        for audit in audits_of(trial.study, best.rater_id):
            if audit.rubric == trial.rubric.name and (attacks := audit.beyond(bounds)):
                figures = attacks[0].figures(bounds.of(attacks[0].name))
                result.audit_failure = written("improve.gives_way", **figures)
                return

    def _store_result(self, choice: Choice) -> None:
        """Store the result: figures of all candidates, and where the best comes from."""
        result, gain, best = self.result, self.result.gain, self.result.best
        # The price since the labels were split: of all grades of the split units, those of earlier
        # candidates too, of audits of candidates, and of proposals.
        store, units = self.trial.study.store, self.trial.units_in(self.trial.units_by_cluster)
        raters = {result.old.rater_id, *log.candidates_of(store, result.rubric)}
        detail: dict[str, Any] = {
            "outcome": result.outcome,
            "old": result.old.rater_id,
            "new": best.rater_id if best else "",
            "origin": best.origin if best else "",
            "prompt": best.grading.prompt.hash if best and best.grading.prompt else "",
            "price": log.price_of(store, result.rubric, raters, units),
            "parts": dict(result.part_sizes),
            "rounds": [
                {
                    "clusters": stage.clusters,
                    "kappas": {name: _number(score.kappa) for name, score in stage.scores.items()},
                }
                for stage in choice.rounds
            ],
            "verdict": result.verdict["verdict"] if result.verdict else "",
            "gives_way": result.audit_failure,
            "known_before": result.was_known,
            "said": list(result.remarks),
            "no_level": result.has_no_level,
            # The options of a command that asks the old grader.
            "asked": [f"--rubric={result.rubric}", *_options_of(self.trial, result.old)],
            "rubric_hash": self.trial.rubric.hash,
        }
        if gain is not None:
            names = ("estimate", "low", "high", "before", "after", "level")
            detail |= {name: _number(getattr(gain, name)) for name in names}
            # The key "look", like the field, has the number of the reading of *prove*.
            detail |= {"look": gain.look, "clusters": gain.clusters, "units": gain.units}
            detail |= {"difference": result.difference, "command": result.command}
        log.note_end(store, result.rubric, detail, self.done_by)


def _check_finished(summary: running.RunSummary) -> None:
    """Raise _Stopped if a round ended early."""
    if summary.over_budget or summary.stopped:
        raise _Stopped


def _number(value: float) -> float | None:
    """Return a figure as JSON has it: None for NaN."""
    return None if math.isnan(value) else value


def _prompt_lines(rubric: Rubric, prompt: JudgePrompt | Instructions | None) -> list[str]:
    """Return the lines of a grader's prompt, with the names of a unit's texts in braces."""
    if isinstance(prompt, JudgePrompt):
        return f"{prompt.system}\n{prompt.template}".strip().splitlines()
    if rubric.images:  # `for_prompt` makes a text, without images
        instructions = prompt.instructions if prompt else ""  # "" for examples alone
        return (instructions or rubric.instructions).splitlines()
    prompted = prompt.for_rubric(rubric) if prompt else rubric
    text = prompted.for_prompt({name: f"{{{name}}}" for name in rubric.variables})
    return f"{text.system}\n\n{text.user}".strip().splitlines()


def _options_of(trial: Trial, candidate: Candidate) -> list[str]:
    """Return the command-line options that ask a grader as this one was asked."""
    folder, grading = trial.study.folder, candidate.grading
    options = {
        "--grader": candidate.grader,
        "--prompt": grading.prompt and folder / PROMPTS_FOLDER / f"{grading.prompt.hash}.toml",
        "--method": grading.method,
        "--draws": grading.draws if grading.draws != 1 else None,
        "--max-tokens": grading.max_tokens,
        "--effort": grading.effort,
        "--service-tier": grading.service_tier,
        "--orders": "ab" if tuple(grading.orders) == ("ab",) else None,  # the default is both
        "--temperature": None if grading.temperature is None else str(grading.temperature),
        "--seed": None if grading.seed is None else str(grading.seed),  # "0" is a value too
    }
    return [f"{name}={value}" for name, value in options.items() if value]
