"""Analysis of two tables, rubric by rubric: results, verdicts on the graders, and notes.

To add a statistic, write a function that adds its rows to a view of the labels, and enter it in
`STATISTICS`, in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.analysis import raters
from evenhand.analysis.agreement import groups, numbers, pairs
from evenhand.analysis.bias import audit
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.bootstrap.resamples import (
    MANY_CLUSTERS,
    PatternResamples,
    Resamples,
    resamples_of_patterns,
)
from evenhand.analysis.distributions import add_distribution_rows
from evenhand.analysis.injection import add_injection_rows
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.encoding import Reduced, name_keys, pattern_matrix
from evenhand.analysis.labels.matrix import (
    BINARY_ALL,
    WEIGHT,
    LabelMatrix,
    UnitColumn,
    check_values,
    effective_size,
    listed,
    people_alike,
    with_weights,
)
from evenhand.analysis.labels.scale import MAX_CATEGORIES, Scale
from evenhand.analysis.people import annotators, comparison, disagreements, slices
from evenhand.analysis.people.annotators import Selection
from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.people.slices import members_of, publics_of
from evenhand.analysis.planning import VarianceComponents, components_of
from evenhand.analysis.request import Request, StudyFacts
from evenhand.analysis.results import ResultRow, ResultRows, results_table
from evenhand.analysis.statistics import says
from evenhand.analysis.subjects import corrected_rates, preference, scores
from evenhand.analysis.subjects.scores import Corrected
from evenhand.analysis.thresholds import tuning as thresholds
from evenhand.analysis.thresholds.tuning import ThresholdInForce
from evenhand.analysis.types import Array, DataFrame, Frequency
from evenhand.analysis.verdicts import evidence, requirements
from evenhand.analysis.verdicts.judge import Verdict, judge_graders
from evenhand.analysis.verdicts.wording import PASSES, opposed_in_words
from evenhand.analysis.verification import (
    Libraries,
    Verification,
    in_this_process,
    libraries_are_here,
    verify_estimates,
)
from evenhand.analysis.writer import Draw, RatedView, RubricView, View
from evenhand.errors import InputError
from evenhand.rubrics.loading import own_prompt_raters
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import validate_ratings
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

On = Literal[
    "agreement", "categories", "labels", "rubric", "verdict", "pairs", "rates", "units", "facts"
]
"""The views that a statistic is computed on: of the labels of which agreement is computed, the
`categories` and the binary `verdict`, or each of both (`agreement`); of all `labels` each of both,
or the categories alone (`rubric`); the verdicts on `pairs` of responses, and what counts towards
`rates`, which are these where there are pairs; the `units` as they were rated; and `facts`, for
what does not depend on labels.
"""

Need = Literal[
    "numbers", "categories", "scale of categories", "graders", "sides", "order", "classes"
]
NEEDS: dict[Need, Callable[[RubricView], bool]] = {
    "numbers": lambda view: view.coded.is_number,
    "categories": lambda view: not view.coded.is_number,
    "scale of categories": lambda view: not view.labels.scale.is_number,
    "graders": lambda view: bool(view.labels.models),
    "sides": lambda view: bool(view.labels.sides),
    "order": lambda view: corrected_rates.has_means(view.labels.scale),
    "classes": lambda view: view.labels.scale.level == "nominal" and view.coded.q > 2,
}
"""Conditions that a view must meet for a statistic."""


@dataclass(frozen=True)
class Declared:
    """A statistic, or several that are computed together: the function that adds their rows, the
    views that it is called on, and what it needs of them (`NEEDS`).
    """

    add_rows: Callable[[Any], None]
    on: On
    needs: Sequence[Need] = ()


def views_of(
    rows: ResultRows, labels: LabelMatrix, draw: Draw, request: Request
) -> dict[On, list[RubricView]]:
    """Return the views of labels, which may be folded, in whose clusters resamples are drawn."""
    every = RubricView.of_labels(rows, labels, draw, request)
    both = zip(every, labels.in_agreement.views, strict=True)
    counted, of_pairs = [view.seen_as(coded) for view, coded in both], []
    if labels.has_verdicts and labels.scale.unit == "response" and labels.side.max(initial=-1) > 0:
        joined = encoding.pair_verdicts(labels)
        of_pairs.append(every[1].seen_as(joined.on_verdicts(), joined))
    return {
        "agreement": counted, "categories": counted[:1], "verdict": counted[1:],
        "labels": every, "rubric": every[:1], "pairs": of_pairs, "rates": of_pairs or every[1:],
    }  # fmt: skip


def add_rows(views: Mapping[On, Sequence[RubricView]]) -> None:
    """Add the rows of all statistics that are computed on one of these kinds of views."""
    for on, declared in groupby(STATISTICS, key=attrgetter("on")):
        for view, each in product(views.get(on, ()), list(declared)):
            if all(NEEDS[need](view) for need in each.needs):
                each.add_rows(view)


def add_judged_rows(view: RubricView, error: float = ALPHA) -> None:
    """Add the rows that verdicts rest on, where a wrong pass may have the probability `error`,
    over all graders and looks.
    """
    labels, request, rows, drawn = view.labels, view.request, view.rows, view.resamples
    rule, look = request.decision, request.facts.looks.get(rows.rubric, 1)
    if rule.reference:
        requirements.add_reference_rows(rows, labels, drawn, rule, look, error)
        return
    parts = [*labels.columns(request.screened), *labels.sides]
    given = labels.in_agreement, drawn, request.settings.margin, rule, look, parts, error
    evidence.add_deciding_rows(rows, *given)


def _add_groups(view: RubricView) -> None:
    labels, columns = view.labels, view.labels.columns(view.request.settings.groups)
    every = labels.on_verdicts() if view.coded.is_binary else labels.on_categories()
    slices.add_group_performance_rows(view.seen_as(every), columns)


def _add_majority(view: RubricView) -> None:
    name = view.request.decision.reference
    labels = view.labels.with_reference(name) if name else view.labels
    comparison.add_majority_rows(view.seen_as(labels.on_verdicts()), reference=bool(name))


def _add_by_side(view: RubricView) -> None:
    corrected_rates.add_part_rows(view, view.labels.sides)


def _add_sides(view: RatedView) -> None:
    """Add subjects' figures by leaning, where sides have one, and the sides' differences."""
    labels, settings = view.labels, view.request.settings
    views: list[RubricView] = [view.seen_as(labels.on_verdicts())] if labels.has_verdicts else []
    views += [view] if NEEDS["order"](view) else []
    if not views:
        return
    sign = audit.orientation(view.facts, settings)
    # Side a has the first leaning where the sign is 1, side b where it is -1.
    codes = np.where(sign > 0, labels.side, 1 - labels.side)
    codes = np.where((sign != 0) & (labels.side >= 0), codes, -1)
    leaning = [UnitColumn("leaning", settings.sides, codes)]
    for matched in views:
        if settings.leanings and labels.models:
            corrected_rates.add_part_rows(matched, leaning)
        corrected_rates.add_side_difference_rows(matched, sign)


def _add_bias(view: RatedView) -> None:
    """Add the audit, of verdicts at a tuned threshold too, where it may yet be advised."""
    retuned = {}
    for grader, labels in thresholds.tuned_on_others(view.labels).items():
        advised = view.rows.get("threshold_recommended", "humans", grader, BINARY_ALL, "kappa")
        if advised and not says(advised["remarks"], "default"):
            retuned[grader] = labels
    audit.add_bias_rows(view, retuned)


def _add_wordings(view: RatedView) -> None:
    """Add the stability of raters under the other wordings of this rubric, and how far people's
    agreement moves under wordings that were tried among them.
    """
    import pandas as pd

    if not view.variants:
        return
    request, scale = view.request, view.labels.scale
    every = pd.concat([view.ratings, *(of_variant for _, of_variant in view.variants)])
    family = [scale, *(variant for variant, _ in view.variants)]
    matrices = groups.reworded(every, family, request.units, request.settings.cluster)
    groups.add_rewording_rows(view, matrices)
    if request.units is not None:  # the weights of a trial's units are its own
        request = replace(request, units=request.units.drop(columns=WEIGHT, errors="ignore"))
    trials = product(request.facts.rewordings.items(), view.variants)
    for (new, trial), (variant, ratings) in trials:
        given, counted = {scale.name: view.given, variant.name: ratings}, {}
        if given.keys() == {trial.of, new}:
            for name in (trial.of, new):
                excluded = request.facts.excluded
                counted[name], _ = encoding.without_excluded(given[name], name, excluded)
            disagreements.add_trial_rows(view.rows, scale, counted, trial, request)


STATISTICS: tuple[Declared, ...] = (
    Declared(pairs.add_pair_rows, on="agreement"),
    Declared(pairs.add_humans_rows, on="agreement"),
    Declared(groups.add_group_rows, on="agreement"),
    Declared(numbers.add_number_rows, on="agreement", needs=["numbers"]),
    Declared(groups.add_category_rows, on="agreement", needs=["categories"]),
    Declared(groups.add_prevalence_rows, on="agreement", needs=["categories"]),
    Declared(comparison.add_baseline_rows, on="agreement"),
    Declared(comparison.add_ceiling_rows, on="agreement"),
    Declared(comparison.add_baseline_ceiling_rows, on="agreement"),
    Declared(annotators.add_gross_error_rows, on="agreement"),
    Declared(comparison.add_alt_test_rows, on="agreement"),
    Declared(annotators.add_contested_rows, on="agreement", needs=["categories", "graders"]),
    Declared(comparison.add_grader_comparison_rows, on="agreement"),
    Declared(comparison.add_leniency_rows, on="agreement", needs=["categories"]),
    Declared(annotators.add_recoded_rows, on="agreement", needs=["categories"]),
    Declared(slices.add_slice_rows, on="agreement"),
    Declared(_add_groups, on="agreement", needs=["categories"]),
    Declared(slices.add_rater_slice_rows, on="agreement"),
    Declared(slices.add_side_kappa_rows, on="rubric"),
    Declared(annotators.add_annotator_rows, on="categories"),
    Declared(disagreements.add_coverage_rows, on="rubric"),
    Declared(disagreements.add_clarity_rows, on="rubric"),
    Declared(add_distribution_rows, on="labels", needs=["scale of categories", "graders"]),
    Declared(thresholds.add_confidence_rows, on="rubric", needs=["categories"]),
    Declared(thresholds.add_routing_rows, on="rubric"),
    Declared(groups.add_stability_rows, on="labels"),
    Declared(_add_majority, on="verdict"),
    Declared(thresholds.add_threshold_rows, on="verdict"),
    Declared(thresholds.add_probability_rows, on="verdict"),
    Declared(partial(pairs.add_pair_rows, prefix="pair_"), on="pairs"),
    Declared(partial(pairs.add_humans_rows, prefix="pair_"), on="pairs"),
    Declared(scores.add_overall_rows, on="rates"),
    Declared(corrected_rates.add_corrected_rows, on="rates", needs=["graders"]),
    Declared(corrected_rates.add_part_rows, on="rates", needs=["graders"]),
    Declared(corrected_rates.add_public_rows, on="rates", needs=["graders"]),
    Declared(_add_by_side, on="verdict", needs=["graders"]),
    Declared(corrected_rates.add_corrected_rows, on="rubric", needs=["graders", "order"]),
    Declared(corrected_rates.add_part_rows, on="rubric", needs=["graders", "order"]),
    Declared(corrected_rates.add_public_rows, on="rubric", needs=["graders", "order"]),
    Declared(_add_by_side, on="rubric", needs=["graders", "order"]),
    Declared(corrected_rates.add_share_rows, on="rubric", needs=["graders", "classes"]),
    Declared(add_judged_rows, on="rubric"),
    Declared(_add_bias, on="units"),
    Declared(_add_sides, on="units", needs=["sides"]),
    Declared(preference.add_preference_rows, on="units"),
    Declared(lambda view: add_injection_rows(view.rows, view.request), on="units"),
    Declared(slices.add_other_cluster_rows, on="units"),
    Declared(groups.add_repeat_rows, on="units"),
    Declared(_add_wordings, on="units"),
    Declared(raters.add_rater_rows, on="units"),
    Declared(disagreements.add_sorted_rows, on="facts"),
    Declared(raters.add_usage_rows, on="facts"),
    Declared(raters.add_price_rows, on="facts"),
)


F = TypeVar("F", bound=Callable[..., object])
__all__ = ["Analysis", "AnalysisSettings", "DecisionSettings", "analyse"]

MAX_NAMED = 12
"""Most annotators named in a message."""
_JUDGED = frozenset((*evidence.STATISTICS, *requirements.STATISTICS))
_SETTINGS, _DECISION, _FACTS = AnalysisSettings(), DecisionSettings(), StudyFacts()


@dataclass(frozen=True)
class Analysis:
    """Result of an analysis.

    The rows of the `results` table, a verdict per rubric and grader, notes, and the units where
    graders and humans differ most.
    """

    rows: list[ResultRow]
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verification: Verification | None = None
    settings: AnalysisSettings = _SETTINGS
    decision: DecisionSettings = _DECISION
    components: dict[str, VarianceComponents] = field(default_factory=dict)
    """By rubric, the variance of humans' labels: units, raters, the rest (`generalizability`)."""
    spreads: dict[str, dict[tuple[str, str], Corrected]] = field(default_factory=dict)
    """By rubric, what plans for corrected means and differences rest on, by grader."""
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    cluster_nouns: dict[str, str] = field(default_factory=dict)
    """By rubric, the noun for a cluster in a sentence."""
    counts: dict[str, LabelCounts] = field(default_factory=dict)
    """By rubric, the labels that its figures rest on."""
    orders: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """By rubric and grader, the orders in which it read pairs, where known."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of raters and rubrics that go by display names in all of it, by these."""

    @property
    def rule(self) -> str:
        """Rule that a grader had to meet, in words."""
        return self.decision.rule(self.settings.margin)

    @cached_property
    def results(self) -> pd.DataFrame:
        """Rows as the `results` table of the contract."""
        return results_table(self.rows)


