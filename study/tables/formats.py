"""Tables as files: CSV, JSON, JSONL and Parquet, every cell as text, within limits.

A label "01" stays "01". The index of a table that was read is each row's number less `FIRST_ROW`,
so that a message can name the row after others were left out. `row_number` counts as a person does:
in CSV with the header as row 1, elsewhere lines or records from 1. Sections: limits, whole tables
(`read_table`, `write_table`), files with a wrong extension, cells that look like formulas, ratings
in pieces (`pieces_of`, `batches_of`).
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

from evenhand.errors import InputError
from evenhand.lazy import pa, pc, pd, pq
from evenhand.study.tables.columns import renamed
from evenhand.study.tables.files import atomic_write
from evenhand.texts import written

# ---- limits -------------------------------------------------------------------------------------
MOST_COLUMNS = 2_500  # columns of a table: annotators with a column each, and facts about the items
MOST_CELLS = 40_000_000  # of a table that is read as a whole, with those that JSON leaves out


def check_table(columns: Sized, rows: int, name: str) -> None:
    """Raise InputError where a table has more columns, or more cells, than can be read."""
    if len(columns) > MOST_COLUMNS:
        raise InputError(written("too_large.columns", name=name, most=MOST_COLUMNS))
    if len(columns) * rows > MOST_CELLS:
        raise InputError(written("too_large.cells", name=name, most=MOST_CELLS))


# The decoded size of a file is checked before it is read: Parquet stores a repeated text once, so a
# few hundred kilobytes on disk may hold gigabytes.
MOST_DECODED = 1024**3
"""Bytes that a table read as a whole may hold: its texts, and `CELL` for each of its cells."""
CELL = 32  # bytes
MOST_FOOTER = 16 * 1024**2  # bytes of a Parquet file's footer, which is read whole
_TAIL = 8  # bytes at the end of a Parquet file: the length of its footer, and PAR1
_MEASURED_ROWS = 16_384  # rows whose texts are measured at a time
_PART_BYTES = MOST_DECODED // 8  # texts that are decoded at a time where a table is read in parts


def has_small_footer(path: Path) -> bool:
    """Return True where the footer of a Parquet file can be parsed without much memory."""
    with path.open("rb") as file:
        file.seek(-min(_TAIL, path.stat().st_size), os.SEEK_END)
        return int.from_bytes(file.read(4), "little") <= MOST_FOOTER


def check_parquet(path: Path) -> None:
    """Raise InputError where a Parquet file holds more than is read at once: by the sizes in its
    footer, which bound all but dictionary-encoded texts, and by the lengths of these.
    """
    if not has_small_footer(path):
        raise InputError(written("too_large.footer", name=path.name, most=MOST_FOOTER // 1024**2))
    with pq.ParquetFile(path) as file:
        meta, texts = file.metadata, text_columns(file.schema_arrow)
        check_table(file.schema_arrow.names, meta.num_rows, path.name)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    size = sum(CELL * chunk.num_values + chunk.total_uncompressed_size for chunk in chunks)
    _check_size(size, path.name)
    if any("DICTIONARY" in encoding for chunk in chunks for encoding in chunk.encodings):
        with pq.ParquetFile(path, read_dictionary=texts) as file:  # none is decoded
            for batch in file.iter_batches(_MEASURED_ROWS, columns=texts):
                size += sum(map(_text_bytes, batch.columns))
                _check_size(size, path.name)


def check_arrow(table: pa.Table, name: str) -> None:
    """Raise InputError where a table, with dictionary-encoded texts decoded, holds too much."""
    size = CELL * table.num_rows * table.num_columns
    size += sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    _check_size(size, name)


def check_part(size: int, rows: int, rows_at_once: int, name: str) -> None:
    """Raise InputError if `rows` rows, of `size` bytes in memory, hold on average more than
    `MOST_DECODED` bytes for the `rows_at_once` that are in memory together.
    """
    if size > MOST_DECODED * max(1, math.ceil(rows / rows_at_once)):
        raise InputError(
            f"{name} holds more than {MOST_DECODED // 1024**2:,} MB in {rows_at_once:,} rows once "
            "it is unpacked; ratings need ids and labels, not whole texts"
        )


def _check_size(size: int, name: str) -> None:
    if size > MOST_DECODED:
        raise InputError(
            f"{name} holds more than {MOST_DECODED // 1024**2:,} MB once it is unpacked; leave out "
            "columns that are not needed, split it, or add `--engine dask`"
        )


def text_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that hold texts or bytes."""
    return [field.name for field in schema if _is_text(field.type)]


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    return any(test(kind) for test in tests)


