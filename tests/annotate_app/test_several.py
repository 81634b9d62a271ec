"""A question of which several options may apply: boxes to tick, by key or by mouse."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

from evenhand.cli.main import main
from evenhand.study import open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from harness.annotator import READY
from harness.served import Served
from harness.studies import TOPICS_HEAD

pytestmark = pytest.mark.browser

OPTIONS = """
[[options]]
key = "billing"
name = "Billing"

[[options]]
key = "bug"
name = "A bug"

[[options]]
key = "praise"
name = "Praise"
"""


@pytest.fixture(scope="module")
def topics(tmp_path_factory, serve_study) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("topics")
    with (folder / "items.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["response"], *([f"Message {n}"] for n in range(6))])
    (folder / "topics.toml").write_text(TOPICS_HEAD + OPTIONS)
    study = folder / "study"
    words = ["new", str(study), "--items", str(folder / "items.csv")]
    assert main([*words, "--rubric", str(folder / "topics.toml")]) == 0
    return serve_study(study)


@pytest.fixture
def entered(topics, new_context):
    def enter(rater: str):
        page = new_context().new_page()
        topics.enter(rater)
        page.goto(f"{topics.url}?rater={rater}")
        page.wait_for_selector(READY)
        return page

    return enter


def ticked(page) -> list[str]:
    return page.locator(".option:has(:checked) .name").all_inner_texts()


def answered(page, number: int) -> None:
    page.get_by_text(f"{number} of 6 answered").wait_for()
    page.wait_for_selector(READY)


def test_keys_tick_and_untick_and_enter_submits(topics, entered, axe):
    page = entered("keys")
    assert page.locator(".option .name").all_inner_texts() == [
        "Billing", "A bug", "Praise", "None of these",
    ]  # fmt: skip
    axe(page, "several options")
    page.keyboard.press("Enter")
    assert page.locator(".notice").inner_text() == "Choose an answer first."
    page.keyboard.press("3")
    page.keyboard.press("1")
    assert ticked(page) == ["Billing", "Praise"]
    page.keyboard.press("4")  # none of these: alone
    assert ticked(page) == ["None of these"]
    page.keyboard.press("2")
    assert ticked(page) == ["A bug"]
    page.keyboard.press("2")  # nothing is ticked: no answer
    assert ticked(page) == []
    page.keyboard.press("Enter")
    assert topics.comes_to_hold("keys", [])
    page.keyboard.press("3")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    answered(page, 1)
    assert ticked(page) == []
    page.keyboard.press("4")
    page.keyboard.press("Enter")
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
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator(".editing").wait_for(state="hidden")
    assert topics.comes_to_hold("keys", ["billing;praise", "none", "billing;bug;praise"])
    page.keyboard.press("/")
    page.get_by_text("Billing, A bug, Praise").wait_for()


def test_a_draft_of_ticks_survives_the_window(entered):
    page = entered("drafts")
    page.keyboard.press("1")
    page.keyboard.press("2")
    page.reload()
    page.wait_for_selector(READY)
    assert ticked(page) == ["Billing", "A bug"]


def test_the_server_takes_sets_in_their_order_alone(topics):
    topics.enter("forger")
    with open_study(topics.folder) as study:
        desk = AnnotationDesk(study)
        sheet = desk.next_sheet("forger")
        task = sheet.tasks[0].task_id
        for wrong in ("praise;billing", "billing;", "billing;none", "other", "billing;billing"):
            sent = [Answer(submit_id=f"s{wrong}", task_id=task, option_key=wrong)]
            assert [each.status for each in desk.submit_all("forger", sent)] == ["unknown_task"]
        sent = [Answer(submit_id="good", task_id=task, option_key="billing;praise")]
        assert [each.status for each in desk.submit_all("forger", sent)] == ["stored"]
