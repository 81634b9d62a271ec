"""Analyse two tables, ratings and units, rubric by rubric: results, verdicts on graders, and notes.

The parts, in this order: the result (`Analysis`); all rubrics (`analyse`, and `analyse_reduced` for
ratings that were reduced to patterns of labels while they were read); one rubric
(`analyse_rubric`, `analyse_patterns`, `analyse_sets`); verdicts across rubrics; and the registry of
statistics. To add a statistic, write a function that adds its rows to a view of the labels (the
rubric's categories or the binary label, with resamples; see `analysis.writer`), and enter it in
`STATISTICS`, in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, product
from operator import attrgetter
from typing import Any, Literal, Self, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.analysis import raters, verification
from evenhand.analysis.agreement import groups, numbers, pairs
from evenhand.analysis.bias import audit
from evenhand.analysis.bootstrap import resamples as resampling
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import add_injection_rows
from evenhand.analysis.labels import encoding, matrix
from evenhand.analysis.labels.matrix import BINARY_ALL, WEIGHT, LabelMatrix, UnitColumn, listed
from evenhand.analysis.labels.scale import MAX_CATEGORIES, Scale
from evenhand.analysis.people import annotators, comparison, disagreements, slices
from evenhand.analysis.people.annotators import Selection
from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.planning import VarianceComponents, components_of
from evenhand.analysis.request import Request, StudyFacts
from evenhand.analysis.requirement import Pilot
from evenhand.analysis.results import ResultRow, ResultRows, results_table
from evenhand.analysis.statistics import says
from evenhand.analysis.subjects import corrected_rates, preference, scores
from evenhand.analysis.subjects.corrected_rates import LabelSpread
from evenhand.analysis.thresholds import tuning as thresholds
from evenhand.analysis.thresholds.tuning import ActiveThreshold
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.analysis.verdicts import evidence, requirements
from evenhand.analysis.verdicts.judge import Verdict, judge_graders, pilots
from evenhand.analysis.verdicts.wording import PASSES, opposed_in_words
from evenhand.analysis.verification import Verification
from evenhand.analysis.writer import Draw, RatedView, RubricView, View
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics.loading import own_prompt_raters
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import validate_ratings
from evenhand.texts import written

__all__ = ["Analysis", "AnalysisSettings", "DecisionSettings", "analyse"]

MAX_NAMED = 12
"""Most annotators named in a message."""
_JUDGED = frozenset((*evidence.STATISTICS, *requirements.STATISTICS))
"""Statistics that verdicts are made from."""
_EXPLAINING_LEVEL = 0.05
"""Level, over all columns and rubrics, at which a column of annotators explains their labels."""
_SETTINGS, _DECISION, _FACTS = AnalysisSettings(), DecisionSettings(), StudyFacts()


@dataclass(frozen=True)
class LabelCounts:
    """Counts of the labels of one rubric.

    `items` is the number of items that `annotators` labelled, `clusters` that of their clusters,
    `shared` that of the items with labels of two or more annotators. `missing` is the number of
    labels that annotators were assigned and did not give. `graders` are names, `excluded` is the
    number of raters left out. `selection` is a sentence on which labels agreement is computed from,
    if some were assigned because of others, else "".
    """

    annotators: int = 0
    items: int = 0
    clusters: int = 0
    shared: int = 0
    missing: int = 0
    graders: tuple[str, ...] = ()
    excluded: int = 0
    selection: str = ""

    @classmethod
    def of(cls, labels: LabelMatrix, selection: Selection, times: Frequency | None = None) -> Self:
        """Count the labels of one rubric; `times` (units,) is the frequency of each unit."""
        people = list(labels.humans)
        has_label, assigned = labels.scored[:, people], labels.assigned[:, people]
        times = np.ones(len(has_label), dtype=np.int64) if times is None else times
        n_labels = has_label.sum(axis=1)
        is_unknown = selection.rule == "unknown"
        return cls(
            annotators=len(people),
            items=int(times[n_labels >= 1].sum()),
            clusters=len(np.unique(labels.clusters[n_labels >= 1])),
            shared=int(times[n_labels >= 2].sum()),
            missing=int(times @ (assigned & ~has_label).sum(axis=1)),
            graders=tuple(labels.raters[model] for model in labels.models),
            selection=written("selection.unknown") if is_unknown else selection.note,
        )


@dataclass(frozen=True)
class Analysis:
    """Result of an analysis: the rows of the `results` table, a verdict per rubric and grader,
    notes, and the units where graders and humans disagree most.
    """

    rows: list[ResultRow]
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verification: Verification | None = None
    settings: AnalysisSettings = _SETTINGS
    decision: DecisionSettings = _DECISION
    components: dict[str, VarianceComponents] = field(default_factory=dict)
    """By rubric, the variance of humans' labels between units, between raters, and the residual."""
    spreads: dict[str, dict[tuple[str, str], LabelSpread]] = field(default_factory=dict)
    """By rubric, standard deviations for planning, by ("mean" or "difference", grader)."""
    pilots: list[Pilot] = field(default_factory=list)
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    thresholds: list[ActiveThreshold] = field(default_factory=list)
    cluster_nouns: dict[str, str] = field(default_factory=dict)
    """By rubric, the noun for a cluster in a sentence."""
    counts: dict[str, LabelCounts] = field(default_factory=dict)
    """By rubric, the counts of its labels."""
    orders: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """By rubric and grader, the orders in which it read the responses of pairs, where known."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the raters and rubrics with a display name, by this name."""

    @property
    def rule(self) -> str:
        """Rule that a grader had to meet, in words."""
        return self.decision.rule(self.settings.margin)

    @cached_property
    def results(self) -> pd.DataFrame:
        """Rows as the `results` table (results.csv)."""
        return results_table(self.rows)


