"""Limits of what is read from a table, checked while it is read."""

from __future__ import annotations

from collections.abc import Sized

from evenhand.errors import InputError
from evenhand.texts import written

MOST_COLUMNS = 2_500
"""Columns of a table: annotators with a column each, and facts about the items."""
MOST_CELLS = 40_000_000
"""Cells of a table that is read as a whole, with those that a row of JSON leaves out."""


def check_table(columns: Sized | int, rows: int, name: str) -> None:
    """Raise InputError where a table has more columns, or more cells, than are read."""
    wide = columns if isinstance(columns, int) else len(columns)
    if wide > MOST_COLUMNS:
        raise InputError(written("too_large.columns", name=name, most=MOST_COLUMNS))
    if wide * rows > MOST_CELLS:
        raise InputError(written("too_large.cells", name=name, most=MOST_CELLS))
