"""How often a new wording is called better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import rewording


@pytest.mark.thorough
def test_the_rewording_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewording, "CELLS", rewording.CELLS[1:2] + rewording.CELLS[-1:])
    monkeypatch.setattr(rewording, "MANY", 4000)
    page = page_of("rewording")
    assert "2 simulated trials (synthetic)" in page
    assert "pass; the worst is" in page
    rows = [line for line in page.splitlines() if line.startswith(("| latent", "| guessing"))]
    assert len(rows) == 2


@pytest.mark.parametrize("cell", [rewording.CELLS[0], rewording.CELLS[-1]])
def test_people_agree_as_the_cell_says(
    cell: rewording.Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewording, "MANY", 20_000)
    share = rewording.share_for(rewording.plain(cell), 0.6)
    given = rewording.codes(cell, share, 8000, np.zeros(3), np.random.default_rng(3))
    assert rewording.alpha_of(given, cell) == pytest.approx(0.6, abs=0.03)
