"""Do people see anything clear, and is the grader right where they do?

For a rubric that calls some categories unclear: the validation of a stance grader by Feng, Park,
Liu & Tsvetkov (2023, section 3 and appendix A.2). The others are collapsed into the rubric's
coarser categories first, as there, and the reference is the majority of people.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.pairs import KappaMeans, add_humans_rows
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import COLLAPSED, UNCLEAR, Coded, LabelMatrix
from evenhand.analysis.people.ceiling import add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Mask

CLEAR_AGREEMENT = "clear_agreement"
SORTED_AGREEMENT = "sorted_agreement"
_SUBSET = "all" + COLLAPSED


def add_clarity_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """`clear_share`, and every grader's `clear_agreement`, `sorted_agreement`, `mean_confidence`.

    All are on the collapsed categories. `clear_share`: the units on which people's majority is
    clear. `clear_agreement`: on those, how often the grader says the same; that it finds a clear
    unit unclear counts against it. `sorted_agreement`: the same on all units, unclear being a
    category of its own. `mean_confidence` (at = clear or unclear): the grader's probability of its
    likeliest category. The panel of people with each other and with graders is there too, with
    unclear labels left out.
    """
    scale = labels.scale
    if not (scale.unclear and scale.collapse and labels.humans):
        return
    coded = labels.on_collapsed()
    kappas = KappaMeans(coded, resamples)
    add_group_rows(rows, kappas, ["humans"])
    add_humans_rows(rows, coded, resamples)
    add_ceiling_rows(rows, kappas)

    as_sorted = labels.on_sorted()
    majority = majority_codes(label_counts(as_sorted, labels.humans))
    clear, unclear = (majority >= 0) & (majority < coded.q), majority == coded.q
    _add_share(rows, coded, resamples, "clear_share", (clear, clear | unclear), "")
    for grader in labels.models:
        name = labels.raters[grader]
        said = as_sorted.codes[:, grader]
        for statistic, units in ((CLEAR_AGREEMENT, clear), (SORTED_AGREEMENT, clear | unclear)):
            among = units & (said >= 0)
            _add_share(rows, coded, resamples, statistic, (said == majority, among), name)
        _add_confidence(rows, labels, coded, resamples, grader, clear, unclear)


def _add_share(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    statistic: str,
    part_and_whole: tuple[Mask, Mask],
    grader: str,
) -> None:
    part, whole = part_and_whole
    sums = resamples.totals(
        resamples.cluster_sums(coded.clusters, np.column_stack([part & whole, whole]))
    )
    numbers = resamples.count(coded.clusters, whole)
    rows.add(
        statistic,
        resamples.interval(ratio(*sums.T), numbers[1], reason="no_pairable_units"),
        numbers,
        rater_a="humans",
        rater_b=grader,
        subset=_SUBSET,
    )


def _add_confidence(
    rows: ResultRows,
    labels: LabelMatrix,
    coded: Coded,
    resamples: Resamples,
    grader: int,
    clear: Mask,
    unclear: Mask,
) -> None:
    confidence = labels.confidence[:, grader]
    known = ~np.isnan(confidence)
    if not known.any():
        return
    for at, units in (("clear", clear), (UNCLEAR, unclear)):
        among = known & units
        features = np.column_stack([np.where(among, confidence, 0.0), among])
        sums = resamples.totals(resamples.cluster_sums(coded.clusters, features))
        numbers = resamples.count(coded.clusters, among)
        rows.add(
            "mean_confidence",
            resamples.interval(ratio(*sums.T), numbers[1], reason="no_pairable_units"),
            numbers,
            rater_a="humans",
            rater_b=labels.raters[grader],
            subset=_SUBSET,
            at=at,
        )
