"""How often a promise above a cut is broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import routing


@pytest.mark.thorough
def test_the_routing_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("routing")
    assert page.count("| 0.9 |") + page.count("| 0.95 |") == len(routing.CELLS)
    assert "1 simulated studies a line (synthetic)" in page


@pytest.mark.parametrize("prevalence", [0.5, 0.1])
def test_agreement_above_a_cut_is_what_is_simulated(prevalence: float) -> None:
    cell = routing.Cell(routing.BETTER, 0.9, prevalence, 50_000, 4)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    assert 1 - wrong.mean() == pytest.approx(0.85, abs=0.005)
    cut = float(np.quantile(confidence, 0.4))
    who = routing.grader(0.85, prevalence)
    exact = who.agreement(float(routing.ndtri((1 + cut) / 2)))
    assert 1 - wrong[confidence >= cut].mean() == pytest.approx(exact, abs=0.005)
    assert routing.is_broken(cell, 0.0)
    assert not routing.is_broken(cell, 0.99)


def test_dips_are_broken_where_the_mean_above_a_cut_is() -> None:
    cell = routing.Cell(routing.DIPS, 0.9, 0.0, 50_000, 1)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    for cut, broken in ((0.7, False), (0.45, True), (0.0, False)):
        assert routing.is_broken(cell, cut) is broken
        assert (wrong[confidence >= cut].mean() > 0.1) is np.bool_(broken)
