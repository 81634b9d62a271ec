"""Exports that a spreadsheet opens without running a cell, and that read back as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from evenhand.study.tables.formats import guarded, read_table, unguarded_frame, write_table

TEXTS = [
    '=cmd|"/c calc"!A1', "+1+1", "-1+1", "@sum", "\tx", "\rx", "\n=x", "'=x", "''=x", "'tis", "'",
    "-0.5", "1e-05", "plain", "", "a=b", "- an item",
]  # fmt: skip


def test_no_cell_of_a_csv_is_a_formula_and_all_read_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": TEXTS, "number": [-1.5] * len(TEXTS), "other": "x"})
    write_table(frame, tmp_path / "table.csv")

    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["text"] for row in csv.DictReader(file)]
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r\n" and cell not in ("", "-0.5")]
    again = read_table(tmp_path / "table.csv")
    assert again["text"].tolist() == TEXTS
    assert set(again["number"]) == {"-1.5"}


@pytest.mark.slow
def test_large_plain_files_read_back_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["=x", "'=x", "plain"] * 60_000, "other": "y"})
    write_table(frame, tmp_path / "table.csv")

    assert (tmp_path / "table.csv").stat().st_size > 1_000_000
    assert read_table(tmp_path / "table.csv")["text"].tolist() == frame["text"].tolist()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_other_formats_keep_the_text(tmp_path: Path, suffix: str) -> None:
    write_table(pd.DataFrame({"text": TEXTS}), tmp_path / f"table{suffix}")

    assert read_table(tmp_path / f"table{suffix}")["text"].tolist() == TEXTS


@pytest.mark.parametrize("text", TEXTS)
def test_taking_one_apostrophe_off_restores(text: str) -> None:
    assert guarded(text) in (text, "'" + text)


@pytest.mark.parametrize("sign", "＝＋－＠")
def test_full_width_signs_begin_a_formula_too(sign: str) -> None:
    """Some spreadsheets read them as the usual signs. Version 0.2.0 left them bare."""
    text = f'{sign}HYPERLINK("http://h")'
    assert guarded(text) == f"'{text}"
    assert guarded(f"'{text}") == f"''{text}"
    frame = pd.DataFrame({"a": [guarded(text), guarded(f"'{text}")]})
    assert unguarded_frame(frame, frame.to_csv().encode())["a"].tolist() == [text, f"'{text}"]
