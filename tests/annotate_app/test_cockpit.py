"""Each act of the lead's pages once, in a browser, on a synthetic study of twenty raters."""

import pytest
from playwright.sync_api import Page, expect

from evenhand.rubrics.loading import rubric_text
from evenhand.study import open_study
from evenhand.study.desk.claims import oversight
from evenhand.study.lead.disagreements import (
    adjudication_queue,
    decide,
    open_next,
    past_decisions,
    raised_flags,
)
from harness.annotator import SUBJECT
from harness.served import Served
from tests.annotate_app.leading import (
    HOSTILE,
    PASSWORD,
    choose,
    complaint,
    fill,
    log_in,
    press,
    shown,
    turn_to,
    upload,
)
from tests.annotate_app.participants import settled
from tests.annotate_app.twenty_raters import CARELESS, GRADER, PARTICIPANT, RATERS, twenty_raters

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture(scope="module")
def served(tmp_path_factory, serve_study) -> Served:
    return serve_study(twenty_raters(tmp_path_factory.mktemp("twenty")))


@pytest.fixture
def page(lead, served):
    """The lead's first page."""
    return lead(served)


@pytest.fixture
def expert(new_page, served):
    def come_in(name: str) -> Page:
        page = new_page(f"{served.url}?lead=in")
        log_in(page, name)
        expect(page.get_by_text("to adjudicate.")).to_be_visible()
        return page

    return come_in


# ---- looking ------------------------------------------------------------------------------------


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
    expect(page.locator("a[aria-current=page]")).to_have_text("Flags")


def test_every_number_of_the_first_page_leads_to_its_rows(page):
    step = page.locator(".st-key-next-step")
    tiles = page.locator("[class*=st-key-tile-]")
    expect(tiles.first).to_contain_text("1,600 of 2,400 labels")
    expect(tiles.nth(1)).to_contain_text("Nobody has labelled in the last 24 hours")
    answers = {
        "1,600 of 2,400 labels": "Progress",
        "Annotators: 1": "Annotators",
        "Not yet": "Log",
    }
    for answer, title in answers.items():
        page.get_by_role("link", name=answer).click(timeout=180_000)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        turn_to(page, "Overview")  # how browsers go back is in test_lead_ways
        expect(page.locator("a[aria-current=page]")).to_have_text("Overview")
    step.get_by_role("link", name=f"Look at the work of {CARELESS}").click(timeout=180_000)
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    page.wait_for_url(f"**/annotators?one_rater={CARELESS}")
    page.reload()
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()


def test_agreement(page):
    turn_to(page, "Agreement")
    # The report's forest plots, one for each reading of each rubric, use all of a wide page.
    page.set_viewport_size({"width": 2560, "height": 1440})
    drawn = page.get_by_role("img", name="Kappa")
    expect(drawn).to_have_count(4, timeout=180_000)
    assert len(set(drawn.evaluate_all("each => each.map(({ offsetTop }) => offsetTop)"))) == 1
    assert all(drawn.evaluate_all("each => each.map(({ naturalWidth }) => naturalWidth > 100)"))
    turn_to(page, "Settings")
    expect(page.get_by_label("Annotators per item")).to_have_value("10")


# ---- raters and what they flagged ---------------------------------------------------------------


