"""Analysis of ratings that were reduced to patterns while they were read.

The rows are those of `one_rubric.rubric_rows`, from the same functions: patterns of labels replace
units, and `PatternResamples` their clusters. Analyses that need single ratings, their probabilities
or facts about units are left out, and reported as left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS
from evenhand.analysis.all_rubrics import Analysis, together
from evenhand.analysis.bootstrap.patterns import MANY_CLUSTERS, resamples_of_patterns
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import people_alike
from evenhand.analysis.labels.reduced import Reduced, name_keys, pattern_matrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.one_rubric import (
    Judging,
    RubricAnalysis,
    judge_across_rubrics,
    pooled,
    rubric_rows,
)
from evenhand.analysis.people.reversed_scales import opposed_in
from evenhand.analysis.people.selection import add_selection_rows, selection_of
from evenhand.analysis.request import Request
from evenhand.analysis.verdicts.judge import judge_graders
from evenhand.analysis.verdicts.wording import opposed_in_words
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings, with_changes


def analyse_reduced(
    tables: Mapping[str, Reduced],
    scales: Mapping[str, Scale],
    *,
    seed: int = SEED,
    many: int = MANY_CLUSTERS,
    on_stage: Callable[[str], None] | None = None,
    **changes: object,
) -> Analysis:
    """Analyse ratings by their patterns alone, one table per rubric (see `analyse`).

    `changes` are settings, `seed` fixes all resampling; more than `many` clusters are resampled in
    groups (see `analysis.bootstrap.patterns`).
    """
    settings, decision = with_changes(AnalysisSettings(), DecisionSettings(), changes)
    request = Request(None, settings, decision, seed=seed)
    found = []
    for place, (name, reduced) in enumerate(tables.items(), start=1):
        if on_stage:
            on_stage(f"resampling {name or 'labels'} ({place} of {len(tables)})")
        shared = _resampled(reduced, request, many)
        found.append(_analysed(reduced, scales[name], shared, replace(request, _latest={})))
    judge_across_rubrics(found)
    return together(found, [], request)


def _resampled(reduced: Reduced, request: Request, many: int) -> Resamples:
    """Resample clusters; where every unit is its own cluster, resample patterns by frequency."""
    if reduced.is_unclustered:
        return request.resampled(reduced.times)
    keys = name_keys(reduced.clusters)
    draw, seed = partial(request.resampled, keep=False), request.seed
    return resamples_of_patterns(reduced.cells, keys, draw, seed, many)


def _analysed(
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
    annotators = len(labels.humans)
    return RubricAnalysis(rows, noun, annotators, verdicts, notes, judging=judging)
