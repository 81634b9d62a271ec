"""What the first minute costs: the core stays small. What it needs comes from the package index."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from benchmarks.first_minute import MEGABYTES


@pytest.mark.thorough
def test_the_core_is_small_and_has_a_verdict_soon(page_of: Callable[[str], str]) -> None:
    page = page_of("first_minute")
    bounds = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+) \| [\d.]+ \| ", page, re.MULTILINE))
    assert 5 < float(bounds["MB of `evenhand` beyond numpy, scipy and pandas"]) <= MEGABYTES
    assert len(bounds) == 3
    rows = re.findall(r"^\| (numpy, scipy, pandas|evenhand) \|(.*)\|$", page, re.MULTILINE)
    assert [len(cells.split("|")) for _, cells in rows] == [5, 5]
