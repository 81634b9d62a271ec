"""Orders and draws become one label per rater and unit, or an unscored unit with its reason.

Excluded raters: out of every main figure, and beside them in rows of their own.
"""

import json

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.labels.encoding import combine_readings
from evenhand.analysis.labels.matrix import UnitFacts
from evenhand.analysis.report import ReportContext, write_report
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.make import analyse_labels, ratings_of, rows_of
from tests.cases import refused

ABC = Scale("choice", ("A", "B", "C"), affirmative=frozenset({"C"}))


def _combined(rows):
    given = {"unit_id": "u", "rater_id": "g", "rater_kind": "model", "label": ""}
    return combine_readings(validate_ratings(pd.DataFrame([given | row for row in rows])), ABC)


def drawn(order, labels, *positive):
    """Draws in one order, and the probability that each states."""
    rows = [{"order": order, "draw": n, "label": label} for n, label in enumerate(labels)]
    return [row | {"p_positive": p} for row, p in zip(rows, positive or [None] * 9, strict=False)]


def shared(order, label, share=0.6):
    """One draw in an order, with a share of the probability on its label."""
    shares = {key: share if key == label else (1 - share) / 2 for key in "ABC"}
    return [{"order": order, "label": label, "probabilities": json.dumps(shares)}]


READINGS = {
    "both orders agree": (drawn("ab", "B") + drawn("ba", "B"), "B", None, ""),
    "hard labels that differ between orders leave the unit unscored": (
        *(drawn("ab", "A") + drawn("ba", "B"), "", np.nan, "order_disagreement"),
    ),
    "one order without a label leaves the other standing": (
        *([*drawn("ab", "A"), {"order": "ba", "unscored_reason": "refused"}], "A", None, ""),
    ),
    # A against B, though B has 4 of 6.
    "draws combine by majority within an order first": (
        *(drawn("ab", "AAB") + drawn("ba", "BBB"), "", None, "order_disagreement"),
    ),
    "a majority of draws": (drawn("ab", "AAB"), "A", None, ""),
    "a tied majority is none": (drawn("ab", "ABAB"), "", None, "draw_tie"),
    # No category, but a verdict, and so not unscored.
    "probabilities combine by mean and both orders weigh alike": (
        *(drawn("ab", "CC", 0.8, 0.6) + drawn("ba", "A", 0.1), "", (0.7 + 0.1) / 2, ""),
    ),
    # .35, .50, .15
    "the most probable category of averaged distributions is the label": (
        *([*shared("ab", "A"), *shared("ba", "B", 0.8)], "B", 0.15, ""),
    ),
    "a label alone in one order differs from the other's most probable one": (
        *([*shared("ab", "A"), *drawn("ba", "B")], "", np.nan, "order_disagreement"),
    ),
    "a label alone in one order agrees with the other's": (
        *([*shared("ab", "C"), *drawn("ba", "C")], "C", np.nan, ""),
    ),
    # .6 / 3 for C
    "draws of a label alone are certain among draws with probabilities": (
        *([*shared("ab", "C"), *drawn("ab", "CAA")[1:]], "A", 0.2, ""),
    ),
    "the first reason is kept where nothing was scored": (
        [{"order": "ab", "unscored_reason": "refused"}, {"order": "ba", "unscored_reason": "x"}],
        *("", None, "refused"),
    ),
    "nothing at all": ([{}], "", None, "no_label"),
    "a probability beside a reason does not count": (
        *([{"p_positive": 0.7, "unscored_reason": "unparseable"}], "", None, "unparseable"),
    ),
}


@pytest.mark.parametrize(("rows", "label", "positive", "reason"), READINGS.values(), ids=READINGS)
def test_orders_and_draws_become_one_label(rows, label, positive, reason):
    found = _combined(rows)
    assert len(found.code) == 1
    assert ("" if found.code[0] < 0 else ABC.categories[found.code[0]]) == label
    assert positive is None or found.positive[0] == pytest.approx(positive, nan_ok=True)
    assert found.reason[0] == reason


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": "D"}, "row 3: the label 'D' of rater 'g'"),
        ({"probabilities": '{"D": 1.0}'}, "row 3: probabilities holds 'D'"),
        ({"probabilities": '{"A": 1.5}'}, "row 3: probabilities holds 'A': 1.5"),
    ],
)
def test_what_lies_outside_the_scale_names_its_row(row, message):
    refused(message, _combined, [{"unit_id": "t", "label": "A"}, row])


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
    facts = StudyFacts(excluded={"bad": REASON, "never-came": "x"})
    return analyse_labels(LABELS, SCALE, ["grader"], facts=facts, verify=True)


