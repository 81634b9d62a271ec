"""Excluded raters: out of every main figure, and beside them in rows of their own."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.labels.combine import ALL_RATERS
from evenhand.analysis.report import ReportContext, write_report

LABELS = {
    "ann": "yynnyynynnyyynynnyyn" * 3,
    "ben": "yynnyynynnyyynynnynn" * 3,
    "bad": "nnyynyynnyynynyynyny" * 3,
    "grader": "yynnyynynnyyynynnyyy" * 3,
}
SCALE = Scale("", ("y", "n"), affirmative=frozenset("y"))
REASON = "failed <b>both</b> checks"


@pytest.fixture
def analysis(make_ratings):
    return analyse(
        make_ratings(LABELS, models=["grader"]),
        None,
        [SCALE],
        resamples=200,
        facts=StudyFacts(excluded={"bad": REASON, "never-came": "x"}),
        verify=True,
    )


def of_people(results: pd.DataFrame, subset: str) -> float:
    row = results.query(
        "statistic == 'cohen_kappa' and rater_a == 'humans' and rater_b == '' and subset == @subset"
    )
    return float(row["estimate"].item())


def test_main_figures_leave_them_out_and_others_count_them(analysis):
    kappa = {
        (a, b): cohen_kappa_score(list(LABELS[a]), list(LABELS[b]))
        for a, b in (("ann", "ben"), ("ann", "bad"), ("ben", "bad"))
    }
    assert of_people(analysis.results, "all") == pytest.approx(kappa["ann", "ben"])
    assert of_people(analysis.results, ALL_RATERS) == pytest.approx(sum(kappa.values()) / 3)
    subsets = set(analysis.results["subset"])
    assert {ALL_RATERS, f"{ALL_RATERS}|binary"} < subsets
    assert "bad" not in {*analysis.results["rater_a"], *analysis.results["rater_b"]}


def test_main_figures_are_those_of_an_analysis_without_them(analysis, make_ratings):
    kept = {rater: labels for rater, labels in LABELS.items() if rater != "bad"}
    plain = analyse(make_ratings(kept, models=["grader"]), None, [SCALE], resamples=200)
    main = analysis.results[~analysis.results["subset"].str.startswith(ALL_RATERS)]
    pd.testing.assert_frame_equal(main.reset_index(drop=True), plain.results)
    assert analysis.verdicts == plain.verdicts


@pytest.mark.slow
def test_the_report_says_who_why_and_what_it_changes(analysis, tmp_path):
    assert analysis.notes == [
        f"Excluded: 1 of 3 annotators, with 60 ratings (bad: {REASON}). "
        "The rows of the subset 'raters=all' include them."
    ]
    write_report(analysis, ReportContext("study"), tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Without the excluded raters" in page
    assert "With the excluded raters" in page
    assert "failed &lt;b&gt;both&lt;/b&gt; checks" in page
    assert "<b>both" not in page


@pytest.mark.slow
def test_without_exclusions_there_is_no_word_of_them(make_ratings, tmp_path):
    found = analyse(make_ratings(LABELS), None, [SCALE], resamples=100)
    write_report(found, ReportContext("study"), tmp_path)
    assert "xcluded raters" not in (tmp_path / "report.html").read_text("utf-8")


def test_where_everyone_is_excluded_there_is_nothing_to_say(make_ratings):
    found = analyse(
        make_ratings({"ann": "yn"}),
        None,
        [SCALE],
        resamples=100,
        facts=StudyFacts(excluded={"ann": "alone"}),
    )
    assert found.results.empty
    assert "ann: alone" in found.notes[0]
