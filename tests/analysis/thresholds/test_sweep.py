"""The threshold sweep against trying every threshold, resample by resample, and its interval.

Folds keep clusters whole.
Thresholds judged on clusters that they were not tuned on.

What is recommended, and whether the interval of a tuned threshold is honest (synthetic).
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, recall_score

from benchmarks import calibration as benchmark
from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.sweep import (
    CURVE_POINTS,
    OBJECTIVES,
    Outcomes,
    advise,
    calibrate,
    draws_needed,
    folds,
    held_out_verdicts,
    sweep,
    threshold_interval,
)


def _objective(y: np.ndarray, verdict: np.ndarray, name: str) -> float:
    """The second implementation: scikit-learn."""
    if name == "kappa":
        return float(cohen_kappa_score(y, verdict, labels=[0, 1]))
    if name == "agreement":
        return float(np.mean(verdict == y))
    if name == "f1":
        return float(f1_score(y, verdict, zero_division=0))
    if name == "youden":
        return float(recall_score(y, verdict) + recall_score(y, verdict, pos_label=0) - 1)
    return 1 - abs(float(verdict.mean() - y.mean()))


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_sweep_is_exact_in_every_resample(rng, name):
    p = np.round(rng.random(40), 2)
    y = (rng.random(40) < p).astype(np.int8)
    clusters = np.repeat(np.arange(10), 4)
    resamples = Resamples(np.ones(10), 5, np.random.default_rng(4))
    found = sweep(p, y, clusters, resamples, 0.5)[name]
    for row, weight in enumerate(np.vstack(list(resamples.blocks()))):
        units = np.repeat(np.arange(40), weight[clusters])
        if len(np.unique(y[units])) < 2:
            continue
        each = {
            at: _objective(y[units], (p[units] >= at).astype(int), name)
            for at in sorted({*p, 0.5, 1.0})
        }
        assert found.tuned[row] == pytest.approx(max(each.values()))
        assert each[found.threshold[row]] == pytest.approx(found.tuned[row])
        course = [each[at] for at in found.curve.thresholds]
        assert found.curve.values[row] == pytest.approx(course)


def test_the_kappa_of_the_sweep_is_that_of_everywhere_else(rng):
    tables = rng.integers(0, 4, (500, 2, 2)).astype(float)
    affirmed, others = tables.sum(axis=2).T
    kappa = OBJECTIVES["kappa"](Outcomes(tables[:, 0, 0], tables[:, 1, 0], affirmed, others))
    with np.errstate(invalid="ignore"):
        assert kappa == pytest.approx(c.cohen_kappa(tables), nan_ok=True)


def test_the_default_is_kept_where_it_is_as_good_as_any():
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 5), np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    resamples = Resamples(np.ones(20), 50, np.random.default_rng(1))
    found = sweep(p, y, np.arange(20), resamples, 0.5)["kappa"]
    assert found.threshold[0] == 0.5
    assert found.tuned[0] == 1.0


def test_the_interval_holds_every_threshold_with_the_same_verdicts():
    """Nothing lies between .2 and .8, and no verdict there is ever wrong: all are as good."""
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 10), np.array([0, 0, 1, 1] * 10, dtype=np.int8)
    resamples = Resamples(np.ones(40), 200, np.random.default_rng(1))
    found = threshold_interval(sweep(p, y, np.arange(40), resamples, 0.5)["kappa"], resamples, 40)
    assert (found.low, found.high) == (0.2, 0.8)


def test_the_curve_is_bounded_and_holds_the_default_and_the_best(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(np.int8)
    resamples = Resamples(np.ones(300), 20, np.random.default_rng(1))
    for found in sweep(p, y, np.arange(300), resamples, 0.5).values():
        at = found.curve.thresholds
        assert CURVE_POINTS <= len(at) <= CURVE_POINTS + len(OBJECTIVES) + 1
        assert (np.diff(at) > 0).all()
        assert {0.5, 1.0, found.threshold[0]} <= set(at.tolist())
        assert not found.curve.complete


def test_too_few_clusters_give_no_interval():
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1], dtype=np.int8)
    resamples = Resamples(np.ones(4), 50, np.random.default_rng(1))
    found = threshold_interval(sweep(p, y, np.arange(4), resamples, 0.5)["kappa"], resamples, 4)
    assert np.isnan(found.low)
    assert found.note == "too_few_clusters"


def test_folds_are_those_of_scikit_learn(rng):
    """As even in size, whole in clusters, and ten of them."""
    from sklearn.model_selection import GroupKFold

    clusters = rng.integers(0, 37, 300)
    own = folds(clusters)
    theirs = [len(test) for _, test in GroupKFold(10).split(clusters, groups=clusters)]
    assert sorted(np.bincount(own)) == sorted(theirs)
    assert all(len(set(own[clusters == cluster])) == 1 for cluster in set(clusters.tolist()))
    assert set(folds(np.zeros(5, dtype=np.intp))) == {0}


def test_units_without_a_reference_are_judged_and_not_tuned_on(rng):
    p, clusters = rng.random(100), np.arange(100)
    reference = (p >= 0.3).astype(np.int8)
    reference[::5] = -1
    found = held_out_verdicts(p, reference, clusters, 0.5)["kappa"]
    # A cut between the nearest probabilities on either side of .3 that have a reference.
    known = np.sort(p[reference >= 0])
    near = known[known >= 0.3][:3].max()
    clear = (p < known[known < 0.3][-1]) | (p > near)
    assert (found[clear] == (p >= 0.3)[clear]).all()


def test_a_single_cluster_cannot_be_held_out():
    one = np.zeros(20, dtype=np.intp)
    assert held_out_verdicts(np.linspace(0, 1, 20), np.ones(20, dtype=np.int8), one, 0.5) == {}


def _interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high)


BEATS_CHANCE, CHANCE = _interval(0.3, 0.5), _interval(-0.1, 0.1)


@pytest.mark.parametrize(
    ("threshold", "gain", "tuned_kappa", "default_kappa", "clusters", "kind"),
    [
        ((0.4, 0.6), (-0.1, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "default"),
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
def test_what_is_recommended(threshold, gain, tuned_kappa, default_kappa, clusters, kind):
    found = advise(
        _interval(*threshold), 0.5, _interval(*gain), tuned_kappa, default_kappa, clusters
    )
    assert found.kind == kind
    assert (found.threshold == 0.5) == (kind != "tuned")


def test_a_share_of_draws_resolves_so_much():
    """By listing the shares: some step lies between the threshold and the nearer end."""
    for threshold in (0.05, 0.1, 0.25, 0.3, 0.5, 0.8, 0.9):
        enough = next(
            k for k in range(1, 100) if 1 / k <= threshold + 1e-9 and 1 - 1 / k >= threshold - 1e-9
        )
        assert draws_needed(threshold) == enough


def test_a_threshold_tuned_on_noise_is_not_recommended(rng):
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
def test_the_optimum_of_the_population_is_where_sampling_puts_it():
    """0.1 by construction, and by the kappa of a million units (not where half are affirmed)."""
    population = benchmark.Population("large", 2.0, 0.4, 1_000_000)
    p, y, clusters = benchmark.simulate(population, np.random.default_rng(2))
    resamples = Resamples(np.ones(len(p)), 1, np.random.default_rng(3))
    at = np.quantile(p, np.linspace(0, 1, 200))
    coarse = at[np.maximum(np.searchsorted(at, p, side="right") - 1, 0)]
    found = sweep(coarse, y, clusters, resamples, 0.5)["kappa"].threshold[0]
    assert found == pytest.approx(0.1, abs=0.02)
    near = np.abs(p - 0.1) < 0.005
    assert abs(y[near].mean() - 0.5) > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["250 pairs", "250 pairs, steps of 0.05"])
def test_the_interval_holds_the_optimum(name):
    """40 of the benchmark's studies; it has 500 of each kind."""
    population = next(of for of in benchmark.POPULATIONS if of.name == name)
    found = benchmark.run_population(population, range(40), 200, benchmark.SEED)[population]
    assert found.held >= 37
    assert found.advice["tuned"] >= 38


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["kappa", "agreement", "prevalence"])
def test_a_grader_without_information_is_never_tuned(objective):
    nothing = benchmark.Population("", 0.0, 0.3, 250, objective=objective)
    found = benchmark.run_population(nothing, range(30), 200, benchmark.SEED)[nothing]
    assert found.advice["default"] + found.advice["not_identifiable"] >= 29
