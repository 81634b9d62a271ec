"""An Excel workbook (.xlsx): its one sheet that holds a table, or the one that is named."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, time
from itertools import islice
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, Reader, Rows
from evenhand.exchange.readers.source import Source, label_cell, readable
from evenhand.lazy import pd
from evenhand.study.tables.formats import CELL, FIRST_ROW, MOST_DECODED, check_table
from evenhand.texts import written

_MOST_UNPACKED = 256 * 1024**2
"""Bytes of a workbook's parts together; who unpacks them holds several times as much."""
_ROW = 100
_MOST_NAMED = 3
_TIMED = re.compile(r"date|time|created|updated|stamp|(^|[_\W])(at|on|day|when)([_\W]|$)", re.I)
"""Names of columns whose cells are times."""
_AS_CSV = "save its sheet as a CSV file (in Excel: 'CSV UTF-8 (Comma delimited)')"
_TOO_LARGE = "{name} is too large a workbook; " + _AS_CSV


class _Row(NamedTuple):
    """A row by number: the texts of its cells, and the places of those that are dates."""

    number: int
    cells: list[str]
    dates: tuple[int, ...]


def _is_excel(source: Source) -> bool:
    names = source.archive.names if source.archive else []
    return "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names)


def _read_excel(_: Rows, source: Source) -> Export:
    """Read units, raters and labels by the same rules as in a CSV file."""
    formulas = False
    if source.archive:
        source.archive.keep_within(_MOST_UNPACKED)
        for name in source.archive.names:  # bounded here, before another reader unpacks it
            content = source.archive.read(name)
            formulas = formulas or (name.startswith("xl/worksheets/") and b"<f" in content)
    with readable(f"{source.name} is a workbook of Excel that", f"; {_AS_CSV}"):
        sheet, rows, others = _sheet(source)
        if formulas:
            _refuse_unsaved(source, sheet, rows)
    table = _table(rows, source.name)
    _refuse_dates(rows, f"{source.name}, sheet {sheet}")
    notes = [written("exchange.excel", sheet=sheet)]
    if others:
        notes.append(written("exchange.excel_others", sheets=", ".join(others)))
    return Export(table, notes)


def _excel_items(_: ItemRows, source: Source) -> ItemTable:
    """Read rows as those of a CSV file."""
    found = _read_excel(Rows(source), source)
    return ItemTable(found.table, found.notes)


def _sheet(source: Source) -> tuple[str, list[_Row], list[str]]:
    """The name of the sheet that is asked for, or else of the only one with a table, its rows that
    hold anything, by number, and the names of sheets that hold something else. Raises InputError
    where several hold a table, or none holds a cell.
    """
    book = _book(source)
    found = {}
    for sheet in book.worksheets:
        if source.sheet and sheet.title != source.sheet:
            continue
        sheet.reset_dimensions()  # a workbook may claim a million rows
        rows = [row for row in _rows(sheet, source.name) if any(row.cells)]
        if rows:
            found[str(sheet.title)] = rows
    if not found and source.sheet:
        known = ", ".join(str(sheet.title) for sheet in book.worksheets)
        raise InputError(f"{source.name} has no sheet {source.sheet!r} with a cell; it has {known}")
    if not found:
        raise InputError(f"{source.name}: no sheet holds a cell")
    # A table is a row of two or more names with rows below it.
    wide = [name for name, rows in found.items() if rows[1:] and sum(map(bool, rows[0].cells)) > 1]
    tables = wide or list(found)
    if len(tables) > 1:
        raise InputError(
            f"{source.name} has several sheets ({', '.join(tables)}); name the one to read with "
            "--sheet NAME"
        )
    others = [name for name in found if name != tables[0]]
    return tables[0], found[tables[0]], others


def _book(source: Source, *, formulas: bool = False) -> Any:
    """The workbook, with the values of cells, or with `formulas` in their place."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations that are not read
        content = io.BytesIO(source.path.read_bytes())
        return load_workbook(content, read_only=True, data_only=not formulas)


def _refuse_unsaved(source: Source, title: str, rows: Sequence[_Row]) -> None:
    """Raise InputError where cells are formulas whose values the workbook does not hold, as a
    program writes them; where it holds some, the other formulas give nothing.
    """
    sheet = next(
        each for each in _book(source, formulas=True).worksheets if str(each.title) == title
    )
    sheet.reset_dimensions()
    known = {row.number: row.cells for row in rows}
    columns = rows[0].cells
    unsaved: Counter[str] = Counter()
    for number, row in enumerate(sheet.iter_rows(), start=1):
        values = dict(enumerate(known.get(number, ())))
        for at, cell in enumerate(row):
            if cell.data_type == "f":
                if values.get(at):
                    return
                named = at < len(columns) and columns[at]
                unsaved[repr(columns[at]) if named else cell.column_letter] += 1
    if unsaved:
        counts = ", ".join(f"{name} ({count:,})" for name, count in unsaved.items())
        raise InputError(
            f"{source.name}, sheet {title}: cells are formulas without stored values, by column "
            f"{counts}; open the file in Excel or LibreOffice and save it, and they have values"
        )


def _refuse_dates(rows: Sequence[_Row], place: str) -> None:
    """Raise InputError for a column with some dates: Excel makes dates of labels such as 1-2."""
    from openpyxl.utils import get_column_letter

    header, *body = rows
    for at, column in enumerate(header.cells):
        dates = [row.number for row in body if at in row.dates]
        others = [row for row in body if row.cells[at : at + 1] not in ([], [""])]
        if not dates or len(others) == len(dates) or _TIMED.search(column):
            continue
        named = ", ".join(f"{get_column_letter(at + 1)}{each}" for each in dates[:_MOST_NAMED])
        more = f" and {len(dates) - _MOST_NAMED} more" if len(dates) > _MOST_NAMED else ""
        raise InputError(
            f"{place}, column {column!r}: {named}{more} are dates, and other cells are not; Excel "
            "makes dates of labels such as 1-2. Format the column as Text and type these labels "
            "again"
        )


def _rows(sheet: Any, name: str) -> Iterator[_Row]:
    left = MOST_DECODED
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        check_table(row, number, name)
        # A text that many cells share is in the file once.
        left -= _ROW + sum(CELL + (len(each) if isinstance(each, str) else 0) for each in row)
        if left < 0:
            raise InputError(_TOO_LARGE.format(name=name))
        cells = [label_cell(each.strip() if isinstance(each, str) else each) for each in row]
        dates = tuple(at for at, value in enumerate(row) if isinstance(value, (date, time)))
        yield _Row(number, cells, dates)


def _table(rows: Sequence[_Row], name: str) -> pd.DataFrame:
    header = list(rows[0].cells)
    body = [(row.number, row.cells) for row in rows[1:]]
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


READERS = {"excel": Reader(_is_excel, _read_excel, _excel_items)}
