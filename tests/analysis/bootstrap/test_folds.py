"""Folds keep clusters whole."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.thresholds.sweep import folds


def test_folds_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    """As even in size, whole in clusters, and ten of them."""
    from sklearn.model_selection import GroupKFold

    clusters = rng.integers(0, 37, 300)
    own = folds(clusters)
    theirs = [len(test) for _, test in GroupKFold(10).split(clusters, groups=clusters)]
    assert sorted(np.bincount(own)) == sorted(theirs)
    assert all(len(set(own[clusters == cluster])) == 1 for cluster in set(clusters.tolist()))
    assert set(folds(np.zeros(5, dtype=np.intp))) == {0}
