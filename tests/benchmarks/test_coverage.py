"""How often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import coverage


@pytest.mark.thorough
def test_the_coverage_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("coverage")
    assert page.count("| 0.9 |") == 15
    assert "in 2 simulated studies" in page


@pytest.mark.parametrize("prevalence", coverage.SHARES)
def test_the_population_is_what_is_simulated(prevalence: float) -> None:
    """The exact joint distribution against 100 simulated studies."""
    rng = np.random.default_rng(3)
    codes = np.vstack([coverage.simulate(prevalence, rng) for _ in range(100)])
    for first, second, quality in ((0, 1, coverage.HUMAN), (2, 3, coverage.GRADER)):
        cells = codes[:, first].astype(int) * coverage.Q + codes[:, second]
        seen = np.bincount(cells, minlength=coverage.Q**2).reshape(coverage.Q, -1) / len(codes)
        exact = coverage.joint(prevalence, coverage.HUMAN, quality)
        assert exact.sum() == pytest.approx(1.0)
        assert exact.sum(axis=0) == pytest.approx(coverage.SHARES[prevalence])
        assert seen == pytest.approx(exact, abs=0.005)
    verdicts = coverage.verdict_table(exact)
    assert verdicts[0].sum() == pytest.approx(prevalence)


def test_a_cell_passes_where_its_monte_carlo_interval_meets_the_bounds() -> None:
    near = coverage.Tally(runs=4000, below=100, above=196)
    far = coverage.Tally(runs=4000, below=160, above=180)
    assert near.coverage == pytest.approx(0.926)
    assert near.monte_carlo == pytest.approx((0.9175, 0.9337), abs=0.0002)
    assert near.holds
    assert not far.holds
