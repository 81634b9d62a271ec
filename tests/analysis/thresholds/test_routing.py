"""Routing rows and their sentences: a cut that is found, one that is not, and hours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.report import ReportContext, render_routing_text, write_report

SCALE = Scale("tone", ("x", "y"))
SECONDS = 36.0


def study(right: list[bool], confidence: list[float], *, timed: bool = True) -> pd.DataFrame:
    """Two people who agree, at 36 seconds a label, and a grader so sure of its label."""
    rows = []
    for n, (agrees, sure) in enumerate(zip(right, confidence, strict=True)):
        unit, label = f"u{n:04d}", "xy"[n % 2]
        said = label if agrees else "yx"[n % 2]
        shares = {key: sure if key == said else 1 - sure for key in "xy"}
        rows += [(unit, who, "human", label, "", SECONDS) for who in ("ann", "ben")]
        rows.append((unit, "g", "model", said, json.dumps(shares), 1.0))
    names = ["unit_id", "rater_id", "rater_kind", "label", "probabilities", "seconds"]
    table = pd.DataFrame(rows, columns=names).assign(rubric="tone")
    return table if timed else table.drop(columns="seconds")


def analysed(ratings: pd.DataFrame, **settings: object) -> Analysis:
    units = None
    return analyse(ratings, units, [SCALE], resamples=100, **settings)


def routed(found: Analysis) -> pd.DataFrame:
    rows = found.results[found.results["statistic"].str.startswith("routing_")]
    return rows.set_index("statistic")


@pytest.fixture(scope="module")
def halves() -> pd.DataFrame:
    """300 units: 150 sure of .9 and right, 150 sure of .6 and right every other time."""
    return study([True] * 150 + [True, False] * 75, [0.9] * 150 + [0.6] * 150)


def test_the_sure_half_is_trusted(halves: pd.DataFrame) -> None:
    rows = routed(analysed(halves))
    assert rows["estimate"].round(6).to_dict() == {
        "routing_cut": 0.9,
        "routing_share": 0.5,
        "routing_agreement": 1.0,
    }
    assert set(rows["at"]) == {"0.95"}
    assert rows.loc["routing_cut", "note"] == "wrong in at most 0.0251 of studies at this look"
    assert rows.loc["routing_agreement", "n_units"] == 150
    share = rows.loc["routing_share"]
    assert share["low"] < 0.5 < share["high"]


def test_a_sentence_says_what_to_trust(halves: pd.DataFrame) -> None:
    assert render_routing_text(analysed(halves)) == [
        "Routing, g on tone: trust labels with a confidence of 0.900 or more, and ask annotators "
        "about the rest. With 95% certainty, at least 95% of the trusted labels agree with most "
        "annotators; here 100.0% do. This routes 50% of units to the grader."
    ]


def test_with_too_few_units_it_is_said_how_many_more() -> None:
    found = analysed(study([True] * 50, np.linspace(0.6, 0.9, 50).tolist()))
    rows = routed(found)
    assert rows.index.tolist() == ["routing_cut"]
    [sentence] = render_routing_text(found)
    assert sentence == (
        "Routing, g on tone: no cut can promise 95% agreement with 50 units; label about 29 more."
    )
    # 72 units, none wrong, are the fewest at the first look's .025; .95^71 is above.
    more = int(sentence.split()[-2])
    assert 72 <= 50 + more < 72 * 1.2
    assert f"50 units: label about {more} more" in rows.loc["routing_cut", "note"]


def test_a_grader_that_agrees_too_seldom_is_not_helped_by_labels() -> None:
    found = analysed(study([True, False] * 60, [0.9] * 120))
    assert render_routing_text(found) == [
        "Routing, g on tone: no cut can promise 95% agreement with 120 units. More than twenty "
        "times as many would be needed, if agreement stays as it is."
    ]


@pytest.mark.slow
def test_units_that_were_not_equally_likely_to_be_picked_have_no_promise(
    halves: pd.DataFrame, tmp_path: Path
) -> None:
    names = halves["unit_id"].unique()
    chances = np.where(np.arange(len(names)) % 2, 0.2, 1.0)
    units = pd.DataFrame({"unit_id": names, "inclusion_probability": chances})
    found = analyse(halves, units, [SCALE], resamples=100)
    assert render_routing_text(found) == [
        "Routing, g on tone: no cut can promise 95% agreement, because units were not equally "
        "likely to be picked: a promise counts units."
    ]
    write_report(found, ReportContext("ratings"), tmp_path)
    assert "because units were not equally likely" in (tmp_path / "report.md").read_text("utf-8")


def test_every_look_has_its_share_of_the_error() -> None:
    """60 units, none wrong: enough at .05, not at the .04 of a first look among any number."""
    ratings = study([True] * 60, [0.9] * 60)
    assert np.isnan(routed(analysed(ratings)).loc["routing_cut", "estimate"])
    assert routed(analysed(ratings, looks=1)).loc["routing_cut", "estimate"] == 0.9
    second = analysed(ratings, looks=1, facts=StudyFacts(looks={"tone": 2}))
    assert routed(second).loc["routing_cut", "note"].startswith("no level left")
    assert render_routing_text(second) == []


def test_a_cut_close_to_1_is_not_shown_as_1() -> None:
    sure = [1 - 2e-5] * 100 + [1 - 3e-4] * 100
    found = analysed(study([True] * 100 + [False] * 100, sure))
    assert "a confidence of 0.99998 or more" in render_routing_text(found)[0]


@pytest.mark.slow
def test_the_report_names_the_rows_of_its_sentence(halves: pd.DataFrame, tmp_path) -> None:
    found = analysed(halves)
    write_report(found, ReportContext("A study"), tmp_path)
    text = (tmp_path / "report.md").read_text("utf-8")
    told = [line for line in text.splitlines() if "trust labels with" in line]
    answer, line = told
    assert answer.startswith("- **tone.** g: trust labels with a confidence of 0.9 ")
    assert line.startswith("- g: trust labels with a confidence of 0.900 or more")
    rows = [dict(row) for row in found.results.astype(str).replace("nan", "").to_dict("records")]
    lines = [int(each) - 2 for each in line.split("rows ")[1].rstrip(")").split(", ")]
    assert [rows[each]["statistic"] for each in lines] == [
        f"routing_{what}" for what in ("cut", "share", "agreement")
    ]
