"""Each act of the lead's pages once, in a browser, on a synthetic study of twenty raters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from evenhand.cli.lead import lead_link
from evenhand.rubrics.loading import rubric_text
from evenhand.study import open_study
from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.adjudication import (
    adjudication_queue,
    give_back,
    past_decisions,
    take_over,
)
from evenhand.study.lead.flags import raised_flags
from harness.annotator import SUBJECT
from harness.served import Served
from harness.studies import write_pairs, write_responses
from tests.annotate_app.participants import settled
from tests.annotate_app.twenty_raters import (
    CARELESS,
    GRADER,
    HOSTILE,
    PARTICIPANT,
    PASSWORD,
    RATERS,
    twenty_raters,
)

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, serve_study: Callable[[Path], Served]
) -> Served:
    return serve_study(twenty_raters(tmp_path_factory.mktemp("twenty")))


@pytest.fixture
def lead(new_context: Callable[..., BrowserContext], served: Served) -> Iterator[Page]:
    page = new_context().new_page()
    outside: list[str] = []
    page.on("request", lambda r: outside.append(r.url) if served.url not in r.url else None)
    page.goto(lead_link(served.folder, served.url))
    expect(page.get_by_text("Log out")).to_be_visible()
    yield page
    assert not outside
    assert page.title() != "1"


def turn_to(page: Page, title: str) -> None:
    page.get_by_role("link", name=title, exact=True).click()


def choose(page: Page, label: str, option: str) -> None:
    """Typed and taken with Enter: the list holds only the options in view, and hangs where a
    mouse may not reach it when the field stands at the page's end."""
    field = settled(page).get_by_role("combobox", name=label, exact=True)
    field.click()
    field.fill(option)
    expect(page.locator("[role=option][data-focused=true]")).to_contain_text(option)
    field.press("Enter")


def fill(page: Page, label: str, text: str) -> None:
    settled(page).get_by_label(label).fill(text)


def press(page: Page, button: str) -> None:
    settled(page).get_by_role("button", name=button, exact=True).click()


