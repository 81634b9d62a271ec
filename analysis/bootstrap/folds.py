"""Folds for choosing something on some clusters and evaluating it on others."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Array, Codes, Frequency

_FOLDS = 10


def folds(clusters: Codes) -> Codes:
    """Assign a fold, 0 to 9, to each unit (units,).

    Clusters stay whole, and the largest go first to the emptiest fold.

    >>> folds(np.array([0, 0, 1, 2])).tolist()
    [0, 0, 1, 2]
    """

    _, own, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    return folds_of_sizes(sizes)[own.reshape(-1)]


def folds_of_sizes(sizes: Codes) -> Codes:
    """Assign a fold to each cluster, (clusters,), from the clusters' sizes in units."""
    held = np.zeros(min(_FOLDS, max(len(sizes), 1)), dtype=np.intp)
    fold = np.empty(len(sizes), dtype=np.intp)
    for cluster in np.argsort(-sizes, kind="stable"):
        fold[cluster] = held.argmin()
        held[fold[cluster]] += sizes[cluster]
    return fold


def fold_shares(clusters: Codes, frequency: Frequency) -> Array:
    """Return the share of each unit's copies that lie in each fold, (units, folds).

    `frequency` is how often each cluster occurs in the data. Where identical units have been folded
    into one, each its own cluster, its copies are dealt out at random, from a fixed seed: all of
    them in one fold would be a fold of identical units.

    >>> fold_shares(np.array([0, 0, 1]), np.ones(2, dtype=np.int64)).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    times = frequency[clusters]
    if times.max(initial=0) <= 1:
        fold = folds(clusters)
        return np.eye(int(fold.max(initial=0)) + 1)[fold]
    copies = np.random.default_rng(0).permutation(np.repeat(np.arange(len(clusters)), times))
    count = min(_FOLDS, len(copies))
    cell = copies * count + np.arange(len(copies)) % count
    dealt = np.bincount(cell, minlength=len(clusters) * count).reshape(len(clusters), count)
    return np.asarray(dealt / times[:, None])
