"""What is said of each kind of threshold, and what the pictures of probabilities show."""

from typing import Any

import numpy as np
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.report import ReportContext, render_table_text
from evenhand.analysis.report.blocks import Chart, Items, Table
from evenhand.analysis.report.charts import MAX_LISTED, inline_svg
from evenhand.analysis.report.files import section_of
from evenhand.analysis.report.sections.certainty import reliability_diagrams, threshold_curves
from evenhand.analysis.report.source import RubricFigures, Source
from evenhand.analysis.results import ResultRows
from tests.analysis.make import analyse_labels, ratings_of

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))
WHO = {"rater_a": "humans", "rater_b": "g", "subset": "all|binary"}


def _source(kind: Code, reason: Note, tuned: tuple[float, float, float], gain: float) -> Source:
    rows = ResultRows("tone")

    def add(statistic: str, found: Interval, at: str, note: Note = "") -> None:
        rows.add(statistic, found, (250, 250), **WHO, at=at, note=note)

    best = Interval(*tuned)
    advised = best if kind == "tuned" else Interval(0.5, best.low, best.high)
    add("threshold", best, "kappa")
    add("threshold_held_out_gain", Interval(gain, gain - 0.05, gain + 0.05), "kappa")
    add("threshold_recommended", advised, "kappa", join_notes(Remark(kind), reason, "against ann"))
    note = join_notes(Remark("default_threshold"), "against ann")
    add("cohen_kappa_at_threshold", Interval(0.3, 0.2, 0.4), "0.5", note)
    if best.estimate != 0.5:
        add("cohen_kappa_at_threshold", Interval(0.6, 0.5, 0.7), repr(best.estimate))
    return Source(Analysis(list(rows.rows.values())), ReportContext("study", False, {}))


@pytest.mark.parametrize(
    ("kind", "reason", "tuned", "gain", "says"),
    [
        (
            *("tuned", Remark("wins_held_out"), (0.12, 0.08, 0.2), 0.25),
            "use 0.12 [0.08, 0.2] instead of 0.5; on held-out items it gains +0.25 [+0.20, +0.30].",
        ),
        (
            *("default", Remark("does_not_win_held_out"), (0.42, 0.3, 0.6), 0.01),
            "keep 0.5. The best here is 0.42 [0.3, 0.6], but on held-out items it gains "
            "+0.01 [-0.04, +0.06].",
        ),
        (
            *("default", Remark("no_better_threshold"), (0.5, 0.4, 0.6), 0.0),
            "keep 0.5; no other threshold is better.",
        ),
        (
            *("not_identifiable", Remark("interval_too_wide"), (0.3, 0.1, 0.99), 0.0),
            "keep 0.5. No best threshold can be identified here: its interval spans over half "
            "of the scale (0.3 [0.1, 0.99]).",
        ),
        (
            "not_identifiable",
            (Remark("few_clusters", (30,)), Remark("coarse_draws", (5, 0.1, 10))),
            *((0.3, 0.1, 0.4), 0.0),
            "keep 0.5. No best threshold can be identified here: fewer than 30 clusters. "
            "5 draws resolve steps of 1/5: a threshold of 0.1 needs 10 draws.",
        ),
    ],
)
def test_the_sentence_of_each_answer(kind, reason, tuned, gain, says):
    found = section_of(_source(kind, reason, tuned, gain), "thresholds")
    blocks = list(found.every_block())
    sentences = next(block.items for block in blocks if isinstance(block, Items))
    assert sentences == (f"g, to match annotators by kappa: {says} (results.csv rows 4, 2, 3)",)
    table = next(block for block in blocks if isinstance(block, Table))
    cells = table.rows[1].cells
    assert cells[1].text == "0.30"
    assert cells[2].plain.startswith(f"{tuned[0]:g} [")


# The pictures


