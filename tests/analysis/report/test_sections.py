"""What single sections say and draw: thresholds, corrected rates, disagreements and their page; and
the panel that a terminal prints.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.report import ReportContext, render_table_text
from evenhand.analysis.report.blocks import Chart, Items, Table
from evenhand.analysis.report.charts import MAX_LISTED, inline_svg
from evenhand.analysis.report.files import section_of
from evenhand.analysis.report.sections import subjects
from evenhand.analysis.report.sections.certainty import reliability_diagrams, threshold_curves
from evenhand.analysis.report.sections.raters import page_of
from evenhand.analysis.report.source import Replication, RubricFigures, Source
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.subjects.corrected_rates import RATES
from evenhand.reporting.library import check
from evenhand.study.settings.analysis import PublishedFigures
from evenhand.study.tables.ratings import Mark
from evenhand.texts import visible
from tests.analysis.make import YES, analyse_labels, both_sides, ratings_of, study
from tests.analysis.report.conftest import blocks_of
from tests.analysis.report.small_study import DISAGREEMENTS, HOSTILE, SCALE, parse, tables, texts_of

TONE = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))
XY = Scale("", ("x", "y"))
WHO = {"rater_a": "humans", "rater_b": "g", "subset": "all|binary"}


def _source(kind: str, reason: Note, tuned: tuple[float, float, float], gain: float) -> Source:
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


@pytest.mark.parametrize(("kind", "reason", "tuned", "gain", "says"), [
    ("tuned", Remark("wins_held_out"), (0.12, 0.08, 0.2), 0.25,
     "use 0.12 [0.08, 0.2] instead of 0.5; on held-out items it gains +0.25 [+0.20, +0.30]."),
    ("default", Remark("does_not_win_held_out"), (0.42, 0.3, 0.6), 0.01,
     "keep 0.5. The best here is 0.42 [0.3, 0.6], but on held-out items it gains "
     "+0.01 [-0.04, +0.06]."),
    ("default", Remark("no_better_threshold"), (0.5, 0.4, 0.6), 0.0,
     "keep 0.5; no other threshold is better."),
    ("not_identifiable", Remark("interval_too_wide"), (0.3, 0.1, 0.99), 0.0,
     "keep 0.5. No best threshold can be identified here: its interval spans over half "
     "of the scale (0.3 [0.1, 0.99])."),
    ("not_identifiable", (Remark("few_clusters", (30,)), Remark("coarse_draws", (5, 0.1, 10))),
     (0.3, 0.1, 0.4), 0.0,
     "keep 0.5. No best threshold can be identified here: fewer than 30 clusters. "
     "5 draws resolve steps of 1/5: a threshold of 0.1 needs 10 draws."),
])  # fmt: skip
def test_the_sentence_of_each_answer(kind, reason, tuned, gain, says):
    blocks = list(section_of(_source(kind, reason, tuned, gain), "thresholds").every_block())
    sentences = next(block.items for block in blocks if isinstance(block, Items))
    assert sentences == (f"g, to match annotators by kappa: {says} (results.csv rows 4, 2, 3)",)
    cells = next(block for block in blocks if isinstance(block, Table)).rows[1].cells
    assert cells[1].text == "0.30"
    assert cells[2].plain.startswith(f"{tuned[0]:g} [")


def source_of(units: int, graders: int = 1, person: str = "") -> RubricFigures:
    """Graders that state a probability q where q times 4, up to 1, would be right, and a person
    who says `person`, or else y with that chance.
    """
    chance, luck = np.random.default_rng(5).random((2, units))
    chance **= 2
    said = np.where(luck < 1 / (1 + np.exp(-14 * (chance - 0.5))), "y", "n")
    names = [f"g{grader:02}" for grader in range(graders)]
    labels = {"ann": [person] * units if person else said} | dict.fromkeys(names, "n" * units)
    ratings = ratings_of(labels, names, dict.fromkeys(names, chance / 4))
    resamples = 100 if units == 400 else 20
    found = analyse(ratings.assign(rubric="tone"), None, [TONE], resamples=resamples)
    return Source(found, ReportContext("study")).rubric("tone")


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


def test_a_grader_that_understates_lies_above_the_line(shifted):
    [chart] = reliability_diagrams(shifted)
    points = data_of(chart)
    assert sum({each["estimate"]: each["units"] for each in points}.values()) == 400
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


@pytest.mark.journey
def test_thresholds_where_little_can_be_said():
    [chart] = threshold_curves(source_of(25))
    assert [each["used"] for each in data_of(chart, mark="default")] == [True]
    assert not any(each["used"] for each in data_of(chart, mark="best"))
    assert "g00: keep 0.5: the best is uncertain." in chart.alt
    [chart] = threshold_curves(source_of(4))  # no interval, and nothing shaded
    assert all(each["low"] is None for each in chart.spec["data"]["values"])
    inline_svg(dict(chart.spec), chart.alt)
    assert threshold_curves(source_of(40, person="y")) == [], "people say one thing"


# The panel that a terminal prints

BASELINE_ROWS = ["Annotators · Baseline: constant", "Annotators · Baseline: random"]


def test_one_table_for_each_reading(analysis):
    panel = render_table_text(analysis, ReportContext("A study", rubric_titles={"R": "The rubric"}))
    assert [title for title, _, _ in panel] == [
        "The rubric: on the categories",
        "The rubric: on the binary label",
        "The rubric: binary labels compared with annotators' majority",
    ]
    _, columns, rows = panel[0]
    assert columns[:4] == ["Who", "Items", "Agreement", "Cohen κ"]
    assert columns[4:] == ["α nominal", "Difference to annotators"]
    assert all(len(row) == len(columns) for row in rows)
    by_name = {name: row for name, *row in rows}
    names = [*by_name]
    assert names[:3] == ["Annotators with one another", "Graders with one another", "ann · ben"]
    assert names[-2:] == BASELINE_ROWS
    results = analysis.results.set_index(["statistic", "rater_a", "rater_b", "subset"])
    truth = results.loc[("cohen_kappa", "ann", "ben", "all")]
    shown = f"{truth['estimate']:.2f} [{truth['low']:.2f}, {truth['high']:.2f}]"
    assert by_name["ann · ben"][columns.index("Cohen κ") - 1] == shown


def test_many_raters_are_pooled_and_undefined_cells_explained():
    found = analyse_labels({f"r{k}": "xy" * 15 for k in range(13)}, XY, resamples=10)
    [(_, _, rows)] = render_table_text(found, ReportContext("f.csv"))
    assert [row[0] for row in rows] == ["Annotators with one another", *BASELINE_ROWS]
    found = analyse_labels({"ann": "xy" * 20, "m": "xy" * 20}, XY, ["m"], resamples=10)
    [(title, columns, rows)] = render_table_text(found, ReportContext("f.csv"))
    assert title.startswith("Labels: on the categories\n(— undefined: ")
    assert "fewer than 30 items have labels of the grader and two annotators" in title
    row = next(row for row in rows if row[0] == "Annotators · m")
    assert row[columns.index("Difference to annotators")] == "—"


# Corrected rates


@pytest.fixture
def said(written):
    """said(analysis, section, **context) -> what report.md says in a section."""

    def part(found, section="Corrected rates", **more):
        text = (written(found, **more) / "report.md").read_text("utf-8")
        text = text.replace("\\[", "[").replace("\\]", "]")
        return text.split(f"## {section}\n")[1].split("\n## ")[0]

    return part


def bounds(row, form):
    estimate, low, high = (format(row[name], form) for name in ("estimate", "low", "high"))
    return f"{estimate} [{low}, {high}]"


@pytest.mark.slow
def test_corrected_rates_in_sentences(said, analysis):
    """A fair grader, one that flatters a subject, and one that only guesses."""
    graders = {"fair": [(0.9, 0.9)] * 2, "kin": [(0.8, 0.95), (0.99, 0.3)]}
    graders["dice"] = [(0.5, 0.5)] * 2
    rng = np.random.default_rng(4)
    ratings, units = study(rng, graders, rates=(0.7, 0.5), pairs=1500, labelled=300)
    units["topic"] = np.where(np.arange(len(units)) // 2 % 2, "tax", "war")
    found = analyse(ratings, units, [YES], resamples=100, slices=["topic"])
    told = said(found)
    rows = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    assert "| **fair** |" in told
    parts = told.split("in parts of the sample")[1].split("| **fair** |")[1]
    cell = bounds(rows.loc["rate_ppi", "fair", "topic=tax|binary", "s1"], ".3f")
    assert cell in parts[parts.index("| topic=tax |") :].splitlines()[0]
    by = "By the corrected labels of fair, 1 of 1 pairs of subjects"
    assert f"{by} clearly differ: s0 is above s1" in told
    j = rows.loc[("youden_j", "dice", "all|binary", ""), "estimate"]
    cannot = "dice cannot be corrected by Rogan-Gladen: its sensitivity + specificity - 1"
    assert f"{cannot} is {j:z.2f}" in told
    # Who graded nothing else is told how to.
    told = said(analysis)
    assert "provider:sure graded only what annotators labelled" in told
    assert "--scope all" in told


MORE = "answers of s0 to side {} are affirmative more often than those to side {}, by +0.20"


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ((0.1, 0.2, 0.3), MORE.format("a", "b")),
        ((-0.3, -0.2, -0.1), MORE.format("b", "a")),
        ((-0.1, 0.0, 0.1), "no subject is shown to treat side a and side b differently."),
    ],
)
def test_the_side_whose_answers_are_affirmed_more_is_named(ends, says):
    low, estimate, high = ends
    row = ("rate_side_difference_ppi", "side=side a>side b", Interval(estimate, low, high))
    (told,) = subjects._pair_sentences(rates_of(row), "g")
    assert says in told


def rates_of(*rows):
    """A rubric's rates from rows (statistic, part of the sample, interval) of one subject."""
    table = ResultRows("R")
    for statistic, part, interval in rows:
        table.add(statistic, interval, (80, 40), **WHO | {"subset": f"{part}|binary", "at": "s0"})
    source = Source(Analysis(list(table.rows.values())), ReportContext("x"))
    return subjects._Quantity(RubricFigures(source, "R"), RATES)


