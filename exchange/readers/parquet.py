"""A Parquet file for the readers: the names of its columns, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.exchange.readers.source import MOST_BYTES, Record, Source, Written
from evenhand.study.tables.decoded import check_parquet
from evenhand.study.tables.formats import cell_text


def columns_of(source: Source) -> list[str]:
    """The names of its columns; empty if it cannot be read as Parquet."""
    if not source.head.startswith(b"PAR1"):
        return []
    import pyarrow.parquet as parquet

    try:
        return list(parquet.read_schema(source.path).names)
    except Exception:  # the error for an unreadable Parquet file is raised where tables are read
        return []


def records_of(source: Source, columns: Sequence[str]) -> list[Record]:
    """The rows, those columns alone, as a JSON file has them; numbers are texts, at any depth.

    Raises InputError where the file is damaged or too large.
    """
    import pyarrow.parquet as parquet

    if source.path.stat().st_size > MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    try:
        check_parquet(source.path)
        rows = parquet.read_table(source.path, columns=list(columns)).to_pylist()
    except InputError:
        raise
    except Exception as fault:  # pyarrow raises many kinds for a file that is damaged
        raise InputError(f"{source.name} cannot be read ({type(fault).__name__})") from None
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (bool, str)) or value is None:
        return value
    return Written(cell_text(value))
