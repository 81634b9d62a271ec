"""The majority of the other humans, against plain counts."""

from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, analyse, majority
from tests.analysis.make import analyse_labels, noisy, ratings_of, row_of, rows_of

THREE = ("1", "2", "3")


def test_majority_declares_ties():
    labels = [["a", "b", None], ["a", "a", "b"], [None, None, None], ["b", None, None]]
    found = majority(labels, categories=["a", "b"])
    assert found.labels == (None, "a", None, "b")
    assert found.tied.tolist() == [True, False, False, False]
    assert found.ties == pytest.approx(1 / 3)


@pytest.mark.slow
def test_a_human_is_set_beside_the_others(rng):
    truth = rng.integers(0, 3, 100)
    people = ("ann", "ben", "cem", "dot")
    labels = {name: noisy(rng, truth, 3, 0.7, missing=0.15) for name in people}
    labels["g"] = noisy(rng, truth, 3, 0.8)
    found = analyse_labels(labels, Scale("", THREE), resamples=200)
    for rater, given in labels.items():
        voters = [each for name, each in labels.items() if name not in (rater, "g")]
        pairs = []
        for n, label in enumerate(given):
            votes = Counter(each[n] for each in voters if each[n] != "-").most_common(2)
            clear = len(votes) == 1 or (len(votes) == 2 and votes[0][1] > votes[1][1])
            if label != "-" and clear:
                pairs.append((label, votes[0][0]))
        agreement = row_of(found, "consensus_agreement", "humans", rater)
        assert agreement["estimate"] == pytest.approx(np.mean([a == b for a, b in pairs]))
        assert agreement["n_units"] == len(pairs)
        kappa = row_of(found, "consensus_kappa", "humans", rater)
        theirs = cohen_kappa_score(*zip(*pairs, strict=True), labels=list(THREE))
        assert kappa["estimate"] == pytest.approx(theirs)
        assert kappa["low"] < kappa["estimate"] < kappa["high"]
        assert ("against the other humans" in kappa["note"]) == (rater != "g")


def test_ties_are_a_share_with_an_interval():
    labels = {"ann": "1" * 40, "ben": "1" * 30 + "2" * 10, "cem": "1" + "-" * 39}
    found = analyse_labels(labels, Scale("", THREE), resamples=200)
    row = row_of(found, "consensus_ties", "humans", "", subset="all")
    assert row["estimate"] == pytest.approx(10 / 40)
    assert row["low"] < 0.25 < row["high"]


def test_adjudicators_have_no_vote():
    labels = {"ann": "1122" * 10, "ben": "1121" * 10, "chair": "2222" * 10, "g": "1122" * 10}
    ratings = ratings_of(labels)
    ratings.loc[ratings["rater_id"] == "chair", "rater_kind"] = "adjudicator"
    found = analyse(ratings, None, [Scale("", ("1", "2"))], resamples=20)
    row = row_of(found, "consensus_agreement", "humans", "g")
    assert (row["estimate"], row["n_units"]) == (1.0, 30)
    assert rows_of(found, "consensus_agreement", "humans", "chair").empty