def test_each_column_of_annotators_has_a_table_of_its_own_sides():
    half, rows = Interval(0.5, 0.4, 0.6), [("rate_raw", "all"), ("rate_ppi", "all")]
    for column, first, second in (("party", "left", "right"), ("age", "old", "young")):
        rows += [("rate_ppi", f"{column}={side}") for side in (first, second)]
        rows.append(("rate_least_ppi", f"{column}=*"))
        rows.append(("rate_side_difference_ppi", f"{column}={first}>{second}"))
    tables = subjects._annotator_side_tables(rates_of(*((*row, half) for row in rows)))
    party, age = (table.columns[1:4] for table in tables)
    assert party == ("left", "right", "left minus right")
    assert age == ("old", "young", "old minus young")


@pytest.fixture(scope="module")
def by_side() -> Analysis:
    """Two rubrics on answers to both sides (synthetic): three subjects, the third of whom answers
    less, s0 on side a more, s1 as often, s2 on side a alone in the second rubric.
    """
    rates = (0.7, 0.3, 0.35), (0.2, 0.3, 0.35)
    ratings, units = both_sides(np.random.default_rng(8), {"g": [(0.9, 0.9)] * 3}, rates)
    units["topic"] = np.where(units["cluster_id"].str[1:].astype(int) % 2, "war", "tax")
    missing = units[(units["subject"] == "s2") & (units["topic"] == "tax")]["unit_id"]
    ratings = ratings[~ratings["unit_id"].isin(missing)]
    other = ratings[~ratings["unit_id"].str.endswith("s2|b")].assign(rubric="Q")
    both = [replace(YES, unit="response"), replace(YES, unit="response", name="Q")]
    return analyse(pd.concat([ratings, other]), units, both, resamples=100, slices=["topic"])


