"""A lead makes, runs, reviews and reports a study of 40 conversations in the browser alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.sheets import Task
from evenhand.study.lead.adjudication import past_decisions
from evenhand.study.lead.flags import raised_flags
from harness.annotator import READY, SAVED
from harness.served import Served, holds
from harness.studies import label_all
from tests.annotate_app.leading import choose, fill, press, shown, turn_to, upload
from tests.annotate_app.participants import settled

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

CONVERSATIONS = 40
BY_HAND = 6
"""Answers that a rater gives in the browser; the rest are handed to the desk that it speaks to."""


PATIENCE = 60_000
"""Milliseconds that a page may take on a machine that others use too."""


def conversations(path: Path) -> Path:
    """A file of conversations, with a judge's answer to each."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(CONVERSATIONS):
            turns = [
                {"role": "user", "content": f"Where is parcel {n}?"},
                {"role": "assistant", "content": f"Parcel {n} is on its way." * (1 + n % 3)},
            ]
            row = {"messages": turns, "judge": "yes" if helps(n) else "no"}
            file.write(json.dumps(row) + "\n")
    return path


def helps(number: int) -> bool:
    return number % 3 > 0


def number_in(text: str) -> int:
    found = re.search(r"parcel (\d+)", text)
    assert found
    return int(found[1])


def label_of(rater: str, number: int) -> str:
    """What this rater answers: each is wrong about conversations of their own."""
    wrong = number % 8 == {"ann": 0, "ben": 3}[rater]
    return "yes" if helps(number) != wrong else "no"


def invite(page: Page, *raters: str) -> dict[str, str]:
    """The links made for these raters, as the lead would send them."""
    turn_to(page, "Sessions")
    fill(page, "Rater codes", ", ".join(raters))
    press(page, "Make links")
    said = page.locator("code").inner_text()
    return dict(line.split()[:2] for line in said.splitlines() if line.strip())


def work_by_hand(page: Page, rater: str) -> None:
    """Some units by key; a flag on the first."""
    page.wait_for_selector(READY)
    page.keyboard.press("+")
    page.get_by_role("radio", name="The question does not fit").check()
    page.get_by_label("Note").fill("Which parcel is meant?")
    page.get_by_role("button", name="Send the flag").click()
    page.locator(".flags .state[data-state=flag_stored]").wait_for()
    for _ in range(BY_HAND):
        page.wait_for_selector(READY)
        before = page.text_content(".material") or ""
        label = label_of(rater, number_in(before))
        page.locator(f".option input[value={label}]").check()
        page.keyboard.press("Enter")
        page.locator(".material").filter(has_not_text=before).wait_for()
    page.wait_for_selector(SAVED, state="attached")


def work_at_the_desk(served: Served, rater: str) -> None:
    def choose(task: Task, _: int) -> str:
        return label_of(rater, number_in(" ".join(task.values.values())))

    with open_study(served.folder) as study:
        label_all(AnnotationDesk(study), rater, choose, seconds=12.0)


def test_forty_conversations_from_the_file_to_the_report(
    serve, serve_study, lead, new_page, tmp_path
):
    # The study is made on the page of another one.
    host = serve(2)
    page = lead(host)
    turn_to(page, "New study")
    file = conversations(tmp_path / "talks.jsonl")
    upload(page, file)
    expect(page.get_by_text("read by raters, in turns")).to_be_visible(timeout=PATIENCE)
    settled(page).get_by_text("Columns, where their names").click()
    expect(page.get_by_text("Columns whose shares the sample keeps")).to_be_visible()
    page.wait_for_timeout(500)  # it unfolds
    choose(page, "A judge's labels, which raters never see", "judge")
    expect(page.get_by_text("hidden from raters")).to_be_visible(timeout=PATIENCE)
    fill(page, "Name of the study", "parcels")
    fill(page, "Or a question", "Does it help?")
    fill(page, "Its answers", "yes, no")
    fill(page, "Raters on each unit", "2")
    press(page, "Create the study")
    made = host.folder.parent / "parcels"
    assert holds(lambda: (made / "study.toml").exists(), 90)
    expect(page.get_by_text("hours", exact=False).first).to_be_visible(timeout=PATIENCE)

    # Whoever keeps the server lets the new one be served; from here on the lead has its pages.
    served = serve_study(made)
    page = lead(served)
    links = invite(page, "ann", "ben")
    for rater in ("ann", "ben"):
        own = new_page(links[rater])
        work_by_hand(own, rater)
        work_at_the_desk(served, rater)
        own.reload()
        own.get_by_text("All done").wait_for()

    # A flag is answered, and what raters disagreed on is decided.
    turn_to(page, "Flags")
    for left in (1, 0):
        page.get_by_label("What was done about it").first.fill("Explained.")
        page.get_by_label("An answer to whoever raised it").first.fill("The one in the question.")
        settled(page).get_by_role("button", name="Mark as dealt with").first.click()
        expect(page.get_by_text(f"{left} open")).to_be_visible(timeout=PATIENCE)
    with open_study(served.folder) as study:
        assert not any(flag.is_open for flag in raised_flags(study))
    turn_to(page, "Adjudication")
    first = shown(page)
    settled(page).keyboard.press("1")
    fill(page, "Your reason", "It names the parcel.")
    press(page, "Store the decision Enter")
    shown(page, other_than=first)
    with open_study(served.folder) as study:
        assert past_decisions(study)["reason"].tolist() == ["It names the parcel."]

    # The verdict is asked for, and the report is taken away.
    turn_to(page, "Overview")
    press(page, "Ask for a verdict now")
    expect(page.get_by_text("judge").first).to_be_visible(timeout=300_000)
    # The figures are counted in the background: those of the empty study stand until then.
    expect(page.get_by_text("No person has labelled")).to_have_count(0, timeout=300_000)
    turn_to(page, "Export")
    report = page.get_by_role("button", name="Report", exact=True)
    expect(report).to_be_visible(timeout=300_000)
    with page.expect_download() as download:
        settled(page)
        report.click()
    text = Path(download.value.path()).read_text("utf-8")
    assert "parcels: rater agreement" in text
    assert "judge" in text
    assert "No person has labelled" not in text
