"""All that is found on one rubric: its rows, the verdicts on its graders, and what to note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS
from evenhand.analysis.agreement.repeats import add_repeat_rows, repeats_of
from evenhand.analysis.agreement.stability import add_rewording_rows, reworded
from evenhand.analysis.bias import add_bias_rows
from evenhand.analysis.labels.combine import Readings, combine_readings, methods_apart
from evenhand.analysis.labels.counted import without_excluded
from evenhand.analysis.labels.matrix import LabelMatrix, encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.people.disagreements import GraderDisagreement, add_disagreement_rows
from evenhand.analysis.people.slices import add_all_raters_rows, add_main_rows
from evenhand.analysis.planning.g_study import VarianceComponents, components_of
from evenhand.analysis.raters.pace import add_rater_rows
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.rubric_rows import rubric_rows, views_of
from evenhand.analysis.thresholds.in_force import ThresholdInForce, thresholds_in_force
from evenhand.analysis.usage import add_usage_rows
from evenhand.analysis.verdicts.judge import Verdict, judge_graders
from evenhand.analysis.verdicts.ranking import add_price_rows
from evenhand.analysis.verification import Verification, verify_estimates

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class RubricAnalysis:
    """What was found on one rubric, as far as it has ratings."""

    rows: ResultRows
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    components: VarianceComponents | None = None
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    verification: Verification = field(default_factory=Verification)


@dataclass(frozen=True)
class RubricTask:
    """The ratings of one rubric, to be analysed; `variants` are its other wordings with theirs.

    Graders are judged only if asked for: a rubric may be there as a mere wording of another.
    """

    scale: Scale
    ratings: pd.DataFrame
    variants: Sequence[tuple[Scale, pd.DataFrame]]
    request: Request
    judge: bool
    verify: bool


def analyse_rubric(task: RubricTask) -> RubricAnalysis:
    """Carry out one task."""
    from threadpoolctl import threadpool_limits

    # Within a product threads cost more than they bring: the products are too skinny.
    with threadpool_limits(limits=1, user_api="blas"):
        return _analysed(task)


def _analysed(task: RubricTask) -> RubricAnalysis:
    scale, ratings, request = task.scale, task.ratings, task.request
    found = RubricAnalysis(ResultRows(scale.name))
    title = scale.name or "the rubric"
    if ratings.empty:
        found.notes.append(f"{title}: no ratings")
        return found
    own, found.notes = without_excluded(ratings, scale.name, request.facts.excluded)
    if own.empty:
        return found
    own, parted = methods_apart(own, scale.name)
    found.notes += parted
    readings = combine_readings(own, scale, request.facts.source)
    labels = encode(readings, scale, request.units, request.settings.cluster, request.columns)
    if len(labels.raters) > MAX_LISTED_RATERS:
        pooled = (
            "pairs of raters" if len(labels.models) > MAX_LISTED_RATERS else "pairs with a person"
        )
        found.notes.append(
            f"{title}: {len(labels.raters)} raters; "
            f"above {MAX_LISTED_RATERS} {pooled} appear pooled only"
        )
    if request.why:
        found.components = components_of(labels)
    found.thresholds = thresholds_in_force(labels)
    found.rows = rows = rubric_rows(labels, request)
    _add_bias(rows, labels, own, readings, request)
    _add_with_other_clusters(rows, readings, scale, request)
    if len(own) < len(ratings):
        _add_with_excluded(rows, ratings, scale, request)
    if (own["draw"] > 0).any():
        repeats = repeats_of(own, scale, request.units, request.settings.cluster)
        add_repeat_rows(rows, repeats, request.resampled)
    if task.variants:
        _add_reworded(rows, scale, own, task.variants, request)
    add_rater_rows(rows, own, readings, labels)
    found.disagreements = add_disagreement_rows(rows, readings.units, labels)
    add_usage_rows(rows, request.facts.usage)
    add_price_rows(rows, labels, request.facts.prices)
    if task.verify:
        for view in views_of(labels):
            found.verification += verify_estimates(rows, view)
    if task.judge:
        noun = _cluster_noun(request, scale)
        found.verdicts = judge_graders(
            rows,
            labels,
            margin=request.settings.margin,
            rule=request.decision,
            cluster_noun=noun,
        )
    return found


def _add_bias(
    rows: ResultRows,
    labels: LabelMatrix,
    ratings: pd.DataFrame,
    readings: Readings,
    request: Request,
) -> None:
    add_bias_rows(
        rows,
        labels,
        ratings,
        UnitFacts(readings.units, request.units),
        units=request.units,
        cluster=request.settings.cluster,
        settings=request.settings,
        slices=labels.columns(request.screened),
        members=request.people,
        resampled=request.resampled,
    )


def _add_with_other_clusters(
    rows: ResultRows, readings: Readings, scale: Scale, request: Request
) -> None:
    """The sensitivity line: the main figures with intervals from other clusters."""
    column = request.settings.sensitivity_cluster
    if not column:
        return
    labels, frequency = encode(readings, scale, request.units, column).folded()
    shared = request.resampled(frequency)
    for view in views_of(labels):
        add_main_rows(rows, view, shared, at=f"cluster={column}")


def _add_with_excluded(
    rows: ResultRows, ratings: pd.DataFrame, scale: Scale, request: Request
) -> None:
    """The main figures once more, with the raters that were excluded."""
    readings = combine_readings(ratings, scale, request.facts.source)
    labels, frequency = encode(readings, scale, request.units, request.settings.cluster).folded()
    add_all_raters_rows(rows, labels, request.resampled(frequency))


def _add_reworded(
    rows: ResultRows,
    scale: Scale,
    ratings: pd.DataFrame,
    variants: Sequence[tuple[Scale, pd.DataFrame]],
    request: Request,
) -> None:
    """How stable raters are under the other wordings of this rubric."""
    import pandas as pd

    every = pd.concat([ratings, *(of_variant for _, of_variant in variants)])
    family = [scale, *(variant for variant, _ in variants)]
    matrices = reworded(every, family, request.units, request.settings.cluster)
    add_rewording_rows(rows, matrices, request.resampled)


def _cluster_noun(request: Request, scale: Scale) -> str:
    """What a cluster is called in a sentence."""
    units, cluster = request.units, request.settings.cluster
    if units is None or (cluster == "pair" and "cluster_id" not in units):
        return "unit"
    if cluster != "pair":
        return cluster
    return "pair" if scale.unit else "cluster"
