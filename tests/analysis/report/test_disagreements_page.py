"""The page of all disagreements: whole, escaped, and read off what the analysis found."""

import re
from pathlib import Path

import pytest

from evenhand.analysis import Analysis, StudyFacts, analyse
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.sections.raters import page_of
from evenhand.study.tables.ratings import Mark
from evenhand.texts import visible
from tests.analysis.report.small_study import HOSTILE, SCALE, Page, parse, tables

pytestmark = pytest.mark.slow

PAGE = "disagreements.html"
ACTIVE = {"script", "img", "iframe", "svg", "object", "link"}


def page_in(out: Path) -> Page:
    return parse(out / PAGE)


def texts_of(analysis: Analysis, text: str = "word") -> dict[str, object]:
    """What a context knows of all items that were found."""
    found = analysis.disagreements
    units = {(each.rubric, each.unit_id) for each in found}
    return {
        "texts": {unit: {"Prompt a": text, "Response b": text} for unit in units},
        "remarks": {unit: {"ann": text} for unit in units},
        "replies": {(each.rubric, each.unit_id, each.grader): [text] for each in found},
        "sorted": {
            (each.rubric, each.unit_id, each.grader): ("rubric_unclear", text) for each in found[:2]
        },
    }


def test_without_texts_there_is_no_page(analysis, written):
    out = written(analysis)
    assert not (out / PAGE).exists()
    assert PAGE not in (out / "report.html").read_text("utf-8")
    assert PAGE in (written(analysis, **texts_of(analysis)) / "report.html").read_text("utf-8")


def test_every_disagreement_stands_there_once(analysis):
    page = page_of(analysis.disagreements, ReportContext("A study"))
    assert sorted(
        (each.rubric, each.unit, one.rater, one.label)
        for each in page.units
        for one in each.graders
    ) == sorted(
        (each.rubric, each.unit_id, each.grader, each.label) for each in analysis.disagreements
    )
    assert len({each.unit for each in page.units}) == len(page.units)
    sizes = {(each.unit_id, each.grader): each.size for each in analysis.disagreements}
    widest = [max(sizes[each.unit, one.rater] for one in each.graders) for each in page.units]
    assert widest == sorted(widest, reverse=True)
    assert page.parts == {"subject": ["first", "second", "third"]}


def test_texts_stand_by_side(analysis):
    (first, *_) = analysis.disagreements
    named = {name: name for name in ("Topic", "Prompt a", "Response a", "Prompt b", "Response b")}
    context = ReportContext("A study", texts={(first.rubric, first.unit_id): named})
    (unit,) = page_of([first], context).units
    assert [[name for name, _ in column] for column in unit.columns] == [
        ["Prompt a", "Response a"],
        ["Prompt b", "Response b"],
        ["Topic"],
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_anybody_wrote_or_marked_is_text(hostile_analysis, written, text):
    known = texts_of(hostile_analysis, text)
    marks = {
        (each.rubric, each.unit_id): [(text, Mark("response_b", 0, 3)), ("x", Mark("gone", 0, 1))]
        for each in hostile_analysis.disagreements
    }
    page = page_in(written(hostile_analysis, name=text, marks=marks, **known))
    assert [tag for tag, _ in page.tags if tag in ACTIVE] == ["script"], "our own"
    attributes = [each for _, given in page.tags for each in given.items()]
    addresses = {value for name, value in attributes if name in ("href", "src")}
    assert addresses == {"#main", "report.html"}
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert page.said.count(visible(text)) > 20
    assert "Rubric unclear" in page.said
    assert len([tag for tag, _ in page.tags if tag == "mark"]) == len(marks)
    assert f"(marked by {visible(text)})" in page.said


def test_it_is_marked_synthetic_once(analysis, written):
    texts = texts_of(analysis)
    for synthetic in (True, False):
        page = page_in(written(analysis, synthetic=synthetic, **texts))
        body = page.said.partition("Skip to the items")[2]
        assert len(re.findall("synthetic", body, re.IGNORECASE)) == int(synthetic)


def test_its_policy_names_its_style_and_script_alone(analysis, written):
    page = page_in(written(analysis, **texts_of(analysis)))
    contents = [given.get("content") or "" for _, given in page.tags]
    (policy,) = [content for content in contents if "none" in content]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


def test_what_the_lead_sorted_is_summed_in_the_report(analysis, written):
    """A row of the results for each grader and kind, and a table of them; other rubrics' are not
    counted."""
    counts = {
        ("R", "provider:sure", "grader_wrong"): 12,
        ("R", "provider:sure", "rubric_unclear"): 3,
        ("R", "provider:hard", "grader_wrong"): 1,
        ("S", "provider:sure", "grader_wrong"): 7,
    }
    ratings, units = tables(pairs=12)
    found = analyse(ratings, units, [SCALE], resamples=20, facts=StudyFacts(sorted=counts))
    rows = found.results.query("statistic == 'disagreement_sorted'").set_index(["rater_b", "at"])
    assert rows["estimate"].to_dict() == {key[1:]: n for key, n in counts.items() if key[0] == "R"}
    assert rows.loc["provider:sure", "n_units"].tolist() == [15, 15]

    text = (written(found) / "report.md").read_text("utf-8")
    assert re.search(
        r"\| Grader \| Sorted items \| Grader wrong \| Rubric unclear \|.*\n"
        r"\| --- .*\n"
        r"\| provider:sure \| 15[^|]*\| 12 \| 3 \|.*\n"
        r"\| provider:hard \| 1[^|]*\| 1 \|  \|",
        text,
    )
    assert "Sorted items" not in (written(analysis) / "report.md").read_text("utf-8")
