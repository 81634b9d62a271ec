"""Answers that are refused, whenever and wherever: each says so, with its unit."""

from __future__ import annotations

import pytest

from harness.annotator import READY
from harness.served import holds

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def short_lived(make_study, serve_study):
    return serve_study(make_study(6))


def test_an_answer_refused_after_a_reload_names_its_unit(annotator, new_context, short_lived):
    context = new_context()
    tablet = annotator("both", short_lived, context)
    short_lived.kill()
    tablet.page.keyboard.press("l")
    tablet.submit()
    tablet.wait_for_chip("offline")
    tablet.page.close()
    short_lived.start()
    desk = annotator("both", short_lived)
    desk.answer("R")  # the same unit, on another device
    stored = desk.stored()
    page = context.new_page()
    page.goto(f"{short_lived.url}?rater=both")
    page.wait_for_selector(READY)
    told = page.get_by_role("alert").filter(has_text="Unit 1")
    told.wait_for()
    assert "is not stored" in told.inner_text()
    assert desk.stored() == stored == desk.given
    page.get_by_role("button", name="I have read this").click()
    told.wait_for(state="hidden")


def test_back_on_a_unit_answered_in_another_window_opens_that_answer(
    annotator, new_context, short_lived
):
    context = new_context()
    first = annotator("windows", short_lived, context)
    second = annotator("windows", short_lived, context)
    unit = second.unit()
    first.answer("C")
    second.page.keyboard.press("Backspace")
    second.in_panel("!panel.querySelector('.editing').hidden")
    assert (second.unit(), second.chosen()) == (unit, "C")


def test_what_was_refused_is_told_until_it_is_read_over_reloads(
    annotator, new_context, short_lived
):
    first = annotator("unread", short_lived)
    other = annotator("unread", short_lived)
    first.answer("L")
    other.choose("R")
    other.submit()  # goes on at once, and is refused
    told = other.page.get_by_role("alert").filter(has_text="Unit 1")
    told.wait_for()
    other.page.reload()
    other.page.wait_for_selector(READY)
    told.wait_for()
    other.page.get_by_role("button", name="I have read this").click()
    told.wait_for(state="hidden")
    other.page.reload()
    other.page.wait_for_selector(READY)
    assert told.is_hidden()


FLAG_OF_ANOTHER_VERSION = """
() => {
  const name = Object.keys(localStorage).find((each) => each.includes(":answer:"));
  localStorage.setItem(name, localStorage.getItem(name).replace(/"flag":"[^"]*"/, '"flag":"gone"'));
}
"""


def test_a_flag_that_is_refused_names_its_unit(annotator, short_lived):
    person = annotator("flags", short_lived)
    short_lived.kill()
    for key in ("+", "1", "Enter"):
        person.page.keyboard.press(key)
    person.wait_for_chip("offline")
    person.page.evaluate(FLAG_OF_ANOTHER_VERSION)
    short_lived.start()
    told = person.page.get_by_role("alert").filter(
        has_text="Unit 1: The study has changed, and your"
    )
    told.wait_for()


def test_back_opens_what_this_window_answered_whatever_another_one_has_answered_since(
    annotator, short_lived
):
    here = annotator("two", short_lived)
    unit, _ = here.unit()
    here.answer("L")
    there = annotator("two", short_lived)
    there.answer("R")  # the unit that is on the screen here
    for key in ("Backspace", "c", "Enter"):
        here.page.keyboard.press(key)
    assert holds(lambda: here.stored() == {unit: "C"} | there.given)
