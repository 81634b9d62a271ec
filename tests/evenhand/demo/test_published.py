"""Published labels at a look: what is shipped, what is said of it, and how soon."""

import json
import re
import resource
from pathlib import Path

import pandas as pd
import pytest

from evenhand.demo import PUBLISHED, published_labels
from evenhand.study.settings.analysis import AnalysisSettings
from tests.commands import Run, python
from tests.conftest import ROOT

OPTIONS = {"dices": {"Yes", "No", "Unsure"}, "llmbar": {"1", "2", ""}}


@pytest.mark.parametrize(("study", "options"), OPTIONS.items())
def test_the_shipped_labels_are_those_that_were_published(study, options, shared_data) -> None:
    file = shared_data / "real" / PUBLISHED[study].file
    known = pd.read_csv(file, dtype=str, keep_default_na=False)
    known.loc[known["rater_id"] == "expert", "rater_kind"] = "model"
    by = known.columns.tolist()
    shipped = published_labels(study)[by].sort_values(by, ignore_index=True)
    assert shipped.equals(known.sort_values(by, ignore_index=True))
    assert set(shipped["label"]) == options
    sources = (ROOT / "data" / "published.md").read_text("utf-8")
    for word in ("CC BY 4.0", "Aroyo", "MIT", "Zeng", PUBLISHED[study].file):
        assert word in sources


@pytest.mark.slow
@pytest.mark.parametrize("study", OPTIONS)
def test_it_says_what_the_case_study_found(study: str, tmp_path: Path, run: Run) -> None:
    folder, published = tmp_path / "a look", PUBLISHED[study]
    folder.mkdir()
    (folder / "mine.csv").write_text("mine")
    said = run.ok("demo", folder, "--study", study, "--no-app").splitlines()
    page = (ROOT / "examples" / study / "README.md").read_text("utf-8")
    assert f"evenhand check {study}/{published.file} {published.options}" in page
    found = [line for line in said if str(folder) not in line]
    assert len(said) <= 12
    assert all(len(line) <= 100 for line in found)
    for figure in re.findall(r"-?\d\.\d\d\b|\d\d%", " ".join(found)):
        assert figure in page
    assert "20" in found[-1], "the citation"
    written = {each.name for each in folder.iterdir()}
    assert written >= {published.file, "mine.csv", "report.html", "results.csv"}
    resamples = published.resamples or AnalysisSettings().resamples
    assert f"{resamples:,} bootstrap resamples" in (folder / "report.html").read_text("utf-8")
    if study == "llmbar":  # its slices are small: as many as `check` draws, so the same bounds
        assert resamples == 2000
    given = json.loads((folder / "report.json").read_text("utf-8"))["verdicts"]
    public = (ROOT / "docs" / "public.md").read_text("utf-8").replace("\\", "")
    for each in given:
        verdict = each["verdict"].replace("_", " ").replace("with ", "with the ")
        (row,) = re.findall(rf"^\|[^|]+\| {re.escape(each['grader'])} \|.*", public, re.MULTILINE)
        assert f"| {verdict.capitalize()} |" in row


@pytest.mark.slow
def test_it_opens_the_report_soon(tmp_path: Path, monkeypatch) -> None:
    """With a browser that writes down what it opens. By the processors' time, beside that of
    loading pandas and scipy, since the machine may be busy (benchmarks/first_minute.py).
    """
    opened, browser, marks = tmp_path / "opened", tmp_path / "browser", []
    browser.write_text(f'#!/bin/sh\necho "$1" > "{opened}"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    look = ["-m", "evenhand", "demo", "look", "--study", "dices"]
    for words in (["-c", ""], ["-c", "import pandas, scipy.stats"], look):
        python(*words, cwd=tmp_path, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        marks.append(usage.ru_utime + usage.ru_stime)
    first, loaded, looked = marks
    assert looked - loaded < 6 * (loaded - first)
    page = (tmp_path / "look" / "report.html").resolve()
    assert opened.read_text().strip() == page.as_uri()


@pytest.mark.slow
def test_labels_that_are_there_stay(tmp_path: Path, run: Run) -> None:
    (tmp_path / "llmbar.csv").write_text("mine")
    run.ok("demo", tmp_path, "--study", "llmbar", "--no-app")
    assert (tmp_path / "llmbar.csv").read_text() == "mine"
