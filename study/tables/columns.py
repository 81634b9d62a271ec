"""Checks of a table's columns and rows: required, reserved, and unique ones."""

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
    """Raise InputError for the first column whose name is reserved."""
    for column in map(str, frame.columns):
        if column in reserved:
            raise InputError(
                f"{source}: the column {column!r} means something else here; rename it"
            )


def require_rows(frame: pd.DataFrame, source: str, noun: str) -> None:
    """Raise InputError where a table has no rows; `noun` names the rows."""
    if frame.empty:
        raise InputError(f"{source} has a header but no {noun}; add at least one row")


def first_repeat(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the first row whose cells in these columns repeat an earlier row's,
    and of that earlier row; None where all differ.
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