def analyse(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scales: Mapping[str, Scale] | Iterable[Scale],
    settings: AnalysisSettings = _SETTINGS,
    decision: DecisionSettings = _DECISION,
    *,
    facts: StudyFacts = _FACTS,
    verify: bool | Libraries = False,
    why: bool = False,
    **changes: Any,
) -> Analysis:
    """Analyse the agreement of the raters in `ratings`: all statistics, verdicts and notes.

    `ratings` and `units` are the two tables of the contract; without `units` every unit is its own
    cluster and there are no subjects. `scales` declares each rubric's categories. `settings` and
    `decision` are the sections `[analysis]` and `[decision]` of study.toml, where each setting is
    documented; `changes` are single fields of either, such as `slices=["topic"]` or `margin=0.05`,
    and the `seed` that fixes all resampling. `facts` is what else is known of the ratings.

    Intervals come from bootstrap draws of clusters: prompt pairs, the units column named by
    `cluster`, or with "unit" single units (see `analysis.bootstrap.intervals`). On request the main
    figures (the humans' agreement, each grader's with them, the ceiling differences) are repeated:
    for every value of the units columns `slices`; for the humans of every value of the columns
    `rater_slices` of `facts.raters`; and with at = "cluster=COLUMN", with intervals from resampling
    the clusters of `sensitivity_cluster`. The slices and groups of humans are audited for bias too.

    `variants` are units columns that distinguish variants of one question: how stable are labels
    from one to the next (see `analysis.agreement.groups`)? A scale that is a `variant_of`
    another one shows how stable raters are under that one, and nothing else unless humans labelled
    under it. `groups` are units columns that name the group a unit is about: does a grader fail one
    group (see `analysis.people.slices`)?

    With `verify` estimates are checked against scikit-learn, krippendorff and statsmodels, where
    these are installed (see `analysis.verification`), which costs the time to load them; `verify`
    may also be the function that asks them. With `why` the variance of the humans' labels is split,
    too: do they differ by unit, by rater, or otherwise?

    Raises InputError where the tables are inconsistent, a label lies outside its scale, a rubric
    has no scale, ratings of several versions of one rubric would be mixed, a column to slice by is
    missing or has more than 50 values, or a setting is unknown or out of range.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn", "ben": "yyynnnnn"}
    >>> ratings = pd.DataFrame(
    ...     [
    ...         {"unit_id": f"u{n}", "rater_id": who, "rater_kind": "human", "label": label}
    ...         for who, given in labels.items()
    ...         for n, label in enumerate(given)
    ...     ]
    ... )
    >>> found = analyse(ratings, None, [Scale("", ("y", "n"))], resamples=200)
    >>> pair = found.results.query("rater_a == 'ann' and rater_b == 'ben'").set_index("statistic")
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
    verify: bool | Libraries = False,
    pool: Executor | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Analysis:
    """Carry out a request (see `analyse`). With a `pool` of processes rubrics are analysed in
    parallel; they share nothing. `on_stage` is called with a description of each stage.
    """
    settings, decision, facts = request.settings, request.decision, request.facts
    people = members_of(facts.raters, settings.rater_slices, settings.slices)
    libraries: Libraries | None = None
    if verify and libraries_are_here():
        libraries = in_this_process if verify is True else verify
    declared: dict[str, Scale] = {}
    for scale in scales.values() if isinstance(scales, Mapping) else scales:
        if scale.name in declared:
            raise InputError(f"two scales are called {scale.name!r}; give each rubric one")
        declared[scale.name] = replace(scale, ordered=settings.ordered)
    ratings = _with_rubrics(validate_ratings(ratings, facts.source), declared, facts.source)
    others = sorted(set(ratings.loc[ratings["rater_kind"] != "model", "rater_id"]))
    if decision.reference and decision.reference not in others:
        raise InputError(
            f"reference is {decision.reference!r}, which is no annotator or adjudicator here; "
            f"there are {', '.join(others[:MAX_NAMED]) or 'nobody'}"
        )
    counted: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    for name in declared:
        accepted = None if facts.rubric_hashes is None else facts.rubric_hashes.get(name)
        of_rubric = ratings[ratings["rubric"] == name]
        counted[name], about = encoding.one_version(of_rubric, name, accepted)
        notes += about
    wordings = {each.name for each in declared.values() if each.variant_of in {*declared} - {""}}
    request = replace(request, people=people, rubrics=max(len(declared) - len(wordings), 1))
    tasks = []
    for name, scale in declared.items():
        family = (rubric for rubric in declared.values() if name and rubric.variant_of == name)
        variants = [(analysis, counted[analysis.name]) for analysis in family]
        # A wording that graders alone were asked under only shows how stable they are.
        if name not in wordings or counted[name]["rater_kind"].eq("human").any():
            judge = name not in wordings
            tasks.append(RubricTask(scale, counted[name], variants, request, judge, libraries))
    analysed = iter((pool.map if pool else map)(analyse_rubric, tasks))
    results: list[RubricAnalysis] = []
    for place, task in enumerate(tasks, start=1):
        if on_stage:
            on_stage(f"analysing {task.scale.name or 'labels'} ({place} of {len(tasks)})")
        if (whole := task.scale.part_of) and all(result.rows.rubric != whole for result in results):
            results.append(analyse_sets(whole, [t for t in tasks if t.scale.part_of == whole]))
        results.append(next(analysed))
    judge_across_rubrics(results)
    return together(results, notes, request, verify=libraries is not None)


def together(
    parts: Sequence[RubricAnalysis], notes: Sequence[str], request: Request, *, verify: bool = False
) -> Analysis:
    """Combine the rubrics' analyses into one."""
    verification = sum((part.verification for part in parts), Verification())
    return Analysis(
        rows=[row for part in parts for row in part.rows.rows.values()],
        verdicts=[verdict for part in parts for verdict in part.verdicts],
        notes=[*notes, *(note for part in parts for note in part.notes)],
        verification=verification if verify else None,
        settings=request.settings,
        decision=request.decision,
        spreads={part.rows.rubric: part.spreads for part in parts if part.spreads},
        components={part.rows.rubric: part.components for part in parts if part.components},
        disagreements=[one for part in parts for one in part.disagreements],
        thresholds=[one for part in parts for one in part.thresholds],
        cluster_nouns={part.rows.rubric: part.cluster_noun for part in parts},
        counts={part.rows.rubric: part.counts for part in parts},
        orders={part.rows.rubric: part.orders for part in parts if part.orders},
        ids=request.facts.ids,
    )


