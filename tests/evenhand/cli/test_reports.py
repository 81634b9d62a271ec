"""`report` and `check`: figures as files, and a report on paper."""

from pathlib import Path

import pandas as pd
import pytest

from evenhand.reporting.report import browser_path
from harness.studies import with_labels
from tests.commands import Run

GIVEN = {"ann": "125125125125", "ben": "125125125121", "gpt": "125125125155"}


@pytest.fixture
def table() -> pd.DataFrame:
    """Two people and a grader on the 12 refusal units of one subject."""
    rows = [
        {"unit_id": f"p{n // 2 + 1:04d}|s1|{'ab'[n % 2]}", "rater_id": who, "label": label}
        for who, labels in GIVEN.items()
        for n, label in enumerate(labels)
    ]
    frame = pd.DataFrame(rows).assign(rubric="refusal", rater_kind="human")
    return frame.assign(rater_kind=frame["rater_id"].map({"gpt": "model"}).fillna("human"))


@pytest.fixture
def study(make_study) -> Path:
    return with_labels(make_study(subjects=("s1",)), GIVEN, graders=["gpt"]).folder


@pytest.mark.slow
def test_figures_of_a_ratings_file(run: Run, table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "ratings.csv", index=False)
    figures = tmp_path / "deep" / "figures"
    asked = ("check", tmp_path / "ratings.csv", "--rubric", "refusal", "--figures", figures)
    assert f"Figures and tables: {figures}" in run.ok(*asked)
    kinds = {path.suffix for path in figures.iterdir()}
    assert kinds == {".svg", ".png", ".csv", ".tex", ".md", ".bib"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "ratings.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False])
def test_a_page_is_folded_unless_it_is_full(run, study, table, tmp_path, full):
    table.to_csv(tmp_path / "ratings.csv", index=False)
    given = ["--full"] if full else []
    checked = ["check", tmp_path / "ratings.csv", "--rubric", "refusal"]
    for words in (["report", study], checked):
        run.ok(*words, "--out", tmp_path / "out", *given)
        page = (tmp_path / "out" / "report.html").read_text("utf-8")
        assert ("<details open" in page) is full
        assert ("<details>" in page) is not full
    if full:
        assert "name a folder for it with --out" in run.refused(*checked, "--full")


def test_a_folder_that_cannot_be_made_is_told_before_the_work(run, study, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "is a file; name a folder" in run.refused("report", study, "--figures", taken)
    assert not (study / "report").exists()


def test_without_a_browser_there_is_a_sentence_before_the_work(run, study, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = run.refused("report", study, "--format", "pdf")
    assert "there is no Chromium or Chrome to print with; install one" in said
    assert not (study / "report").exists()


@pytest.mark.thorough
@pytest.mark.browser
@pytest.mark.usefixtures("browser")
def test_a_report_is_printed(run: Run, study: Path) -> None:
    assert browser_path().exists()
    run.ok("report", study, "--format", "pdf", "--figures", study / "figures")
    assert (study / "report" / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert list((study / "figures").glob("*.svg"))
