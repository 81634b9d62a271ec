"""Questions that ask for a number, or of which several options may apply: a field and boxes, by key
and by mouse, checked on both sides; and how they are adjudicated.
"""

import pytest
from playwright.sync_api import expect

from evenhand.rubrics.loading import dump_rubric
from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.desk.desk import AnnotationDesk
from harness.annotator import READY, SAVED, press_keys, reload
from harness.served import Served
from harness.studies import response_rubric, submit, task_of
from tests.annotate_app.leading import PASSWORD, log_in

pytestmark = pytest.mark.browser

SHARE = """
name = "share"
title = "Share"
unit = "response"
question = "Which share of it is supported?"
instructions = "Judge each claim."
variables = ["response"]

[number]
low = 0
high = 1
step = 0.01
"""
TOPICS = response_rubric(
    {"billing": "Billing", "bug": "A bug", "praise": "Praise"}, title="Topics", several=True
)


@pytest.fixture(scope="module")
def asked(make_items, serve_study) -> Served:
    head = ["response", "system", "judge"]
    rows = [head, *([f"Answer {n}", f"m{n % 2}", 10 * n] for n in range(6))]
    ask = ["--question", "How good is it?", "--scale", "0-100", "--judge", "judge"]
    return serve_study(make_items(rows, *ask))


@pytest.fixture(scope="module")
def share(make_items, serve_study) -> Served:
    rows = [["response", "system"], *([f"Answer {n}", f"m{n % 2}"] for n in range(6))]
    return serve_study(make_items(rows, rubric=SHARE))


@pytest.fixture(scope="module")
def topics(make_items, serve_study) -> Served:
    rows = [["response"], *([f"Message {n}"] for n in range(6))]
    return serve_study(make_items(rows, rubric=dump_rubric(TOPICS)))


def answered(page, number: int) -> None:
    page.get_by_text(f"{number} of 6 answered").wait_for()
    page.wait_for_selector(READY)


def ticked(page) -> list[str]:
    return page.locator(".option:has(:checked) .name").all_inner_texts()


# A number


