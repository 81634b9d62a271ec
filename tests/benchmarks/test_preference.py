"""How often the intervals of win rates and strengths hold the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import preference


@pytest.mark.thorough
def test_the_coverage_of_preferences_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("preference")
    assert page.count("\n| ") == len(preference.POPULATIONS) * len(preference.ESTIMATES) + 2
    assert "2 studies a line" in page


def test_studies_are_simulated_as_they_are_said_to_be() -> None:
    population = preference.Population("many", (0.8, -0.8), 3000, labelled=1.0, apart=1.0)
    truth = preference.truth_of(population)
    ratings, _ = preference.simulate(population, np.random.default_rng(1))
    worth = ratings["label"].map({"A": 1.0, "tie": 0.5, "B": 0.0})
    people = ratings["rater_kind"] == "human"
    assert worth[people].mean() == pytest.approx(truth["win_rate"][0], abs=0.02)
    by_order = worth[people].groupby(ratings["order"]).mean()
    assert by_order["ab"] - by_order["ba"] == pytest.approx(truth["order_gain"][0], abs=0.03)
    assert truth["strength"][0] < 0.8  # qualities that vary, and ties, bring win rates together