def _text_bytes(column: Any) -> int:
    """Return the bytes of a column, with dictionary-encoded texts as if decoded."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if not _is_text(column.type):
        return 0  # numbers, for which `CELL` is enough
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


# ---- whole tables -------------------------------------------------------------------------------
FIRST_ROW = 2  # the row number of index 0: the first row below a header
DELIMITED = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".json", ".jsonl", ".ndjson")
SUFFIXES = "the extension must be .csv, .jsonl or .parquet"
_ONE_A_LINE = "write one JSON object a line"
_LONGEST_CELL = 2**31 - 1
MOST_JSON = 256 * 1024**2  # bytes of JSON that are parsed at once
_LARGE = 1_000_000  # bytes from which a plain CSV is read by the fast reader
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}
"""Names of the separators of cells, in the order in which they are tried if there is no comma."""
HEADLESS = "headless"  # the name for `--format` of a table whose first row is data
_FEWEST_ROWS, _MOST_ROWS = 3, 1_000  # that are compared with the first to see whether it is data
_QUOTED = 80  # characters of a header that a message quotes
_LIST = re.compile(r"\s*\[\s*\{")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_NOT_PLAIN = (b'"', b"\n\n", b"\n\r", b"\r\r", b"\0")  # a CSV with these is read slowly


def row_number(frame: pd.DataFrame | pd.Series, position: int) -> int:
    """Return the number of the row at a position, as a person who opens the file counts it."""
    return int(frame.index[position]) + FIRST_ROW


def read_table(path: str | Path, *, headed: bool = True) -> pd.DataFrame:
    """Read a CSV, TSV, JSON, JSONL or Parquet file as a table of texts, "" for a missing cell.

    The cells of a CSV file are separated by commas, or by the separator of its header: semicolons,
    tabs or vertical bars. If it is not `headed`, its columns are called `column1`, `column2` and so
    on. A JSON file is a list of objects, or has one on each line. Raises InputError where the file
    is absent, of another kind, not UTF-8, has a broken row, or seems to have no header.
    """
    path = Path(path)
    refuse_foreign(path)
    suffix = path.suffix.casefold()
    if suffix in DELIMITED:
        table = _read_csv(path, headed=headed)
        if _GUARDED_BYTES.search(path.read_bytes()):  # an apostrophe before = + - @: see `guarded`
            table = unguarded_frame(table).set_axis(unguarded_frame(table.columns), axis=1)
        if headed:
            refuse_headless(table, path.name)
        return table
    if not headed:
        raise InputError(f"{path.name} names its columns; leave --format {HEADLESS} out")
    return _read_json(path) if suffix in _JSON else _read_parquet(path)


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV, JSONL or Parquet by extension, whole or not at all."""
    path = Path(path)
    suffix = path.suffix.casefold()
    if suffix == ".csv":
        content = csv_bytes(frame)
    elif suffix in (".jsonl", ".ndjson"):
        # An object per line; numbers in full precision, which pandas' own writer cuts off.
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records).encode()
    elif suffix in (".parquet", ".pq"):
        content = frame.to_parquet(index=False)
    else:
        raise InputError(f"{path.name}: {SUFFIXES}")
    atomic_write(path, content)


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV, with formulas guarded; `read_table` restores the texts."""
    frame = frame.copy()
    for name in frame.select_dtypes(exclude="number"):
        frame[name] = frame[name].map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
    frame = frame.set_axis([guarded(str(name)) for name in frame], axis=1)
    # RFC 4180 line ends: with them the writer quotes a lone carriage return in a cell, too.
    return frame.to_csv(index=False, lineterminator="\r\n").encode()


_EXCEL_CELL, _EXCEL_ROWS = 32_767, 1_048_576  # characters of a cell, and rows, that Excel takes


def xlsx_bytes(frame: pd.DataFrame, name: str) -> bytes:
    """Return a table as a workbook of Excel, with no text as a formula, and control characters that
    a workbook cannot hold as U+FFFD. Raises InputError, with the `name` of the file, where Excel
    would cut off cells or rows.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    rows = [list(frame), *frame.astype(object).where(frame.notna(), None).to_numpy().tolist()]
    longest = max(len(cell) for row in rows for cell in row if isinstance(cell, str))
    if longest > _EXCEL_CELL or len(rows) > _EXCEL_ROWS:
        raise InputError(
            f"{name}: Excel takes {_EXCEL_CELL:,} characters a cell and {_EXCEL_ROWS:,} rows, and "
            f"here are {longest:,} and {len(rows):,}; write a .csv file"
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet()

    def cell_of(value: object) -> object:
        if not isinstance(value, str):
            return value
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", value))
        cell.data_type = "s"  # a text, even if it looks like a formula
        cell.quotePrefix = bool(_RISKY.match(value))  # and it stays one when someone edits it
        return cell

    for row in rows:
        sheet.append([cell_of(value) for value in row])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _read_csv(path: Path, *, headed: bool) -> pd.DataFrame:
    """Read a CSV file. Raises InputError for a bad header, or naming the first broken row."""
    if headed and (table := _read_large_csv(path)) is not None:
        return table
    text = _read_utf8(path)
    delimiter = delimiter_of(text.partition("\n")[0].partition("\r")[0])
    rows = _csv_rows(text, delimiter, path.name)
    number, header = next(rows, (0, []))
    if not header:
        raise InputError(f"{path.name}: its first row is blank; it must name the columns")
    if headed:
        _check_header(header, path.name)
    else:  # the first row is data
        rows = chain([(number, header)], rows)
        header = [f"column{position}" for position in range(1, len(header) + 1)]
    check_table(header, 0, path.name)
    cells_by_index: dict[int, list[str]] = {}
    for number, cells in rows:
        if not cells:
            continue
        check_table(header, number, path.name)
        if len(cells) != len(header):
            raise InputError(
                f"{path.name}, row {number}: {len(cells)} cells where the header has "
                f"{len(header)}; quote cells that hold {_SEPARATORS[delimiter]} or line breaks"
            )
        cells_by_index[number - FIRST_ROW] = cells
    body, index = list(cells_by_index.values()), list(cells_by_index)
    return pd.DataFrame(body, columns=header, index=index, dtype=str)


def _csv_rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number, from 1, and cells of each row. Raises InputError for an unclosed quote."""
    import csv

    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    number = 0  # of the last row that was read
    try:
        for number, cells in enumerate(reader, start=1):
            yield number, cells
    except csv.Error:  # strict reading stumbles over nothing but quotes
        raise InputError(
            f"{name}, row {number + 1}: a quoted cell does not end before a comma or the end "
            "of the row; close the quote, and write a quote inside a quoted cell twice"
        ) from None


def _read_large_csv(path: Path) -> pd.DataFrame | None:
    """Read a large CSV file fast; None if it is small, has one column, quotes or blank lines."""
    if path.stat().st_size < _LARGE or find_spec("pyarrow") is None:
        return None
    from pyarrow import ArrowInvalid, csv, string

    content = path.read_bytes()
    header = content[: content.find(b"\n")].decode("utf-8-sig", errors="replace").rstrip("\r")
    delimiter = delimiter_of(header)
    names = header.split(delimiter)
    has_lines = b"\n" in content  # no line ends of an old Mac
    if not has_lines or len(names) < 2 or any(sequence in content for sequence in _NOT_PLAIN):
        return None
    _check_header(names, path.name)
    check_table(names, content.count(b"\n"), path.name)  # no cell has a line break
    try:
        table = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            parse_options=csv.ParseOptions(quote_char=False, delimiter=delimiter),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, string())),
        )
    except ArrowInvalid:  # the slow reader names the broken row
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame


def delimiter_of(header: str) -> str:
    """Return the separator of a header's cells: a comma if there is one outside quotes, or another.

    >>> delimiter_of('id;"note, free"'), delimiter_of("id,note;free")
    (';', ',')
    """
    unquoted = re.sub(r'"[^"]*"', "", header)
    others = [separator for separator in _SEPARATORS if separator in unquoted]
    return "," if "," in unquoted or not others else others[0]


def refuse_headless(table: pd.DataFrame, name: str) -> None:
    """Raise InputError where the header of a table seems to be a row of data: at least one of its
    cells looks like the cells below it, and none looks different.
    """
    header, rows = [str(column) for column in table], table.iloc[:_MOST_ROWS]
    # Tools name columns that have no names by their numbers, from 0 or from 1.
    are_numbers = any(header == [*map(str, range(n, n + len(header)))] for n in (0, 1))
    if len(rows) < _FEWEST_ROWS or are_numbers:
        return
    are_alike = {_looks_like(cell, rows[cell].tolist()) for cell in header}  # None: unclear
    if True in are_alike and False not in are_alike:
        raise InputError(
            f"{name}: its first row ({', '.join(header)[:_QUOTED]}) holds data and no names of "
            "columns; write a first row that names them, or read them as column1, column2 and so "
            f"on with --format {HEADLESS}"
        )


def _looks_like(header: str, cells: list[str]) -> bool | None:
    """Return True if a header looks like the cells below it, False if not, None if unclear."""
    filled = [cell for cell in cells if cell]
    if not header or not filled:
        return None
    if header in filled:
        return True
    shapes = {_DIGITS.sub("0", cell) for cell in filled}
    has_same_shape = _DIGITS.sub("0", header) in shapes
    if len(shapes) == 1:
        return has_same_shape
    if all(map(_NUMBER.fullmatch, filled)):
        return has_same_shape or bool(_NUMBER.fullmatch(header))
    are_categories = 2 * len({*filled}) <= len(filled)  # each occurs twice on average
    return False if are_categories else None  # the header is none of them


def _check_header(header: list[str], name: str) -> None:
    if repeated := [column for column, count in Counter(header).items() if count > 1]:
        raise InputError(f"{name}: two columns are called {repeated[0]!r}; rename one")


def _read_json(path: Path) -> pd.DataFrame:
    """Read a JSON file with a list of objects, or with an object on each line."""
    name = path.name
    if path.stat().st_size > MOST_JSON and path.suffix.casefold() == ".json":
        raise InputError(f"{name} is too large to be read at once; {_ONE_A_LINE} (.jsonl)")
    text = _read_utf8(path)
    records = _list_cells(text, name) if _LIST.match(text) else jsonl_cells(io.StringIO(text), name)
    row_indices: list[int] = []
    columns: dict[str, list[str]] = {}
    for number, record in records:
        for column in record:
            if column not in columns:
                columns[column] = [""] * len(row_indices)  # of earlier records
        row_indices.append(number - FIRST_ROW)
        check_table(columns, len(row_indices), name)
        for column, cells in columns.items():
            cells.append(record.get(column, ""))
    return pd.DataFrame(columns, index=row_indices, dtype=str)


def _list_cells(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and cells of each object in a JSON list, or raise InputError."""
    where = name
    try:
        for number, record in enumerate(_parse_json(text), start=1):
            where = f"{name}, element {number} of the list"
            yield number, _cells_of(record, "element")
    except InputError as fault:
        raise InputError(f"{where}: {fault}") from None


def jsonl_cells(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and cells of each line of JSON, or raise InputError naming it."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            if line.strip() in ("{", "["):
                raise InputError(
                    "not valid JSON (it goes on over several lines); write each object on one line"
                )
            yield number, _cells_of(_parse_json(line, "; each line must be a JSON object"), "line")
        except InputError as fault:
            raise InputError(f"{name}, line {number}: {fault}") from None


def _parse_json(text: str, advice: str = "") -> Any:
    """Parse JSON. Raises InputError, which ends with the `advice`, where it is not valid."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        fault = f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
        raise InputError(f"not valid JSON ({fault}){advice}") from None
    except (ValueError, RecursionError):  # a number of 5,000 digits, 1,000 brackets
        raise InputError("JSON with too long a number, or nested too deeply to be read") from None


def _cells_of(record: object, noun: str) -> dict[str, str]:
    """Return an object as cells by column. Raises InputError where a table cannot hold it."""
    if not isinstance(record, dict):
        raise InputError(f"each {noun} must be a JSON object")
    cells = {key: cell_text(value) for key, value in record.items()}
    text = "".join(cells.values())
    if "\0" in text:
        raise InputError("a cell holds a NUL character; take it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("half a surrogate pair") from None
    return cells


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow  # noqa: F401 - pandas reads with it; an error here names it

    try:
        check_parquet(path)
        frame = with_named_index(pd.read_parquet(path))
    except InputError:
        raise
    except Exception as error:  # pyarrow raises many kinds for a file that is no Parquet
        raise InputError(f"{path.name} cannot be read as Parquet: {error}") from None
    frame = as_written(frame)
    cells = {column: frame[column].map(cell_text).to_numpy() for column in frame}
    first_index = 1 - FIRST_ROW  # there is no header: records are counted from 1
    return pd.DataFrame(cells, index=range(first_index, first_index + len(frame)), dtype=str)


def _read_utf8(path: Path) -> str:
    """Return the text of a file. Raises InputError naming the line that is not UTF-8."""
    content = path.read_bytes()
    if (position := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, position) + 1
        raise InputError(
            f"{path.name}, line {line}: the file holds a NUL byte; take it out, or save the file "
            "as UTF-8"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path.name}, line {line}: not UTF-8; save the file as UTF-8") from None


def cell_text(value: object) -> str:
    """Return a value as a cell: "" for a missing one, JSON for lists and objects, 2 for 2.0."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, as Parquet gives them
        value = value.tolist()
    if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT"):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    is_nested = isinstance(value, (dict, list, tuple))
    return json.dumps(value, ensure_ascii=False) if is_nested else str(value)


def with_named_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the named levels of its index as columns, as a CSV file has them."""
    names = [name for name in frame.index.names if name is not None and name not in frame]
    return frame.reset_index(names) if names else frame


def as_written(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose numbers of 32 bits are those that people see: 0.1, not 0.10000000149."""
    kinds = ("float32", "Float32", "float[pyarrow]")
    short = [name for name, dtype in frame.dtypes.items() if str(dtype) in kinds]
    texts = frame.astype(dict.fromkeys(short, "float32")).astype(dict.fromkeys(short, "str"))
    return texts.astype(dict.fromkeys(short, float)) if short else frame


# ---- files that are not what their extension says -----------------------------------------------
_HEAD = 4096  # bytes at the beginning of a file by which its kind is recognised
_LONGEST_LINE = 1024**2  # bytes of a line of JSON that is tried as a record
AS_CSV = "save its sheet as a CSV file (in Excel: 'CSV UTF-8 (Comma delimited)')"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # that of UTF-8
_WORKBOOK = re.compile(rb"\[Content_Types\]|xl/|opendocument\.spreadsheet")


def refuse_foreign(path: Path) -> None:
    """Raise InputError for a folder, and for a file that is not what its extension says."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise InputError(f"there is no file {path.name} in {path.absolute().parent}")
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(0)
        first_line = file.readline(_LONGEST_LINE)
        has_more_lines = first_line.endswith(b"\n") and bool(file.read(_HEAD).strip())
    suffix = path.suffix.casefold()
    if suffix == ".json" and has_more_lines:
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(first_line.removeprefix(_BYTE_ORDER_MARK)), dict):
                return  # an object on each line
    if fault := _fault_of(head, suffix):
        raise InputError(f"{path.name}{fault}")


def _fault_of(head: bytes, suffix: str) -> str:
    """Return why a file that begins so is no table, to follow its name in a message; or ""."""
    if head.startswith(b"PK\x03\x04"):
        if _WORKBOOK.search(head):
            return f" is a workbook of Excel or another spreadsheet; {AS_CSV}"
        return " is a ZIP archive; unpack it first"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return f" is a workbook of an old Excel; {AS_CSV}"
    if head.startswith(b"\x1f\x8b"):
        return " is compressed; unpack it with gunzip first"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ", line 1: the file is UTF-16; save the file as UTF-8"
    if head.startswith(b"PAR1") and suffix not in (".parquet", ".pq"):
        return " is a Parquet file; give it the extension .parquet"
    first_character = head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1]
    if first_character == b"{" and suffix in (*DELIMITED, ".json"):
        return f" holds JSON; {_ONE_A_LINE} and give it the extension .jsonl"
    if suffix in DELIMITED and first_character == b"[" and b"{" in head:
        return " holds one JSON list; give it the extension .json"
    if suffix in (".xlsx", ".xls", ".ods"):
        return f": {SUFFIXES}; {AS_CSV}"
    return "" if suffix in (*DELIMITED, *_JSON, ".parquet", ".pq") else f": {SUFFIXES}"


# ---- cells of CSV files that no spreadsheet runs as a formula -----------------------------------
_BEGINS = r"[=+\-@\t\r\n＝＋－＠]"
"""First characters of a formula, full-width signs included, which some spreadsheets accept."""
_RISKY = re.compile(f"'*{_BEGINS}")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_GUARDED = re.compile(f"'+{_BEGINS}")
_GUARDED_BYTES = re.compile(_GUARDED.pattern.encode())


def guarded(text: str) -> str:
    """Return a text as a cell of a CSV file; numbers stay as they are.

    A text that begins with = + - @ (full-width, too), a tab or a line break gets an apostrophe
    before it, and so does one that begins like such a cell: one apostrophe can always be taken off.

    >>> guarded("=1+1"), guarded("-0.5"), guarded("'=quoted"), guarded("'tis plain")
    ("'=1+1", '-0.5', "''=quoted", "'tis plain")
    """
    return f"'{text}" if _RISKY.match(text) and not _PLAIN_NUMBER.fullmatch(text) else text


def unguarded_frame(frame: Any) -> Any:
    """Return a table of cells, or its columns, with the texts that were `guarded`."""
    return frame.map(lambda cell: cell[1:] if _GUARDED.match(cell) else cell)


# ---- ratings in pieces --------------------------------------------------------------------------
# Files, folders and object stores, with no more than a batch of rows in memory. Every cell is text
# and every row has its index, as in `read_table`.
ROW = "row"  # the column with each row's index
PIECE_ROWS = 1_000_000  # approximate number of rows in a piece of a Parquet file
_BATCH_ROWS = 250_000  # most rows that are in memory at once
_ROW_BYTES = 50  # bytes of a typical row of text, by which the rows of a CSV or JSONL are estimated
_BLOCK = 32 * 2**20  # bytes of a CSV that are read at a time
_KINDS = {"csv": "CSV", "jsonl": "JSONL", "ndjson": "JSONL", "parquet": "Parquet", "pq": "Parquet"}


@dataclass(frozen=True)
class Piece:
    """A part of the ratings that is read by itself: a file, or some row `groups` of a Parquet file,
    at a path of a file system of fsspec. `columns` are those to be read, by our names,
    `first` is the index of its first row, and `rows` its approximate number of rows.
    """

    system: Any
    path: str
    kind: str
    columns: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    first: int = 0
    rows: int = 0
    header: tuple[str, ...] = ()  # names of a CSV's columns, without apostrophes that guard them

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return source_name(self.path)

    def read_error(self, error: Exception) -> InputError:
        """Return the error to raise for a library's error."""
        return InputError(f"{self.name} cannot be read as {self.kind}: {error}")


def source_name(source: str) -> str:
    """Return the name of a source in messages.

    >>> source_name("s3://bucket/ratings/")
    'ratings'
    """
    return PurePosixPath(source.rstrip("/")).name or source


def pieces_of(source: str, columns: Sequence[str], theirs: Mapping[str, str]) -> list[Piece]:
    """Return the pieces of a file or a folder of files, by path or URL; hidden files are left out.
    `columns` are evenhand's names of those to read; `theirs` are the files' names of some of them,
    `{ours: theirs}`. Raises InputError where there is nothing to read.
    """
    from fsspec import filesystem
    from fsspec.core import url_to_fs

    if "://" in source:
        try:
            system, path = url_to_fs(source)
        except (ImportError, ValueError) as error:
            scheme = source.partition("://")[0]  # the rest may hold a password
            raise InputError(f"{scheme}:// cannot be opened: {error}") from None
    else:
        system, path, local = filesystem("file"), source, Path(source)
        if not local.exists():
            raise InputError(f"there is no file {local.name} in {local.absolute().parent}")
    if not system.exists(path):
        raise InputError(f"there is nothing at {source}")
    pieces: list[Piece] = []
    for file_path in sorted(system.find(path)) if system.isdir(path) else [path]:
        file = PurePosixPath(file_path)
        kind = _KINDS.get(file.suffix[1:].casefold())
        if kind and not file.name.startswith((".", "_")):
            pieces += _pieces_in(Piece(system, file_path, kind), columns, theirs)
    if not pieces:
        name = source_name(source)
        raise InputError(f"{name} holds no .csv, .jsonl or .parquet file with ratings")
    return pieces


def batches_of(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    """Yield a piece's rows, as text, in tables of bounded size, or raise InputError."""
    names = [theirs.get(column, column) for column in piece.columns]
    readers = {"CSV": _csv_tables, "JSONL": _jsonl_tables, "Parquet": _parquet_tables}
    try:
        with piece.system.open(piece.path, "rb") as file:
            for index, table in readers[piece.kind](file, piece, names):
                columns = map(_as_texts, table.select(names).columns)
                cells = dict(zip(piece.columns, columns, strict=True))
                yield pa.table({**cells, ROW: pa.array(index, pa.int64())})
    except pa.ArrowException as error:
        raise piece.read_error(error) from None
    except UnicodeDecodeError:
        raise InputError(f"{piece.name}: not UTF-8; save the file as UTF-8") from None


def _pieces_in(piece: Piece, columns: Sequence[str], theirs: Mapping[str, str]) -> Iterator[Piece]:
    """Yield the pieces of a file: all of it, or groups of a Parquet file's rows."""
    with piece.system.open(piece.path, "rb") as file:
        try:
            parquet = pq.ParquetFile(file) if piece.kind == "Parquet" else None
            if parquet:
                names = parquet.schema_arrow.names
            elif piece.kind == "CSV":
                names = unguarded_frame(pd.Index(_csv_reader(file).schema.names))
                piece = replace(piece, header=tuple(names))
            else:  # any line may have any column
                names = [theirs.get(column, column) for column in columns]
        except (pa.ArrowException, OSError) as error:
            raise piece.read_error(error) from None
        present = renamed(pd.DataFrame(columns=list(names)), theirs, piece.name)
        piece = replace(piece, columns=tuple(column for column in columns if column in present))
        if parquet:
            yield from _row_groups_in(piece, parquet.metadata)
        else:
            yield replace(piece, rows=file.seek(0, os.SEEK_END) // _ROW_BYTES + 1)  # by size


def _row_groups_in(piece: Piece, metadata: Any) -> Iterator[Piece]:
    """Yield the pieces of a Parquet file: row groups of about `PIECE_ROWS` rows together."""
    groups: list[int] = []
    first, rows = 1 - FIRST_ROW, 0  # records are counted from 1
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= PIECE_ROWS or group == metadata.num_row_groups - 1:
            yield replace(piece, groups=tuple(groups), first=first, rows=rows)
            groups, first, rows = [], first + rows, 0


def _csv_reader(file: Any, names: Sequence[str] = (), header: Sequence[str] = ()) -> Any:
    """Return pyarrow's reader of these columns of a CSV as text, or of all; a `header` renames."""
    from pyarrow import csv

    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(
            block_size=_BLOCK, column_names=header, skip_rows_after_names=1 if header else 0
        ),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=names
        ),  # an empty `include_columns` stands for all
    )


_IndexedTables = Iterator[tuple[Sequence[int], "pa.Table"]]  # rows' indices, and the rows


def _csv_tables(file: Any, piece: Piece, names: Sequence[str]) -> _IndexedTables:
    """Yield rows without the apostrophes of guarded cells."""
    first = piece.first
    for batch in _csv_reader(file, names, piece.header):
        table = pa.Table.from_batches([batch])
        if any(pc.any(pc.starts_with(column, "'")).as_py() for column in table.columns):
            frame = unguarded_frame(table.to_pandas())
            table = pa.Table.from_pandas(frame, table.schema, preserve_index=False)
        yield range(first, first + len(table)), table
        first += len(table)


def _jsonl_tables(file: Any, piece: Piece, names: Sequence[str]) -> _IndexedTables:
    """Yield rows with the indices of their lines, of which some may be blank."""
    records = jsonl_cells(io.TextIOWrapper(file, "utf-8-sig", newline="\n"), piece.name)
    while batch := list(islice(records, _BATCH_ROWS)):
        cells = {name: [record.get(name, "") for _, record in batch] for name in names}
        yield [number - FIRST_ROW for number, _ in batch], pa.table(cells)


def _parquet_tables(file: Any, piece: Piece, names: Sequence[str]) -> _IndexedTables:
    """Yield rows in parts small enough to decode. Raises InputError as `check_part` does."""
    # Texts stay dictionary-encoded, as they are stored, until their length is known.
    parquet = pq.ParquetFile(file, read_dictionary=text_columns(pq.ParquetFile(file).schema_arrow))
    row_bytes = _bytes_of_row(parquet.metadata, piece, names)
    n_rows = max(1, min(_BATCH_ROWS, int(_PART_BYTES / row_bytes)))
    groups = list(piece.groups)
    bytes_read = rows_read = 0  # of the piece so far
    for batch in parquet.iter_batches(n_rows, row_groups=groups, columns=names, use_threads=False):
        first = piece.first + rows_read
        batch_bytes = sum(map(_text_bytes, batch.columns))
        bytes_read += batch_bytes
        rows_read += len(batch)
        check_part(bytes_read, rows_read, _BATCH_ROWS, piece.name)
        # The footer does not bound dictionary-encoded texts: a batch may be larger than planned.
        n_parts = max(1, math.ceil(batch_bytes / _PART_BYTES))
        step = max(1, math.ceil(len(batch) / n_parts))
        for start in range(0, len(batch), step):
            part = batch.slice(start, step)
            yield range(first + start, first + start + len(part)), pa.Table.from_batches([part])


def _bytes_of_row(metadata: Any, piece: Piece, names: Sequence[str]) -> float:
    """Return the average bytes of a row with these columns, by the footer, in the row group where
    they are most; 1 at least. Raises InputError as `check_part` does.
    """
    row_bytes = 1.0
    for group in map(metadata.row_group, piece.groups):
        chunks = map(group.column, range(group.num_columns))
        needed = (chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names)
        size = sum(chunk.total_uncompressed_size for chunk in needed)
        check_part(size, group.num_rows, _BATCH_ROWS, piece.name)
        row_bytes = max(row_bytes, size / max(group.num_rows, 1))
    return row_bytes


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as texts, as `cell_text` makes them."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_float32(kind):  # 0.1, as in `as_written`
        column = column.cast(pa.string()).cast(pa.float64())
    is_plain = types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)
    if not is_plain:  # convert each different value once
        encoded = column.combine_chunks().dictionary_encode()
        texts = [cell_text(value) for value in encoded.dictionary.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string()).take(encoded.indices)])
    return pc.fill_null(column.cast(pa.string()), "")
