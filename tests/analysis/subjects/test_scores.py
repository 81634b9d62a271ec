"""Overall scores by the study's rule.

Correlations over few subjects, with their exact p.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.subjects.scores import exact_p, kendall, mid_ranks, pearson, spearman


def _response_study() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two subjects, two pairs, both sides; one human and two graders, written out."""
    units = [
        (f"{pair}|{subject}|{side}", pair, subject, side)
        for pair in ("p1", "p2")
        for subject in ("s1", "s2")
        for side in ("a", "b")
    ]
    #           p1 s1    p1 s2    p2 s1    p2 s2
    given = {
        "ann": ["y", "n", "n", "n", "y", "y", "n", "y"],
        "hard": ["n", "n", "y", "n", "y", "n", "", "y"],
        "prob": [0.9, 0.2, 0.3, 0.6, 0.1, 0.8, 0.0, 0.9],
    }
    rows = []
    for rater, labels in given.items():
        for (unit, *_), label in zip(units, labels, strict=True):
            p = label if isinstance(label, float) else np.nan
            text = label if isinstance(label, str) else ("y" if label >= 0.5 else "n")
            kind = "human" if rater == "ann" else "model"
            rows.append((unit, rater, kind, text, p))
    columns = ["unit_id", "rater_id", "rater_kind", "label", "p_positive"]
    ratings = pd.DataFrame(rows, columns=columns)
    return ratings, pd.DataFrame(units, columns=["unit_id", "cluster_id", "subject", "side"])


def test_the_pair_rule() -> None:
    """A pair is affirmative where the mean of its two responses reaches .5; one label of two does.

    ann: s1 (1+0)/2 yes, (1+1)/2 yes -> 1; s2 0 no, (0+1)/2 yes -> 1/2.
    hard: s1 0 no, 1/2 yes -> 1/2; s2 1/2 yes, and p2 lacks a label -> 1.
    prob: s1 .55 yes, .45 no -> 1/2; s2 .45 no, .45 no -> 0.
    """
    ratings, units = _response_study()
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), unit="response")
    results = analyse(ratings, units, [scale], resamples=50).results
    scores = results[results["statistic"] == "subject_score"].set_index(["rater_a", "at"])
    expected = {
        ("humans", "s1"): 1.0,
        ("humans", "s2"): 0.5,
        ("hard", "s1"): 0.5,
        ("hard", "s2"): 1.0,
        ("prob", "s1"): 0.5,
        ("prob", "s2"): 0.0,
    }
    assert scores["estimate"].to_dict() == pytest.approx(expected)
    assert (scores["subset"] == "all|binary").all()
    assert scores.loc[("hard", "s2"), "n_units"] == 1
    pairs = results[results["statistic"] == "pair_observed_agreement"]
    pairs = pairs.set_index(["rater_a", "rater_b"])["estimate"]
    # ann yes yes no yes (p1s1 p2s1 p1s2 p2s2); hard no yes yes -; prob yes no no no
    assert pairs[("ann", "hard")] == pytest.approx(1 / 3)
    assert pairs[("ann", "prob")] == pytest.approx(2 / 4)
    assert pairs[("hard", "prob")] == pytest.approx(0 / 3)


def test_scores_are_compared_on_the_units_that_both_scored(rng: np.random.Generator) -> None:
    """A grader that left out what it would have got wrong agrees on what is left."""
    rows, units = [], []
    for subject, share in enumerate((0.2, 0.5, 0.7, 0.9)):
        for pair in range(40):
            unit = f"p{pair}|s{subject}"
            units.append((unit, f"p{pair}", f"s{subject}", ""))
            label = "y" if rng.random() < share else "n"
            rows.append((unit, "ann", "human", label))
            rows.append((unit, "g", "model", label if pair % 2 else ""))
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])
    table = pd.DataFrame(units, columns=["unit_id", "cluster_id", "subject", "side"])
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), unit="pair")
    results = analyse(ratings, table, [scale], resamples=300).results
    found = results[results["statistic"].isin(["spearman", "kendall", "pearson"])]
    assert found["estimate"].tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert set(found["n_units"]) == {80}
    assert set(found["n_clusters"]) == {20}
    # The same units, so no resample parts them; that is as sure as 20 pairs can be.
    certain = "no resample differs: the interval is what 20 clusters allow"
    assert set(found["note"]) == {f"{certain}; 4 subjects; exact p 0.08333"}
    assert found["low"].tolist() == pytest.approx([1 - 2 * (1 - 0.025 ** (1 / 20))] * 3)


