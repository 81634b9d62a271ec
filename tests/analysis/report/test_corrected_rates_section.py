"""What the report says of corrected rates, in sentences off the rows."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, analyse
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.files import sections_of
from evenhand.analysis.report.source import BesidePublished, Source
from evenhand.study.settings.analysis import PublishedFigures
from tests.analysis.make import YES, both_sides, study

pytestmark = pytest.mark.slow


def text_of(written: Callable[..., Path], analysis: Analysis) -> str:
    text = (written(analysis) / "report.md").read_text("utf-8")
    return text.replace("\\[", "[").replace("\\]", "]")


def part_of(text: str, section: str) -> str:
    return text.split(f"## {section}\n")[1].split("\n## ")[0]


def test_corrected_rates_in_sentences(written):
    """A fair grader, one that flatters a subject, and one that only guesses."""
    graders = {
        "fair": [(0.9, 0.9)] * 2,
        "kin": [(0.8, 0.95), (0.99, 0.3)],
        "dice": [(0.5, 0.5)] * 2,
    }
    rng = np.random.default_rng(4)
    ratings, units = study(rng, graders, rates=(0.7, 0.5), pairs=1500, labelled=300)
    units["topic"] = np.where(np.arange(len(units)) // 2 % 2, "tax", "war")
    found = analyse(ratings, units, [YES], resamples=300, slices=["topic"])
    said = part_of(text_of(written, found), "Corrected rates")
    rows = found.results.set_index(["statistic", "rater_b", "at"])

    assert "| **fair** |" in said
    parts = said.split("in parts of the sample")[1].split("| **fair** |")[1]
    own = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    rate = own.loc[("rate_ppi", "fair", "topic=tax|binary", "s1")]
    cell = f"{rate['estimate']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}]"
    assert cell in parts[parts.index("| topic=tax |") :].splitlines()[0]
    assert (
        "By the corrected labels of fair, 1 of 1 pairs of subjects clearly differ: s0 is above s1"
        in said
    )
    j = rows.loc[("youden_j", "dice", ""), "estimate"]
    assert (
        f"dice cannot be corrected by Rogan-Gladen: its sensitivity + specificity - 1 is {j:z.2f}"
        in said
    )


def test_who_graded_nothing_else_is_told_how_to(analysis, written):
    said = part_of(text_of(written, analysis), "Corrected rates")
    assert "provider:sure graded only what annotators labelled" in said
    assert "--scope all" in said


@pytest.fixture(scope="module")
def by_side() -> Analysis:
    """Two rubrics on answers to both sides (synthetic): three subjects, the third of whom answers
    less, s0 on side a more, s1 as often, s2 on side a alone in the second rubric.
    """
    rates = (0.7, 0.3, 0.35), (0.2, 0.3, 0.35)
    ratings, units = both_sides(np.random.default_rng(8), {"g": [(0.9, 0.9)] * 3}, rates)
    number = units["cluster_id"].str[1:].astype(int)
    units["topic"] = np.where(number % 2, "war", "tax")
    missing = units[(units["subject"] == "s2") & (units["topic"] == "tax")]["unit_id"]
    ratings = ratings[~ratings["unit_id"].isin(missing)]
    other = ratings[~ratings["unit_id"].str.endswith("s2|b")].assign(rubric="Q")
    both = [replace(YES, unit="response"), replace(YES, unit="response", name="Q")]
    return analyse(pd.concat([ratings, other]), units, both, resamples=300, slices=["topic"])


def test_sides_and_who_answered_less_in_sentences(written, by_side):
    said = part_of(text_of(written, by_side), "Corrected rates")
    rows = by_side.results.set_index(["rubric", "statistic", "subset", "at"])
    row = rows.loc[("R", "rate_side_difference_ppi", "side=side a>side b|binary", "s0")]
    assert (
        "By the corrected labels of g: answers of s0 to side a are affirmative more often than "
        "those to side b, by "
        f"+{row['estimate']:.2f} [+{row['low']:.2f}, +{row['high']:.2f}] (results.csv row" in said
    )
    assert "answers of s1 to" not in said
    assert (
        "No difference between sides is given for s2, with answers to one side of each pair only."
        in said
    )
    assert not re.search(r"\b(nan|inf|None)\b", said)


def test_subjects_are_shown_on_every_rubric(written, by_side):
    page = part_of(text_of(written, by_side), "Corrected rates")
    (_, table, *_) = page.split("Subjects' rates on every rubric, corrected by PPI++")
    lines = {line.split(" | ")[0].strip("| "): line for line in reversed(table.splitlines())}
    rate = by_side.results.set_index(["rubric", "statistic", "subset", "at"])
    for subject in ("s0", "s1", "s2"):
        row = rate.loc[("R", "rate_ppi", "all|binary", subject)]
        expected = f"{row['estimate']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        assert lines[subject].split(" | ")[1] == expected
    assert "By the corrected labels of g" in table
    assert "By the corrected labels of g: s0 has the highest rate" in page


def test_rates_by_part_are_drawn_with_their_table(by_side):
    context = ReportContext("A study", rubric_titles={"R": "The rubric"})
    sections = {section.id: section for section in sections_of(Source(by_side, context))}
    drawn = [
        block
        for block in sections["corrected-rates"].every_block()
        if isinstance(block, Chart) and block.name.startswith("the-rubric")
    ]
    chart, by_answer = drawn
    assert {each["column"] for each in by_answer.spec["data"]["values"]} == {"side"}
    assert chart.name.startswith("the-rubric-subjects-rates-by-ppi-in-each-part-of-the-sample")
    values = chart.spec["data"]["values"]
    shown = {(each["a"], f"{each['column']}={each['b']}"): each for each in values}
    assert {part for _, part in shown} == {"topic=tax", "topic=war"}
    assert ("s2", "topic=tax") not in shown
    (table,) = chart.data
    assert [row.heading for row in table.rows][-2:] == ["topic=tax", "topic=war"]
    cells = {cell.line for row in table.rows for cell in row.cells}
    assert {each["row"] for each in shown.values()} <= cells


def test_sides_without_subjects_and_a_second_side_that_is_favoured(written):
    """Said once for all graders, the larger side first; of answers where no subject is named."""
    graders = {"g": [(0.9, 0.9)] * 2, "h": [(0.9, 0.9)] * 2}
    rates = (0.2, 0.5), (0.7, 0.5)
    ratings, units = both_sides(np.random.default_rng(8), graders, rates, pairs=300, labelled=120)
    ratings = ratings[~ratings["unit_id"].str.endswith("s1|b")]
    scale = [replace(YES, unit="response")]
    found = analyse(ratings, units, scale, resamples=50)
    said = part_of(text_of(written, found), "Corrected rates")
    by = r"by \+0\.\d\d \[\+0\.\d\d, \+0\.\d\d\]"
    assert re.search(rf"answers of s0 to side b are .* than those to side a, {by}", said)
    assert said.count("No difference between sides is given for s1") == 1
    alone = units[units["subject"] == "s0"].drop(columns="subject")
    own = ratings[ratings["unit_id"].isin(alone["unit_id"])]
    said = part_of(text_of(written, analyse(own, alone, scale, resamples=50)), "Corrected rates")
    assert (
        "By the corrected labels of g: answers to side b are affirmative more often than those to"
        in said
    )
    assert "of All units" not in said


def test_rubrics_of_one_title_are_told_apart_by_name(rng):
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 2}, pairs=200, labelled=100)
    both = pd.concat([ratings, ratings.assign(rubric="Q")])
    found = analyse(both, units, [YES, replace(YES, name="Q")], resamples=50)
    context = ReportContext("A study", rubric_titles={"R": "Refusal", "Q": "Refusal"})
    (section,) = [
        each for each in sections_of(Source(found, context)) if each.id == "corrected-rates"
    ]
    assert section.blocks[0].columns == ("Refusal (R)", "Refusal (Q)")


def test_a_heat_map_names_values_that_shorten_alike(rng):
    """Of 45 values of the first column the first 40, and the second column."""
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 2}, pairs=450, labelled=225)
    number = units["cluster_id"].str[1:].astype(int)
    units["many"] = "v" + (number % 45).astype(str).str.zfill(2)
    asked = "Should the rate of tax on the {} be raised in the US"
    units["long"] = np.where(number % 4 < 2, asked.format("rich"), asked.format("poor"))
    found = analyse(ratings, units, [YES], resamples=30, slices=["many", "long"])
    sections = {each.id: each for each in sections_of(Source(found, ReportContext("A study")))}
    (chart,) = [
        each
        for each in sections["corrected-rates"].every_block()
        if isinstance(each, Chart) and each.name.endswith("-shaded")
    ]
    shown = {(each["column"], each["b"]) for each in chart.spec["data"]["values"]}
    assert len([b for column, b in shown if column == "many"]) == 40
    assert {b for column, b in shown if column == "long"} == {
        asked.format("rich"), asked.format("poor"),
    }  # fmt: skip
    assert "Only the first 40 values are drawn, not many=v40" in chart.note


def test_everything_labelled_is_said_once_as_annotators_own_beside_published_rates(written):
    """The published design, when people are done: nothing is corrected, and all is compared."""
    graders = {"g": [(0.9, 0.9)] * 2, "h": [(0.7, 0.9)] * 2}
    rates = (0.9, 0.3), (0.6, 0.3)
    ratings, units = both_sides(np.random.default_rng(3), graders, rates, pairs=150, labelled=150)
    units["topic"] = np.where(units["cluster_id"].str[1:].astype(int) % 2, "war", "tax")
    figure = {"rubric": "R", "statistic": "rate_ppi", "between": "subjects", "unit": "percent"}
    declared = PublishedFigures.model_validate(
        {
            "citation": "A 2025",
            "figure": [
                figure | {"at": "s0", "of": "Model 0", "value": "71"},
                figure | {"at": "s9", "of": "Model 9", "value": "12"},
            ],
        }
    )
    scale = [replace(YES, unit="response")]
    found = analyse(ratings, units, scale, resamples=200, slices=["topic"])
    beside = BesidePublished(declared, ("g", "h"))
    page = text_of(partial(written, beside=beside), found)
    said = part_of(page, "Corrected rates")
    by = "By annotators' labels of everything that was graded"
    assert said.count(f"{by}, 1 of 1 pairs of subjects clearly differ: s0 is above s1.") == 1
    assert said.count(f"{by}: answers of s0 to side a are affirmative more often") == 1
    assert "the corrected labels of" not in said
    table = said.split("Subjects' rates on every rubric, by annotators")[1].split("| s1 |")[0]
    rows = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    own = rows.loc[("rate_human", "", "all|binary", "s0")]
    assert f"| s0 | {own['estimate']:.3f} [" in table
    assert "| 0.71 (71%) (published) |" in table
    assert said.count("topic=tax") == 1
    compared = part_of(page, "Published figures")
    assert "| s0: Annotators · g |" in compared
    assert "s9 has no such figure here" in compared


def test_before_annotators_label_graders_rates_are_shown_as_they_are(written):
    """All that can be said by then: each sentence is of the grader that it names."""
    rng = np.random.default_rng(5)
    ratings, units = study(rng, {"g": [(0.9, 0.9)] * 3, "h": [(0.4, 0.6)] * 3}, (0.2, 0.5, 0.8))
    ratings = ratings[ratings["rater_kind"] == "model"]
    units["topic"] = np.where(units["cluster_id"].str[1:].astype(int) % 2, "war", "tax")
    found = analyse(ratings, units, [YES], resamples=100, slices=["topic"])
    text = text_of(written, found)
    said = part_of(text, "Corrected rates")
    rows = found.results.set_index(["statistic", "rater_b", "subset", "at"])
    rate = rows.loc[("rate_raw", "g", "all|binary", "s2"), "estimate"]
    assert (
        "By the labels of g, not corrected before annotators label: s2 has the highest rate, "
        f"{rate:.3f} [" in said
    )
    assert "Subjects' rates on every rubric, not corrected" in said
    assert "| topic=tax |" in said
    scores = part_of(text, "Overall agreement")
    assert "Annotators have not labelled yet. Of all graders, g and h score" in scores
    assert "too few subjects" not in scores


def test_of_graders_alone_the_first_is_said_to_favour_a_side(written):
    """Not all of them at once under the name of the first."""
    graders = {"g": [(0.9, 0.9)], "h": [(0.9, 0.9)]}
    ratings, units = both_sides(np.random.default_rng(6), graders, ((0.9,), (0.2,)), pairs=60)
    ratings = ratings[ratings["rater_kind"] == "model"]
    found = analyse(ratings, units, [replace(YES, unit="response")], resamples=50)
    said = part_of(text_of(written, found), "Direction").split("Each pair has two sides")[0]
    assert said.count("side a on s0") == 1
    assert "g favours side a on s0 (+0." in said
