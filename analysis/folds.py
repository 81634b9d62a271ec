"""Folds for what is chosen on some clusters and judged on others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["folds"]

Codes = npt.NDArray[np.intp]

_FOLDS = 10


def folds(clusters: Codes) -> Codes:
    """A fold, 0 to 9, for each unit (units,): clusters stay whole, and the largest go first to the
    emptiest fold.

    >>> folds(np.array([0, 0, 1, 2])).tolist()
    [0, 0, 1, 2]
    """

    names, own, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    held = np.zeros(min(_FOLDS, max(len(names), 1)), dtype=np.intp)
    fold = np.empty(len(names), dtype=np.intp)
    for cluster in np.argsort(-sizes, kind="stable"):
        fold[cluster] = held.argmin()
        held[fold[cluster]] += sizes[cluster]
    return fold[own.reshape(-1)]
