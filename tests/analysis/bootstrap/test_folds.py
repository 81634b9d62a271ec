"""Folds keep clusters whole."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.bootstrap.folds import fold_shares, folds


def test_folds_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    """As even in size, whole in clusters, and ten of them."""
    from sklearn.model_selection import GroupKFold

    clusters = rng.integers(0, 37, 300)
    own = folds(clusters)
    theirs = [len(test) for _, test in GroupKFold(10).split(clusters, groups=clusters)]
    assert sorted(np.bincount(own)) == sorted(theirs)
    assert all(len(set(own[clusters == cluster])) == 1 for cluster in set(clusters.tolist()))
    assert set(folds(np.zeros(5, dtype=np.intp))) == {0}


def test_like_units_that_were_folded_into_one_are_dealt_out() -> None:
    """1,000 copies of one unit and 30 of another over ten folds as even in size."""
    frequency = np.array([1000, 30])
    share = fold_shares(np.arange(2), frequency)
    assert share.shape == (2, 10)
    assert share.sum(axis=1) == pytest.approx([1, 1])
    sizes = (share * frequency[:, None]).sum(axis=0)
    assert sizes == pytest.approx([103] * 10)
    assert len(set(share[1].tolist())) > 1, "at random, not by turns"
