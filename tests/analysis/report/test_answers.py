"""Each section opens with what was found, and every number there is a row of results.csv."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.notes import Code
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Answer, Cell, Chart, Items, Table
from evenhand.analysis.report.document import SECTIONS, sections_of
from evenhand.analysis.results import RESULTS_KEY
from tests.analysis.report.reading import is_rounded_from, read_results
from tests.analysis.report.small_study import SCALE, tables, timed

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"(?<![\w.:=@-])[+-]?\d+(?:\.\d+)?(?![\w])")
FIRST = "verdicts"
"""Which is its own answer."""


NAMES = ("all", "people", "one of each", "alone", "agreed")


@pytest.fixture(scope="module")
def studies() -> dict[str, Analysis]:
    """With something for every section, and with next to nothing."""
    return dict(zip(NAMES, _studies(), strict=True))


def _studies() -> Iterator[Analysis]:
    ratings, units = timed(pairs=30)
    of_topics = {"slices": ["topic"], "groups": ["topic"]}
    yield analyse(ratings, units, [SCALE], resamples=40, **of_topics)
    people = ratings[ratings["rater_kind"] == "human"]
    models = ratings[ratings["rater_kind"] == "model"]
    yield analyse(people, units, [SCALE], resamples=20)
    two = ratings[ratings["rater_id"].isin(["ann", "provider:sure"])]
    yield analyse(two, units, [SCALE], resamples=20)
    alone = people[people["rater_id"] == "ann"].head(8)
    yield analyse(alone, None, [Scale("R", ("A", "B", "C"))], resamples=20)
    agreed = pd.concat([people.assign(label="C"), models])
    yield analyse(agreed, units, [SCALE], resamples=20)


@pytest.mark.parametrize("study", NAMES)
def test_every_section_has_an_answer(studies, study):
    found = sections_of(studies[study], ReportContext("A study"))
    assert len(found) >= 11
    for section in found:
        assert section.answers or section.id == FIRST, section.title
        for answer in section.answers:
            assert answer.plain.endswith("."), answer.plain
            assert not re.search(r"  |\.\.|\bnan\b|None(?!:)|\(\)", answer.plain), answer.plain


def test_something_of_every_section_is_told(studies):
    """The first study has no section that only says why it is empty."""
    found = sections_of(studies["all"], ReportContext("A study"))
    told = [section.id for section in found if not any(each.lines for each in section.answers)]
    assert set(told) == {FIRST, "disagreements", "methods", "appendix"} | NOT_HERE
    assert len(found) == len(SECTIONS) + 1 - len(LEFT_OUT)


NOT_HERE = {"confidence-filter"}
"""Nothing is promised with so few."""
LEFT_OUT = {
    "clear-and-unclear",
    "distributions",
    "stability",
    "injection-audit",
    "preference",
    "another-wording",
    "published-figures",
}
"""They need rubrics, people, subjects, an audit and figures that this study does not have."""


@pytest.mark.parametrize("study", NAMES)
def test_every_number_of_an_answer_is_a_row(studies, study, written):
    rows = read_results(written(studies[study]))
    for section in sections_of(studies[study], ReportContext("A study")):
        for answer in section.answers:
            for cell in cells_of(answer):
                row = rows[cell.line - 2]
                assert tuple(row[name] for name in RESULTS_KEY) == cell.key
                for number in NUMBER.findall(f"{cell.text} {cell.interval}"):
                    assert is_rounded_from(number, row), answer.plain
            said = "".join(each for each in answer.pieces if isinstance(each, str))
            assert not NUMBER.search(said), answer.plain


def cells_of(answer: Answer) -> list[Cell]:
    return [each for each in answer.pieces if isinstance(each, Cell)]


def test_answers_stand_on_the_page_with_their_rows(studies, written):
    page = (written(studies["all"]) / "report.html").read_text("utf-8")
    opened = re.findall(r'<ul class="answers">(.*?)</ul>', page, re.DOTALL)
    found = sections_of(studies["all"], ReportContext("A study"))
    assert len(opened) == len([section for section in found if section.answers])
    shown = [int(line) for text in opened for line in re.findall(r'data-row="(\d+)"', text)]
    cells = [cell for s in found for answer in s.answers for cell in cells_of(answer)]
    assert shown == [cell.line for cell in cells]
    assert len(shown) > 12


@pytest.mark.parametrize("study", NAMES)
def test_what_has_no_figure_says_why_in_words(studies, study):
    """No table, list or answer shows a code such as no_variation; notes of the rows hold some."""
    found = sections_of(studies[study], ReportContext("A study"))
    blocks = [block for section in found for block in section.every_block()]
    shown = [table for each in blocks if isinstance(each, Chart | Table) for table in each.data]
    said = [cell.plain for table in shown for row in table.rows for cell in row.cells]
    said += [text for table in shown for _, text in table.footnotes]
    said += [item for each in blocks if isinstance(each, Items) for item in each.items]
    said += [answer.plain for section in found for answer in section.answers]
    codes = {code for code in get_args(Code) if "_" in code}
    assert not [each for each in said if any(code in each for code in codes)]
    assert codes & {remark.text for row in studies[study].rows for remark in row["remarks"]}


def test_the_same_answer_on_all_rubrics_is_given_once():
    ratings, units = tables(pairs=12)
    both = pd.concat([ratings, ratings.assign(rubric="S")])
    scales = [SCALE, Scale("S", SCALE.categories, affirmative=SCALE.affirmative, unit="pair")]
    units = units.drop(columns="subject")
    found = sections_of(analyse(both, units, scales, resamples=20), ReportContext("A study"))
    by_name = {section.id: section for section in found}
    [rates] = by_name["corrected-rates"].answers
    assert not rates.rubric
    assert [each.rubric for each in by_name["human-ceiling"].answers] == ["R", "S"]


def test_what_nobody_decides_by_is_the_last_section(studies):
    *found, last = sections_of(studies["all"], ReportContext("A study"))
    assert last.id == "appendix"
    titles = [part.title for part in last.parts]
    assert "Thresholds: R" in titles
    assert titles[-1] == "Statistics"
    assert not any(section.appendix for section in found)
