"""The raters in a DataFrame of labels: from a long or wide table to the rows of a ratings file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export
from evenhand.exchange.readers.rows import plain_kinds
from evenhand.reporting.ratings_file.cleaning import Places
from evenhand.reporting.ratings_file.columns import (
    MODEL_NAME,
    Grid,
    alike,
    criteria,
    guessed_grid,
    named_grid,
)
from evenhand.reporting.ratings_file.frames import frame_of
from evenhand.reporting.ratings_file.missing import kinds_spelled, listed, refuse_missing
from evenhand.study.tables.formats import FIRST_ROW, cell_text, read_table, row_number
from evenhand.study.tables.names import renamed
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts, with_unit_id
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.exchange.readers.rows import Export
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.reporting.ratings_file.frames import Table

Names = Hashable | Iterable[Hashable]
"""Several names or labels, or one alone."""
_NOBODY = ("API", "sdk")
"""What tools call whoever sent a score by their interface."""
_TIMES = ("created_at", "seconds")
"""Columns of one rating that exports have of a whole row, too."""
_COLUMN = "\ncolumn"
"""Where a label was in a wide table; no column of a file has this name."""


def as_texts(names: Names) -> tuple[str, ...]:
    """Names or labels as files have them.

    >>> as_texts([1, 2.0, "x"]), as_texts("gpt")
    (('1', '2', 'x'), ('gpt',))
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (cell_text(names),)
    return tuple(cell_text(each) for each in names)


def kinds_of(human: Names, model: Names) -> dict[str, str]:
    """The kind of each rater that was named. Raises InputError where one is named as both."""
    people, models = as_texts(human), as_texts(model)
    for rater in people:
        if rater in models:
            raise InputError(f"human and model both name {rater!r}; name each rater in one of them")
    return dict.fromkeys(people, "human") | dict.fromkeys(models, "model")


def units_table(given: Path | Table) -> tuple[pd.DataFrame, str]:
    """A file or a table of units, with texts for cells, and its name in messages."""
    if isinstance(given, Path):
        return read_table(given), given.name
    table = _as_in_a_file(frame_of(given, "units"))
    return _with_texts(table, table.columns), "units"


def _refuse_sheet(sheet: str) -> None:
    if sheet:
        raise InputError("sheet= names one of a workbook; a table in memory has none, leave it out")


def items_table(given: Table, sheet: str = "") -> pd.DataFrame:
    """A table of items to rate, with texts for cells; an index with a name is a column. Raises
    InputError where a `sheet` is asked for.
    """
    _refuse_sheet(sheet)
    frame = frame_of(given, "items")
    if frame.index.name and frame.index.name not in frame:
        frame = frame.reset_index()
    table = _numbered(frame)
    return _with_texts(table, table.columns)


def _as_in_a_file(given: pd.DataFrame) -> pd.DataFrame:
    """A table with texts for unit ids."""
    table = given
    if table.index.name in ("unit_id", "item_id") and table.index.name not in table:
        table = table.reset_index()
    table = with_unit_id(_numbered(table))
    return _with_texts(table, ["unit_id"]) if "unit_id" in table else table


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """A table with rows numbered so that messages name them by the index."""
    import pandas as pd

    numbered = pd.api.types.is_integer_dtype(table.index) and table.index.is_unique
    rows = table.index if numbered else pd.RangeIndex(len(table))
    return table.set_axis(rows - FIRST_ROW, axis=0)


def _with_texts(table: pd.DataFrame, columns: Iterable[Hashable]) -> pd.DataFrame:
    return table.assign(**{str(column): texts(table[column]) for column in columns})


@dataclass(frozen=True)
class LongRows:
    """The rows of a ratings file, their places in it, and notes on raters who were left out."""

    table: pd.DataFrame
    places: Places
    notes: Sequence[str] = ()


def rows_of_file(file: Path, options: ScaleOptions) -> LongRows:
    """The rows of a long or wide ratings file, or of an export of another tool.

    In a wide one a blank cell is no rating, and a unit without a name goes by its row.
    """
    export = read_export(file, options.format, several=options.several, sheet=options.sheet)
    table = renamed(export.table, options.columns, file.name)
    table, options, told = _told_by_names(table, file.name, options, export)
    table = table.set_axis(table.index + FIRST_ROW, axis=0)
    rows = long_rows(table, file.name, options, blanks=False)
    units = table["unit_id"].tolist() if export.by_unit else None
    notes = [*export.notes, *told, *rows.notes]
    return replace(rows, notes=notes, places=replace(rows.places, units=units))