@pytest.mark.slow
def test_sides_and_who_answered_less_in_sentences_and_on_every_rubric(said, by_side):
    told = said(by_side)
    rows = by_side.results.set_index(["rubric", "statistic", "subset", "at"])
    row = rows.loc["R", "rate_side_difference_ppi", "side=side a>side b|binary", "s0"]
    more = MORE.format("a", "b").removesuffix("+0.20") + bounds(row, "+.2f")
    assert f"By the corrected labels of g: {more} (results.csv row" in told
    assert "answers of s1 to" not in told
    assert ") answers to one side of each pair only" in told  # below the table: s2
    assert not re.search(r"\b(nan|inf|None)\b", told)
    (_, table, *_) = told.split("Subjects' rates on every rubric, corrected by PPI++")
    lines = {line.split(" | ")[0].strip("| "): line for line in reversed(table.splitlines())}
    for subject in ("s0", "s1", "s2"):
        expected = bounds(rows.loc["R", "rate_ppi", "all|binary", subject], ".3f")
        assert lines[subject].split(" | ")[1] == expected
    assert "By the corrected labels of g: s0 has the highest rate" in told


@pytest.mark.slow
def test_rubrics_of_one_title_are_told_apart_by_name(rng):
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 2}, pairs=200, labelled=100)
    both = pd.concat([ratings, ratings.assign(rubric="Q")])
    found = analyse(both, units, [YES, replace(YES, name="Q")], resamples=50)
    context = ReportContext("A study", rubric_titles={"R": "Refusal", "Q": "Refusal"})
    section = section_of(Source(found, context), "corrected-rates")
    assert section.blocks[0].columns == ("Refusal (R)", "Refusal (Q)")


