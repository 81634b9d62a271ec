"""The interval of a share of units in clusters: statsmodels, the general score bound, by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from benchmarks.corrected_rates import LUMPY, TAIL, Key, lumpy, lumpy_rate, run_cell
from evenhand.analysis.bootstrap.intervals import Interval, interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.score import PSEUDO, Sample, lower_bound, upper_bound
from evenhand.analysis.bootstrap.shares import (
    alike,
    bounds,
    carriers,
    powered_reach,
    ratio_bounds,
    share_bounds,
    share_interval,
    wilson,
)


@pytest.mark.parametrize(("cases", "n"), [(0, 5), (1, 50), (10, 20), (49, 50), (250, 250)])
def test_wilson_is_statsmodels(cases, n):
    expected = proportion_confint(cases, n, method="wilson")
    assert wilson(cases / n, n) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("cases", "n"), [(1, 30), (3, 60), (12, 40), (57, 60), (20, 400)])
def test_of_independent_units_it_lies_between_wilsons_and_clopper_and_pearsons(cases, n):
    """But for half a unit: neither is a score bound with Student's quantile."""
    units = np.zeros(n)
    units[:cases] = 1.0
    share, low, high = share_bounds(units, np.ones(n))
    inner, outer = (proportion_confint(cases, n, method=how) for how in ("wilson", "beta"))
    assert share == cases / n
    assert outer[0] - 0.6 / n <= low <= inner[0] + 0.6 / n
    assert inner[1] - 0.6 / n <= high <= outer[1] + 0.6 / n


