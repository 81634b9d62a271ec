"""Ratings in pieces: files, folders and object stores that are read bit by bit.

Nothing here holds more than a batch of rows. Every cell is text, as in `read_table`; rows carry
their number, so that messages can name them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from evenhand.errors import InputError
from evenhand.study.tables.decoded import parts_that_fit, rows_that_fit, texts_of
from evenhand.study.tables.formats import FIRST_ROW, cell_text, jsonl_cells
from evenhand.study.tables.names import renamed
from evenhand.study.tables.spreadsheets import unguarded_frame

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["csv", "jsonl", "parquet"]

ROW = "row"
"""The column with each row's index, as `row_number` takes it."""
PIECE_ROWS = 1_000_000
"""Approximate number of rows in a piece of a Parquet file."""
_BATCH_ROWS = 250_000
_ROW_BYTES = 50
"""About so long is a row of text."""
_BLOCK = 32 * 2**20
"""Bytes of a CSV that are read at a time."""
_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Piece:
    """A part of the ratings that is read by itself: a file, or some row groups of a Parquet file.
    `columns` are those of our columns that it has, `first` is the number of rows before it in its
    file, and `rows` its approximate number of rows.
    """

    place: str
    kind: Kind
    columns: tuple[str, ...]
    groups: tuple[int, ...] = ()
    first: int = 0
    rows: int = 0

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return name_of(self.place)


def name_of(source: str) -> str:
    """Return the name of a source in messages.

    >>> name_of("s3://bucket/ratings/")
    'ratings'
    """
    return PurePosixPath(source.rstrip("/")).name or source


def pieces_of(source: str, wanted: Sequence[str], theirs: Mapping[str, str]) -> list[Piece]:
    """The pieces of a file or a folder of files, by path or URL.

    `wanted` are the columns that are read, `theirs` their names in the source, `{ours: theirs}`.
    Raises InputError where there is nothing to read.
    """
    found = [
        piece for place, kind in _files(source) for piece in _of_file(place, kind, wanted, theirs)
    ]
    if not found:
        raise InputError(f"{name_of(source)} holds no .csv, .jsonl or .parquet file with ratings")
    return found


def batches_of(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    """A piece's rows in tables of bounded size: its `columns` as text, and `row`.

    Raises InputError where it cannot be read.
    """
    import pyarrow as pa

    first = piece.first + (0 if piece.kind == "csv" else 1 - FIRST_ROW)
    read = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[piece.kind]
    try:
        for table in read(piece, theirs):
            cells = {name: _texts(table.column(theirs.get(name, name))) for name in piece.columns}
            numbers: Any = pa.array(range(first, first + len(table)), pa.int64())
            if ROW in table.column_names:
                numbers = table.column(ROW)
            yield pa.table({**cells, ROW: numbers})
            first += len(table)
    except pa.ArrowException as error:
        raise InputError(f"{piece.name} cannot be read as {piece.kind}: {error}") from None


def _files(source: str) -> Iterator[tuple[str, Kind]]:
    """Yield every file of ratings with its kind; hidden files are left out."""
    if "://" in source:
        system, path = _remote(source)
        if not system.exists(path):
            raise InputError(f"there is nothing at {source}")
        found = sorted(system.find(path)) if system.isdir(path) else [path]
        places = [(each, system.unstrip_protocol(each)) for each in found]
    else:
        root = Path(source)
        if not root.exists():
            raise InputError(f"there is no file {root.name} in {root.absolute().parent}")
        below = sorted(each for each in root.rglob("*") if each.is_file())
        found = [each.as_posix() for each in below] if root.is_dir() else [root.as_posix()]
        places = [(each, each) for each in found]
    for path, place in places:
        file = PurePosixPath(path)
        kind = _KINDS.get(file.suffix.casefold())
        if kind and not file.name.startswith((".", "_")):
            yield place, kind


def _remote(place: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(
            'addresses are read through fsspec: pip install "evenhand[scale]"'
        ) from None
    try:
        system, path = url_to_fs(place)
    except (ImportError, ValueError) as error:
        scheme = place.partition("://")[0]  # the rest may hold a password
        raise InputError(f"{scheme}:// cannot be opened: {error}") from None
    return system, str(path)


def _opened(place: str) -> Any:
    if "://" not in place:
        return Path(place).open("rb")
    system, path = _remote(place)
    return system.open(path, "rb")


def _of_file(
    place: str, kind: Kind, wanted: Sequence[str], theirs: Mapping[str, str]
) -> Iterator[Piece]:
    import pyarrow as pa

    name = name_of(place)
    with _opened(place) as file:
        if kind == "csv":
            try:
                columns = _csv_columns(file)
            except pa.ArrowInvalid as error:
                raise InputError(f"{name} cannot be read as CSV: {error}") from None
        elif kind == "jsonl":
            columns = [theirs.get(column, column) for column in wanted]  # any line may have any
        else:
            yield from _of_parquet(place, file, wanted, theirs)
            return
        rows = file.seek(0, os.SEEK_END) // _ROW_BYTES + 1
    yield Piece(place, kind, _ours(columns, wanted, theirs, name), rows=rows)


def _of_parquet(
    place: str, file: Any, wanted: Sequence[str], theirs: Mapping[str, str]
) -> Iterator[Piece]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    name = name_of(place)
    try:
        parquet = ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name} cannot be read as Parquet: {error}") from None
    columns = _ours(parquet.schema_arrow.names, wanted, theirs, name)
    groups: list[int] = []
    first = rows = 0
    for group in range(parquet.num_row_groups):
        groups.append(group)
        rows += parquet.metadata.row_group(group).num_rows
        if rows >= PIECE_ROWS or group == parquet.num_row_groups - 1:
            yield Piece(place, "parquet", columns, tuple(groups), first, rows)
            groups, first, rows = [], first + rows, 0


def _ours(
    columns: Sequence[str], wanted: Sequence[str], theirs: Mapping[str, str], name: str
) -> tuple[str, ...]:
    """Return the wanted columns that exist."""
    import pandas as pd

    known = set(renamed(pd.DataFrame(columns=list(columns)), theirs, name).columns)
    return tuple(column for column in wanted if column in known)


def _csv_columns(file: Any) -> list[str]:
    from pyarrow import csv

    found = csv.open_csv(file, read_options=csv.ReadOptions(block_size=_BLOCK))
    return list(found.schema.names)


def _csv(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    from pyarrow import csv

    names = [theirs.get(column, column) for column in piece.columns]
    with _opened(piece.place) as file:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=_BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), include_columns=names
            ),
        )
        for batch in reader:
            yield _unguarded(pa.Table.from_batches([batch]))


