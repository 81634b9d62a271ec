"""Rows of results and what they are found by."""

from __future__ import annotations

from evenhand.analysis.results import RESULTS_COLUMNS, RESULTS_KEY, key_of


def test_the_key_of_a_row_is_its_key_columns() -> None:
    row = {name: name for name in RESULTS_COLUMNS}
    assert key_of(row) == RESULTS_KEY  # type: ignore[arg-type]