@dataclass(frozen=True)
class _Ratio:
    """A ratio of sums over clusters as `lower_bound` takes it."""

    over: np.ndarray
    under: np.ndarray
    base: np.ndarray

    def at(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        under = (weights * self.under).sum(axis=-1)
        value = (weights * self.over).sum(axis=-1) / under
        return value, (self.over - value[..., None] * self.under) / under[..., None]

    def sign_changed(self) -> _Ratio:
        return replace(self, over=-self.over)


@pytest.mark.parametrize(("k", "weight"), [(25, 0.0), (60, 0.0), (60, 0.8), (200, 0.4)])
def test_score_bounds_are_those_of_the_general_walk(k, weight):
    rng = np.random.default_rng(k)
    cases, sizes = lumpy("logit-normal", k, rng)
    less = weight * rng.binomial(cases, 0.8)
    clusters, size = float(k), sizes.astype(float)
    over = np.concatenate([cases - less, -less, sizes - less])
    base = np.concatenate([np.ones(k), np.full(2 * k, PSEUDO / (2 * k))])
    statistic = _Ratio(over, np.tile(size, 3), base)
    estimate = np.array((cases - less).sum() / size.sum())
    worth = size.sum() ** 2 / (size**2).sum()
    sample = Sample(estimate, clusters, worth, np.array(math.sqrt(k / (k - 1))))
    expected = [float(each(statistic, sample, 0.025)) for each in (lower_bound, upper_bound)]  # type: ignore[arg-type]
    found = ratio_bounds(cases, size, np.ones(k), less=less)
    assert found == pytest.approx(expected, abs=0.02 * (expected[1] - expected[0]))


def test_alike_clusters_have_the_share_and_its_variance():
    for share in (0.01, 0.2, 0.5, 0.9):
        for variance in (1e-6, 1e-4, share * (1 - share) / 49, 0.01):
            cases, times = alike(share, variance, 50)
            k = times.sum()
            assert times @ cases / k == pytest.approx(share)
            squares = times @ (cases - share) ** 2 / k / (k - 1)
            assert squares == pytest.approx(variance)
            assert ((cases >= 0) & (cases <= 1)).all()
            assert k <= 50 + 1e-9


def test_clusters_that_carry_the_rarer_outcome():
    """(3 + 3 + 2)^2 / (9 + 9 + 4) = 2.9 of ten clusters of four."""
    cases, sizes, ones = np.array([3.0, 3, 2] + [0.0] * 7), np.full(10, 4.0), np.ones(10)
    assert carriers(cases, sizes, ones) == pytest.approx(64 / 22)
    assert carriers(sizes - cases, sizes, ones) == pytest.approx(64 / 22)
    assert carriers(0 * cases, sizes, ones) == 0.0
    # Read off the variance, they are the same.
    share, variance = 0.2, float(((cases / 4 - 0.2) ** 2).sum()) / 10 / 9
    assert carriers(*_equal(*alike(share, variance, 10))) == pytest.approx(64 / 22)


def _equal(cases: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return cases, np.ones_like(cases), times


def test_few_carriers_have_a_wide_interval_within_the_score_bound():
    lump, apart = np.zeros(25), np.zeros(25)
    lump[0], apart[:5] = 5.0, 1.0
    sizes = np.full(25, 5.0)
    (share, low, high), (same, _, nearer) = (share_bounds(each, sizes) for each in (lump, apart))
    assert share == same == 0.04
    assert high > 1.5 * nearer
    # On 2 degrees of freedom Wilson alone has half of the range.
    assert wilson(0.04, 24.0, carriers=1.0)[1] > 0.45
    assert high == pytest.approx(ratio_bounds(lump / 5, np.ones(25), np.ones(25))[1], abs=1e-3)
    assert low > 0.0


def _drawn(cases: np.ndarray, sizes: np.ndarray) -> tuple[Interval, np.ndarray]:
    resamples = Resamples(np.ones(len(cases)), 4000, np.random.default_rng(1))
    sums = resamples.totals(np.column_stack([cases, sizes]).astype(float))
    values = sums[:, 0] / sums[:, 1]
    return interval(values, len(cases)), values[1:]


@pytest.mark.parametrize("name", ["few carry all", "logit-normal", "one unit each"])
def test_resamples_and_sums_over_clusters_give_one_interval(name):
    cases, sizes = lumpy(name, 80, np.random.default_rng(3))
    found = share_interval(*_drawn(cases, sizes), int(sizes.sum()), 80)
    share, low, high = share_bounds(cases * 1.0, sizes * 1.0)
    assert found.estimate == share
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05 * (high - low))


@pytest.mark.parametrize("clusters", [1, 2, 60])
def test_none_and_all_have_clopper_and_pearsons_bounds(clusters):
    whole = np.full(clusters, 4.0)
    for cases in (0.0, 4.0):
        share, low, high = share_bounds(np.full(clusters, cases), whole)
        expected = proportion_confint(share * clusters, clusters, method="beta")
        assert (low, high) == pytest.approx(expected, abs=1e-12)


def test_degenerate_shares():
    assert np.isnan(share_bounds(np.zeros(0), np.zeros(0))).all()
    assert np.isnan(share_bounds(np.zeros(3), np.zeros(3))).all()
    one, two = (
        share_bounds(np.array([3.0]), np.array([4.0])),
        share_bounds(np.arange(2.0), np.ones(2)),
    )
    for share, low, high in (one, two):
        assert 0.0 <= low < share < high <= 1.0
    assert two[2] - two[1] > 0.9, "two clusters that differ tell nearly nothing"
    # A cluster of no weight is none.
    some, weight = np.array([1.0, 0, 1, 0, 0, 1]), np.array([1.0, 1, 1, 1, 1, 0])
    assert share_bounds(some * weight, weight) == share_bounds(some[:5], weight[:5])
    # Without an interval, or without variation, there is nothing to replace.
    none, nobody = Interval.point(0.3), Interval(0.0, 0.0, 0.0)
    assert share_interval(none, np.array([0.3]), 4, 4) is none
    assert share_interval(nobody, np.zeros(50), 30, 30) is nobody
    # A corrected rate of 0 whose resamples vary has its bound at 0.
    varies = np.abs(np.random.default_rng(0).normal(0, 0.02, 500))
    found = share_interval(Interval(0.0, 0.0, 0.04), varies, 50, 50)
    assert found.low == 0.0
    assert 0.02 < found.high < 0.2
    for share in (1e-9, 1 - 1e-9):  # finite at the very ends
        assert all(0.0 <= each <= 1.0 for each in bounds(share, 0.01, 1e12, 20))


def test_the_reach_of_a_correction_adds_what_nobody_labelled_in_squares():
    rng = np.random.default_rng(2)
    cases, sizes = (each * 1.0 for each in lumpy("few carry all", 40, rng))
    ones = np.ones(40)
    alone = powered_reach(cases, 0.0 * cases, sizes, ones, 0.0)
    share = cases.sum() / sizes.sum()
    expected = ratio_bounds(cases, sizes, ones)
    assert (share - alone.below, share + alone.above) == pytest.approx(expected)
    more = powered_reach(cases, 0.0 * cases, sizes, ones, 0.02)
    assert more.above == pytest.approx(math.hypot(alone.above, 1.959964 * 0.02))
    # A grader that sees nearly all of the cases leaves less to be unsure of.
    seen = powered_reach(cases, 0.8 * rng.binomial(cases.astype(int), 0.9), sizes, ones, 0.0)
    assert seen.above < alone.above
    assert seen.carriers == alone.carriers == carriers(cases, sizes, ones)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "clusters"), [("few carry all", 40), ("logit-normal", 100)])
def test_the_truth_seldom_lies_outside_in_lumpy_clusters(name, clusters):
    """An interval of the estimate's standard error lies below it in far more studies."""
    rng, truth, runs = np.random.default_rng(5), lumpy_rate(name), 300
    missed, plain = np.zeros(2), 0
    for _ in range(runs):
        cases, sizes = (each * 1.0 for each in lumpy(name, clusters, rng))
        share, low, high = share_bounds(cases, sizes)
        missed += low > truth, high < truth
        error = math.sqrt(((cases - share * sizes) ** 2).sum()) / sizes.sum()
        plain += share + 2.0 * error < truth
    assert (missed <= TAIL * runs).all()
    assert plain > TAIL * runs


@pytest.mark.thorough
@pytest.mark.parametrize("name", [each for each in LUMPY if "unequal" not in each])
@pytest.mark.parametrize("clusters", [25, 40, 100])
def test_both_tails_hold_in_lumpy_clusters_for_own_and_corrected_rates(name, clusters):
    found = run_cell((clusters, name), range(400), 300, 11)
    for of in ("people", "ppi"):
        tally = found[Key(clusters, name, of)]
        assert max(tally.below, tally.above) <= (TAIL + 0.01) * tally.runs, of
