"""Whole sessions in a real browser: from the link to the completion code, and every other end."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evenhand.study import open_study
from evenhand.study.desk.claims import attention_results
from evenhand.study.session.sessions import Sessions
from evenhand.study.session.times import raters_table, session_times
from tests.annotate_app.participants import (
    COMPLETE,
    LONG,
    answer_shorter,
    check_comprehension,
    go_on,
    heading,
    participant,
    prolific_id,
    rater_of,
    to_comprehension,
)

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("mode", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_from_prolifics_link_to_the_completion_code(new_context, crowd, axe, mode):
    name = f"p{mode}"
    width = {"light": 1280, "dark": 390}[mode]
    page = new_context(color_scheme=mode, viewport={"width": width, "height": 844}).new_page()
    page.goto(crowd.url + participant(crowd.folder, name))
    heading(page, "Before you begin")
    assert "pass=" in page.url
    assert prolific_id(name) not in page.url  # the participant's id has left the address
    page.get_by_text("Some texts are <b>harsh</b>.").wait_for()
    axe(page, "welcome")
    go_on(page)
    heading(page, "Your consent")
    axe(page, "consent")
    page.reload()
    page.get_by_role("button", name="I agree and want to take part").click()
    heading(page, "Length")
    page.get_by_text("The response on the left is shorter.").wait_for()
    axe(page, "rubric")
    go_on(page)
    page.get_by_text("Practice: after each answer").wait_for()
    answer_shorter(page, wrong=True)
    page.get_by_text("That is not right.").wait_for()
    page.get_by_text("The right answer: Response B").wait_for()
    page.get_by_text("One word is shorter than many.").wait_for()
    axe(page, "feedback")
    page.reload()
    page.get_by_text("That is not right.").wait_for()
    go_on(page)
    page.wait_for_selector(".panel .option")  # the pass mark was missed: once more
    answer_shorter(page)
    page.get_by_text("That is right.").wait_for()
    go_on(page)
    heading(page, "A few questions about the task")
    page.get_by_text("What is compared? :rocket: :red[x] $x^2$ <b>y</b> `z` ~~0~~").wait_for()
    axe(page, "comprehension")
    page.get_by_role("button", name="Check my answers").click()
    page.get_by_text("Please answer every question.").wait_for()
    check_comprehension(page, "Who wrote them")
    page.get_by_text("1 chance is left").wait_for()
    page.get_by_text("It is length alone that counts.").wait_for()
    check_comprehension(page, "The length of *both* responses")
    heading(page, "About you")
    axe(page, "background")
    page.get_by_role("button", name="Skip these questions").click()
    page.wait_for_selector(".panel .option")
    checks = 0
    for done in range(1, 5):
        checks += LONG.strip() in page.locator(".material").inner_text()
        assert not page.locator(".who a").is_visible()
        answer_shorter(page)
        page.locator(".count", has_text=f"{done} of 4").wait_for()
        expect(page.locator(".finish")).to_have_count(
            int(done == 4)
        )  # the code is not there before
        if done == 2:
            page.reload()
            page.wait_for_selector(".panel .option")
    assert checks == 1
    back = page.get_by_role("link", name="Return to Prolific")
    assert back.get_attribute("href") == f"{COMPLETE}DONE1"
    assert page.locator(".code").inner_text().endswith("enter this code at Prolific: DONE1")
    assert _copied(page) == "DONE1"
    axe(page, "end")
    _check_store(crowd.folder, rater_of(crowd.folder, name))


def _copied(page: Page) -> str:
    """What the button copies in a browser that lets no page write to the clipboard."""
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject('not allowed'); }")
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_text("Copied.").wait_for()
    page.context.grant_permissions(["clipboard-read"])
    return str(page.evaluate("navigator.clipboard.readText()"))


def _check_store(folder: Path, rater: str) -> None:
    with open_study(folder) as study:
        ratings = study.ratings()
        own = ratings[ratings["rater_id"] == rater]
        assert len(own) == 3  # neither the practice nor the check is among them
        assert own["unit_id"].nunique() == 3
        results = attention_results(study)
        assert results.loc[results["rater_id"] == rater, "passed"].tolist() == [True]
        assert rater not in set(raters_table(study)["rater_id"])  # skipped
        times = session_times(study, Sessions(study)).set_index("rater_id").loc[rater]
    assert (times["state"], times["units"]) == ("complete", 3)
    assert 0 < times["active_seconds"] < 120


@pytest.mark.thorough
def test_every_step_can_be_done_by_keyboard(new_context, crowd):
    page = new_context().new_page()
    page.goto(crowd.url + participant(crowd.folder, "keys"))

    def press(name: str, key: str = "Enter") -> None:
        for _ in range(60):  # a page that is still being drawn takes the focus away again
            page.keyboard.press("Tab")
            page.wait_for_timeout(20)
            said = page.evaluate(
                "() => document.activeElement.matches('button, a, input')"
                " ? document.activeElement.type + ' ' + document.activeElement.textContent : ''"
            )
            if name in said:
                page.keyboard.press(key)
                return
        pytest.fail(f"no Tab leads to {name!r}")

    heading(page, "Before you begin")
    press("Continue")
    heading(page, "Your consent")
    press("I agree")
    heading(page, "Length")
    press("Continue")
    page.wait_for_selector(".panel .option")
    answer_shorter(page)
    heading(page, "Practice")
    press("Continue")
    heading(page, "A few questions about the task")
    press("radio", "Space")
    press("Check my answers")
    heading(page, "About you")
    press("Skip these questions")
    page.wait_for_selector(".panel .option")


@pytest.mark.thorough
def test_comprehension_failed_twice_is_a_polite_end(new_context, crowd):
    page = new_context().new_page()
    page.goto(crowd.url + participant(crowd.folder, "fails"))
    to_comprehension(page)
    check_comprehension(page, "Who wrote them")
    page.get_by_text("1 chance is left").wait_for()
    page.reload()
    page.get_by_text("1 chance is left").wait_for()
    check_comprehension(page, "Who wrote them")
    for _ in range(2):
        heading(page, "Thank you for your time")
        back = page.get_by_role("link", name="Return to Prolific")
        assert back.get_attribute("href") == f"{COMPLETE}OUT2"
        assert page.locator(".panel").count() == 0
        page.reload()  # stays so
    assert crowd.labels(rater_of(crowd.folder, "fails")).empty


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_no_consent_is_an_end(new_context, crowd, axe, mode):
    page = new_context(color_scheme=mode).new_page()
    page.goto(crowd.url + participant(crowd.folder, f"declines{mode}"))
    go_on(page)
    page.get_by_role("button", name="I do not agree").click()
    back = page.get_by_role("link", name="Return to Prolific")
    back.wait_for()
    assert back.get_attribute("href") == f"{COMPLETE}NO3"
    page.get_by_text("enter this code at Prolific: NO3").wait_for()
    assert _copied(page) == "NO3"
    # A browser that copies nothing at all: the code is selected instead.
    page.evaluate("() => { document.execCommand = () => false; }")
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_text("The code is selected").wait_for()
    assert "NO3" in page.evaluate("getSelection().toString()")
    axe(page, "code")


@pytest.mark.thorough
def test_a_step_says_that_the_server_is_away_and_loses_no_click(
    new_context, make_session, serve_study
):
    server = serve_study(make_session(2))
    page = new_context().new_page()
    page.goto(server.url + participant(server.folder, "patient"))
    heading(page, "Before you begin")
    away = page.get_by_text("No answer from the server")
    for button, then in (("Continue", "Your consent"), ("I agree and want to take part", "Length")):
        away.wait_for(state="hidden")
        server.kill()
        away.wait_for()
        server.start()
        away.wait_for(state="hidden")
        page.get_by_role("button", name=button).click()
        heading(page, then)
    go_on(page)
    page.wait_for_selector(".panel .option")
    server.kill()
    page.wait_for_selector("[data-test-connection-state=PINGING_SERVER]")
    assert not away.is_visible()  # the panel says it in its own way
    server.start()


PLAIN = (
    '[session]\nentry = "invite"\n[prolific]\ncomplete = "C"\nscreened_out = "S"\nno_consent = "N"'
)


@pytest.mark.thorough
def test_a_returned_place_goes_to_somebody_else(new_context, make_session, serve_study):
    server = serve_study(make_session(2, PLAIN, raters_per_unit=1))
    pages = [new_context().new_page() for _ in range(2)]
    pages[0].goto(server.url + participant(server.folder, "leaves"))
    pages[0].wait_for_selector(".panel .option")
    answer_shorter(pages[0])
    pages[0].locator(".count", has_text="1 of 2").wait_for()  # the other unit is open now
    pages[1].goto(server.url + participant(server.folder, "comes"))
    pages[1].get_by_text("Nothing is left to do").wait_for()
    with open_study(server.folder) as study:
        assert Sessions(study).release(rater_of(server.folder, "leaves"), "returned") == 1
    pages[1].reload()
    pages[1].wait_for_selector(".panel .option")
    answer_shorter(pages[1])
    pages[1].get_by_role("link", name="Return to Prolific").wait_for()
    pages[0].reload()
    heading(pages[0], "Your part has ended")
    first, second = (
        set(server.labels(rater_of(server.folder, name))["unit_id"]) for name in ("leaves", "comes")
    )
    assert len(first) == len(second) == 1
    assert not first & second
