"""Bradley-Terry strengths: against a published example, a logistic regression, and tables that have
none.
"""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm

from evenhand.analysis.subjects.preference import is_linked, strengths, why_undefined
from tests.conftest import ROOT

BASEBALL = json.loads((ROOT / "tests" / "reference" / "bradley_terry_agresti2002.json").read_text())


def by_regression(wins: np.ndarray) -> np.ndarray:
    """The same by a logistic regression without an intercept, a half win having half the weight."""
    n = len(wins)
    rows, won, weights = [], [], []
    for one, two in combinations(range(n), 2):
        row = np.zeros(n)
        row[one], row[two] = 1.0, -1.0
        for first, second, result in ((one, two, 1.0), (two, one, 0.0)):
            if wins[first, second] > 0:
                rows.append(row[1:])
                won.append(result)
                weights.append(wins[first, second])
    family = sm.families.Binomial()
    fit = sm.GLM(won, np.array(rows), family=family, freq_weights=np.array(weights)).fit(
        tol=1e-14, maxiter=200
    )
    found = np.concatenate([[0.0], fit.params])
    return found - found.mean()


def test_the_published_strengths_of_seven_teams() -> None:
    found = strengths(np.array([BASEBALL["wins"]], dtype=float))[0]
    relative = dict(zip(BASEBALL["teams"], found - found[-1], strict=True))
    assert relative == pytest.approx(BASEBALL["expected"], abs=BASEBALL["tolerance"])


@pytest.mark.parametrize("n", [2, 3, 6, 12])
def test_they_are_those_of_a_logistic_regression(n: int, rng: np.random.Generator) -> None:
    tables = []
    while len(tables) < 5:
        true = rng.normal(0, 1.5, n)
        chance = 1 / (1 + np.exp(true[None, :] - true[:, None]))
        wins = np.triu(rng.binomial(12, chance), 1).astype(float)
        wins += np.triu(rng.integers(0, 2, (n, n)) / 2, 1)  # some ties
        wins = np.triu(wins, 1) + np.triu(12.5 - wins, 1).T
        if is_linked(wins[None])[0]:
            tables.append(wins)
    found = strengths(np.array(tables))
    expected = np.array([by_regression(each) for each in tables])
    assert np.abs(found - expected).max() < 1e-6


def test_steep_tables_converge() -> None:
    """One lost in 10,000: a full Newton step from the middle would go far beyond."""
    wins = np.array([[[0.0, 9999.0, 9999.0], [1.0, 0.0, 5000.0], [0.5, 5000.0, 0.0]]])
    found = strengths(wins)[0]
    chance = 1 / (1 + np.exp(found[None, :] - found[:, None]))
    played = wins[0] + wins[0].T
    assert (played * chance).sum(axis=1) == pytest.approx(wins[0].sum(axis=1), rel=1e-9)


def test_tables_without_strengths_say_why() -> None:
    apart = np.zeros((4, 4))
    apart[0, 1] = apart[1, 0] = apart[2, 3] = apart[3, 2] = 5.0
    one = np.array([[0.0, 1.0], [0.0, 0.0]])
    unbeaten = np.array([[0.0, 3.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    for table, why in (
        (apart, "subjects_not_linked"),
        (one, "subject_unbeaten"),
        (unbeaten, "subject_unbeaten"),
        (unbeaten.T, "subject_unbeaten"),
    ):
        assert np.isnan(strengths(table[None])).all()
        assert why_undefined(table) == why
    # Resamples without strengths leave the others as they are.
    both = strengths(np.array([unbeaten, unbeaten + 0.5 * unbeaten.T]))
    assert np.isnan(both[0]).all()
    assert both[1] == pytest.approx(strengths((unbeaten + 0.5 * unbeaten.T)[None])[0])
