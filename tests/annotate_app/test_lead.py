"""The lead's pages in a browser: from the link to the export, and all who do not get there."""

import io
import json
import urllib.error
import urllib.request
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from evenhand.cli.verbs import lead_link
from evenhand.study import open_study
from evenhand.study.access import accounts as lead_access
from evenhand.study.access.accounts import disable_account, set_account
from evenhand.study.tables.ratings import Mark
from harness.annotator import READY, SUBJECT, Annotator
from harness.served import Served
from harness.studies import CODES, mark_words, with_labels
from tests.annotate_app.leading import (
    HOSTILE,
    PASSWORD,
    complaint,
    inside,
    log_in,
    shut_out,
    turn_to,
)

pytestmark = pytest.mark.browser

PAGES = {
    "Overview": "Ask for a verdict now",
    "Progress": "Places by rubric",
    "Agreement": "Precision so far",
    "Items": "Click an id to read the item.",
    "Annotators": "A page for one annotator",
    "Flags": "Nobody has flagged an item.",
    "Adjudication": "to adjudicate.",
    "Disagreements": "No disagreements, because no grader differs",
    "Sessions": "Make links",
    "Accounts": "Save the account",
    "Log": "What leads did",
    "Settings": "These are the settings in study.toml.",
    "Texts": "What annotators read before they start.",
    "Rubrics": "Annotators and graders read the same words",
    "Training and checks": "Practice and questions before annotators start",
    "New study": "What annotators rate",
    "Export": "Times and pay",
}
"""What is read on each of the pages, and on no other, once it is all there."""


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    folder = make_study(30, raters_per_unit=3)
    with open_study(folder) as study:
        set_account(study.store, "chair", PASSWORD, "expert")
        numbers = range(1, 17)
        first = ["LRC"[n % 3] for n in numbers]
        second = ["LRC"[n % 3 if n % 4 else (n + 1) % 3] for n in numbers]
        given = {"first": first, "second": second, HOSTILE: first}
        units = [f"p{n:04d}|{SUBJECT}" for n in numbers]
        with_labels(study, given, "shorter", units=units, graders=[HOSTILE], seconds=20.0)
        mark_words(study, "first", Mark("response_b", 0, 8))
    return serve_study(folder)


# ---- who gets in --------------------------------------------------------------------------------


@pytest.mark.journey
def test_the_link_works_once_and_a_reload_goes_on(new_page, served):
    link = lead_link(served.folder, served.url)
    page = new_page(link)
    inside(page)
    assert page.url == f"{served.url}overview"  # the token has left the address
    page.reload()
    expect(page.get_by_text("Log out")).to_be_visible()
    elsewhere = new_page(link)
    complaint(elsewhere, "This link was used already")
    shut_out(elsewhere)
    page.get_by_role("button", name="Log out").click()
    shut_out(page)
    page.reload()
    shut_out(page)


@pytest.mark.thorough
def test_an_annotator_who_tries_gets_nowhere(annotator, served, monkeypatch):
    person = annotator("curious", served)
    link = lead_link(served.folder, served.url)
    monkeypatch.setattr(lead_access, "LINK_MINUTES", 0)
    over = lead_link(served.folder, served.url)
    for address, said in (
        (f"{served.url}?lead=in", ""),
        (f"{served.url}?lead=", ""),
        (f"{served.url}?rater=curious&lead=in", ""),
        (f"{served.url}?lead=first", "not valid"),
        (f"{link[:-4]}AAAA", "not valid"),
        (over, "expired"),
    ):
        person.page.goto(address)
        shut_out(person.page)
        if said:
            complaint(person.page, said)
    for path in ("lead", "progress", "Agreement", "annotate_app/lead"):
        person.page.goto(f"{served.url}{path}")
        expect(person.page.get_by_text("Log out")).to_have_count(0)


@pytest.mark.thorough
def test_an_expert_adjudicates_and_sees_nothing_else(new_page, served):
    page = new_page(f"{served.url}?lead=in")
    log_in(page, "chair", "not this one")
    complaint(page, "Name or password is wrong")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("4 to adjudicate.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Adjudication")
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(0)
    expect(page.locator(".evenhand-quote mark")).to_have_text("Response")
    expect(page.locator(".evenhand-quote small")).to_have_text("(marked by 1 of 2)")
    seen = page.locator(".st-key-lead").inner_text()
    assert not any(name in seen for name in ("first", "second", SUBJECT, "<img"))

    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_have_text("Choose an option.")
    page.get_by_role("radio", name="C: Neither").check()
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_have_text("A decision needs a reason.")
    page.get_by_label("Your reason").fill("They are as long as each other.")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_text("3 to adjudicate.")).to_be_visible()
    with open_study(served.folder) as study:
        ratings = study.ratings()
    (row,) = ratings[ratings["rater_kind"] == "adjudicator"].to_dict("records")
    assert (row["rater_id"], row["label"]) == ("adjudicator:chair", "C")

    with open_study(served.folder) as study:
        disable_account(study.store, "chair")
    page.get_by_role("button", name="Skip").click()
    shut_out(page)


# ---- a session from invite to export ------------------------------------------------------------


