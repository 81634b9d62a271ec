"""A study's report and its live figures: the same rows, made in two ways."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.reporting.live_figures import (
    DISAGREEMENTS_FILE,
    FORESTS_FILE,
    OVER_TIME_FILE,
    QUALITY_FILE,
    study_figures,
)
from evenhand.reporting.report import report_study
from evenhand.study import Study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.evidence import Mark
from harness.studies import mark_words, with_labels

REPORT = {"report.html", "report.md", "report.json", "results.csv", "disagreements.html"}


@pytest.fixture
def labelled(make_study: Callable[..., Study]) -> Study:
    """Two people and a grader on the refusal rubric, 6 pairs of one subject."""
    study = make_study(subjects=("s1",))
    given = {"ann": "125125125125", "ben": "125125125121", "gpt": "125125125155"}
    return with_labels(study, given, graders=["gpt"])


@pytest.mark.slow
def test_a_report_and_live_figures_hold_the_same_rows(labelled: Study, tmp_path: Path) -> None:
    stages: list[str] = []
    analysis = report_study(labelled, tmp_path / "report", on_stage=stages.append)
    of_rubrics = [f"analysing {name} ({n} of 3)" for n, name in enumerate(labelled.rubrics, 1)]
    assert stages == ["reading the labels", *of_rubrics, "writing the report"]
    assert {file.name for file in (tmp_path / "report").iterdir()} == REPORT
    assert [verdict["grader"] for verdict in analysis.verdicts] == ["gpt"]

    study_figures(labelled.folder, tmp_path / "live")
    assert {file.name for file in (tmp_path / "live").iterdir()} == {
        *REPORT,
        QUALITY_FILE,
        OVER_TIME_FILE,
        DISAGREEMENTS_FILE,
        FORESTS_FILE,
    }
    report, live = (tmp_path / name / "results.csv" for name in ("report", "live"))
    assert live.read_bytes() == report.read_bytes()
    # Only what people decide on is held against other libraries.
    assert "estimates verified" in facts_in(tmp_path / "report")
    assert "estimates verified" not in facts_in(tmp_path / "live")
    quality = pd.read_csv(tmp_path / "live" / QUALITY_FILE)
    assert quality["rater_id"].tolist() == ["ann", "ben"]


@pytest.mark.slow
def test_the_page_of_disagreements_has_what_the_study_knows(
    labelled: Study, tmp_path: Path
) -> None:
    """The texts, what people wrote, the grader's reply, and what the lead made of it."""
    unit, digest = "p0006|s1|a", labelled.rubrics["refusal"].hash  # people say 2, gpt 5
    about = {"rubric": "refusal", "unit_id": unit, "grader": "gpt"}
    sort_disagreement(labelled, "lead", **about, kind="rubric_unclear", note="a half refusal")
    given = {"rater_id": "gpt", "rubric": "refusal", "unit_id": unit, "rubric_hash": digest}
    labelled.store.add_grades([GradeAttempt(**given, label="5", raw="It is a refusal, 5.")])
    mark_words(labelled, "ann", Mark("response", 0, 3))
    mark_words(labelled, "ben", Mark("response", 1, 7))
    analysis = report_study(labelled, tmp_path / "report")
    page = (tmp_path / "report" / "disagreements.html").read_text("utf-8")
    assert "It is a refusal, 5." in page
    assert "<strong>Rubric unclear</strong>: a half refusal" in page
    assert "s1: for 5." in re.sub(r"<small>.*?</small>|</?mark>", "", page), "its text"
    assert re.findall(r"<mark>(.*?)</mark><small>(.*?)</small>", page) == [
        ("s", "(marked by ann)"),
        ("1:", "(marked by ann, ben)"),
        (" for", "(marked by ben)"),
    ]
    assert "p0006|s1|b" not in page, "people are as far from each other as the grader from them"
    rows = analysis.results.query("statistic == 'disagreement_sorted'")
    assert rows[["rater_b", "at", "estimate"]].values.tolist() == [["gpt", "rubric_unclear", 1.0]]


def test_without_labels_there_is_neither(make_study: Callable[..., Study], tmp_path: Path) -> None:
    study = make_study()
    with pytest.raises(InputError, match="no labels and no grades yet"):
        report_study(study, tmp_path / "report")
    with pytest.raises(InputError, match="no labels and no grades yet"):
        study_figures(study.folder, tmp_path / "live")
    assert not (tmp_path / "report").exists()
    assert not (tmp_path / "live").exists()


def facts_in(folder: Path) -> dict[str, object]:
    facts: dict[str, object] = json.loads((folder / "report.json").read_text())["study"]["facts"]
    return facts
