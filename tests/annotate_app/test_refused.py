"""Answers that are refused, whenever and wherever: each says so, with its unit."""

from __future__ import annotations

import pytest

from harness.annotator import READY

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