# The analysis of all rubrics


def analyse(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scales: Mapping[str, Scale] | Iterable[Scale],
    settings: AnalysisSettings = _SETTINGS,
    decision: DecisionSettings = _DECISION,
    *,
    facts: StudyFacts = _FACTS,
    verify: bool = False,
    why: bool = False,
    **changes: Any,
) -> Analysis:
    """Analyse the agreement of the raters in `ratings`: return all statistics, verdicts and notes.

    `ratings` and `units` are the two tables of data/README.md; without `units` every unit is its
    own cluster and there are no subjects. `scales` declares each rubric's categories. `settings`
    and `decision` are the sections `[analysis]` and `[decision]` of study.toml, where each setting
    is documented; `changes` are single fields of either, such as `slices=["topic"]` or
    `margin=0.05`, and the `seed` of all resampling. `facts` are further facts about the ratings.

    Intervals come from bootstrap resamples of clusters: prompt pairs, the units column named by
    `cluster`, or with "unit" single units (see `analysis.bootstrap.intervals`). The main figures
    are the agreement of humans, of each grader with humans, and the difference of the two. On
    request they are repeated for every value of the units columns `slices`, for the humans of every
    value of the columns `rater_slices` of `facts.raters`, and with intervals from resampling the
    clusters of `sensitivity_cluster` (`at` is "cluster=COLUMN"). The bias audit includes the slices
    and groups of humans.

    `variants` are units columns that distinguish variants of one question, for the stability of
    labels (see `analysis.agreement.groups`). A scale that is a `variant_of` another adds raters'
    stability under it, and nothing else unless humans labelled under it. `groups` are units columns
    that name the group a unit is about, for performance by group (see `analysis.people.slices`).

    With `verify`, estimates are checked against scikit-learn, krippendorff and statsmodels if these
    are installed (see `analysis.verification`), which takes time to load them. With `why`, the
    variance of the humans' labels is split into units, raters and the residual.

    Raises InputError if the tables are inconsistent, a label lies outside its scale, a rubric has
    no scale, ratings of several versions of one rubric would be mixed, a column to slice by is
    missing or has more than 50 values, or a setting is unknown or out of range.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn", "ben": "yyynnnnn"}
    >>> rows = [(who, f"u{n}", label) for who in labels for n, label in enumerate(labels[who])]
    >>> ratings = pd.DataFrame(rows, columns=["rater_id", "unit_id", "label"])
    >>> ratings = ratings.assign(rater_kind="human")
    >>> results = analyse(ratings, None, [Scale("", ("y", "n"))], resamples=200).results
    >>> pair = results.query("rater_a == 'ann' and rater_b == 'ben'").set_index("statistic")
    >>> pair.loc[["observed_agreement", "cohen_kappa"], "estimate"].tolist()
    [0.875, 0.75]
    """
    seed = changes.pop("seed", SEED)
    settings, decision = with_changes(settings, decision, changes)
    request = Request(units, settings, decision, facts, seed, why=why)
    return analyse_rubrics(ratings, scales, request, verify=verify)


def analyse_rubrics(
    ratings: pd.DataFrame,
    scales: Mapping[str, Scale] | Iterable[Scale],
    request: Request,
    *,
    verify: bool = False,
    pool: Executor | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Analysis:
    """Carry out a request (see `analyse`). With a `pool` of processes, rubrics are analysed in
    parallel. `on_stage` is called with a description of each stage.
    """
    settings, facts = request.settings, request.facts
    people = slices.members_of(facts.raters, settings.rater_slices, request.screened)
    request = replace(request, people=people)
    verify = verify and verification.libraries_are_here()
    declared = _scales_by_name(scales, settings)
    ratings = _with_rubrics(validate_ratings(ratings, facts.source), declared, facts.source)
    _check_reference(request, set(ratings.loc[ratings["rater_kind"] != "model", "rater_id"]))
    ratings_by_rubric: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    for name in declared:
        accepted = None if facts.rubric_hashes is None else facts.rubric_hashes.get(name)
        rubric_ratings = ratings[ratings["rubric"] == name]
        ratings_by_rubric[name], messages = encoding.one_version(rubric_ratings, name, accepted)
        notes += messages
    tasks = _rubric_tasks(declared, ratings_by_rubric, request, verify=verify)
    # Without a pool, each rubric is analysed when it is the next, after its stage is announced.
    analysed = iter((pool.map if pool else map)(analyse_rubric, tasks))
    results: list[RubricAnalysis] = []
    analysed_sets: set[str] = set()
    for number, task in enumerate(tasks, start=1):
        if on_stage:
            on_stage(f"analysing {task.scale.name or 'labels'} ({number} of {len(tasks)})")
        name = task.scale.part_of  # the rubric with sets of options that this option belongs to
        if name and name not in analysed_sets:
            analysed_sets.add(name)
            results.append(analyse_sets(name, [t for t in tasks if t.scale.part_of == name]))
        results.append(next(analysed))  # of this task
    judge_across_rubrics(results)
    return _combined(results, notes, request, verify=verify)


def _check_reference(request: Request, people: Collection[str]) -> None:
    """Raise InputError if a reference is requested that is none of these annotators."""
    reference = request.decision.reference
    if reference and reference not in people:
        raise InputError(
            f"reference is {reference!r}, which is no annotator or adjudicator here; "
            f"there are {', '.join(sorted(people)[:MAX_NAMED]) or 'nobody'}"
        )


def _scales_by_name(
    scales: Mapping[str, Scale] | Iterable[Scale], settings: AnalysisSettings
) -> dict[str, Scale]:
    """Return the declared scales by rubric, with the weights that `settings` requests for ordered
    categories. Raises InputError if two have the same name.
    """
    declared: dict[str, Scale] = {}
    for scale in scales.values() if isinstance(scales, Mapping) else scales:
        if scale.name in declared:
            raise InputError(f"two scales are called {scale.name!r}; give each rubric one")
        declared[scale.name] = replace(scale, ordered=settings.ordered)
    return declared


def _with_rubrics(ratings: DataFrame, declared: Mapping[str, Scale], source: str) -> DataFrame:
    """Return the ratings; if only one scale is declared, ratings without a rubric get its name.
    Raises InputError for a rubric without a scale.
    """
    if len(declared) == 1:
        name = next(iter(declared))
        ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", name))
    unknown = ~ratings["rubric"].isin(list(declared))
    if unknown.any():
        row = int(unknown.to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(ratings, row)}: no scale is declared for the rubric "
            f"{ratings['rubric'].iloc[row]!r}; declare its categories or leave its rows out"
        )
    return ratings


