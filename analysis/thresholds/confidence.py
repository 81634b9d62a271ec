"""Keep a grader's label only where it is sure: what is left, and how often that is right?

Feng, Park, Liu & Tsvetkov (2023, appendix A.2) drop what their stance grader labels with a
confidence below 0.9. A cut is a threshold like any other: it is shown with all others, chosen by
a declared objective - the smallest cut whose kept labels reach a target agreement with the majority
of people - and judged on clusters that it was not chosen on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Code, Note, Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer
from evenhand.study.settings.analysis import AnalysisSettings

Counts = npt.NDArray[np.floating[Any] | np.integer[Any]]

COVERAGE, AGREEMENT, CHOSEN = "confidence_coverage", "confidence_agreement", "confidence_cut"
HELD_OUT = "_held_out"
MAX_CUTS = 20
MIN_KEPT = 30
"""A cut that keeps fewer units reaches any target by luck."""


@dataclass(frozen=True)
class Graded:
    """Labels of one grader on units with a majority of people, all (units,): its confidence, and
    whether it agreed with the majority; `out` writes rows on these units.
    """

    out: Writer
    grader: str
    confidence: Array
    agreed: Mask

    def counts(self, keeps: Mask) -> tuple[Array, Array, Array]:
        """Units that each cut (units, cuts) keeps, and those of them that agree, (rows, cuts); all
        units (rows,).
        """
        every, cuts = np.ones((len(keeps), 1), dtype=bool), keeps.shape[1]
        sums = self.out.sums(keeps, keeps & self.agreed[:, None], every)
        units = np.where(sums[:, -1] > 0, sums[:, -1], np.nan)
        return sums[:, :cuts], sums[:, cuts : 2 * cuts], units

    def add(
        self,
        statistic: str,
        values: Array,
        units: Mask | None = None,
        *,
        at: str,
        note: Note = "",
        reason: Code = "nothing_kept",
    ) -> None:
        """A row on the units (units,), or on all of them."""
        chosen = np.ones(len(self.agreed), dtype=bool) if units is None else units
        of = About(a="humans", b=self.grader, at=at, note=note)
        self.out.add(statistic, values, chosen, reason=reason, **of)


def add_confidence_rows(
    rows: ResultRows, labels: LabelMatrix, resamples: Resamples, settings: AnalysisSettings
) -> None:
    """Add rows for every grader with a confidence: coverage against agreement, and a cut chosen to
    reach the target.

    `confidence_coverage` and `confidence_agreement` (at = cut): the share of its labels that the
    cut keeps, and how often those agree with the majority of people - on the coarser categories
    with unclear as one more where the rubric has them. `confidence_cut` (at = target): the chosen
    cut. With the suffix `_held_out` (at = target): coverage and agreement where every cluster is
    cut at the value chosen on other folds.
    """
    for graded in graded_with_confidence(rows, labels, resamples):
        _add_curve(graded, settings)
        _add_held_out(graded, settings)


def graded_with_confidence(
    rows: ResultRows, labels: LabelMatrix, resamples: Resamples
) -> Iterator[Graded]:
    """Yield every grader with a confidence, on the units where people have a majority."""
    if not labels.humans:
        return
    coded = labels.on_sorted()
    majority = majority_codes(label_counts(coded, labels.humans))
    for grader in labels.models:
        said, confidence = coded.codes[:, grader], labels.confidence[:, grader]
        held = (majority >= 0) & (said >= 0) & ~np.isnan(confidence)
        if held.any():
            yield Graded(
                Writer(rows, resamples, labels.clusters[held], coded.subset),
                labels.raters[grader],
                # Means over draws that differ in the last digit only are one confidence.
                np.round(confidence[held], 12),
                (said == majority)[held],
            )


def candidate_cuts(confidence: Array, declared: float) -> Array:
    """Cuts to try, in ascending order: the declared one and the distinct confidences (units,).

    If there are more than 20, those that split the units into twentieths.

    >>> candidate_cuts(np.array([0.6, 0.8, 0.8]), 0.9).tolist()
    [0.6, 0.8, 0.9]
    """
    distinct = np.unique(confidence)
    if len(distinct) > MAX_CUTS:
        ranks = np.arange(MAX_CUTS) / MAX_CUTS
        distinct = np.quantile(confidence, ranks, method="higher")
    return np.unique(np.append(distinct, declared))


def smallest_cut(kept: Counts, agreed: Counts, target: float) -> Codes:
    """The first of the cuts that reaches the target, (rows,), from counts (rows, cuts); -1 if none.

    >>> smallest_cut(np.array([[90.0, 40.0]]), np.array([[81.0, 39.0]]), 0.95).tolist()
    [1]
    """
    reaches = (kept >= MIN_KEPT) & (agreed >= target * kept - 1e-9)
    return np.where(reaches.any(axis=1), reaches.argmax(axis=1), -1)


def _add_curve(graded: Graded, settings: AnalysisSettings) -> None:
    declared, target = settings.confidence_cut, settings.confidence_target
    cuts = candidate_cuts(graded.confidence, declared)
    keeps = graded.confidence[:, None] >= cuts
    kept, agreed, units = graded.counts(keeps)
    for at, cut in enumerate(cuts.tolist()):
        place, note = repr(cut), Remark("declared_cut") if cut == declared else ""
        agreement = ratio(agreed[:, at], kept[:, at])
        graded.add(COVERAGE, kept[:, at] / units, at=place, note=note)
        graded.add(AGREEMENT, agreement, keeps[:, at], at=place, note=note)
    plain = graded.out.resamples.plain  # what is chosen jumps: no jackknife
    chosen = smallest_cut(plain(kept), plain(agreed), target)
    values = np.where(chosen >= 0, cuts[chosen], np.nan)
    why = f"smallest cut to reach {target:g} with {MIN_KEPT} units or more"
    graded.add(CHOSEN, values, at=repr(target), note=why, reason="target_not_reached")


def _add_held_out(graded: Graded, settings: AnalysisSettings) -> None:
    keeps, target = _kept_by_other_folds(graded, settings), settings.confidence_target
    kept, agreed, units = graded.counts(keeps[:, None])
    agreement = ratio(agreed[:, 0], kept[:, 0])
    found = graded.out.resamples.interval(agreement, graded.out.count(keeps)[1])
    note = "the target is reached held out" if found.low >= target else "not shown to reach it"
    graded.add(COVERAGE + HELD_OUT, kept[:, 0] / units, at=repr(target))
    graded.add(AGREEMENT + HELD_OUT, agreement, keeps, at=repr(target), note=note)


def _kept_by_other_folds(graded: Graded, settings: AnalysisSettings) -> Mask:
    """Mask of the units (units,) that are kept by the cut chosen on all folds but their own."""
    fold, target = folds(graded.out.clusters), settings.confidence_target
    keeps, mass = np.zeros(len(fold), dtype=bool), np.ones(len(fold))
    if graded.out.resamples.weight is not None:
        mass = graded.out.resamples.weight[graded.out.clusters]
    for each in range(int(fold.max()) + 1):
        train, test = fold != each, fold == each
        if not train.any():
            continue
        cuts = candidate_cuts(graded.confidence[train], settings.confidence_cut)
        kept = graded.confidence[train, None] >= cuts
        agreed = kept & graded.agreed[train, None]
        chosen = smallest_cut(mass[None, train] @ kept, mass[None, train] @ agreed, target)[0]
        keeps[test] = graded.confidence[test] >= cuts[chosen] if chosen >= 0 else False
    return keeps
