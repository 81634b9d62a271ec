"""The roles in a table that others made: which columns are items, raters and labels, and which of
the raters are annotators and which graders. Declared, or inferred where names and cells leave one
sensible reading.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.columns import (
    LONGEST_KEY,
    MODEL_NAME,
    Grid,
    alike,
    columns_of_ratings,
    criteria,
    fits,
    guessed_grid,
    kind_by_word,
    label_columns,
    named_grid,
)
from evenhand.reporting.ratings_file.missing import kinds_spelled, listed
from evenhand.study.tables.columns import (
    people_column,
    sure_columns,
    unit_columns,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.exchange.readers.rows import Export
    from evenhand.reporting.ratings_file.declared import ScaleOptions

EVERYBODY = "*"
"""All raters that are not named, as `--human '*'` has it."""
_NOBODY = ("API", "sdk")
"""What tools call whoever sent a score by their interface."""
_NO_PERSON = re.compile(
    r"labels?|gold|target|truth|answers?|correct|outputs?|responses?|results?|systems?|baseline|"
    r"reference|class|category|scores?|ratings?|votes?|grade|verdict|decision|option|choice|"
    r"values?|annotat(ions?|ors)|question|prompt|text|input|task|final|majority|soft|hard|others?|"
    r"info|positive|negative|neutral|true|false|yes|no|count|total|mean|average|median|sum|first|"
    r"second|third|left|right",
    re.I,
)
"""Words that name a column, and no person."""
_PERSON = re.compile(r"[^\W\d_]{2,20}|[^\s@,]+@[^\s@,]+\.[a-z]+", re.I)
_FEWEST_PEOPLE = 2


@dataclass(frozen=True)
class Roles:
    """A table under our names of columns, and what is known of it: options with the kinds of its
    raters, and the name of the column of items, "" where items are rows.
    """

    table: pd.DataFrame
    options: ScaleOptions
    items: str = ""


def roles_in(
    table: pd.DataFrame, name: str, options: ScaleOptions, export: Export | None = None
) -> Roles:
    """Return the roles in a table which messages call `name`. What cannot be inferred is left open;
    raises InputError where an `export` leaves a rater's kind open and a name does not show it.
    """
    table, columns = _long_columns(table, options)
    items = options.columns.get("unit_id") or columns.get("unit_id", "")
    if "rater_id" not in table:
        table, items = _with_items(table, options, items)
        return Roles(table, _kinds_of_columns(table, options), items)
    if "unit_id" in table:
        items = items or "unit_id"
    elif "item_id" in table:
        items = items or "item_id"
    strict = export is not None and export.by_unit
    options = _everybody_of(options, texts(table["rater_id"]))
    if options.kinds or ("rater_kind" in table and not strict):
        return Roles(table, options, items)
    given = table["rater_kind"] if strict else texts(table["rater_id"]).map(lambda _: "")
    unknown = list(dict.fromkeys(texts(table["rater_id"])[given == ""]))
    rater_column = options.columns.get("rater_id") or columns.get("rater_id", "")
    kinds = _kinds_by_name(unknown, are_people=people_column(rater_column))
    if len(kinds) < len(unknown) and export is not None and export.by_unit:
        left = [rater for rater in unknown if rater not in kinds]
        raise InputError(
            f"{name} does not say which raters are annotators and which are graders "
            f"({listed(left)}); say so with "
            + _unknown_spelled(table, left, options, by_score=export.by_score)
        )
    if len(kinds) < len(unknown) or not unknown:
        return Roles(table, options, items)
    found = given.where(given != "", texts(table["rater_id"]).map(kinds))
    return Roles(table.assign(rater_kind=found), options, items)


# ---- columns ------------------------------------------------------------------------------------


def _long_columns(
    table: pd.DataFrame, options: ScaleOptions
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table whose columns of items, raters and labels, where their names and cells leave
    no doubt that a row is a rating, go by our names; and what they were called.
    """
    absent = [each for each in ("unit_id", "rater_id", "label") if each not in table]
    if "item_id" in table:
        absent = [each for each in absent if each != "unit_id"]
    names = [str(column) for column in table]
    if "rater_id" not in absent or options.wide or {*options.kinds} & {*names} or not len(table):
        return table, {}
    others = [column for column in names if column not in RATINGS_COLUMNS]
    found = columns_of_ratings(table, others, absent)
    if found.keys() != {*absent} or alike(table, [c for c in others if c not in found.values()]):
        return table, {}
    key = [found.get(each, each) for each in ("unit_id", "rater_id")]
    key = [each if each in table else "item_id" for each in key]
    if table.duplicated([*key, *(["rubric"] if "rubric" in table else [])]).any():
        return table, {}
    if "rater_kind" not in table:
        left = [column for column in others if column not in found.values()]
        found |= sure_columns(left, ["rater_kind"], partial(fits, table))
    return table.rename(columns={theirs: ours for ours, theirs in found.items()}), found


