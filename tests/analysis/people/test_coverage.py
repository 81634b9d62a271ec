"""Unscored units are shown as coverage and counted as disagreement in a line of their own."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse


@pytest.fixture
def results(make_ratings: Callable) -> pd.DataFrame:
    """40 units; the grader leaves 10 unscored, was never asked about 5, agrees on 20 of 25."""
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


def test_coverage_is_of_what_was_asked(results: pd.DataFrame) -> None:
    row = _row(results, "coverage", "", "g")
    assert row["estimate"] == pytest.approx(25 / 35)
    assert row["n_units"] == 35
    assert row["note"] == "unscored: refused 7, truncated 3"
    assert _row(results, "coverage", "", "ann")["estimate"] == 1.0


def test_unscored_counts_as_disagreement(results: pd.DataFrame) -> None:
    row = _row(results, "observed_agreement_unscored_as_disagreement", "humans", "g")
    # With ann 20 of the 35 asked; ben alternates 1, 2: 10 of the first 20, 2 of the next 5.
    assert row["estimate"] == pytest.approx((20 / 35 + 12 / 35) / 2)
    assert row["n_units"] == 35
    pair = _row(results, "observed_agreement", "ann", "g")
    assert pair["estimate"] == pytest.approx(20 / 25)
    assert pair["n_units"] == 25
