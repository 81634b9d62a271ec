"""Tables are refused before they are unpacked into more than a machine holds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from evenhand.errors import InputError
from evenhand.exchange.readers import excel
from evenhand.exchange.readers.reading import read_export
from evenhand.study.tables import limits
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.limits import check_arrow, check_parquet
from evenhand.study.tables.pieces import batches_of, pieces_of


def bomb(text: str = "x" * 1_000_000, rows: int = 2000) -> pa.Table:
    """A text in every row, held once; `write_bomb` writes it as any other text."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, "int32"), [text])
    return pa.table({"unit_id": [f"u{n}" for n in range(rows)], "text": texts})


def write_bomb(table: pa.Table, path: Path, use_dictionary: bool = True) -> None:
    parquet.write_table(
        table, path, compression="zstd", use_dictionary=use_dictionary, store_schema=False
    )


@pytest.mark.slow
def test_a_parquet_file_of_gigabytes_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Of version 0.2.0 such a file, of 289 KB, took 3.9 GB."""
    path = tmp_path / "bomb.parquet"
    write_bomb(bomb(), path)
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="holds more than 1,024 MB once it is unpacked"):
        read_table(path)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    assert pa.total_allocated_bytes() - before < 50_000_000
    tracemalloc.stop()
    rows = tmp_path / "rows.parquet"  # a null is stored as nothing at all
    parquet.write_table(pa.table({"label": pa.nulls(40_000_001, pa.string())}), rows)
    with pytest.raises(InputError, match="has more than 40,000,000 cells"):
        read_table(rows)


def test_an_arrow_file_whose_texts_are_by_reference_is_refused(tmp_path: Path) -> None:
    table = bomb().select(["text"])
    with pytest.raises(InputError, match="once it is unpacked"):
        check_arrow(table, "data.arrow")
    path = tmp_path / "data.arrow"
    feather.write_feather(table, path, compression="uncompressed")
    with pytest.raises(InputError):
        read_export(path, "huggingface")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.int64(), pa.float64()])
def test_what_fits_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "fits.parquet"
    table = pa.table({"a": pa.array([1, 2, 2] * 10).cast(kind), "b": [["x"]] * 30})
    parquet.write_table(table, path)
    check_parquet(path)
    assert len(read_table(path)) == 30


def in_pieces(path: Path) -> Iterator[pa.Table]:
    """What `--engine dask` reads."""
    for piece in pieces_of(str(path), ["unit_id", "label"], {"label": "text"}):
        yield from batches_of(piece, {"label": "text"})


@pytest.mark.slow
@pytest.mark.parametrize("by_reference", [True, False])
def test_a_bomb_that_is_read_in_pieces_is_refused_too(
    by_reference: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of version 0.2.0 each batch of 250,000 rows was unpacked, whatever they held."""
    path, before = tmp_path / "bomb.parquet", pa.total_allocated_bytes()
    if not by_reference:
        monkeypatch.setattr(limits, "MOST_DECODED", 100 * 1024**2)
    table = bomb(rows=2000 if by_reference else 200)
    write_bomb(table, path, by_reference)
    assert path.stat().st_size < 100_000
    del table

    def read_all() -> None:
        for part in in_pieces(path):
            assert pa.total_allocated_bytes() - before < 300_000_000
            del part

    with pytest.raises(InputError, match=r"bomb.parquet holds more than .* MB in 250,000 rows"):
        read_all()


def test_long_texts_that_are_read_in_pieces_are_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.parquet"
    write_bomb(bomb("y" * 1000), path)
    (whole,) = in_pieces(path)
    monkeypatch.setattr(limits, "_PART", 200_000)
    parts = list(in_pieces(path))
    assert len(parts) > 10
    assert pa.concat_tables(parts).combine_chunks().equals(whole.combine_chunks())


def test_a_workbook_is_bounded_by_what_it_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of version 0.2.0 a workbook of 1.9 MB took 2.1 GB."""
    from openpyxl import Workbook

    path = tmp_path / "book.xlsx"
    book = Workbook()
    book.active.append(["unit_id", "ann", "ben"])
    for number in range(50):
        book.active.append([number, "y" * 30_000, "no"])  # stored once
    book.save(path)
    assert len(read_export(path).table) == 50
    monkeypatch.setattr(excel, "MOST_DECODED", 1_000_000)
    with pytest.raises(InputError, match="too large a workbook"):
        read_export(path)
    monkeypatch.undo()
    monkeypatch.setattr(excel, "_MOST_UNPACKED", 10_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_export(path)
