"""Folds for choosing something on some clusters and evaluating it on others."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Codes

_FOLDS = 10


def folds(clusters: Codes) -> Codes:
    """Assign a fold, 0 to 9, to each unit (units,).

    Clusters stay whole, and the largest go first to the emptiest fold.

    >>> folds(np.array([0, 0, 1, 2])).tolist()
    [0, 0, 1, 2]
    """
    _, own, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    held = np.zeros(min(_FOLDS, max(len(sizes), 1)), dtype=np.intp)
    fold = np.empty(len(sizes), dtype=np.intp)
    for cluster in np.argsort(-sizes, kind="stable"):
        fold[cluster] = held.argmin()
        held[fold[cluster]] += sizes[cluster]
    return fold[own.reshape(-1)]