def source_of(units: int, graders: int = 1, person: str = "") -> RubricFigures:
    """Graders that state a probability q where q times 4, up to 1, would be right, and a person
    who says `person`, or else y with that chance.
    """
    rng = np.random.default_rng(5)
    chance, luck = rng.random((2, units))
    chance **= 2
    said = np.where(luck < 1 / (1 + np.exp(-14 * (chance - 0.5))), "y", "n")
    names = [f"g{grader:02}" for grader in range(graders)]
    labels = {"ann": [person] * units if person else said} | dict.fromkeys(names, "n" * units)
    ratings = ratings_of(labels, names, dict.fromkeys(names, chance / 4))
    found = analyse(ratings.assign(rubric="tone"), None, [YES], resamples=100)
    return Source(found, ReportContext("study")).on("tone")


def data_of(chart: Chart, **where: object) -> list[dict[str, Any]]:
    """Data that have these values."""
    values = chart.spec["data"]["values"]
    return [each for each in values if all(each.get(k) == v for k, v in where.items())]


@pytest.fixture(scope="module")
def shifted() -> RubricFigures:
    return source_of(400)


def test_a_shifted_grader_peaks_below_its_default(shifted):
    """People part at a stated 1/8; the default of 1/2 is never reached."""
    [chart] = threshold_curves(shifted)
    curve = data_of(chart, kind="curve")
    [best] = data_of(chart, mark="best")
    [default] = data_of(chart, mark="default")
    [interval] = data_of(chart, kind="interval")

    assert max(curve, key=lambda each: each["estimate"])["at"] == best["at"]
    assert best["at"] == interval["estimate"] == pytest.approx(0.125, abs=0.03)
    assert interval["low"] <= best["at"] <= interval["high"] < default["at"] == 0.5
    assert (best["used"], default["used"]) == (True, False)
    assert f"g00: use {best['at']:.3g} [" in chart.alt


def test_where_nothing_is_recommended_the_default_is_filled():
    [chart] = threshold_curves(source_of(25))
    assert [each["used"] for each in data_of(chart, mark="default")] == [True]
    assert not any(each["used"] for each in data_of(chart, mark="best"))
    assert "g00: keep 0.5: the best is uncertain." in chart.alt


def test_without_intervals_nothing_is_shaded():
    [chart] = threshold_curves(source_of(4))
    assert all(each["low"] is None for each in chart.spec["data"]["values"])
    inline_svg(dict(chart.spec), chart.alt)


def test_nothing_is_drawn_where_people_say_one_thing():
    assert threshold_curves(source_of(40, person="y")) == []


def test_a_grader_that_understates_lies_above_the_line(shifted):
    [chart] = reliability_diagrams(shifted)
    points = data_of(chart)
    steps = {each["estimate"]: each["units"] for each in points}
    assert sum(steps.values()) == 400
    assert all(0 <= each["stated"] <= 0.25 for each in points)
    assert [each["estimate"] for each in points] == sorted(each["estimate"] for each in points)
    above = [each for each in points if each["stated"] > 0.15 and each["stated_high"] < 1]
    assert above
    assert all(each["estimate"] > each["stated_high"] > each["stated"] for each in above)


@pytest.mark.slow
def test_every_panel_has_a_cap():
    many = source_of(40, graders=MAX_LISTED + 2)
    for chart in (*threshold_curves(many), *reliability_diagrams(many)):
        assert len({each["grader"] for each in data_of(chart)}) == MAX_LISTED
        assert f"first {MAX_LISTED} graders" in chart.note


# --- The panel that a terminal prints -------------------------------------------------------------
def test_one_table_for_each_reading(analysis):
    context = ReportContext("A study", rubric_titles={"R": "The rubric"})
    panel = render_table_text(analysis, context)

    assert [title for title, _, _ in panel] == [
        "The rubric: on the categories",
        "The rubric: on the binary label",
        "The rubric: binary labels compared with annotators' majority",
    ]
    _, columns, rows = panel[0]
    assert columns[:5] == ["Who", "Items", "Agreement", "Cohen κ", "α nominal"]
    assert columns[5:] == ["Difference to annotators"]
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
    assert "fewer than 30 items have labels of the grader and two annotators" in title
    row = next(row for row in rows if row[0] == "Annotators · m")
    assert row[columns.index("Difference to annotators")] == "—"
