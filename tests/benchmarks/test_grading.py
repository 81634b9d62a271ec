"""How fast grading is."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.thorough
def test_the_grading_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("grading")
    assert "a synthetic study of 100 response units" in page
    assert "read\n100 times over the run" in page
