"""An Excel workbook (.xlsx): its one sheet that holds a table, or the one that is named."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemTable
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import Source, label_cell
from evenhand.study.tables.decoded import CELL, MOST_DECODED
from evenhand.study.tables.formats import FIRST_ROW, cell_text
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_MOST_UNPACKED = 256 * 1024**2
"""Bytes of a workbook's parts together; who unpacks them holds several times as much."""
_MOST_COLUMNS = 2_000
_ROW = 100
_AS_CSV = "save its sheet as a CSV file (in Excel: 'CSV UTF-8 (Comma delimited)')"
_TOO_LARGE = "{name} is too large a workbook; " + _AS_CSV


def recognises(source: Source) -> bool:
    names = source.archive.names if source.archive else []
    return "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)


def read(source: Source) -> Export:
    """Read units, raters and labels by the same rules as in a CSV file."""
    if source.archive:
        source.archive.keep_within(_MOST_UNPACKED)
        for name in source.archive.names:  # bounded here, before another reader unpacks it
            source.archive.read(name)
    try:
        sheet, rows, others = _sheet(source)
    except InputError:
        raise
    except Exception as fault:  # a damaged workbook raises any of XML's, ZIP's and its own kinds
        kind = type(fault).__name__
        raise InputError(
            f"{source.name} is a workbook of Excel that cannot be read ({kind}); {_AS_CSV}"
        ) from None
    notes = [written("exchange.excel", sheet=sheet)]
    if others:
        notes.append(written("exchange.excel_others", sheets=", ".join(others)))
    return Export(_table(rows, source.name), notes)


def items(source: Source) -> ItemTable | None:
    """Read rows as those of a CSV file."""
    if not recognises(source):
        return None
    found = read(source)
    return ItemTable(found.table, found.notes)


def _sheet(source: Source) -> tuple[str, list[tuple[int, list[str]]], list[str]]:
    """The name of the sheet that is asked for, or else of the only one with a table, its rows that
    hold anything, by number, and the names of sheets that hold something else. Raises InputError
    where several hold a table, or none holds a cell.
    """
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations that are not read
        book = load_workbook(io.BytesIO(source.path.read_bytes()), read_only=True, data_only=True)
    found = {}
    for sheet in book.worksheets:
        if source.sheet and sheet.title != source.sheet:
            continue
        sheet.reset_dimensions()  # a workbook may claim a million rows
        rows = [
            (number, cells)
            for number, cells in enumerate(_cells(sheet, source.name), start=1)
            if any(cells)
        ]
        if rows:
            found[str(sheet.title)] = rows
    if not found and source.sheet:
        known = ", ".join(str(sheet.title) for sheet in book.worksheets)
        raise InputError(f"{source.name} has no sheet {source.sheet!r} with a cell; it has {known}")
    if not found:
        raise InputError(f"{source.name}: no sheet holds a cell")
    tables = [name for name, rows in found.items() if _is_table(rows)] or list(found)
    if len(tables) > 1:
        raise InputError(
            f"{source.name} has several sheets ({', '.join(tables)}); name the one to read with "
            "--sheet NAME"
        )
    others = [name for name in found if name != tables[0]]
    return tables[0], found[tables[0]], others


def _is_table(rows: list[tuple[int, list[str]]]) -> bool:
    """Return True if a row of two or more names has rows below it."""
    return len(rows) > 1 and sum(map(bool, rows[0][1])) > 1


def _cells(sheet: Any, name: str) -> Iterator[list[str]]:
    left = MOST_DECODED
    for row in sheet.iter_rows(values_only=True):
        # A text that many cells share is in the file once.
        left -= _ROW + sum(CELL + (len(each) if isinstance(each, str) else 0) for each in row)
        if left < 0 or len(row) > _MOST_COLUMNS:
            raise InputError(_TOO_LARGE.format(name=name))
        yield [
            cell_text(value).strip() if isinstance(value, str) else label_cell(value)
            for value in row
        ]


def _table(rows: list[tuple[int, list[str]]], name: str) -> pd.DataFrame:
    import pandas as pd

    (_, header), *body = rows
    while header and not header[-1]:
        header.pop()
    for column in header:
        if not column or header.count(column) > 1:
            at = (
                ""
                if any(header[:1])
                else " (cell A1; to_excel(index=False) leaves pandas' index out)"
            )
            what = f"two columns are called {column!r}" if column else f"a column has no name{at}"
            raise InputError(f"{name}: {what}; give each column a name of its own in its first row")
    for number, row in body:
        if any(row[len(header) :]):
            raise InputError(
                f"{name}, row {number}: {len(row)} cells where the first row has {len(header)}; "
                "name every column in the first row, and move other cells to another sheet"
            )
    cells = [[*islice(row, len(header)), *[""] * (len(header) - len(row))] for _, row in body]
    index = [number - FIRST_ROW for number, _ in body]
    return pd.DataFrame(cells, columns=header, index=index, dtype=str)
