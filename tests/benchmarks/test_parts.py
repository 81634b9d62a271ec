"""How often subjects' rates by part and by side hold the truth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from benchmarks import parts


@pytest.mark.thorough
def test_the_coverage_of_parts_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("parts")
    for question in parts.QUESTIONS.values():
        assert page.count(f"| {question} |") == len(list(product(parts.SUBJECTS, parts.RATES)))
    assert "in 2 simulated studies" in page


@pytest.mark.parametrize("rate", parts.RATES)
def test_the_true_rates_are_those_of_the_studies(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "REST", 20_000)
    cell = parts.Cell(3, rate)
    people, grader = parts.study(cell, np.random.default_rng(3))
    true = parts.true_rates(cell)
    assert people.mean(axis=1) == pytest.approx(true, abs=0.015)
    for part, (hit, false_alarm) in enumerate(parts.ERRORS):
        affirmed = people[part] == 1
        assert grader[part][affirmed].mean() == pytest.approx(hit, abs=0.015)
        assert grader[part][~affirmed].mean() == pytest.approx(false_alarm, abs=0.015)
    first, second = people[0, :, 0, 0], people[0, :, 1, 0]
    assert np.corrcoef(first, second)[0, 1] > 0.15  # pairs are shared