def test_the_flagged_rater_stands_first_and_has_a_page(page, served):
    turn_to(page, "Annotators")
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{CARELESS} ", use_inner_text=True, timeout=180_000)
    choose(page, "A page for one annotator", CARELESS)
    expect(page.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    expect(page.get_by_role("table", name="Refusal")).to_be_visible()
    page.get_by_text("Latest answers").first.click()
    expect(page.get_by_role("cell", name=f"p0080|{SUBJECT}|a")).to_be_visible()
    fill(page, "Reason, which stands in the report", HOSTILE)
    press(page, "Exclude")
    expect(page.get_by_role("button", name="Readmit")).to_be_visible()
    with open_study(served.folder) as study:
        assert oversight(study.store).exclusions[CARELESS].reason == HOSTILE


def test_a_flag_is_dealt_with(page, served):
    turn_to(page, "Flags")
    expect(page.get_by_text("2 open, 0 dealt with.")).to_be_visible()
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    settled(page).get_by_text("The item", exact=True).last.click()
    expect(page.get_by_text("Prompt 2, side a.").last).to_be_visible()
    page.get_by_label("What was done about it").last.fill("Explained in the instructions.")
    page.get_by_role("button", name="Mark as dealt with").last.click()
    expect(page.get_by_text("1 open, 1 dealt with.")).to_be_visible()
    expect(page.get_by_text("UTC: Explained in the instructions.")).to_be_visible()
    with open_study(served.folder) as study:
        assert [flag.is_open for flag in raised_flags(study)] == [True, False]


# ---- adjudication -------------------------------------------------------------------------------


def test_two_adjudicators_work_by_keyboard_and_never_meet(expert, served):
    chair, deputy = (expert(name) for name in ("chair", "deputy"))
    first, second = shown(chair), shown(deputy)
    assert first != second

    chair.keyboard.press("3")
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
    chair.keyboard.press("s")
    assert shown(chair, other_than=passed) not in (first, second)

    choose(chair, "Revise a decision of yours", "No. 1")
    press(chair, "Open it again")
    expect(chair.get_by_text("because: so it s 1")).to_be_visible()
    assert shown(chair) == first
    chair.keyboard.press("1")
    fill(chair, "Your reason", "read once more")
    press(chair, "Save decision Enter")
    expect(chair.get_by_role("cell", name="read once more")).to_be_visible()
    with open_study(served.folder) as study:
        (decision,) = past_decisions(study).to_dict("records")
        assert decision["label"] == study.rubrics[decision["rubric"]].categories[0]
    seen = chair.locator(".st-key-lead").inner_text()
    assert not any(name in seen for name in (*RATERS, SUBJECT, GRADER))


def test_who_decides_second_is_told_of_the_first(expert, served):
    chair = expert("chair")
    shown(chair)
    with open_study(served.folder) as study:
        unit, _ = open_next(study, "chair")
        decide(study, "ghost", *unit.key, study.rubrics[unit.rubric].categories[0], "at once")
    settled(chair).keyboard.press("2")
    fill(chair, "Your reason", "later")
    press(chair, "Save decision Enter")
    expect(chair.get_by_text("ghost has decided this item meanwhile")).to_be_visible()


def test_a_decision_is_kept_where_the_page_is_left_at_once(page, served):
    with open_study(served.folder) as study:
        unit = adjudication_queue(study)[-1].unit_id
    page.goto(f"{served.url}items?item={unit}")
    page.get_by_role("link", name="Adjudicate this item").first.click()
    shown(page)
    settled(page).keyboard.press("2")
    expect(page.locator(".option input:checked")).to_have_count(1)
    fill(page, "Your reason", "left at once")
    store = settled(page).get_by_role("button", name="Save decision Enter").element_handle()
    leave = page.get_by_role("link", name="Flags", exact=True).element_handle()
    clicks = "([store, leave]) => { store.click(); setTimeout(() => leave.click(), 150); }"
    page.evaluate(clicks, [store, leave])
    expect(page.get_by_text("open, 1 dealt with.")).to_be_visible()
    with open_study(served.folder) as study:
        decided = past_decisions(study, "lead")[["unit_id", "reason"]]
        assert decided.values.tolist() == [[unit, "left at once"]]


# ---- managing -----------------------------------------------------------------------------------


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
    rows = [
        f"Sum of {n} and {n},It is {2 * n}.,m{n % 2},{'yes' if n % 3 else 'no'}" for n in range(9)
    ]
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
        "task Sum of 0 and 0 read by annotators",
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


def test_two_answers_are_compared_by_a_rubric_of_the_leads_own(page, served, tmp_path):
    file, rubric = tmp_path / "two.csv", tmp_path / "mine.toml"
    rows = [f"Task {n},One {n},Other {n}" for n in range(5)]
    file.write_text("\n".join(["prompt,response_a,response_b", *rows]))
    rubric.write_text(rubric_text("preference").replace('name = "preference"', 'name = "kinder"'))
    turn_to(page, "New study")
    settled(page).get_by_text("Two answers, side by side: which is better").click()
    expect(page.get_by_text("Steps from one answer to the other")).to_be_visible()
    upload(page, file)
    row = page.get_by_role(
        "row", name="response_b Other 0 read by annotators, one of the two answers"
    )
    expect(row).to_be_visible(timeout=90_000)
    settled(page).get_by_text("The file of a rubric").click()
    upload(page, rubric, 1)
    expect(page.get_by_text("mine.toml")).to_be_visible()
    fill(page, "Name of the study", "kinder")
    press(page, "Create the study")
    expect(page.get_by_text("Created kinder next to this study.")).to_be_visible(timeout=90_000)
    with open_study(served.folder.parent / "kinder") as study:
        assert list(study.rubrics) == ["kinder"]
