"""Tables of other libraries, and columns or records of plain Python, as a DataFrame of pandas."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pandas as pd

from evenhand.errors import InputError
from evenhand.study.tables.formats import cell_text


@runtime_checkable
class ArrowTable(Protocol):
    """A table of any library that speaks Arrow: polars, pyarrow, DuckDB and others (the Arrow
    PyCapsule interface).
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class InterchangeTable(Protocol):
    """A table of any library that speaks the DataFrame interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


if TYPE_CHECKING:
    Table = (
        pd.DataFrame
        | ArrowTable
        | InterchangeTable
        | Mapping[Any, Collection[object]]
        | Sequence[Mapping[Any, object]]
    )
    """What is read as a table: that of a library, columns by their names, or a list of records."""


def frame_of(given: Table, name: str = "ratings") -> pd.DataFrame:
    """A table as a DataFrame with texts for column names; `name` is what messages call it.

    What is missing in the table (null, None, NaN) is missing in the DataFrame. Raises InputError
    where it is no table, or where two columns have one name.
    """
    if isinstance(given, pd.DataFrame):
        found = _flat(given, name)
    elif isinstance(given, Mapping):
        found = _of_columns(given, name)
    elif isinstance(given, (list, tuple)):
        found = _of_records(given, name)
    elif hasattr(given, "to_frame") or not isinstance(given, (ArrowTable, InterchangeTable)):
        raise InputError(f"{name}: {_no_table(given)}")
    else:
        found = _of_another_library(given, name)
    table = found.set_axis([cell_text(column) for column in found.columns], axis=1)
    again = table.columns[table.columns.duplicated()]
    if len(again):
        raise InputError(f"{name}: two columns are called {again[0]!r}; rename one")
    table.attrs = dict(found.attrs)
    # A missing cell of a categorical column would become the text "nan" where texts are made of it.
    coded = [column for column in table if isinstance(table[column].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(coded, object)) if coded else table


def _no_table(given: object) -> str:
    kind = type(given).__name__
    if hasattr(given, "to_frame"):
        return f"a {kind} is one column; a table of ratings has several"
    for method in ("collect", "compute"):  # a lazy frame of polars, a frame of Dask
        if hasattr(given, method):
            return f"this {kind} is not computed yet; write .{method}() behind it"
    return (
        f"a {kind} is no table; give a DataFrame (pandas, polars, pyarrow), a dict of columns, a "
        "list of records, or a path"
    )


def _flat(given: pd.DataFrame, name: str) -> pd.DataFrame:
    """A DataFrame whose named levels of an index of several are columns."""
    if isinstance(given.columns, pd.MultiIndex):
        raise InputError(
            f"{name}: the columns have names of {given.columns.nlevels} levels; give each one name"
        )
    if not isinstance(given.index, pd.MultiIndex):
        return given
    if None in given.index.names or set(given.index.names) & set(given.columns):
        raise InputError(
            f"{name}: its rows are named by an index of {given.index.nlevels} levels; name the "
            "levels as columns that it does not have, or write .reset_index(drop=True)"
        )
    return given.reset_index()


def _of_columns(given: Mapping[Any, Collection[object]], name: str) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for column, cells in given.items():
        if isinstance(cells, (str, bytes, Mapping)) or not hasattr(cells, "__len__"):
            raise InputError(
                f"{name}: the column {cell_text(column)!r} must be a list of cells, not a "
                f"{type(cells).__name__}"
            )
        columns[column] = pd.Series(list(cells), dtype=object)
    lengths = {column: len(cells) for column, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{cell_text(column)} {length}" for column, length in lengths.items())
        raise InputError(f"{name}: the columns differ in length ({said}); each row needs a cell")
    return pd.DataFrame(columns)


def _of_records(given: Sequence[Mapping[Any, object]], name: str) -> pd.DataFrame:
    for number, record in enumerate(given):
        if not isinstance(record, Mapping):
            raise InputError(
                f"{name}: record {number} is a {type(record).__name__}; give each row as a dict, "
                "{column: cell}"
            )
    return pd.DataFrame(list(given), dtype=object)


def _of_another_library(given: Any, name: str) -> pd.DataFrame:
    """By Arrow, where pyarrow is installed, else by the interchange protocol."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        pyarrow = None
    try:
        if pyarrow is not None and hasattr(given, "__arrow_c_stream__"):
            return _of_arrow(pyarrow.table(given))
        if hasattr(given, "to_dicts"):  # a frame of polars, which needs nothing for it
            return _of_records(given.to_dicts(), name)
        if hasattr(given, "__dataframe__"):
            with warnings.catch_warnings():  # pandas 3 reads it, and wants Arrow instead
                warnings.simplefilter("ignore", DeprecationWarning)
                return pd.api.interchange.from_dataframe(given)
    except (ImportError, NotImplementedError, TypeError, ValueError, RuntimeError) as fault:
        said = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
        raise InputError(f"{name}: this {type(given).__name__} cannot be read ({said})") from None
    raise InputError(
        f"{name}: reading a {type(given).__name__} takes pyarrow; run pip install pyarrow, or give "
        "a DataFrame of pandas"
    )


def _of_arrow(table: Any) -> pd.DataFrame:
    """A table of pyarrow. Whole numbers stay so beside nulls; what has no type becomes objects."""
    columns = []
    for column in table.columns:
        try:
            columns.append(column.to_pandas(integer_object_nulls=True))
        except NotImplementedError:
            columns.append(pd.Series(column.to_pylist(), dtype=object))
    index = pd.RangeIndex(table.num_rows)
    found = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=index)
    return found.set_axis(table.column_names, axis=1)
