"""The roles in a table that others made: which columns are items, raters and labels, and which of
the raters are annotators and which graders. Declared, or inferred where names and cells leave one
sensible reading; where a column of ratings is missing, messages propose what to declare.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import pattern_of
from evenhand.reporting.ratings_file.columns import (
    LONGEST_KEY,
    MODEL_NAME,
    RATER,
    RUBRIC,
    Grid,
    alike,
    are_counts,
    by_person,
    columns_of_ratings,
    criteria,
    fits,
    guessed_grid,
    kind_by_word,
    label_columns,
    named_grid,
)
from evenhand.reporting.ratings_file.scales import MAX_LABELS
from evenhand.study.tables.columns import (
    columns_option,
    likely_columns,
    people_column,
    sure_columns,
    unit_columns,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.exchange.readers.rows import Export
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
                f"rater, with {options.spelled('wide', 'PATTERN')} such as {RATER}_{RUBRIC}, or "
                "name the raters' columns with --human and --model"
            )
        raise InputError(
            f"{name} has a column for each rater and rubric {parts}; read them with "
            f"{options.spelled('wide', grid.pattern)}{', ' if options.in_python else ' '}"
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
    """Return the first few names on one line, and the number of the others."""
    every = [each if each.isprintable() else repr(each) for each in map(str, names)]
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


EVERYBODY = "*"
"""All raters that are not named, as `--human '*'` has it."""
_NOBODY = ("API", "sdk")
"""What tools call whoever sent a score by their interface."""
_NO_PERSON = re.compile(pattern_of("no_person"), re.I)
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
