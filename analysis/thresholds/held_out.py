"""Thresholds judged on clusters that they were not tuned on.

The clusters are parted into ten folds; each fold's verdicts are made with the threshold that is
best on the other nine. Agreement of those verdicts is what tuning is worth elsewhere.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.sweep import OBJECTIVES, Candidates, Outcomes, best_of
from evenhand.analysis.types import Array, Codes, Labels, Mask


def held_out_thresholds(
    positive: Array, reference: Labels, clusters: Codes, default: float
) -> dict[str, Array]:
    """Thresholds (units,) by objective, each tuned on the other folds than the unit's own.

    `positive` are probabilities (units,); units whose `reference` is -1 are not tuned on, but get a
    threshold too. Nothing with a single cluster.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return {}
    thresholds = {objective: np.full(len(positive), default) for objective in OBJECTIVES}
    for each in range(int(fold.max()) + 1):
        train, test = np.flatnonzero((fold != each) & (reference >= 0)), fold == each
        once = np.zeros(len(train), dtype=np.intp)
        candidates = Candidates.of(positive[train], reference[train] == 1, once, default)
        outcomes = candidates.outcomes(np.ones((1, 1), dtype=np.int64))
        for objective, function in OBJECTIVES.items():
            thresholds[objective][test] = candidates.thresholds[best_of(function(outcomes))[0]]
    return thresholds


def held_out_verdicts(
    positive: Array, reference: Labels, clusters: Codes, default: float
) -> dict[str, Mask]:
    """Verdicts (units,) by objective, made with these thresholds."""
    found = held_out_thresholds(positive, reference, clusters, default)
    return {objective: positive >= thresholds for objective, thresholds in found.items()}


def verdict_outcomes(
    verdict: Mask, affirmed: Mask, clusters: Codes, resamples: Resamples
) -> Outcomes:
    """Of verdicts (units,) against a reference (units,), in every resample (rows,)."""
    cells = verdict & affirmed, verdict & ~affirmed, affirmed, ~affirmed
    return Outcomes(*resamples.sums(clusters, *cells).T)
