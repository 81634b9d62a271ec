"""Checks of a table's columns and rows: which fault is named, and where it stands."""

from __future__ import annotations

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.study.tables.columns import (
    first_repeat,
    refuse_columns,
    require_columns,
    require_rows,
)

TABLE = pd.DataFrame(
    [("a", "1"), ("b", "1"), ("a", "2"), ("b", "1"), ("a", "1")],
    columns=["id", "text"],
    index=[0, 1, 3, 4, 6],  # blank lines in between
)


def test_the_first_missing_column_is_named_with_the_mend():
    require_columns(TABLE, ("id", "text"), "f.csv")
    with pytest.raises(InputError, match=r"^f\.csv: the column 'x' is missing; add it$"):
        require_columns(TABLE, ("id", "x", "y"), "f.csv", "; add it")


def test_the_first_column_in_the_file_that_is_taken_is_named():
    refuse_columns(TABLE, {"side"}, "f.csv")
    with pytest.raises(InputError, match="'id' means something else here"):
        refuse_columns(TABLE, ("text", "id"), "f.csv")


def test_a_header_alone_is_no_table():
    require_rows(TABLE, "f.csv", "pairs")
    with pytest.raises(InputError, match=r"^f\.csv has a header but no pairs; add at least one"):
        require_rows(TABLE.iloc[:0], "f.csv", "pairs")


def test_the_first_row_that_stood_before_comes_with_where_it_stood():
    assert first_repeat(TABLE, ["id", "text"]) == (3, 1)
    assert first_repeat(TABLE, ["id"]) == (2, 0)
    assert first_repeat(TABLE.iloc[:3], ["id", "text"]) is None
