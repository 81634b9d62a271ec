"""A study's report and its live figures: the same rows, made in two ways; its last lines, its
print, and the libraries that estimates are held against.
"""

import json
import math
import multiprocessing
import re
from collections.abc import Callable
from itertools import permutations
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import evenhand as eh
from evenhand.analysis import Analysis, Scale, analyse, report
from evenhand.analysis.verification import Libraries
from evenhand.errors import InputError
from evenhand.reporting.panel import MOST_LINES, WIDTH, last_lines
from evenhand.reporting.report import (
    DISAGREEMENTS_FILE,
    FORESTS_FILE,
    QUALITY_FILE,
    agreement_of_pairs,
    print_pdf,
    report_study,
    study_figures,
)
from evenhand.reporting.workers import libraries_beside
from evenhand.study import Study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.ratings import Mark
from harness.studies import mark_words, with_labels
from tests.commands import Run

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
def test_the_page_of_disagreements_has_what_the_study_knows(labelled, tmp_path):
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
    marks = [("s", "(marked by ann)"), ("1:", "(marked by ann, ben)"), (" for", "(marked by ben)")]
    assert re.findall(r"<mark>(.*?)</mark><small>(.*?)</small>", page) == marks
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


@pytest.mark.parametrize("rubric", ["refusal", "even-handedness"])
def test_every_two_annotators_have_the_kappa_of_another_library(make_study, rubric):
    keys, weights = ("12345", "linear") if rubric == "refusal" else ("ABC", None)
    places = {"ann": "012012", "ben": "0120-1", "cleo": "2--1--", "dan": "-00---", "eve": "000---"}
    given = {
        rater: ["-" if place == "-" else keys[int(place)] for place in labels]
        for rater, labels in (places | {"gpt": "000000"}).items()
    }
    study = with_labels(make_study(subjects=("s1",)), given, rubric, graders=["gpt"])
    raters, n, kappa = agreement_of_pairs(study)[rubric]
    assert raters == [*places]
    for (at, a), (to, b) in permutations(enumerate(raters), 2):
        both = [pair for pair in zip(given[a], given[b], strict=True) if "-" not in pair]
        assert n[at, to] == len(both)
        if {a, b} in ({"cleo", "dan"}, {"dan", "eve"}):  # no item of both; one label alone
            assert math.isnan(kappa[at, to])
        else:
            theirs = cohen_kappa_score(*zip(*both, strict=True), labels=[*keys], weights=weights)
            assert kappa[at, to] == pytest.approx(theirs)


def facts_in(folder: Path) -> dict[str, object]:
    facts: dict[str, object] = json.loads((folder / "report.json").read_text())["study"]["facts"]
    return facts


