"""Prompts as they come in files: in pairs, as a rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.prompts.lengths import LENGTH_COLUMNS
from evenhand.study.tables.columns import INCLUSION, refuse_columns, require_columns, require_rows
from evenhand.study.tables.formats import FIRST_ROW, read_table

if TYPE_CHECKING:
    import pandas as pd

RESERVED = (
    *("sample_position", "unit_id", "cluster_id", "subject", "side", "response"),
    INCLUSION,
    *LENGTH_COLUMNS,
)
"""Columns that the units of a study have of their own."""
PAIR_ID = re.compile(r"[^\s|]{1,64}")


def read_pairs(path: str | Path) -> pd.DataFrame:
    """A pairs file with its columns as they are, and `pair_id` first.

    Needs `prompt_a` and `prompt_b`; every other column is carried along. Without a column `pair_id`
    the ids are p0001, p0002, ... in row order. Raises InputError naming the first bad row: a prompt
    that is empty, two prompts that are the same, or a pair that occurs twice.
    """
    frame = read_table(path)
    name = Path(path).name
    needed = ("prompt_a", "prompt_b")
    require_columns(frame, needed, name, "; a pairs file needs prompt_a and prompt_b")
    refuse_columns(frame, RESERVED, name)
    require_rows(frame, name, "pairs")
    if "pair_id" not in frame:
        frame.insert(0, "pair_id", numbered_ids(len(frame)))
    _check_pairs(frame, name)
    return frame[["pair_id", *(column for column in frame if column != "pair_id")]]


def numbered_ids(count: int) -> list[str]:
    """p0001, p0002, ... with as many digits as the last one needs.

    >>> numbered_ids(2)
    ['p0001', 'p0002']
    """
    width = max(4, len(str(count)))
    return [f"p{n:0{width}d}" for n in range(1, count + 1)]


def sides_of(pairs: pd.DataFrame) -> tuple[str, ...]:
    """The sides that prompts have: a and b, or a alone where prompts are not paired."""
    return ("a", "b") if "prompt_b" in pairs else ("a",)


def prompts_noun(pairs: pd.DataFrame) -> str:
    """Return the noun for the rows of these prompts in a sentence."""
    if len(sides_of(pairs)) == 2:
        return "pairs"
    return "items" if "item_id" in pairs else "prompts"


def _check_pairs(frame: pd.DataFrame, name: str) -> None:
    ids: dict[str, int] = {}
    seen: dict[tuple[str, str], int] = {}
    for row, pair_id, prompt_a, prompt_b in zip(
        frame.index + FIRST_ROW, frame["pair_id"], frame["prompt_a"], frame["prompt_b"], strict=True
    ):
        where = f"{name}, row {row}"
        if not PAIR_ID.fullmatch(pair_id):
            raise InputError(f"{where}: pair_id {pair_id!r} must be 1-64 characters, no space or |")
        for column, prompt in (("prompt_a", prompt_a), ("prompt_b", prompt_b)):
            if not prompt.strip():
                raise InputError(f"{where}: {column} is empty; fill it in or take the row out")
        if prompt_a == prompt_b:
            raise InputError(f"{where}: prompt_a and prompt_b are the same; a pair needs two sides")
        if pair_id in ids:
            raise InputError(
                f"{where}: pair_id {pair_id!r} stands in row {ids[pair_id]} too; give it another"
            )
        if (prompt_a, prompt_b) in seen:
            raise InputError(
                f"{where}: the same pair stands in row {seen[prompt_a, prompt_b]}; "
                "take one of the two out"
            )
        ids[pair_id] = seen[prompt_a, prompt_b] = row
