"""Agreement category by category and confusion matrices, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse, specific_agreement

THREE = ("1", "2", "3")


def _by_hand(rows: list[list[str]], category: str) -> float:
    """Of all ordered pairs of labels whose first is the category, those whose second is too."""
    same = every = 0
    for row in rows:
        given = [label for label in row if label != "-"]
        for first, second in permutations(range(len(given)), 2):
            every += given[first] == category
            same += given[first] == category and given[second] == category
    return same / every if every else np.nan


def _at(results: pd.DataFrame, statistic: str, raters: tuple[str, str]) -> pd.DataFrame:
    own = (results["rater_a"] == raters[0]) & (results["rater_b"] == raters[1])
    own &= (results["statistic"] == statistic) & (results["subset"] == "all")
    return results[own].set_index("at")


def test_specific_agreement_and_confusion(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 80)
    labels = {name: noisy(rng, truth, 2, 0.7, missing=0.2) for name in ("ann", "ben", "cem", "g")}
    results = analyse(make_ratings(labels, ["g"]), None, [Scale("", THREE)], resamples=200).results
    people = [list(row) for row in zip(*(labels[n] for n in ("ann", "ben", "cem")), strict=True)]
    plain = specific_agreement(
        [[None if x == "-" else x for x in row] for row in people], categories=THREE
    )
    group = _at(results, "specific_agreement", ("humans", ""))
    pair = _at(results, "specific_agreement", ("ann", "g"))
    both = [list(row) for row in zip(labels["ann"], labels["g"], strict=True)]
    for category in THREE[:2]:
        assert group.loc[category, "estimate"] == pytest.approx(_by_hand(people, category))
        assert plain[category].estimate == pytest.approx(_by_hand(people, category))
        assert pair.loc[category, "estimate"] == pytest.approx(_by_hand(both, category))
        assert pair.loc[category, "low"] < pair.loc[category, "high"]
    for rows in (group, pair):
        assert np.isnan(rows.loc["3", "estimate"])
        assert rows.loc["3", "note"] == "category_not_used"
    with_humans = _at(results, "specific_agreement", ("humans", "g"))
    pairs = [[person, g] for row, g in zip(people, labels["g"], strict=True) for person in row]
    pairs = [pair for pair in pairs if "-" not in pair]
    assert with_humans.loc["1", "estimate"] == pytest.approx(_by_hand(pairs, "1"))

    table = _at(results, "confusion", ("ann", "g"))
    assert table.index.tolist() == [f"{a}>{b}" for a in THREE for b in THREE]
    for cell, row in table.iterrows():
        first, second = str(cell).split(">")
        assert row["estimate"] == sum(a == first and g == second for a, g in both)
        assert row["n_units"] == sum("-" not in each for each in both)


def test_positive_and_negative_agreement(make_ratings: Callable) -> None:
    """Cicchetti & Feinstein (1990): 80 and 5 agreed of 100, .914 and .400."""
    labels = {"ann": "1" * 90 + "2" * 10, "ben": "1" * 80 + "2" * 10 + "1" * 5 + "2" * 5}
    scale = Scale("", ("1", "2"), affirmative=frozenset({"1"}))
    results = analyse(make_ratings(labels), None, [scale], resamples=100).results
    own = (results["rater_a"] == "ann") & (results["subset"] == "all|binary")
    found = results[own & (results["statistic"] == "specific_agreement")].set_index("at")
    assert found["estimate"].round(3).to_dict() == {"affirmative": 0.914, "other": 0.4}


def test_categories_that_hold_an_arrow_stay_apart(make_ratings: Callable) -> None:
    scale = Scale("", ("a", "a>b", "b>c", "c"))
    ratings = make_ratings({"ann": ["a", "a>b"] * 20, "ben": ["b>c", "c"] * 20})
    found = analyse(ratings, None, [scale], resamples=20).results
    cells = found[(found["statistic"] == "confusion") & (found["estimate"] > 0)]
    assert cells["at"].tolist() == ["a>'b>c'", "'a>b'>c"]