def test_digits_from_anywhere_and_enter(annotator, asked, axe):
    person = annotator("typist", asked)
    page = person.page
    field = page.get_by_role("textbox", name="How good is it?")
    assert page.locator(".bounds").inner_text() == "a whole number from 0 to 100"
    assert person.focus() == "material"  # the texts scroll by keyboard until a digit is typed
    axe(page, "a number")
    page.keyboard.press("Enter")
    notice = page.locator(".notice")
    assert notice.inner_text() == "Type a whole number from 0 to 100 first."
    page.keyboard.press("Escape")
    page.keyboard.type("73")
    assert field.input_value() == "73"
    page.keyboard.press("Enter")
    answered(page, 1)
    assert field.input_value() == ""
    # Zero is a digit here; out of bounds, between steps and words are no answers.
    for wrong in ("101", "7.5", "-1", "ten", "1e2"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true"
        field.press("Enter")
        assert "from 0 to 100" in notice.inner_text()
    # A track for who points says nothing until a number is given.
    field.fill("")
    track = page.locator(".track")
    assert track.evaluate("node => node.className") == "track unset"
    track.click()
    assert field.input_value() == "50"
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    answered(page, 2)
    field.fill("100.0")
    field.press("Enter")
    page.get_by_text("3 of 6 answered").wait_for()
    assert asked.comes_to_hold("typist", ["73", "0", "100"])
    # Back: the number stands in the field, and a new one replaces it.
    page.wait_for_selector(READY)
    page.keyboard.press("Backspace")
    page.locator(".editing").wait_for()
    page.wait_for_selector(READY)
    assert field.input_value() == "100"
    page.keyboard.type("99")
    assert field.input_value() == "99"
    page.keyboard.press("Enter")
    page.locator(".editing").wait_for(state="hidden")
    assert asked.comes_to_hold("typist", ["73", "0", "99"])


def test_a_draft_survives_the_window(annotator, asked):
    page = annotator("drafts", asked).page
    page.keyboard.type("42")
    reload(page)
    assert page.get_by_role("textbox", name="How good is it?").input_value() == "42"
    press_keys(page, "-")  # a reason to skip, not a minus
    page.get_by_role("radio").first.check()
    page.keyboard.press("Enter")
    page.get_by_text("1 of 6 answered").wait_for()
    page.wait_for_selector(SAVED, state="attached")
    assert (asked.labels("drafts")["unscored_reason"] != "").all()


def test_a_comma_and_two_places(annotator, share):
    person = annotator("comma", share, locale="de-DE")
    page, field = person.page, person.page.locator(".number")
    assert field.get_attribute("inputmode") == "decimal"
    for typed in ("0,50", ".07", "1.00"):
        page.wait_for_selector(READY)
        field.fill(typed)
        field.press("Enter")
        person.in_panel("panel.querySelector('.number')?.value === ''")
    assert share.comes_to_hold("comma", ["0.5", "0.07", "1"])


# Several options


def test_keys_tick_and_untick_and_enter_submits(annotator, topics, axe):
    person = annotator("keys", topics)
    page = person.page
    assert page.locator(".option .name").all_inner_texts() == [
        "Billing", "A bug", "Praise", "None of these",
    ]  # fmt: skip
    axe(page, "several options")
    page.keyboard.press("Enter")
    assert page.locator(".notice").inner_text() == "Choose an answer first."
    person.press("3", "1")
    reload(page)
    assert ticked(page) == ["Billing", "Praise"]
    page.keyboard.press("4")  # none of these: alone
    assert ticked(page) == ["None of these"]
    page.keyboard.press("2")
    assert ticked(page) == ["A bug"]
    page.keyboard.press("2")  # nothing is ticked: no answer
    assert ticked(page) == []
    page.keyboard.press("Enter")
    assert topics.comes_to_hold("keys", [])
    person.press("3", "1", "Enter")
    answered(page, 1)
    assert ticked(page) == []
    person.press("4", "Enter")
    answered(page, 2)
    page.get_by_role("checkbox", name="A bug").check()
    page.get_by_role("checkbox", name="Praise").check()
    page.get_by_role("button", name="Submit and go on").click()
    answered(page, 3)
    assert topics.comes_to_hold("keys", ["billing;praise", "none", "bug;praise"])
    # Back to it: what was ticked is ticked, and may be changed.
    page.keyboard.press("Backspace")
    page.locator(".editing").wait_for()
    page.wait_for_selector(READY)
    assert ticked(page) == ["A bug", "Praise"]
    person.press("1", "Enter")
    page.locator(".editing").wait_for(state="hidden")
    assert topics.comes_to_hold("keys", ["billing;praise", "none", "billing;bug;praise"])


# Adjudication


ASKED = {
    "number": (["--scale", "0-100"], ["10", "90"]),
    "several": (["--options", "billing,bug,praise", "--several"], ["bug", "billing;praise"]),
}


@pytest.fixture
def decider(new_page, make_items, serve_study):
    """decider(kind) -> an expert's page, and what was decided in the study of one message on which
    two annotators disagree."""

    def opened(kind):
        ask, labels = ASKED[kind]
        folder = make_items([["response"], ["It crashed"]], "--question", "What is it?", *ask)
        with open_study(folder) as study:
            set_account(study.store, "chair", PASSWORD, "expert")
            desk = AnnotationDesk(study)
            for rater, label in zip(("ann", "ben"), labels, strict=True):
                assert submit(desk, rater, task_of(desk, rater), label) == "stored"
        server = serve_study(folder)
        page = new_page(f"{server.url}?lead=in")
        log_in(page, "chair")
        expect(page.get_by_text("1 to adjudicate.")).to_be_visible()
        return page, lambda: server.labels("adjudicator:chair")["label"].tolist()

    return opened


@pytest.mark.journey
def test_a_number_is_typed(decider):
    page, decided = decider("number")
    expect(page.get_by_text("Annotators chose: 10 (1); 90 (1)")).to_be_visible()
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_have_text("Type a number.")
    field = page.get_by_label("A whole number from 0 to 100")
    field.fill("101")
    page.get_by_label("Your reason").fill("Half of it.")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_contain_text("not a whole number from 0 to 100")
    field.fill("50.0")
    field.press("Enter")
    expect(page.get_by_text("No. 1")).to_have_count(0)
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided() == ["50"]


@pytest.mark.journey
def test_several_options_are_ticked(decider):
    page, decided = decider("several")
    expect(page.get_by_role("checkbox", name="billing chosen by 1")).to_be_visible()
    page.get_by_role("checkbox", name="praise chosen by 1").check()
    page.get_by_role("checkbox", name="bug chosen by 1").check()
    page.get_by_label("Your reason").fill("Both.")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided() == ["bug;praise"]
