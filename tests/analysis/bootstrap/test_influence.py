"""Bounds from clusters' influence: against known values, and in samples that are hard."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, t

from evenhand.analysis.bootstrap.influence import (
    influence,
    reach,
    reach_over_people,
    simultaneous_level,
)


def test_influence_on_a_mean_is_each_values_distance():
    rng = np.random.default_rng(1)
    values = rng.normal(size=40)
    left_out = [np.delete(values, n).mean() for n in range(40)]
    found = influence(np.array([values.mean(), *left_out]))
    assert found == pytest.approx(values - values.mean())


def test_without_skewness_it_is_the_t_bound():
    """Two values as often: no skewness, and a kurtosis of 1 leaves all degrees of freedom."""
    contributions = np.array([-1.0, 1.0] * 15)
    known = t.ppf(0.975, 29) * contributions.std(ddof=1) / math.sqrt(30)
    assert reach(contributions) == pytest.approx(known)


def test_a_long_tail_below_moves_the_lower_bound_further():
    skewed = np.array([0.1] * 45 + [-0.9] * 5)
    assert reach(skewed) > reach(-skewed) > 0


def test_where_nothing_varies_there_is_no_bound():
    assert math.isnan(reach(np.zeros(50)))
    assert math.isnan(reach_over_people(math.nan, 0.1, 3, 50))
    assert math.isnan(reach(np.array([1.0, math.nan, 2.0])))


def test_a_skewed_mean_is_missed_as_often_as_stated():
    """A share of .1 among 60: the plain t bound misses far more often than one side allows."""
    rng = np.random.default_rng(2)
    drawn = (rng.random((4000, 60)) < 0.9).astype(float)
    varying = drawn[drawn.std(axis=1) > 0]
    lower = [each.mean() - reach(each - each.mean()) for each in varying]
    plain = varying.mean(axis=1) - 2.0 * varying.std(axis=1, ddof=1) / math.sqrt(60)
    assert np.mean(np.array(lower) > 0.9) <= 0.03
    assert np.mean(plain > 0.9) > 0.05


def test_the_simultaneous_level_is_that_of_the_joint_normal():
    rng = np.random.default_rng(3)
    correlation = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
    contributions = rng.multivariate_normal(np.zeros(3), correlation, 5000)
    observed = np.corrcoef(contributions, rowvar=False)
    level = simultaneous_level(contributions, 0.02)
    inside = multivariate_normal(np.zeros(3), observed, seed=1).cdf(np.full(3, norm.isf(level)))
    assert 1.0 - inside == pytest.approx(0.02, rel=0.05)
    assert simultaneous_level(contributions[:, :1], 0.02) == 0.02
    alone = rng.normal(size=(5000, 6))
    assert 0.02 / 6 <= simultaneous_level(alone, 0.02) == pytest.approx(0.02 / 6, rel=0.06)


def test_people_who_differ_widen_the_bound():
    contributions = np.random.default_rng(4).normal(size=200)
    these = reach(contributions)
    assert reach_over_people(these, 0.0, 3, 200) == pytest.approx(these)
    many, few = (reach_over_people(these, 0.005, people, 200) for people in (30, 3))
    assert these < many < few
