"""Small tests and corrections against statsmodels and published tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import SquareTable, mcnemar
from statsmodels.stats.multitest import multipletests

from evenhand.analysis.bootstrap.significance import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    mcnemar_exact,
    mcnemar_mid_p,
    screened,
    stuart_maxwell,
)
from tests.known_values import known_values


def test_benjamini_and_hochbergs_15_p_values() -> None:
    known = known_values("multiple_testing_bh1995")
    p, expected = known["data"]["p"], known["expected"]
    assert benjamini_yekutieli(p) == pytest.approx(expected["BY"], abs=1e-12)
    assert holm(p) == pytest.approx(expected["holm"], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(expected["BH"], abs=1e-12)


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


def test_screening_says_each_p_and_how_many_there_are() -> None:
    """Of 99 resamples none, then all, stray as far from the data as 0 does: p 1/100 and 1."""
    apart, same = np.array([0.5, *[0.5] * 99]), np.zeros(100)
    assert screened([apart, np.full(100, np.nan), same]) == [
        "bootstrap p 0.01; Benjamini-Hochberg p 0.02 of 2",
        "",
        "bootstrap p 1; Benjamini-Hochberg p 1 of 2",
    ]


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

    mid = 2 * binom.cdf(min(b, c), b + c, 0.5) - binom.pmf(b, b + c, 0.5)
    assert mcnemar_mid_p(b, c) == pytest.approx(mid)


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
