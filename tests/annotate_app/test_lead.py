"""The lead's pages in a browser: from the link to the export, all who do not get there, the ways
between the pages, and each act once, on a synthetic study of twenty raters.
"""

import random
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.annotate_app.logins import PLACES, place_of
from evenhand.annotate_app.routes import front_page
from evenhand.cli.main import lead_link
from evenhand.rubrics import load_rubric
from evenhand.rubrics.loading import parse_rubric
from evenhand.study import open_study
from evenhand.study.access import invites_table, set_account
from evenhand.study.lead.disagreements import past_decisions
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import remarks
from evenhand.study.tables.ratings import Mark
from evenhand.texts import written
from harness.annotator import READY, SUBJECT, Annotator, arrive
from harness.served import Served
from harness.studies import CODES, SHORTER, mark_words, with_labels
from tests.annotate_app import leading

pytestmark = pytest.mark.browser

PAGES = {
    "Overview": "Ask for a verdict now",
    "Progress": "Labels by rubric",
    "Agreement": "Graders compared with human agreement",
    "Items": "Click an id to read the item.",
    "Annotators": "Show one annotator",
    "Flags": "No flags.",
    "Adjudication": "to adjudicate.",
    "Disagreements": "Why do they differ?",
    "Recruitment": "Make links",
    "Accounts": "Save the account",
    "Log": "Logged actions",
    "Settings": "What you save takes effect at once",
    "Texts": "What annotators read before they start.",
    "Rubrics": "Annotators and graders read the same words",
    "Training and checks": "Practice and questions before annotators start",
    "New study": "What annotators rate",
    "Export": "Active time of each participant, and what is owed.",
}
"""What is read on each of the pages, and on no other, once it is all there."""


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    folder = make_study(30, raters_per_unit=3)
    with open_study(folder) as study:
        for name, role in (("ada", "lead"), ("chair", "expert")):
            set_account(study.store, name, leading.PASSWORD, role)
        given = {"first": "RCLRCLRCLRCLRCLR", "second": "RCLCCLRLLRCRRCLC"}
        given[leading.HOSTILE] = "L" + given["first"][1:]
        units = [f"p{n:04d}|{SUBJECT}" for n in range(1, 17)]
        with_labels(study, given, "shorter", units=units, graders=[leading.HOSTILE], seconds=20.0)
        mark_words(study, "first", Mark("response_b", 0, 8))
    return serve_study(folder)


@pytest.mark.journey
def test_the_link_works_once_and_a_reload_goes_on(new_page, served):
    link = lead_link(served.folder, served.url)
    page = new_page(link)
    leading.inside(page)
    assert page.url == f"{served.url}overview"  # the token has left the address
    page.reload()
    expect(page.get_by_text("Log out")).to_be_visible()
    elsewhere = new_page(link)
    leading.complaint(elsewhere, "This link was used already")
    leading.shut_out(elsewhere)
    page.get_by_role("button", name="Log out").click()
    leading.shut_out(page)
    page.reload()
    leading.shut_out(page)