def expert(new_context: Callable[..., BrowserContext], served: Served, name: str) -> Page:
    page = new_context().new_page()
    page.goto(f"{served.url}?lead=in")
    fill(page, "Name", name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    press(page, "Log in")
    expect(page.get_by_text("to adjudicate.")).to_be_visible()
    return page


def shown(page: Page, other_than: str = "") -> str:
    """The rubric and the first text of the unit on the page, once it is not the one before."""
    decision, text = page.locator(".st-key-decision h2"), page.locator(".evenhand-quote").first
    for _ in range(100):
        # While the page is drawn anew, the unit before and the next stand there side by side.
        unit = "" if decision.count() > 1 else f"{decision.inner_text()}: {text.inner_text()}"
        if unit not in ("", other_than):
            return unit
        page.wait_for_timeout(50)
    pytest.fail(f"still {other_than}")


# ---- looking ------------------------------------------------------------------------------------


def test_the_verdicts_come_first_and_a_look_is_asked_for(lead):
    expect(lead.get_by_text("Working on the figures:")).to_be_visible()  # no long silence
    cards = lead.locator(".evenhand-card")
    expect(cards).to_have_count(2, timeout=180_000)
    expect(cards.first).to_contain_text("? Cannot tell")
    expect(cards.first).to_contain_text(GRADER)
    expect(lead.get_by_text("Raters who deserve a second look: 1")).to_be_visible()
    expect(lead.get_by_text("Flags that nobody has dealt with: 2")).to_be_visible()
    entered = lead.locator(".evenhand-figures a").first
    expect(entered).to_have_attribute("href", "progress")  # every number leads to its rows
    unseen = "Why: labels came in since the last report."
    expect(cards.first).to_contain_text(unseen)
    press(lead, "Ask for a verdict now")
    expect(lead.get_by_text(unseen)).to_have_count(0, timeout=180_000)
    expect(cards).to_have_count(2)
    lead.get_by_role("link", name="Flags that nobody has dealt with: 2").click()
    expect(lead.get_by_text("2 open")).to_be_visible()
    expect(lead.locator("a[aria-current=page]")).to_have_text("Flags")


def test_every_number_of_the_first_page_leads_to_its_rows(lead):
    step = lead.locator(".st-key-next-step")
    tiles = lead.locator("[class*=st-key-tile-]")
    expect(tiles.first).to_contain_text("1600 of 2400 labels")
    expect(tiles.nth(1)).to_contain_text("Nobody has labelled in the last 24 hours")
    answers = {
        "1600 of 2400 labels": "Progress",
        "Raters: 1": "Raters",
        re.compile("^. of 2 verdicts$"): "Agreement",
        "Not yet": "Log",
    }
    for answer, title in answers.items():
        lead.get_by_role("link", name=answer).click(timeout=180_000)
        expect(lead.locator("a[aria-current=page]")).to_have_text(title)
        turn_to(lead, "Overview")  # how browsers go back is in test_lead_ways
        expect(lead.locator("a[aria-current=page]")).to_have_text("Overview")
    step.get_by_role("link", name=f"Look at the work of {CARELESS}").click(timeout=180_000)
    expect(lead.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    lead.wait_for_url(f"**/raters?one_rater={CARELESS}")
    lead.reload()
    expect(lead.get_by_role("heading", name="Confusions with the others")).to_be_visible()


def test_the_funnel_and_the_labels_over_time(lead):
    turn_to(lead, "Progress")
    figures = lead.locator(".evenhand-figures div")
    expect(figures).to_have_text(
        [
            "Entered22",
            "Consented20",
            "Passed all steps before the first unit20",
            "Working20",
            "Done0",
            "Left or sent away1",
            "Excluded0",
        ]
    )
    expect(lead.get_by_role("heading", name="Labels by the day")).to_be_visible()
    turn_to(lead, "Agreement")
    # The report's forest plots, one for each reading of each rubric, use all of a wide page.
    lead.set_viewport_size({"width": 2560, "height": 1440})
    drawn = lead.get_by_role("img", name="Kappa")
    expect(drawn).to_have_count(4, timeout=180_000)
    assert len(set(drawn.evaluate_all("each => each.map(({ offsetTop }) => offsetTop)"))) == 1
    assert all(drawn.evaluate_all("each => each.map(({ naturalWidth }) => naturalWidth > 100)"))
    folded = lead.locator("summary", has_text="People's kappa with 95% intervals, as labels")
    folded.click(timeout=180_000)
    course = lead.get_by_role("table", name="People's kappa with 95% intervals, as labels")
    expect(course.get_by_role("row")).to_have_count(1 + 2 * 6, timeout=180_000)
    turn_to(lead, "Settings")
    expect(lead.get_by_label("Raters per unit")).to_have_value("10")


# ---- raters and what they flagged ---------------------------------------------------------------


def test_the_flagged_rater_stands_first_and_has_a_page(lead, served):
    turn_to(lead, "Raters")
    row = lead.get_by_role("row").nth(1)
    expect(row).to_contain_text(f"{CARELESS} ", use_inner_text=True, timeout=180_000)
    choose(lead, "A page for one rater", CARELESS)
    expect(lead.get_by_text("Deserves a second look: takes")).to_be_visible()
    expect(lead.get_by_role("heading", name="Confusions with the others")).to_be_visible()
    expect(lead.get_by_role("table", name="Refusal")).to_be_visible()
    lead.get_by_text("Latest answers").first.click()
    expect(lead.get_by_role("cell", name=f"p0080|{SUBJECT}|a")).to_be_visible()
    fill(lead, "Reason, which stands in the report", HOSTILE)
    press(lead, "Exclude")
    expect(lead.get_by_role("button", name="Readmit")).to_be_visible()
    with open_study(served.folder) as study:
        assert oversight(study.store).exclusions[CARELESS].reason == HOSTILE


def test_a_flag_is_dealt_with(lead, served):
    turn_to(lead, "Flags")
    expect(lead.get_by_text("2 open, 0 dealt with.")).to_be_visible()
    expect(lead.get_by_text(HOSTILE)).to_be_visible()
    choose(lead, "Reason", "The rubric is unclear")
    expect(lead.get_by_text(HOSTILE)).to_have_count(0)
    unit = lead.get_by_text("The unit", exact=True)
    expect(unit).to_have_count(1)  # that of the other flag has left the page
    unit.click()
    expect(lead.get_by_text("Prompt 2, side a.")).to_be_visible()
    fill(lead, "What was done about it", "Explained in the instructions.")
    press(lead, "Mark as dealt with")
    expect(lead.get_by_text("1 open, 1 dealt with.")).to_be_visible()
    expect(lead.get_by_text("UTC: Explained in the instructions.")).to_be_visible()
    with open_study(served.folder) as study:
        assert [flag.is_open for flag in raised_flags(study)] == [True, False]


# ---- adjudication -------------------------------------------------------------------------------


def test_two_adjudicators_work_by_keyboard_and_never_meet(new_context, served):
    chair, deputy = (expert(new_context, served, name) for name in ("chair", "deputy"))
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
    expect(chair.get_by_role("cell", name="so it s 1")).to_be_visible()
    chair.keyboard.press("s")
    assert shown(chair, other_than=passed) not in (first, second)

    choose(chair, "Revise a decision of yours", "No. 1")
    press(chair, "Open it again")
    expect(chair.get_by_text("because: so it s 1")).to_be_visible()
    assert shown(chair) == first
    chair.keyboard.press("1")
    fill(chair, "Your reason", "read once more")
    press(chair, "Store the decision Enter")
    expect(chair.get_by_role("cell", name="read once more")).to_be_visible()
    with open_study(served.folder) as study:
        (decision,) = past_decisions(study).to_dict("records")
        assert decision["label"] == study.rubrics[decision["rubric"]].categories[0]
    choose(chair, "Rubric", "Refusal")
    expect(chair.get_by_role("heading", name="Refusal")).to_be_visible()
    seen = chair.locator(".st-key-lead").inner_text()
    assert not any(name in seen for name in (*RATERS, SUBJECT, GRADER))


def test_a_unit_stays_with_its_person_and_can_be_taken_over(new_context, served):
    first = shown(expert(new_context, served, "chair"))
    again = expert(new_context, served, "chair")  # who has logged in anew
    assert shown(again) == first
    with open_study(served.folder) as study:
        units = [unit.key for unit in adjudication_queue(study)]
        for number, unit in enumerate(units):
            take_over(study.store, f"ghost{number}", unit)
    again.reload()
    expect(again.get_by_text("ghost0 has had one open since")).to_be_visible()
    press(again, "Take over from ghost0")
    shown(again)
    expect(again.get_by_text("ghost0 has had one open since")).to_have_count(0)
    with open_study(served.folder) as study:
        for number in range(len(units)):
            give_back(study.store, f"ghost{number}")


def test_a_decision_is_kept_where_the_page_is_left_at_once(lead, served):
    turn_to(lead, "Adjudication")
    shown(lead)
    settled(lead).keyboard.press("2")
    expect(lead.locator(".option input:checked")).to_have_count(1)
    fill(lead, "Your reason", "left at once")
    store = settled(lead).get_by_role("button", name="Store the decision Enter").element_handle()
    leave = lead.get_by_role("link", name="Flags", exact=True).element_handle()
    clicks = "([store, leave]) => { store.click(); setTimeout(() => leave.click(), 150); }"
    lead.evaluate(clicks, [store, leave])
    expect(lead.get_by_role("combobox", name="Reason", exact=True)).to_be_visible()
    with open_study(served.folder) as study:
        assert past_decisions(study, "lead")["reason"].tolist() == ["left at once"]


# ---- managing -----------------------------------------------------------------------------------


def test_links_accounts_and_places(lead, served, tmp_path):
    turn_to(lead, "Sessions")
    fill(lead, "Rater codes", "anna")
    press(lead, "Make links")
    link = lead.locator("code").inner_text().split()[1]
    choose(lead, "Revoke the links of", "anna")
    press(lead, "Revoke")
    expect(lead.get_by_text("Links revoked: 1.")).to_be_visible()
    fill(lead, "Rater code or participant id", "r05")
    press(lead, "Change the place")
    expect(lead.get_by_text("r05: 0 places given back.")).to_be_visible()
    submissions = tmp_path / "submissions.csv"
    submissions.write_text(f"Participant id,Status\n{PARTICIPANT},RETURNED\n", "utf-8")
    settled(lead).locator("input[type=file]").set_input_files(submissions)
    expect(lead.get_by_text("submissions.csv")).to_be_visible()
    press(lead, "Take in the list")
    expect(lead.get_by_text("r06: 0 places given back.")).to_be_visible()

    turn_to(lead, "Accounts")
    fill(lead, "Name", "third")
    fill(lead, "Password (at", "too short")
    press(lead, "Save the account")
    expect(lead.locator(".evenhand-complaint")).to_contain_text("A password has 10 to 200")
    fill(lead, "Name", "third")
    fill(lead, "Password (at", PASSWORD)
    press(lead, "Save the account")
    expect(lead.get_by_text("third can log in as expert.")).to_be_visible()
    choose(lead, "Account", "third")
    press(lead, "End it")
    expect(lead.get_by_text("third can no longer log in.")).to_be_visible()

    lead.goto(link)
    expect(lead.locator(".evenhand-complaint")).to_contain_text("This link was revoked")


def test_a_new_study_is_looked_at_and_made(lead, served, tmp_path):
    turn_to(lead, "New study")
    settled(lead).get_by_text("Paired prompts", exact=True).click()
    expect(lead.get_by_text("Pairs of prompts")).to_be_visible()
    fill(lead, "Name of the study", "../elsewhere")
    press(lead, "See what it means")
    expect(lead.locator(".evenhand-complaint")).to_have_text("Upload a file of pairs.")
    for at, file in enumerate(
        (write_pairs(tmp_path / "pairs.csv"), write_responses(tmp_path / "said.jsonl"))
    ):
        lead.locator("input[type=file]").nth(at).set_input_files(file)
        expect(lead.get_by_text(file.name)).to_be_visible()
    choose(lead, "Rubrics", "refusal")
    fill(lead, "Pairs to label", "4")
    press(lead, "See what it means")
    expect(lead.get_by_text("4 of 6 pairs would be sampled.")).to_be_visible(timeout=90_000)
    expect(lead.get_by_role("row", name="refusal 16 3 48")).to_be_visible()
    press(lead, "Create the study")
    expect(lead.locator(".evenhand-complaint")).to_contain_text("A study's name is", timeout=90_000)
    fill(lead, "Name of the study", "second")
    press(lead, "Create the study")
    expect(lead.get_by_text("Created second beside this study.")).to_be_visible(timeout=90_000)
    with open_study(served.folder.parent / "second") as study:
        assert len(study.store.sample()) == 4


def test_a_study_of_a_files_rows_is_made_without_a_terminal(lead, served, tmp_path):
    file = tmp_path / "answers.csv"
    rows = [
        f"Sum of {n} and {n},It is {2 * n}.,m{n % 2},{'yes' if n % 3 else 'no'}" for n in range(9)
    ]
    file.write_text("\n".join(["task,said,model,verdict", *rows]))
    turn_to(lead, "New study")
    settled(lead).locator("input[type=file]").first.set_input_files(file)
    # What is not clear is asked for by the name of a field, not of an option of a command.
    complaint = lead.locator(".evenhand-complaint")
    expect(complaint).to_contain_text("Answers.csv: none of the columns task", timeout=90_000)
    expect(complaint).to_contain_text("with “What raters read, in this order”.")
    for column in ("task", "said"):
        choose(lead, "What raters read, in this order", column)
    lead.keyboard.press("Escape")
    choose(lead, "A judge's labels, which raters never see", "verdict")
    for row in (
        "task Sum of 0 and 0 read by raters",
        "said It is 0. read by raters, the response",
        "model m0 who answered",
        "verdict no a judge's label, hidden from raters",
    ):
        expect(settled(lead).get_by_role("row", name=row, exact=True)).to_be_visible(timeout=90_000)
    fill(lead, "Name of the study", "sums")
    choose(lead, "Rubrics", "correctness")  # one for items
    lead.keyboard.press("Escape")
    fill(lead, "Or a question of your own", "Is it right?")
    press(lead, "See what it means")
    expect(complaint).to_contain_text("“Or a question of your own”", timeout=90_000)
    settled(lead).get_by_role("button", name="Clear all").last.click()
    fill(lead, "Or its scale", "yes")
    press(lead, "See what it means")
    expect(complaint).to_contain_text(
        "“Or its scale, such as 1-5 or 0-100” is 'yes'", timeout=90_000
    )
    fill(lead, "Or its scale", "")
    fill(lead, "Its answers", "yes, no")
    press(lead, "See what it means")
    expect(lead.get_by_text("9 of 9 items would be sampled.")).to_be_visible(timeout=90_000)
    assert not (served.folder.parent / "sums").exists()
    press(lead, "Create the study")
    expect(lead.get_by_text("Created sums beside this study.")).to_be_visible(timeout=90_000)
    with open_study(served.folder.parent / "sums") as study:
        assert len(study.store.sample()) == 9
        assert set(study.ratings()["rater_kind"]) == {"model"}  # the judge's, whom nobody sees


def test_two_answers_are_compared_by_a_rubric_of_the_leads_own(lead, served, tmp_path):
    file, rubric = tmp_path / "two.csv", tmp_path / "mine.toml"
    rows = [f"Task {n},One {n},Other {n}" for n in range(5)]
    file.write_text("\n".join(["prompt,response_a,response_b", *rows]))
    rubric.write_text(rubric_text("preference").replace('name = "preference"', 'name = "kinder"'))
    turn_to(lead, "New study")
    settled(lead).get_by_text("Two answers, side by side: which is better").click()
    expect(lead.get_by_text("Steps from one answer to the other")).to_be_visible()
    settled(lead).locator("input[type=file]").first.set_input_files(file)
    row = lead.get_by_role("row", name="response_b Other 0 read by raters, one of the two answers")
    expect(row).to_be_visible(timeout=90_000)
    settled(lead).locator("input[type=file]").nth(1).set_input_files(rubric)
    expect(lead.get_by_text("mine.toml")).to_be_visible()
    fill(lead, "Name of the study", "kinder")
    press(lead, "Create the study")
    expect(lead.get_by_text("Created kinder beside this study.")).to_be_visible(timeout=90_000)
    with open_study(served.folder.parent / "kinder") as study:
        assert list(study.rubrics) == ["kinder"]
