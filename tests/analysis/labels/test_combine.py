"""Orders and draws become one label per rater and unit, or an unscored unit with its reason.

Excluded raters: out of every main figure, and beside them in rows of their own.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.labels.combine import ALL_RATERS, Readings, combine_readings
from evenhand.analysis.report import ReportContext, write_report
from evenhand.errors import InputError
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.make import analyse_labels, ratings_of

ABC = Scale("choice", ("A", "B", "C"), affirmative=frozenset({"C"}))


def _combined(rows: list[dict[str, object]], scale: Scale = ABC) -> Readings:
    given = {"unit_id": "u", "rater_id": "g", "rater_kind": "model", "label": ""}
    frame = pd.DataFrame([given | row for row in rows])
    return combine_readings(validate_ratings(frame), scale)


def _one(rows: list[dict[str, object]], scale: Scale = ABC) -> tuple[str, float, str]:
    found = _combined(rows, scale)
    assert len(found.code) == 1
    label = "" if found.code[0] < 0 else scale.categories[found.code[0]]
    return label, float(found.positive[0]), str(found.reason[0])


def test_both_orders_agree():
    label, _, reason = _one([{"order": "ab", "label": "B"}, {"order": "ba", "label": "B"}])
    assert (label, reason) == ("B", "")


def test_hard_labels_that_differ_between_orders_leave_the_unit_unscored():
    label, p, reason = _one([{"order": "ab", "label": "A"}, {"order": "ba", "label": "B"}])
    assert (label, reason) == ("", "order_disagreement")
    assert np.isnan(p)


def test_one_order_without_a_label_leaves_the_other_standing():
    rows = [
        {"order": "ab", "label": "A"},
        {"order": "ba", "label": "", "unscored_reason": "refused"},
    ]
    assert _one(rows)[0] == "A"


def test_draws_combine_by_majority_within_an_order_first():
    rows = [{"order": "ab", "draw": n, "label": label} for n, label in enumerate("AAB")]
    rows += [{"order": "ba", "draw": n, "label": label} for n, label in enumerate("BBB")]
    assert _one(rows)[2] == "order_disagreement"  # A against B, though B has 4 of 6
    assert _one(rows[:3])[0] == "A"


def test_a_tied_majority_is_none():
    rows = [{"draw": n, "label": label} for n, label in enumerate("ABAB")]
    assert _one(rows)[::2] == ("", "draw_tie")


def test_probabilities_combine_by_mean_and_both_orders_weigh_alike():
    rows = [
        {"order": "ab", "draw": 0, "label": "C", "p_positive": 0.8},
        {"order": "ab", "draw": 1, "label": "C", "p_positive": 0.6},
        {"order": "ba", "draw": 0, "label": "A", "p_positive": 0.1},
    ]
    label, p, reason = _one(rows)
    assert p == pytest.approx((0.7 + 0.1) / 2)
    assert (label, reason) == ("", "")  # no category, but a verdict, and so not unscored


def test_the_most_probable_category_of_averaged_distributions_is_the_label():
    rows = [
        {"order": "ab", "label": "A", "probabilities": json.dumps({"A": 0.6, "B": 0.3, "C": 0.1})},
        {"order": "ba", "label": "B", "probabilities": json.dumps({"A": 0.1, "B": 0.7, "C": 0.2})},
    ]
    label, p, _ = _one(rows)
    assert label == "B"  # .35, .50, .15
    assert p == pytest.approx(0.15)


def test_the_first_reason_is_kept_where_nothing_was_scored():
    rows = [
        {"order": "ab", "unscored_reason": "refused"},
        {"order": "ba", "unscored_reason": "truncated"},
    ]
    assert _one(rows)[2] == "refused"
    assert _one([{}])[2] == "no_label"


def test_a_probability_beside_a_reason_does_not_count():
    assert _one([{"p_positive": 0.7, "unscored_reason": "unparseable"}])[2] == "unparseable"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": "D"}, "row 3: the label 'D' of rater 'g'"),
        ({"probabilities": '{"D": 1.0}'}, "row 3: probabilities holds 'D'"),
        ({"probabilities": '{"A": 1.5}'}, "row 3: probabilities holds 'A': 1.5"),
    ],
)
def test_what_lies_outside_the_scale_names_its_row(row, message):
    with pytest.raises(InputError, match=message):
        _combined([{"unit_id": "t", "label": "A"}, row])


LABELS = {
    "ann": "yynnyynynnyyynynnyyn" * 3,
    "ben": "yynnyynynnyyynynnynn" * 3,
    "bad": "nnyynyynnyynynyynyny" * 3,
    "grader": "yynnyynynnyyynynnyyy" * 3,
}
SCALE = Scale("", ("y", "n"), affirmative=frozenset("y"))
REASON = "failed <b>both</b> checks"


@pytest.fixture
def analysis():
    return analyse(
        ratings_of(LABELS, graders=["grader"]),
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


def test_main_figures_are_those_of_an_analysis_without_them(analysis):
    kept = {rater: labels for rater, labels in LABELS.items() if rater != "bad"}
    plain = analyse(ratings_of(kept, graders=["grader"]), None, [SCALE], resamples=200)
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
def test_without_exclusions_there_is_no_word_of_them(tmp_path):
    found = analyse_labels(LABELS, SCALE, resamples=100)
    write_report(found, ReportContext("study"), tmp_path)
    assert "xcluded raters" not in (tmp_path / "report.html").read_text("utf-8")


def test_where_everyone_is_excluded_there_is_nothing_to_say():
    found = analyse_labels(
        {"ann": "yn"}, SCALE, resamples=100, facts=StudyFacts(excluded={"ann": "alone"})
    )
    assert found.results.empty
    assert "ann: alone" in found.notes[0]
