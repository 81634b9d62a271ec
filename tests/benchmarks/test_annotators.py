"""Many annotators at once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest


@pytest.mark.thorough
def test_the_benchmark_of_many_annotators_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("annotators")
    assert "a synthetic study of 50 tasks that holds\n150 labels" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| SQLite | 2 |")]
    assert [row[2] for row in rows] == ["no", "yes"]
    assert float(re.search(r"a submit, ms of a processor \| ([\d.]+)", page)[1]) > 0
    assert "SQLite: its time for a submit and the next unit" in page
    assert all(row[-3:-1] == ["0", "0"] for row in rows)  # no errors, nothing lost
    assert [row[8] == "-" for row in rows] == [True, False]  # the lead's pages were drawn anew
    assert "| SQLite | 150 |" in page
