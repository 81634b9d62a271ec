"""Majority and Dawid-Skene, against a published fit and a plain second implementation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, analyse, dawid_skene, majority
from evenhand.analysis.agreement.consensus import add_consensus_rows
from evenhand.analysis.agreement.dawid_skene import MIN_RATERS, DawidSkene
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.results import ResultRows
from tests.known_values import known_values

THREE = ("1", "2", "3")


def _plain_em(labels: list[list[str]], categories: tuple[str, ...], steps: int) -> tuple:
    """EM with loops, as Dawid & Skene (1979), equations 2.3 to 2.5, write it."""
    q, raters = len(categories), len(labels[0])
    code = {category: k for k, category in enumerate(categories)}
    votes = [[row.count(category) for category in categories] for row in labels]
    belief = [[vote / sum(row) for vote in row] for row in votes]
    for _ in range(steps):
        prior = [sum(row[k] for row in belief) / len(belief) for k in range(q)]
        error = np.zeros((raters, q, q))
        for row, own in zip(labels, belief, strict=True):
            for j, label in enumerate(row):
                if label != "-":
                    error[j, :, code[label]] += own
        error /= error.sum(axis=2, keepdims=True)
        likelihood = 0.0
        for i, row in enumerate(labels):
            joint = list(prior)
            for j, label in enumerate(row):
                if label != "-":
                    joint = [joint[k] * error[j, k, code[label]] for k in range(q)]
            likelihood += np.log(sum(joint))
            belief[i] = [each / sum(joint) for each in joint]
    return np.array(belief), np.array(prior), likelihood


def _anaesthetists(starts: int) -> DawidSkene:
    data = known_values("dawid_skene1979")["data"]
    columns: dict[tuple[int, int], dict[int, int]] = {}
    for item, rater, rating in zip(data["item"], data["rater"], data["rating"], strict=True):
        time = 0
        while item in columns.setdefault((rater, time), {}):
            time += 1
        columns[rater, time][item] = rating
    names = sorted(columns)
    labels = [[columns[name].get(item) for name in names] for item in range(1, 46)]
    raters = [rater for rater, _ in names]
    return dawid_skene(labels, categories=[1, 2, 3, 4], raters=raters, starts=starts)


def test_anaesthetists() -> None:
    """Dawid & Skene (1979): 45 patients, five anaesthetists, the first of them three times."""
    known = known_values("dawid_skene1979")
    expected, tolerance = known["expected"], known["tolerance"]
    found = _anaesthetists(starts=1)
    assert found.converged
    assert found.prevalence == pytest.approx(expected["class_prior"], abs=tolerance)
    assert found.log_likelihood == pytest.approx(expected["log_likelihood"], abs=tolerance)
    assert found.confusion[0] == pytest.approx(np.array(expected["rater1_confusion"]), abs=1e-4)
    assert found.confusion.shape == (5, 4, 4)


def test_the_authors_start_does_not_lead_highest() -> None:
    """Of their own data another solution is likelier; the labels cannot tell the two apart, and
    not all patients are in the same classes."""
    published, best = _anaesthetists(starts=1), _anaesthetists(starts=10)
    assert best.converged
    assert best.log_likelihood > published.log_likelihood + 1
    assert best.unstable >= (best.codes != published.codes).mean() > 0
    assert published.unstable == 0.0
    data, likelihood = known_values("dawid_skene1979")["data"], 0.0
    for item in range(1, 46):
        joint = best.prevalence.copy()
        for one, rater, rating in zip(data["item"], data["rater"], data["rating"], strict=True):
            if one == item:
                joint *= best.confusion[rater - 1, :, rating - 1]
        likelihood += np.log(joint.sum())
    assert best.log_likelihood == pytest.approx(likelihood)


@pytest.mark.slow
def test_without_rivals_the_fit_is_the_authors(noisy: Callable, rng: np.random.Generator) -> None:
    """Also where there are so many labels that starts are compared on some of the units."""
    truth = rng.integers(0, 3, 6000)
    labels = np.array([noisy(rng, truth, 3, 0.7) for _ in range(30)]).T
    one, ten = (dawid_skene(labels, categories=THREE, starts=starts) for starts in (1, 10))
    assert np.array_equal(one.posterior, ten.posterior)
    assert ten.unstable == 0.0


def test_classes_are_called_by_their_units_labels(rng: np.random.Generator) -> None:
    """The likelihood is the same by any names; noise leads EM to all sorts of classes."""
    for _ in range(5):
        labels = rng.choice(list(THREE), (40, 4))
        found = dawid_skene(labels, categories=THREE, starts=10)
        given = np.array([[(row == c).sum() for c in THREE] for row in labels])
        kept = found.posterior.T @ given
        by_name = [sum(kept[order[k], k] for k in range(3)) for order in permutations(range(3))]
        assert kept.trace() == pytest.approx(max(by_name))


@pytest.mark.slow
def test_a_consensus_of_noise_is_called_unstable(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 3, 120)
    for keep, unstable in ((0.05, True), (0.95, False)):
        labels = {name: noisy(rng, truth, 3, keep) for name in ("ann", "ben", "cem", "g")}
        results = analyse(make_ratings(labels, ["g"]), None, [Scale("", THREE)], resamples=50)
        notes = [
            _row(results.results, "consensus_kappa", "g", "dawid_skene")["note"],
            *results.results.query("statistic == 'dawid_skene_prevalence'")["note"],
        ]
        assert all(("consensus not stable: " in note) == unstable for note in notes)
        assert not unstable or notes[0].endswith("% of units differ between solutions")


@pytest.mark.slow
def test_the_fit_is_that_of_plain_loops(noisy: Callable, rng: np.random.Generator) -> None:
    truth = rng.integers(0, 3, 60)
    raters = [noisy(rng, truth, 3, keep, missing=0.2) for keep in (0.9, 0.7, 0.6, 0.8)]
    rows = [list(row) for row in zip(*raters, strict=True)]
    rows = [row for row in rows if set(row) != {"-"}]
    labels = [[None if label == "-" else label for label in row] for row in rows]
    found = dawid_skene(labels, categories=THREE)
    belief, prior, likelihood = _plain_em(rows, THREE, 600)
    assert found.converged
    assert found.posterior == pytest.approx(belief, abs=1e-5)
    assert found.prevalence == pytest.approx(prior, abs=1e-5)
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-8)


def test_the_fit_does_not_depend_on_the_order_or_on_empty_rows(
    noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 80)
    labels = np.array([noisy(rng, truth, 2, 0.8) for _ in range(4)]).T.astype(object)
    first = dawid_skene(labels, categories="12")
    second = dawid_skene(np.vstack([labels[::-1, ::-1], [[None] * 4]]), categories="12")
    assert second.posterior[:-1] == pytest.approx(first.posterior[::-1])
    assert np.isnan(second.posterior[-1]).all()
    assert second.codes[-1] == -1
    assert second.confusion == pytest.approx(first.confusion[::-1])


def test_weights_of_raters_are_learnt() -> None:
    """Two who guess outvote one who knows, in the majority; not where the guesses are seen."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    good = [np.where(rng.random(400) < 0.97, truth, 1 - truth) for _ in range(2)]
    guesses = [rng.integers(0, 2, 400) for _ in range(3)]
    labels = np.array([*good, *guesses]).T
    by_model = dawid_skene(labels, categories=[0, 1]).codes
    by_vote = [int(label) for label in majority(labels, categories=[0, 1]).labels]
    assert (by_model == truth).mean() > 0.95
    assert (np.array(by_vote) == truth).mean() < 0.9