def _with_items(table: pd.DataFrame, options: ScaleOptions, items: str) -> tuple[pd.DataFrame, str]:
    """Return a wide table whose column of ids, which name each row, is `unit_id`; and what it was
    called.
    """
    for known in ("unit_id", "item_id"):
        if known in table:
            return table, items or known
    settings = {str(each) for value in options.settings.values() for each in _several(value)}
    for column in unit_columns(map(str, table)):
        cells = texts(table[column])
        short = cells.str.len().max() <= LONGEST_KEY if len(cells) else False
        is_rater = column in options.kinds or column in settings
        if short and cells.is_unique and (cells != "").all() and not is_rater:
            return table.rename(columns={column: "unit_id"}), column
    return table, ""


def _several(value: object) -> Collection[object]:
    return value if isinstance(value, (tuple, list)) else (value,)


# ---- kinds --------------------------------------------------------------------------------------


def _kinds_of_columns(table: pd.DataFrame, options: ScaleOptions) -> ScaleOptions:
    """Return the options with the kinds of raters whose labels are columns, as far as they can be
    inferred.
    """
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    if EVERYBODY in options.kinds:
        named = [each for each in options.kinds if each != EVERYBODY]
        absent = [each for each in named if each not in table]
        grid = grid_in(table, columns, replace(options, kinds=dict.fromkeys(named, "human")))
        able = grid.raters if grid and absent else _columns_like(table, columns, named)
        return _everybody_of(options, able)
    if options.kinds:
        return options
    grid = grid_in(table, columns, options)
    if grid:
        kinds = _kinds_by_name(grid.raters)
        is_known = len(kinds) == len(grid.raters)
    else:
        able = label_columns(table, columns)
        group = alike(table, columns)
        kinds = _kinds_by_name(group)
        named_elsewhere = [each for each in able if each not in group and kind_by_word(each)]
        is_known = len(kinds) == len(group) > 1 and not named_elsewhere
    has_people = "human" in kinds.values()
    return replace(options, kinds=kinds, inferred=True) if is_known and has_people else options


def _columns_like(table: pd.DataFrame, columns: Sequence[str], named: Sequence[str]) -> list[str]:
    """The columns that hold labels as those named do."""
    able = label_columns(table, columns)
    group = alike(table, columns)
    if not named:
        return group or able
    return group if {*named} <= {*group} else able


def _everybody_of(options: ScaleOptions, raters: Collection[str]) -> ScaleOptions:
    """Return the options with all raters that are not named in place of `*`."""
    kind = options.kinds.get(EVERYBODY)
    if kind is None:
        return options
    named = {each: which for each, which in options.kinds.items() if each != EVERYBODY}
    others = dict.fromkeys((each for each in dict.fromkeys(raters) if each not in named), kind)
    return replace(options, kinds={**named, **others}, inferred=True)


def _kinds_by_name(names: Sequence[str], *, are_people: bool = False) -> dict[str, str]:
    """Return the kinds of raters that are plain from their names: by a word, or, next to a model,
    as names of persons; where all that are no models `are_people`, these are.
    """
    kinds = {name: kind for name in names if (kind := kind_by_word(name))}
    others = [name for name in names if name not in kinds]
    if are_people:
        return {**kinds, **dict.fromkeys(others, "human")}
    people = [name for name in others if _is_person(name)]
    enough = len(people) >= _FEWEST_PEOPLE or "human" in kinds.values()
    if "model" in kinds.values() and enough and len(people) == len(others):
        kinds |= dict.fromkeys(people, "human")
    return kinds


def _is_person(name: str) -> bool:
    return bool(_PERSON.fullmatch(name)) and not _NO_PERSON.fullmatch(name)


def _unknown_spelled(
    table: pd.DataFrame, unknown: list[str], options: ScaleOptions, *, by_score: bool
) -> str:
    """The options that name an export's raters. Those whose kind it does not say are proposed as
    people only beside a model, and if their names are no tool's, no score's and no question's.
    """
    raters = texts(table["rater_id"])
    known = dict(zip(raters, table["rater_kind"], strict=True))
    names = [each for each in raters.unique() if known[each] in ("human", "model", "")]
    models = [each for each in names if known[each] == "model" or MODEL_NAME.search(each)]
    if models and not by_score and not {*_NOBODY} & {*unknown} and not criteria(unknown):
        return kinds_spelled(names, options, {each: kind for each, kind in known.items() if kind})
    return "human=[...] and model=[...]" if options.in_python else "--human NAME,... --model NAME"


def grid_in(table: pd.DataFrame, columns: Sequence[str], options: ScaleOptions) -> Grid | None:
    """The columns of labels for each rater and rubric: by the pattern declared, or as their names
    show. None where there are none.
    """
    if options.wide:
        return named_grid(table, options.wide, columns, options.kinds)
    if not {*options.kinds} - {*columns} and options.kinds:
        return None
    grid = guessed_grid(table, columns, options.kinds)
    return grid if grid and grid.sure else None
