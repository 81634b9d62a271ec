"""Overall scores by the study's rule.

Correlations over few subjects, with their exact p.

Differences of subjects: against Tukey's range, against orders counted out, and degenerate.
"""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.subjects import scores as scoring
from tests.analysis.make import YES, by_at, ratings_of, rows_of, study
from tests.peers import stats


def test_the_pair_rule():
    """A pair is affirmative where the mean of its two responses reaches .5; one label of two does.

    ann: s1 (1+0)/2 yes, (1+1)/2 yes -> 1; s2 0 no, (0+1)/2 yes -> 1/2.
    hard: s1 0 no, 1/2 yes -> 1/2; s2 1/2 yes, and p2 lacks a label -> 1.
    prob: s1 .55 yes, .45 no -> 1/2; s2 .45 no, .45 no -> 0.
    """
    keys = [(pair, s, side) for pair in ("p1", "p2") for s in ("s1", "s2") for side in "ab"]
    units = pd.DataFrame(keys, columns=["cluster_id", "subject", "side"])
    units.insert(0, "unit_id", [f"u{n:05d}" for n in range(8)])
    #      p1 s1    p1 s2    p2 s1    p2 s2
    p = [0.9, 0.2, 0.3, 0.6, 0.1, 0.8, 0.0, 0.9]
    labels = {
        "ann": ["y", "n", "n", "n", "y", "y", "n", "y"],
        "hard": ["n", "n", "y", "n", "y", "n", "", "y"],
        "prob": ["y" if each >= 0.5 else "n" for each in p],
    }
    ratings = ratings_of(labels, ["hard", "prob"], {"prob": p})
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), unit="response")
    results = analyse(ratings, units, [scale], resamples=50).results
    scores = rows_of(results, "subject_score").set_index(["rater_a", "at"])
    expected = {"humans": [1.0, 0.5], "hard": [0.5, 1.0], "prob": [0.5, 0.0]}
    assert scores["estimate"].unstack().T.to_dict("list") == expected
    assert set(scores["subset"]) == {"all|binary"}
    assert scores.loc[("hard", "s2"), "n_units"] == 1
    pairs = rows_of(results, "pair_observed_agreement")
    pairs = pairs.set_index(["rater_a", "rater_b"])["estimate"]
    # ann yes yes no yes (p1s1 p2s1 p1s2 p2s2); hard no yes yes -; prob yes no no no
    assert pairs[("ann", "hard")] == pytest.approx(1 / 3)
    assert pairs[("ann", "prob")] == pytest.approx(2 / 4)
    assert pairs[("hard", "prob")] == pytest.approx(0 / 3)
    # Two subjects have no correlation.
    found = rows_of(results, "spearman")
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith("too_few_subjects").all()


def results_of(labels, n_clusters):
    """Results on pairs, of which each subject in turn has one of each cluster."""
    ratings = ratings_of(labels)
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique(), "side": ""})
    units["cluster_id"] = [f"p{n % n_clusters}" for n in range(len(units))]
    units["subject"] = [f"s{n // n_clusters}" for n in range(len(units))]
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), unit="pair")
    return analyse(ratings, units, [scale], resamples=100).results


def test_scores_are_compared_on_the_units_that_both_scored(rng):
    """A grader that left out what it would have got wrong agrees on what is left."""
    people = np.where(rng.random((4, 40)) < [[0.2], [0.5], [0.7], [0.9]], "y", "n").ravel()
    results = results_of({"ann": people, "g": np.where(np.arange(160) % 2, people, "")}, 40)
    found = results[results["statistic"].isin(["spearman", "kendall", "pearson"])]
    assert found["estimate"].tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert set(found["n_units"]) == {80}
    assert set(found["n_clusters"]) == {20}
    # The same units, so no resample parts them; that is as sure as 20 pairs can be.
    certain = "no resample differs: the interval is what 20 clusters allow"
    assert set(found["note"]) == {f"{certain}; 4 subjects; exact p 0.08333"}
    assert found["low"].tolist() == pytest.approx([1 - 2 * (1 - 0.025 ** (1 / 20))] * 3)


