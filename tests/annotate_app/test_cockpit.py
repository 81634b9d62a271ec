"""Each act of the lead's pages once, in a browser, on a synthetic study of twenty raters."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.desk.claims import oversight
from evenhand.study.lead.disagreements import (
    past_decisions,
)
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.answers import add_event
from evenhand.study.store.schema import participant_entries, remarks
from evenhand.study.tables.ratings import validate_ratings
from harness.annotator import SUBJECT
from harness.served import Served
from harness.studies import CODES, SHORTER, panel_study
from tests.annotate_app.leading import (
    HOSTILE,
    PASSWORD,
    choose,
    complaint,
    fill,
    log_in,
    press,
    settled,
    shown,
    turn_to,
    upload,
)

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

RATERS = [f"r{n:02d}" for n in range(1, 21)]
CARELESS = "r07"
PAIRS = 80
EACH = 10
"""People on each unit."""
GRADER = "openai:some-model"
PARTICIPANT = "5f1d7f7a0000000000000000"
"""Who `r06` is at Prolific."""


def twenty_raters(home: Path) -> Path:
    """The folder of the study; the same every time."""
    shorter = home / "first.toml"
    shorter.write_text(SHORTER, "utf-8")
    folder = panel_study(
        home, PAIRS, rubrics=[load_rubric(shorter), load_rubric("refusal")], raters_per_unit=EACH
    )
    change_config(folder, {"analysis": {"resamples": 200}})  # quick, and no figure is asserted
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{CODES}")
    with open_study(folder) as study:
        for name in ("chair", "deputy"):
            set_account(study.store, name, PASSWORD, "expert")
        frame = pd.DataFrame(list(_ratings(random.Random(3))))
        import_ratings(study, validate_ratings(frame, "test"), "test")
        entry = {"rater_id": "r06", "participant_id": PARTICIPANT, "study_id": "s"}
        entry |= {"session_id": "1", "created_at": utc_now()}
        about = {"kind": "flag", "rubric": "shorter", "order": "ab", "draw": 0}
        about["rubric_hash"] = study.rubrics["shorter"].hash
        with study.store.write() as connection:
            for rater in RATERS:
                add_event(connection, rater, "entered", way="open")
            connection.execute(sa.insert(participant_entries).values(entry))
            for n, reason in enumerate(("harmful", "unclear_rubric"), start=1):
                flag = {"submit_id": f"flag-{n}", "unit_id": f"p{n:04d}|{SUBJECT}", "text": HOSTILE}
                flag |= {"rater_id": RATERS[n], "reason": reason, "created_at": utc_now()}
                append(connection, remarks, about | flag)
    return folder


def _ratings(rng: random.Random) -> Iterator[dict[str, Any]]:
    began = datetime(2026, 3, 2, 9, tzinfo=UTC)
    turn = 0
    for rubric, options in (("shorter", "LRC"), ("refusal", "12345")):
        for n in range(1, PAIRS + 1):
            truth, side = rng.choice(options), "" if rubric == "shorter" else "|a"
            unit = {"unit_id": f"p{n:04d}|{SUBJECT}{side}", "rubric": rubric}
            people = [RATERS[(n * EACH + k) % len(RATERS)] for k in range(EACH)]
            for rater in [*people, GRADER]:
                turn += 1
                careless = rater == CARELESS
                says = rng.choice(options) if careless or rng.random() < 0.3 else truth
                yield unit | {
                    "rater_id": rater,
                    "rater_kind": "model" if rater == GRADER else "human",
                    "label": says,
                    "seconds": 2.0 if careless else 20.0 + rng.random() * 20,
                    "created_at": (began + timedelta(minutes=6 * turn)).isoformat(),
                }


@pytest.fixture(scope="module")
def served(tmp_path_factory, serve_study) -> Served:
    return serve_study(twenty_raters(tmp_path_factory.mktemp("twenty")))


@pytest.fixture
def page(lead, served):
    """The lead's first page."""
    return lead(served)


