"""What picking unsure units saves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import uncertainty


@pytest.mark.thorough
def test_the_uncertainty_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = uncertainty.CELLS[0], uncertainty.CELLS[-1]
    monkeypatch.setattr(uncertainty, "CELLS", cells)
    page = page_of("uncertainty")
    assert page.count("\n| probability | 0.") == 2
    assert "2 simulated studies a cell (synthetic)" in page