def rows_of_table(given: Table, options: ScaleOptions) -> LongRows:
    """The rows of a long or wide table of any library.

    In a wide one a missing cell is no rating, and an empty text one without a label.
    """
    _refuse_sheet(options.sheet)
    found = frame_of(given, options.name)
    table = renamed(found, options.columns, options.name)
    table, options, told = _told_by_names(table, options.name, options)
    rows = long_rows(table, options.name, options)
    return replace(rows, notes=[*found.attrs.get("notes", ()), *told, *rows.notes])


def _told_by_names(
    table: pd.DataFrame, name: str, options: ScaleOptions, export: Export | None = None
) -> tuple[pd.DataFrame, ScaleOptions, list[str]]:
    """Return the table or the options with the kinds of raters that their names show, if nothing
    else gives them; and a note on these raters. Raises InputError where an `export` leaves a kind
    open and a name does not show it.
    """
    strict = export is not None and export.by_unit
    if options.kinds:
        return table, options, []
    if "rater_id" not in table:
        columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
        grid = _grid_in(table, columns, options)
        names = grid.raters if grid else columns
        kinds = plain_kinds(names)
        whole = names if grid else alike(table, columns)  # another may be a rater's, too
        if set(kinds.values()) != {"human", "model"} or set(whole) != set(kinds):
            return table, options, []
        return table, replace(options, kinds=kinds), [_by_name(kinds)]
    if "rater_kind" in table and not strict:
        return table, options, []
    own = table["rater_kind"] if strict else texts(table["rater_id"]).map(lambda _: "")
    unknown = list(dict.fromkeys(texts(table["rater_id"])[own == ""]))
    kinds = plain_kinds(unknown)
    if len(kinds) < len(unknown) and export is not None and export.by_unit:
        left = [rater for rater in unknown if rater not in kinds]
        raise InputError(
            f"{name} does not say who is a person and who a model ({listed(left)}); say so with "
            + _unknown_spelled(table, left, options, by_score=export.by_score)
        )
    if len(kinds) < len(unknown) or not unknown:
        return table, options, []
    found = own.where(own != "", texts(table["rater_id"]).map(kinds))
    return table.assign(rater_kind=found), options, [_by_name(kinds)]


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


def _grid_in(table: pd.DataFrame, columns: Sequence[str], options: ScaleOptions) -> Grid | None:
    """The columns of labels for each rater and rubric: by the pattern declared, or as their names
    show. None where there are none.
    """
    if options.wide:
        return named_grid(table, options.wide, columns, options.kinds)
    if not {*options.kinds} - {*columns} and options.kinds:
        return None
    grid = guessed_grid(table, columns, options.kinds)
    return grid if grid and grid.sure else None


def _by_name(kinds: Mapping[str, str]) -> str:
    people, models = (
        listed([rater for rater, kind in kinds.items() if kind == which]) or "none"
        for which in ("human", "model")
    )
    return written("exchange.by_name", people=people, models=models)


def long_rows(
    given: pd.DataFrame, name: str, options: ScaleOptions, *, blanks: bool = True
) -> LongRows:
    """Return the rows of a ratings file.

    `given` is long, with a column `rater_id`, or wide, with a column for each rater in the `kinds`
    of `options`, or for each of them and each rubric. An empty cell of a wide table is a rating
    without a label, or none where `blanks` do not count.
    """
    table, kinds = _as_in_a_file(given), options.kinds
    if "rater_id" in table or not (kinds or options.wide):
        if options.wide:
            raise InputError(f"{name} has a row for each rating; leave {_wide(options)} out")
        refuse_missing(table, name, options)
        table, notes = _named(table, name, options)
        return LongRows(_others_as_texts(table), Places(name), notes)
    if "unit_id" not in table:
        table.insert(0, "unit_id", texts(given.index.to_series()).to_numpy())
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    grid = _grid_in(table, columns, options)
    notes = []
    if timed := [column for column in _TIMES if column in table and column not in kinds]:
        table = table.drop(columns=timed)
        notes.append(written("reading.wide_times", columns=", ".join(timed)))
    if grid is not None:
        _check_grid(grid, table, name, options)
        raters, rubrics = listed(grid.raters), listed(grid.rubrics)
        said = options.wide_spelled(grid.pattern)
        notes.append(written("reading.grid", raters=raters, rubrics=rubrics, wide=said))
        if grid.others:
            notes.append(written("reading.grid_others", columns=listed(grid.others)))
    cells = _melted(table, options, name, grid, blanks=blanks)
    rows = (cells.index + FIRST_ROW).tolist()
    places = Places(name, rows, columns=cells.pop(_COLUMN).tolist())
    return LongRows(_others_as_texts(cells.reset_index(drop=True)), places, notes)


