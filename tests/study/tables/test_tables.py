"""Tables as files: cells, formats, limits, ratings read in pieces; marks; and who reads them."""

import csv
import errno
import logging
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.exchange.readers import plain_files
from evenhand.exchange.readers.reading import read_export
from evenhand.study import open_study
from evenhand.study.tables import columns as cols
from evenhand.study.tables import formats, ratings
from evenhand.study.tables.files import atomic_write, check_folder, tighten
from evenhand.study.tables.ratings import Mark, are_within, read_marks, with_sides_swapped
from harness.studies import write_pairs, write_responses
from tests.cases import refused

TEXTS = [
    '=cmd|"/c calc"!A1', "+1+1", "-1+1", "@sum", "\tx", "\rx", "\n=x", "'=x", "''=x", "'tis", "'",
    "-0.5", "1e-05", "plain", "", "a=b", "- an item", "＝1", "＋1", "－1", "＠x", "'＝1",
]  # fmt: skip


def test_no_cell_of_a_csv_is_a_formula_and_all_read_back(tmp_path):
    frame = pd.DataFrame({"text": TEXTS, "number": [-1.5] * len(TEXTS)} | dict.fromkeys(TEXTS, "x"))
    formats.write_table(frame, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    # Some spreadsheets read full-width signs as the usual ones.
    begins = {*"=+-@\t\r\n＝＋－＠"}
    assert {cell for cell in {*header, *(row[0] for row in rows)} if cell[:1] in begins} == {"-0.5"}
    again = formats.read_table(tmp_path / "table.csv")
    assert again.to_dict("list") == frame.astype(str).to_dict("list")
    assert all(formats.guarded(text) in (text, "'" + text) for text in TEXTS)
    for suffix in ("jsonl", "parquet"):  # which keep the text
        formats.write_table(frame[["text"]], tmp_path / f"table.{suffix}")
        assert formats.read_table(tmp_path / f"table.{suffix}")["text"].tolist() == TEXTS


@pytest.mark.parametrize(
    "content",
    [b"a,b\n01,1e5\nNA, null \n,\n", b"\xef\xbb\xbfa,b\r\n1,2\r\n3,\r\n", "ä,b\né,2".encode(),
     b'a,b\n"x,y",2\n', b"a,b\n1,2\n\n3,4\n", b"a,b\r\n1,2\r\n\r\n3,4\r\n", b"a\nx\n\ny\n",
     b"a,b\n", b"a,b\n1,2\n1,2,3\n", b"a,b\n1,2\n1\n", b"a,b\n1,\xff\n", b"a,a\n1,2\n",
     b"a,b\r" + b"1,2\r" * 9_000, b"\n1,2\n", b"a,b\n'=x,y\n''=x,'t\n"],
)  # fmt: skip
def test_the_fast_reader_agrees_with_the_careful_one(tmp_path, content, monkeypatch):
    path, found = tmp_path / "table.csv", []
    path.write_bytes(content)
    for from_size in (0, 10**12):
        monkeypatch.setattr(formats, "_LARGE", from_size)
        try:
            frame = formats.read_table(path)
            found.append((list(frame), frame.to_numpy().tolist(), list(frame.index)))
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_a_large_file_is_read_fast_and_a_broken_row_is_still_named(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_LARGE", 10_000)
    path = tmp_path / "table.csv"
    rows = [f"unit{n:09d},{n % 5}" for n in range(2000)]
    path.write_text("unit_id,label\n" + "\n".join(rows) + "\n", "utf-8")
    frame = formats.read_table(path)
    assert isinstance(frame.index, pd.RangeIndex)
    assert frame["label"].tolist()[:3] == ["0", "1", "2"]
    path.write_text("unit_id,label\n" + "\n".join([*rows, "u"]) + "\n", "utf-8")
    refused("row 2002: 1 cells where the header has 2", formats.read_table, path)


RATED = [f"u{n},{rater},{n % 2}" for n in range(4) for rater in ("ann", "ben", "cy")]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (RATED, r"row \(u0, ann, 0\) holds .* headless$"),
        (["3,4", "5,6", "7,8", "9,0"], "headless$"),
        ([",4", "x,6", "y,8", "z,0"], "headless$"),
        (["3,4", "5,6", "7,8"], ""),
        (["0,1", "5,6", "7,8", "9,0"], ""),
        (["unit,4", "u1,5", "u2,6", "u3,7"], ""),
        (["label,4", "yes,5", "no,6", "yes,7", "no,8"], ""),
    ],
)
def test_a_first_row_of_data_is_refused_with_what_to_type(tmp_path, lines, says):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    if says:
        refused(says, formats.read_table, path)
    else:
        assert [",".join(formats.read_table(path))] == lines[:1]
    read = formats.read_table(path, headed=False)
    assert [*read] == ["column1", "column2", "column3", "column4"][: len(read.columns)]
    assert read.apply(",".join, axis=1).tolist() == lines
    assert read.index.tolist() == [*range(-1, len(lines) - 1)]


