"""What is plainly wrong with a grader is said; and whose labels it repeats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse

FIVE = Scale("tone", ("1", "2", "3", "4", "5"), level="ordinal")
ABC = Scale("best", ("A", "B", "C"))
N = 300


@pytest.fixture
def people(noisy: Callable, rng: np.random.Generator) -> dict[str, list[str]]:
    """Three people on a scale of five."""
    truth = rng.integers(0, 5, N)
    return {"truth": truth, **{f"h{k}": noisy(rng, truth, 5, 0.8) for k in range(3)}}


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (lambda truth: 4 - truth, "looks inverted"),
        (lambda truth: np.minimum(truth + 2, 4), ""),
        (lambda truth: np.where(np.arange(N) < 3, truth, 2), "answers 3 on 99%"),
    ],
)
def test_plain_faults(make_ratings: Callable, people: dict, seen: Callable, words: str) -> None:
    labels = {name: each for name, each in people.items() if name != "truth"}
    labels["g"] = [FIVE.categories[code] for code in seen(people["truth"])]
    found = analyse(make_ratings(labels, ["g"]), None, [FIVE], resamples=100).verdicts[0]
    assert found["verdict"] in ("do_not_use", "only_with_correction")
    assert words in found["sentence"]


def test_one_category_too_high(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    scale = Scale("tone", ("1", "2", "3", "4", "5"), level="ordinal")
    truth = rng.integers(0, 4, N) // 2 + 1  # 2 and 3 of five
    labels = {f"h{k}": [scale.categories[t] for t in truth] for k in range(3)}
    for each in labels.values():
        for at in rng.integers(0, N, 30):
            each[at] = scale.categories[rng.integers(1, 3)]
    labels["g"] = [scale.categories[t + 1] for t in truth]
    found = analyse(make_ratings(labels, ["g"]), None, [scale], resamples=100).verdicts[0]
    assert found["verdict"] in ("do_not_use", "only_with_correction")
    assert "one category too high" in found["sentence"]


def test_exchanged_categories(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 3, N)
    names = np.array(ABC.categories)
    labels = {f"h{k}": names[noisy_codes(noisy, rng, truth)].tolist() for k in range(3)}
    labels["g"] = names[np.array([1, 0, 2])[truth]].tolist()
    found = analyse(make_ratings(labels, ["g"]), None, [ABC], resamples=100).verdicts[0]
    assert "exchange categories: read A as B, B as A" in found["sentence"]


def noisy_codes(noisy: Callable, rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Codes that are right with .8."""
    return np.array([int(label) - 1 for label in noisy(rng, truth, 3, 0.8)])


def test_good_on_one_side_only(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    two = Scale("tone", ("1", "2"))
    truth, n = rng.integers(0, 2, N), N
    labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(3)}
    seen = np.where(np.arange(n) % 2 == 0, truth, rng.integers(0, 2, n))
    ratings = make_ratings(labels | {"g": noisy(rng, seen, 2, 0.97)}, ["g"])
    names = list(ratings["unit_id"].drop_duplicates())
    pairs = [f"p{k // 2}" for k in range(n)]
    units = pd.DataFrame({"unit_id": names, "cluster_id": pairs, "side": list("ab") * (n // 2)})
    found = analyse(ratings, units, [two], resamples=100).verdicts[0]
    assert "within the margin in side=a" in found["sentence"]
    assert found["verdict"] != "may_stand_in"


def test_a_copy_of_a_person_is_not_set_beside_that_person(
    make_ratings: Callable, people: dict
) -> None:
    labels = {name: each for name, each in people.items() if name != "truth"}
    found = analyse(make_ratings(labels | {"g": labels["h1"]}, ["g"]), None, [FIVE], resamples=100)
    verdict = found.verdicts[0]
    assert "Its labels are those of h1 on 100% of units" in verdict["sentence"]
    assert ", two people)" in verdict["sentence"]
    rows = found.results.query("rater_a == 'humans' and rater_b == 'g' and subset == 'all'")
    kappas = rows.set_index("statistic")["estimate"]
    assert kappas["weighted_kappa_quadratic"] < 0.95


def test_a_copy_of_one_of_two_leaves_nobody_to_compare_with(
    make_ratings: Callable, people: dict
) -> None:
    labels = {"h0": people["h0"], "h1": people["h1"], "g": people["h1"]}
    verdict = analyse(make_ratings(labels, ["g"]), None, [FIVE], resamples=100).verdicts[0]
    assert verdict["verdict"] == "cannot_tell"
    assert "only one other person labelled" in verdict["sentence"]


def test_two_graders_with_the_same_labels(make_ratings: Callable, people: dict) -> None:
    labels = {name: each for name, each in people.items() if name != "truth"}
    grader = [FIVE.categories[code] for code in people["truth"]]
    ratings = make_ratings(labels | {"g": grader, "k": grader}, ["g", "k"])
    found = {
        each["grader"]: each for each in analyse(ratings, None, [FIVE], resamples=100).verdicts
    }
    assert "Every label is the same as that of g." in found["k"]["sentence"]
    assert found["g"]["verdict"] == found["k"]["verdict"]


def test_two_who_are_nearly_always_right_are_no_copies(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 5, N)
    labels = {f"h{k}": noisy(rng, truth, 5, keep) for k, keep in enumerate((0.97, 0.97, 0.97))}
    ratings = make_ratings(labels | {"g": noisy(rng, truth, 5, 0.99)}, ["g"])
    verdict = analyse(ratings, None, [FIVE], resamples=100).verdicts[0]
    assert "labels are those of" not in verdict["sentence"]


def test_people_who_are_alike_hide_a_copy_of_both_and_are_named(
    make_ratings: Callable, people: dict
) -> None:
    """Who copied whom, or whether both are right, cannot be told: it decides nothing."""
    labels = {name: each for name, each in people.items() if name != "truth"}
    labels |= {"h3": labels["h1"], "g": labels["h1"]}
    found = analyse(make_ratings(labels, ["g"]), None, [FIVE], resamples=100)
    (note,) = found.notes
    assert note.startswith("tone: h1 and h3 gave the same label on every unit that they share.")
    assert "labels are those of" not in found.verdicts[0]["sentence"]


@pytest.mark.parametrize(("units", "rarer"), [(N, 4), (29, 29)])
def test_people_who_are_alike_by_the_nature_of_it_are_not_named(
    make_ratings: Callable, units: int, rarer: int
) -> None:
    same = ["2"] * rarer + ["1"] * (units - rarer)
    same[0] = "3"
    other = ["1"] * units
    labels = {"h0": same, "h1": same, "h2": other, "g": same}
    assert not analyse(make_ratings(labels, ["g"]), None, [FIVE], resamples=100).notes
