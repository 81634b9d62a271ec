"""Small tests and corrections against statsmodels and published tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.contingency_tables import SquareTable, mcnemar
from statsmodels.stats.multitest import multipletests

from evenhand.analysis.bootstrap.significance import (
    benjamini_hochberg,
    benjamini_yekutieli,
    clustered_homogeneity,
    holm,
    mcnemar_exact,
    mcnemar_mid_p,
    sign_flip,
    sign_flip_above,
    stuart_maxwell,
)
from tests.known_values import known_values


def test_benjamini_and_hochbergs_15_p_values() -> None:
    known = known_values("multiple_testing_bh1995")
    p, expected = known["data"]["p"], known["expected"]
    assert benjamini_yekutieli(p) == pytest.approx(expected["BY"], abs=1e-12)
    assert holm(p) == pytest.approx(expected["holm"], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(expected["BH"], abs=1e-12)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=15, deadline=None)
def test_corrections_are_those_of_statsmodels(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])
    assert benjamini_yekutieli(p) == pytest.approx(multipletests(p, method="fdr_by")[1])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg, benjamini_yekutieli])
def test_what_was_not_tested_costs_the_others_nothing(correct: Callable) -> None:
    p = [0.01, np.nan, 0.04, np.nan, 0.03]
    found = correct(p)
    assert np.isnan(found[[1, 3]]).all()
    assert found[[0, 2, 4]].tolist() == correct([0.01, 0.04, 0.03]).tolist()


def test_corrections_of_nothing() -> None:
    assert len(holm([])) == len(benjamini_hochberg([])) == len(benjamini_yekutieli([])) == 0


@given(st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_mcnemar_is_that_of_statsmodels(b: int, c: int) -> None:
    if b + c == 0:
        assert mcnemar_exact(b, c) == mcnemar_mid_p(b, c) == 1.0
        return
    theirs = mcnemar([[5, b], [c, 5]], exact=True).pvalue
    assert mcnemar_exact(b, c) == pytest.approx(theirs)
    from scipy.stats import binom

    each = binom.pmf(np.arange(b + c + 1), b + c, 0.5)
    apart = np.abs(2 * np.arange(b + c + 1) - b - c)
    mid = each[apart > abs(b - c)].sum() + each[apart == abs(b - c)].sum() / 2
    assert mcnemar_mid_p(b, c) == pytest.approx(mid)


def test_fagerland_lydersen_and_laake_2013() -> None:
    """Airway hyper-responsiveness of 21 children (Bentur et al. 2009): 1 changed one way, 7 the
    other; exact p .070, mid-p .039. Their supplement: where n12 = n21 the exact p is 1, the mid-p 1
    less half the probability of the split."""
    assert round(mcnemar_exact(1, 7), 3) == 0.070
    assert round(mcnemar_mid_p(1, 7), 3) == 0.039
    for b in (1, 2, 5):
        assert mcnemar_exact(b, b) == 1.0
        assert mcnemar_mid_p(b, b) == pytest.approx(1 - comb(2 * b, b) / 4**b / 2)


@given(st.lists(st.integers(-4, 4), max_size=9))
@settings(max_examples=60, deadline=None)
def test_sign_flips_are_all_counted(apart: list[int]) -> None:
    ways = [abs(np.dot(signs, apart)) for signs in product((1, -1), repeat=len(apart))]
    seen = abs(sum(apart))
    more, equal = np.mean([way > seen for way in ways]), np.mean([way == seen for way in ways])
    found = sign_flip(apart)
    assert found.exact == pytest.approx(more + equal)
    assert found.mid_p == pytest.approx(more + equal / 2 if any(apart) else 1.0)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_sign_flips_of_single_units_are_mcnemars_test(b: int, c: int) -> None:
    found = sign_flip([1] * b + [-1] * c + [0] * 3)
    assert found == (mcnemar_exact(b, c), mcnemar_mid_p(b, c))


def test_sign_flips_of_many_clusters_are_near_the_score_test(rng: np.random.Generator) -> None:
    apart = rng.integers(-3, 5, 4000)
    z = apart.sum() / np.sqrt((apart**2).sum())
    assert sign_flip(apart).mid_p == pytest.approx(2 * norm.sf(abs(z)), rel=0.1)


@given(st.lists(st.integers(0, 12), min_size=9, max_size=9))
@settings(max_examples=40, deadline=None)
def test_single_units_as_clusters_are_stuart_and_maxwells_test(cells: list[int]) -> None:
    table = np.array(cells).reshape(3, 3)
    first, second = (np.repeat(np.indices((3, 3))[axis].ravel(), cells) for axis in (0, 1))
    found = clustered_homogeneity(np.eye(3)[first] - np.eye(3)[second])
    assert found == pytest.approx(stuart_maxwell(table), nan_ok=True)


def test_homogeneity_of_two_categories_is_obuchowskis_score(rng: np.random.Generator) -> None:
    """Obuchowski 1998: (b - c)^2 over the sum of (b_k - c_k)^2 over the clusters k."""
    apart = rng.integers(-4, 6, 30)
    found = clustered_homogeneity(np.column_stack([apart, -apart]))
    assert found.statistic == pytest.approx(apart.sum() ** 2 / (apart**2).sum())
    assert found.degrees == 1


def test_homogeneity_without_clusters_or_differences() -> None:
    for nothing in (np.zeros((0, 3)), np.zeros((5, 3)), [[1, -1, 0], [-1, 1, 0]]):
        assert clustered_homogeneity(nothing).p == 1.0
    # One cluster says nothing of spread in two directions.
    assert np.isnan(clustered_homogeneity([[3, -1, -2]]).p)


def test_agresti_2002_prime_minister() -> None:
    """Categorical Data Analysis, 2nd ed., table 10.1: 1,600 voters asked twice, z = -4.17."""
    found = stuart_maxwell([[794, 150], [86, 570]])
    assert found.statistic == pytest.approx((86 - 150) ** 2 / (86 + 150))
    assert round(np.sqrt(found.statistic), 2) == 4.17
    assert found.degrees == 1


@given(st.lists(st.integers(0, 12), min_size=16, max_size=16))
@settings(max_examples=60, deadline=None)
def test_stuart_maxwell_is_that_of_statsmodels(cells: list[int]) -> None:
    table = np.array(cells, dtype=float).reshape(4, 4)
    apart = table - np.diag(np.diag(table))
    found = stuart_maxwell(table)
    if np.array_equal(apart.sum(axis=0), apart.sum(axis=1)):
        assert found.p == 1.0
    elif not np.isnan(found.p) and ((apart + apart.T).sum(axis=0) > 0).all():
        theirs = SquareTable(table, shift_zeros=False).homogeneity()
        assert found.statistic == pytest.approx(theirs.statistic)
        assert found.degrees == theirs.df
        assert found.p == pytest.approx(theirs.pvalue)


def test_confusion_within_separate_groups_is_not_testable() -> None:
    table = np.array([[5, 4, 0, 0], [1, 5, 0, 0], [0, 0, 5, 4], [0, 0, 1, 5]])
    assert np.isnan(stuart_maxwell(table).p)


@given(st.lists(st.integers(-3, 3), max_size=9))
@settings(max_examples=30, deadline=None)
def test_one_sided_flips_are_counted_out(apart: list[int]) -> None:
    """Every way of flipping the signs, one by one."""
    ways = [np.dot(signs, apart) for signs in product((-1, 1), repeat=len(apart))]
    expected = np.mean([way >= sum(apart) for way in ways])
    assert sign_flip_above(apart) == pytest.approx(expected)


def test_one_sided_flips_of_fractions_are_drawn_and_of_ones_the_sign_test() -> None:
    assert sign_flip_above([1] * 7 + [-1] * 2) == pytest.approx(mcnemar_exact(7, 2) / 2)
    apart = np.linspace(-0.4, 0.9, 10)
    ways = np.array(list(product((-1, 1), repeat=10))) @ apart
    assert sign_flip_above(apart) == pytest.approx(np.mean(ways >= apart.sum()), abs=0.01)
    assert sign_flip_above(np.full(40, 0.5)) == pytest.approx(1e-4)
    assert sign_flip_above([]) == sign_flip_above([0.0, 0.0]) == 1.0
