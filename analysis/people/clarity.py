"""Clarity: do humans find a unit clear, and is the grader right where they do?

For a rubric that marks some categories as unclear: the validation of a stance grader by Feng, Park,
Liu & Tsvetkov (2023, section 3 and appendix A.2). The others are collapsed into the rubric's
coarser categories first, as there, and the reference is the majority of humans.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.overlap import KappaMeans, add_humans_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import UNCLEAR, LabelMatrix
from evenhand.analysis.people.ceiling import add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import Writer

CLEAR_AGREEMENT = "clear_agreement"


def add_clarity_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """Add `clear_share`, and graders' `clear_agreement` and `mean_confidence`.

    All are on the collapsed categories. `clear_share`: the share of units on which the humans'
    majority is clear. `clear_agreement`: on those, how often the grader gives the same label;
    finding a clear unit unclear counts against it. `mean_confidence` (at = clear or unclear): the
    grader's probability of its likeliest category. The panel of humans with each other and with
    graders is added too, with unclear labels left out.
    """
    scale = labels.scale
    if not (scale.unclear and scale.collapse and labels.humans):
        return
    coded = labels.on_collapsed()
    kappas = KappaMeans(coded, resamples)
    add_group_rows(rows, kappas, ["humans"])
    add_humans_rows(rows, coded, resamples)
    add_ceiling_rows(rows, kappas)

    out, as_sorted = Writer.of(rows, coded, resamples), labels.on_sorted()
    add = partial(out.add, a="humans", reason="no_pairable_units")
    majority = majority_codes(label_counts(as_sorted, labels.humans))
    clear, unclear = (majority >= 0) & (majority < coded.q), majority == coded.q
    told = clear | unclear
    add("clear_share", out.share(clear, told), told)
    for grader in labels.models:
        name, said = labels.raters[grader], as_sorted.codes[:, grader]
        among = clear & (said >= 0)
        add(CLEAR_AGREEMENT, out.share(said == majority, among), among, b=name)
        sure = labels.confidence[:, grader]
        known = ~np.isnan(sure)
        for at, units in (("clear", clear), (UNCLEAR, unclear)) if known.any() else ():
            among = known & units
            add("mean_confidence", out.share(np.nan_to_num(sure), among), among, b=name, at=at)
