"""How often equal slices are called different."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import slices


@pytest.mark.thorough
def test_the_benchmark_of_slices_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("slices")
    for cell in slices.CELLS:
        assert page.count(f"| {cell.title} |") == 1
    assert "1 simulated studies" in page


@pytest.mark.parametrize("cell", slices.CELLS, ids=lambda cell: cell.title)
def test_agreement_is_what_a_cell_says(cell: slices.Cell) -> None:
    """Over many studies, in the worse slice and in the others."""
    if cell.rates or cell.spread is not None:
        pytest.skip("has no one rate")
    agreed: dict[bool, list[float]] = {False: [], True: []}
    for run in range(30):
        study = slices.draw(cell, np.random.default_rng(run))
        codes, part = study.coded.codes, study.columns[0].codes
        same = (codes[:, :3] == codes[:, [3]]).mean(axis=1)
        worse = part == (cell.worse[0] if cell.worse else -1)
        for each in {*worse.tolist()}:
            agreed[each] += same[worse == each].tolist()
    assert np.mean(agreed[False]) == pytest.approx(cell.rate, abs=0.02)
    if cell.worse:
        assert np.mean(agreed[True]) == pytest.approx(cell.worse[1], abs=0.05)
