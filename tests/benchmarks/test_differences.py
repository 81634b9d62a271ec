"""How often subjects' differences hold the truth together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from benchmarks import differences


@pytest.mark.thorough
def test_the_coverage_of_differences_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("differences")
    designs = (differences.SUBJECTS, differences.LABELLED, differences.RATES)
    for population in differences.POPULATIONS:
        assert page.count(f"| {population} |") == len(list(product(*designs)))
    assert "in 2 simulated studies" in page


@pytest.mark.parametrize("population", differences.POPULATIONS)
@pytest.mark.parametrize("rate", differences.RATES)
def test_the_true_rates_are_those_of_the_studies(population: str, rate: float) -> None:
    rng = np.random.default_rng(3)
    cell = differences.Cell(population, 3, 20_000, rate)
    true, people, grader = differences.study(cell, rng)
    assert people.mean(axis=0) == pytest.approx(true, abs=0.012)
    assert np.corrcoef(people[:, 0], people[:, 1])[0, 1] > 0.1  # prompts are shared
    assert np.corrcoef(people[:, 0], grader[:, 0])[0, 1] > 0.1
