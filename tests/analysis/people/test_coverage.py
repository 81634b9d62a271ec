"""Unscored units are shown as coverage and counted as disagreement in a line of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bootstrap.shares import share_bounds


@pytest.fixture
def results(make_ratings: Callable) -> pd.DataFrame:
    """40 units; the grader leaves 10 unscored, has no row for 5, agrees on 20 of 25."""
    people = "1" * 40
    grader = "1" * 20 + "2" * 5 + "x" * 10 + "-" * 5
    ratings = make_ratings({"ann": people, "ben": "12" * 20, "g": grader}, ["g"])
    refused = ratings["label"] == "x"
    ratings.loc[refused, "label"] = ""
    ratings["unscored_reason"] = ["refused" if r else "" for r in refused]
    ratings.loc[ratings[refused].index[:3], "unscored_reason"] = "truncated"
    return analyse(ratings, None, [Scale("", ("1", "2"))], resamples=100).results


def _row(results: pd.DataFrame, statistic: str, rater_a: str, rater_b: str) -> pd.Series:
    keys = ["statistic", "rater_a", "rater_b"]
    return results.set_index(keys).loc[(statistic, rater_a, rater_b)]


def test_coverage_is_of_what_people_labelled(results: pd.DataFrame) -> None:
    row = _row(results, "coverage", "", "g")
    assert row["estimate"] == pytest.approx(25 / 40)
    assert row["n_units"] == 40
    assert row["note"] == "unscored: absent 5, refused 7, truncated 3"
    assert _row(results, "coverage", "", "ann")["estimate"] == 1.0


def test_bounds_are_near_clopper_and_pearsons_where_units_are_clusters(
    results: pd.DataFrame,
) -> None:
    row = _row(results, "coverage", "", "g")
    inner, outer = (proportion_confint(25, 40, method=how) for how in ("wilson", "beta"))
    assert outer[0] < row["low"] < inner[0] + 0.5 / 40
    assert inner[1] - 0.5 / 40 < row["high"] < outer[1]


def test_full_coverage_has_a_lower_bound(results: pd.DataFrame) -> None:
    row = _row(results, "coverage", "", "ann")
    assert (row["estimate"], row["high"]) == (1.0, 1.0)
    assert row["low"] == pytest.approx(0.025 ** (1 / 40))
    # Four subjects a pair: nothing shows that a pair is more than one piece of evidence.
    assert share_bounds(np.full(40, 4.0), np.full(40, 4.0))[1] == pytest.approx(row["low"])
    assert share_bounds(np.zeros(40), np.ones(40)) == (0.0, 0.0, pytest.approx(1 - row["low"]))


def test_pairs_that_are_lost_whole_count_as_one(rng: np.random.Generator) -> None:
    lost = rng.random(200) < 0.1
    whole = share_bounds(np.where(lost, 0.0, 4.0), np.full(200, 4.0))
    once = share_bounds(np.where(lost, 0.0, 1.0), np.ones(200))
    assert whole == pytest.approx(once, abs=0.002)
    apart = share_bounds(rng.binomial(4, 1 - lost.mean(), 200) * 1.0, np.full(200, 4.0))
    assert apart[2] - apart[1] < 0.7 * (whole[2] - whole[1])


def test_unscored_counts_as_disagreement(results: pd.DataFrame) -> None:
    row = _row(results, "observed_agreement_unscored_as_disagreement", "humans", "g")
    # With ann 20 of 40; ben alternates 1, 2: 10 of the first 20, 2 of the next 5.
    assert row["estimate"] == pytest.approx((20 / 40 + 12 / 40) / 2)
    assert row["n_units"] == 40
    pair = _row(results, "observed_agreement", "ann", "g")
    assert pair["estimate"] == pytest.approx(20 / 25)
    assert pair["n_units"] == 25