def test_the_verdicts_come_first_and_a_look_is_asked_for(page):
    expect(page.get_by_text("Computing the figures:")).to_be_visible()  # no long silence
    graders = page.get_by_role("row", name=GRADER)
    expect(graders).to_contain_text("? Inconclusive", timeout=180_000)
    expect(page.locator(".evenhand-advice").first).to_contain_text("No grader")
    expect(page.get_by_text("Annotators to review: 1")).to_be_visible()
    expect(page.get_by_text("Open flags: 2")).to_be_visible()
    unseen = "labels came in since the last report"
    expect(graders).to_contain_text(unseen)
    press(page, "Ask for a verdict now")
    expect(page.get_by_text(unseen)).to_have_count(0, timeout=180_000)
    turn_to(page, "Open flags: 2")
    expect(page.get_by_text("2 open")).to_be_visible()
    expect(page.get_by_text(HOSTILE)).to_have_count(2)
    expect(page.locator("a[aria-current=page]")).to_have_text("Flags")


def test_every_number_of_the_first_page_leads_to_its_rows(page):
    tiles = page.locator("[class*=st-key-tile-]")
    expect(tiles.nth(1)).to_contain_text("Nobody has labelled in the last 24 hours")
    answers = {"1,600 of 2,400 labels": "Progress", "Annotators: 1": "Annotators", "Not yet": "Log"}
    for answer, title in answers.items():
        settled(page).get_by_role("link", name=answer).click(timeout=180_000)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        turn_to(settled(page), "Overview")  # how browsers go back is in test_lead
        expect(page.locator("a[aria-current=page]")).to_have_text("Overview")
    step = settled(page).locator(".st-key-next-step")
    step.get_by_role("link", name=f"Look at the work of {CARELESS}").click(timeout=180_000)
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    page.wait_for_url(f"**/annotators?one_rater={CARELESS}")
    page.reload()
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()


def test_the_flagged_rater_stands_first_and_has_a_page(page, served):
    turn_to(page, "Annotators")
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{CARELESS} ", use_inner_text=True, timeout=180_000)
    choose(page, "A page for one annotator", CARELESS)
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    expect(page.get_by_role("table", name="Refusal")).to_be_visible()
    settled(page).get_by_text("Latest answers").first.click()
    expect(page.get_by_role("cell", name=f"p0080|{SUBJECT}|a")).to_be_visible()
    fill(page, "Reason, which stands in the report", HOSTILE)
    press(page, "Exclude")
    expect(page.get_by_role("button", name="Readmit")).to_be_visible()
    with open_study(served.folder) as study:
        assert oversight(study.store).exclusions[CARELESS].reason == HOSTILE


def test_two_adjudicators_work_by_keyboard_and_never_meet(new_page, served):
    chair, deputy = (new_page(f"{served.url}?lead=in") for _ in range(2))
    for page, name in ((chair, "chair"), (deputy, "deputy")):
        log_in(page, name)
        expect(page.get_by_text("to adjudicate.")).to_be_visible()
    first, second = shown(chair), shown(deputy)
    assert first != second
    settled(chair).keyboard.press("3")
    expect(chair.get_by_role("radio", checked=True)).to_have_count(1)
    chair.keyboard.press("Enter")
    expect(chair.get_by_role("alert")).to_have_text("A decision needs a reason.")
    chair.keyboard.type("so it s 1")  # in the field, keys are only text
    chair.keyboard.press("Enter")
    passed = shown(chair, other_than=first)
    assert passed != second
    settled(chair).keyboard.press("q")
    expect(chair.get_by_label("Your reason")).to_have_value("The rubric says so")
    expect(chair.get_by_role("cell", name="so it s 1")).to_be_visible()
    settled(chair).keyboard.press("s")
    assert shown(chair, other_than=passed) not in (first, second)
    choose(chair, "Revise a decision of yours", "No. 1")
    press(chair, "Open it again")
    expect(chair.get_by_text("because: so it s 1")).to_be_visible()
    assert shown(chair) == first
    settled(chair).keyboard.press("1")
    expect(chair.get_by_role("radio", checked=True)).to_have_count(1)
    fill(chair, "Your reason", "read once more")
    press(chair, "Save decision Enter")
    expect(chair.get_by_role("cell", name="read once more")).to_be_visible()
    with open_study(served.folder) as study:
        (decision,) = past_decisions(study).to_dict("records")
        assert decision["label"] == study.rubrics[decision["rubric"]].categories[0]
    seen = chair.locator(".st-key-lead").inner_text()
    assert not any(name in seen for name in (*RATERS, SUBJECT, GRADER))


