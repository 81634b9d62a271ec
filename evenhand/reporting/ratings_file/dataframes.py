"""Read tables of ratings, units and items as DataFrames, and ratings in long form.

`frame_of` reads a DataFrame of pandas, a table of another library, or columns or records of plain
Python. `rows_of_file` and `rows_of_table` return a row for each rating of a long or wide table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export
from evenhand.exchange.readers.rows import Export
from evenhand.reporting.ratings_file.columns import (
    Grid,
    RaterAndRubric,
    grid_in,
    kinds_spelled,
    refuse_missing,
    roles_in,
)
from evenhand.reporting.ratings_file.criteria import with_criteria
from evenhand.reporting.ratings_file.declared import ArrowTable, ScaleOptions, Table
from evenhand.reporting.ratings_file.labels import TABLE_STEPS, RatingsInput
from evenhand.study.tables.columns import fold, folded, listed, renamed
from evenhand.study.tables.formats import (
    FIRST_ROW,
    as_written,
    cell_text,
    read_table,
    row_number,
    with_named_index,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts, with_unit_id
from evenhand.texts import written

Names = Hashable | Iterable[Hashable]  # one name or label, or several
_COLUMN, _LABEL = "\ncolumn", "\nlabel"  # columns of a melted table, with names that no file has


def frame_of(source: Table, name: str = "ratings") -> pd.DataFrame:
    """Return a table as a DataFrame with texts for column names; `name` is what messages call it.
    What is missing in the table (null, None, NaN) is missing in the DataFrame. Raises InputError
    if it is no table, or if two columns have one name.
    """
    class_name = type(source).__name__
    if isinstance(source, pd.DataFrame):
        frame = _flat(source, name)
    elif isinstance(source, Mapping):
        frame = _of_columns(source, name)
    elif isinstance(source, (list, tuple)):
        frame = _of_records(source, name)
    elif hasattr(source, "to_frame"):  # a Series of pandas or polars
        raise InputError(f"{name}: a {class_name} is one column; a table of ratings has several")
    elif isinstance(source, ArrowTable):
        frame = _of_another_library(source, name)
    else:
        for method in ("collect", "compute"):  # a lazy frame of polars, a frame of Dask
            if hasattr(source, method):
                fault = f"this {class_name} is not computed yet; write .{method}() behind it"
                raise InputError(f"{name}: {fault}")
        raise InputError(
            f"{name}: a {class_name} is no table; give a DataFrame (pandas, polars, pyarrow), a "
            "dict of columns, a list of records, or a path"
        )
    table = frame.set_axis([cell_text(column) for column in frame.columns], axis=1)
    duplicates = table.columns[table.columns.duplicated()]
    if len(duplicates):
        raise InputError(f"{name}: two columns are called {duplicates[0]!r}; rename one")
    table = as_written(table)
    table.attrs = dict(frame.attrs)
    # As text, a missing cell of a categorical column would become "nan".
    dtypes = table.dtypes.items()
    categorical = [column for column, dtype in dtypes if isinstance(dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(categorical, object)) if categorical else table


def _flat(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a DataFrame with the named index of its rows, or levels of it, as columns."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"{name}: the columns have names of {frame.columns.nlevels} levels; give each one name"
        )
    is_multi = isinstance(frame.index, pd.MultiIndex)
    if is_multi and (None in frame.index.names or {*frame.index.names} & {*frame.columns}):
        raise InputError(
            f"{name}: its rows are named by an index of {frame.index.nlevels} levels; name the "
            "levels as columns that it does not have, or write .reset_index(drop=True)"
        )
    return with_named_index(frame)


def _of_columns(source: Mapping[Any, Collection[object]], name: str) -> pd.DataFrame:
    """Read a mapping of columns. Raises InputError if one is no list or of another length."""
    columns: dict[str, Any] = {}
    for column, cells in source.items():
        if isinstance(cells, (str, bytes, Mapping)) or not hasattr(cells, "__len__"):
            raise InputError(
                f"{name}: the column {cell_text(column)!r} must be a list of cells, not a "
                f"{type(cells).__name__}"
            )
        columns[column] = pd.Series(list(cells), dtype=object)
    lengths = {column: len(cells) for column, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{cell_text(column)} {length}" for column, length in lengths.items())
        raise InputError(f"{name}: the columns differ in length ({counts}); each row needs a cell")
    return pd.DataFrame(columns)


def _of_records(source: Sequence[Mapping[Any, object]], name: str) -> pd.DataFrame:
    """Read a list of records. Raises InputError if one is no mapping."""
    for number, record in enumerate(source):
        if not isinstance(record, Mapping):
            raise InputError(
                f"{name}: record {number} is a {type(record).__name__}; give each row as a dict, "
                "{column: cell}"
            )
    return pd.DataFrame(list(source), dtype=object)


def _of_another_library(source: Any, name: str) -> pd.DataFrame:
    """Read a table by pyarrow, or one of polars without it; integers with nulls stay integers."""
    class_name = type(source).__name__
    try:
        import pyarrow
    except ModuleNotFoundError:
        pyarrow = None
    try:
        if pyarrow is not None:
            table, columns = pyarrow.table(source), []
            for column in table.columns:
                try:
                    columns.append(column.to_pandas(integer_object_nulls=True))
                except NotImplementedError:  # a type that pandas does not have
                    columns.append(pd.Series(column.to_pylist(), dtype=object))
            empty = pd.DataFrame(index=pd.RangeIndex(table.num_rows))
            frame = pd.concat(columns, axis=1) if columns else empty
            return frame.set_axis(table.column_names, axis=1)
        if hasattr(source, "to_dicts"):  # a frame of polars, read without pyarrow
            return _of_records(source.to_dicts(), name)
    except (ImportError, NotImplementedError, TypeError, ValueError, RuntimeError) as fault:
        reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise InputError(f"{name}: this {class_name} cannot be read ({reason})") from None
    raise InputError(
        f"{name}: reading a {class_name} takes pyarrow; run pip install pyarrow, or give a "
        "DataFrame of pandas"
    )


def as_texts(names: Names) -> tuple[str, ...]:
    """Return names or labels as the texts that files have.

    >>> as_texts([1, 2.0, "x"]), as_texts("gpt")
    (('1', '2', 'x'), ('gpt',))
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (cell_text(names),)
    return tuple(cell_text(name) for name in names)


