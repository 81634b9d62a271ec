"""Text cells of CSV files that no spreadsheet runs as a formula."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_BEGINS = r"[=+\-@\t\r\n＝＋－＠]"
"""First characters of a formula, full-width signs included, which some spreadsheets accept."""
_RISKY = re.compile(f"'*{_BEGINS}")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_GUARDED = re.compile(f"'+{_BEGINS}")
"""Beginning of a cell that has an apostrophe put before it."""

_GUARDED_BYTES = re.compile(_GUARDED.pattern.encode())


def guarded(text: str) -> str:
    """The text as a cell; numbers stay as they are.

    One that begins with = + - @ (full-width, too), a tab or a line break gets an apostrophe before
    it, and so does one that begins like such a cell: taking one apostrophe off always restores the
    text.

    >>> guarded("=1+1"), guarded("-0.5"), guarded("'=quoted"), guarded("'tis plain")
    ("'=1+1", '-0.5', "''=quoted", "'tis plain")
    """
    return f"'{text}" if _RISKY.match(text) and not _NUMBER.fullmatch(text) else text


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with all text cells guarded; other cells are unchanged."""
    frame = frame.copy()
    for name in frame.select_dtypes(exclude="number"):
        frame[name] = frame[name].map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
    return frame


def unguarded_frame(frame: pd.DataFrame, content: bytes) -> pd.DataFrame:
    """The texts of guarded cells again; `content` is the file, which mostly has none."""
    if not _GUARDED_BYTES.search(content):
        return frame
    return frame.map(lambda cell: cell[1:] if _GUARDED.match(cell) else cell)
