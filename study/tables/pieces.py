"""Ratings in pieces: files, folders and object stores that are read bit by bit.

Nothing here holds more than a batch of rows. Every cell is text, as in `read_table`; rows carry
their number, so that messages can name them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from evenhand.errors import InputError
from evenhand.lazy import pa, pc, pd, pq
from evenhand.study.tables.columns import renamed
from evenhand.study.tables.formats import (
    FIRST_ROW,
    cell_text,
    jsonl_cells,
    parts_that_fit,
    rows_that_fit,
    texts_of,
    unguarded_frame,
)

ROW = "row"
"""The column with each row's index, as `row_number` takes it."""
PIECE_ROWS = 1_000_000
"""Approximate number of rows in a piece of a Parquet file."""
_BATCH_ROWS = 250_000
_ROW_BYTES = 50
"""About so long is a row of text."""
_BLOCK = 32 * 2**20
"""Bytes of a CSV that are read at a time."""
_KINDS = {"csv": "CSV", "jsonl": "JSONL", "ndjson": "JSONL", "parquet": "Parquet", "pq": "Parquet"}


@dataclass(frozen=True)
class Piece:
    """A part of the ratings that is read by itself: a file, or some row groups of a Parquet file,
    at a path of a file system of fsspec. `columns` are those of our columns that it has, `first` is
    the number of rows before it in its file, and `rows` its approximate number of rows.
    """

    system: Any
    path: str
    kind: str
    columns: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    first: int = 0
    rows: int = 0

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return name_of(self.path)

    def cannot_be_read(self, error: Exception) -> InputError:
        """The error to raise for one of a library."""
        return InputError(f"{self.name} cannot be read as {self.kind}: {error}")


def name_of(source: str) -> str:
    """Return the name of a source in messages.

    >>> name_of("s3://bucket/ratings/")
    'ratings'
    """
    return PurePosixPath(source.rstrip("/")).name or source


def pieces_of(source: str, wanted: Sequence[str], theirs: Mapping[str, str]) -> list[Piece]:
    """The pieces of a file or a folder of files, by path or URL; hidden files are left out.

    `wanted` are the columns that are read, `theirs` their names in the source, `{ours: theirs}`.
    Raises InputError where there is nothing to read.
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
    found: list[Piece] = []
    for each in sorted(system.find(path)) if system.isdir(path) else [path]:
        file = PurePosixPath(each)
        kind = _KINDS.get(file.suffix[1:].casefold())
        if kind and not file.name.startswith((".", "_")):
            found += _of_file(Piece(system, each, kind), wanted, theirs)
    if not found:
        raise InputError(f"{name_of(source)} holds no .csv, .jsonl or .parquet file with ratings")
    return found


def batches_of(piece: Piece, theirs: Mapping[str, str]) -> Iterator[pa.Table]:
    """A piece's rows in tables of bounded size: its `columns` as text, and `row`.

    Raises InputError where it cannot be read.
    """
    first = piece.first + (0 if piece.kind == "CSV" else 1 - FIRST_ROW)
    names = [theirs.get(column, column) for column in piece.columns]
    read = {"CSV": _csv, "JSONL": _jsonl, "Parquet": _parquet}[piece.kind]
    try:
        with piece.system.open(piece.path, "rb") as file:
            for table in read(file, piece, names):
                columns = map(_texts, table.select(names).columns)
                cells = dict(zip(piece.columns, columns, strict=True))
                numbers: Any = pa.array(range(first, first + len(table)), pa.int64())
                if ROW in table.column_names:
                    numbers = table.column(ROW)
                yield pa.table({**cells, ROW: numbers})
                first += len(table)
    except pa.ArrowException as error:
        raise piece.cannot_be_read(error) from None
    except UnicodeDecodeError:
        raise InputError(f"{piece.name}: not UTF-8; save the file as UTF-8") from None


def _of_file(piece: Piece, wanted: Sequence[str], theirs: Mapping[str, str]) -> Iterator[Piece]:
    """Yield the pieces of a file: all of it, or, of a Parquet file, as its footer says."""
    with piece.system.open(piece.path, "rb") as file:
        try:
            if piece.kind == "Parquet":
                parquet = pq.ParquetFile(file)
                columns = parquet.schema_arrow.names
            elif piece.kind == "CSV":
                columns = _csv_reader(file).schema.names
            else:
                columns = [theirs.get(column, column) for column in wanted]  # any line may have any
        except (pa.ArrowException, OSError) as error:
            raise piece.cannot_be_read(error) from None
        known = renamed(pd.DataFrame(columns=list(columns)), theirs, piece.name)
        piece = replace(piece, columns=tuple(column for column in wanted if column in known))
        if piece.kind != "Parquet":
            yield replace(piece, rows=file.seek(0, os.SEEK_END) // _ROW_BYTES + 1)
            return
        groups: list[int] = []
        first = rows = 0
        for group in range(parquet.metadata.num_row_groups):
            groups.append(group)
            rows += parquet.metadata.row_group(group).num_rows
            if rows >= PIECE_ROWS or group == parquet.metadata.num_row_groups - 1:
                yield replace(piece, groups=tuple(groups), first=first, rows=rows)
                groups, first, rows = [], first + rows, 0


def _csv_reader(file: Any, names: Sequence[str] = ()) -> Any:
    from pyarrow import csv

    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(block_size=_BLOCK),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=names
        ),
    )


def _csv(file: Any, piece: Piece, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows without the apostrophes that keep spreadsheets from running a cell."""
    for batch in _csv_reader(file, names):
        table = pa.Table.from_batches([batch])
        if any(pc.any(pc.starts_with(column, "'")).as_py() for column in table.columns):
            frame = unguarded_frame(table.to_pandas(), b"'=")
            table = pa.Table.from_pandas(frame, table.schema, preserve_index=False)
        yield table


def _jsonl(file: Any, piece: Piece, names: Sequence[str]) -> Iterator[pa.Table]:
    records = jsonl_cells(TextIOWrapper(file, "utf-8-sig", newline="\n"), piece.name)
    while some := list(islice(records, _BATCH_ROWS)):
        cells = {name: [record.get(name, "") for _, record in some] for name in names}
        yield pa.table({**cells, ROW: [number - FIRST_ROW for number, _ in some]})


def _parquet(file: Any, piece: Piece, names: Sequence[str]) -> Iterator[pa.Table]:
    # Texts stay by reference, as they are stored, until it is known how long they are.
    parquet = pq.ParquetFile(file, read_dictionary=texts_of(pq.ParquetFile(file).schema_arrow))
    rows = rows_that_fit(parquet.metadata, piece.groups, names, _BATCH_ROWS, piece.name)
    batches = parquet.iter_batches(
        rows, row_groups=list(piece.groups), columns=names, use_threads=False
    )
    for part in parts_that_fit(batches, _BATCH_ROWS, piece.name):
        yield pa.Table.from_batches([part])


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells as `cell_text` has them, "" where one is missing."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    if not plain:
        coded = column.combine_chunks().dictionary_encode()
        texts = [cell_text(each) for each in coded.dictionary.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string()).take(coded.indices)])
    return pc.fill_null(column.cast(pa.string()), "")
