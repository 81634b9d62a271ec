"""Tables as files: cells that no spreadsheet runs, the fast reader, checks of columns."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.study.tables import formats
from evenhand.study.tables.columns import (
    first_repeat,
    refuse_columns,
    require_columns,
    require_rows,
)
from evenhand.study.tables.formats import guarded, read_table, unguarded_frame, write_table

# Cells that no spreadsheet runs


TEXTS = [
    '=cmd|"/c calc"!A1', "+1+1", "-1+1", "@sum", "\tx", "\rx", "\n=x", "'=x", "''=x", "'tis", "'",
    "-0.5", "1e-05", "plain", "", "a=b", "- an item",
]  # fmt: skip


def test_no_cell_of_a_csv_is_a_formula_and_all_read_back(tmp_path):
    frame = pd.DataFrame({"text": TEXTS, "number": [-1.5] * len(TEXTS), "other": "x"})
    write_table(frame, tmp_path / "table.csv")

    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["text"] for row in csv.DictReader(file)]
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r\n" and cell not in ("", "-0.5")]
    again = read_table(tmp_path / "table.csv")
    assert again["text"].tolist() == TEXTS
    assert set(again["number"]) == {"-1.5"}


@pytest.mark.slow
def test_large_plain_files_read_back_too(tmp_path):
    frame = pd.DataFrame({"text": ["=x", "'=x", "plain"] * 60_000, "other": "y"})
    write_table(frame, tmp_path / "table.csv")

    assert (tmp_path / "table.csv").stat().st_size > 1_000_000
    assert read_table(tmp_path / "table.csv")["text"].tolist() == frame["text"].tolist()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_other_formats_keep_the_text(tmp_path, suffix):
    write_table(pd.DataFrame({"text": TEXTS}), tmp_path / f"table{suffix}")

    assert read_table(tmp_path / f"table{suffix}")["text"].tolist() == TEXTS


@pytest.mark.parametrize("text", TEXTS)
def test_taking_one_apostrophe_off_restores(text):
    assert guarded(text) in (text, "'" + text)


@pytest.mark.parametrize("sign", "＝＋－＠")
def test_full_width_signs_begin_a_formula_too(sign):
    """Some spreadsheets read them as the usual signs. Version 0.2.0 left them bare."""
    text = f'{sign}HYPERLINK("http://h")'
    assert guarded(text) == f"'{text}"
    assert guarded(f"'{text}") == f"''{text}"
    frame = pd.DataFrame({"a": [guarded(text), guarded(f"'{text}")]})
    assert unguarded_frame(frame, frame.to_csv().encode())["a"].tolist() == [text, f"'{text}"]


# The fast reader of large files


def _both_ways(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    for from_size in (0, 10**12):
        monkeypatch.setattr(formats, "_LARGE", from_size)
        try:
            frame = read_table(path)
            found.append((list(frame), frame.to_numpy().tolist(), list(frame.index)))
        except InputError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n01,1e5\nNA, null \n,\n",
        b"\xef\xbb\xbfa,b\r\n1,2\r\n3,\r\n",
        "ä,b\né,2".encode(),
        b'a,b\n"x,y",2\n',
        b"a,b\n1,2\n\n3,4\n",
        b"a,b\r\n1,2\r\n\r\n3,4\r\n",
        b"a\nx\n\ny\n",
        b"a,b\n",
        b"a,b\n1,2\n1,2,3\n",
        b"a,b\n1,2\n1\n",
        b"a,b\n1,\xff\n",
        b"a,a\n1,2\n",
        b"\n1,2\n",
    ],
)
def test_the_fast_reader_agrees_with_the_careful_one(tmp_path, content, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    fast, careful = _both_ways(path, monkeypatch)
    assert fast == careful


def test_a_large_file_is_read_fast_and_a_broken_row_is_still_named(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"unit{n:09d},{n % 5}" for n in range(80_000)]
    path.write_text("unit_id,label\n" + "\n".join(rows) + "\n", "utf-8")
    assert path.stat().st_size > formats._LARGE
    frame = read_table(path)
    assert isinstance(frame.index, pd.RangeIndex)
    assert frame["label"].tolist()[:3] == ["0", "1", "2"]
    path.write_text("unit_id,label\n" + "\n".join([*rows, "u"]) + "\n", "utf-8")
    with pytest.raises(InputError, match="row 80002: 1 cells where the header has 2"):
        read_table(path)


# Checks of columns


TABLE = pd.DataFrame(
    [("a", "1"), ("b", "1"), ("a", "2"), ("b", "1"), ("a", "1")],
    columns=["id", "text"],
    index=[0, 1, 3, 4, 6],  # blank lines in between
)


def test_the_first_missing_column_is_named_with_the_mend():
    require_columns(TABLE, ("id", "text"), "f.csv")
    with pytest.raises(InputError, match=r"^f\.csv: the column 'x' is missing; add it$"):
        require_columns(TABLE, ("id", "x", "y"), "f.csv", "; add it")


def test_the_first_column_in_the_file_that_is_taken_is_named():
    refuse_columns(TABLE, {"side"}, "f.csv")
    with pytest.raises(InputError, match="'id' means something else here"):
        refuse_columns(TABLE, ("text", "id"), "f.csv")


def test_a_header_alone_is_no_table():
    require_rows(TABLE, "f.csv", "pairs")
    with pytest.raises(InputError, match=r"^f\.csv has a header but no pairs; add at least one"):
        require_rows(TABLE.iloc[:0], "f.csv", "pairs")


def test_the_first_row_that_stood_before_comes_with_where_it_stood():
    assert first_repeat(TABLE, ["id", "text"]) == (3, 1)
    assert first_repeat(TABLE, ["id"]) == (2, 0)
    assert first_repeat(TABLE.iloc[:3], ["id", "text"]) is None