def _rubric_tasks(
    scales: Mapping[str, Scale],
    ratings: Mapping[str, DataFrame],
    request: Request,
    *,
    verify: bool,
) -> list[RubricTask]:
    """Return a task for each rubric, except wordings of another rubric under which no human
    labelled: those show only the stability of graders. `ratings` are by rubric.
    """
    wordings = {s.name for s in scales.values() if s.variant_of and s.variant_of in scales}
    request = replace(request, n_rubrics=max(len(scales) - len(wordings), 1))
    tasks = []
    for name, scale in scales.items():
        other_wordings = (other for other in scales.values() if name and other.variant_of == name)
        variants = [(other, ratings[other.name]) for other in other_wordings]
        is_judged = name not in wordings
        if is_judged or ratings[name]["rater_kind"].eq("human").any():
            tasks.append(RubricTask(scale, ratings[name], variants, request, is_judged, verify))
    return tasks


def _combined(
    parts: Sequence[RubricAnalysis], notes: Sequence[str], request: Request, *, verify: bool = False
) -> Analysis:
    """Combine the analyses of the rubrics to report into one."""
    if request.reported is not None:
        sets = {scale.part_of for scale in request.reported.values()}
        parts = [part for part in parts if part.rows.rubric in {*request.reported} | sets]
    return Analysis(
        rows=[row for part in parts for row in part.rows.rows.values()],
        verdicts=[verdict for part in parts for verdict in part.verdicts],
        notes=[*notes, *(note for part in parts for note in part.notes)],
        verification=sum((part.verification for part in parts), Verification()) if verify else None,
        settings=request.settings,
        decision=request.decision,
        spreads={part.rows.rubric: part.spreads for part in parts if part.spreads},
        components={part.rows.rubric: part.components for part in parts if part.components},
        disagreements=[item for part in parts for item in part.disagreements],
        pilots=[pilot for part in parts for pilot in part.pilots],
        thresholds=[item for part in parts for item in part.thresholds],
        cluster_nouns={part.rows.rubric: part.cluster_noun for part in parts},
        counts={part.rows.rubric: part.counts for part in parts},
        orders={part.rows.rubric: part.orders for part in parts if part.orders},
        ids=request.facts.ids,
    )


def analyse_reduced(
    tables: Mapping[str, encoding.Reduced],
    scales: Mapping[str, Scale],
    *,
    seed: int = SEED,
    many: int = resampling.MANY_CLUSTERS,
    on_stage: Callable[[str], None] | None = None,
    reported: Mapping[str, Scale] | None = None,
    **changes: object,
) -> Analysis:
    """Analyse ratings that were reduced to patterns while read, a table per rubric (see `analyse`).

    Patterns of labels replace units, and `PatternResamples` their clusters. Analyses that need
    single ratings, their probabilities or facts about units are left out, and reported as such.
    `changes` are fields of the settings, `seed` is that of all resampling; more than `many`
    clusters are resampled in groups (see `analysis.bootstrap.resamples`). `reported` is as in
    `Request`.
    """
    settings, decision = with_changes(AnalysisSettings(), DecisionSettings(), changes)
    request = Request(None, settings, decision, seed=seed, reported=reported)
    kinds = {rater: kind for reduced in tables.values() for rater, kind in reduced.raters.items()}
    _check_reference(request, {rater for rater, kind in kinds.items() if kind != "model"})
    scales, results = _scales_by_name(scales, settings), []
    for number, (name, reduced) in enumerate(tables.items(), start=1):
        if on_stage:
            on_stage(f"resampling {name or 'labels'} ({number} of {len(tables)})")
        if reduced.is_unclustered:  # resample patterns by frequency
            resamples = request.resampled(reduced.times)
        else:
            keys = encoding.name_keys(reduced.clusters)
            resamples = resampling.resamples_of_patterns(
                reduced.cells, keys, partial(request.resampled, keep=False), seed, many
            )
        rubric_request = replace(request, _cached={})  # each rubric has a cache
        results.append(analyse_patterns(reduced, scales[name], resamples, rubric_request))
    judge_across_rubrics(results)
    return _combined(results, [], request)


# The analysis of one rubric


@dataclass(frozen=True)
class RubricTask:
    """Ratings of one rubric to analyse; `variants` are its other wordings with their ratings.
    `has_verdicts` is False for a rubric that is a wording of another. With `verify` the
    estimates are checked against other libraries'.
    """

    scale: Scale
    ratings: DataFrame
    variants: Sequence[tuple[Scale, DataFrame]]
    request: Request
    has_verdicts: bool
    verify: bool