def test_equal_scores_are_tied(rng):
    """The same items in another order have another sum by rounding, which must not rank them."""
    base = np.column_stack([rng.choice(["y", "n"], (30, 1)), rng.choice(["y", "n", ""], (30, 4))])
    people = np.concatenate([*(rng.permutation(base) for _ in range(3)), np.full((30, 5), "y")])
    labels = {f"ann{n}": column for n, column in enumerate(people.T)}
    labels["g"] = np.where(np.arange(120) % 30 < np.repeat([9, 15, 21, 27], 30), "y", "n")
    results = results_of(labels, 30)
    for name, theirs in (("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        expected = theirs([1, 1, 1, 2], [9, 15, 21, 27]).statistic
        assert rows_of(results, name)["estimate"].item() == pytest.approx(expected)


# Hollander & Wolfe (1973), tuna; exact p as R's cor.test gives them.
TUNA = (
    np.array([44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]),
    np.array([2.6, 3.1, 2.5, 5, 3.6, 4, 5.2, 2.8, 3.8]),
)
TIES = (np.array([1.0, 2, 2, 3, 4, 5, 5]), np.array([2.0, 1, 3, 3, 4, 4, 6]))


def test_correlations_on_published_data():
    assert scoring.spearman(*TUNA) == pytest.approx(0.6)
    assert scoring.kendall(*TUNA) == pytest.approx(0.4444444444)
    assert scoring.pearson(*TUNA) == pytest.approx(0.5711815576)


@pytest.mark.slow
def test_exact_p():
    assert scoring.exact_p(scoring.spearman, *TUNA) == pytest.approx(0.0967978395)
    assert scoring.exact_p(scoring.kendall, *TUNA) == pytest.approx(0.1194389330)
    assert scoring.exact_p(scoring.spearman, *TIES) == pytest.approx(0.0126984127)
    for n, orders in ((3, 6), (4, 24), (5, 120), (6, 720)):
        ranks = np.arange(float(n))
        assert scoring.exact_p(scoring.spearman, ranks, ranks) == pytest.approx(2 / orders)


def test_exact_p_is_that_of_scipy():
    x, y = np.array([0.1, 0.5, 0.2, 0.9, 0.4, 0.7]), np.array([0.2, 0.3, 0.4, 0.8, 0.1, 0.9])
    theirs = stats.permutation_test(
        (x,), lambda z: stats.spearmanr(z, y).statistic, permutation_type="pairings"
    )
    assert scoring.exact_p(scoring.spearman, x, y) == pytest.approx(theirs.pvalue)


def test_ranks_are_those_of_scipy(rng):
    x, y = rng.integers(0, 4, (2, 30, 7)).astype(float)
    for first, second, rho in zip(x, y, scoring.spearman(x, y), strict=True):
        assert rho == pytest.approx(stats.spearmanr(first, second).statistic, nan_ok=True)
    x[3, 2] = np.nan
    theirs = stats.rankdata(x, axis=-1, nan_policy="propagate")
    assert np.array_equal(scoring.mid_ranks(x), theirs, equal_nan=True)


@pytest.mark.parametrize("subjects", [2, 5, 10])
def test_bounds_that_hold_together_are_tukeys(rng, subjects):
    """Independent rates of equal variance: the largest difference is the studentized range."""
    drawn = 0.5 + 0.01 * rng.normal(size=(40_000, subjects))
    rates = np.vstack([np.full(subjects, 0.5), drawn])
    found = scoring.all_differences(rates, np.full(subjects, 10**6))
    tukey = stats.studentized_range.ppf(0.95, subjects, np.inf) / np.sqrt(2.0)
    reach = (found.high - found.low) / 2 / (0.01 * np.sqrt(2.0))
    assert reach.mean() == pytest.approx(tukey, rel=0.01)


def test_possible_ranks_are_those_of_all_orders_that_are_not_excluded(rng):
    first, second = np.triu_indices(5, 1)
    for _ in range(30):
        low = rng.random(5)
        high = low + rng.random(5) * 0.5
        bounds = low[first] - high[second], high[first] - low[second]
        found = scoring.Differences(first, second, (bounds[0] + bounds[1]) / 2, *bounds)
        allowed = [
            np.argsort(order)
            for order in permutations(range(5))
            if not any(high[a] < low[b] for a, b in combinations(order, 2))
        ]
        highest, lowest = scoring.rank_sets(found, 5)
        assert (1 + np.min(allowed, axis=0) == highest).all()
        assert (1 + np.max(allowed, axis=0) == lowest).all()


@pytest.mark.slow
def test_rows_of_a_study(rng):
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.3, 0.8))
    results = analyse(ratings, units, [YES], resamples=150).results
    rates, apart = by_at(results, "rate_ppi"), by_at(results, "rate_difference_ppi")
    assert list(apart.index) == ["s0>s1", "s0>s2", "s1>s2"]
    for at, row in apart.iterrows():
        first, second = str(at).split(">")
        difference = rates.loc[first, "estimate"] - rates.loc[second, "estimate"]
        assert row["estimate"] == pytest.approx(difference)
        assert row["low"] < difference < row["high"]
        assert (row["n_units"], row["n_clusters"]) == (800, 400)
    ranks = by_at(results, "rate_rank_set")
    assert ranks["estimate"].rank().tolist() == rates["estimate"].rank(ascending=False).tolist()
    assert ranks[["low", "high"]].to_numpy().tolist() == [[2, 3], [2, 3], [1, 1]]
    both = [YES, type(YES)("Q", YES.categories, affirmative=YES.affirmative, unit="pair")]
    other = ratings.assign(rubric="Q")
    twice = analyse(pd.concat([ratings, other]), units, both, resamples=150).results
    wider = by_at(twice[twice["rubric"] == "R"], "rate_difference_ppi")
    assert (wider["high"] - wider["low"] > apart["high"] - apart["low"]).all()


