"""How fast coefficients and commands are."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.thorough
def test_the_speed_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("agreement")
    assert "| Cohen kappa of two raters | 1,000,000 labels | scikit-learn |" in page
    assert "| `evenhand --help` |" in page
