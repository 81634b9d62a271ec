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


def held_out_verdicts(
    positive: Array, reference: Labels, clusters: Codes, default: float
) -> dict[str, Mask]:
    """Verdicts (units,) by objective, each with the threshold tuned on the other folds.

    `positive` are probabilities (units,); units whose `reference` is -1 are not tuned on, but get a
    verdict too. Nothing with a single cluster.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return {}
    verdicts = {objective: np.zeros(len(positive), dtype=bool) for objective in OBJECTIVES}
    for each in range(int(fold.max()) + 1):
        train, test = np.flatnonzero((fold != each) & (reference >= 0)), fold == each
        once = np.zeros(len(train), dtype=np.intp)
        candidates = Candidates.of(positive[train], reference[train] == 1, once, default)
        outcomes = candidates.outcomes(np.ones((1, 1), dtype=np.int64))
        for objective, function in OBJECTIVES.items():
            threshold = candidates.thresholds[best_of(function(outcomes))[0]]
            verdicts[objective][test] = positive[test] >= threshold
    return verdicts


def verdict_outcomes(
    verdict: Mask, affirmed: Mask, clusters: Codes, resamples: Resamples
) -> Outcomes:
    """Of verdicts (units,) against a reference (units,), in every resample (rows,)."""
    cells = verdict & affirmed, verdict & ~affirmed, affirmed, ~affirmed
    return Outcomes(*resamples.sums(clusters, *cells).T)