def kinds_of(human: Names, model: Names) -> dict[str, str]:
    """Return the kind of each rater named. Raises InputError if one is named as both."""
    people, models = as_texts(human), as_texts(model)
    if both := [rater for rater in people if rater in models]:
        raise InputError(f"human and model both name {both[0]!r}; name each rater in one of them")
    return dict.fromkeys(people, "human") | dict.fromkeys(models, "model")


def units_table(source: Path | Table) -> tuple[pd.DataFrame, str]:
    """Return a file or a table of units, all cells as texts, and its name in messages."""
    if isinstance(source, Path):
        name, table = source.name, with_unit_id(read_table(source))
    else:
        name, table = "units", _with_unit_ids(frame_of(source, "units"))
        table = _with_texts(table, table.columns)
    if "unit_id" in table:
        table = table.assign(unit_id=fold(table["unit_id"]))
    return table, name


def _refuse_sheet(sheet: str) -> None:
    """Raise InputError if a sheet is named for a table in memory."""
    if sheet:
        raise InputError("sheet= names one of a workbook; a table in memory has none, leave it out")


def items_table(source: Table, sheet: str = "") -> pd.DataFrame:
    """Return a table of items, all cells as texts."""
    _refuse_sheet(sheet)
    table = _numbered(frame_of(source, "items"))
    return _with_texts(table, table.columns)