@pytest.mark.thorough
def test_a_session_from_invite_to_export_while_labels_arrive(
    lead, new_page, annotator, make_study, serve_study
):
    folder = make_study(6, raters_per_unit=2)
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{CODES}")
    served = serve_study(folder)
    page = lead(served)
    page.clock.install()
    turn_to(page, "Progress")
    expect(page.get_by_text("12 of 12 labels are still needed")).to_be_visible()

    turn_to(page, "Sessions")
    page.get_by_label("Annotator codes").fill("anna")
    page.get_by_role("button", name="Make links").click()
    link = page.get_by_role("row", name="anna open").locator("code").inner_text()
    assert link.startswith(f"{served.url}?")
    page.get_by_role("button", name="Make the address for Prolific").click()
    expect(page.locator("code").first).to_contain_text("&SESSION_ID={{%SESSION_ID%}}")
    invited = new_page(link)
    invited.wait_for_selector(READY)
    people = [Annotator("anna", served, invited), annotator("ben", served)]
    for option in "lrclr":
        for person in people:
            person.answer(option.upper())
    turn_to(page, "Progress")
    expect(page.get_by_text("2 of 12 labels are still needed")).to_be_visible()
    by_rater = page.get_by_role("region", name="By annotator", exact=True)
    expect(by_rater.get_by_role("cell", name="anna")).to_be_visible()

    # Labels that arrive while the page is looked at show up by themselves.
    people[0].answer("C")
    page.clock.fast_forward("00:10")  # the page asks for news every ten seconds
    expect(page.get_by_text("1 of 12 labels are still needed")).to_be_visible()

    turn_to(page, "Agreement")
    page.locator("summary", has_text="Main figures").click(timeout=60_000)
    expect(page.get_by_role("cell", name="Annotators with one another").first).to_be_visible()
    expect(page.get_by_text("Includes every label so far.")).to_be_visible(timeout=60_000)

    turn_to(page, "Sessions")
    page.get_by_role("button", name="Pause the study").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    people[1].page.reload()
    people[1].page.wait_for_selector(".panel .message")
    assert "The study is paused" in (people[1].page.locator(".message").text_content() or "")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("button", name="Pause the study")).to_be_visible()

    turn_to(page, "Annotators")
    compared = page.get_by_role("region", name="Annotators compared with the others")
    expect(compared.get_by_role("cell", name="anna")).to_be_visible(timeout=60_000)
    chosen = page.get_by_label("A page for one annotator")
    chosen.fill("anna")
    chosen.press("Enter")
    page.get_by_label("Reason, which stands in the report").fill(HOSTILE)
    page.get_by_role("button", name="Exclude").click()
    expect(page.get_by_role("button", name="Readmit")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("cell", name=f"excluded: {HOSTILE}")).to_be_visible()
    people[0].page.reload()
    people[0].page.wait_for_selector(".panel .message")
    assert "Your part in this study is over" in (
        people[0].page.locator(".message").text_content() or ""
    )

    turn_to(page, "Export")
    wanted = ("Ratings", "Decisions of the lead", "Times and pay")
    tables = {name: download(page, name) for name in wanted}
    assert pd.read_csv(io.BytesIO(tables["Times and pay"]))["answers"].tolist() == [6, 5]
    ratings = pd.read_csv(io.BytesIO(tables["Ratings"]))
    assert sorted(ratings["rater_id"].value_counts().to_dict().items()) == [("anna", 6), ("ben", 5)]
    decisions = pd.read_csv(io.BytesIO(tables["Decisions of the lead"]))
    assert decisions["reason"].tolist()[-1] == HOSTILE
    expect(page.get_by_text("Includes every label so far.")).to_be_visible(timeout=60_000)
    report = download(page, "Report (HTML)").decode()
    assert "<img" not in report
    assert json.loads(download(page, "Report (JSON)"))["schema"] == 1
    people[1].page.reload()  # it was there when the study was paused
    people[1].page.wait_for_selector(READY)
    people[1].answer("C")
    expect(page.get_by_text("This report lacks the newest labels.")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Includes every label so far.")).to_be_visible(timeout=60_000)
    turn_to(page, "Log")
    expect(page.get_by_role("cell", name="ratings.csv", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="report.html", exact=True)).to_be_visible()


def download(page: Page, name: str) -> bytes:
    """What a button gives to the lead, and to nobody else who knows the address."""
    with page.expect_download() as started:
        page.get_by_role("button", name=name, exact=True).click()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(started.value.url)  # noqa: S310
    return Path(started.value.path()).read_bytes()


# ---- for everyone -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_fault(new_page, lead, served, axe, scheme):
    page = new_page(f"{served.url}?lead=in", color_scheme=scheme)
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    axe(page, "login")
    page = lead(served, color_scheme=scheme)
    for title, text in PAGES.items():
        turn_to(page, title)
        expect(page.get_by_text(text).first).to_be_visible(timeout=60_000)
        if title == "Annotators":
            expect(page.get_by_role("table").first).to_be_visible(timeout=60_000)
        page.wait_for_selector("[data-test-script-state=notRunning]")
        axe(page, title)