def test_a_double_click_acts_once(lead, serve):
    served = serve(6, sample=2)
    page = lead(served)
    leading.turn_to(page, "Recruitment")
    leading.fill(page, "More pairs", "2")
    leading.settled(page).get_by_role("button", name="Enlarge the sample").dblclick()
    leading.settled(page).get_by_text("4 of 6 pairs").wait_for()
    leading.settled(page).get_by_role("button", name="Make links").dblclick()
    expect(page.get_by_text("Revoke the links of")).to_be_visible()
    leading.settled(page)
    with open_study(served.folder) as study:
        assert (len(study.store.sample()), len(invites_table(study))) == (4, 1)


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
    leading.turn_to(page, "Progress")
    expect(page.get_by_text("12 of 12 planned labels are missing")).to_be_visible()
    leading.turn_to(page, "Recruitment")
    leading.fill(page, "Annotator codes", "anna")
    leading.press(page, "Make links")
    link = page.get_by_role("row", name="anna open").locator("code").inner_text()
    assert link.startswith(f"{served.url}?")
    leading.press(page, "Make the address for Prolific")
    expect(page.locator("code").first).to_contain_text("&SESSION_ID={{%SESSION_ID%}}")
    invited = new_page(link)
    invited.wait_for_selector(READY)
    people = [Annotator("anna", served, invited), annotator("ben", served)]
    for option in "lrclr":
        for person in people:
            person.answer(option.upper())
    leading.turn_to(page, "Progress")
    expect(page.get_by_text("2 of 12 planned labels are missing")).to_be_visible()
    by_rater = page.get_by_role("region", name="By annotator", exact=True)
    expect(by_rater.get_by_role("cell", name="anna")).to_be_visible()
    # Labels that arrive while the page is looked at show up by themselves.
    people[0].answer("C")
    page.clock.fast_forward("00:10")  # the page asks for news every ten seconds
    expect(page.get_by_text("1 of 12 planned labels are missing")).to_be_visible()
    leading.turn_to(page, "Agreement")
    expect(page.get_by_role("columnheader", name="Annotators with one another")).to_be_visible()
    expect(page.get_by_text("Includes every label so far")).to_be_visible(timeout=60_000)
    leading.turn_to(page, "Recruitment")
    leading.press(page, "Pause the study")
    expect(page.get_by_role("button", name="Resume the study")).to_be_visible()
    message = people[1].page.locator(".panel .message")
    people[1].page.reload()
    expect(message).to_contain_text("The study is paused")
    leading.press(page, "Resume the study")
    expect(page.get_by_role("button", name="Pause the study")).to_be_visible()
    leading.turn_to(page, "Annotators")
    compared = page.get_by_role("region", name="Annotators compared with the others")
    expect(compared.get_by_role("cell", name="anna")).to_be_visible(timeout=60_000)
    leading.choose(page, "Show one annotator", "anna")
    leading.fill(page, "Reason, shown in the report", leading.HOSTILE)
    leading.press(page, "Exclude")
    expect(page.get_by_role("button", name="Readmit")).to_be_visible()
    leading.settled(page).get_by_role("button", name="Clear").click()
    expect(page.get_by_role("cell", name=f"excluded: {leading.HOSTILE}")).to_be_visible()
    people[0].page.reload()
    over = people[0].page.locator(".panel .message")
    expect(over).to_contain_text("Your part in this study is over")
    people[1].page.reload()  # it was there when the study was paused
    people[1].page.wait_for_selector(READY)
    people[1].answer("C")
    expect(page.get_by_role("row", name="ben finished 6")).to_be_visible(timeout=60_000)


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_fault(new_page, lead, served, axe, scheme):
    page = new_page(f"{served.url}?lead=in", color_scheme=scheme)
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    axe(page, "login")
    page = lead(served, color_scheme=scheme)
    for title, text in PAGES.items():
        leading.turn_to(page, title)
        expect(page.get_by_text(text).first).to_be_visible(timeout=60_000)
        if title == "Annotators":
            expect(page.get_by_role("table").first).to_be_visible(timeout=60_000)
        page.wait_for_selector("[data-test-script-state=notRunning]")
        axe(page, title)


def is_at(page: Page, served: Served, title: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.wait_for_url(served.url + place_of(title))
    expect(page.locator("a[aria-current=page]").last).to_have_text(title)


def test_back_reload_and_bookmark_lead_to_the_same_page(lead, new_page, served):
    page = lead(served)
    is_at(page, served, "Overview")
    for title in ("Recruitment", "Settings"):
        page.get_by_role("link", name=title, exact=True).focus()
        page.keyboard.press("Enter")
        is_at(page, served, title)
    assert page.title().startswith("Settings: ")
    page.get_by_role("link", name="Log", exact=True).click()
    is_at(page, served, "Log")
    settings = page.get_by_test_id("stSidebarNav").get_by_role("link", name="Settings")
    expect(settings).to_have_attribute("aria-current", "true")
    for title in ("Settings", "Recruitment"):
        page.go_back()
        is_at(page, served, title)
    page.reload()
    is_at(page, served, "Recruitment")
    kept = new_page(f"{served.url}accounts")  # with a bookmark
    leading.log_in(kept, "ada")
    expect(kept.get_by_role("heading", level=1)).to_have_text("Accounts")
    assert kept.context.cookies()  # without which no file is taken in


def named_to(received: list[bytes]) -> set[str]:
    messages = [ForwardMsg.FromString(each) for each in received]
    assert "delta" in {message.WhichOneof("type") for message in messages}  # the listening works
    lists = [message.navigation.app_pages for message in messages]
    lists += [message.new_session.app_pages for message in messages]
    pages = [page for each in lists for page in each]
    return {name for page in pages for name in (page.page_name, page.url_pathname)} - {""}


def test_a_rater_receives_no_name_of_a_page_and_every_address_begins_with_ours(new_page, served):
    page = new_page("about:blank")
    received = leading.frames_of(page, "framereceived")
    arrive(page, served, "curious")
    assert named_to(received) == set()
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)
    received.clear()
    page.goto(f"{served.url}progress")  # the door says what was asked for, and no more
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    assert named_to(received) == {"progress", written("lead_door.title")}
    for place in PLACES:
        with urllib.request.urlopen(served.url + place) as answer:  # noqa: S310
            assert answer.read().decode() == front_page()


