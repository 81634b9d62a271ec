"""How often the calibration error's interval holds the truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import calibration


@pytest.mark.thorough
def test_the_calibration_benchmark_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("calibration")
    assert page.count("no information |") == 5
    assert page.count("\n| ") == len(calibration.POPULATIONS) + 4
    assert "1 simulated studies a line" in page