@dataclass
class RubricAnalysis:
    """Result of the analysis of one rubric; without ratings it has no verdicts."""

    rows: ResultRows
    cluster_noun: str
    """The noun for a cluster in a sentence."""
    counts: LabelCounts = field(default_factory=LabelCounts)
    verdicts: list[Verdict] = field(default_factory=list)
    pilots: list[Pilot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    components: VarianceComponents | None = None
    spreads: dict[tuple[str, str], LabelSpread] = field(default_factory=dict)
    thresholds: list[ActiveThreshold] = field(default_factory=list)
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verification: Verification = field(default_factory=Verification)
    view_to_judge: RubricView | None = None
    """View from which the graders can be judged again at another level; None if not needed."""

    def note(self, sentence: str) -> None:
        """Add a note on this rubric."""
        self.notes.append(f"{self.rows.rubric}: {sentence}".removeprefix(": "))

    def judge(self, error: float) -> None:
        """Judge the graders again, for a probability `error` of a wrong pass."""
        if (view := self.view_to_judge) is None:
            return
        rows, former_order = self.rows, tuple(self.rows.rows)
        rows.rows = {key: row for key, row in rows.rows.items() if row["statistic"] not in _JUDGED}
        add_judged_rows(view, error)
        keys = (*former_order, *rows.rows)  # new rows last
        rows.rows = {key: rows.rows[key] for key in keys if key in rows.rows}
        self.decide(view.labels, view.request)

    def decide(self, labels: LabelMatrix, request: Request) -> None:
        """Set the verdicts on the graders, and on request the pilots, from the rows."""
        agreeing, rule, noun = labels.in_agreement, request.decision, self.cluster_noun
        self.verdicts = judge_graders(self.rows, agreeing, rule=rule, cluster_noun=noun)
        if request.why:
            self.pilots = pilots(self.rows, agreeing, self.verdicts, rule)

    @property
    def passing(self) -> set[str]:
        """Names of the graders that pass."""
        return {verdict["grader"] for verdict in self.verdicts if verdict["verdict"] in PASSES}


_Function = TypeVar("_Function", bound=Callable[..., object])


def _in_one_thread(function: _Function) -> _Function:
    """Return the function limited to one BLAS thread, which is faster for narrow matrices."""
    wrapped: _Function = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return wrapped


@_in_one_thread
def analyse_rubric(task: RubricTask) -> RubricAnalysis:
    """Analyse one rubric: encode its labels, add the rows of all statistics, judge its graders."""
    scale, request = task.scale, task.request
    result = RubricAnalysis(ResultRows(scale.name), _cluster_noun(request, scale))
    ratings = _counted_ratings(result, task)
    if ratings.empty:
        return result
    cluster = request.settings.cluster
    request = replace(request, units=matrix.with_weights(request.units, ratings, cluster))
    readings = encoding.combine_readings(ratings, scale, request.facts.source)
    labels = thresholds.with_held_out_thresholds(
        encoding.encode(readings, scale, request.units, cluster, request.columns)
    )
    label_times = annotators.label_times(ratings, readings.units, labels.raters)
    sample = Resamples(np.ones(labels.n_clusters, dtype=np.int64))  # the data, without draws
    labels, selection = _with_selection(result, labels, sample, request, label_times)
    n_excluded = task.ratings["rater_id"].nunique() - ratings["rater_id"].nunique()
    result.counts = replace(LabelCounts.of(labels, selection), excluded=n_excluded)
    if request.why:
        result.components = components_of(labels)
        categories, *binary = RubricView.of_labels(result.rows, labels, sample, request)
        # For planning, on the view with a mean: of ordered categories, or the binary label, if any.
        for view in [categories] if corrected_rates.has_means(labels.scale) else binary:
            result.spreads = corrected_rates.label_spreads(view)
    result.thresholds = thresholds.active_thresholds(labels)
    result.notes += [threshold.note for threshold in result.thresholds if threshold.note]
    _refuse_side_columns(labels, request)
    request = _with_explaining_columns(labels, request)
    # Rows are in this order: of the deduplicated labels, then of single units and ratings.
    view = RubricView.of_labels(result.rows, *_resampled_patterns(labels, request), request)[0]
    _add_cluster_rows(result, view)
    unit_view = RatedView.on_units(
        result.rows, labels, request,
        ratings=ratings, all_ratings=task.ratings, readings=readings, variants=task.variants,
    )  # fmt: skip
    annotators.add_selection_rows(unit_view, selection)
    if labels.weight is not None:
        _add_effective_clusters(result, unit_view)
    add_rows({"units": [unit_view]})
    if not scale.part_of:  # people and graders are compared on the whole set of options
        result.disagreements = disagreements.add_disagreement_rows(unit_view, readings.units)
    add_rows({"facts": [unit_view]})
    for coded in labels.in_agreement.views if task.verify else ():
        values = verification.library_values(coded, labels.weight)
        result.verification += verification.verify_estimates(result.rows, coded.subset, values)
    if task.has_verdicts:
        result.decide(labels, request)
        result.view_to_judge = _without_draws(view)
    return result


def _counted_ratings(result: RubricAnalysis, task: RubricTask) -> DataFrame:
    """Return the ratings that count, which may be none, and add notes on those that do not."""
    if task.ratings.empty:
        result.note(written("note.no_ratings"))
        return task.ratings
    name, excluded = task.scale.name, task.request.facts.excluded
    ratings, result.notes = encoding.without_excluded(task.ratings, name, excluded)
    if not ratings.empty:
        ratings, messages = encoding.split_by_method(ratings, name)
        result.notes += messages
        _note_graders_and_scale(result, ratings, task)
    return ratings


def _note_graders_and_scale(result: RubricAnalysis, ratings: DataFrame, task: RubricTask) -> None:
    """Add notes on the orders and prompts that graders read, and on a scale of numbers."""
    result.orders = audit.orders_seen(ratings)
    for name, graders in audit.by_orders(result.orders).items():
        names, saw_both = listed(graders), name == "both_orders"
        result.note(written("note.both_orders" if saw_both else "note.one_order", graders=names))
    if with_prompt := own_prompt_raters(ratings["rater_id"].unique(), task.request.facts.ids):
        result.note(written("note.own_prompt", graders=listed(with_prompt)))
    if task.scale.is_number:
        low, high = min(task.scale.values), max(task.scale.values)
        result.note(written("note.number", low=low, high=high, ordered=task.scale.ordered))


def _with_selection(
    result: RubricAnalysis,
    labels: LabelMatrix,
    resamples: Resamples,
    request: Request,
    label_times: Array | None = None,
) -> tuple[LabelMatrix, Selection]:
    """Select the labels that agreement is computed from. Return all labels with these marked, and
    the selection; add notes on raters. `label_times` (units, raters) are in seconds, if known.
    """
    rng = np.random.default_rng(request.seed)
    has_chances = request.units is not None and WEIGHT in request.units  # equal ones, too
    is_random = request.settings.overlap == "random" or request.facts.assigned or has_chances
    selection = annotators.selection_of(labels, resamples, rng, label_times, is_random=is_random)
    labels = replace(labels, counted=selection.counted, tie_breaks=selection.rule == "tie_break")
    if selection.note:
        result.note(selection.note)
    most = pairs.MAX_LISTED_RATERS
    if len(labels.raters) > most:
        pooled = "pairs of raters" if len(labels.models) > most else "pairs with an annotator"
        result.note(written("note.pooled", raters=len(labels.raters), most=most, pairs=pooled))
    for sentence in matrix.identical_people(labels.copies, labels.raters, labels.humans):
        result.note(sentence)
    return labels, selection


def _resampled_patterns(labels: LabelMatrix, request: Request) -> tuple[LabelMatrix, Resamples]:
    """Return the labels, deduplicated where possible, and resamples of their clusters."""
    patterns, cells = labels.in_patterns()
    if cells is not None:
        frequency = np.ones(labels.n_clusters, dtype=np.int64)
        return patterns, resampling.PatternResamples(cells, cells, request.resampled(frequency))
    folded, frequency = labels.folded()
    return folded, request.resampled(frequency, folded.weight)


def _with_explaining_columns(labels: LabelMatrix, request: Request) -> Request:
    """Return the request with the columns of annotators that explain their labels (`explaining`),
    and the annotators of each of these columns' values (`people`). A column named like one that
    units are split by is left out: parts of the humans and of the units would have the same names.
    """
    coded, raters = labels.in_agreement.on_categories(), request.facts.raters
    if raters is not None:
        parts = (part.split("=", 1) for part in _parts_by_side(labels, request))
        by_side = [name for name, value in parts if value in raters.get(name, pd.Series()).values]
        raters = raters.drop(columns=[*request.columns, *by_side], errors="ignore")
    level = _EXPLAINING_LEVEL / request.n_rubrics
    explaining = slices.explaining_columns(coded, raters, level, request.seed)
    people = {**request.people, **slices.members_of(raters, list(explaining))}
    return replace(request, people=people, explaining=explaining)


def _add_cluster_rows(result: RubricAnalysis, view: RubricView) -> None:
    """Add all rows that share the resamples of clusters; note annotators who reverse the scale."""
    rows, labels, request = result.rows, view.labels, view.request
    for column in labels.columns((*request.screened, *request.settings.variants)):
        matrix.check_values(column.name, column.values)
    views = views_of(rows, labels, view.resamples, request)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))  # for widened intervals, and:
    for agreement_view in views["agreement"]:
        rows.record_chance(agreement_view.coded, view.resamples)
    add_rows(views)
    for opposed in annotators.opposed_in(rows):
        result.note(opposed_in_words(opposed, "note"))
    for name, explaining in request.explaining.items():
        kappas = {"within": explaining.within, "across": explaining.across}
        result.note(written("note.sides_differ", column=name, **kappas))


