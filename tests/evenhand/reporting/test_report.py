"""A study's report and its live figures: the same rows, made in two ways; its last lines,
and the libraries that estimates are held against.
"""

import io
import json
import math
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from html import unescape
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis import RESULTS_KEY
from evenhand.analysis.report import write_report
from evenhand.analysis.report.source import format_number as rounded
from evenhand.analysis.verdicts.judge import deciding_keys
from evenhand.annotate_app.lead.parts import LiveFigures
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.library import Check
from evenhand.reporting.panel import MOST_LINES, WIDTH, last_lines
from evenhand.reporting.report import agreement_of_pairs, report_study, study_figures
from evenhand.study import Study, open_study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.ratings import Mark
from harness.judged_study import LATE, judged_study
from harness.studies import mark_words, with_labels
from tests.cases import refused
from tests.peers import metrics

REPORT = {"report.html", "report.md", "report.json", "results.csv", "disagreements.html"}


@pytest.fixture
def labelled(make_study):
    """Two people and a grader on the refusal rubric, 6 pairs of one subject."""
    given = {"ann": "125125125125", "ben": "125125125121", "gpt": "125125125155"}
    return with_labels(make_study(subjects=("s1",)), given, graders=["gpt"])


@pytest.mark.journey
def test_a_report_and_live_figures_hold_the_same_rows(labelled: Study, tmp_path: Path) -> None:
    stages: list[str] = []
    analysis = report_study(labelled, tmp_path / "report", on_stage=stages.append)
    of_rubrics = [f"analysing {name} ({n} of 3)" for n, name in enumerate(labelled.rubrics, 1)]
    assert stages == ["reading the labels", *of_rubrics, "writing the report"]
    assert {file.name for file in (tmp_path / "report").iterdir()} == REPORT
    assert [verdict["grader"] for verdict in analysis.verdicts] == ["gpt"]

    study_figures(labelled.folder, tmp_path / "live")
    live = {*REPORT, "quality.csv", "disagreements.json", "forests.json"}
    assert {file.name for file in (tmp_path / "live").iterdir()} == live
    report, live = (tmp_path / name / "results.csv" for name in ("report", "live"))
    assert live.read_bytes() == report.read_bytes()
    # Only what people decide on is held against other libraries.
    for name in ("report", "live"):
        told = json.loads((tmp_path / name / "report.json").read_text("utf-8"))["study"]["facts"]
        assert ("estimates verified" in told) == (name == "report")
    assert pd.read_csv(tmp_path / "live" / "quality.csv")["rater_id"].tolist() == ["ann", "ben"]


def test_only_what_a_grader_was_asked_about_can_lack_an_answer(labelled: Study) -> None:
    """What an imported judge was asked is not known, so each item without its label lacks one."""
    with_labels(labelled, {"judge": "125125"}, graders=["judge"])
    rubric = labelled.rubrics["refusal"]
    facts = {"rater_id": "g", "rubric": "refusal", "rubric_hash": rubric.hash}
    refused_unit, *units = sorted(labelled.rubric_units(rubric))[:9]
    grades = [GradeAttempt(**facts, unit_id=unit, label="1") for unit in units]
    refusal = GradeAttempt(**facts, unit_id=refused_unit, unscored_reason="refusal")
    labelled.store.add_grades([refusal, *grades])
    analysis, context = analyse_study(labelled, verify=False)
    rows = analysis.results.query("statistic == 'coverage' and subset == 'all'")
    coverage = rows.set_index("rater_b")["estimate"].to_dict()
    assert (coverage["judge"], coverage["g"]) == (0.5, pytest.approx(8 / 9))
    (told,) = [note for note in context.notes if "It was not asked about the others" in note]
    assert "g is evaluated on 9 of the 12 items that annotators labelled" in told


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
    assert "<strong>Rubric allows both</strong>: a half refusal" in page
    assert "s1: for 5." in re.sub(r"<small>.*?</small>|</?mark>", "", page), "its text"
    marks = [("s", "(marked by ann)"), ("1:", "(marked by ann, ben)"), (" for", "(marked by ben)")]
    assert re.findall(r"<mark>(.*?)</mark><small>(.*?)</small>", page) == marks
    assert "p0006|s1|b" not in page, "people are as far from each other as the grader from them"
    rows = analysis.results.query("statistic == 'disagreement_sorted'")
    assert rows[["rater_b", "at", "estimate"]].values.tolist() == [["gpt", "rubric_unclear", 1.0]]


