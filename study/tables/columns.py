"""What a table must have and must not have: columns, rows, keys that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

INCLUSION = "inclusion_probability"
"""The units column that says how likely a unit was to be among those that people label."""


def require_columns(
    frame: pd.DataFrame, columns: Iterable[str], source: str, hint: str = ""
) -> None:
    """Raises InputError for the first of these columns that is missing; `hint` ends the message."""
    for column in columns:
        if column not in frame:
            raise InputError(f"{source}: the column {column!r} is missing{hint}")


def refuse_columns(frame: pd.DataFrame, reserved: Collection[str], source: str) -> None:
    """Raises InputError for the first column whose name stands for something of our own."""
    for column in map(str, frame.columns):
        if column in reserved:
            raise InputError(
                f"{source}: the column {column!r} means something else here; rename it"
            )


def require_rows(frame: pd.DataFrame, source: str, noun: str) -> None:
    """Raises InputError where a table has no rows; `noun` says rows of what."""
    if frame.empty:
        raise InputError(f"{source} has a header but no {noun}; add at least one row")


def first_repeat(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[int, int] | None:
    """The positions of the first row whose cells in these columns stood before, and of the row
    where they did; None where all differ.
    """
    keys = frame[list(columns)]
    again = keys.duplicated().to_numpy()
    if not again.any():
        return None
    at = int(again.argmax())
    return at, int((keys == keys.iloc[at]).all(axis=1).to_numpy().argmax())


def shortened(text: str) -> str:
    """A cell as messages quote it.

    >>> shortened("yes"), len(shortened("x" * 1000))
    ('yes', 40)
    """
    return text if len(text) <= 40 else f"{text[:37]}..."
