"""How often a bias is found that is there, or is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import bias


@pytest.mark.thorough
def test_the_bias_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("bias")
    assert all(f"| {cell.title} | " in page for cell in bias.CELLS)
    assert "3 simulated studies a line" in page


@pytest.mark.parametrize("law", ["normal", "skew", "heavy", "two values"])
def test_quality_has_the_gap_it_claims(law: str) -> None:
    """Without noise a share of .5 is affirmed, and own units by the law's share beyond the gap."""
    rng = np.random.default_rng(5)
    cell = bias.Cell("", law=law, gap=0.0, strict=0.0, pairs=5000, prevalence=0.3)
    people, _, own = bias.draw(cell, rng)
    assert people.mean() == pytest.approx(0.3, abs=0.02)
    apart = people[own == 1].mean() - people[own == 0].mean()
    assert apart == pytest.approx(0.0, abs=0.02)
    better, _, own = bias.draw(bias.replace(cell, gap=1.0), rng)
    assert better[own == 1].mean() - better[own == 0].mean() > 0.2
