"""A response to a proposition is labelled in a real browser, on the page that pairs have."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.demo import make_demo
from evenhand.study import open_study
from harness.annotator import IS_NEXT, READY, SAVED, press_keys

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture(scope="module")
def stance_demo(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("propositions") / "study"
    make_demo("stance", folder, lambda done, total, what: None)
    return folder


@pytest.mark.thorough
def test_a_visitor_labels_a_response_of_the_stance_demo(stance_demo, serve_study, new_context):
    served = serve_study(stance_demo)
    page = new_context().new_page()
    served.enter("visitor")
    page.goto(f"{served.url}?rater=visitor")
    page.wait_for_selector(READY)

    prompt, response = page.locator(".material .text").all_text_contents()
    question = page.locator(".question").first.text_content() or ""
    options = page.locator(".panel .option").all_text_contents()
    shown = page.locator(".panel").text_content() or ""
    before = page.locator(".material").text_content()
    press_keys(page, "u", "Enter")
    page.wait_for_function(IS_NEXT, arg=before)
    page.wait_for_selector(SAVED, state="attached")

    (row,) = served.labels("visitor").to_dict("records")
    assert (row["label"], row["rubric"], row["order"]) == ("U", "stance", "")
    with open_study(stance_demo) as study:
        cells, texts = study.store.unit_texts(*row["unit_id"].split("|")[:2])
    assert (prompt, response) == (cells["prompt_a"], texts["a"])
    assert cells["statement"] in question
    assert len(options) == 5
    assert "pair" not in shown.lower()
    assert "synthetic-" not in shown  # no subject's name
