"""Thresholds judged on clusters that they were not tuned on.

The clusters are split into ten folds; each fold's verdicts are made with the threshold that is
best on the other nine. Agreement of those verdicts is what tuning is worth elsewhere.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.sweep import OBJECTIVES, Candidates, Outcomes, best_of, values_of
from evenhand.analysis.types import Array, Codes, Labels, Mask, Numbers


def held_out_thresholds(
    positive: Array,
    reference: Labels,
    clusters: Codes,
    default: float,
    weight: Array | None = None,
) -> dict[str, Array]:
    """Thresholds (units,) by objective, each tuned on the other folds than the unit's own.

    `positive` are probabilities (units,); units whose `reference` is -1 are not tuned on, but get a
    threshold too. `weight` (units,) is how much each counts. Empty with a single cluster.
    """
    fold = folds(clusters)
    if fold.max(initial=0) < 1:
        return {}
    thresholds = {objective: np.full(len(positive), default) for objective in OBJECTIVES}
    for each in range(int(fold.max()) + 1):
        train, test = np.flatnonzero((fold != each) & (reference >= 0)), fold == each
        own = np.arange(len(train))
        counts: Numbers = np.ones(len(train), dtype=np.int64)
        if weight is not None:
            counts = weight[train]
        candidates = Candidates.of(positive[train], reference[train] == 1, own, default)
        outcomes = candidates.outcomes(counts[None])
        for objective in OBJECTIVES:
            values = values_of(objective, outcomes, whole=weight is None)
            thresholds[objective][test] = candidates.thresholds[best_of(values)[0]]
    return thresholds


def held_out_verdicts(
    positive: Array,
    reference: Labels,
    clusters: Codes,
    default: float,
    weight: Array | None = None,
) -> dict[str, Mask]:
    """Verdicts (units,) by objective, made with these thresholds."""
    found = held_out_thresholds(positive, reference, clusters, default, weight)
    return {objective: positive >= thresholds for objective, thresholds in found.items()}


def verdict_outcomes(
    verdict: Mask, affirmed: Mask, clusters: Codes, resamples: Resamples
) -> Outcomes:
    """Count the outcomes of verdicts (units,) against a reference (units,), in every resample
    (rows,).
    """
    cells = verdict & affirmed, verdict & ~affirmed, affirmed, ~affirmed
    return Outcomes(*resamples.sums(clusters, *cells).T)
