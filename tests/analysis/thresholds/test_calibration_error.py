"""Calibration error: the authors' formula, no bias, intervals that cover, degenerate input."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis import Bootstrap, score_probabilities
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.probabilities import BinnedGaps, equal_mass_bins


def _kumar_liang_ma(p: np.ndarray, y: np.ndarray, place: np.ndarray) -> float:
    """Kumar, Liang & Ma (2019), section 4: mean of (share - probability)^2 - share (1 - share) /
    (n - 1) over the bins."""
    total = 0.0
    for each in np.unique(place):
        own, n = place == each, int((place == each).sum())
        share = y[own].mean()
        total += n * ((share - p[own].mean()) ** 2 - share * (1 - share) / (n - 1))
    return total / len(p)


def _drawn(rng: np.random.Generator, clusters: int, shift: float, subjects: int = 1) -> tuple:
    """Probabilities, and verdicts as if they were off by `shift` logits; units of a cluster share
    a third of their luck."""
    p = rng.uniform(0.02, 0.98, (clusters, subjects))
    true = 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))
    own = rng.random((clusters, subjects))
    shared = rng.random((clusters, subjects)) < np.sqrt(1 / 3)
    luck = np.where(shared & (subjects > 1), rng.random((clusters, 1)), own)
    of = np.repeat(np.arange(clusters), subjects)
    return p.ravel(), (luck < true).astype(float).ravel(), of


def _root_mean_square(shift: float) -> float:
    p = np.linspace(0.02, 0.98, 10_001)
    return float(np.sqrt(np.mean((1 / (1 + np.exp(-np.log(p / (1 - p)) - shift)) - p) ** 2)))


def test_one_probability_a_bin_is_the_authors_formula(rng: np.random.Generator) -> None:
    p = rng.choice([0.1, 0.3, 0.6, 0.9], 200)
    y = (rng.random(200) < p**2).astype(float)
    gaps = BinnedGaps.of(p, y, np.arange(200), 200, bins=60)
    assert len(gaps.gap) == 4
    assert gaps.squared == pytest.approx(_kumar_liang_ma(p, y, equal_mass_bins(p, 60)))


def test_two_bins_by_hand() -> None:
    """Shares 1/4 and 3/4 at .5: (1/16 - 3/16 / 3) in both, which is nothing but chance."""
    p, y = np.array([0.49] * 4 + [0.51] * 4), np.array([1, 0, 0, 0, 1, 1, 1, 0.0])
    gaps = BinnedGaps.of(p, y, np.arange(8), 8, bins=2)
    assert gaps.gap == pytest.approx([-0.24, 0.24])
    assert gaps.squared == pytest.approx(0.24**2 - 1 / 16)
    assert gaps.error == 0.0


def test_units_of_a_cluster_that_go_together_are_one(rng: np.random.Generator) -> None:
    p, y, of = _drawn(rng, 60, 0.5)
    once = BinnedGaps.of(p, y, of, 60, bins=5)
    thrice = BinnedGaps.of(*(np.repeat(each, 3) for each in (p, y, of)), 60, bins=5)
    assert thrice.squared == pytest.approx(once.squared)


@pytest.mark.parametrize(("shift", "subjects"), [(0.0, 1), (0.0, 4), (1.0, 1), (1.0, 4)])
def test_the_squared_error_is_unbiased_and_the_interval_covers(
    rng: np.random.Generator, shift: float, subjects: int
) -> None:
    squared, inside, above_zero = [], 0, 0
    truth = _root_mean_square(shift)
    for _ in range(150):
        p, y, of = _drawn(rng, 100, shift, subjects)
        gaps = BinnedGaps.of(p, y, of, 100)
        found = gaps.interval(Resamples(np.ones(100), 200, rng), 100)
        squared.append(gaps.squared)
        inside += found.low <= truth <= found.high
        above_zero += found.low > 0
        assert found.low <= found.estimate <= found.high
        assert found.low < found.high
    error = np.std(squared) / np.sqrt(150)
    # Bins take a little of the true distance away: shares and probabilities vary within them.
    assert np.mean(squared) == pytest.approx(truth**2, abs=4 * error + 0.001)
    assert inside >= 130
    assert above_zero >= 110 if shift else above_zero <= 15


def test_perfect_probabilities_do_not_vary() -> None:
    p = np.array([0.0, 1.0] * 20)
    found = BinnedGaps.of(p, p, np.arange(40), 40).interval(
        Bootstrap(resamples=50).draw(np.ones(40)), 40
    )
    assert (found.estimate, found.note) == (0.0, "no_variation")
    assert np.isnan(found.low)


def test_few_clusters_and_no_resamples_have_no_interval(rng: np.random.Generator) -> None:
    p, y, _ = _drawn(rng, 40, 0.0)
    few = score_probabilities(p.tolist(), y.tolist(), clusters=[k % 4 for k in range(40)])
    none = score_probabilities(p.tolist(), y.tolist(), bootstrap=Bootstrap(resamples=0))
    one = score_probabilities([0.3], [True])
    for found in (few, none, one):
        assert np.isnan(found.ece_low)
        assert np.isnan(found.ece_high)
        assert found.ece >= 0
    assert one.ece == 0.0


def test_bins_hold_equally_many_units_and_ties_together(rng: np.random.Generator) -> None:
    assert np.bincount(equal_mass_bins(rng.random(100))).tolist() == [10] * 10
    assert np.bincount(equal_mass_bins(rng.random(30))).tolist() == [10] * 3
    p = rng.choice([0.0, 0.2, 0.4], 90)
    place = equal_mass_bins(p)
    assert [len(set(place[p == each])) for each in (0.0, 0.2, 0.4)] == [1, 1, 1]
    assert equal_mass_bins(np.array([0.5])).tolist() == [0]