def test_two_subjects_have_no_correlation() -> None:
    ratings, units = _response_study()
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), unit="response")
    results = analyse(ratings, units, [scale], resamples=50).results
    found = results[results["statistic"] == "spearman"]
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith("too_few_subjects").all()


# Hollander & Wolfe (1973), tuna; exact p as R's cor.test gives them.
TUNA = (
    np.array([44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]),
    np.array([2.6, 3.1, 2.5, 5, 3.6, 4, 5.2, 2.8, 3.8]),
)
TIES = (np.array([1.0, 2, 2, 3, 4, 5, 5]), np.array([2.0, 1, 3, 3, 4, 4, 6]))


def test_correlations_on_published_data() -> None:
    assert spearman(*TUNA) == pytest.approx(0.6)
    assert kendall(*TUNA) == pytest.approx(0.4444444444)
    assert pearson(*TUNA) == pytest.approx(0.5711815576)
    assert spearman(*TIES) == pytest.approx(0.8888888889)
    assert kendall(*TIES) == pytest.approx(0.7894736842)


@pytest.mark.slow
def test_exact_p() -> None:
    assert exact_p(spearman, *TUNA) == pytest.approx(0.0967978395)
    assert exact_p(kendall, *TUNA) == pytest.approx(0.1194389330)
    assert exact_p(spearman, *TIES) == pytest.approx(0.0126984127)


@pytest.mark.parametrize(("n", "p"), [(3, 2 / 6), (4, 2 / 24), (5, 2 / 120), (6, 2 / 720)])
def test_exact_p_of_perfect_agreement(n: int, p: float) -> None:
    ranks = np.arange(n, dtype=float)
    assert exact_p(spearman, ranks, ranks) == pytest.approx(p)


def test_exact_p_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test, spearmanr

    x, y = np.array([0.1, 0.5, 0.2, 0.9, 0.4, 0.7]), np.array([0.2, 0.3, 0.4, 0.8, 0.1, 0.9])
    theirs = permutation_test(
        (x,), lambda z: spearmanr(z, y).statistic, permutation_type="pairings"
    )
    assert exact_p(spearman, x, y) == pytest.approx(theirs.pvalue)


def test_every_order_is_tried_once() -> None:
    x = np.array([3.0, 1.0, 4.0, 1.5])
    y = np.array([2.0, 7.0, 1.0, 8.0])
    every = [pearson(np.array(order), y) for order in permutations(x)]
    observed = pearson(x, y)
    tail = min(np.mean(np.array(every) >= observed - 1e-9), np.mean(every <= observed + 1e-9))
    assert exact_p(pearson, x, y) == pytest.approx(2 * tail)


def test_ranks_are_those_of_scipy(rng: np.random.Generator) -> None:
    from scipy.stats import rankdata, spearmanr

    x, y = rng.integers(0, 4, (2, 30, 7)).astype(float)
    for first, second, rho in zip(x, y, spearman(x, y), strict=True):
        assert rho == pytest.approx(spearmanr(first, second).statistic, nan_ok=True)
    x[3, 2] = np.nan
    assert np.array_equal(
        mid_ranks(x), rankdata(x, axis=-1, nan_policy="propagate"), equal_nan=True
    )
