"""Messages for a table that lacks a column of ratings: what it may be, and what to declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.columns import (
    MODEL_NAME,
    RATER,
    RUBRIC,
    alike,
    are_counts,
    by_person,
    columns_of_ratings,
    criteria,
    fits,
    guessed_grid,
    kind_by_word,
    label_columns,
)
from evenhand.reporting.ratings_file.scales import MAX_LABELS
from evenhand.study.tables.columns import columns_option, likely_columns
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.ratings_file.declared import ScaleOptions

MAX_NAMED = 10
_MOST_RATERS = 200
_NONE_KNOWN: Mapping[str, str] = {}


def refuse_missing(table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError where a table cannot be read as long, with the options that name its columns
    or raters, as far as its cells do not show that they would be wrong.
    """
    needed = ["unit_id", "rater_id", *([] if options.kinds else ["rater_kind"]), "label"]
    absent = [column for column in needed if column not in table]
    if not absent:
        return
    names = [str(column) for column in table]
    spaced = [column for column in names if column not in absent and column.strip() in absent]
    _refuse_spaces(spaced, name)
    others = [column for column in names if column not in RATINGS_COLUMNS]
    likely = likely_columns(others, absent, partial(fits, table))
    if len(table):
        by_cells = columns_of_ratings(table, others, absent)
        likely |= {
            o: t for o, t in by_cells.items() if o not in likely and t not in likely.values()
        }
    _refuse_spaces([column for column in likely.values() if column != column.strip()], name)
    if "rater_id" in absent and len(table):
        # A column called label may be one of several raters'.
        wide = [column for column in names if column in others or column == "label"]
        _refuse_wide(table, name, wide, likely.get("rater_id"), options)
    what = f"{name}: the column {absent[0]!r} is missing (it has {listed(table.columns)})"
    if absent == ["rater_kind"]:
        what = f"{name} has no column 'rater_kind'"
    raise InputError(f"{what}; {', and '.join(_mends(table, absent, likely, options))}")


def _refuse_spaces(columns: Sequence[str], name: str) -> None:
    if columns:
        raise InputError(
            f"{name}: the column name {columns[0]!r} begins or ends with a space; remove spaces "
            "next to the commas"
        )


def _refuse_wide(
    table: pd.DataFrame, name: str, columns: list[str], rater: str | None, options: ScaleOptions
) -> None:
    """Raise InputError where columns seem to be raters' labels, unless one names the `rater`."""
    labels = alike(table, columns)
    if rater not in (None, *labels):
        return
    counted = label_columns(table, columns)
    if not labels and are_counts(table, counted):
        raise InputError(
            f"{name}: the columns {listed(counted)} hold how many annotators gave each label; "
            "agreement takes the label of each annotator: give a table with these"
        )
    if grid := guessed_grid(table, columns):
        parts = f"({listed(grid.raters)}; {listed(grid.rubrics)})"
        if not grid.sure:
            raise InputError(
                f"{name} has a column for each pair of two names {parts}; say which of them is the "
                f"rater, with {options.wide_spelled('PATTERN')} such as {RATER}_{RUBRIC}, or name "
                "the raters' columns with --human and --model"
            )
        raise InputError(
            f"{name} has a column for each rater and rubric {parts}; read them with "
            f"{options.wide_spelled(grid.pattern)}{', ' if options.in_python else ' '}"
            f"{kinds_spelled(grid.raters, options)}"
        )
    if asked := criteria(labels or label_columns(table, columns)):
        raise InputError(
            f"{name} has labels by question ({listed(asked)}), and no column says who gave them; "
            f"add one, and {_naming({'rater_id': 'COLUMN'}, options)}"
        )
    if labels and by_person(table, columns, labels):
        raise InputError(
            f"{name} seems to have a row for each person and a column for each unit; write a row "
            "for each rating, with the columns unit_id, rater_id, rater_kind and label"
        )
    if options.in_python or len(labels) > 1:
        raise InputError(
            f"{name} has no column 'rater_id'; name the columns of the raters' labels with "
            + kinds_spelled(labels, options)
        )