@pytest.mark.parametrize("does", ["exit 1", "exit 0"], ids=["fails", "prints nothing"])
def test_a_browser_that_does_not_print_is_a_sentence(tmp_path: Path, does: str) -> None:
    browser = tmp_path / "chromium"
    browser.write_text(f"#!/bin/sh\n{does}\n")
    browser.chmod(0o755)
    told = r"chromium could not print page\.html; open it in a browser"
    with pytest.raises(InputError, match=told):
        print_pdf(browser, tmp_path / "page.html", tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()


@pytest.fixture
def started() -> Callable[[], list[BaseProcess]]:
    """The processes that the test has started and that are still there."""
    before = multiprocessing.active_children()
    return lambda: [each for each in multiprocessing.active_children() if each not in before]


def _analysed(verify: bool | Libraries) -> Analysis:
    """Two rubrics, each with two readings, so that several answers are waited for in turn."""
    given = {"ann": "yyynnnyy", "ben": "yynnnyyn"}
    rows = [
        {"rubric": name, "unit_id": f"u{n}", "rater_id": who, "rater_kind": "human", "label": label}
        for name, step in (("calm", 1), ("kind", 3))
        for who, labels in given.items()
        for n, label in enumerate((labels * 3)[::step])
    ]
    scales = [Scale(name, ("y", "n"), affirmative=frozenset("y")) for name in ("calm", "kind")]
    return analyse(pd.DataFrame(rows), None, scales, resamples=50, verify=verify)


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_libraries_beside_say_what_they_say_here(started, monkeypatch):
    waited: list[str] = []
    monkeypatch.setattr(report, "prepare_report", lambda: waited.append("meanwhile"))
    with libraries_beside() as libraries:
        beside = _analysed(libraries).verification
    assert beside == _analysed(True).verification
    assert beside is not None
    assert beside.compared == 20
    assert waited  # to load them takes longer than this analysis
    assert not started()


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_a_process_that_is_killed_costs_time_and_nothing_else(started, monkeypatch):
    def kill() -> None:
        for process in started():
            process.kill()

    monkeypatch.setattr(report, "prepare_report", kill)
    with libraries_beside() as libraries:
        assert _analysed(libraries).verification == _analysed(True).verification


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_an_error_here_leaves_nobody_behind(started: Callable[[], list[BaseProcess]]) -> None:
    def fail() -> None:
        with libraries_beside():
            raise ValueError("of the analysis")

    with pytest.raises(ValueError, match="of the analysis"):
        fail()
    assert not started()


def test_a_single_core_loads_them_itself() -> None:
    with libraries_beside() as libraries:
        assert libraries is True


GIVEN = {"human": ("yyyynnnn" * 10, "yyynnnnn" * 10), "good": "yyyynnnn" * 5 + "yyynnnnn" * 5}


def labels(rubrics: int, graders: int, name: str = "grader") -> pd.DataFrame:
    """Two annotators and graders of whom every second is good and the others say no, by rubric."""
    given = dict(zip(("ann", "ben"), GIVEN["human"], strict=True))
    given |= {f"{name}-{n}": "n" * 80 if n % 2 else str(GIVEN["good"]) for n in range(graders)}
    return pd.DataFrame(
        {
            "unit_id": f"u{n}",
            "rater_id": rater,
            "rater_kind": "human" if rater in ("ann", "ben") else "model",
            "rubric": f"rubric-{rubric}",
            "label": label,
        }
        for rubric in range(rubrics)
        for rater, own in given.items()
        for n, label in enumerate(own)
    )


def ended(table: pd.DataFrame) -> list[str]:
    return last_lines(eh.check(table, resamples=20).analysis)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rubrics", "graders", "name"),
    [
        (1, 1, "grader"),
        (1, 14, "a-provider:a-model-with-a-long-name"),
        (3, 3, "grader"),
        (9, 3, "g"),
        (4, 2, "x" * 90),
    ],
)
def test_lines_are_few_and_short(rubrics: int, graders: int, name: str) -> None:
    said = ended(labels(rubrics, graders, name))
    assert len(said) <= MOST_LINES + 1
    assert all(len(line) <= WIDTH for line in said)
    assert said[-1].startswith("The report has ")
    hidden = [line for line in said if "more rubrics" in line]
    told = sum(f"rubric-{n}" in "".join(said) for n in range(rubrics))
    assert bool(hidden) == (told < rubrics)
    if hidden:
        assert hidden == [f"The report has {rubrics - told} more rubrics."]


def test_without_graders_it_says_so() -> None:
    said = ended(labels(1, 0))
    assert said[0] == "No verdict: there is no grader to evaluate."


@pytest.mark.slow
def test_the_demo_ends_within_a_dozen(tmp_path: Path, run: Run) -> None:

    for _ in range(2):  # made, and found again
        said = (
            run.ok("demo", tmp_path / "d", "--study", "items", "--no-app")
            .replace(str(tmp_path), "")
            .splitlines()
        )
        assert len(said) <= 10
        assert max(map(len, said)) <= 100
        assert "report.html" in said[-1]
