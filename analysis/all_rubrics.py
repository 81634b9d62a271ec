"""Entry point of the analysis: from two tables to results, verdicts and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS
from evenhand.analysis.bootstrap.resamples import MANY_CLUSTERS, Resamples, resamples_of_patterns
from evenhand.analysis.labels.encoding import one_version
from evenhand.analysis.labels.matrix import people_alike
from evenhand.analysis.labels.reduced import Reduced, name_keys, pattern_matrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.one_rubric import (
    Judging,
    LabelCounts,
    RubricAnalysis,
    RubricTask,
    analyse_rubric,
    analyse_sets,
    judge_across_rubrics,
    pooled,
    rubric_rows,
)
from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.people.reversed_scales import opposed_in
from evenhand.analysis.people.selection import add_selection_rows, selection_of
from evenhand.analysis.people.slices import members_of
from evenhand.analysis.planning.g_study import VarianceComponents
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRow, results_table
from evenhand.analysis.study_facts import StudyFacts
from evenhand.analysis.thresholds.rows import ThresholdInForce
from evenhand.analysis.verdicts.judge import Verdict, judge_graders
from evenhand.analysis.verdicts.wording import opposed_in_words
from evenhand.analysis.verification import (
    Libraries,
    Verification,
    in_this_process,
    libraries_are_here,
)
from evenhand.errors import InputError
from evenhand.study.settings.analysis import (
    SEED,
    AnalysisSettings,
    DecisionSettings,
    with_changes,
)
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import validate_ratings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "AnalysisSettings", "DecisionSettings", "analyse"]

MAX_NAMED = 12
"""Most annotators named in a message."""
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
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    cluster_nouns: dict[str, str] = field(default_factory=dict)
    """By rubric, the noun for a cluster in a sentence."""
    counts: dict[str, LabelCounts] = field(default_factory=dict)
    """By rubric, the labels that its figures rest on."""
    orders: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """By rubric and grader, the orders in which it read pairs, where known."""

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
    `rater_slices` of `facts.raters`; with at = "cluster=COLUMN", with intervals from resampling the
    clusters of `sensitivity_cluster`; and under the subset "raters=all", with the raters that
    `facts.excluded` leaves out. The slices and groups of humans are audited for bias too.

    `variants` are units columns that distinguish variants of one question: how stable are labels
    from one to the next (see `analysis.agreement.stability`)? A scale that is a `variant_of`
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
    """Carry out a request (see `analyse`).

    With a `pool` of processes rubrics are analysed in parallel; they share nothing. `on_stage` is
    called with a description of each stage.
    """
    settings, decision, facts = request.settings, request.decision, request.facts
    people = members_of(facts.raters, settings.rater_slices, settings.slices)
    request = replace(request, people=people)
    libraries = (in_this_process if verify is True else verify) or None
    libraries = libraries if libraries_are_here() else None
    declared: dict[str, Scale] = {}
    for scale in scales.values() if isinstance(scales, Mapping) else scales:
        if scale.name in declared:
            raise InputError(f"two scales are called {scale.name!r}; give each rubric one")
        declared[scale.name] = replace(scale, ordered=settings.ordered)
    ratings = _with_rubrics(validate_ratings(ratings, facts.source), declared, facts.source)
    others = sorted(set(ratings.loc[ratings["rater_kind"] != "model", "rater_id"]))
    if decision.reference and decision.reference not in others:
        raise InputError(
            f"reference is {decision.reference!r}, which is no person or adjudicator here; "
            f"there are {', '.join(others[:MAX_NAMED]) or 'nobody'}"
        )
    counted: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    for name in declared:
        accepted = None if facts.rubric_hashes is None else facts.rubric_hashes.get(name)
        counted[name], about = one_version(ratings[ratings["rubric"] == name], name, accepted)
        notes += about
    wordings = {each.name for each in declared.values() if each.variant_of in {*declared} - {""}}
    request = replace(request, rubrics=max(len(declared) - len(wordings), 1))
    tasks = [
        RubricTask(
            scale,
            counted[name],
            [
                (other, counted[other.name])
                for other in declared.values()
                if name and other.variant_of == name
            ],
            request,
            judge=name not in wordings,
            verify=libraries,
        )
        for name, scale in declared.items()
        # A wording that graders alone were asked under only shows how stable they are.
        if name not in wordings or counted[name]["rater_kind"].eq("human").any()
    ]
    analysed = iter((pool.map if pool else map)(analyse_rubric, tasks))
    found: list[RubricAnalysis] = []
    for place, task in enumerate(tasks, start=1):
        if on_stage:
            on_stage(f"analysing {task.scale.name or 'labels'} ({place} of {len(tasks)})")
        whole = task.scale.part_of
        if whole and not any(each.rows.rubric == whole for each in found):
            found.append(analyse_sets(whole, [t for t in tasks if t.scale.part_of == whole]))
        found.append(next(analysed))
    judge_across_rubrics(found)
    return together(found, notes, request, verify=libraries is not None)


def together(
    found: Sequence[RubricAnalysis],
    notes: Sequence[str],
    request: Request,
    *,
    verify: bool = False,
) -> Analysis:
    """Combine the rubrics' analyses into one."""
    verification = sum((each.verification for each in found), Verification())
    return Analysis(
        rows=[row for each in found for row in each.rows.rows.values()],
        verdicts=[verdict for each in found for verdict in each.verdicts],
        notes=[*notes, *(note for each in found for note in each.notes)],
        verification=verification if verify else None,
        settings=request.settings,
        decision=request.decision,
        components={each.rows.rubric: each.components for each in found if each.components},
        disagreements=[one for each in found for one in each.disagreements],
        thresholds=[one for each in found for one in each.thresholds],
        cluster_nouns={each.rows.rubric: each.cluster_noun for each in found},
        counts={each.rows.rubric: each.counts for each in found},
        orders={each.rows.rubric: each.orders for each in found if each.orders},
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

    The rows are those of `one_rubric.rubric_rows`: patterns of labels replace units, and
    `PatternResamples` their clusters. Analyses that need single ratings, their probabilities or
    facts about units are left out, and reported as left out.

    `changes` are settings, `seed` fixes all resampling; more than `many` clusters are resampled in
    groups (see `analysis.bootstrap.resamples`).
    """
    settings, decision = with_changes(AnalysisSettings(), DecisionSettings(), changes)
    request = Request(None, settings, decision, seed=seed)
    found = []
    for place, (name, reduced) in enumerate(tables.items(), start=1):
        if on_stage:
            on_stage(f"resampling {name or 'labels'} ({place} of {len(tables)})")
        if reduced.is_unclustered:  # resample patterns by frequency
            shared = request.resampled(reduced.times)
        else:
            draw, keys = partial(request.resampled, keep=False), name_keys(reduced.clusters)
            shared = resamples_of_patterns(reduced.cells, keys, draw, request.seed, many)
        found.append(_analyse_patterns(reduced, scales[name], shared, replace(request, _latest={})))
    judge_across_rubrics(found)
    return together(found, [], request)


def _analyse_patterns(
    reduced: Reduced, scale: Scale, shared: Resamples, request: Request
) -> RubricAnalysis:
    from threadpoolctl import threadpool_limits

    place = f"{scale.name}: " if scale.name else ""
    labels = pattern_matrix(reduced, scale)
    notes = [place + pooled(labels)] if len(labels.raters) > MAX_LISTED_RATERS else []
    rng, is_random = np.random.default_rng(request.seed), request.settings.overlap == "random"
    selection = selection_of(labels, shared, rng, is_random=is_random)
    labels = replace(labels, counted=selection.counted, tie_breaks=selection.how == "tie_break")
    if selection.note:
        notes.append(place + selection.note)
    alike = people_alike(labels.copies, labels.raters, labels.humans)
    notes += [place + each for each in alike]
    with threadpool_limits(limits=1, user_api="blas"):
        rows = rubric_rows(labels, shared, request)
        notes += [place + opposed_in_words(each, "note") for each in opposed_in(rows)]
        noun = "unit" if reduced.clusters is None else "cluster"
        add_selection_rows(rows, labels, selection, shared)
        verdicts = judge_graders(
            rows, labels.in_agreement, rule=request.decision, cluster_noun=noun
        )
        judging = Judging(labels, shared, request).kept()
    counts = LabelCounts.of(labels, selection, times=reduced.times)
    clusters = counts.items if reduced.clusters is None else len(np.unique(reduced.clusters))
    counts = replace(counts, clusters=clusters)
    return RubricAnalysis(rows, noun, counts, verdicts, notes, judging=judging)


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
