"""No foreign file is taken for what it is not, no advice on one leads astray, and the pages of
formats and the exports that tools made are as they are told.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import openpyxl
import pytest

from benchmarks import formats
from docs.list_formats import PAGE, renewed
from evenhand.exchange.readers.reading import ITEM_READERS
from evenhand.exchange.writers import FORMATS
from harness import exports
from harness.foreign import FOREIGN, Foreign, advised, enter_tools_files, outcome
from tests.cases import one_in
from tests.conftest import ROOT
from tests.exchange.test_readers import FILES, MADE

pytestmark = pytest.mark.journey

enter_tools_files(FILES / made.file for made in MADE)
MIXED = [file for file in FOREIGN if file.file.startswith("mixed_")]
OTHERS = [file for file in FOREIGN if file not in MIXED]


@pytest.mark.parametrize("file", [*OTHERS, *one_in(9, MIXED)], ids=lambda file: file.file)
def test_a_foreign_file_is_read_rightly_or_refused(file: Foreign, tmp_path: Path) -> None:
    found = outcome(file, tmp_path)
    assert found.read == bool(file.right), found
    assert found.read or found.said


@pytest.mark.slow
def test_the_page_counts_what_became_of_them(tmp_path: Path) -> None:
    counts = Counter(outcome(file, tmp_path).how for file in FOREIGN)
    assert {how: counts[how] for how in formats.FOREIGN} == formats.FOREIGN
    assert len({file.file for file in FOREIGN}) == len(FOREIGN) == counts.total()


@pytest.mark.parametrize(("said", "options"), [
    ("say so with --human ann,ben --model 'a b'", [["--human", "ann,ben", "--model", "a b"]]),
    ("say with --columns unit=item, and say who with --human ann",
     [["--columns", "unit=item", "--human", "ann"]]),
    ("--normalise reads it as 'yes' (4 cells), or declare all labels with --categories",
     [["--normalise"]]),
    ("with --columns unit=COLUMN, or name these with --human and --model", []),
])  # fmt: skip
def test_advice_is_read_as_it_stands(said: str, options: list[list[str]]) -> None:
    assert list(advised(said)) == options


def test_the_pages_and_the_exports_name_every_format_and_tool() -> None:
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python docs/list_formats.py"
    assert all(f"| `{name}` |" in page for name in ITEM_READERS)
    for name, how in FORMATS.items():
        out = f"`{how.suffix}`" if how.suffix else "new folder"
        assert f"| `{name}` | {out} |" in page
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
