"""Adjudication of numbers and of sets of options: typed, and ticked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from evenhand.cli.main import main
from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.desk.desk import AnnotationDesk
from harness.studies import submit, task_of
from tests.annotate_app.leading import log_in

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"
ASKED = {
    "number": (["--scale", "0-100"], ["10", "90"]),
    "several": (["--options", "billing,bug,praise", "--several"], ["bug", "billing;praise"]),
}


def disputed(folder: Path, kind: str) -> Path:
    """A study of one message, on which two people disagree."""
    asked, labels = ASKED[kind]
    (folder / "items.csv").write_text("response\nIt crashed\n")
    study = folder / "study"
    words = ["new", str(study), "--items", str(folder / "items.csv"), "--question", "What is it?"]
    assert main([*words, *asked]) == 0
    with open_study(study) as opened:
        set_account(opened.store, "chair", PASSWORD, "expert")
        desk = AnnotationDesk(opened)
        for rater, label in zip(("ann", "ben"), labels, strict=True):
            assert submit(desk, rater, task_of(desk, rater), label) == "stored"
    return study


@pytest.fixture
def decider(new_page, tmp_path, serve_study):
    def opened(kind):
        folder = disputed(tmp_path, kind)
        page = new_page(f"{serve_study(folder).url}?lead=in")
        log_in(page, "chair")
        expect(page.get_by_text("1 to adjudicate.")).to_be_visible()
        return page, folder

    return opened


def decided(folder: Path) -> list[str]:
    with open_study(folder) as study:
        ratings = study.ratings()
    return ratings.loc[ratings["rater_kind"] == "adjudicator", "label"].tolist()


def test_a_number_is_typed(decider):
    page, folder = decider("number")
    expect(page.get_by_text("People chose: 10 (1); 90 (1)")).to_be_visible()
    page.get_by_role("button", name="Store the decision").click()
    expect(page.get_by_role("alert")).to_have_text("Type a number.")
    field = page.get_by_label("A whole number from 0 to 100")
    field.fill("101")
    page.get_by_label("Your reason").fill("Half of it.")
    page.get_by_role("button", name="Store the decision").click()
    expect(page.get_by_role("alert")).to_contain_text("not a whole number from 0 to 100")
    field.fill("50.0")
    field.press("Enter")
    expect(page.get_by_text("No. 1")).to_have_count(0)
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided(folder) == ["50"]


def test_several_options_are_ticked(decider):
    page, folder = decider("several")
    expect(page.get_by_text("People chose: billing;praise (1); bug (1)")).to_be_visible()
    page.get_by_role("checkbox", name="praise: praise").check()
    page.get_by_role("checkbox", name="bug: bug").check()
    page.get_by_label("Your reason").fill("Both.")
    page.get_by_role("button", name="Store the decision").click()
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided(folder) == ["bug;praise"]
