"""Keep a grader's label only where it is sure: what is left, and how often that is right?

Feng, Park, Liu & Tsvetkov (2023, appendix A.2) drop what their stance grader labels with a
confidence below 0.9. The declared cut is shown with all others. A cut with a promise: `routing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Note, Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import About, Writer
from evenhand.study.settings.analysis import AnalysisSettings

COVERAGE, AGREEMENT = "confidence_coverage", "confidence_agreement"
MAX_CUTS = 20


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
    ) -> None:
        """A row on the units (units,), or on all of them."""
        chosen = np.ones(len(self.agreed), dtype=bool) if units is None else units
        of = About(a="humans", b=self.grader, at=at, note=note)
        self.out.add(statistic, values, chosen, reason="nothing_kept", **of)


def add_confidence_rows(
    rows: ResultRows, labels: LabelMatrix, resamples: Resamples, settings: AnalysisSettings
) -> None:
    """Add coverage against agreement for every grader with a confidence.

    `confidence_coverage` and `confidence_agreement` (at = cut): the share of its labels that the
    cut keeps, and how often those agree with the majority of people - on the coarser categories
    with unclear as one more where the rubric has them.
    """
    for graded in graded_with_confidence(rows, labels, resamples):
        _add_curve(graded, settings.confidence_cut)


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


def _add_curve(graded: Graded, declared: float) -> None:
    cuts = candidate_cuts(graded.confidence, declared)
    keeps = graded.confidence[:, None] >= cuts
    kept, agreed, units = graded.counts(keeps)
    for at, cut in enumerate(cuts.tolist()):
        place, note = repr(cut), Remark("declared_cut") if cut == declared else ""
        agreement = ratio(agreed[:, at], kept[:, at])
        graded.add(COVERAGE, kept[:, at] / units, at=place, note=note)
        graded.add(AGREEMENT, agreement, keeps[:, at], at=place, note=note)
