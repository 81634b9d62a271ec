"""Every kind of source gives the same rows, bit by bit."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from evenhand.errors import InputError
from evenhand.study.tables import pieces
from evenhand.study.tables.formats import read_table, write_table
from evenhand.study.tables.pieces import batches_of, pieces_of

WANTED = ("unit_id", "label", "p_positive", "draw")
ROWS = pd.DataFrame(
    {
        "unit_id": ["u1", "u2", "-u3", "u4"],
        "label": ["yes", "", "a, b\nc", '"no"'],
        "p_positive": ["0.25", "", "1", "0.125"],
        "draw": ["0", "1", "2", "10"],
        "seconds": ["1.5", "2", "", "4"],
    }
)


def rows_at(source: str, **theirs: str) -> pd.DataFrame:
    found = pieces_of(source, WANTED, theirs)
    tables = [table for piece in found for table in batches_of(piece, theirs)]
    return pa.concat_tables(tables).to_pandas()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_format_gives_the_texts_and_row_numbers_of_the_whole_table(
    suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"ratings.{suffix}"
    write_table(ROWS, file)
    found, whole = rows_at(str(file)), read_table(file)
    assert found.drop(columns="row").to_numpy().tolist() == ROWS[[*WANTED]].to_numpy().tolist()
    assert found["row"].tolist() == whole.index.tolist()


def test_numbers_of_parquet_are_texts_as_in_a_csv(tmp_path: Path) -> None:
    columns = {
        "unit_id": pa.array([1, 2]),
        "label": pa.array([4.0, None]),
        "p_positive": pa.array([0.1, None], pa.float32()),
        "draw": pa.array(["0", "1"]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), tmp_path / "r.parquet")
    found = rows_at(str(tmp_path / "r.parquet")).drop(columns="row")
    assert found.to_numpy().tolist() == [["1", "4", "0.10000000149011612", "0"], ["2", "", "", "1"]]


def test_a_folder_is_all_its_files_and_a_large_file_several_pieces(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 2)
    (tmp_path / "deep").mkdir()
    table = pa.Table.from_pandas(ROWS.astype(object))
    parquet.write_table(table, tmp_path / "deep" / "a.parquet", row_group_size=1)
    write_table(ROWS, tmp_path / "b.csv")
    for name in ("_SUCCESS", ".hidden.csv", "notes.txt"):
        (tmp_path / name).write_text("no ratings", "utf-8")
    found = pieces_of(str(tmp_path), WANTED, {})
    assert [(each.name, each.first, each.rows) for each in found] == [
        ("b.csv", 0, 3),
        ("a.parquet", 0, 2),
        ("a.parquet", 2, 2),
    ]
    assert rows_at(str(tmp_path))["row"].tolist() == [0, 1, 2, 3, -1, 0, 1, 2]


def test_an_object_store_is_read_through_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    with system.open("/bucket/ratings/part.csv", "wb") as file:
        file.write(b"item,label\nu1,yes\n")
    found = rows_at("memory://bucket/ratings", unit_id="item")
    assert found.to_numpy().tolist() == [["u1", "yes", 0]]
    with pytest.raises(InputError, match="there is nothing at memory://elsewhere"):
        rows_at("memory://elsewhere")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "r.csv",
            "unit_id,label\nu1,yes,more\n",
            "as CSV: .*Expected 2 columns, got 3",
        ),
        ("r.csv", "", "r.csv cannot be read as CSV"),
        ("r.jsonl", '{"unit_id": "u1"}\nno\n', "r.jsonl, line 2: not valid JSON"),
        ("r.parquet", "PAR1", "r.parquet cannot be read as Parquet"),
        ("r.txt", "unit_id\n", "holds no .csv, .jsonl or .parquet file"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InputError, match=said):
        rows_at(str(tmp_path / name))
