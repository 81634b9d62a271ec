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
        assert page.count(f"| {question} |") == len(
            list(product(parts.DESIGNS, parts.SUBJECTS, parts.RATES))
        )
    assert "in 2 simulated studies" in page


@pytest.mark.parametrize("design", parts.DESIGNS)
@pytest.mark.parametrize("rate", parts.RATES)
def test_the_true_rates_are_those_of_the_studies(
    rate: float, design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = parts.DESIGNS[design]._replace(rest=20_000)
    monkeypatch.setitem(parts.DESIGNS, design, large)
    cell = parts.Cell(design, 3, rate)
    part_of, people, grader = parts.study(cell, np.random.default_rng(3))
    true = parts.true_rates(cell)
    for part, (hit, false_alarm) in enumerate(large.errors):
        here, graded = people[part_of == part], grader[part_of == part]
        assert len(here) == pytest.approx(20_000, rel=0.05)
        assert here.mean(axis=0) == pytest.approx(true[part], abs=0.015)
        assert graded[here == 1].mean() == pytest.approx(hit, abs=0.02)
        assert graded[here == 0].mean() == pytest.approx(false_alarm, abs=0.02)
    if large.one_sided:
        assert (true[:, -1, 0] - true[:, -1, 1] >= 0.9).all()
    first, second = people[part_of == 0, 0, 0], people[part_of == 0, 1, 0]
    assert np.corrcoef(first, second)[0, 1] > 0.15  # pairs are shared
