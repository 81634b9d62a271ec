"""The lead sorts disagreements between graders and people, with the mouse and with keys."""

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from evenhand.study import open_study
from evenhand.study.lead.disagreements import sorted_so_far
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.ratings import Mark
from harness.annotator import SUBJECT, response_text
from harness.served import Served
from harness.studies import mark_words, with_labels
from tests.annotate_app.participants import settled

pytestmark = pytest.mark.browser

REPLY = (
    '<img src="http://example.invalid/x.png" onerror="document.title=1">**L**, for it is shorter.'
)
REASON = "<b onclick='document.title=1'>Shorter</b>, so L."
GRADER = "provider:grader"


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    """Four units on which two annotators say R; a grader says L, and another agrees on two."""
    folder = make_study(4, raters_per_unit=2)
    units = [f"p{n:04d}|{SUBJECT}" for n in range(1, 5)]
    with open_study(folder) as study:
        given = {"ann": "RRRR", "ben": "RRRR", "other": "LRLR"}
        with_labels(study, given, "shorter", units=units, graders=["other"])
        about = {"rater_id": GRADER, "rubric": "shorter", "order": "ab", "label": "L", "raw": REPLY}
        digest = study.rubrics["shorter"].hash
        mark_words(study, "ann", Mark("response_a", 0, 8))
        mark_words(study, "ben", Mark("response_a", 4, 10))
        study.store.add_grades(
            GradeAttempt(unit_id=unit, rubric_hash=digest, provenance=why, **about)
            for unit, why in zip(units, [{}, {}, {}, {"reason": REASON}], strict=True)
        )
    return serve_study(folder)


def held(served: Served) -> list[tuple[str, str, str, str]]:
    with open_study(served.folder) as study:
        return [(e.unit_id, e.grader, e.kind, e.note) for e in sorted_so_far(study)]


def press(page: Page, key: str) -> None:
    """What is pressed while the page is drawn anew may be lost."""
    settled(page).keyboard.press(key)


def choose(page: Page, box: str, option: str) -> None:
    """Choose an option; a run that is under way closes what is open, so look again."""
    found = page.get_by_role("option", name=option, exact=True)
    for _ in range(5):
        settled(page).get_by_label(box, exact=True).click()
        try:
            found.click(timeout=2_000)
        except TimeoutError:
            page.keyboard.press("Escape")
        else:
            return
    raise AssertionError(f"{box} does not open")


@pytest.mark.thorough
def test_the_lead_sorts_what_a_grader_says_unlike_people(lead, served, axe):
    page = lead(served, "Disagreements")
    expect(page.get_by_text("6 chosen. 6 of 6 are not sorted yet.")).to_be_visible(timeout=180_000)
    choose(page, "Grader", GRADER)
    expect(page.get_by_text("4 chosen. 6 of 6 are not sorted yet.")).to_be_visible()
    expect(page.get_by_text(REPLY)).to_be_visible()
    expect(page.get_by_text("Response A", exact=True)).to_be_visible()
    marked = page.locator(".evenhand-quote mark")
    assert marked.all_text_contents() == ["Resp", "onse", response_text(1, "a")[8:10]]
    said = page.locator(".evenhand-quote small").all_text_contents()
    assert said == ["(marked by ann)", "(marked by ann, ben)", "(marked by ben)"]
    axe(page, "disagreements")

    first = page.get_by_role("heading", level=2).first.inner_text()
    page.get_by_label("Note").fill("It read the sides the wrong way round.")
    page.get_by_role("button", name="Grader wrong").click()
    expect(page.get_by_text("3 chosen. 5 of 6 are not sorted yet.")).to_be_visible()
    second = page.get_by_role("heading", level=2).first.inner_text()
    assert second != first
    press(page, "n")
    expect(page.get_by_role("heading", level=2).first).not_to_have_text(second)
    third = page.get_by_role("heading", level=2).first.inner_text()
    press(page, "3")
    expect(page.get_by_text("2 chosen. 4 of 6 are not sorted yet.")).to_be_visible()
    expect(page.get_by_role("heading", level=2).first).not_to_have_text(third)

    ids = [heading.partition(",")[0] for heading in (first, third)]
    assert held(served) == [
        (ids[0], GRADER, "grader_wrong", "It read the sides the wrong way round."),
        (ids[1], GRADER, "rubric_unclear", ""),
    ]
    choose(page, "Sorted as", "Not sorted")
    last = page.get_by_role("heading", level=2).first
    for _ in range(4):
        if "p0004" in last.inner_text():
            break
        seen = last.inner_text()
        press(page, "n")
        expect(last).not_to_have_text(seen)
    expect(page.get_by_text(f"Its reason: {REASON}")).to_be_visible()
    expect(page.get_by_text(REPLY)).to_have_count(0)
    choose(page, "Sorted as", "Rubric unclear")
    expect(page.get_by_text("Sorted as Rubric unclear by lead.")).to_be_visible()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("0 chosen. 5 of 6 are not sorted yet.")).to_be_visible()
    assert [each[0] for each in held(served)] == ids[:1]


def test_items_of_least_agreement_are_typeset_before_there_is_a_grader(
    make_study, lead, serve_study
):
    folder = make_study(2, lambda n, side: f"So $x^{n}$.", raters_per_unit=2, display="markdown")
    with open_study(folder) as study:
        units = [f"p{n:04d}|{SUBJECT}" for n in (1, 2)]
        with_labels(study, {"ann": "RL", "ben": "RR"}, "shorter", units=units)
    page = lead(serve_study(folder), "Disagreements")
    page.get_by_role("link", name=units[1]).click(timeout=180_000)
    for after in ("Adjudicate this item →", "Flags"):
        expect(page.locator("math")).to_have_count(2)
        page.get_by_role("link", name=after, exact=True).click()
