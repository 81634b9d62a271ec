"""What is recommended, and whether the interval of a tuned threshold is honest (synthetic)."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import calibration as benchmark
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.advice import advise, calibrate, draws_needed


def _interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high)


BEATS_CHANCE, CHANCE = _interval(0.3, 0.5), _interval(-0.1, 0.1)


@pytest.mark.parametrize(
    ("threshold", "gain", "tuned_kappa", "default_kappa", "clusters", "kind"),
    [
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "tuned"),
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, CHANCE, 250, "tuned"),
        ((0.05, 0.2), (0.0, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "default"),
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, BEATS_CHANCE, 29, "not_identifiable"),
        ((0.1, 0.7), (-0.1, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "not_identifiable"),
        # A threshold that makes every verdict the same may match prevalence, not people.
        ((0.9, 1.0), (0.1, 0.2), CHANCE, CHANCE, 250, "not_identifiable"),
        ((0.9, 1.0), (0.1, 0.2), CHANCE, BEATS_CHANCE, 250, "default"),
    ],
)
def test_what_is_recommended(
    threshold: tuple[float, float],
    gain: tuple[float, float],
    tuned_kappa: Interval,
    default_kappa: Interval,
    clusters: int,
    kind: str,
) -> None:
    found = advise(
        _interval(*threshold), 0.5, _interval(*gain), tuned_kappa, default_kappa, clusters
    )
    assert found.kind == kind
    assert (found.threshold == 0.5) == (kind != "tuned")


def test_the_default_stays_where_nothing_is_better() -> None:
    best = Interval(0.5, 0.4, 0.6)
    assert advise(best, 0.5, CHANCE, BEATS_CHANCE, BEATS_CHANCE, 250).kind == "default"


def test_a_share_of_draws_resolves_so_much() -> None:
    """By listing the shares: some step lies between the threshold and the nearer end."""
    for threshold in (0.05, 0.1, 0.25, 0.3, 0.5, 0.8, 0.9):
        enough = next(
            k for k in range(1, 100) if 1 / k <= threshold + 1e-9 and 1 - 1 / k >= threshold - 1e-9
        )
        assert draws_needed(threshold) == enough


def test_a_threshold_tuned_on_noise_is_not_recommended(rng: np.random.Generator) -> None:
    p, reference = rng.random(100), (rng.random(100) < 0.5).astype(np.int8)
    resamples = Resamples(np.ones(100), 300, np.random.default_rng(1))
    found = calibrate(p, reference, np.arange(100), resamples, 100, 0.5)["kappa"]
    assert found.value > 0.05
    assert found.optimism > 0.05
    assert found.gain is not None
    assert found.gain.low < 0
    assert found.advice.kind == "not_identifiable"
    assert found.advice.threshold == 0.5


@pytest.mark.slow
def test_the_optimum_of_the_population_is_where_sampling_puts_it() -> None:
    """0.1 by construction, and by the kappa of a million units (not where half are affirmed)."""
    population = benchmark.Population("large", 2.0, 0.4, 1_000_000)
    p, y, clusters = benchmark.simulate(population, np.random.default_rng(2))
    resamples = Resamples(np.ones(len(p)), 1, np.random.default_rng(3))
    at = np.quantile(p, np.linspace(0, 1, 200))
    coarse = at[np.maximum(np.searchsorted(at, p, side="right") - 1, 0)]
    from evenhand.analysis.thresholds.sweep import sweep

    found = sweep(coarse, y, clusters, resamples, 0.5)["kappa"].threshold[0]
    assert found == pytest.approx(0.1, abs=0.02)
    near = np.abs(p - 0.1) < 0.005
    assert abs(y[near].mean() - 0.5) > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["250 pairs", "250 pairs, steps of 0.05"])
def test_the_interval_holds_the_optimum(name: str) -> None:
    """40 of the benchmark's studies; it has 500 of each kind."""
    population = next(of for of in benchmark.POPULATIONS if of.name == name)
    found = benchmark.run_population(population, range(40), 200, benchmark.SEED)[population]
    assert found.held >= 37
    assert found.advice["tuned"] >= 38


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["kappa", "agreement", "prevalence"])
def test_a_grader_without_information_is_never_tuned(objective: str) -> None:
    nothing = benchmark.Population("", 0.0, 0.3, 250, objective=objective)
    found = benchmark.run_population(nothing, range(30), 200, benchmark.SEED)[nothing]
    assert found.advice["default"] + found.advice["not_identifiable"] >= 29
