"""Differences of subjects: against Tukey's range, against orders counted out, and degenerate."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import studentized_range

from evenhand.analysis import analyse
from evenhand.analysis.subjects import differences
from evenhand.analysis.subjects.differences import (
    Differences,
    all_differences,
    rank_sets,
)
from tests.analysis.graded_studies import YES, study


@pytest.mark.parametrize("subjects", [2, 3, 5, 20])
def test_bounds_that_hold_together_are_tukeys(rng: np.random.Generator, subjects: int) -> None:
    """Independent rates of equal variance: the largest difference is the studentized range."""
    drawn = 0.5 + 0.01 * rng.normal(size=(40_000, subjects))
    rates = np.vstack([np.full(subjects, 0.5), drawn])
    found = all_differences(rates, np.full(subjects, 10**6))
    tukey = studentized_range.ppf(0.95, subjects, np.inf) / np.sqrt(2.0)
    reach = (found.high - found.low) / 2 / (0.01 * np.sqrt(2.0))
    assert reach.mean() == pytest.approx(tukey, rel=0.01)


def test_pairs_computed_in_parts_are_the_same(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = np.clip(0.3 + 0.05 * rng.normal(size=(201, 6)), 0.0, 1.0)
    rates[3, 2] = np.nan
    whole = all_differences(rates, np.arange(20, 26))
    monkeypatch.setattr(differences, "_TOGETHER", 4)
    for part, same in zip(all_differences(rates, np.arange(20, 26)), whole, strict=True):
        assert part == pytest.approx(same)


def test_possible_ranks_are_those_of_all_orders_that_are_not_excluded(
    rng: np.random.Generator,
) -> None:
    first, second = np.triu_indices(5, 1)
    for _ in range(30):
        low = rng.random(5)
        high = low + rng.random(5) * 0.5
        bounds = low[first] - high[second], high[first] - low[second]
        found = Differences(first, second, (bounds[0] + bounds[1]) / 2, *bounds)
        allowed = np.array(
            [
                np.argsort(order)
                for order in permutations(range(5))
                if not any(high[a] < low[b] for a, b in combinations(order, 2))
            ]
        )
        highest, lowest = rank_sets(found, 5)
        assert (1 + allowed.min(axis=0) == highest).all()
        assert (1 + allowed.max(axis=0) == lowest).all()


def of(results: pd.DataFrame, statistic: str) -> pd.DataFrame:
    return results[results["statistic"] == statistic].set_index("at")


def test_rows_of_a_study(rng: np.random.Generator) -> None:
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.3, 0.8))
    results = analyse(ratings, units, [YES], resamples=400).results
    rates, apart = of(results, "rate_ppi"), of(results, "rate_difference_ppi")
    assert list(apart.index) == ["s0>s1", "s0>s2", "s1>s2"]
    for at, row in apart.iterrows():
        first, second = str(at).split(">")
        difference = rates.loc[first, "estimate"] - rates.loc[second, "estimate"]
        assert row["estimate"] == pytest.approx(difference)
        assert row["low"] < difference < row["high"]
        assert (row["n_units"], row["n_clusters"]) == (800, 400)
    ranks = of(results, "rate_rank_set")
    assert ranks["estimate"].rank().tolist() == rates["estimate"].rank(ascending=False).tolist()
    assert ranks[["low", "high"]].to_numpy().tolist() == [[2, 3], [2, 3], [1, 1]]
    both = [YES, type(YES)("Q", YES.categories, affirmative=YES.affirmative, unit="pair")]
    other = ratings.assign(rubric="Q")
    twice = analyse(pd.concat([ratings, other]), units, both, resamples=400).results
    wider = of(twice[twice["rubric"] == "R"], "rate_difference_ppi")
    assert (wider["high"] - wider["low"] > apart["high"] - apart["low"]).all()


def test_a_difference_within_prompts_is_surer_than_either_rate(rng: np.random.Generator) -> None:
    """Both subjects give nearly the same to every prompt: the prompts cancel."""
    ratings, units = study(rng, {"g": [(0.95, 0.95)] * 2}, rates=(0.5, 0.5))
    wide = ratings.assign(
        pair=ratings["unit_id"].str.split("|").str[0], subject=ratings["unit_id"].str[-2:]
    )
    alike = wide[wide["subject"] == "s0"]
    other = alike.assign(unit_id=alike["pair"] + "|s1")
    results = analyse(
        pd.concat([alike, other])[ratings.columns], units, [YES], resamples=400
    ).results
    (apart,) = of(results, "rate_difference_ppi").to_dict("records")
    rates = of(results, "rate_ppi")
    assert apart["high"] - apart["low"] < 0.2 * (rates["high"] - rates["low"]).min()
    assert apart["low"] < 0 < apart["high"]  # and yet no single number


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_that_never_vary_have_bounds(rate: float, rng: np.random.Generator) -> None:
    ratings, units = study(rng, {"g": [(1.0, 1.0)] * 3}, rates=(rate,) * 3, labelled=10)
    results = analyse(ratings, units, [YES], resamples=50).results
    apart = of(results, "rate_difference_ppi")
    assert (apart["estimate"] == 0).all()
    assert (apart["low"] < 0).all()
    assert (apart["high"] > 0).all()
    assert of(results, "rate_rank_set")[["low", "high"]].to_numpy().tolist() == [[1, 3]] * 3


def test_who_is_labelled_once_or_never(rng: np.random.Generator) -> None:
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.5, 0.7))
    human = ratings["rater_kind"] == "human"
    last, once = ratings["unit_id"].str.endswith("s2"), ratings["unit_id"] == "p0000|s1"
    kept = ratings[~human | ~(last | ratings["unit_id"].str.endswith("s1")) | once]
    results = analyse(kept, units, [YES], resamples=100).results
    (apart,) = of(results, "rate_difference_ppi").to_dict("records")
    assert (apart["low"], apart["high"]) == (-1.0, 1.0)  # one cluster tells nothing
    assert set(of(results, "rate_rank_set").index) == {"s0", "s1"}


def test_of_many_subjects_only_the_ranks_are_listed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "MOST_COMPARED", 2)
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.5, 0.7))
    results = analyse(ratings, units, [YES], resamples=50).results
    assert of(results, "rate_difference_ppi").empty
    assert len(of(results, "rate_rank_set")) == 3


def test_subjects_who_answered_other_prompts_are_compared_as_far_as_they_share_them(
    rng: np.random.Generator,
) -> None:
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.5, 0.7))
    number, subject = units["cluster_id"].str[1:].astype(int), units["subject"]
    # s1 answered the last 300 of 400 prompts.
    kept = units[~((subject == "s1") & (number < 100))]
    answered = ratings[ratings["unit_id"].isin(kept["unit_id"])]
    notes = of(analyse(answered, kept, [YES], resamples=100).results, "rate_difference_ppi")["note"]
    assert notes.to_dict() == {
        "s0>s1": "300 of 400 clusters answered by both",
        "s0>s2": "",
        "s1>s2": "300 of 400 clusters answered by both",
    }


@pytest.mark.filterwarnings("error")
def test_a_figure_that_no_resample_has_is_undefined_without_a_warning() -> None:
    drawn = np.random.default_rng(1).normal(size=(50, 3))
    drawn[:, 1] = np.nan
    reach = differences.reach_together(
        lambda some: drawn[:, some], np.full(3, 10), [np.zeros(3)], 0.05
    )
    assert np.isnan(reach).tolist() == [False, True, False]
