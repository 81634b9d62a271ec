"""The panel that a terminal prints."""

from __future__ import annotations

import pandas as pd

from evenhand.analysis import Scale, analyse
from evenhand.analysis.report import ReportContext, render_table_text
from tests.analysis.make import analyse_labels, ratings_of


def test_one_table_for_each_reading(analysis):
    context = ReportContext("A study", rubric_titles={"R": "The rubric"})
    panel = render_table_text(analysis, context)

    assert [title for title, _, _ in panel] == [
        "The rubric: on the categories",
        "The rubric: on the binary verdict",
        "The rubric: binary verdicts compared with annotators' majority",
        "The rubric: confusion matrix (majority / grader)",
    ]
    _, columns, rows = panel[0]
    assert columns == ["Who", "Units", "Agreement", "Cohen κ", "α nominal", "Difference to people"]
    assert all(len(row) == len(columns) for row in rows)
    names = [row[0] for row in rows]
    assert names[:3] == ["Annotators with one another", "Graders with one another", "ann · ben"]
    assert names[-2:] == ["Annotators · Baseline: constant", "Annotators · Baseline: random"]


def test_numbers_are_the_results_rounded(analysis):
    [_, columns, rows], *_ = render_table_text(analysis, ReportContext("A study"))
    results = analysis.results.set_index(["statistic", "rater_a", "rater_b", "subset"])
    truth = results.loc[("cohen_kappa", "ann", "ben", "all")]
    cell = next(row for row in rows if row[0] == "ann · ben")[columns.index("Cohen κ")]

    assert cell == f"{truth['estimate']:.2f} [{truth['low']:.2f}, {truth['high']:.2f}]"


def test_many_raters_are_pooled():
    found = analyse_labels(
        {f"r{k}": "xy" * 15 for k in range(13)}, Scale("", ("x", "y")), resamples=20
    )
    [(_, _, rows)] = render_table_text(found, ReportContext("f.csv"))

    assert [row[0] for row in rows] == [
        "Annotators with one another",
        "Annotators · Baseline: constant",
        "Annotators · Baseline: random",
    ]


def test_undefined_cells_are_explained_in_the_title():
    found = analyse_labels(
        {"ann": "xy" * 20, "m": "xy" * 20}, Scale("", ("x", "y")), ["m"], resamples=20
    )
    [(title, columns, rows)] = render_table_text(found, ReportContext("f.csv"))

    assert title.startswith("Labels: on the categories\n(— undefined: ")
    assert "fewer than 30 units have labels of the grader and two humans" in title
    row = next(row for row in rows if row[0] == "Annotators · m")
    assert row[columns.index("Difference to people")] == "—"


def test_the_confusion_matrix_counts_units():
    """By hand, on units that share clusters, of which some are tied and some not graded."""
    said = {"ann": "yyyynnnnyn" * 6, "ben": "yyyynnnnny" * 6, "m": "yyynnnyy y" * 6}
    ratings = ratings_of(said, ["m"]).replace({"label": {" ": ""}})
    units = pd.DataFrame({"unit_id": f"u{n:05d}", "cluster_id": f"c{n // 4}"} for n in range(60))
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    for grouped in (None, units):
        found = analyse(ratings, grouped, [scale], resamples=20)
        title, columns, rows = render_table_text(found, ReportContext("f.csv"))[-1]
        assert title == "Labels: confusion matrix (majority / grader)"
        assert columns == ["Who", "yes / yes", "yes / no", "no / yes", "no / no"]
        assert rows == [["m", "18", "6", "12", "12"]]
    weighted = units.assign(inclusion_probability=([0.5] * 4 + [1.0] * 4) * 7 + [1.0] * 4)
    found = analyse(ratings, weighted, [scale], resamples=20)
    titles = [title for title, _, _ in render_table_text(found, ReportContext("f.csv"))]
    assert any("compared with annotators' majority" in title for title in titles)
    assert not any("confusion" in title for title in titles)
