"""Correlations over few subjects, with their exact p."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from evenhand.analysis.subjects.scores import exact_p, kendall, mid_ranks, pearson, spearman

# Hollander & Wolfe (1973), tuna; exact p as R's cor.test gives them.
TUNA = (
    np.array([44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]),
    np.array([2.6, 3.1, 2.5, 5, 3.6, 4, 5.2, 2.8, 3.8]),
)
TIES = (np.array([1.0, 2, 2, 3, 4, 5, 5]), np.array([2.0, 1, 3, 3, 4, 4, 6]))


def test_correlations_on_published_data() -> None:
    assert spearman(*TUNA) == pytest.approx(0.6)
    assert kendall(*TUNA) == pytest.approx(0.4444444444)
    assert pearson(*TUNA) == pytest.approx(0.5711815576)
    assert spearman(*TIES) == pytest.approx(0.8888888889)
    assert kendall(*TIES) == pytest.approx(0.7894736842)


@pytest.mark.slow
def test_exact_p() -> None:
    assert exact_p(spearman, *TUNA) == pytest.approx(0.0967978395)
    assert exact_p(kendall, *TUNA) == pytest.approx(0.1194389330)
    assert exact_p(spearman, *TIES) == pytest.approx(0.0126984127)


@pytest.mark.parametrize(("n", "p"), [(3, 2 / 6), (4, 2 / 24), (5, 2 / 120), (6, 2 / 720)])
def test_exact_p_of_perfect_agreement(n: int, p: float) -> None:
    ranks = np.arange(n, dtype=float)
    assert exact_p(spearman, ranks, ranks) == pytest.approx(p)


def test_exact_p_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test, spearmanr

    x, y = np.array([0.1, 0.5, 0.2, 0.9, 0.4, 0.7]), np.array([0.2, 0.3, 0.4, 0.8, 0.1, 0.9])
    theirs = permutation_test(
        (x,), lambda z: spearmanr(z, y).statistic, permutation_type="pairings"
    )
    assert exact_p(spearman, x, y) == pytest.approx(theirs.pvalue)


def test_every_order_is_tried_once() -> None:
    x = np.array([3.0, 1.0, 4.0, 1.5])
    y = np.array([2.0, 7.0, 1.0, 8.0])
    every = [pearson(np.array(order), y) for order in permutations(x)]
    observed = pearson(x, y)
    tail = min(np.mean(np.array(every) >= observed - 1e-9), np.mean(every <= observed + 1e-9))
    assert exact_p(pearson, x, y) == pytest.approx(2 * tail)


def test_ranks_are_those_of_scipy(rng: np.random.Generator) -> None:
    from scipy.stats import rankdata, spearmanr

    x, y = rng.integers(0, 4, (2, 30, 7)).astype(float)
    for first, second, rho in zip(x, y, spearman(x, y), strict=True):
        assert rho == pytest.approx(spearmanr(first, second).statistic, nan_ok=True)
    x[3, 2] = np.nan
    assert np.array_equal(
        mid_ranks(x), rankdata(x, axis=-1, nan_policy="propagate"), equal_nan=True
    )