def test_links_accounts_and_places(page, served, tmp_path):
    turn_to(page, "Sessions")
    fill(page, "Annotator codes", "anna")
    press(page, "Make links")
    row = page.get_by_role("row", name="anna open")
    link = row.locator("code").inner_text()
    row.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    choose(page, "Revoke the links of", "anna")
    press(page, "Revoke")
    expect(page.get_by_text("Links revoked: 1.")).to_be_visible()
    fill(page, "Annotator code or participant id", "r05")
    press(page, "Change the place")
    expect(page.get_by_text("r05: 0 assignments released.")).to_be_visible()
    submissions = tmp_path / "submissions.csv"
    submissions.write_text(f"Participant id,Status\n{PARTICIPANT},RETURNED\n", "utf-8")
    upload(page, submissions)
    expect(page.get_by_text("submissions.csv")).to_be_visible()
    press(page, "Take in the list")
    expect(page.get_by_text("r06: 0 assignments released.")).to_be_visible()
    turn_to(page, "Accounts")
    fill(page, "Name", "third")
    fill(page, "Password (at", "too short")
    press(page, "Save the account")
    complaint(page, "A password has 10 to 200")
    fill(page, "Name", "third")
    fill(page, "Password (at", PASSWORD)
    press(page, "Save the account")
    expect(page.get_by_text("third can log in as expert.")).to_be_visible()
    choose(page, "Account", "third")
    press(page, "End it")
    expect(page.get_by_text("third can no longer log in.")).to_be_visible()
    page.goto(link)
    complaint(page, "This link was revoked")


def test_a_study_of_a_files_rows_is_made_without_a_terminal(page, served, tmp_path):
    file = tmp_path / "answers.csv"
    rows = [f"Sum of {n},It is {2 * n}.,m{n % 2},{'yes' if n % 3 else 'no'}" for n in range(9)]
    file.write_text("\n".join(["task,said,model,verdict", *rows]))
    turn_to(page, "New study")
    upload(page, file)
    # What is not clear is asked for by the name of a field, not of an option of a command.
    complaint(page, "Answers.csv: none of the columns task", timeout=90_000)
    complaint(page, "with “Columns that annotators read, in this order”.")
    for column in ("task", "said"):
        choose(page, "Columns that annotators read, in this order", column)
    page.keyboard.press("Escape")
    choose(page, "A grader's labels, which annotators never see", "verdict")
    for row in (
        "task Sum of 0 read by annotators",
        "said It is 0. read by annotators, the response",
        "model m0 the subject (model under test)",
        "verdict no a grader's label, hidden from annotators",
    ):
        expect(settled(page).get_by_role("row", name=row, exact=True)).to_be_visible(timeout=90_000)
    fill(page, "Name of the study", "sums")
    fill(page, "Question", "Is it right?")
    fill(page, "Or a scale", "yes")
    press(page, "See what it means")
    complaint(page, "“Or a scale, such as 1-5” is 'yes'", timeout=90_000)
    fill(page, "Or a scale", "")
    fill(page, "Answers, one per line", f"yes: {HOSTILE}\nno")
    press(page, "See what it means")
    expect(page.get_by_text("9 of 9 items would be sampled.")).to_be_visible(timeout=90_000)
    expect(page.locator(".st-key-preview")).to_contain_text(HOSTILE)
    assert not (served.folder.parent / "sums").exists()
    fill(page, "Name of the study", "../elsewhere")
    press(page, "Create the study")
    complaint(page, "A study's name is", timeout=90_000)
    fill(page, "Name of the study", "sums")
    press(page, "Create the study")
    expect(page.get_by_text("Created sums next to this study.")).to_be_visible(timeout=90_000)
    with open_study(served.folder.parent / "sums") as study:
        assert len(study.store.sample()) == 9
        assert study.config.annotation.raters_per_unit == 3
        assert study.rubrics["rating"].options[0].description == HOSTILE
        assert set(study.ratings()["rater_kind"]) == {"model"}  # the judge's, whom nobody sees
