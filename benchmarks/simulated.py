"""Verdicts on simulated labels, without a table of ratings: from arrays to the rules of a verdict.

`verdicts` decides as `evenhand.analysis.analyse` does (a test holds it to that), but computes only
what a verdict rests on, and the whole of it only where the deciding bound could let a grader pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis import Scale
from evenhand.analysis.agreement.pairs import add_humans_rows, add_pair_rows
from evenhand.analysis.bootstrap.bounds import level_of_look, lower_bound
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix, copies_among
from evenhand.analysis.people.annotators import selection_of
from evenhand.analysis.people.comparison import add_baseline_rows, add_ceiling_rows
from evenhand.analysis.people.disagreements import add_coverage_rows
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.verdicts.comparison import Comparator, grader_views
from evenhand.analysis.verdicts.evidence import add_deciding_rows
from evenhand.analysis.verdicts.judge import judge_graders
from evenhand.analysis.writer import RubricView
from evenhand.study.settings.analysis import SEED, AnalysisSettings, DecisionSettings

MARGIN = 0.1
NOMINAL = level_of_look(1)
"""Level of a first analysis, one-sided."""
RULE = DecisionSettings()

Codes = npt.NDArray[Any]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Study:
    """Codes of labels by annotators (items, annotators) and graders (items, graders), -1 for none.

    `clusters` (items,) are None where each item is its own; `times` (items, annotators) are when
    labels were given, None where that is not known.
    """

    annotators: Codes
    graders: Codes
    clusters: npt.NDArray[np.intp] | None = None
    times: Values | None = None

    def matrix(self, scale: Scale) -> LabelMatrix:
        """Return the labels as `analysis.labels.encoding.encode` gives them; annotators without a
        label are left out.
        """
        kept = (self.annotators >= 0).any(axis=0)
        people, graders = int(kept.sum()), self.graders.shape[1]
        codes: Codes = np.hstack([self.annotators[:, kept], self.graders]).astype(
            np.int16, order="C"
        )
        n, clusters = len(codes), self.clusters
        if clusters is None:
            clusters = np.arange(n)
        nothing, none = np.full(codes.shape, np.nan), np.full(n, -1)
        return LabelMatrix(
            scale=scale,
            raters=(
                *(f"a{at:03}" for at in np.flatnonzero(kept)),
                *(f"g{at:02}" for at in range(graders)),
            ),
            kinds=("human",) * people + ("model",) * graders,
            codes=codes,
            positive=nothing,
            confidence=nothing,
            thresholds=np.full(codes.shape, scale.threshold),
            assigned=codes >= 0,
            reasons=tuple(Counter[str]() for _ in range(people + graders)),
            clusters=clusters,
            n_clusters=int(clusters.max()) + 1,
            times_in_rest=np.zeros(n),
            subjects=(),
            subject=none,
            pairs=(),
            pair=none,
            side=none,
        )


def verdicts(study: Study, scale: Scale, *, is_random: bool = False) -> tuple[list[str], str]:
    """Return the graders' verdicts, and how selected labels were handled (`Selection.how`).

    Verdicts that are no pass may be given as "inconclusive" whatever they are.
    """
    labels = study.matrix(scale)
    times = study.times
    if times is not None:
        kept = (study.annotators >= 0).any(axis=0)
        graders = np.full(study.graders.shape, np.nan)
        times = np.column_stack([times[:, kept], graders])
    once = Resamples(np.ones(labels.n_clusters), 0, np.random.default_rng(0))
    rng = np.random.default_rng(SEED)
    selection = selection_of(labels, once, rng, times, is_random=is_random)
    nothing = ["inconclusive"] * len(labels.models)
    if selection.rule == "unknown":
        return nothing, selection.rule
    labels = replace(labels, counted=selection.counted, tie_breaks=selection.rule == "tie_break")
    if not _may_pass(labels.in_agreement):
        return nothing, selection.rule
    copies = copies_among(labels.codes, labels.kinds)
    return _judged(replace(labels, copies=copies)), selection.rule


def _may_pass(labels: LabelMatrix) -> bool:
    """Whether the deciding bound of any grader is above the margin at the level of one grader."""
    folded, frequency = labels.folded()
    shared = Resamples(frequency, 0, np.random.default_rng(0))
    held = (folded.codes[:, list(folded.humans)] >= 0).any(axis=1)
    comparator = Comparator(shared.jackknife_of(folded.clusters[held]), MARGIN)
    for reading in grader_views(folded):
        found = comparator.compare(reading, 0.0)
        if found is None or math.isnan(found.difference):
            continue
        tested = found.tested_bounds
        if float(lower_bound(tested.statistic, tested.sample, NOMINAL)) > found.null:
            return True
    return False


def _judged(labels: LabelMatrix) -> list[str]:
    """The verdicts, from the rows that they rest on."""
    agreement = labels.in_agreement
    folded, frequency = agreement.folded()
    shared = Resamples(frequency, 10, np.random.default_rng(0))
    rows = ResultRows(labels.scale.name)
    views = RubricView.of_labels(rows, folded, lambda: shared, Request(None, AnalysisSettings()))
    for view in views:
        rows.record_chance(view.coded, shared)
        add_pair_rows(view)
        add_humans_rows(view)
        add_baseline_rows(view)
        add_ceiling_rows(view)
    add_coverage_rows(views[0])
    add_deciding_rows(rows, folded, shared, MARGIN, RULE)
    found = judge_graders(rows, agreement, rule=RULE, cluster_noun="unit")
    return [each["verdict"] for each in found]


def any_passes(found: Sequence[str]) -> bool:
    """Whether any verdict lets a grader replace an annotator."""
    return any(each.startswith("can_replace") for each in found)


def standard_error(share: float, runs: int) -> float:
    """Monte Carlo standard error of a share of so many runs."""
    return math.sqrt(share * (1 - share) / runs)


def most_allowed(runs: int, nominal: float = NOMINAL) -> float:
    """The nominal share of errors plus two Monte Carlo standard errors of it."""
    return nominal + 2 * standard_error(nominal, runs)
