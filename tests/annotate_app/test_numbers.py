"""A question that asks for a number: one field, digits from anywhere, checked on both sides."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.study import open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from harness.annotator import READY, SAVED
from harness.served import Served

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


def made(folder: Path, *options: str) -> Path:
    with (folder / "items.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["response", "system", "judge"])
        writer.writerows([f"Answer {n}", f"m{n % 2}", 10 * n] for n in range(6))
    study = folder / "study"
    (folder / "share.toml").write_text(SHARE)
    words = ["new", str(study), "--items", str(folder / "items.csv"), *options]
    assert main(words) == 0
    return study


@pytest.fixture(scope="module")
def asked(tmp_path_factory, serve_study) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("asked")
    ask = ["--question", "How good is it?", "--scale", "0-100", "--judge", "judge"]
    return serve_study(made(folder, *ask))


@pytest.fixture(scope="module")
def share(tmp_path_factory, serve_study) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("share")
    return serve_study(made(folder, "--rubric", str(folder / "share.toml")))


def entered(served: Served, new_context, rater: str, **settings):
    page = new_context(**settings).new_page()
    served.enter(rater)
    page.goto(f"{served.url}?rater={rater}")
    page.wait_for_selector(READY)
    return page


def focused(page) -> str:
    return page.evaluate(
        "document.querySelector('[data-testid=stBidiComponentIsolated]')"
        ".shadowRoot.activeElement?.className"
    )


def test_digits_from_anywhere_and_enter(asked, new_context, axe):
    page = entered(asked, new_context, "typist")
    field = page.get_by_role("textbox", name="How good is it?")
    assert page.locator(".bounds").inner_text() == "a whole number from 0 to 100"
    assert focused(page) == "material"  # the texts scroll by keyboard until a digit is typed
    axe(page, "a number")
    page.keyboard.press("Enter")
    notice = page.locator(".notice")
    assert notice.inner_text() == "Type a whole number from 0 to 100 first."
    page.keyboard.press("Escape")
    page.keyboard.type("73")
    assert field.input_value() == "73"
    page.keyboard.press("Enter")
    page.get_by_text("1 of 6 answered").wait_for()
    page.wait_for_selector(READY)
    assert field.input_value() == ""
    # Zero is a digit here; out of bounds, between steps and words are no answers.
    for wrong in ("101", "7.5", "-1", "ten", "1e2"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true"
        field.press("Enter")
        assert "from 0 to 100" in notice.inner_text()
    field.fill("")
    page.locator(".material").focus()
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    page.get_by_text("2 of 6 answered").wait_for()
    page.wait_for_selector(READY)
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


def test_a_draft_survives_the_window(asked, new_context):
    page = entered(asked, new_context, "drafts")
    page.keyboard.type("42")
    page.reload()
    page.wait_for_selector(READY)
    assert page.get_by_role("textbox", name="How good is it?").input_value() == "42"
    page.keyboard.press("?")
    page.get_by_text("Type the number, then Enter").wait_for()
    page.keyboard.press("?")
    page.keyboard.press("-")  # a reason to skip, not a minus
    page.get_by_role("radio").first.check()
    page.keyboard.press("Enter")
    page.get_by_text("1 of 6 answered").wait_for()
    page.wait_for_selector(SAVED, state="attached")
    with open_study(asked.folder) as study:
        ratings = study.ratings()
    assert (ratings[ratings["rater_id"] == "drafts"]["unscored_reason"] != "").all()


def test_the_server_takes_no_other_number(asked):
    with open_study(asked.folder) as study:
        desk = AnnotationDesk(study)
        study.admit("forger") if hasattr(study, "admit") else asked.enter("forger")
        sheet = desk.next_sheet("forger")
        task = sheet.tasks[0].task_id
        for wrong in ("101", "7.5", "07", "1e1", "73.0", " 5"):
            receipt = desk.submit_all(
                "forger", [Answer(submit_id=f"s{wrong}", task_id=task, option_key=wrong)]
            )
            assert [each.status for each in receipt] == ["unknown_task"]


def test_a_comma_and_two_places(share, new_context):
    page = entered(share, new_context, "comma", locale="de-DE")
    field = page.locator(".number")
    assert field.get_attribute("inputmode") == "decimal"
    for typed in ("0,50", ".07", "1.00"):
        page.wait_for_selector(READY)
        field.fill(typed)
        field.press("Enter")
        field.wait_for()
        page.wait_for_function(
            "() => document.querySelector('[data-testid=stBidiComponentIsolated]')"
            ".shadowRoot.querySelector('.number')?.value === ''"
        )
    assert share.comes_to_hold("comma", ["0.5", "0.07", "1"])