GRADER = "provider:grader"


def test_items_of_least_agreement_are_typeset_before_there_is_a_grader(
    make_study, lead, serve_study
):
    folder = make_study(2, lambda n, side: f"So $x^{n}$.", raters_per_unit=2, display="markdown")
    with open_study(folder) as study:
        units = [f"p{n:04d}|{SUBJECT}" for n in (1, 2)]
        with_labels(study, {"ann": "RL", "ben": "RR"}, "shorter", units=units)
    page = lead(serve_study(folder), "Disagreements")
    page.get_by_role("link", name=units[1]).click(timeout=180_000)
    for after in ("Adjudicate this item →", "Flags"):
        expect(page.locator("math")).to_have_count(2)
        page.get_by_role("link", name=after, exact=True).click()


RATERS = [f"r{n:02d}" for n in range(1, 21)]
CARELESS = "r07"
PAIRS = 80
EACH = 10
"""People on each unit."""


@pytest.fixture(scope="module")
def twenty(make_study, serve_study) -> Served:
    """A synthetic study that twenty raters have labelled, with a grader and flags; the same every
    time."""
    rubrics = [parse_rubric(SHORTER, "shorter.toml"), load_rubric("refusal")]
    folder = make_study(PAIRS, rubrics=rubrics, raters_per_unit=EACH)
    change_config(folder, {"analysis": {"resamples": 200}})  # quick, and no figure is asserted
    with open_study(folder) as study:
        for name in ("chair", "deputy"):
            set_account(study.store, name, leading.PASSWORD, "expert")
        rng = random.Random(3)
        for rubric, options, side in (("shorter", "LRC", ""), ("refusal", "12345", "|a")):
            units = [f"p{n:04d}|{SUBJECT}{side}" for n in range(1, PAIRS + 1)]
            truth = rng.choices(options, k=PAIRS)
            for at, rater in enumerate([*RATERS, GRADER]):
                wrong = 1 if rater == CARELESS else 0.3
                says = [rng.choice(options) if rng.random() < wrong else true for true in truth]
                own = {n for n in range(PAIRS) if (at - n * EACH) % len(RATERS) < EACH}
                labels = [
                    each if rater == GRADER or n in own else "-" for n, each in enumerate(says)
                ]
                about = {"graders": [GRADER], "created_at": "2026-03-02T09:00:00.000+00:00"}
                about["seconds"] = 2.0 if rater == CARELESS else 30.0
                with_labels(study, {rater: labels}, rubric, units=units, **about)
        about = {"kind": "flag", "rubric": "shorter", "order": "ab", "draw": 0}
        about["rubric_hash"] = study.rubrics["shorter"].hash
        with study.store.write() as connection:
            for n, reason in enumerate(("harmful", "unclear_rubric"), start=1):
                flag = {
                    "submit_id": f"flag-{n}",
                    "unit_id": f"p{n:04d}|{SUBJECT}",
                    "text": leading.HOSTILE,
                }
                flag |= {"rater_id": RATERS[n], "reason": reason, "created_at": utc_now()}
                append(connection, remarks, about | flag)
    return serve_study(folder)


def test_the_verdicts_come_first_and_a_look_is_asked_for(lead, twenty):
    page = lead(twenty)
    expect(page.get_by_text("Computing the figures:")).to_be_visible()  # no long silence
    graders = page.get_by_role("row", name=GRADER)
    expect(graders).to_contain_text("? Inconclusive", timeout=180_000)
    expect(page.locator(".evenhand-advice").first).to_contain_text("No grader")
    expect(page.get_by_text("Annotators to review: 1")).to_be_visible()
    expect(page.get_by_text("Open flags: 2")).to_be_visible()
    unseen = "labels came in since the last report"
    expect(graders).to_contain_text(unseen)
    leading.press(page, "Ask for a verdict now")
    expect(page.get_by_text(unseen)).to_have_count(0, timeout=180_000)
    leading.turn_to(leading.settled(page), "Open flags: 2")
    expect(page.get_by_text("2 open")).to_be_visible()
    expect(page.get_by_text(leading.HOSTILE)).to_have_count(2)
    expect(page.locator("a[aria-current=page]")).to_have_text("Flags")


