"""How often intervals hold the truth where clusters are few."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import coverage, small_samples


@pytest.mark.thorough
def test_the_benchmark_of_small_samples_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("small_samples")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 0.")]
    assert len(rows) == 10 * len(small_samples.CELLS)
    assert {tuple(row[:3]) for row in rows} == {
        (f"{cell.prevalence}", f"{cell.pairs}", f"{cell.subjects}") for cell in small_samples.CELLS
    }
    for row in rows:  # what misses on neither side is covered
        covered, below, above = (float(cell.split(" ")[0]) for cell in row[5:8])
        assert covered + below + above == pytest.approx(1.0, abs=0.002)


def test_intervals_that_miss_are_told_by_their_side() -> None:
    cell = small_samples.Cell(0.1, 50, 1)
    found = {
        small_samples.Key(cell, statistic, method): coverage.Tally(runs=100)
        for statistic in coverage.STATISTICS
        for method in coverage.METHODS
    }
    found[small_samples.Key(cell, "kappa", "percentile")] = coverage.Tally(
        runs=100, below=20, above=10, undefined=20
    )
    page = small_samples.document(found, 100, 40, 1)
    assert "1 of 5 cells fall short" in page
    assert "- 0.625: Cohen kappa, two people, verdict, prevalence 0.1, 50 pairs x 1" in page
    assert "misses lie mostly below" in page
    assert "| 0.625 [0.515, 0.723] * | 0.250 | 0.125 | 0.200 |" in page