def test_a_difference_within_prompts_is_surer_than_either_rate(rng):
    """Both subjects give nearly the same to every prompt: the prompts cancel."""
    ratings, units = study(rng, {"g": [(0.95, 0.95)] * 2}, rates=(0.5, 0.5))
    alike = ratings[ratings["unit_id"].str.endswith("|s0")]
    other = alike.assign(unit_id=alike["unit_id"].str.replace("|s0", "|s1"))
    results = analyse(pd.concat([alike, other]), units, [YES], resamples=150).results
    (apart,) = by_at(results, "rate_difference_ppi").to_dict("records")
    rates = by_at(results, "rate_ppi")
    assert apart["high"] - apart["low"] < 0.2 * (rates["high"] - rates["low"]).min()
    assert apart["low"] < 0 < apart["high"]  # and yet no single number


def test_of_many_subjects_only_the_ranks_are_listed(rng, monkeypatch):
    monkeypatch.setattr("evenhand.analysis.subjects.corrected_rates.MOST_COMPARED", 2)
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.5, 0.7))
    results = analyse(ratings, units, [YES], resamples=50).results
    assert by_at(results, "rate_difference_ppi").empty
    assert len(by_at(results, "rate_rank_set")) == 3


def test_subjects_who_answered_other_prompts_are_compared_as_far_as_they_share_them(rng):
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3}, rates=(0.3, 0.5, 0.7))
    number, subject = units["cluster_id"].str[1:].astype(int), units["subject"]
    # s1 answered the last 300 of 400 prompts.
    kept = units[~((subject == "s1") & (number < 100))]
    answered = ratings[ratings["unit_id"].isin(kept["unit_id"])]
    results = analyse(answered, kept, [YES], resamples=100).results
    notes = by_at(results, "rate_difference_ppi")["note"]
    shared = "300 of 400 clusters answered by both"
    assert notes.to_dict() == {"s0>s1": shared, "s0>s2": "", "s1>s2": shared}


@pytest.mark.filterwarnings("error")
def test_a_figure_that_no_resample_has_is_undefined_without_a_warning():
    drawn = np.random.default_rng(1).normal(size=(50, 3))
    drawn[:, 1] = np.nan
    few = np.full(3, 10)
    reach = scoring.joint_half_widths(lambda some: drawn[:, some], few, [np.zeros(3)], 0.05)
    assert np.isnan(reach).tolist() == [False, True, False]