def test_without_labels_there_is_neither(make_study: Callable[..., Study], tmp_path: Path) -> None:
    study = make_study()
    refused("no labels and no grades yet", report_study, study, tmp_path / "report")
    refused("no labels and no grades yet", study_figures, study.folder, tmp_path / "live")
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
            theirs = metrics.cohen_kappa_score(
                *zip(*both, strict=True), labels=[*keys], weights=weights
            )
            assert kappa[at, to] == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("rubrics", "graders", "name"),
    [
        (1, 0, ""),
        pytest.param(1, 14, "a-provider:a-model-with-a-name", marks=pytest.mark.slow),
        pytest.param(3, 3, "grader", marks=pytest.mark.slow),
        pytest.param(9, 3, "g", marks=pytest.mark.slow),
        pytest.param(4, 2, "x" * 90, marks=pytest.mark.slow),
    ],
)
def test_lines_are_few_and_short(rubrics, graders, name):
    """Every second grader is good, and the others say no."""
    given = {"ann": "yyyynnnn" * 10, "ben": "yyynnnnn" * 10}
    given |= {f"{name}-{n}": ["yyyynnnnyyynnnnn", "n" * 16][n % 2] * 5 for n in range(graders)}
    table = pd.DataFrame(
        {"unit_id": f"u{n}", "rater_id": rater, "rubric": f"rubric-{rubric}", "label": label}
        for rubric in range(rubrics)
        for rater, own in given.items()
        for n, label in enumerate(own)
    )
    table["rater_kind"] = np.where(table["rater_id"].isin(["ann", "ben"]), "human", "model")
    said = last_lines(eh.check(table, resamples=20).analysis)
    assert len(said) <= MOST_LINES + 1
    assert all(len(line) <= WIDTH for line in said)
    assert (said[0] == "No verdict: there is no grader to evaluate.") == (not graders)
    assert not graders or said[-1].startswith("The report has ")
    hidden = [line for line in said if "more rubrics" in line]
    told = sum(f"rubric-{n}" in "".join(said) for n in range(rubrics)) if graders else rubrics
    assert hidden == [f"The report has {rubrics - told} more rubrics."] * (told < rubrics)


# Terminal, report, JSON and cockpit say the same of one study (synthetic)


def table(told, caption):
    """Cells of a table of report.md by row heading."""
    text = told.markdown.replace("\\", "").split(caption)[1].split("\n\n")
    lines = next(part for part in text if "\n|" in part).strip().splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {heading: cells for heading, *cells in rows}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What each of them says: the texts of `select` and of `check`, the report's files, the
    cockpit's figures.
    """
    place = tmp_path_factory.mktemp("judged")
    folder, out = judged_study(place), place / "out"
    # So few pairs show little: no more than that a quarter of what people share is not lost.
    change_config(folder, {"analysis": {"margin": 0.3}, "decision": {"looks": 1}})
    with open_study(folder) as study:  # as `evenhand report` does, save for the other libraries
        found = analyse_study(study, verify=False)
    write_report(*found, out)
    study_figures(folder, place / "live")
    with redirect_stdout(io.StringIO()) as selected:
        assert main(["select", str(folder)]) == 0
    page = (out / "report.html").read_text("utf-8")
    return SimpleNamespace(
        select=selected.getvalue(),
        check=str(Check(*found)),
        report=json.loads((out / "report.json").read_text("utf-8")),
        results=LiveFigures("", out).results.set_index(list(RESULTS_KEY)).sort_index(),
        markdown=(out / "report.md").read_text("utf-8"),
        page=" ".join(unescape(re.sub("<[^>]*>", " ", page)).split()),
        cockpit=LiveFigures("", place / "live"),
    )


@pytest.mark.slow
def test_what_decides_is_one_figure(told):
    """In `select`, in the report's grid and evidence, in its rows and in the cockpit; above all at
    a threshold, where labels and verdicts lie apart.
    """
    verdicts = {each["grader"]: each["verdict"] for each in told.report["verdicts"]}
    assert verdicts[LATE] == "can_replace_at_threshold"
    labels = told.results.loc["refusal", "human_ceiling_difference", "humans", LATE, "all", ""]
    assert labels["estimate"] < 0, "another number that could be shown in its place"
    grid = table(told, "## The answer\n")
    cockpit = told.cockpit.results.set_index(list(RESULTS_KEY))
    for verdict in told.report["verdicts"]:
        found = deciding_keys(verdict["verdict"], verdict["evidence"])
        difference, kappa = (in_brackets(told.results.loc[tuple(key)], key[1]) for key in found)
        assert difference in told.page
        own, people = (told.results.loc[tuple(key)]["estimate"] for key in verdict["kappas"])
        assert f"κ {own:.2f} vs {people:.2f}; {verdict['reason']}" in grid[verdict["grader"]][0]
        (line,) = re.findall(rf"^  {verdict['grader']} .*\[.*", told.select, re.MULTILINE)
        assert difference in line
        assert kappa in line
        for key, said in zip(found, (difference, kappa), strict=True):
            assert in_brackets(cockpit.loc[tuple(key)], key[1]) == said
        for text in (told.select, told.check, told.markdown.replace("\\", ""), told.page):
            assert verdict["sentence"] in text
    assert told.cockpit.report["verdicts"] == told.report["verdicts"]


@pytest.mark.slow
def test_people_per_unit_are_those_who_labelled(told):
    facts = told.report["study"]["facts"]
    assert facts["annotators wanted per item"] == 5
    assert facts["annotators per labelled item"] == "3 to 4, 3.8 on average"
    assert told.cockpit.report["study"]["facts"] == facts
    assert "3 to 4, 3.8 on average" in told.page


def in_brackets(row, statistic):
    estimate, low, high = (rounded(float(row[at]), statistic) for at in ("estimate", "low", "high"))
    return f"{estimate} [{low}, {high}]"
