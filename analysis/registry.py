"""Registry of the statistics: the functions that add a rubric's rows, in the order of the rows.

To add a statistic, write a function that adds its rows to a view of the labels, and enter it in
`STATISTICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, product
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from evenhand.analysis import raters
from evenhand.analysis.agreement import groups, numbers, pairs
from evenhand.analysis.bias import audit
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.distributions import add_distribution_rows
from evenhand.analysis.injection import add_injection_rows
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.units import WEIGHT, UnitColumn
from evenhand.analysis.people import annotators, comparison, disagreements, slices
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import says
from evenhand.analysis.subjects import corrected_rates, preference, scores
from evenhand.analysis.thresholds import routing
from evenhand.analysis.thresholds import rows as thresholds
from evenhand.analysis.verdicts import evidence, requirements
from evenhand.analysis.writer import Draw, RatedView, RubricView

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
    for each in views:
        if settings.leanings and labels.models:
            corrected_rates.add_part_rows(each, leaning)
        corrected_rates.add_side_difference_rows(each, sign)


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
    Declared(routing.add_confidence_rows, on="rubric", needs=["categories"]),
    Declared(routing.add_routing_rows, on="rubric"),
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