def _unguarded(table: pa.Table) -> pa.Table:
    """Without the apostrophes that keep spreadsheets from running a cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, name in enumerate(table.column_names):
        starred = pc.starts_with(table.column(name), "'")
        if pc.any(starred).as_py():
            frame = table.select([name]).to_pandas()
            cells = unguarded_frame(frame, b"'=")[name]
            table = table.set_column(at, name, pa.array(cells, pa.string()))
    return table


def _jsonl(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    import pyarrow as pa

    names = [theirs.get(column, column) for column in piece.columns]
    number = 1
    with _opened(piece.place) as file:
        while lines := list(islice(file, _BATCH_ROWS)):
            try:
                texts = [line.decode("utf-8-sig" if number == 1 else "utf-8") for line in lines]
            except UnicodeDecodeError:
                raise InputError(f"{piece.name}: not UTF-8; save the file as UTF-8") from None
            records = [cells for _, cells in jsonl_cells(texts, piece.name, number)]
            cells: dict[str, list[Any]] = {
                name: [each.get(name, "") for each in records] for name in names
            }
            filled = (at for at, text in enumerate(texts, start=number) if text.strip())
            cells[ROW] = [at - FIRST_ROW for at in filled]
            columns = [(name, pa.string()) for name in names]
            yield pa.table(cells, schema=pa.schema([*columns, (ROW, pa.int64())]))
            number += len(lines)


def _parquet(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    names = [theirs.get(column, column) for column in piece.columns]
    with _opened(piece.place) as file:
        # Texts stay by reference, as they are stored, until it is known how long they are.
        texts = texts_of(ParquetFile(file).schema_arrow)
        parquet = ParquetFile(file, read_dictionary=texts)
        rows = rows_that_fit(parquet.metadata, piece.groups, names, _BATCH_ROWS, piece.name)
        batches = parquet.iter_batches(
            rows, row_groups=list(piece.groups), columns=names, use_threads=False
        )
        for part in parts_that_fit(batches, _BATCH_ROWS, piece.name):
            yield pa.Table.from_batches([part])


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as `cell_text` has them, "" where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    if not plain:
        coded = column.combine_chunks().dictionary_encode()
        texts = [cell_text(each) for each in coded.dictionary.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string()).take(coded.indices)])
    return pc.fill_null(column.cast(pa.string()), "")
