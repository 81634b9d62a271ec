"""Where a file does not say what raters read, a terminal is asked, and nothing else is."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.study import open_study

pytestmark = pytest.mark.slow
ASK = ["--question", "Good?", "--options", "yes,no"]


def made(folder: Path, answer: bytes) -> tuple[int, str]:
    """`evenhand new --items` at a terminal on which this is typed."""
    file = folder / "rows.csv"
    file.write_text("headline,body\nOne,Text one\nTwo,Text two\n")
    lead, terminal = pty.openpty()
    words = [sys.executable, "-m", "evenhand", "new", str(folder / "s"), "--items", str(file), *ASK]
    os.write(lead, answer)
    done = subprocess.run(
        words, stdin=terminal, capture_output=True, text=True, timeout=120, check=False
    )
    for end in (lead, terminal):
        os.close(end)
    return done.returncode, done.stdout + done.stderr


def test_a_terminal_is_asked_for_the_columns(tmp_path: Path) -> None:
    code, said = made(tmp_path, b"headline, body\n")
    assert code == 0, said
    assert "is called response, output or answer" in said
    assert "shown: headline, body" in said
    with open_study(tmp_path / "s") as study:
        (rubric,) = study.rubrics.values()
    assert [block.label for block in rubric.blocks] == ["Headline", "Body"]


def test_no_answer_is_the_error(tmp_path: Path) -> None:
    code, said = made(tmp_path, b"\n")
    assert code == 2
    assert not (tmp_path / "s").exists()
    assert "Traceback" not in said