def _refuse_side_columns(labels: LabelMatrix, request: Request) -> None:
    """Raise InputError if results by a column to slice by would be named like those by side."""
    columns = labels.columns(request.screened)
    of_units = [f"{column.name}={value}" for column in columns for value in column.values]
    for table, parts in (("units", of_units), ("raters", request.people)):
        for part in _parts_by_side(labels, request).intersection(parts):
            name = part.partition("=")[0]
            raise InputError(
                f"{table}: {name} cannot be a column to slice or group by, since answers to "
                f"both sides are split by {name} anyway; leave it out, or rename the column"
            )


def _parts_by_side(labels: LabelMatrix, request: Request) -> set[str]:
    """Return the names of the parts, such as "side=a", that answers are split into in any case."""
    parts = {f"side={value}" for side in labels.sides for value in side.values}
    if parts and request.settings.leanings:
        parts |= {f"leaning={value}" for value in request.settings.sides}
    return parts


def _add_effective_clusters(result: RubricAnalysis, view: RatedView) -> None:
    """Add the effective number of labelled clusters of a weighted sample, and notes on weights."""
    labels, weight = view.labels, view.labels.people_weight
    if len(weight):
        size, n_units = matrix.effective_size(weight), int(labels.sampled.sum())
        view.add("effective_clusters", size, (n_units, len(weight)), a="humans")
        noun = result.cluster_noun
        result.note(written("note.effective", noun=noun, labelled=len(weight), size=size))
    if column := view.request.settings.sensitivity_cluster:  # other clusters have no weights
        result.notes.append(written("note.no_other_clusters", column=column))