def analyse_reduced(
    tables: Mapping[str, Reduced],
    scales: Mapping[str, Scale],
    *,
    seed: int = SEED,
    many: int = MANY_CLUSTERS,
    on_stage: Callable[[str], None] | None = None,
    **changes: object,
) -> Analysis:
    """Analyse ratings that were reduced to patterns while they were read, one table per rubric (see
    `analyse`).

    Patterns of labels replace units, and `PatternResamples` their clusters. Analyses that need
    single ratings, their probabilities or facts about units are left out, and reported as left out.

    `changes` are settings, `seed` fixes all resampling; more than `many` clusters are resampled in
    groups (see `analysis.bootstrap.resamples`).
    """
    settings, decision = with_changes(AnalysisSettings(), DecisionSettings(), changes)
    request = Request(None, settings, decision, seed=seed)
    results = []
    for place, (name, reduced) in enumerate(tables.items(), start=1):
        if on_stage:
            on_stage(f"resampling {name or 'labels'} ({place} of {len(tables)})")
        if reduced.is_unclustered:  # resample patterns by frequency
            shared = request.resampled(reduced.times)
        else:
            draw, keys = partial(request.resampled, keep=False), name_keys(reduced.clusters)
            shared = resamples_of_patterns(reduced.cells, keys, draw, request.seed, many)
        fresh = replace(request, _latest={})
        results.append(analyse_patterns(reduced, scales[name], shared, fresh))
    judge_across_rubrics(results)
    return together(results, [], request)


