"""While the server does not answer, the page says so, and what is on it stays within reach."""

from __future__ import annotations

import re

import pytest

from harness.annotator import READY

pytestmark = pytest.mark.browser

AT_THE_TEXT = "([x, y]) => document.elementFromPoint(x, y).dataset.testid"


def test_a_dead_server_is_told_at_once_and_what_is_there_stays(annotator, mortal):
    person = annotator("down", mortal)
    person.answer("L")
    page = person.page
    text = page.locator(".response .text").first
    box = text.bounding_box()
    mortal.kill()
    person.wait_for_chip("away")  # nothing was sent
    assert "All your answers are saved" in page.locator(".chip").inner_text()
    for key in ("Backspace", "c", "Enter"):
        page.keyboard.press(key)
    page.get_by_test_id("stDialog").wait_for(state="attached")  # Streamlit's, which bars all else
    page.wait_for_timeout(100)
    middle = [box["x"] + 60, box["y"] + 15]
    assert page.evaluate(AT_THE_TEXT, middle) == "stBidiComponentIsolated"
    page.mouse.click(*middle, click_count=3)
    assert page.evaluate("String(getSelection())").startswith("Response")
    mortal.start()
    page.wait_for_selector(READY, timeout=30_000)
    assert page.locator(".editing").is_visible()  # the wish was kept, but not keys so old
    assert "too long on its way" in page.text_content(".notice")
    person.wait_for_chip("saved")
    assert person.stored() == person.given


def test_a_line_gone_silent_is_told(new_context, served):
    page = new_context().new_page()
    page.clock.install()
    served.enter("silent")
    page.goto(f"{served.url}?rater=silent")
    page.wait_for_selector(READY)
    health = re.compile("/_stcore/health")
    page.route(health, lambda route: route.abort())
    for state in ("away", "saved"):
        page.clock.fast_forward(10_500)  # to the next heartbeat
        page.wait_for_selector(f".chip[data-state={state}]")
        page.unroute(health)
