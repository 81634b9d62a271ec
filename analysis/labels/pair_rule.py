"""Pair rule of the study: the verdict on a pair from its two responses.

A rubric on responses gives each pair and subject two units, side a and side b. The pair's
probability is the mean of the two responses' (a hard label counts 1 where affirmative, else 0) and
the verdict is affirmative from the threshold up (Shen et al. 2025).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.types import Codes


def pair_verdicts(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with one row per pair and subject, `positive` by the pair rule.

    A rater has a verdict on a pair only where they have one on both responses. Pairs with one
    response are left out. Codes are all missing: a pair has a verdict but no category.
    """
    verdicts = labels.verdicts
    single = np.where(np.isnan(labels.positive), verdicts.astype(float), labels.positive)
    single[verdicts < 0] = np.nan
    a, b = units_of_both_sides(labels)
    return replace(
        labels,
        codes=np.full((len(a), len(labels.raters)), -1, dtype=np.int8),
        positive=(single[a] + single[b]) / 2.0,
        confidence=np.full((len(a), len(labels.raters)), np.nan),
        thresholds=labels.thresholds[a],
        asked=labels.asked[a] | labels.asked[b],
        withheld=None if labels.withheld is None else labels.withheld[a] | labels.withheld[b],
        clusters=labels.clusters[a],
        subject=labels.subject[a],
        pair=labels.pair[a],
        side=np.full(len(a), -1, dtype=np.intp),
        slices=tuple(replace(column, codes=column.codes[a]) for column in labels.slices),
    )


def units_of_both_sides(
    labels: LabelMatrix,
) -> tuple[Codes, Codes]:
    """Return the rows of side a and of side b, for every pair and subject that has both."""
    key = labels.pair * (len(labels.subjects) + 1) + labels.subject + 1
    sided = (labels.side >= 0) & (labels.pair >= 0)
    first, second = (np.flatnonzero(sided & (labels.side == side)) for side in (0, 1))
    _, at_first, at_second = np.intersect1d(key[first], key[second], return_indices=True)
    return first[at_first], second[at_second]