def _cluster_noun(request: Request, scale: Scale) -> str:
    """Return the noun for a cluster in a sentence."""
    units, cluster = request.units, request.settings.cluster
    if units is None or (cluster == "pair" and "cluster_id" not in units):
        return "item"
    if cluster == "unit" or (cluster == "pair" and "item_id" in units):
        return "item"
    if cluster in ("response_id", "proposition"):  # our own columns; a user's may be no noun
        return cluster.removesuffix("_id")
    return "pair" if cluster == "pair" and scale.unit else "cluster"  # "": not declared


@_in_one_thread
def analyse_patterns(
    reduced: encoding.Reduced, scale: Scale, resamples: Resamples, request: Request
) -> RubricAnalysis:
    """Analyse the labels of one rubric that were reduced to patterns, with these resamples."""
    noun = "item" if reduced.clusters is None else "cluster"
    result = RubricAnalysis(ResultRows(scale.name), noun)
    patterns = encoding.pattern_matrix(reduced, scale)
    labels, selection = _with_selection(result, patterns, resamples, request)
    counts = LabelCounts.of(labels, selection, times=reduced.times)
    clusters = counts.items if reduced.clusters is None else len(np.unique(reduced.clusters))
    result.counts = replace(counts, clusters=clusters)
    view = RubricView.of_labels(result.rows, labels, resamples, request)[0]
    _add_cluster_rows(result, view)
    annotators.add_selection_rows(view, selection)
    result.decide(labels, request)
    result.view_to_judge = _without_draws(view)
    return result


def analyse_sets(name: str, options: Sequence[RubricTask]) -> RubricAnalysis:
    """Analyse labels that are sets of options, from a task with yes/no labels for each option."""
    request, matrices, keys = options[0].request, [], []
    result = RubricAnalysis(ResultRows(name), _cluster_noun(request, options[0].scale))
    for option in options:  # all with the same units
        counted, _ = encoding.without_excluded(option.ratings, name, request.facts.excluded)
        if counted.empty:
            return result
        units = matrix.with_weights(request.units, counted, request.settings.cluster)
        readings = encoding.combine_readings(counted, option.scale, request.facts.source)
        matrices.append(encoding.encode(readings, option.scale, units, request.settings.cluster))
        keys.append(option.scale.name.rpartition("/")[2])  # "sport" of "topics/sport"
    coded, sets = groups.sets_of([labels.on_categories() for labels in matrices], keys)
    first = matrices[0]
    result.counts = LabelCounts.of(first, Selection())
    resamples = request.resampled(np.ones(first.n_clusters, dtype=np.int64), first.weight)
    groups.add_set_rows(View.of(result.rows, coded, resamples), sets)
    if 0 < len(sets) <= MAX_CATEGORIES:
        set_labels = replace(first, scale=Scale(name, coded.categories), codes=coded.codes)
        view = RubricView.of_labels(result.rows, set_labels, resamples, request)[0]
        distances = groups.jaccard_distances(sets)
        result.disagreements = disagreements.add_disagreement_rows(view, readings.units, distances)
    result.note(written("note.several", options=len(options)))
    return result


# Verdicts across rubrics


def _without_draws(view: RubricView) -> RubricView | None:
    """Return a copy of the view, with the jackknife only in place of its resamples, for judging
    graders again; None if verdicts are not made across rubrics.
    """
    if view.request.decision.across_rubrics == "none":
        return None
    request = replace(view.request, units=None, _cached={})
    jackknife = view.resamples.jackknife_of(view.labels.clusters)
    return replace(view, draw=jackknife, request=request, cache={})


def judge_across_rubrics(results: Sequence[RubricAnalysis]) -> None:
    """Judge the graders of all rubrics again, so that a wrong pass on any rubric has at most the
    error rate that each rubric has alone, by the procedure of Holm (1979).

    A rubric is one family: its bounds hold for all graders and interim analyses together. Each of k
    rubrics is judged at 1/k of the error. Rubrics on which all graders pass are then no longer
    counted in k, and the others are judged at the higher level that results, until nothing changes.
    A rubric with a failing grader counts, because the pass of another grader may be wrong. If t
    rubrics have a grader that must not pass, all t count until the first of these graders passes,
    which happens at 1/t of the error or less.
    """
    rubrics = [result for result in results if result.view_to_judge and result.verdicts]
    passing_alone, n_counted = [analysis.passing for analysis in rubrics], len(rubrics)
    if n_counted < 2:
        return
    previous = n_counted + 1
    while 0 < n_counted < previous:
        previous = n_counted
        for analysis in rubrics:
            analysis.judge(ALPHA / previous)
        n_counted = sum(len(analysis.passing) < len(analysis.verdicts) for analysis in rubrics)
    sentence = written("because.alone_only", rubrics=len(rubrics))
    for analysis, passing in zip(rubrics, passing_alone, strict=True):
        for verdict in analysis.verdicts:
            if verdict["grader"] in passing - analysis.passing:
                verdict["sentence"] = f"{verdict['sentence']} {sentence}"


# The registry of statistics