@pytest.mark.thorough
def test_two_adjudicators_work_by_keyboard_and_the_second_is_told(new_page, twenty):
    chair, deputy = (new_page(f"{twenty.url}?lead=in") for _ in range(2))
    for page, name in ((chair, "chair"), (deputy, "deputy")):
        leading.log_in(page, name)
        expect(page.get_by_text("to adjudicate.")).to_be_visible()
    first = leading.shown(chair)
    leading.shown(deputy)
    leading.settled(chair).keyboard.press("3")
    expect(chair.get_by_role("radio", checked=True)).to_have_count(1)
    chair.keyboard.press("Enter")
    expect(chair.get_by_role("alert")).to_have_text("A decision needs a reason.")
    chair.keyboard.type("so it s 1")  # in the field, keys are only text
    chair.keyboard.press("Enter")
    passed = leading.shown(chair, other_than=first)
    leading.settled(chair).keyboard.press("q")
    expect(chair.get_by_label("Your reason")).to_have_value("The rubric says so")
    expect(chair.get_by_role("cell", name="so it s 1")).to_be_visible()
    leading.settled(chair).keyboard.press("s")
    assert leading.shown(chair, other_than=passed) != first
    leading.choose(chair, "Revise a decision of yours", "No. 1")
    leading.press(chair, "Open it again")
    expect(chair.get_by_text("because: so it s 1")).to_be_visible()
    assert leading.shown(chair) == first
    leading.settled(chair).keyboard.press("1")
    expect(chair.get_by_role("radio", checked=True)).to_have_count(1)
    leading.fill(chair, "Your reason", "read once more")
    leading.press(chair, "Save decision Enter")
    expect(chair.get_by_role("cell", name="read once more")).to_be_visible()
    with open_study(twenty.folder) as study:
        (decision,) = past_decisions(study).to_dict("records")
        assert decision["label"] == study.rubrics[decision["rubric"]].categories[0]
    seen = chair.locator(".st-key-lead").inner_text()
    assert not any(name in seen for name in (*RATERS, SUBJECT, GRADER))


def test_a_study_of_a_files_rows_is_made_without_a_terminal(lead, twenty, tmp_path):
    page = lead(twenty)
    file = tmp_path / "answers.csv"
    rows = [f"Sum of {n},It is {2 * n}.,m{n % 2},{'yes' if n % 3 else 'no'}" for n in range(9)]
    file.write_text("\n".join(["task,said,model,verdict", *rows]))
    leading.turn_to(leading.settled(page), "New study")
    leading.upload(page, file)
    # What is not clear is asked for by the name of a field, not of an option of a command.
    leading.complaint(page, "with “Columns that annotators read, in this order”.", timeout=90_000)
    for column in ("task", "said"):
        leading.choose(page, "Columns that annotators read, in this order", column)
    page.keyboard.press("Escape")
    leading.choose(page, "A grader's labels, which annotators never see", "verdict")
    for row in (
        "said It is 0. read by annotators, the response",
        "model m0 the subject (model under test)",
        "verdict no a grader's label, hidden from annotators",
    ):
        expect(leading.settled(page).get_by_role("row", name=row, exact=True)).to_be_visible(
            timeout=90_000
        )
    leading.fill(page, "Name of the study", "sums")
    leading.fill(page, "Question", "Is it right?")
    leading.settled(page).get_by_role("radio", name="A number", exact=True).click()
    leading.fill(page, "Lowest and highest number", "yes")
    leading.press(page, "Preview")
    leading.complaint(page, "“Lowest and highest number, such as 1-5” is 'yes'", timeout=90_000)
    leading.settled(page).get_by_role("radio", name="One answer", exact=True).click()
    leading.fill(page, "Answers, one per line", f"yes: {leading.HOSTILE}\nno")
    leading.press(page, "Preview")
    expect(page.get_by_text("9 of 9 items would be sampled.")).to_be_visible(timeout=90_000)
    expect(page.locator(".st-key-preview")).to_contain_text(leading.HOSTILE)
    made = twenty.folder.parent / "sums"
    assert not made.exists()
    leading.fill(page, "Name of the study", "../elsewhere")
    leading.press(page, "Create the study")
    leading.complaint(page, "A study's name is", timeout=90_000)
    leading.fill(page, "Name of the study", "sums")
    leading.press(page, "Create the study")
    expect(page.get_by_text("Created sums next to this study.")).to_be_visible(timeout=90_000)
    with open_study(made) as study:
        assert len(study.store.sample()) == 9
        assert study.rubrics["rating"].options[0].description == leading.HOSTILE
        assert set(study.ratings()["rater_kind"]) == {"model"}  # the judge's, whom nobody sees