def _with_rubrics(
    ratings: pd.DataFrame, declared: Mapping[str, Scale], source: str
) -> pd.DataFrame:
    """Assign ratings without a rubric to the only one; each named rubric needs a scale."""
    if len(declared) == 1:
        only = next(iter(declared))
        ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", only))
    unknown = ~ratings["rubric"].isin(list(declared))
    if unknown.any():
        at = int(unknown.to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(ratings, at)}: no scale is declared for the rubric "
            f"{ratings['rubric'].iloc[at]!r}; declare its categories or leave its rows out"
        )
    return ratings


@dataclass(frozen=True)
class LabelCounts:
    """Labels that one rubric's analysis rests on.

    `items` are those that `annotators` labelled, in so many `clusters`; `shared` those with labels
    of two or more; `missing` counts annotators' labels that were asked for and not given. `graders`
    are names, and `excluded` how many raters were left out. `selection` is a sentence on which
    labels agreement is computed of where further labels were given by labels, else empty.
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
    def of(
        cls,
        labels: LabelMatrix,
        selection: Selection,
        excluded: int = 0,
        times: Frequency | None = None,
    ) -> LabelCounts:
        """Count the labels of one rubric; `times` (units,) is how often each unit occurs."""
        people = list(labels.humans)
        given, asked = labels.scored[:, people], labels.asked[:, people]
        times = np.ones(len(given), dtype=np.int64) if times is None else times
        by_person, unknown = given.sum(axis=1), selection.how == "unknown"
        return cls(
            annotators=len(people), items=int(times[by_person >= 1].sum()),
            clusters=len(np.unique(labels.clusters[by_person >= 1])),
            shared=int(times[by_person >= 2].sum()),
            missing=int(times @ (asked & ~given).sum(axis=1)),
            graders=tuple(labels.raters[model] for model in labels.models), excluded=excluded,
            selection=written("selection.unknown") if unknown else selection.note,
        )  # fmt: skip


@dataclass
class RubricAnalysis:
    """Result of the analysis of one rubric, if it has ratings."""

    rows: ResultRows
    cluster_noun: str
    counts: LabelCounts = field(default_factory=LabelCounts)
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    components: VarianceComponents | None = None
    spreads: dict[tuple[str, str], Corrected] = field(default_factory=dict)
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verification: Verification = field(default_factory=Verification)
    judging: RubricView | None = None
    """The labels that its graders may be judged from again at another level."""

    def note(self, sentence: str) -> None:
        """Add a note on this rubric."""
        self.notes.append(f"{self.rows.rubric}: {sentence}".removeprefix(": "))

    def judge(self, error: float) -> None:
        """Judge the graders again, where a wrong pass may have this probability."""
        if self.judging is None:
            return
        rows, every = self.rows, tuple(self.rows.rows)
        rows.rows = {key: row for key, row in rows.rows.items() if key[1] not in _JUDGED}
        add_judged_rows(self.judging, error)
        rows.rows = {key: rows.rows[key] for key in (*every, *rows.rows) if key in rows.rows}
        self.decide(self.judging.labels, self.judging.request.decision)

    def decide(self, labels: LabelMatrix, rule: DecisionSettings) -> None:
        """Give the verdicts that the rows lead to."""
        noun, counted = self.cluster_noun, labels.in_agreement
        self.verdicts = judge_graders(self.rows, counted, rule=rule, cluster_noun=noun)

    @property
    def passing(self) -> set[str]:
        """The graders that pass."""
        return {verdict["grader"] for verdict in self.verdicts if verdict["verdict"] in PASSES}


def _to_judge_again(view: RubricView) -> RubricView | None:
    """Return a view without its draws, to judge its graders again; None where that is not asked."""
    if view.request.decision.across_rubrics == "none":
        return None
    request = replace(view.request, units=None, _latest={})
    left_out = view.resamples.left_out(view.labels.clusters)
    return replace(view, draw=left_out, request=request, known={})


def judge_across_rubrics(results: Sequence[RubricAnalysis]) -> None:
    """Judge the graders of all rubrics so that a wrong pass on any of them has at most the error
    that each rubric has alone: Holm's (1979) procedure, by steps.

    A rubric is one family: its bounds hold for all graders and looks at once. Of k rubrics each is
    judged at 1/k of the error. A rubric all of whose graders pass no longer counts; one of which
    some fail does, since a pass among those may be the wrong one. The others are judged at the
    looser level that this leaves, until nothing changes. Where t rubrics have a grader that must
    not pass, these count as long as none of them does, so that the level at which the first one
    could is at most 1/t of the error.
    """
    family = [result for result in results if result.judging is not None and result.verdicts]
    alone, left = [analysis.passing for analysis in family], len(family)
    if left < 2:
        return
    step = left + 1
    while 0 < left < step:
        step = left
        for analysis in family:
            analysis.judge(ALPHA / step)
        left = sum(len(analysis.passing) < len(analysis.verdicts) for analysis in family)
    lost = written("because.alone_only", rubrics=len(family))
    for analysis, passing in zip(family, alone, strict=True):
        for verdict in analysis.verdicts:
            if verdict["grader"] in passing - analysis.passing:
                verdict["sentence"] = f"{verdict['sentence']} {lost}"


@dataclass(frozen=True)
class RubricTask:
    """Ratings of one rubric to analyse; `variants` are its other wordings with their ratings.
    Graders are judged only if `judge` is set: a rubric may be present as a mere wording of another.
    """

    scale: Scale
    ratings: DataFrame
    variants: Sequence[tuple[Scale, DataFrame]]
    request: Request
    judge: bool
    verify: Libraries | None


def _in_one_thread(analyse: F) -> F:
    """Run a function in one thread: our matrices are so narrow that BLAS threads only cost."""
    wrapped: F = threadpool_limits.wrap(limits=1, user_api="blas")(analyse)
    return wrapped


@_in_one_thread
def analyse_patterns(
    reduced: Reduced, scale: Scale, shared: Resamples, request: Request
) -> RubricAnalysis:
    """Analyse the labels of one rubric that were reduced to patterns, resampled by `shared`."""
    noun = "item" if reduced.clusters is None else "cluster"
    result = RubricAnalysis(ResultRows(scale.name), noun)
    labels, selection = _chosen(result, pattern_matrix(reduced, scale), shared, request)
    counts = LabelCounts.of(labels, selection, times=reduced.times)
    clusters = counts.items if reduced.clusters is None else len(np.unique(reduced.clusters))
    result.counts = replace(counts, clusters=clusters)
    view = RubricView.of_labels(result.rows, labels, shared, request)[0]
    _add_rows(result, view)
    annotators.add_selection_rows(view, selection)
    result.decide(labels, request.decision)
    result.judging = _to_judge_again(view)
    return result


@_in_one_thread
def analyse_rubric(task: RubricTask) -> RubricAnalysis:
    """Analyse one rubric."""
    scale, ratings, request = task.scale, task.ratings, task.request
    result = RubricAnalysis(ResultRows(scale.name), _cluster_noun(request, scale))
    if ratings.empty:
        result.note(written("note.no_ratings"))
        return result
    counted, result.notes = encoding.without_excluded(ratings, scale.name, request.facts.excluded)
    if counted.empty:
        return result
    counted, parted = encoding.methods_apart(counted, scale.name)
    result.notes += parted
    result.orders = audit.orders_seen(counted)
    for name, graders in audit.by_orders(result.orders).items():
        both, who = name == "both_orders", listed(graders)
        result.note(written("note.both_orders" if both else "note.one_order", graders=who))
    if prompted := own_prompt_raters(counted["rater_id"].unique(), request.facts.ids):
        result.note(written("note.own_prompt", graders=listed(prompted)))
    request = replace(request, units=with_weights(request.units, counted))
    readings = encoding.combine_readings(counted, scale, request.facts.source)
    if scale.is_number:
        low, high = min(scale.values), max(scale.values)
        result.note(written("note.number", low=low, high=high, ordered=scale.ordered))
    labels = thresholds.judged_out_of_sample(
        encoding.encode(readings, scale, request.units, request.settings.cluster, request.columns)
    )
    times = annotators.label_times(counted, readings.units, labels.raters)
    plain = Resamples(np.ones(labels.n_clusters, dtype=np.int64), 0, np.random.default_rng(0))
    labels, selection = _chosen(result, labels, plain, request, times)
    left_out = ratings["rater_id"].nunique() - counted["rater_id"].nunique()
    result.counts = LabelCounts.of(labels, selection, left_out)
    views = labels.in_agreement.views if task.verify else []
    theirs = [task.verify(view, labels.weight) for view in views] if task.verify else []
    if request.why:
        result.components = components_of(labels)
        of_means, *of_rates = RubricView.of_labels(result.rows, labels, plain, request)
        averaged = [of_means] if corrected_rates.has_means(scale) else of_rates
        result.spreads = {} if not averaged else corrected_rates.spreads(averaged[0])
    result.thresholds = thresholds.thresholds_in_force(labels)
    result.notes += [threshold.note for threshold in result.thresholds if threshold.note]
    _refuse_sides_own_columns(labels, request)
    request = _with_publics(labels, request)
    whole = RubricView.of_labels(result.rows, *_resampled(labels, request), request)[0]
    _add_rows(result, whole)
    tables = {"ratings": counted, "given": ratings, "readings": readings, "variants": task.variants}
    rated = RatedView.on_units(result.rows, labels, request, **tables)
    annotators.add_selection_rows(rated, selection)
    weight = labels.people_weight
    if labels.weight is not None and len(weight):  # some pairs were likelier to be picked
        size, counts = effective_size(weight), (int(labels.labelled_by_people.sum()), len(weight))
        rated.add("effective_clusters", size, counts, a="humans")
        fields = {"noun": result.cluster_noun, "labelled": len(weight), "size": size}
        result.note(written("note.effective", **fields))
    if labels.weight is not None and (column := request.settings.sensitivity_cluster):
        result.notes.append(written("note.no_other_clusters", column=column))
    add_rows({"units": [rated]})
    if not scale.part_of:  # people and graders are compared on the whole set
        result.disagreements = disagreements.add_disagreement_rows(rated, readings.units)
    add_rows({"facts": [rated]})
    for view, values in zip(views, theirs, strict=True):
        result.verification += verify_estimates(result.rows, view.subset, values())
    if task.judge:
        result.decide(labels, request.decision)
        result.judging = _to_judge_again(whole)
    return result


def _chosen(
    result: RubricAnalysis,
    labels: LabelMatrix,
    resamples: Resamples,
    request: Request,
    times: Array | None = None,
) -> tuple[LabelMatrix, Selection]:
    """Choose the labels of which agreement is computed, and note what there is to know of the
    raters. `resamples` are of the clusters, `times` those of `selection_of`.
    """
    rng = np.random.default_rng(request.seed)
    is_random = request.settings.overlap == "random" or request.facts.assigned
    selection = annotators.selection_of(labels, resamples, rng, times, is_random=is_random)
    labels = replace(labels, counted=selection.counted, tie_breaks=selection.how == "tie_break")
    if selection.note:
        result.note(selection.note)
    if len(labels.raters) > (most := pairs.MAX_LISTED_RATERS):
        which = "pairs of raters" if len(labels.models) > most else "pairs with an annotator"
        result.note(written("note.pooled", raters=len(labels.raters), most=most, pairs=which))
    for sentence in people_alike(labels.copies, labels.raters, labels.humans):
        result.note(sentence)
    return labels, selection


def _add_rows(result: RubricAnalysis, given: RubricView) -> None:
    """Add all rows on the same resamples of clusters; note annotators who reverse the scale."""
    rows, labels, request = result.rows, given.labels, given.request
    for column in labels.columns((*request.screened, *request.settings.variants)):
        check_values(column.name, column.values)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))
    views = views_of(rows, labels, given.resamples, request)
    for view in views["agreement"]:
        rows.know_chance(view.coded, given.resamples)
    add_rows(views)
    for opposed in annotators.opposed_in(rows):
        result.note(opposed_in_words(opposed, "note"))
    for name, public in request.publics.items():
        apart = {"within": public.within, "across": public.across}
        result.note(written("note.sides_differ", column=name, **apart))


def analyse_sets(name: str, parts: Sequence[RubricTask]) -> RubricAnalysis:
    """Analyse the labels that are sets of options, from the `parts`, a yes or no to each option."""
    request, matrices, keys = parts[0].request, [], []
    result = RubricAnalysis(ResultRows(name), _cluster_noun(request, parts[0].scale))
    for part in parts:
        counted, _ = encoding.without_excluded(part.ratings, name, request.facts.excluded)
        if counted.empty:
            return result
        units = with_weights(request.units, counted)
        readings = encoding.combine_readings(counted, part.scale, request.facts.source)
        matrices.append(encoding.encode(readings, part.scale, units, request.settings.cluster))
        keys.append(part.scale.name.rpartition("/")[2])
    coded, sets = groups.sets_of([matrix.on_categories() for matrix in matrices], keys)
    first = matrices[0]
    result.counts = LabelCounts.of(first, Selection())
    shared = request.resampled(np.ones(first.n_clusters, dtype=np.int64), first.weight)
    groups.add_set_rows(View.of(result.rows, coded, shared), sets)
    if 0 < len(sets) <= MAX_CATEGORIES:
        whole = replace(first, scale=Scale(name, coded.categories), codes=coded.codes)
        view = RubricView.of_labels(result.rows, whole, shared, request)[0]
        given = readings.units, groups.jaccard_distances(sets)
        result.disagreements = disagreements.add_disagreement_rows(view, *given)
    result.note(written("note.several", options=len(parts)))
    return result


def _resampled(labels: LabelMatrix, request: Request) -> tuple[LabelMatrix, Resamples]:
    """Return the labels, deduplicated where possible, and resamples of their clusters."""
    patterns, cells = labels.in_patterns()
    if cells is not None:
        once = np.ones(labels.n_clusters, dtype=np.int64)
        return patterns, PatternResamples(cells, cells, request.resampled(once))
    folded, frequency = labels.folded()
    return folded, request.resampled(frequency, folded.weight)


def _with_publics(labels: LabelMatrix, request: Request) -> Request:
    """Add the columns that explain annotators' labels, asked for or not, at the level .05 over all
    columns and rubrics, and the annotators of each of their sides.
    """
    coded, raters = labels.in_agreement.on_categories(), request.facts.raters
    if raters is not None:
        raters = raters.drop(columns=[name for name in request.columns if name in raters])
    publics = publics_of(coded, raters, 0.05 / request.rubrics, request.seed)
    people = {**request.people, **members_of(raters, list(publics))}
    return replace(request, people=people, publics=publics)


def _refuse_sides_own_columns(labels: LabelMatrix, request: Request) -> None:
    """Raise InputError where a column to slice by has the parts that sides make anyway."""
    taken = {side.name: side.values for side in labels.sides}
    if labels.sides and request.settings.leanings:
        taken["leaning"] = request.settings.sides
    for column in labels.columns(request.screened):
        if not {*column.values}.isdisjoint(taken.get(column.name, ())):
            raise InputError(
                f"units: {column.name} cannot be a column to slice or group by, since answers to "
                f"both sides are split by {column.name} anyway; leave it out, or rename the column"
            )


def _cluster_noun(request: Request, scale: Scale) -> str:
    """Return the noun for a cluster in a sentence."""
    units, cluster = request.units, request.settings.cluster
    if units is None or (cluster == "pair" and "cluster_id" not in units):
        return "item"
    if cluster != "pair":
        noun = cluster.removesuffix("_id")
        return noun if noun.isalpha() else "cluster"
    if "item_id" in units:
        return "item"
    return "pair" if scale.unit else "cluster"