ViewKind = Literal[
    "agreement", "categories", "labels", "rubric", "verdict", "pairs", "rates", "units", "facts"
]
"""Views that a statistic is computed on:

- of the labels that agreement is computed from (`LabelMatrix.in_agreement`): `categories`, the
  binary `verdict`, or both in turn (`agreement`);
- of all labels: the categories (`rubric`), or categories and binary verdict in turn (`labels`);
- the verdicts on `pairs` of responses, and the verdicts that `rates` are computed from, which are
  those on pairs if there are any;
- all `units`, not deduplicated; `facts` is the same view, for statistics that use no labels.
"""

CONDITIONS: dict[str, Callable[[RubricView], bool]] = {
    "numbers": lambda view: view.coded.is_number,
    "categories": lambda view: not view.coded.is_number,
    "scale of categories": lambda view: not view.labels.scale.is_number,
    "graders": lambda view: bool(view.labels.models),
    "sides": lambda view: bool(view.labels.sides),
    "means": lambda view: corrected_rates.has_means(view.labels.scale),
    "classes": lambda view: view.labels.scale.level == "nominal" and view.coded.q > 2,
}
"""Conditions that a view must meet for a statistic: `means` are those of three or more ordered
categories, `classes` are three or more unordered ones."""


@dataclass(frozen=True)
class StatisticEntry:
    """A statistic, or several that are computed together: the function that adds their rows, the
    views that it is called on, and the conditions that these must meet (`CONDITIONS`).
    """

    add_rows: Callable[[Any], None]
    on: ViewKind
    needs: Sequence[str] = ()


def views_of(
    rows: ResultRows, labels: LabelMatrix, draw: Draw, request: Request
) -> dict[ViewKind, list[RubricView]]:
    """Return views of labels, which may be deduplicated; on pairs if both sides have labels."""
    views, pair_views = RubricView.of_labels(rows, labels, draw, request), []
    in_agreement = list(map(RubricView.seen_as, views, labels.in_agreement.views))  # the same order
    if labels.has_binary and labels.scale.unit == "response" and labels.side.max(initial=-1) > 0:
        pair_labels = encoding.pair_verdicts(labels)
        pair_views.append(views[1].seen_as(pair_labels.on_binary(), pair_labels))
    return {
        "agreement": in_agreement,
        "categories": in_agreement[:1],  # a second view, if any, is the binary verdict
        "verdict": in_agreement[1:],
        "labels": views,
        "rubric": views[:1],
        "pairs": pair_views,
        "rates": pair_views or views[1:],
    }


def add_rows(views: Mapping[ViewKind, Sequence[RubricView]]) -> None:
    """Add the rows of all statistics that are computed on views of these kinds. Consecutive entries
    on the same views all add their rows of one view before those of the next.
    """
    for on, entries in groupby(STATISTICS, key=attrgetter("on")):
        for view, entry in product(views.get(on, ()), list(entries)):
            if all(CONDITIONS[need](view) for need in entry.needs):
                entry.add_rows(view)


def add_judged_rows(view: RubricView, error: float = ALPHA) -> None:
    """Add the rows that verdicts are made from, for a probability `error` of a wrong pass."""
    labels, request, rows, resamples = view.labels, view.request, view.rows, view.resamples
    rule, look = request.decision, request.facts.looks.get(rows.rubric, 1)  # which interim analysis
    if rule.reference:
        requirements.add_reference_rows(view, rule, look, error)
        return
    columns = [*labels.columns(request.screened), *labels.sides]
    evidence.add_deciding_rows(
        rows, labels.in_agreement, resamples, request.settings.margin, rule, look, columns, error
    )


def _add_group_rows(view: RubricView) -> None:
    """Add graders' performance by group of units, on all labels."""
    labels, columns = view.labels, view.labels.columns(view.request.settings.groups)
    coded = labels.on_binary() if view.coded.is_binary else labels.on_categories()
    slices.add_group_performance_rows(view.seen_as(coded), columns)


def _add_majority_rows(view: RubricView) -> None:
    """Add agreement with the majority of people, or with the reference if one is requested."""
    name = view.request.decision.reference
    labels = view.labels.with_reference(name) if name else view.labels
    comparison.add_majority_rows(view.seen_as(labels.on_binary()), reference=bool(name))


def _add_side_part_rows(view: RubricView) -> None:
    """Add rates or means by side of the pairs."""
    corrected_rates.add_part_rows(view, view.labels.sides)


def _add_side_rows(view: RatedView) -> None:
    """Add subjects' rates or means by leaning (such as left), and the differences of the sides."""
    labels, settings = view.labels, view.request.settings
    views: list[RubricView] = [view.seen_as(labels.on_binary())] if labels.has_binary else []
    views += [view] if CONDITIONS["means"](view) else []
    if not views:
        return
    sign = audit.orientation(view.facts, settings)
    # Side a has the first leaning where the sign is 1, side b where it is -1.
    codes = np.where(sign > 0, labels.side, 1 - labels.side)
    codes = np.where((sign != 0) & (labels.side >= 0), codes, -1)
    leaning = [UnitColumn("leaning", settings.sides, codes)]
    for matched_view in views:
        if settings.leanings and labels.models:
            corrected_rates.add_part_rows(matched_view, leaning)
        corrected_rates.add_side_difference_rows(matched_view, sign)


def _add_bias_rows(view: RatedView) -> None:
    """Add the bias audit, also of the verdicts of graders with a recommended threshold."""
    retuned = {}
    for grader, labels in thresholds.labels_tuned_on_others(view.labels).items():
        row = view.rows.get("threshold_recommended", "humans", grader, BINARY_ALL, at="kappa")
        if row and not says(row["remarks"], "default"):  # another threshold is recommended
            retuned[grader] = labels
    audit.add_bias_rows(view, retuned)


