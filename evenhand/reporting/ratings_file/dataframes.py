"""The raters in a DataFrame of labels: from a long or wide table to the rows of a ratings file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export
from evenhand.reporting.ratings_file.cleaning import Places, joined_names
from evenhand.reporting.ratings_file.columns import (
    EVERYBODY,
    Grid,
    grid_in,
    kinds_spelled,
    refuse_missing,
    roles_in,
)
from evenhand.reporting.ratings_file.frames import frame_of
from evenhand.study.tables.columns import fold, folded, listed, renamed
from evenhand.study.tables.formats import FIRST_ROW, cell_text, read_table, row_number
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts, with_unit_id
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.reporting.ratings_file.frames import Table

Names = Hashable | Iterable[Hashable]
"""Several names or labels, or one alone."""
_COLUMN, _LABEL = "\ncolumn", "\nlabel"
"""Where a label was in a wide table, and the label; no column of a file has these names."""


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
    name = given.name if isinstance(given, Path) else "units"
    if isinstance(given, Path):
        table = with_unit_id(read_table(given))
    else:
        table = _as_in_a_file(frame_of(given, name))
        table = _with_texts(table, table.columns)
    return table.assign(unit_id=fold(table["unit_id"])) if "unit_id" in table else table, name


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
    numbered = pd.api.types.is_integer_dtype(table.index) and table.index.is_unique
    rows = table.index if numbered else pd.RangeIndex(len(table))
    return table.set_axis(rows - FIRST_ROW, axis=0)


def _with_texts(table: pd.DataFrame, columns: Iterable[Hashable]) -> pd.DataFrame:
    return table.assign(**{str(column): texts(table[column]) for column in columns})


@dataclass(frozen=True)
class LongRows:
    """The rows of a ratings file, their places in it, notes on what was left out, and the name of
    the column of items, "" where items are rows.
    """

    table: pd.DataFrame
    places: Places
    notes: Sequence[str] = ()
    items: str = ""


def rows_of_file(file: Path, options: ScaleOptions) -> LongRows:
    """The rows of a long or wide ratings file, or of an export of another tool.

    In a wide one a blank cell is no rating, and a unit without a name goes by its row.
    """
    export = read_export(file, options.format, several=options.several, sheet=options.sheet)
    table = renamed(export.table, options.columns, file.name)
    roles = roles_in(table, file.name, options, export)
    table = roles.table.set_axis(roles.table.index + FIRST_ROW, axis=0)
    rows = long_rows(table, file.name, roles.options, blanks=False)
    units = table["unit_id"].tolist() if export.by_unit else None
    places = replace(rows.places, units=units)
    return replace(rows, notes=[*export.notes, *rows.notes], places=places, items=roles.items)


def rows_of_table(given: Table, options: ScaleOptions) -> LongRows:
    """The rows of a long or wide table of any library.

    In a wide one a missing cell is no rating, and an empty text one without a label.
    """
    _refuse_sheet(options.sheet)
    found = frame_of(given, options.name)
    table = renamed(found, options.columns, options.name)
    roles = roles_in(table, options.name, options)
    rows = long_rows(roles.table, options.name, roles.options)
    notes = [*found.attrs.get("notes", ()), *rows.notes]
    return replace(rows, notes=notes, items=roles.items)


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
            wide = options.spelled("wide", options.wide)
            raise InputError(f"{name} has a row for each rating; leave {wide} out")
        refuse_missing(table, name, options)
        options = replace(options, kinds={folded(each): kind for each, kind in kinds.items()})
        table, respelled = _spelled(table, name, options)
        table, left_out = _named(table, name, options)
        return LongRows(_others_as_texts(table), Places(name), [*respelled, *left_out])
    if "unit_id" not in table:
        table.insert(0, "unit_id", texts(given.index.to_series()).to_numpy())
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    grid = grid_in(table, columns, options)
    notes = []
    taken = set(RATINGS_COLUMNS) - {"unit_id", "rubric", *kinds}
    if reserved := [column for column in table if column in taken]:
        table = table.drop(columns=reserved)
        notes.append(written("reading.wide_reserved", columns=", ".join(reserved)))
    if grid is not None:
        _check_grid(grid, table, name, options)
        raters, rubrics = listed(grid.raters), listed(grid.rubrics)
        said = options.spelled("wide", grid.pattern)
        notes.append(written("reading.grid", raters=raters, rubrics=rubrics, wide=said))
        if grid.others:
            notes.append(written("reading.grid_others", columns=listed(grid.others)))
    cells = _melted(table, options, name, grid, blanks=blanks)
    cells, respelled = _spelled(cells, name, options)
    rows = (cells.index + FIRST_ROW).tolist()
    places = Places(name, rows, columns=cells.pop(_COLUMN).tolist())
    table = _others_as_texts(cells.reset_index(drop=True))
    return LongRows(table, places, [*notes, *respelled])


def _spelled(
    table: pd.DataFrame, name: str, options: ScaleOptions
) -> tuple[pd.DataFrame, list[str]]:
    """Return ratings with items, raters and labels in one spelling where nobody sees a difference,
    and where `options` join those that look alike; and notes.
    """
    changed, notes = {}, []
    for column, what in (("unit_id", "items"), ("rater_id", "raters"), ("label", "labels")):
        given = texts(table[column])
        meant = fold(given)
        if meant is not given:
            changed[what] = int((meant != given).sum())
        table = table.assign(**{column: meant})
    if changed:
        counts = ", ".join(f"{what} {count:,}" for what, count in changed.items())
        notes.append(written("reading.folded", counts=counts))
    table, joined = joined_names(table, options, name)
    return table, [*notes, *joined]


def _check_grid(grid: Grid, table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError where no column follows the pattern, a rater has none, a table has a rubric
    already, or it is not said who is a person.
    """
    wide, fault = options.spelled("wide", options.wide), ""
    if not options.kinds and grid.columns:
        fault = (
            "does not say which raters are annotators and which are graders "
            f"({listed(grid.raters)}); say so with {kinds_spelled(grid.raters, options)}"
        )
    elif absent := [rater for rater in options.kinds if rater not in grid.raters]:
        fault = f"has no columns {wide} of {listed(absent)}; it has {listed(table.columns)}"
    elif not grid.columns:
        fault = (
            f"has no columns {wide} of two or more raters that all have the same rubrics; it has "
            f"{listed(table.columns)}"
        )
    elif "rubric" in table:
        fault = (
            f"has a column 'rubric', and {wide} takes rubrics from the names of columns; leave one "
            "of them out"
        )
    if fault:
        raise InputError(f"{name} {fault}")


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
            every = options.spelled(kinds[rater], EVERYBODY)
            raise InputError(
                f"{name} has no rater {rater!r}; it has {listed(raters.unique())} ({every} is all)"
            )
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
            wide = options.spelled("wide", "{rater}_{rubric}")
            hint = f"; columns such as {marked[0]} are read with {wide}" if marked else ""
            raise InputError(
                f"{name} has no column {rater!r}; it has {listed(table.columns)}{hint}"
            )
    labels = dict(grid.columns) if grid else {rater: (rater, "") for rater in kinds}
    about = [column for column in table if column not in labels]
    if (unnamed := table["unit_id"] == "").any():
        at = row_number(table, int(unnamed.to_numpy().argmax()))
        raise InputError(f"{name}, row {at}: unit_id is ''; it must be filled in")
    again = table.duplicated([column for column in about if column in ("unit_id", "rubric")])
    if again.any():
        raise InputError(
            f"{name}: unit {table.loc[again, 'unit_id'].iloc[0]!r} has two rows. If each row is a "
            "item of its own, call the column of ids 'item' (rows of one item then count as one "
            "cluster; an index goes by reset_index(drop=True)); else keep one row"
        )
    cells = table.melt(about, list(labels), _COLUMN, _LABEL, ignore_index=False)
    cells = cells.rename(columns={_LABEL: "label"})
    cells = cells[cells["label"].notna()]
    cells["label"] = texts(cells["label"])
    if not blanks:
        cells = cells[cells["label"] != ""]
    cells["rater_id"] = cells[_COLUMN].map({each: rater for each, (rater, _) in labels.items()})
    cells["rater_kind"] = cells["rater_id"].map(kinds)
    if grid is not None:
        cells["rubric"] = cells[_COLUMN].map({each: of for each, (_, of) in labels.items()})
    return cells
