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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "title",
    [
        "length, noise x 1.4, gap 1, stricter",
        "length, noise x 1.4 with heavy tails, more lenient",
    ],
)
def test_noise_that_grows_with_length_is_seldom_taken_for_a_bias(title: str) -> None:
    """At most .06 and two standard errors; without the second reading it is more than half."""
    (cell,) = (cell for cell in bias.CELLS if cell.title == title)
    found = np.stack([bias.study(cell, seed, 200) for seed in range(100)])
    accused = (found[:, :2, 1] > 0) | (found[:, :2, 2] < 0)
    assert accused[:, 0].mean() <= 0.06 + 2 * np.sqrt(0.06 * 0.94 / 100)
    assert accused[:, 1].mean() > 0.5


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