def _wide(options: ScaleOptions) -> str:
    return options.wide_spelled(options.wide)


def _check_grid(grid: Grid, table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError where no column follows the pattern, a rater has none, a table has a rubric
    already, or it is not said who is a person.
    """
    if not options.kinds and grid.columns:
        raise InputError(
            f"{name} does not say who is a person and who a model ({listed(grid.raters)}); say so "
            f"with {kinds_spelled(grid.raters, options)}"
        )
    if absent := [rater for rater in options.kinds if rater not in grid.raters]:
        raise InputError(
            f"{name} has no columns {_wide(options)} of {listed(absent)}; it has "
            f"{listed(table.columns)}"
        )
    if not grid.columns:
        raise InputError(
            f"{name} has no columns {_wide(options)} of two or more raters that all have the same "
            f"rubrics; it has {listed(table.columns)}"
        )
    if "rubric" in table:
        raise InputError(
            f"{name} has a column 'rubric', and {_wide(options)} takes rubrics from the names of "
            "columns; leave one of them out"
        )


def _others_as_texts(table: pd.DataFrame) -> pd.DataFrame:
    return _with_texts(table, [column for column in table if column not in RATINGS_COLUMNS])


def _named(
    table: pd.DataFrame, name: str, options: ScaleOptions
) -> tuple[pd.DataFrame, Sequence[str]]:
    """A long table's rows of the raters who count: all of them, or those named."""
    kinds = options.kinds
    if not kinds:
        return table, ()
    raters = texts(table["rater_id"])
    for rater in kinds:
        if not (raters == rater).any():
            raise InputError(f"{name} has no rater {rater!r}; it has {listed(raters.unique())}")
    named = raters.map(kinds)
    own = texts(table["rater_kind"]) if "rater_kind" in table else named.fillna("")
    own = own.where(own != "", named.fillna(""))
    clash = named.notna() & (own != named)
    if clash.any():
        at = int(clash.to_numpy().argmax())
        raise InputError(
            f"{name}: {options.spelled(named.iloc[at])} names {raters.iloc[at]!r}, whose "
            f"rater_kind is {own.iloc[at]!r}; correct one of the two"
        )
    counts = named.notna() | ~own.isin(["", *kinds.values()])
    found = table[counts].assign(rater_kind=own[counts])
    others = raters[~counts].unique()
    note = written("reading.raters_left_out", names=listed(others))
    return found, [note] if len(others) else []


def _melted(
    table: pd.DataFrame, options: ScaleOptions, name: str, grid: Grid | None, *, blanks: bool
) -> pd.DataFrame:
    """A wide table as a row for each label, with the column it is from and the index of its row;
    a missing cell is none, and so is an empty one unless `blanks` count.
    """
    kinds = options.kinds
    for rater in kinds if grid is None else ():
        if rater not in table:
            marked = [each for each in map(str, table) if rater in re.split(r"[^A-Za-z0-9]", each)]
            wide = options.wide_spelled("{rater}_{rubric}")
            hint = f"; columns such as {marked[0]} are read with {wide}" if marked else ""
            raise InputError(
                f"{name} has no column {rater!r}; it has {listed(table.columns)}{hint}"
            )
    labels = dict(grid.columns) if grid else {rater: (rater, "") for rater in kinds}
    about = [column for column in table if column not in labels]
    for column in about:
        if column in RATINGS_COLUMNS and column not in ("unit_id", "rubric"):
            raise InputError(
                f"{name}: the column {column!r} has its own meaning where each row is a rating; "
                "rename it"
            )
    if (unnamed := table["unit_id"] == "").any():
        at = row_number(table, int(unnamed.to_numpy().argmax()))
        raise InputError(f"{name}, row {at}: unit_id is ''; it must be filled in")
    again = table.duplicated([column for column in about if column in ("unit_id", "rubric")])
    if again.any():
        raise InputError(
            f"{name}: unit {table.loc[again, 'unit_id'].iloc[0]!r} has two rows. If each row is a "
            "unit of its own, call the column of ids 'item' (rows of one item then count as one "
            "cluster; an index goes by reset_index(drop=True)); else keep one row"
        )
    cells = table.melt(about, list(labels), _COLUMN, "label", ignore_index=False)
    cells = cells[cells["label"].notna()]
    cells["label"] = texts(cells["label"])
    if not blanks:
        cells = cells[cells["label"] != ""]
    cells["rater_id"] = cells[_COLUMN].map({each: rater for each, (rater, _) in labels.items()})
    cells["rater_kind"] = cells["rater_id"].map(kinds)
    if grid is not None:
        cells["rubric"] = cells[_COLUMN].map({each: of for each, (_, of) in labels.items()})
    return cells
