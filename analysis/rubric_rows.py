"""The rows that one rubric's labels give, all on the same resamples."""

from __future__ import annotations

from evenhand.analysis.agreement.categories import add_category_rows
from evenhand.analysis.agreement.consensus import add_consensus_rows
from evenhand.analysis.agreement.groups import add_group_rows, add_prevalence_rows
from evenhand.analysis.agreement.pairs import KappaMeans, add_humans_rows, add_pair_rows
from evenhand.analysis.agreement.stability import add_stability_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.pair_rule import pair_verdicts
from evenhand.analysis.labels.units import check_values
from evenhand.analysis.people.alternative_annotator import add_alt_test_rows
from evenhand.analysis.people.beside_members import add_ensemble_rows
from evenhand.analysis.people.ceiling import (
    add_baseline_ceiling_rows,
    add_baseline_rows,
    add_ceiling_rows,
    baselines,
)
from evenhand.analysis.people.clarity import add_clarity_rows
from evenhand.analysis.people.comparison import add_grader_comparison_rows, add_leniency_rows
from evenhand.analysis.people.coverage import add_coverage_rows, add_unscored_rows
from evenhand.analysis.people.group_gap import add_group_performance_rows
from evenhand.analysis.people.slices import add_rater_slice_rows, add_slice_rows
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.corrected_rates import add_corrected_rate_rows
from evenhand.analysis.subjects.scores import add_overall_rows
from evenhand.analysis.thresholds.confidence import add_confidence_rows
from evenhand.analysis.thresholds.probabilities import add_probability_rows
from evenhand.analysis.thresholds.rows import add_threshold_rows


def rubric_rows(labels: LabelMatrix, request: Request) -> ResultRows:
    """All rows of one rubric, on the same resamples."""
    rows = ResultRows(labels.scale.name)
    settings = request.settings
    for column in labels.columns((*request.screened, *settings.variants)):
        check_values(column.name, column.values)
    labels, frequency = labels.folded()
    shared = request.resampled(frequency)
    for view in views_of(labels):
        rows.know_chance(view, frequency)
        add_pair_rows(rows, view, shared)
        add_humans_rows(rows, view, shared)
        kappas = KappaMeans(view, shared)
        add_group_rows(rows, kappas)
        add_category_rows(rows, view, shared)
        add_prevalence_rows(rows, view, shared)
        add_baseline_rows(rows, view, shared)
        add_ceiling_rows(rows, kappas)
        add_baseline_ceiling_rows(rows, kappas)
        add_alt_test_rows(rows, view, shared, baselines(view, shared), settings.epsilon)
        add_consensus_rows(rows, view, shared)
        add_ensemble_rows(rows, labels, view, shared, settings.ensembles)
        add_grader_comparison_rows(rows, kappas)
        add_leniency_rows(rows, kappas)
        add_unscored_rows(rows, labels, view, shared)
        add_slice_rows(rows, labels.columns(settings.slices), view, shared)
        add_group_performance_rows(rows, view, shared, labels.columns(settings.groups))
        add_rater_slice_rows(rows, view, shared, request.people)
    add_coverage_rows(rows, labels, shared)
    add_clarity_rows(rows, labels, shared)
    add_confidence_rows(rows, labels, shared, settings)
    add_stability_rows(rows, labels, shared, labels.columns(settings.variants))
    if labels.has_verdicts:
        # The last view is the binary verdict.
        _add_verdict_rows(rows, labels, shared, kappas, request)
    return rows


def views_of(labels: LabelMatrix) -> list[Coded]:
    """The readings of the labels: the categories, and the binary verdict where there is one."""
    categories = [labels.on_categories()]
    return [*categories, labels.on_verdicts()] if labels.has_verdicts else categories


def _add_verdict_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    shared: Resamples,
    kappas: KappaMeans,
    request: Request,
) -> None:
    """What speaks of the binary verdict only: thresholds, probabilities, the pair rule, scores."""
    add_threshold_rows(rows, labels, shared, kappas)
    add_probability_rows(rows, labels, shared)
    overall = labels
    if labels.scale.unit == "response" and labels.side.max(initial=-1) > 0:
        overall = pair_verdicts(labels)
        add_pair_rows(rows, overall.on_verdicts(), shared, "pair_")
        add_humans_rows(rows, overall.on_verdicts(), shared, "pair_")
    if labels.subjects:
        add_overall_rows(rows, overall, shared)
    add_corrected_rate_rows(rows, overall, shared, overall.columns(request.strata))