def _add_wording_rows(view: RatedView) -> None:
    """Add the stability of raters under other wordings of this rubric, and the change in human
    agreement under wordings that annotators tried.
    """
    if not view.variants:
        return
    request, scale = view.request, view.labels.scale
    scales, tables = zip((scale, view.ratings), *view.variants, strict=True)
    matrices = groups.reworded(pd.concat(tables), scales, request.units, request.settings.cluster)
    groups.add_rewording_rows(view, matrices)
    if request.units is not None:  # a trial computes the weights of its units itself
        request = replace(request, units=request.units.drop(columns=WEIGHT, errors="ignore"))
    excluded = request.facts.excluded
    trials = product(request.facts.rewordings.items(), view.variants)
    for (new, trial), (variant, ratings) in trials:
        ratings_by_wording = {scale.name: view.all_ratings, variant.name: ratings}
        if ratings_by_wording.keys() == {trial.of, new}:  # the trial compared these two wordings
            included = {
                name: encoding.without_excluded(ratings_by_wording[name], name, excluded)[0]
                for name in (trial.of, new)
            }
            disagreements.add_trial_rows(view.rows, scale, included, trial, request)


STATISTICS: tuple[StatisticEntry, ...] = (
    StatisticEntry(pairs.add_pair_rows, on="agreement"),
    StatisticEntry(pairs.add_humans_rows, on="agreement"),
    StatisticEntry(groups.add_group_rows, on="agreement"),
    StatisticEntry(numbers.add_number_rows, on="agreement", needs=["numbers"]),
    StatisticEntry(groups.add_category_rows, on="agreement", needs=["categories"]),
    StatisticEntry(groups.add_prevalence_rows, on="agreement", needs=["categories"]),
    StatisticEntry(comparison.add_baseline_rows, on="agreement"),
    StatisticEntry(comparison.add_ceiling_rows, on="agreement"),
    StatisticEntry(comparison.add_baseline_ceiling_rows, on="agreement"),
    StatisticEntry(annotators.add_gross_error_rows, on="agreement"),
    StatisticEntry(comparison.add_alt_test_rows, on="agreement"),
    StatisticEntry(annotators.add_contested_rows, on="agreement", needs=["categories", "graders"]),
    StatisticEntry(comparison.add_grader_comparison_rows, on="agreement"),
    StatisticEntry(comparison.add_leniency_rows, on="agreement", needs=["categories"]),
    StatisticEntry(annotators.add_recoded_rows, on="agreement", needs=["categories"]),
    StatisticEntry(slices.add_slice_rows, on="agreement"),
    StatisticEntry(_add_group_rows, on="agreement", needs=["categories"]),
    StatisticEntry(slices.add_rater_slice_rows, on="agreement"),
    StatisticEntry(slices.add_side_kappa_rows, on="rubric"),
    StatisticEntry(annotators.add_annotator_rows, on="categories"),
    StatisticEntry(disagreements.add_coverage_rows, on="rubric"),
    StatisticEntry(disagreements.add_clarity_rows, on="rubric"),
    StatisticEntry(thresholds.add_confidence_rows, on="rubric", needs=["categories"]),
    StatisticEntry(thresholds.add_routing_rows, on="rubric"),
    StatisticEntry(groups.add_stability_rows, on="labels"),
    StatisticEntry(_add_majority_rows, on="verdict"),
    StatisticEntry(thresholds.add_threshold_rows, on="verdict"),
    StatisticEntry(thresholds.add_probability_rows, on="verdict"),
    StatisticEntry(partial(pairs.add_pair_rows, prefix="pair_"), on="pairs"),
    StatisticEntry(partial(pairs.add_humans_rows, prefix="pair_"), on="pairs"),
    StatisticEntry(scores.add_overall_rows, on="rates"),
    StatisticEntry(corrected_rates.add_corrected_rows, on="rates", needs=["graders"]),
    StatisticEntry(corrected_rates.add_part_rows, on="rates", needs=["graders"]),
    StatisticEntry(corrected_rates.add_people_side_rows, on="rates", needs=["graders"]),
    StatisticEntry(_add_side_part_rows, on="verdict", needs=["graders"]),
    StatisticEntry(corrected_rates.add_corrected_rows, on="rubric", needs=["graders", "means"]),
    StatisticEntry(corrected_rates.add_part_rows, on="rubric", needs=["graders", "means"]),
    StatisticEntry(corrected_rates.add_people_side_rows, on="rubric", needs=["graders", "means"]),
    StatisticEntry(_add_side_part_rows, on="rubric", needs=["graders", "means"]),
    StatisticEntry(corrected_rates.add_share_rows, on="rubric", needs=["graders", "classes"]),
    StatisticEntry(add_judged_rows, on="rubric"),
    StatisticEntry(_add_bias_rows, on="units"),
    StatisticEntry(_add_side_rows, on="units", needs=["sides"]),
    StatisticEntry(preference.add_preference_rows, on="units"),
    StatisticEntry(lambda view: add_injection_rows(view.rows, view.request), on="units"),
    StatisticEntry(slices.add_other_cluster_rows, on="units"),
    StatisticEntry(groups.add_repeat_rows, on="units"),
    StatisticEntry(_add_wording_rows, on="units"),
    StatisticEntry(raters.add_rater_rows, on="units"),
    StatisticEntry(disagreements.add_sorted_rows, on="facts"),
    StatisticEntry(raters.add_usage_rows, on="facts"),
    StatisticEntry(raters.add_price_rows, on="facts"),
)
