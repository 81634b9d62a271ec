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

STUDIES = sorted(PUBLISHED)


def told(run: Run, *words: str) -> list[str]:
    return run.ok("demo", *words).splitlines()


@pytest.mark.parametrize("study", STUDIES)
def test_the_shipped_labels_are_those_that_were_published(study: str, shared_data: Path) -> None:
    file = shared_data / "real" / PUBLISHED[study].file
    known = pd.read_csv(file, dtype=str, keep_default_na=False)
    known.loc[known["rater_id"] == "expert", "rater_kind"] = "model"
    by = known.columns.tolist()
    shipped = published_labels(study)[by].sort_values(by, ignore_index=True)
    assert shipped.equals(known.sort_values(by, ignore_index=True))


def test_they_are_labels_and_nothing_else() -> None:
    for study, options in {"dices": {"Yes", "No", "Unsure"}, "llmbar": {"1", "2", ""}}.items():
        labels = published_labels(study)
        assert set(labels["label"]) == options
        assert set(labels["rater_kind"]) == {"human", "model"}
    sources = (ROOT / "data" / "published.md").read_text("utf-8")
    for word in ("CC BY 4.0", "Aroyo", "MIT", "Zeng", *(each.file for each in PUBLISHED.values())):
        assert word in sources


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_it_says_what_the_case_study_found(study: str, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "a look"
    said = told(run, str(folder), "--study", study, "--no-app")
    page = (ROOT / "examples" / study / "README.md").read_text("utf-8")
    found = [line for line in said if str(folder) not in line]
    assert len(said) <= 12
    assert all(len(line) <= 100 for line in found)
    for figure in re.findall(r"-?\d\.\d\d\b|\d\d%", " ".join(found)):
        assert figure in page
    assert "20" in found[-1], "the citation"
    written = {each.name for each in folder.iterdir()}
    assert written >= {PUBLISHED[study].file, "report.html", "results.csv"}
    resamples = PUBLISHED[study].resamples or AnalysisSettings().resamples
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
def test_the_options_it_names_are_those_of_the_case_study() -> None:
    for study, published in PUBLISHED.items():
        page = (ROOT / "examples" / study / "README.md").read_text("utf-8")
        assert f"evenhand check {study}/{published.file} {published.options}" in page


def spent() -> float:
    """Seconds of the processors, of all programs that have run."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.slow
def test_it_opens_the_report_soon(tmp_path: Path, monkeypatch) -> None:
    """With a browser that writes down what it opens. By the processors' time, beside that of
    loading pandas and scipy, since the machine may be busy (benchmarks/first_minute.py).
    """
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{opened}"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    marks = [spent()]
    look = ["-m", "evenhand", "demo", "look", "--study", "dices"]
    for words in (["-c", "import pandas, scipy.stats"], look):
        python(*words, cwd=tmp_path, check=True)
        marks.append(spent())
    first, loaded, looked = marks
    assert looked - loaded < 6 * (loaded - first)
    page = (tmp_path / "look" / "report.html").resolve()
    assert opened.read_text().strip() == page.as_uri()


def test_labels_that_are_there_stay_and_a_port_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "llmbar.csv").write_text("mine")
    told(run, str(tmp_path), "--study", "llmbar", "--no-app")
    assert (tmp_path / "llmbar.csv").read_text() == "mine"
    said = run.refused("demo", "--study", "llmbar", "--port", "9")
    assert "--port is for a study with an app" in said