def _with_unit_ids(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with unit ids, if it has any, as texts, and rows `_numbered`."""
    table = with_unit_id(_numbered(table))
    return _with_texts(table, ["unit_id"]) if "unit_id" in table else table


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an index that messages add FIRST_ROW to, for the user's row numbers."""
    has_numbers = pd.api.types.is_integer_dtype(table.index) and table.index.is_unique
    numbers = table.index if has_numbers else pd.RangeIndex(len(table))
    return table.set_axis(numbers - FIRST_ROW, axis=0)


def _with_texts(table: pd.DataFrame, columns: Iterable[Hashable]) -> pd.DataFrame:
    """Return a table with the cells of these columns as texts."""
    return table.assign(**{str(column): texts(table[column]) for column in columns})


def rows_of_file(file: Path, options: ScaleOptions) -> tuple[pd.DataFrame, RatingsInput]:
    """Return the rows of a ratings file or a tool's export; a blank cell in it is no rating."""
    export = read_export(file, options.format, several=options.several, sheet=options.sheet)
    table = export.table.set_axis(export.table.index + FIRST_ROW, axis=0)
    return _rows_of(replace(export, table=table), file.name, options, keep_blanks=False)


def rows_of_table(source: Table, options: ScaleOptions) -> tuple[pd.DataFrame, RatingsInput]:
    """Return the rows of a table of any library; an empty text in a wide one is a rating, too."""
    _refuse_sheet(options.sheet)
    frame = frame_of(source, options.name)
    export = Export(frame, frame.attrs.get("notes", ()))
    return _rows_of(export, options.name, options, keep_blanks=True)


def _rows_of(
    export: Export, name: str, options: ScaleOptions, *, keep_blanks: bool
) -> tuple[pd.DataFrame, RatingsInput]:
    """Return the rows of a long or wide table, by the numbers that rows have for the user."""
    table = renamed(export.table, options.columns, name)
    table = with_criteria(_numbered(table), name).set_axis(table.index, axis=0)
    table, options, items = roles_in(table, name, options, export)
    rows, ratings_input = long_rows(table, name, options, keep_blanks=keep_blanks)
    units = table["unit_id"].tolist() if export.by_unit else None
    notes = [*export.notes, *ratings_input.notes]
    return rows, replace(ratings_input, units=units, items=items, notes=notes)


def long_rows(
    source: pd.DataFrame, name: str, options: ScaleOptions, *, keep_blanks: bool = True
) -> tuple[pd.DataFrame, RatingsInput]:
    """Return the rows of a table in long form, and how it was read. `source` is long, with a column
    `rater_id`, or wide, with a column for each rater in the `kinds` of `options`, or for each of
    them and each rubric; without ids of items each row of it is one. Its blank cells are ratings
    without a label (`keep_blanks`) or no ratings; missing ones never are. The index is the user's.
    """
    table = _with_unit_ids(source)
    is_wide = "rater_id" not in table and bool(options.kinds or options.wide)
    if is_wide:
        if "unit_id" not in table:  # rows are items, named by their index
            table.insert(0, "unit_id", texts(source.index.to_series()).to_numpy())
        table, ratings_input = _from_wide(table, name, options, keep_blanks=keep_blanks)
    else:
        if options.wide:
            wide = options.spelled("wide", options.wide)
            raise InputError(f"{name} has a row for each rating; leave {wide} out")
        refuse_missing(table, name, options)
        kinds = {folded(rater): kind for rater, kind in options.kinds.items()}
        ratings_input = RatingsInput(name, replace(options, kinds=kinds))
    notes = [*ratings_input.notes]
    for step in TABLE_STEPS:
        table, step_notes = step(table, ratings_input)
        notes += step_notes
    if is_wide:  # the steps name rows by the index; later ones find them by position, in `rows`
        table = table.reset_index(drop=True)
    further_columns = [column for column in table if column not in RATINGS_COLUMNS]
    return _with_texts(table, further_columns), replace(ratings_input, notes=notes)


def _from_wide(
    table: pd.DataFrame, name: str, options: ScaleOptions, *, keep_blanks: bool
) -> tuple[pd.DataFrame, RatingsInput]:
    """Return the ratings of a wide table, each with the index of its row, and how it was read."""
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    grid, notes = grid_in(table, columns, options), []
    # Of columns with our names, only items, rubrics and raters called so have a meaning here.
    reserved_names = set(RATINGS_COLUMNS) - {"unit_id", "rubric", *options.kinds}
    if reserved := [column for column in table if column in reserved_names]:
        table = table.drop(columns=reserved)
        notes.append(written("reading.wide_reserved", columns=", ".join(reserved)))
    pair_of = {rater: RaterAndRubric(rater, "") for rater in options.kinds}
    if grid is not None:
        _check_grid(grid, table, name, options)
        pair_of = dict(grid.columns)
        raters, rubrics = listed(grid.raters), listed(grid.rubrics)
        wide = options.spelled("wide", grid.pattern)
        notes.append(written("reading.grid", raters=raters, rubrics=rubrics, wide=wide))
        if grid.unlabelled:
            notes.append(written("reading.grid_others", columns=listed(grid.unlabelled)))
    _check_rows(table, list(pair_of), name, options)
    other_columns = [column for column in table if column not in pair_of]
    ratings = table.melt(other_columns, list(pair_of), _COLUMN, _LABEL, ignore_index=False)
    ratings = ratings.rename(columns={_LABEL: "label"})
    ratings["rater_id"] = ratings[_COLUMN].map(lambda column: pair_of[column].rater)
    ratings["rater_kind"] = ratings["rater_id"].map(options.kinds)
    is_rating = ratings["label"].notna() if keep_blanks else texts(ratings["label"]) != ""
    # A grader that gave no label at all is judged, too, so its column is kept.
    has_no_label = ~ratings[_COLUMN].isin(ratings.loc[is_rating, _COLUMN])
    ratings = ratings[is_rating | (has_no_label & (ratings["rater_kind"] == "model"))]
    ratings["label"] = texts(ratings["label"])
    if grid is not None:
        ratings["rubric"] = ratings[_COLUMN].map(lambda column: pair_of[column].rubric)
    # The row and the column of each label, as messages name them.
    rows, label_columns = (ratings.index + FIRST_ROW).tolist(), ratings.pop(_COLUMN).tolist()
    return ratings, RatingsInput(name, options, rows, label_columns, notes=notes)


def _check_grid(grid: Grid, table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError if a wide table has no columns of the grid, or raters have no kinds."""
    wide, fault = options.spelled("wide", options.wide), ""
    all_columns = f"it has {listed(table.columns.drop('unit_id', errors='ignore'))}"
    if not options.kinds and grid.columns:
        fault = (
            "does not say which raters are annotators and which are graders "
            f"({listed(grid.raters)}); say so with {kinds_spelled(grid.raters, options)}"
        )
    elif absent := [rater for rater in options.kinds if rater not in grid.raters]:
        fault = f"has no columns {wide} of {listed(absent)}; {all_columns}"
    elif not grid.columns:
        rule = "of two or more raters that all have the same rubrics"
        fault = f"has no columns {wide} {rule}; {all_columns}"
    elif "rubric" in table:
        fault = (
            f"has a column 'rubric', and {wide} takes rubrics from the names of columns; leave one "
            "of them out"
        )
    if fault:
        raise InputError(f"{name} {fault}")


def _check_rows(table: pd.DataFrame, columns: list[str], name: str, options: ScaleOptions) -> None:
    """Raise InputError if a column is missing, a row has no item, or an item has two rows."""
    for column in columns:
        if column not in table:  # it is a rater's, of the options
            similar = [col for col in map(str, table) if column in re.split(r"[^A-Za-z0-9]", col)]
            wide = options.spelled("wide", "{rater}_{rubric}")
            hint = f"; columns such as {similar[0]} are read with {wide}" if similar else ""
            further = listed(table.columns.drop("unit_id"))  # the file may call ids otherwise
            raise InputError(f"{name} has no column {column!r}; it has {further}{hint}")
    if (is_unnamed := table["unit_id"] == "").any():
        row = row_number(table, int(is_unnamed.to_numpy().argmax()))
        raise InputError(f"{name}, row {row}: unit_id is ''; it must be filled in")
    ids = [key for key in ("unit_id", "rubric") if key in table and key not in columns]
    is_duplicate = table.duplicated(ids)
    if is_duplicate.any():
        raise InputError(
            f"{name}: item {table.loc[is_duplicate, 'unit_id'].iloc[0]!r} has two rows. If each "
            "row is rated by itself, call the column of ids 'item' (rows of one item then count as "
            "one cluster; an index goes by reset_index(drop=True)); else keep one row"
        )