def test_columns_are_required_and_taken_names_and_a_header_alone_refused():
    table = pd.DataFrame({"id": list("ababa"), "text": list("11211")}, index=[0, 1, 3, 4, 6])
    cols.require_columns(table, ("id", "text"), "f.csv")
    cols.refuse_columns(table, {"side"}, "f.csv")
    cols.require_rows(table, "f.csv", "pairs")
    told = r"^f\.csv: the column 'x' is missing; add it$"
    refused(told, cols.require_columns, table, ("id", "x", "y"), "f.csv", "; add it")
    refused("'id' means something else here", cols.refuse_columns, table, ("text", "id"), "f.csv")
    told = r"^f\.csv has a header but no pairs; add at least one"
    refused(told, cols.require_rows, table.iloc[:0], "f.csv", "pairs")
    # The first row that stood before comes with where it stood; blank lines lie in between.
    assert cols.first_repeat(table, ["id", "text"]) == (3, 1)
    assert cols.first_repeat(table, ["id"]) == (2, 0)
    assert cols.first_repeat(table.iloc[:3], ["id", "text"]) is None


def bomb(text: str = "x" * 1_000_000, rows: int = 2000) -> pa.Table:
    """A text in every row, held once; `write_bomb` writes it as any other text."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, "int32"), [text])
    return pa.table({"unit_id": [f"u{n}" for n in range(rows)], "text": texts})


def write_bomb(table: pa.Table, path: Path, use_dictionary: bool = True) -> None:
    how = {"compression": "zstd", "use_dictionary": use_dictionary}
    parquet.write_table(table, path, **how, store_schema=False)


def in_pieces(path: Path) -> Iterator[pa.Table]:
    """What `--engine dask` reads."""
    for piece in formats.pieces_of(str(path), ["unit_id", "label"], {"label": "text"}):
        yield from formats.batches_of(piece, {"label": "text"})


@pytest.mark.slow
def test_a_parquet_file_of_gigabytes_is_refused_in_a_sentence(tmp_path):
    """Of version 0.2.0 such a file, of 289 KB, took 3.9 GB."""
    path = tmp_path / "bomb.parquet"
    write_bomb(bomb(), path)
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    refused("holds more than 1,024 MB once it is unpacked", formats.read_table, path)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    assert pa.total_allocated_bytes() - before < 50_000_000
    tracemalloc.stop()
    rows = tmp_path / "rows.parquet"  # a null is stored as nothing at all
    parquet.write_table(pa.table({"label": pa.nulls(40_000_001, pa.string())}), rows)
    refused("has more than 40,000,000 cells", formats.read_table, rows)


def test_an_arrow_file_whose_texts_are_by_reference_is_refused_and_what_fits_is_read(tmp_path):
    table = bomb().select(["text"])
    refused("once it is unpacked", formats.check_arrow, table, "data.arrow")
    path = tmp_path / "data.arrow"
    feather.write_feather(table, path, compression="uncompressed")
    refused("", read_export, path, "huggingface")
    path = tmp_path / "fits.parquet"
    for kind in (pa.string(), pa.large_string(), pa.int64(), pa.float64()):
        table = pa.table({"a": pa.array([1, 2, 2] * 10).cast(kind), "b": [["x"]] * 30})
        parquet.write_table(table, path)
        formats.check_parquet(path)
        assert len(formats.read_table(path)) == 30


@pytest.mark.slow
@pytest.mark.parametrize("by_reference", [True, False])
def test_a_bomb_that_is_read_in_pieces_is_refused_too(by_reference, tmp_path, monkeypatch):
    """Of version 0.2.0 each batch of 250,000 rows was unpacked, whatever they held."""
    path, before = tmp_path / "bomb.parquet", pa.total_allocated_bytes()
    if not by_reference:
        monkeypatch.setattr(formats, "MOST_DECODED", 100 * 1024**2)
    table = bomb(rows=2000 if by_reference else 200)
    write_bomb(table, path, by_reference)
    assert path.stat().st_size < 100_000
    del table

    def read_all() -> None:
        for part in in_pieces(path):
            assert pa.total_allocated_bytes() - before < 300_000_000
            del part

    refused(r"bomb.parquet holds more than .* MB in 250,000 rows", read_all)


def test_long_texts_that_are_read_in_pieces_are_all_there(tmp_path, monkeypatch):
    path = tmp_path / "long.parquet"
    write_bomb(bomb("y" * 1000), path)
    (whole,) = in_pieces(path)
    monkeypatch.setattr(formats, "_PART_BYTES", 200_000)
    parts = list(in_pieces(path))
    assert len(parts) > 10
    assert pa.concat_tables(parts).combine_chunks().equals(whole.combine_chunks())


def test_a_workbook_is_bounded_by_what_it_unpacks_to(tmp_path, monkeypatch):
    """Of version 0.2.0 a workbook of 1.9 MB took 2.1 GB."""
    from openpyxl import Workbook

    path = tmp_path / "book.xlsx"
    book = Workbook()
    book.active.append(["unit_id", "ann", "ben"])
    for number in range(50):
        book.active.append([number, "y" * 30_000, "no"])  # stored once
    book.save(path)
    assert len(read_export(path).table) == 50
    monkeypatch.setattr(formats, "MOST_DECODED", 1_000_000)
    refused("too large a workbook", read_export, path)
    monkeypatch.undo()
    monkeypatch.setattr(plain_files, "_MOST_UNPACKED", 10_000)
    refused("unpacks to more than", read_export, path)


WANTED = ("unit_id", "label", "p_positive", "draw")
ROWS = pd.DataFrame(
    [("u1", "yes", "0.25", "0", "1.5"), ("u2", "", "", "1", "2"),
     ("-u3", "a, b\nc", "1", "2", ""), ("u4", '"no"', "0.125", "10", "4")],
    columns=[*WANTED, "seconds"],
)  # fmt: skip


def rows_at(source: str, **theirs: str) -> pd.DataFrame:
    found = formats.pieces_of(source, WANTED, theirs)
    tables = [table for piece in found for table in formats.batches_of(piece, theirs)]
    return pa.concat_tables(tables).to_pandas()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_format_gives_the_texts_and_row_numbers_of_the_whole_table(suffix, tmp_path):
    file = tmp_path / f"ratings.{suffix}"
    for theirs in ({}, {"unit_id": "row", "label": "=label"}):  # "row": as the row's number here
        formats.write_table(ROWS.rename(columns=theirs), file)
        found, whole = rows_at(str(file), **theirs), formats.read_table(file)
        assert found.drop(columns="row").to_numpy().tolist() == ROWS[[*WANTED]].to_numpy().tolist()
        assert found["row"].tolist() == whole.index.tolist()


def test_numbers_of_parquet_are_texts_as_in_a_csv(tmp_path):
    columns = {
        "unit_id": pa.array([1, 2]),
        "label": pa.array([4.0, None]),
        "p_positive": pa.array([0.1, None], pa.float32()),
        "draw": pa.array(["0", "1"]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), file := tmp_path / "r.parquet")
    for found in (rows_at(str(file)).drop(columns="row"), formats.read_table(file)):
        assert found.to_numpy().tolist() == [["1", "4", "0.1", "0"], ["2", "", "", "1"]]


def test_a_folder_is_all_its_files_and_a_large_file_several_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "PIECE_ROWS", 2)
    (tmp_path / "deep").mkdir()
    table = pa.Table.from_pandas(ROWS.astype(object))
    parquet.write_table(table, tmp_path / "deep" / "a.parquet", row_group_size=1)
    formats.write_table(ROWS, tmp_path / "b.csv")
    for name in ("_SUCCESS", ".hidden.csv", "notes.txt"):
        (tmp_path / name).write_text("no ratings", "utf-8")
    found = formats.pieces_of(str(tmp_path), WANTED, {})
    pieces = [("b.csv", 0, 3), ("a.parquet", -1, 2), ("a.parquet", 1, 2)]
    assert [(each.name, each.first, each.rows) for each in found] == pieces
    assert rows_at(str(tmp_path))["row"].tolist() == [0, 1, 2, 3, -1, 0, 1, 2]


def test_an_object_store_is_read_through_fsspec():
    system = pytest.importorskip("fsspec").filesystem("memory")
    with system.open("/bucket/ratings/part.csv", "wb") as file:
        file.write(b"item,label\nu1,yes\n")
    found = rows_at("memory://bucket/ratings", unit_id="item")
    assert found.to_numpy().tolist() == [["u1", "yes", 0]]
    refused("there is nothing at memory://elsewhere", rows_at, "memory://elsewhere")


def test_what_cannot_be_read_is_named(tmp_path):
    for name, content, said in (
        ("r.csv", "unit_id,label\nu1,yes,more\n", "as CSV: .*Expected 2 columns, got 3"),
        ("r.csv", "", "r.csv cannot be read as CSV"),
        ("r.jsonl", '{"unit_id": "u1"}\nno\n', "r.jsonl, line 2: not valid JSON"),
        ("r.parquet", "PAR1", "r.parquet cannot be read as Parquet"),
        ("r.txt", "unit_id\n", "holds no .csv, .jsonl or .parquet file"),
    ):
        (tmp_path / name).write_text(content, "utf-8")
        refused(said, rows_at, str(tmp_path / name))


def mark(start: Any = 0, end: Any = 1, text: Any = "response", **more: Any) -> dict[str, Any]:
    return {"text": text, "start": start, "end": end} | more


def test_marks_are_read_in_their_order_and_what_is_no_list_of_them_is_refused():
    read = read_marks([mark(5, 7), mark(0, 5), mark(1, 2, "a")])
    assert read == (Mark("a", 1, 2), Mark("response", 0, 5), Mark("response", 5, 7))
    assert read_marks(ratings.written_marks(read)) == read
    assert read_marks([]) == ()
    most = read_marks([mark(2 * n, 2 * n + 1) for n in range(ratings.MOST_MARKS)])
    assert len(most) == ratings.MOST_MARKS
    for wrong in (
        *(None, {}, "text", [None], [[0, 1]]),
        *([mark(start)] for start in (2, -1, 0.0, "0", False)),
        *([mark(**{part: each})] for part, each in (("end", 0), ("end", True), ("text", 3))),
        [mark(more=1)],
        *([mark(0, end), mark(2, 4)] for end in (3, 9)),
        [mark(0, 3), mark(0, 3)],
        [mark(2 * n, 2 * n + 1) for n in range(ratings.MOST_MARKS + 1)],
    ):
        assert read_marks(wrong) is None, wrong


def test_marks_lie_within_a_response_follow_its_side_and_cut_the_text_in_pieces():
    texts = {"response_a": "a\N{GRINNING FACE}b", "response_b": "", "prompt_a": "Why?"}
    assert are_within([Mark("response_a", 0, 3)], texts)  # code points, not bytes or UTF-16
    for name, end in (("response_a", 4), ("response_b", 1), ("prompt_a", 1), ("response", 1)):
        assert not are_within([Mark(name, 0, end)], texts)
    marks = (Mark("response_a", 0, 1), Mark("response_b", 2, 3))
    assert with_sides_swapped(marks) == (Mark("response_a", 2, 3), Mark("response_b", 0, 1))
    assert with_sides_swapped(with_sides_swapped(marks)) == marks
    assert with_sides_swapped([Mark("response", 0, 1)]) == (Mark("response", 0, 1),)
    text = "One \N{GRINNING FACE} two."
    marked = [("b", Mark("r", 4, 9)), ("a", Mark("r", 0, 5)), ("a", Mark("r", 6, 99))]
    cut = ratings.pieces(text, marked)
    assert "".join(part for part, _ in cut) == text
    assert cut[1] == ("\N{GRINNING FACE}", ("b", "a"))
    assert ratings.pieces("", []) == []


def open_to_others(folder: Path) -> list[str]:
    every = [folder, *folder.rglob("*")]
    return [str(each) for each in every if stat.S_IMODE(each.lstat().st_mode) & 0o077]


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Path]:
    """Made as on many a server: group and others may do everything."""
    before = os.umask(0)
    folder, pairs = tmp_path / "study", write_pairs(tmp_path / "pairs.csv")
    responses = write_responses(tmp_path / "responses.jsonl")
    assert main(["new", str(folder), "--pairs", str(pairs), "--sample", "4"]) == 0
    assert main(["import", str(folder), str(responses)]) == 0
    yield folder
    os.umask(before)


@pytest.mark.slow
def test_under_a_loose_umask_all_is_private(study):
    with open_study(study) as opened:
        opened.store.subjects()
        assert (study / "study.db-wal").exists(), "the log is there while the store is open"
        assert open_to_others(study) == []
    assert main(["grade", str(study), "--grader", "baseline:lexical"]) == 0
    assert main(["report", str(study), "--figures", str(study / "figures")]) == 0
    assert main(["export", str(study), "--out", str(study / "ratings.csv")]) == 0
    assert (study / "report" / "report.html").exists()
    assert open_to_others(study) == []


@pytest.mark.slow
def test_one_that_others_could_read_is_closed_with_a_note(study, caplog, monkeypatch):
    outside = study.with_name("elsewhere.csv")
    outside.write_text("mine")
    (study / "link.csv").symlink_to(outside)
    (study / "study.db").chmod(0o644)
    study.chmod(0o755)
    with caplog.at_level(logging.WARNING), open_study(study):
        pass
    assert f"others could read {study}; only you can from now on" in caplog.text
    assert open_to_others(study) == [str(study / "link.csv")]
    assert stat.S_IMODE(outside.stat().st_mode) == 0o666, "what a link leads to is left alone"
    caplog.clear()
    with open_study(study):
        pass
    assert not caplog.records
    study.chmod(0o755)
    link = study.with_name("linked")
    link.symlink_to(study)
    assert tighten(link) == 1  # behind a link as well
    assert open_to_others(study) == [str(study / "link.csv")]
    study.chmod(0o755)

    def read_only(path: Path, mode: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "chmod", read_only)
    assert tighten(study) == 0


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", b"PK\x03\x04..[Content_Types]", "is a workbook of Excel or another"),
        ("t.csv", b"PK\x03\x04..", "is a ZIP archive; unpack it first"),
        ("t.csv", b"\xd0\xcf\x11\xe0", "is a workbook of an old Excel"),
        ("t.csv", b"\x1f\x8b", "is compressed; unpack it with gunzip"),
        ("t.csv", b"\xff\xfea", "line 1: the file is UTF-16"),
        ("t.csv", b"PAR1", "give it the extension .parquet"),
        ("t.csv", b"\xef\xbb\xbf {", "give it the extension .jsonl"),
        ("t.json", b'{"a": 1}', "give it the extension .jsonl"),
        ("t.json", b'{"a":\n1}', "give it the extension .jsonl"),
        ("t.csv", b'[{"a": 1}]', "holds one JSON list; give it the extension .json"),
        ("t.xlsx", b"a,b", "the extension must be .csv, .jsonl or .parquet; save its sheet"),
        ("t.doc", b"a,b", "the extension must be .csv, .jsonl or .parquet$"),
        ("none.csv", None, "there is no file none.csv in"),
        ("", None, "is a folder; name a file in it"),
        ("t.csv", b"[a],b\n", ""),
        ("t.json", b'{"a": 1}\n{"a": 2}\n', ""),
        ("t.PQ", b"PAR1", ""),
        ("t.ndjson", b"{}", ""),
    ],
)
def test_a_file_that_is_not_what_its_extension_says_is_named(tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    if says:
        refused(says, formats.refuse_foreign, tmp_path / name)
    else:
        formats.refuse_foreign(tmp_path / name)


def test_a_value_is_a_cell_as_a_reader_would_write_it():
    for value, cell in (
        ("a", "a"), (None, ""), (float("nan"), ""), (pd.NA, ""), (pd.NaT, ""), (2.0, "2"),
        (2.5, "2.5"), (True, "True"), (np.int64(3), "3"), (np.array([1, 2]), "[1, 2]"),
        ((1, "ü"), '[1, "ü"]'), ({"b", "a"}, '["a", "b"]'), ({"a": None}, '{"a": null}'),
    ):  # fmt: skip
        assert formats.cell_text(value) == cell


def test_a_workbook_holds_no_formula_and_what_excel_would_cut_is_refused(tmp_path, monkeypatch):
    from openpyxl import load_workbook

    table = pd.DataFrame({"text": ["=1+1", "a\x01b", None], "number": [1.5, 2.0, 3.5]})
    (tmp_path / "t.xlsx").write_bytes(formats.xlsx_bytes(table, "t.xlsx"))
    sheet = load_workbook(tmp_path / "t.xlsx").active
    assert [*sheet.values] == [("text", "number"), ("=1+1", 1.5), ("a\ufffdb", 2), (None, 3.5)]
    assert [sheet.cell(row, 1).data_type for row in (2, 3)] == ["s", "s"]
    assert [sheet.cell(row, 1).quotePrefix for row in (2, 3)] == [True, False]
    monkeypatch.setattr(formats, "_EXCEL_ROWS", 4)
    formats.xlsx_bytes(table, "t.xlsx")
    refused("and here are 6 and 5; write", formats.xlsx_bytes, pd.concat([table, table[:1]]), "t")
    long = pd.DataFrame({"text": ["x" * 32_767]})
    formats.xlsx_bytes(long, "t.xlsx")
    refused("here are 32,768 and 2", formats.xlsx_bytes, long + "x", "t.xlsx")


def test_times_of_every_form_are_kept_in_utc():
    second = "2026-05-01T08:30:00"
    for text, kept in (
        ("1777624200", f"{second}.000+00:00"),
        ("1777624200123", f"{second}.123+00:00"),
        ("1777624200123456", f"{second}.123456+00:00"),
        ("1777624200123456000", f"{second}.123456+00:00"),
        ("2026-05-01", "2026-05-01T00:00:00.000+00:00"),
        ("2026-05-01T10:30:00.123456+02:00", f"{second}.123456+00:00"),
        ("2026-05-01T08:30:00.123Z", f"{second}.123+00:00"),
        ("x", ""),
        (" 2026-05-01 08:30 utc ", f"{second}.000+00:00"),
        ("2026-05-01T10:30:00,5+0200", f"{second}.500+00:00"),
        ("2026-05-32", ""),
        ("0001-01-01T00:00+23:00", ""),
        ("17776242", ""),
    ):
        assert ratings.stored_instant(text) == kept, text


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path):
    (tmp_path / "f").write_text("before")
    for path, says in (
        (tmp_path / "none" / "f", "there is no folder"),
        (tmp_path, "is a folder; name a file"),
        (Path(os.devnull), "is a device; name a file"),
    ):
        refused(says, atomic_write, path, b"after")
    with pytest.raises(TypeError):
        atomic_write(tmp_path / "f", "no bytes")
    assert (tmp_path / "f").read_text() == "before"
    atomic_write(tmp_path / "f", b"after")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("f", b"after")]
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    refused("f is a file; name a folder", check_folder, tmp_path / "f" / "deep")
    check_folder(tmp_path / "new" / "deep")


def test_names_are_folded_and_told_apart():
    column = pd.Series(["a\u200b b", "c", "a b"])
    assert cols.fold(column).tolist() == ["a b", "c", "a b"]
    assert cols.fold(column[1:]) is not column and cols.fold(column[1:]).equals(column[1:])
    assert cols.lookalikes(["Yes", "no", "yes.", "Yes", "NO "]) == [["Yes", "yes."], ["no", "NO "]]
    for count, commonest in ((2, "Yes"), (3, "yes")):
        assert cols.commonest(["yes", "Yes"], {"yes": count, "Yes": 2}) == commonest
    assert cols.unit_columns(["x", "item", "unit"]) == ["unit", "item"]
    many = [f"n{n}" for n in range(50)]
    assert cols.listed(["a", "b\n"]) == r"a, 'b\n'"
    assert cols.listed(many).startswith("n0, n1, ") and cols.listed(many).endswith(" more")
    assert [cols.listed(many[:n])[-10:] for n in (10, 11)] == ["n7, n8, n9", "and 1 more"]
