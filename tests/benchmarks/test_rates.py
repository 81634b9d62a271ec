"""How often the intervals of true positive and true negative rates hold the truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import rates


@pytest.mark.thorough
def test_the_benchmark_of_rates_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("rates")
    assert page.count("\n| ") == len(rates.POPULATIONS) + 2
    assert "5 a line" in page
