"""Limits of what is read from a table: its columns and cells, and its size once it is unpacked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

MOST_COLUMNS = 2_500
"""Columns of a table: annotators with a column each, and facts about the items."""
MOST_CELLS = 40_000_000
"""Cells of a table that is read as a whole, with those that a row of JSON leaves out."""


def check_table(columns: Sized | int, rows: int, name: str) -> None:
    """Raise InputError where a table has more columns, or more cells, than are read."""
    wide = columns if isinstance(columns, int) else len(columns)
    if wide > MOST_COLUMNS:
        raise InputError(written("too_large.columns", name=name, most=MOST_COLUMNS))
    if wide * rows > MOST_CELLS:
        raise InputError(written("too_large.cells", name=name, most=MOST_CELLS))


# The decoded size of a file, known before it is read, whatever its size on disk. In Parquet a text
# that is repeated is stored once, so a few hundred kilobytes may hold gigabytes.


MOST_DECODED = 1024**3
"""Bytes that a table read as a whole may hold: its texts, and `CELL` for each of its cells."""
CELL = 32
MOST_FOOTER = 16 * 1024**2
"""Bytes of a Parquet file's footer, which grows with columns and row groups and is read whole."""
_TAIL = 8  # the length of the footer, and PAR1
_BATCH_ROWS = 16_384
_PART = MOST_DECODED // 8
"""Bytes of texts that are made at a time where a table is read in parts."""


def has_small_footer(path: Path) -> bool:
    """Return True where the footer of a Parquet file can be parsed without much memory."""
    with path.open("rb") as file:
        file.seek(-min(_TAIL, path.stat().st_size), SEEK_END)
        return int.from_bytes(file.read(4), "little") <= MOST_FOOTER


def check_parquet(path: Path) -> None:
    """Raise InputError where a Parquet file holds more than is read at once.

    The sizes in its footer bound all but texts by reference; these are counted without being made.
    """
    from pyarrow.parquet import ParquetFile

    if not has_small_footer(path):
        raise InputError(written("too_large.footer", name=path.name, most=MOST_FOOTER // 1024**2))
    with ParquetFile(path) as file:
        meta, schema = file.metadata, file.schema_arrow
        check_table(schema.names, meta.num_rows, path.name)
        groups = [meta.row_group(at) for at in range(meta.num_row_groups)]
        chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
        size = sum(CELL * chunk.num_values + chunk.total_uncompressed_size for chunk in chunks)
        texts = texts_of(schema)
    _check(size, path.name)
    if not any("DICTIONARY" in encoding for chunk in chunks for encoding in chunk.encodings):
        return
    with ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=texts):
            size += sum(_length(column) for column in batch.columns)
            _check(size, path.name)


def check_arrow(table: pa.Table, name: str) -> None:
    """Raises InputError where a table, whose texts may be by reference, holds more than that."""
    size = CELL * table.num_rows * table.num_columns
    _check(size + sum(_length(part) for each in table.columns for part in each.chunks), name)


def rows_that_fit(
    meta: FileMetaData, groups: Sequence[int], columns: Collection[str], most: int, name: str
) -> int:
    """Return how many rows of a Parquet file's row groups to decode at a time, at most `most`, by
    what its footer says of these columns. Raises InputError as `parts_that_fit` does.
    """
    longest = 1.0
    for group in map(meta.row_group, groups):
        chunks = map(group.column, range(group.num_columns))
        own = (each for each in chunks if each.path_in_schema.partition(".")[0] in columns)
        size = sum(each.total_uncompressed_size for each in own)
        check_part(size, group.num_rows, most, name)
        longest = max(longest, size / max(group.num_rows, 1))
    return max(1, min(most, int(_PART / longest)))


def parts_that_fit(
    batches: Iterable[pa.RecordBatch], most: int, name: str
) -> Iterator[pa.RecordBatch]:
    """Split batches with texts by reference into parts small enough to decode.

    Raises InputError where `most` rows, or fewer, hold more than a table that is read as a whole.
    """
    size = rows = 0
    for batch in batches:
        own = sum(_length(column) for column in batch.columns)
        size, rows = size + own, rows + len(batch)
        check_part(size, rows, most, name)
        step = max(1, -(-len(batch) // max(1, -(-own // _PART))))
        yield from (batch.slice(at, step) for at in range(0, len(batch), step))


def check_part(size: int, rows: int, most: int, name: str) -> None:
    """Raise InputError where `most` rows, or fewer, hold more than a table read as a whole may."""
    if size > MOST_DECODED * max(1, -(-rows // most)):
        raise InputError(
            f"{name} holds more than {MOST_DECODED // 1024**2:,} MB in {most:,} rows once it is "
            "unpacked; ratings need ids and labels, not whole texts"
        )


def _check(size: int, name: str) -> None:
    if size > MOST_DECODED:
        raise InputError(
            f"{name} holds more than {MOST_DECODED // 1024**2:,} MB once it is unpacked; leave out "
            "columns that are not needed, split it, or add `--engine dask`"
        )


def texts_of(schema: pa.Schema) -> list[str]:
    """The columns that hold texts or bytes."""
    return [field.name for field in schema if _is_text(field.type)]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    return any(test(kind) for test in tests)


def _length(column: Any) -> int:
    """The bytes of a column's texts; of one by reference as often as they are referred to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if not _is_text(column.type):
        return 0
    lengths = pc.binary_length(column.dictionary)
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)
