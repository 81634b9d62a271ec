"""Subjects' responses as they come in files: each found by its prompt, or by its pair and side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.prompts.images import images_shown, with_images
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.tables.columns import require_columns
from evenhand.study.tables.formats import FIRST_ROW, read_table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.rubrics import Rubric

SUBJECT = re.compile(r"[^|\x00-\x1f]{1,120}")


def read_responses(
    path: str | Path, pairs: pd.DataFrame, rubrics: Iterable[Rubric] = ()
) -> pd.DataFrame:
    """A responses file as columns `pair_id, side, subject, response`, one row per response; where
    the `rubrics` show it as an image, it is made one.

    The file has `subject, response` and either `prompt` (the exact text of a prompt) or `pair_id`
    and, where prompts are paired, `side`. A prompt that is put several times takes a subject's
    responses to it in their order. An empty response is a response: a subject may answer with
    nothing. Raises InputError naming the first bad row: an unknown prompt or pair, a second
    response to the same prompt, or a pair of which the subject answered only one side.
    """
    frame = read_table(path)
    name = Path(path).name
    require_columns(frame, ("subject", "response"), name)
    if sides_of(pairs) == ("a",) and "pair_id" in frame and "side" not in frame:
        frame = frame.assign(side="a")
    if not {"pair_id", "side"} <= set(frame) and "prompt" not in frame:
        raise InputError(
            f"{name}: say what was answered: a column 'prompt', or 'pair_id' and 'side'"
        )
    if frame.empty:
        raise InputError(f"{name} holds no responses")
    images = images_shown(rubrics, frame[["response"]])
    frame = with_images(frame, images, name, Path(path).parent)
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


# Detection of responses written in Markdown


MARKDOWN_FROM = 0.5
"""From this share of them on, responses are shown as Markdown in a new study."""
_LONGEST = 50_000

_LOOKS_MARKED = re.compile(
    r"^#{1,6} \S"
    r"|^(?:[-*+]|\d{1,3}[.)]) +\S.*\n\n?(?:[-*+]|\d{1,3}[.)]) +\S"
    r"|\*\*\S[^\n]*?\*\*"
    r"|^```"
    r"|`[^`\n]+`"
    r"|^\|.*\|[ \t]*\n\|[ \t:|-]+\|",
    re.MULTILINE,
)


def looks_like_markdown(text: str) -> bool:
    """Return True if a text has headings, lists, strong words, code or tables in Markdown's syntax.

    >>> looks_like_markdown("It is **so**."), looks_like_markdown("2 * 3 * 4, a_b and #1")
    (True, False)
    """
    return bool(_LOOKS_MARKED.search(text[:_LONGEST]))


def markdown_share(responses: Iterable[str]) -> float:
    """The share of responses that look like Markdown; 0 where there are none."""
    found = [looks_like_markdown(text) for text in responses]
    return sum(found) / len(found) if found else 0.0
