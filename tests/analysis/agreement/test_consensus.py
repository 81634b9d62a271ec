"""The majority of the other humans, against plain counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, analyse, majority
from evenhand.analysis.agreement.consensus import add_consensus_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.results import ResultRows

THREE = ("1", "2", "3")


def test_majority_declares_ties() -> None:
    labels = [["a", "b", None], ["a", "a", "b"], [None, None, None], ["b", None, None]]
    found = majority(labels, categories=["a", "b"])
    assert found.labels == (None, "a", None, "b")
    assert found.tied.tolist() == [True, False, False, False]
    assert found.ties == pytest.approx(1 / 3)


def _row(results: pd.DataFrame, statistic: str, rater_b: str) -> pd.Series:
    keys = ["statistic", "rater_a", "rater_b", "subset", "at"]
    return results.set_index(keys).loc[(statistic, "humans", rater_b, "all", "majority")]


@pytest.mark.slow
def test_a_human_is_set_beside_the_others(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 3, 100)
    labels = {
        name: noisy(rng, truth, 3, 0.7, missing=0.15) for name in ("ann", "ben", "cem", "dot")
    }
    labels["g"] = noisy(rng, truth, 3, 0.8)
    results = analyse(make_ratings(labels, ["g"]), None, [Scale("", THREE)], resamples=200).results
    for rater, given in labels.items():
        voters = [each for name, each in labels.items() if name not in (rater, "g")]
        pairs = []
        for n, label in enumerate(given):
            votes = Counter(each[n] for each in voters if each[n] != "-").most_common(2)
            clear = len(votes) == 1 or (len(votes) == 2 and votes[0][1] > votes[1][1])
            if label != "-" and clear:
                pairs.append((label, votes[0][0]))
        agreement = _row(results, "consensus_agreement", rater)
        assert agreement["estimate"] == pytest.approx(np.mean([a == b for a, b in pairs]))
        assert agreement["n_units"] == len(pairs)
        kappa = _row(results, "consensus_kappa", rater)
        theirs = cohen_kappa_score(*zip(*pairs, strict=True), labels=list(THREE))
        assert kappa["estimate"] == pytest.approx(theirs)
        assert kappa["low"] < kappa["estimate"] < kappa["high"]
        assert ("against the other humans" in kappa["note"]) == (rater != "g")


def test_ties_are_a_share_with_an_interval(make_ratings: Callable) -> None:
    ratings = make_ratings({"ann": "1" * 40, "ben": "1" * 30 + "2" * 10, "cem": "1" + "-" * 39})
    results = analyse(ratings, None, [Scale("", THREE)], resamples=200).results
    row = _row(results, "consensus_ties", "")
    assert row["estimate"] == pytest.approx(10 / 40)
    assert row["low"] < 0.25 < row["high"]


def test_adjudicators_have_no_vote(make_matrix: Callable) -> None:
    matrix = make_matrix(
        {"ann": "1122" * 10, "ben": "1121" * 10, "chair": "2222" * 10, "g": "1122" * 10},
        Scale("", ("1", "2")),
        ["g"],
    )
    coded = replace(matrix.on_categories(), kinds=("human", "human", "adjudicator", "model"))
    rows = ResultRows("")
    add_consensus_rows(rows, coded, Resamples(np.ones(40), 20, np.random.default_rng(1)))
    row = rows.get("consensus_agreement", "humans", "g", at="majority")
    assert row is not None
    assert (row["estimate"], row["n_units"]) == (1.0, 30)
    assert rows.get("consensus_agreement", "humans", "chair", at="majority") is None