def _mends(
    table: pd.DataFrame, absent: Sequence[str], likely: dict[str, str], options: ScaleOptions
) -> list[str]:
    """Return remedies for the absent columns: other names, the raters' kinds, or adding the
    columns.
    """
    first = ""
    if len(table) and "rater_id" not in {*absent} - likely.keys():
        others = [str(each) for each in table if each not in (*RATINGS_COLUMNS, *likely.values())]
        able, unit = label_columns(table, others), likely.get("unit_id", "unit_id")
        if unit in table:  # what is the same for each item is no label
            able = [each for each in able if (table.groupby(unit)[each].nunique() > 1).any()]
        asked = criteria(able) or able
        if "label" in {*absent} - likely.keys() and asked:
            likely = {**likely, "label": asked[0]}
            first = f" (one question at a time: {listed(asked)})" if len(asked) > 1 else ""
        likely |= _rubric_column(table, likely, others)
    left = [column for column in absent if column not in likely]
    mends = [_naming(likely, options) + first] if likely else []
    raters = likely.get("rater_id", "rater_id")
    if "rater_kind" in left and raters in table:
        named = _comparable(table, raters, likely.get("label", "label"))
        if named:
            mends.append(f"say who the raters are with {kinds_spelled(named, options)}")
        else:
            mends.append(f"name raters who share labels, as no two in {raters!r} do")
        left.remove("rater_kind")
    if left and likely:
        mends.append(f"add {', '.join(left)}")
    elif left:
        called = _naming(dict.fromkeys(left, "COLUMN"), options)
        wide = "if each rater has a column of labels, name these with --human and --model"
        mends.append(f"{called}, or {wide}" if "rater_id" in left else called)
    return mends


def _rubric_column(
    table: pd.DataFrame, likely: dict[str, str], columns: Sequence[str]
) -> dict[str, str]:
    """The column that tells apart several ratings of one unit by one rater, as `{ours: theirs}`."""
    key = [likely.get(each, each) for each in ("unit_id", "rater_id")]
    if "rubric" in table or not {*key} <= {*table} or not table.duplicated(key).any():
        return {}
    apart = [each for each in columns if not table.duplicated([*key, each]).any()]
    few = [each for each in apart if texts(table[each]).nunique() <= MAX_LABELS]
    return likely_columns(few, ["rubric"], lambda _, theirs: fits(table, "label", theirs))


def _comparable(table: pd.DataFrame, raters: str, label: str) -> list[str]:
    """The raters who share labels with another, of a column of raters; all, where labels are too
    many to be compared, or one rater is alone.
    """
    names = texts(table[raters])
    every = [str(each) for each in names.unique() if each]
    if label not in table or len(every) < 2:
        return every
    labels = texts(table[label]).str.strip().str.casefold()
    if labels.nunique() > MAX_LABELS:
        return every
    own = {rater: {*labels[names == rater]} - {""} for rater in every[:_MOST_RATERS]}
    shared = Counter(each for found in own.values() for each in found)
    return [
        rater
        for rater in every
        if rater not in own or not own[rater] or any(shared[each] > 1 for each in own[rater])
    ]


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


def kinds_spelled(
    raters: Iterable[str], options: ScaleOptions, known: Mapping[str, str] = _NONE_KNOWN
) -> str:
    """Return the options that name the raters, many of one kind as all the others, by the kinds
    that are `known`, and else with a guess at which are models.
    """
    guess = {
        each: kind_by_word(each) or ("model" if MODEL_NAME.search(each) else "human")
        for each in raters
    }
    kinds = {each: known.get(each, guessed) for each, guessed in guess.items()}
    people, models = (
        [each for each, kind in kinds.items() if kind == which] for which in ("human", "model")
    )
    if len(people) > MAX_NAMED:
        people = ["*"]
    elif len(models) > MAX_NAMED:
        models = ["*"]
    given = [
        options.spelled(kind, *names)
        for kind, names in (("human", people), ("model", models))
        if names
    ]
    if options.in_python:
        return "human=[...] and model=[...]" + (f", such as {', '.join(given)}" if given else "")
    return " ".join(given)