def test_main_figures_are_those_of_an_analysis_without_them(analysis):
    kept = {rater: labels for rater, labels in LABELS.items() if rater != "bad"}
    plain = analyse_labels(kept, SCALE, ["grader"])
    pd.testing.assert_frame_equal(analysis.results, plain.results)
    assert analysis.verdicts == plain.verdicts


@pytest.mark.slow
def test_the_report_says_who_and_why(analysis, tmp_path):
    assert analysis.notes == [f"Excluded: 1 of 3 annotators, with 60 ratings (bad: {REASON})."]
    write_report(analysis, ReportContext("study"), tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "failed &lt;b&gt;both&lt;/b&gt; checks" in page
    assert "<b>both" not in page


def test_where_everyone_is_excluded_there_is_nothing_to_say():
    found = analyse_labels({"ann": "yn"}, SCALE, facts=StudyFacts(excluded={"ann": "alone"}))
    assert found.results.empty
    assert "ann: alone" in found.notes[0]


WITHHELD = frozenset(f"u{n:05d}" for n in range(20))


def coverage(*tables, withheld=None):
    """The share of the units put to each rater that it answered, and their number."""
    scale = Scale("r", ("no", "yes"), withheld=withheld or {})
    ratings = pd.concat(tables, ignore_index=True).assign(rubric="r")
    rows = rows_of(analyse(ratings, None, [scale], resamples=20), "coverage")
    return {row["rater_b"]: (row["estimate"], row["n_units"]) for _, row in rows.iterrows()}


def test_coverage_has_no_missing_answers_where_a_grader_is_not_judged():
    """A person and an old grader label all units, the new grader those not withheld but one."""
    every = ["yes"] * 40
    new = ["-"] * 20 + ["yes"] * 19 + ["-"]
    table = ratings_of({"ann": every, "old": every, "new": new}, ["old", "new"])
    whole = {"ann": (1.0, 40), "old": (1.0, 40)}
    assert coverage(table, withheld={"new": WITHHELD}) == whole | {"new": (19 / 20, 20)}
    assert coverage(table, withheld={"another": WITHHELD}) == whole | {"new": (19 / 40, 40)}


def test_what_is_withheld_from_a_grader_is_withheld_from_its_parts_by_method():
    stated = ["-"] * 20 + ["yes"] * 20
    parts = [
        ratings_of({"new": stated}, ["new"], {"new": [0.9] * 40}).assign(prob_method=method)
        for method in ("draws", "logprobs")
    ]
    both = pd.concat([parts[0][::2], parts[1][1::2]])
    found = coverage(ratings_of({"ann": ["yes"] * 40}), both, withheld={"new": WITHHELD})
    assert found == {"ann": (1.0, 40), "new (draws)": (0.5, 20), "new (logprobs)": (0.5, 20)}


UNITS = pd.DataFrame(
    {
        "unit_id": ["u1", "u2", "u3", "u3"],
        "cluster_id": ["p1", "p1", "p2", "p9"],
        "topic": ["tax", None, "", "war"],
        "words": [12.0, np.nan, 7.0, 8.0],
    }
)


def test_columns_follow_the_rated_units():
    """Units may be rated in another order than they are listed in; of two rows the first counts."""
    facts = UnitFacts(["u3", "u1"], UNITS)
    assert facts.cells("cluster_id") == ["p2", "p1"]
    assert facts.numbers("words").tolist() == [7.0, 12.0]
    clusters = facts.clusters()
    assert (clusters.values, clusters.codes.tolist()) == (("p1", "p2"), [1, 0])


def test_clusters_by_unit_or_by_a_column():
    for units in (None, UNITS.drop(columns="cluster_id")):  # every unit is its own
        assert UnitFacts(["u2", "u1"], units).clusters().codes.tolist() == [1, 0]
    facts = UnitFacts(["u1", "u2", "u3"], UNITS)
    assert facts.clusters("unit").codes.tolist() == [0, 1, 2]
    assert facts.clusters("cluster_id").codes.tolist() == [0, 0, 1]
    refused("topic of item 'u2' is empty", facts.clusters, "topic")
