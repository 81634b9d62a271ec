"""Inputs on which libraries disagree, raise or return nan: each has one declared answer here."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest

import evenhand.analysis as a
from evenhand.analysis.subjects.scores import exact_p, spearman
from tests.known_values import known_values

BINARY = {"categories": [0, 1]}


@pytest.fixture(scope="module")
def cases() -> dict[str, dict]:
    """The declared answers by case."""
    return {case["case"]: case for case in known_values("degenerate_cases")["expected"]}


def _row(results: pd.DataFrame, statistic: str, rater_a: str, rater_b: str) -> pd.Series:
    keys = ["statistic", "rater_a", "rater_b"]
    return results[results["at"] == ""].set_index(keys).loc[(statistic, rater_a, rater_b)]


def test_both_raters_constant(cases: dict[str, dict], make_ratings: Callable) -> None:
    case = cases["both raters constant, same label"]
    labels = [[1, 1]] * 20
    assert a.observed_agreement(labels, **BINARY).estimate == case["pa"]
    kappa = a.cohen_kappa([1] * 20, [1] * 20, **BINARY)
    alpha = a.krippendorff_alpha(labels, level="nominal", **BINARY)
    for found in (kappa, alpha, a.fleiss_kappa(labels, **BINARY)):
        assert math.isnan(found.estimate)
        assert found.reason == case["reason"]
    assert a.gwet_ac1(labels, **BINARY).estimate == 1.0
    assert math.isnan(a.gwet_ac1(labels, categories=[1]).estimate)
    ratings = make_ratings({"ann": "1" * 40, "ben": "1" * 40})
    results = a.analyse(ratings, None, [a.Scale("", ("0", "1"))], resamples=50).results
    for statistic, estimate in (("observed_agreement", 1.0), ("gwet_ac1", 1.0)):
        assert _row(results, statistic, "ann", "ben")["estimate"] == estimate
    for statistic in ("cohen_kappa", "krippendorff_alpha_nominal"):
        row = _row(results, statistic, "ann", "ben")
        assert math.isnan(row["estimate"])
        assert row["note"] == case["reason"]
    only = a.analyse(ratings, None, [a.Scale("", ("1",))], resamples=50).results
    assert math.isnan(_row(only, "gwet_ac1", "ann", "ben")["estimate"])


def test_one_rater_constant(cases: dict[str, dict], make_ratings: Callable) -> None:
    case = cases["one rater constant"]
    assert a.cohen_kappa([1] * 20, [0, 1] * 10, **BINARY).estimate == case["kappa"]
    ratings = make_ratings({"ann": "1" * 40, "ben": "01" * 20})
    results = a.analyse(ratings, None, [a.Scale("", ("0", "1"))], resamples=50).results
    row = _row(results, "cohen_kappa", "ann", "ben")
    assert row["estimate"] == case["kappa"]
    assert row["note"] == case["flag"]


def test_mcnemar_without_discordant_units(cases: dict[str, dict]) -> None:
    assert a.mcnemar_exact(0, 0) == cases["b+c=0 McNemar"]["p"]
    assert a.mcnemar_mid_p(0, 0) == cases["b+c=0 McNemar"]["p"]


def test_no_unit_with_two_labels(cases: dict[str, dict], make_ratings: Callable) -> None:
    case = cases["no item with two labels"]
    found = a.krippendorff_alpha([[1, None], [None, 0]], level="nominal", **BINARY)
    assert math.isnan(found.estimate)
    assert found.reason == case["reason"]
    assert a.cohen_kappa([1, None], [None, 0], **BINARY).reason == case["reason"]
    ratings = make_ratings({"ann": "0" * 20 + "-" * 20, "ben": "-" * 20 + "1" * 20})
    results = a.analyse(ratings, None, [a.Scale("", ("0", "1"))], resamples=50).results
    row = _row(results, "krippendorff_alpha_nominal", "humans", "")
    assert math.isnan(row["estimate"])
    assert row["note"] == case["reason"]


def test_perfect_rank_agreement_of_four(cases: dict[str, dict]) -> None:
    import numpy as np

    case = cases["perfect rank agreement n=4"]
    ranks = np.arange(4.0)
    assert spearman(ranks, ranks) == case["spearman"]
    assert exact_p(spearman, ranks, ranks) == pytest.approx(case["exact_p"])


def test_a_grader_identical_to_every_human(cases: dict[str, dict], make_ratings: Callable) -> None:
    case = cases["alt-test: LLM identical to every human, eps=0"]
    found = a.alt_test([[0, 0], [1, 1]] * 20, [0, 1] * 20, epsilon=0.0, **BINARY)
    assert found.zero_variance.tolist() == [case["difference_zero_variance"]] * 2
    assert found.p.tolist() == [case["p"]] * 2
    assert found.rejected.tolist() == [case["reject"]] * 2
    labels = {"ann": "01" * 20, "ben": "01" * 20, "g": "01" * 20}
    scale = a.Scale("", ("0", "1"))
    results = a.analyse(make_ratings(labels, ["g"]), None, [scale], resamples=50, epsilon=0.0)
    row = _row(results.results, "alt_test_winning_rate", "humans", "g")
    assert row["estimate"] == 0.0
    assert row["note"].startswith(f"{case['flag']} (2 of 2 annotators)")


def test_no_annotator_with_enough_units(cases: dict[str, dict]) -> None:
    case = cases["alt-test: annotators all below min items"]
    found = a.alt_test([[0, 0], [1, 1]] * 10, [0, 1] * 10, **BINARY)
    assert math.isnan(found.winning_rate)
    assert case["winning_rate"] is None
    assert not found.passed


def test_means_over_pairs_say_what_they_are_over(make_ratings: Callable) -> None:
    """No "mean over 0 pairs" where none is defined, no "1 pairs" where there is one."""
    ratings = make_ratings({"ann": "0" * 40, "ben": "0" * 40, "g": "01" * 20}, ["g"])
    results = a.analyse(ratings, None, [a.Scale("", ("0", "1"))], resamples=50).results
    people = _row(results, "cohen_kappa", "humans", "")
    assert people["note"] == "no_variation; undefined for 1 of 1 pairs of raters"
    ratings = make_ratings({"ann": "0011" * 10, "ben": "0111" * 10, "g": "01" * 20}, ["g"])
    results = a.analyse(ratings, None, [a.Scale("", ("0", "1"))], resamples=50).results
    notes = " ".join(results["note"])
    assert "over 0 pairs" not in notes
    assert "over 1 pairs" not in notes
    difference = _row(results, "human_ceiling_difference", "humans", "g")["note"]
    assert difference.endswith("between humans 0.5, 1 pair of raters")