@pytest.mark.slow
def test_a_heat_map_names_values_that_shorten_alike(rng):
    """Of 45 values of the first column the first 40, and the second column."""
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 2}, pairs=450, labelled=225)
    number = units["cluster_id"].str[1:].astype(int)
    units["many"] = "v" + (number % 45).astype(str).str.zfill(2)
    asked = "Should the rate of tax on the {} be raised in the US"
    units["long"] = np.where(number % 4 < 2, asked.format("rich"), asked.format("poor"))
    found = analyse(ratings, units, [YES], resamples=30, slices=["many", "long"])
    (chart,) = [each for each in blocks_of(found, Chart) if each.name.endswith("-shaded")]
    shown = {(each["column"], each["b"]) for each in chart.spec["data"]["values"]}
    assert len([b for column, b in shown if column == "many"]) == 40
    long = {b for column, b in shown if column == "long"}
    assert long == {asked.format("rich"), asked.format("poor")}
    assert "Only the first 40 values are drawn, not many=v40" in chart.note


@pytest.mark.slow
def test_everything_labelled_is_said_once_as_annotators_own_beside_published_rates(said):
    """The published design, when people are done: nothing is corrected, and all is compared."""
    graders = {"g": [(0.9, 0.9)] * 2, "h": [(0.7, 0.9)] * 2}
    rates = (0.9, 0.3), (0.6, 0.3)
    ratings, units = both_sides(np.random.default_rng(3), graders, rates, pairs=150, labelled=150)
    units["topic"] = np.where(units["cluster_id"].str[1:].astype(int) % 2, "war", "tax")
    figure = {"rubric": "R", "statistic": "rate_ppi", "between": "subjects", "unit": "percent"}
    quoted = ("s0", "Model 0", "71"), ("s9", "Model 9", "12")
    figures = [figure | {"at": at, "of": of, "value": value} for at, of, value in quoted]
    declared = PublishedFigures.model_validate({"citation": "A 2025", "figure": figures})
    scale = [replace(YES, unit="response")]
    found = analyse(ratings, units, scale, resamples=100, slices=["topic"])
    part = partial(said, found, replication=Replication(declared, ("g", "h")))
    told = part()
    by = "By annotators' labels of everything that was graded"
    assert told.count(f"{by}, 1 of 1 pairs of subjects clearly differ: s0 is above s1.") == 1
    assert told.count(f"{by}: answers of s0 to side a are affirmative more often") == 1
    assert "the corrected labels of" not in told
    table = told.split("Subjects' rates on every rubric, by annotators")[1].split("| s1 |")[0]
    rows = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    own = rows.loc[("rate_human", "", "all|binary", "s0")]
    assert f"| s0 | {own['estimate']:.3f} [" in table
    assert "| 0.71 (71%) (published) |" in table
    assert told.count("topic=tax") == 1
    compared = part("Published figures")
    assert "| s0: Annotators · g |" in compared
    assert "s9 has no such figure here" in compared


@pytest.mark.journey
def test_means_of_parts_are_annotators_own_where_they_labelled_everything(rng):
    quality = rng.integers(1, 6, 60)
    columns = {who: np.clip(quality + rng.integers(-1, 2, 60), 1, 5) for who in ("ann", "ben", "g")}
    columns |= {"unit_id": range(60), "subject": ["m1", "m2"] * 30, "topic": ["x", "x", "y"] * 20}
    scale = {"level": "ordinal", "categories": [*"12345"], "slices": ["topic"], "resamples": 50}
    found = check(pd.DataFrame(columns), human=["ann", "ben"], model="g", **scale)
    section = section_of(Source(found.analysis, found.context), "corrected-rates")
    by_part = [block for block in section.every_block() if getattr(block, "stub", "") == "Part"]
    headings = [row.heading for table in by_part for row in table.rows if not row.cells]
    assert headings == ["Annotators' labels"]


@pytest.mark.slow
def test_before_annotators_label_graders_rates_are_shown_as_they_are(said):
    """All that can be said by then: each sentence is of the grader that it names."""
    rng = np.random.default_rng(5)
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3, "h": [(0.4, 0.6)] * 3}, (0.2, 0.5, 0.8))
    ratings = ratings[ratings["rater_kind"] == "model"]
    units["topic"] = np.where(units["cluster_id"].str[1:].astype(int) % 2, "war", "tax")
    found = analyse(ratings, units, [YES], resamples=50, slices=["topic"])
    told = said(found)
    rows = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    rate = rows.loc[("rate_raw", "g", "all|binary", "s2"), "estimate"]
    by = "By the labels of g, not corrected before annotators label"
    assert f"{by}: s2 has the highest rate, {rate:.3f} [" in told
    assert "Subjects' rates on every rubric, not corrected" in told
    assert "| topic=tax |" in told
    scores = said(found, "Overall agreement")
    assert "Annotators have not labelled yet. Of all graders, g and h score" in scores
    assert "too few subjects" not in scores


