"""`report` and `check`: figures as files, and a report on paper; and what is printed can be read on
any terminal, of any width and in any encoding.
"""

import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from evenhand.cli.terminal import print_table
from harness.studies import with_labels
from tests.commands import Run, python

GIVEN = {"ann": "125125125125", "ben": "125125125121", "gpt": "125125125155"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two people and a grader on the 12 refusal units of one subject."""
    rows = [
        (f"p{n // 2 + 1:04d}|s1|{'ab'[n % 2]}", who, "model" if who == "gpt" else "human", label)
        for who, labels in GIVEN.items()
        for n, label in enumerate(labels)
    ]
    frame = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])
    frame.assign(rubric="refusal").to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path / "ratings.csv"


@pytest.fixture
def study(make_study) -> Path:
    return with_labels(make_study(subjects=("s1",)), GIVEN, graders=["gpt"]).folder


@pytest.mark.slow
def test_figures_of_a_ratings_file(run: Run, table: Path, tmp_path: Path) -> None:
    figures = tmp_path / "deep" / "figures"
    asked = ("check", table, "--rubric", "refusal", "--figures", figures)
    assert f"Figures and tables: {figures}" in run.ok(*asked)
    kinds = {path.suffix for path in figures.iterdir()}
    assert kinds == {".svg", ".png", ".csv", ".tex", ".md", ".bib"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "ratings.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False])
def test_a_page_is_folded_unless_it_is_full(run, study, table, tmp_path, full):
    checked = ["check", table, "--rubric", "refusal"]
    for words in (["report", study], checked):
        run.ok(*words, "--out", tmp_path / "out", *["--full"] * full)
        page = (tmp_path / "out" / "report.html").read_text("utf-8")
        assert ("<details open" in page) is full
        assert ("<details>" in page) is not full


@pytest.mark.journey
def test_what_cannot_be_written_is_told_before_the_work(run, study, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "is a file; name a folder" in run.refused("report", study, "--figures", taken)
    assert not (study / "report").exists()


@pytest.mark.slow
def test_figures_of_a_report_are_files(run: Run, study: Path) -> None:
    run.ok("report", study, "--figures", study / "figures")
    assert list((study / "figures").glob("*.svg"))


# On any terminal

ROWS = [(f"u{n}", *("yes" if n % each else "no" for each in (3, 4, 5))) for n in range(60)]
COLOUR = re.compile(r"\x1b\[[\d;]*m")
INTERVAL = re.compile(r"-?\d\.\d\d \[-?\d\.\d\d, -?\d\.\d\d\]")
RATERS = ("annotator-of-the-first-wave", "ben", "a-grader-with-a-long-name")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    head = ("unit_id", *RATERS)
    (tmp_path / "labels.csv").write_text("\n".join(map(",".join, [head, *ROWS])) + "\n")
    return tmp_path / "labels.csv"


def checked(file: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    asked = ["--human", ",".join(RATERS[:2]), "--model", RATERS[2], "--categories", "yes,no"]
    asked += ["--affirmative", "yes", "--resamples", "100"]
    return python("-m", "evenhand", "check", file, *asked, env=os.environ | environment, text=False)


@pytest.mark.slow
def test_nothing_is_cut_at_any_width(file: Path) -> None:
    wide = checked(file).stdout.decode("utf-8")
    assert wide.count("Annotators with one another") == 1  # a scale of two has one table
    assert "TPR" in wide
    for width in (40, 80, 160):
        terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(width)}
        said = COLOUR.sub("", checked(file, **terminal).stdout.decode("utf-8"))
        assert INTERVAL.findall(said) == INTERVAL.findall(wide), width
        assert len(INTERVAL.findall(said)) > 15
        assert f"{RATERS[0]} · {RATERS[2]}" in said
        assert "…" not in said
        cells = [line for line in said.splitlines() if INTERVAL.search(line)]
        assert max(map(len, cells)) <= width + 2  # one field, at 40 columns, is as long as it is


def test_a_pipe_gets_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    row = ["a-grader-with-a-long-name", *["+0.12 [+0.10, +0.14]"] * 12]
    print_table([f"column {number}" for number in range(13)], [row])
    assert "   ".join(row) in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp437", "shift_jis", "utf-16"])
def test_any_encoding_of_the_terminal_will_do(file: Path, encoding: str) -> None:
    done = checked(file, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr.decode(encoding)
    said = done.stdout.decode(encoding)
    assert "Cohen κ" in said or "Cohen ?" in said
