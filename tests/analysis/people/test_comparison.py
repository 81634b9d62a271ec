"""Graders against each other and raters' leniency."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bootstrap.significance import mcnemar_exact

TWO = Scale("", ("1", "2"))


def _row(results: pd.DataFrame, statistic: str, rater_a: str, rater_b: str) -> pd.Series:
    keys = ["statistic", "rater_a", "rater_b"]
    return results.set_index(keys).loc[(statistic, rater_a, rater_b)]


def test_the_difference_of_two_graders_is_paired(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 300)
    labels = {f"h{k}": noisy(rng, truth, 2, 0.8) for k in range(3)}
    good, poor = noisy(rng, truth, 2, 0.9), noisy(rng, truth, 2, 0.4)
    ratings = make_ratings(
        {**labels, "good": good, "poor": poor, "same": good}, ["good", "poor", "same"]
    )
    results = analyse(ratings, None, [TWO], resamples=400).results
    row = _row(results, "kappa_difference", "good", "poor")
    means = [_row(results, "cohen_kappa", "humans", name)["estimate"] for name in ("good", "poor")]
    assert row["estimate"] == pytest.approx(means[0] - means[1])
    assert row["low"] > 0
    none = _row(results, "kappa_difference", "good", "same")
    # They never part on 300 units; of all units 1.2% might still be unlike these.
    apart = 1 - 0.025 ** (1 / 300)
    by_chance = 1 - (ratings["label"].value_counts(normalize=True) ** 2).sum()
    expected = [0.0, -apart / by_chance, apart / by_chance]
    assert none[["estimate", "low", "high"]].tolist() == pytest.approx(expected)
    assert _row(results, "mcnemar_p", "good", "same")["estimate"] == 1.0


def test_mcnemar_counts_who_is_of_the_majoritys_mind(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    """Units whose majority is tied take no part; ann and ben are tied on all units but 90."""
    from statsmodels.stats.contingency_tables import mcnemar

    truth = rng.integers(0, 2, 120)
    ann = noisy(rng, truth, 2, 1.0)
    ben = [*ann[:90], *["1" if label == "2" else "2" for label in ann[90:]]]
    g, h = noisy(rng, truth, 2, 0.7), noisy(rng, truth, 2, 0.5)
    labels = {"ann": ann, "ben": ben, "g": g, "h": h}
    results = analyse(make_ratings(labels, ["g", "h"]), None, [TWO], resamples=50).results
    row = _row(results, "mcnemar_p", "g", "h")
    right = [np.array(each[:90]) == np.array(ann[:90]) for each in (g, h)]
    table = [[(a & b).sum() for b in (right[1], ~right[1])] for a in (right[0], ~right[0])]
    assert row["estimate"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert row["n_units"] == 90
    only = f"only the first {table[0][1]}, only the second {table[1][0]}"
    assert only in row["note"]


def test_mcnemar_without_discordant_units_is_1() -> None:
    assert mcnemar_exact(0, 0) == 1.0


def test_leniency(make_ratings: Callable) -> None:
    """ann and g differ on 8 units, all one way: (8 - 0)^2 / 8 = 8, p = .0047 with one df."""
    ratings = make_ratings({"ann": "1" * 30 + "2" * 10, "g": "1" * 22 + "2" * 18}, ["g"])
    row = _row(analyse(ratings, None, [TWO], resamples=50).results, "stuart_maxwell_p", "ann", "g")
    assert row["estimate"] == pytest.approx(0.0046777350)
    assert row["note"] == "Holm p 0.004678; takes units as independent"


def test_leniency_of_two_raters_who_never_differ(make_ratings: Callable) -> None:
    ratings = make_ratings({"ann": "12" * 20, "g": "12" * 20}, ["g"])
    row = _row(analyse(ratings, None, [TWO], resamples=50).results, "stuart_maxwell_p", "ann", "g")
    assert row["estimate"] == 1.0
