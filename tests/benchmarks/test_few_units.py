"""How often a good grader is refused on few units."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import few_units


@pytest.mark.thorough
def test_few_units_are_simulated_and_written(
    monkeypatch: pytest.MonkeyPatch, page_of: Callable[[str], str]
) -> None:
    monkeypatch.setattr(few_units, "UNITS", (6, 40))
    page = page_of("few_units")
    for world in few_units.WORLDS:
        assert page.count(f"| {world} |") == 2 * 2 * 2
    assert "Shares of 1 simulated studies" in page


def test_the_constant_grader_never_passes_and_the_good_one_is_not_refused_for_one_label() -> None:
    cell = few_units.Cell("latent", 10, 0.1, 3)
    (count,) = few_units.run_cell(cell, range(8), 20, 1).values()
    assert count.same > 0
    assert (count.refused, count.constant_passed) == (0, 0)
