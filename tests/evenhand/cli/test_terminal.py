"""What a verb prints can be read on any terminal: of any width, and in any encoding."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from evenhand.cli.terminal import print_table
from tests.commands import python

pytestmark = pytest.mark.slow
ROWS = [
    (f"u{n}", "yes" if n % 3 else "no", "yes" if n % 4 else "no", "yes" if n % 5 else "no")
    for n in range(60)
]
COLOUR = re.compile(r"\x1b\[[\d;]*m")
INTERVAL = re.compile(r"-?\d\.\d\d \[-?\d\.\d\d, -?\d\.\d\d\]")
ASK = [
    *("--human", "annotator-of-the-first-wave,ben", "--model", "a-grader-with-a-long-name"),
    *("--categories", "yes,no", "--affirmative", "yes", "--resamples", "100"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    head = "unit_id,annotator-of-the-first-wave,ben,a-grader-with-a-long-name"
    path.write_text("\n".join([head, *map(",".join, ROWS)]) + "\n")
    return path


def checked(file: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    words = ("-m", "evenhand", "check", file, *ASK)
    return python(*words, env=os.environ | environment, text=False)


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_nothing_is_cut_at_any_width(file: Path, width: int) -> None:
    terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(width)}
    said = COLOUR.sub("", checked(file, **terminal).stdout.decode("utf-8"))
    wide = checked(file).stdout.decode("utf-8")
    assert INTERVAL.findall(said) == INTERVAL.findall(wide)
    assert len(INTERVAL.findall(said)) > 15
    assert "annotator-of-the-first-wave · a-grader-with-a-long-name" in said
    assert "…" not in said
    cells = [line for line in said.splitlines() if INTERVAL.search(line)]
    assert max(map(len, cells)) <= width + 2  # one field, at 40 columns, is as long as it is


def test_a_pipe_gets_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    row = ["a-grader-with-a-long-name", *["+0.12 [+0.10, +0.14]"] * 12]
    print_table([f"column {number}" for number in range(13)], [row])
    assert "   ".join(row) in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "cp1252", "shift_jis", "utf-16"])
def test_any_encoding_of_the_terminal_will_do(file: Path, encoding: str) -> None:
    done = checked(file, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr.decode(encoding)
    said = done.stdout.decode(encoding)
    assert "Cohen κ" in said or "Cohen ?" in said


def test_a_scale_of_two_has_one_table(file: Path) -> None:
    said = checked(file).stdout.decode("utf-8")
    assert said.count("Annotators with one another") == 1
    assert "TPR" in said
