"""The order of presentation: flips, moves to the side shown first, and the exact test."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binomtest

from evenhand.analysis import Scale, analyse
from tests.ratings_files import read_ratings

SEES_C = 0.8 * 0.65 + 0.2 / 3

LLMBAR = {
    "GPT-4/Vanilla": (419, 20, 10),
    "GPT-4/CoT": (419, 32, 13),
    "PaLM2/Vanilla": (415, 83, 32),
    "Falcon/CoT": (416, 362, 1),
}
"""Counted with a spreadsheet's filters in llmbar.csv: units labelled in both orders, and of the
flips those to the output shown first and to the second."""


@pytest.fixture(scope="module")
def llmbar(shared_data: Path) -> pd.DataFrame:
    """The audit's rows on the published graders' labels, 1 for the first output and 2 for the
    second, in the original orientation.
    """
    ratings, units = read_ratings(shared_data / "real" / "llmbar.csv")
    scale = Scale("", ("1", "2"), favours={"1": "a", "2": "b"})
    chosen = ratings[ratings["rater_id"].isin([*LLMBAR, "gold"])]
    results = analyse(chosen, units, [scale], resamples=400).results
    return results[results["statistic"].str.startswith("bias_order")]


@pytest.mark.parametrize("grader", LLMBAR)
def test_flips_on_published_labels(llmbar: pd.DataFrame, grader: str) -> None:
    rows = llmbar[llmbar["rater_a"] == grader].set_index("statistic")
    units, first, second = LLMBAR[grader]
    flips = rows.loc["bias_order_flips"]
    assert (flips["n_units"], flips["estimate"]) == (units, (first + second) / units)
    assert flips["note"] == f"{first + second} flips"
    assert flips["low"] < flips["estimate"] < flips["high"]
    assert rows.loc["bias_order_first", "estimate"] == first / (first + second)
    assert rows.loc["bias_order", "estimate"] == pytest.approx((first - second) / units)
    p = binomtest(first, first + second).pvalue
    assert f"exact p {p:.4g}" in rows.loc["bias_order", "note"]
    # Two planned questions each, side and order: Holm at most doubles the smaller p.
    assert rows.loc["bias_order_p", "estimate"] == pytest.approx(min(1.0, 2 * p), rel=0.51)


def test_the_counts_above_are_those_of_the_file(shared_data: Path) -> None:
    labels: dict[tuple[str, str], dict[str, str]] = {}
    with (shared_data / "real" / "llmbar.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            labels.setdefault((row["rater_id"], row["item_id"]), {})[row["order"]] = row["label"]
    for grader, known in LLMBAR.items():
        own = [each for (rater, _), each in labels.items() if rater == grader]
        both = Counter((each["ab"], each["ba"]) for each in own if each["ab"] and each["ba"])
        assert (both.total(), both["1", "2"], both["2", "1"]) == known


def test_a_known_pull_to_the_first(sample: Callable, audited: Callable, row_of: Callable) -> None:
    """Of the C three of ten go to the side shown first; in both orders the rest is noise."""
    made = sample(4, pairs=300)
    for order, first in (("ab", "A"), ("ba", "B")):
        made.rate("pulled", made.turned(made.see(0.8), "C", first, 0.3), order=order)
        made.rate("even", made.see(0.8), order=order)
    rows = audited(made)
    pulled, even = (row_of(rows, "bias_order", rater) for rater in ("pulled", "even"))
    assert pulled["low"] < 0.3 * SEES_C < pulled["high"]
    assert abs(even["estimate"]) < 0.05
    assert row_of(rows, "bias_order_p", "pulled")["estimate"] < 0.001
    assert row_of(rows, "bias_order_first", "even")["estimate"] == pytest.approx(0.5, abs=0.1)


def test_categories_without_sides_flip_but_have_no_first(
    sample: Callable, audited: Callable, row_of: Callable
) -> None:
    made = sample(2, pairs=30)
    for order in ("ab", "ba"):
        made.rate("g", made.see(0.8), order=order)
    rows = audited(made, Scale("", ("A", "B", "C")))
    assert 0 < row_of(rows, "bias_order_flips", "g")["estimate"] < 1
    assert {key[1] for key in rows.rows} == {"bias_order_flips"}


def test_one_order_is_no_question(sample: Callable, audited: Callable) -> None:
    made = sample(3, pairs=20)
    made.rate("g", made.see(0.8), order="ab")
    assert not any(key[1].startswith("bias_order") for key in audited(made).rows)