# Disagreements


@pytest.mark.slow
def test_the_page_of_disagreements_has_a_policy_and_says_synthetic_once(analysis, written):
    for synthetic in (True, False):
        out = written(analysis, synthetic=synthetic, **texts_of(analysis))
        page = parse(out / DISAGREEMENTS)
        body = page.said.partition("Skip to the items")[2]
        assert len(re.findall("synthetic", body, re.IGNORECASE)) == int(synthetic)
    [policy] = [given["content"] for _, given in page.tags if "http-equiv" in given]
    own = r"style-src 'sha256-\S+'; script-src 'sha256-\S+'"
    assert re.fullmatch(rf"default-src 'none'; {own}; base-uri 'none'; form-action 'none'", policy)
    assert DISAGREEMENTS in (out / "report.html").read_text("utf-8")
    without = written(analysis)
    assert not (without / DISAGREEMENTS).exists()
    assert DISAGREEMENTS not in (without / "report.html").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_anybody_wrote_or_marked_is_text(hostile_analysis, written, text):
    known = texts_of(hostile_analysis, text)
    both = [(text, Mark("response_b", 0, 3)), ("x", Mark("gone", 0, 1))]
    marks = dict.fromkeys(known["texts"], both)
    page = parse(written(hostile_analysis, name=text, marks=marks, **known) / DISAGREEMENTS)
    active = {"script", "img", "iframe", "svg", "object", "link"}
    assert [tag for tag, _ in page.tags if tag in active] == ["script"], "our own"
    attributes = [each for _, given in page.tags for each in given.items()]
    addresses = {value for name, value in attributes if name in ("href", "src")}
    assert addresses == {"#main", "report.html"}
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert page.said.count(visible(text)) > 20
    assert "Rubric allows both" in page.said
    assert len([tag for tag, _ in page.tags if tag == "mark"]) == len(marks)
    assert f"(marked by {visible(text)})" in page.said


@pytest.mark.slow
def test_every_disagreement_stands_there_once(analysis):
    page = page_of(analysis.disagreements, ReportContext("A study"))
    shown = [(u.rubric, u.unit, one.rater, one.label) for u in page.units for one in u.graders]
    found = [(d.rubric, d.unit_id, d.grader, d.label) for d in analysis.disagreements]
    assert sorted(shown) == sorted(found)
    assert len({each.unit for each in page.units}) == len(page.units)
    sizes = {(each.unit_id, each.grader): each.size for each in analysis.disagreements}
    widest = [max(sizes[each.unit, one.rater] for one in each.graders) for each in page.units]
    assert widest == sorted(widest, reverse=True)
    assert page.parts == {"subject": ["first", "second", "third"]}
    # Texts stand by side.
    (first, *_) = analysis.disagreements
    named = {name: name for name in ("Topic", "Prompt a", "Response a", "Prompt b", "Response b")}
    context = ReportContext("A study", texts={(first.rubric, first.unit_id): named})
    (unit,) = page_of([first], context).units
    sides = [["Prompt a", "Response a"], ["Prompt b", "Response b"], ["Topic"]]
    assert [[name for name, _ in column] for column in unit.columns] == sides


@pytest.mark.slow
def test_what_the_lead_sorted_is_summed_in_the_report(written):
    """A row of the results for each grader and kind, and a table; other rubrics' are not counted"""
    sure, hard = "provider:sure", "provider:hard"
    counts = {("R", sure, "grader_wrong"): 12, ("S", sure, "grader_wrong"): 7}
    counts |= {("R", sure, "rubric_unclear"): 3, ("R", hard, "grader_wrong"): 1}
    found = analyse(*tables(pairs=12), [SCALE], resamples=20, facts=StudyFacts(sorted=counts))
    rows = found.results.query("statistic == 'disagreement_sorted'").set_index(["rater_b", "at"])
    assert rows["estimate"].to_dict() == {key[1:]: n for key, n in counts.items() if key[0] == "R"}
    assert rows.loc["provider:sure", "n_units"].tolist() == [15, 15]
    assert re.search(
        r"\| Grader \| Reviewed items \| Grader wrong \| Rubric allows both \|.*\n\| --- .*\n"
        r"\| provider:sure \| 15[^|]*\| 12 \| 3 \|.*\n\| provider:hard \| 1[^|]*\| 1 \|  \|",
        (written(found) / "report.md").read_text("utf-8"),
    )
