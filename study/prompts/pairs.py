"""Prompts and the responses to them, as they come in files. Prompts come in pairs, as a rule."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.prompts.lengths import LENGTH_COLUMNS
from evenhand.study.tables.ratings import FIRST_ROW, read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PAIR_ID",
    "RESERVED",
    "numbered_ids",
    "prompts_noun",
    "read_pairs",
    "read_responses",
    "sides_of",
]

RESERVED = (
    *("sample_position", "unit_id", "cluster_id", "subject", "side", "response"),
    *LENGTH_COLUMNS,
)
"""Columns that the units of a study have of their own."""
PAIR_ID = re.compile(r"[^\s|]{1,64}")
SUBJECT = re.compile(r"[^|\x00-\x1f]{1,120}")


def read_pairs(path: str | Path) -> pd.DataFrame:
    """A pairs file with its columns as they are, and `pair_id` first.

    Needs `prompt_a` and `prompt_b`; every other column is carried along. Without a column `pair_id`
    the ids are p0001, p0002, ... in row order. Raises InputError naming the first bad row: a prompt
    that is empty, two prompts that are the same, or a pair that stands there twice.
    """
    frame = read_table(path)
    name = Path(path).name
    for column in ("prompt_a", "prompt_b"):
        if column not in frame:
            raise InputError(
                f"{name}: the column {column!r} is missing; a pairs file needs prompt_a and "
                "prompt_b"
            )
    for column in RESERVED:
        if column in frame:
            raise InputError(f"{name}: the column {column!r} means something else here; rename it")
    if frame.empty:
        raise InputError(f"{name} has a header but no pairs; add at least one row")
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
    """What the rows of these prompts are called in a sentence."""
    return "pairs" if len(sides_of(pairs)) == 2 else "prompts"


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


def read_responses(path: str | Path, pairs: pd.DataFrame) -> pd.DataFrame:
    """A responses file as columns `pair_id, side, subject, response`, one row per response.

    The file has `subject, response` and either `prompt` (the exact text of a prompt) or `pair_id`
    and, where prompts are paired, `side`. A prompt that is put several times takes a subject's
    responses to it in their order. An empty response is a response: a subject may have said
    nothing. Raises InputError naming the first bad row: an unknown prompt or pair, a second
    response to the same prompt, or a pair of which the subject answered only one side.
    """
    frame = read_table(path)
    name = Path(path).name
    for column in ("subject", "response"):
        if column not in frame:
            raise InputError(f"{name}: the column {column!r} is missing")
    if sides_of(pairs) == ("a",) and "pair_id" in frame and "side" not in frame:
        frame = frame.assign(side="a")
    if not {"pair_id", "side"} <= set(frame) and "prompt" not in frame:
        raise InputError(
            f"{name}: say what was answered: a column 'prompt', or 'pair_id' and 'side'"
        )
    if frame.empty:
        raise InputError(f"{name} holds no responses")
    table = _located(frame, pairs, name)
    _check_responses(table, name)
    if len(sides_of(pairs)) == 2:
        _check_both_sides(table, name)
    return table.drop(columns="row")


def _located(frame: pd.DataFrame, pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    import pandas as pd

    if {"pair_id", "side"} <= set(frame):
        known, sides = set(pairs["pair_id"]), sides_of(pairs)
        places_given = zip(frame.index + FIRST_ROW, frame["pair_id"], frame["side"], strict=True)
        for row, pair, side in places_given:
            if pair not in known:
                raise InputError(f"{name}, row {row}: there is no pair {pair!r} in the study")
            if side not in sides:
                raise InputError(
                    f"{name}, row {row}: side is {side!r}; it must be {' or '.join(sides)}"
                )
        table = frame[["pair_id", "side", "subject", "response"]].copy()
        return table.assign(row=table.index + FIRST_ROW)
    places = _prompt_places(pairs)
    put: Counter[tuple[str, str]] = Counter()
    rows = []
    for row, prompt, subject, response in zip(
        frame.index + FIRST_ROW, frame["prompt"], frame["subject"], frame["response"], strict=True
    ):
        found = places.get(prompt)
        if not found:
            raise InputError(
                f"{name}, row {row}: no pair has the prompt {_short(prompt)!r}; the text must be "
                "exactly that of the pairs file"
            )
        if len(sides_of(pairs)) == 1:
            found = found[put[subject, prompt] % len(found) :][:1]
            put[subject, prompt] += 1
        rows += [(pair, side, subject, response, row) for pair, side in found]
    return pd.DataFrame(rows, columns=["pair_id", "side", "subject", "response", "row"])


def _prompt_places(pairs: pd.DataFrame) -> dict[str, list[tuple[str, str]]]:
    places: dict[str, list[tuple[str, str]]] = {}
    for side in sides_of(pairs):
        for pair, prompt in zip(pairs["pair_id"], pairs[f"prompt_{side}"], strict=True):
            places.setdefault(prompt, []).append((pair, side))
    return places


def _check_responses(table: pd.DataFrame, name: str) -> None:
    rows: dict[tuple[str, str, str], int] = {}
    keys = zip(table["subject"], table["pair_id"], table["side"], table["row"], strict=True)
    for subject, pair, side, row in keys:
        if not SUBJECT.fullmatch(subject):
            raise InputError(
                f"{name}, row {row}: subject {subject!r} must be 1-120 characters, none of them |"
            )
        if (subject, pair, side) in rows:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} has answered side {side} of {pair} in row "
                f"{rows[subject, pair, side]} already; keep one response"
            )
        rows[subject, pair, side] = row


def _check_both_sides(table: pd.DataFrame, name: str) -> None:
    keys = zip(table["subject"], table["pair_id"], table["side"], strict=True)
    rows = dict(zip(keys, table["row"], strict=True))
    for (subject, pair, side), row in rows.items():
        other = "b" if side == "a" else "a"
        if (subject, pair, other) not in rows:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} answers side {side} of {pair} but not "
                f"side {other}; add the missing response or take this one out"
            )


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