def test_majority_declares_ties() -> None:
    labels = [["a", "b", None], ["a", "a", "b"], [None, None, None], ["b", None, None]]
    found = majority(labels, categories=["a", "b"])
    assert found.labels == (None, "a", None, "b")
    assert found.tied.tolist() == [True, False, False, False]
    assert found.ties == pytest.approx(1 / 3)


def _row(results: pd.DataFrame, statistic: str, rater_b: str, at: str) -> pd.Series:
    keys = ["statistic", "rater_a", "rater_b", "subset", "at"]
    return results.set_index(keys).loc[(statistic, "humans", rater_b, "all", at)]


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
        agreement = _row(results, "consensus_agreement", rater, "majority")
        assert agreement["estimate"] == pytest.approx(np.mean([a == b for a, b in pairs]))
        assert agreement["n_units"] == len(pairs)
        kappa = _row(results, "consensus_kappa", rater, "majority")
        theirs = cohen_kappa_score(*zip(*pairs, strict=True), labels=list(THREE))
        assert kappa["estimate"] == pytest.approx(theirs)
        assert kappa["low"] < kappa["estimate"] < kappa["high"]
        assert ("against the other humans" in kappa["note"]) == (rater != "g")
    people = [[None if x == "-" else x for x in labels[name]] for name in ("ben", "cem", "dot")]
    codes = dawid_skene(list(zip(*people, strict=True)), categories=THREE).codes
    own = np.array([("-123".index(label)) - 1 for label in labels["ann"]])
    both = (own >= 0) & (codes >= 0)
    row = _row(results, "consensus_agreement", "ann", "dawid_skene")
    assert row["estimate"] == pytest.approx((own == codes)[both].mean())
    assert "consensus held fixed in the resamples" in row["note"]


def test_ties_are_a_share_with_an_interval(make_ratings: Callable) -> None:
    ratings = make_ratings({"ann": "1" * 40, "ben": "1" * 30 + "2" * 10, "cem": "1" + "-" * 39})
    results = analyse(ratings, None, [Scale("", THREE)], resamples=200).results
    row = _row(results, "consensus_ties", "", "majority")
    assert row["estimate"] == pytest.approx(10 / 40)
    assert row["low"] < 0.25 < row["high"]


def test_two_voters_are_too_few_for_dawid_and_skene(make_ratings: Callable) -> None:
    ratings = make_ratings({"ann": "12" * 20, "ben": "12" * 20, "g": "12" * 20}, ["g"])
    results = analyse(ratings, None, [Scale("", ("1", "2"))], resamples=50).results
    row = _row(results, "consensus_kappa", "g", "dawid_skene")
    assert np.isnan(row["estimate"])
    assert row["note"].startswith("too_few_raters")
    assert MIN_RATERS == 3
    assert "dawid_skene_prevalence" not in set(results["statistic"])


def test_the_fit_has_rows_of_its_own(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 3, 90)
    labels = {name: noisy(rng, truth, 3, 0.8) for name in ("ann", "ben", "cem")}
    results = analyse(make_ratings(labels), None, [Scale("", THREE)], resamples=50).results
    fit = dawid_skene(list(zip(*labels.values(), strict=True)), categories=THREE)
    shares = results[results["statistic"] == "dawid_skene_prevalence"]
    assert shares["estimate"].to_numpy() == pytest.approx(fit.prevalence)
    cells = results[results["statistic"] == "dawid_skene_confusion"]
    assert cells["at"].tolist()[:4] == ["1>1", "1>2", "1>3", "2>1"]
    assert cells["estimate"].to_numpy() == pytest.approx(fit.confusion.ravel())


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
