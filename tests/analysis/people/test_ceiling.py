"""The human ceiling and the baselines, against sums written out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale
from evenhand.analysis.agreement.plain import cohen_kappa
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.people.ceiling import human_ceiling
from tests.analysis.make import analyse_labels, noisy, row_of

TWO = ("1", "2")


def _kappa(a: Sequence[str], b: Sequence[str], weights: str | None = None, q: int = 3) -> float:
    both = [(x, y) for x, y in zip(a, b, strict=True) if "-" not in (x, y)]
    labels = [str(k + 1) for k in range(q)]
    return float(cohen_kappa_score(*zip(*both, strict=True), labels=labels, weights=weights))


@pytest.mark.parametrize(("level", "weights"), [("nominal", None), ("ordinal", "linear")])
def test_the_difference_is_between_two_plain_means_on_the_same_units(rng, level, weights):
    truth = rng.integers(0, 3, 200)
    humans = {name: noisy(rng, truth, 3, 0.7) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.6, missing=0.3)
    scale = Scale("", ("1", "2", "3"), level)
    found = analyse_labels({**humans, "g": grader}, scale, resamples=300)
    on_same = {
        name: [x if g != "-" else "-" for x, g in zip(given, grader, strict=True)]
        for name, given in humans.items()
    }
    with_grader = np.mean([_kappa(given, grader, weights) for given in humans.values()])
    among = np.mean([_kappa(a, b, weights) for a, b in combinations(on_same.values(), 2)])
    row = row_of(found.results, "human_ceiling_difference", "humans", "g")
    assert row["estimate"] == pytest.approx(with_grader - among)
    assert row["low"] < row["estimate"] < row["high"]
    assert row["n_units"] == sum(label != "-" for label in grader)


def test_the_difference_is_paired(rng):
    """A grader g that repeats ann: (1 + k) / 2 - k = (1 - k) / 2 in every single resample."""
    truth = rng.integers(0, 2, 300)
    ann, ben = (noisy(rng, truth, 2, 0.7) for _ in range(2))
    bootstrap = Bootstrap(resamples=500)
    people = list(zip(ann, ben, strict=True))
    found = human_ceiling(people, ann, categories=TWO, bootstrap=bootstrap)
    apart = [str(unit) for unit in range(300)]  # else equal units are drawn together
    k = cohen_kappa(ann, ben, categories=TWO, clusters=apart, bootstrap=bootstrap)
    assert k.estimate == pytest.approx(_kappa(ann, ben, q=2))
    mirrored = [(1 - each) / 2 for each in (k.estimate, k.high, k.low)]
    assert [found.estimate, found.low, found.high] == pytest.approx(mirrored)


def test_without_30_shared_units_there_is_no_ceiling():
    results = analyse_labels(
        {"ann": "12" * 10, "ben": "12" * 10, "g": "12" * 10}, Scale("", TWO), resamples=100
    ).results
    row = row_of(results, "human_ceiling_difference", "humans", "g")
    assert np.isnan(row["estimate"])
    assert row["note"] == "fewer than 30 units have labels of the grader and a human"
    mean = row_of(results, "cohen_kappa", "humans", "g")
    assert mean["estimate"] == pytest.approx(1.0)
    assert "fewer than 30 units" in mean["note"]


def test_baselines_stand_beside_the_humans():
    """ann says 1 on 60 of 80 units, ben on 40: prevalence 5/8, so constant is right 5/8 of it."""
    results = analyse_labels(
        {"ann": "1" * 60 + "2" * 20, "ben": "1" * 40 + "2" * 40}, Scale("", TWO), resamples=200
    ).results
    constant = row_of(results, "observed_agreement", "humans", "baseline:constant")
    assert constant["estimate"] == pytest.approx((60 / 80 + 40 / 80) / 2)
    assert "always 1" in constant["note"]
    random = row_of(results, "observed_agreement", "humans", "baseline:random")
    expected = [(a * 5 + (80 - a) * 3) / 8 / 80 for a in (60, 40)]
    assert random["estimate"] == pytest.approx(np.mean(expected))
    people = _kappa("1" * 60 + "2" * 20, "1" * 40 + "2" * 40, q=2)
    for name in ("baseline:constant", "baseline:random"):
        assert row_of(results, "cohen_kappa", "humans", name)["estimate"] == 0.0
        difference = row_of(results, "human_ceiling_difference", "humans", name)
        assert difference["estimate"] == pytest.approx(-people)
    assert "constant_rater" in row_of(results, "cohen_kappa", "humans", "baseline:constant")["note"]
