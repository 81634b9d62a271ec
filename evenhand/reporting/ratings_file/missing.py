"""Messages for a table that lacks a column of ratings: what it may be, and what to declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.scales import MAX_LABELS
from evenhand.study.tables.names import columns_option, likely_columns
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.ratings_file.declared import ScaleOptions

MAX_NAMED = 10
_MODEL_NAME = re.compile(
    r"gpt|claude|llama|gemini|mistral|qwen|deepseek|model|grader|llm|judge|\bai\b|\bbot\b", re.I
)


def refuse_missing(table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError where a table cannot be read as long, with the option that names a column,
    or those that name the raters' columns of labels.
    """
    needed = ["unit_id", "rater_id", *([] if options.kinds else ["rater_kind"]), "label"]
    absent = [column for column in needed if column not in table]
    if not absent:
        return
    names = [str(column) for column in table]
    for column in names:
        if column not in absent and column.strip() in absent:
            raise InputError(
                f"{name}: the column name {column!r} begins or ends with a space; remove spaces "
                "next to the commas"
            )
    others = [column for column in names if column not in RATINGS_COLUMNS]
    likely = likely_columns(others, absent)
    if "rater_id" in absent:
        columns = alike(table, others)
        if grid := raters_by_rubric(columns):
            raters, rubrics = grid
            first = [column for column in columns if column in raters.values()]
            raise InputError(
                f"{name} has a column for each rater and rubric ({listed(raters)}; "
                f"{listed(rubrics)}); check one rubric at a time: {kinds_spelled(first, options)}"
            )
        if likely.get("rater_id") in (None, *columns) and (options.in_python or len(columns) > 1):
            raise InputError(
                f"{name} has no column 'rater_id'; name the columns of the raters' labels with "
                + kinds_spelled(columns, options)
            )
    what = f"{name}: the column {absent[0]!r} is missing (it has {listed(table.columns)})"
    if absent == ["rater_kind"]:
        what = f"{name} has no column 'rater_kind'"
    raise InputError(f"{what}; {', and '.join(_mends(table, absent, likely, options))}")


def _mends(
    table: pd.DataFrame, absent: Sequence[str], likely: dict[str, str], options: ScaleOptions
) -> list[str]:
    """Return remedies for the absent columns: other names, the raters' kinds, or adding the
    columns.
    """
    left = [column for column in absent if column not in likely]
    mends = [_naming(likely, options)] if likely else []
    raters = likely.get("rater_id", "rater_id")
    if "rater_kind" in left and raters in table:
        mends.append(
            f"say who the raters are with {kinds_spelled(texts(table[raters]).unique(), options)}"
        )
        left.remove("rater_kind")
    if left and likely:
        mends.append(f"add {', '.join(left)}")
    elif left:
        called = _naming(dict.fromkeys(left, "COLUMN"), options)
        wide = "if each rater has a column of labels, name these with --human and --model"
        mends.append(f"{called}, or {wide}" if "rater_id" in left else called)
    return mends


def listed(names: Iterable[object]) -> str:
    """Return the first few names, and the number of the others."""
    every = [str(each) for each in names]
    more = len(every) - MAX_NAMED
    first = ", ".join(every[:MAX_NAMED])
    return f"{first} and {more} more" if more > 0 else first


def _naming(columns: dict[str, str], options: ScaleOptions) -> str:
    if options.in_python:
        pairs = ", ".join(f"{theirs!r}: {ours!r}" for ours, theirs in columns.items())
        return f"rename what you have with .rename(columns={{{pairs}}})"
    return f"say what they are called with {columns_option(columns)}"


def kinds_spelled(raters: Iterable[str], options: ScaleOptions) -> str:
    """Return the options that name the raters, with a guess at which are models."""
    people = [rater for rater in raters if not _MODEL_NAME.search(rater)]
    models = [rater for rater in raters if _MODEL_NAME.search(rater)]
    given = [
        options.spelled(kind, *names[:MAX_NAMED], *(["..."] if len(names) > MAX_NAMED else []))
        for kind, names in (("human", people), ("model", models))
        if names
    ]
    if options.in_python:
        return "human=[...] and model=[...]" + (f", such as {', '.join(given)}" if given else "")
    return " ".join(given)


def raters_by_rubric(columns: Sequence[str]) -> tuple[dict[str, str], list[str]] | None:
    """Return raters, each with the column of the first rubric, and rubrics, where columns of labels
    are all combinations of both; None where they are not.

    >>> raters_by_rubric(["ann_tone", "ann_facts", "gpt4_tone", "gpt4_facts"])
    ({'ann': 'ann_tone', 'gpt4': 'gpt4_tone'}, ['tone', 'facts'])
    >>> raters_by_rubric(["ann", "ben", "gpt4"])
    """
    if len(columns) < 4:
        return None
    for parted in (str.partition, str.rpartition):
        parts = [parted(column, "_")[::2] for column in columns]
        firsts, seconds = (list(dict.fromkeys(side)) for side in zip(*parts, strict=True))
        is_grid = min(len(firsts), len(seconds)) >= 2 and "" not in firsts + seconds
        if is_grid and len(set(parts)) == len(columns) == len(firsts) * len(seconds):
            by_place = dict(zip(parts, columns, strict=True))
            if any(map(_MODEL_NAME.search, seconds)) and not any(map(_MODEL_NAME.search, firsts)):
                return {who: by_place[firsts[0], who] for who in seconds}, firsts
            return {who: by_place[who, seconds[0]] for who in firsts}, seconds
    return None


def alike(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that hold few different texts, some of them in common with another: labels."""
    values = {column: set(texts(table[column])) - {""} for column in columns}
    few = {column: found for column, found in values.items() if 0 < len(found) <= MAX_LABELS}
    return [
        column
        for column, found in few.items()
        if any(found & other for name, other in few.items() if name != column)
    ]
