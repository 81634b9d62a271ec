"""The pages of formats and the exports that tools made are as they are told."""

import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

from docs.list_formats import PAGE, renewed
from evenhand.exchange.readers.reading import ITEM_READERS
from evenhand.exchange.writers import FORMATS
from harness import exports


def test_the_table_is_written_from_the_readers() -> None:
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python docs/list_formats.py"
    assert all(f"| `{name}` |" in page for name in ITEM_READERS)


def test_every_format_that_is_written_is_listed_with_its_suffix() -> None:
    page = PAGE.read_text("utf-8")
    for name, how in FORMATS.items():
        out = f"`{how.suffix}`" if how.suffix else "new folder"
        assert f"| `{name}` | {out} |" in page


FILES = Path(__file__).with_name("files")
ROOT = Path(__file__).resolve().parents[2]


def test_every_tool_is_listed() -> None:
    files = {file.stem for file in Path(exports.__file__).parent.glob("*.py")}
    assert files - {"__init__", "__main__", "contents"} == set(exports.TOOLS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "files"),
    [
        ("openpyxl", ["wide.xlsx"]),
        ("prodigy", ["prodigy.jsonl"]),
        ("mt_bench", ["mt_bench.jsonl", "gpt-4_pair.jsonl", "items/mt_bench.jsonl"]),
        ("by_hand", ["items/batch.jsonl", "items/doccano.jsonl"]),
    ],
)
def test_the_files_are_what_is_made(tool: str, files: list[str], tmp_path: Path) -> None:
    make = [sys.executable, "-m", "harness.exports", tool, str(tmp_path)]
    subprocess.run(make, check=True, cwd=ROOT)
    for name in files:
        kept = FILES.parent if name.startswith("items/") else FILES
        assert _content(tmp_path / name) == _content(kept / name)


def _content(file: Path) -> object:
    if file.suffix != ".xlsx":
        return file.read_bytes()
    return list(openpyxl.load_workbook(file).active.values)  # without the time of writing
