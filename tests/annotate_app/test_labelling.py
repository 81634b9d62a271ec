"""Labelling in a real browser: the store holds what an annotator chose, whatever happens; and whole
sessions, from the link or login to the completion code and every other end.
"""

import itertools
import sqlite3

import pytest
from playwright.sync_api import Error, Page, expect

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.access import read_login, set_account
from evenhand.study.desk.claims import attention_results
from evenhand.study.session.sessions import Sessions, raters_table, session_times
from harness.annotator import READY, look_back, press_keys, reload
from harness.served import holds
from harness.studies import CODES
from tests.annotate_app import leading

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("gap", "presses"),
    [
        (0, 20),
        *(pytest.param(gap, 60, marks=pytest.mark.thorough) for gap in (0, 50)),
        *(pytest.param(gap, 150, marks=pytest.mark.load) for gap in (0, 50, 100, 200)),
    ],
)
@pytest.mark.journey
def test_keys_as_fast_as_they_come(annotator, gap, presses):
    """`gap` milliseconds between the choice and Enter; the next unit's choice follows at once."""
    person = annotator(f"fast-{gap}-{presses}")
    # Every option by its letter and by its place in the list.
    ways = [("L", "l"), ("R", "2"), ("C", "c"), ("L", "1"), ("R", "R"), ("C", "3")]
    for option, key in itertools.islice(itertools.cycle(ways), presses):
        person.answer(option, key, gap)
    stored = person.stored()
    wrong = {unit for unit in stored if stored[unit] != person.given.get(unit)}
    assert (len(stored), wrong, person.given.keys() - stored.keys()) == (presses, set(), set())
    person.page.wait_for_timeout(100)  # the last frame
    times = sorted(person.page.evaluate("enterToPaint"))
    assert len(times) == presses
    assert times[int(0.95 * presses)] < 1500


def test_the_order_is_recorded_and_the_label_turned_back(annotator, served):
    person = annotator("order")
    for part in (".material", ".ask", "html"):  # nor does a browser's translator touch any text
        assert person.page.locator(part).first.evaluate("part => part.translate") is False
    seen = {}
    while len(set(seen.values())) < 2 or len(seen) < 4:
        unit, order = person.unit()
        seen[unit] = order
        person.answer("L")
    rows = served.labels("order").set_index("unit_id")
    assert rows["order"].to_dict() == seen
    # "The left one" is the pair's a where it was shown as it stands, and its b where exchanged.
    turned = {"ab": "L", "ba": "R"}
    assert rows["label"].to_dict() == {unit: turned[order] for unit, order in seen.items()}


def test_enter_twice_or_held_down_labels_one_unit(annotator):
    person = annotator("double")
    keys = person.page.keyboard
    for press in (keys.press, keys.down):
        before = person.page.text_content(".material")
        person.choose("R")
        for _ in range(4):
            press("Enter")  # down without up repeats, as a key that is held
        keys.up("Enter")
        person.wait_for_next(before)
        person.page.wait_for_timeout(200)
        assert person.chosen() is None
    assert len(person.given) == 2
    assert person.all_stored()


def test_keys_with_modifiers_or_under_the_sheet_do_nothing_and_the_mouse_will_do(annotator):
    person = annotator("modifiers")
    unit, order = person.unit()
    person.submit()
    assert person.page.text_content(".notice") == "Choose an answer first."
    person.press("Control+c", "Alt+l", "Meta+2")
    assert person.chosen() is None
    person.press("?", "l", "Escape")
    assert not person.page.locator(".sheet").is_visible()
    assert person.chosen() is None
    person.press("c")
    assert person.chosen() == "C"
    assert person.unit() == (unit, order)
    before = person.page.text_content(".material")
    person.page.get_by_role("radio", name="Response B").check()
    person.page.get_by_role("button", name="Submit and go on").click()
    person.wait_for_next(before)
    person.wait_for_chip("saved")
    assert person.stored() == {unit: {"ab": "R", "ba": "L"}[order]}


@pytest.mark.journey
def test_a_reload_keeps_the_unit_and_the_draft(annotator):
    person = annotator("reload")
    person.answer("C")
    person.choose("R")
    unit = person.unit()
    reload(person.page)
    assert (person.unit(), person.chosen()) == (unit, "R")
    assert len(person.stored()) == 1  # a draft is no label
    person.go_on("Enter")
    assert person.all_stored()


def test_going_back_changes_the_last_answer_and_keeps_both(annotator, served):
    person = annotator("undo")
    person.answer("L")
    first = person.given.copy()
    person.answer("R")
    present = person.unit()
    look_back(person.page)
    (unit_id, _) = person.unit()
    assert unit_id not in first
    assert person.chosen() == "R"
    person.page.keyboard.press("Backspace")  # one further back
    person.in_panel("panel.querySelector('.option input:checked')?.value === 'L'")
    assert person.unit()[0] in first
    person.answer("C")
    assert person.unit() == present
    assert person.chosen() is None
    assert person.all_stored()
    with sqlite3.connect(served.folder / "study.db") as store:
        rows = store.execute("SELECT count(*) FROM labels WHERE rater_id = 'undo'").fetchone()
    assert rows == (3,)


def test_a_skip_is_stored_with_its_reason_and_a_flag_beside(annotator, served):
    person = annotator("skip")
    unit, _ = person.unit()
    person.press("+", "2")
    person.page.get_by_label("Note").fill("a name")
    person.page.keyboard.press("Enter")
    person.wait_for_chip("saved")
    assert person.unit()[0] == unit  # a flag does not answer
    assert person.chosen() is None
    person.go_on("-", "1", "Enter")
    person.wait_for_chip("saved")
    (row,) = served.labels("skip").to_dict("records")
    assert (row["unit_id"], row["label"]) == (unit, "")
    assert row["unscored_reason"] == "skipped_undecidable"
    (flag,) = served.remarks("skip").to_dict("records")
    assert (flag["kind"], flag["reason"], flag["text"]) == ("flag", "personal_data", "a name")


@pytest.mark.thorough
def test_all_rubrics_of_a_unit_by_digits_and_arrows(annotator, make_study, serve_study):
    rubrics = [load_rubric("refusal"), load_rubric("hedging")]
    folder = make_study(3, rubrics=rubrics, screen="all", confidence=True, rationale=True)
    server = serve_study(folder)
    person = annotator("digits", server)
    page, rationale = person.page, person.page.locator("#rationale")
    assert (page.locator(".ask").count(), page.locator(".prompt").count()) == (3, 1)
    person.press("2", "Enter")
    assert "needs an answer" in page.text_content(".notice")
    # Three times 0: how sure, a guess, fairly sure, certain.
    person.press("5", "0", "0", "0", "ArrowLeft", "ArrowRight", "4", ".")
    page.keyboard.type("because. 1 2 3")
    person.go_on("Control+Enter")
    person.wait_for_chip("saved")
    rows = server.labels("digits").set_index("rubric")["label"].to_dict()
    assert rows in ({"refusal": "2", "hedging": "4"}, {"hedging": "2", "refusal": "4"})
    remarks = server.remarks("digits")
    assert remarks["confidence"].tolist() == [3, 3]
    assert set(remarks["text"]) == {"because. 1 2 3"}
    # Reloaded half-way, the draft is there with every part of it.
    person.press("1", ".")
    page.keyboard.type("so far")
    reload(page)
    assert page.locator(".ask input:checked").count() == 1
    assert rationale.input_value() == "so far"
    look_back(page)
    assert page.locator(".ask input:checked").count() == 3
    assert rationale.input_value() == "because. 1 2 3"


@pytest.mark.journey
def test_two_windows_of_one_rater(annotator, new_context):
    context = new_context()
    first = annotator("windows", context=context)
    second = annotator("windows", context=context)
    unit = second.unit()
    assert first.unit() == unit
    first.answer("L")
    second.page.keyboard.press("c")
    second.submit()
    second.submit()  # at once: the second half of a double Enter
    second.page.get_by_role("alert").filter(has_text="About item 1: You had already").wait_for()
    assert second.stored() == first.given
    second.page.wait_for_selector(READY)
    assert second.unit() == first.unit()
    second.answer("C")
    assert second.stored() == first.given | second.given | {unit[0]: first.given[unit[0]]}


@pytest.mark.journey
def test_the_server_dies_before_its_acknowledgement_arrives(annotator, new_context, mortal):
    deaf = False

    def relay(route):
        try:
            answer = route.fetch()
        except Error:  # the page had asked again, and the server died before it answered
            return route.abort()
        return route.abort() if deaf else route.fulfill(response=answer)

    context = new_context()
    context.route("**/evenhand/answers", relay)
    person = annotator("unheard", mortal, context)
    person.choose("R")
    deaf = True
    person.go_on("Enter")  # the next one was there already
    for _ in range(200):  # a page whose requests are relayed here must not be kept waiting
        if len(mortal.labels("unheard")) == 1:
            break
        person.page.wait_for_timeout(50)
    ahead = person.unit()
    person.give("L")
    person.wait_for_chip("offline")
    assert person.unit() == ahead  # one unit further, and no more
    mortal.kill()
    deaf = False
    mortal.start()
    person.wait_for_chip("saved")
    assert len(mortal.labels("unheard")) == 2
    assert person.all_stored()


def test_a_store_that_cannot_be_written_is_said_and_outlived(annotator, mortal):
    person = annotator("full", mortal)
    with sqlite3.connect(mortal.folder / "study.db") as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON labels "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    person.choose("C")
    person.go_on("Enter")
    person.wait_for_chip("failed")
    assert person.stored() == {}
    with sqlite3.connect(mortal.folder / "study.db") as other:
        other.execute("DROP TRIGGER refuse")
    person.wait_for_chip("saved")
    assert person.all_stored()


@pytest.mark.parametrize("mode", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
@pytest.mark.journey
def test_from_prolifics_link_to_the_completion_code(new_page, crowd, axe, mode):
    name = f"p{mode}"
    address = crowd.url + leading.participant(crowd.folder, name)
    size = {"width": {"light": 1280, "dark": 390}[mode], "height": 844}
    page = new_page(address, color_scheme=mode, viewport=size)
    leading.heading(page, "Before you begin")
    assert "pass=" in page.url
    assert leading.prolific_id(name) not in page.url  # the participant's id has left the address
    page.get_by_text("Some texts are <b>harsh</b>.").wait_for()
    axe(page, "welcome")
    leading.go_on(page)
    leading.heading(page, "Your consent")
    axe(page, "consent")
    page.reload()
    page.get_by_role("button", name="I agree and want to take part").click()
    leading.heading(page, "Guidelines: Length")
    page.get_by_text("Response A has fewer words.").wait_for()
    axe(page, "rubric")
    leading.go_on(page)
    page.get_by_text("Practice: after each answer").wait_for()
    leading.answer_shorter(page, wrong=True)
    for said in ("Not correct.", "Correct answer: Response B"):
        page.get_by_text(said).wait_for()
    page.get_by_text("One word is shorter than many.").wait_for()
    axe(page, "feedback")
    page.reload()
    page.get_by_text("Not correct.").wait_for()
    leading.go_on(page)
    page.wait_for_selector(".panel .option")  # the pass mark was missed: once more
    leading.answer_shorter(page)
    page.get_by_text("Correct.").wait_for()
    leading.go_on(page)
    leading.heading(page, "A few questions about the task")
    page.get_by_text("What is compared? :rocket: :red[x] $x^2$ <b>y</b> `z` ~~0~~").wait_for()
    axe(page, "comprehension")
    page.get_by_role("button", name="Check my answers").click()
    page.get_by_text("Please answer every question.").wait_for()
    leading.check_comprehension(page, "Who wrote them")
    page.get_by_text("1 attempt is left").wait_for()
    page.get_by_text("It is length alone that counts.").wait_for()
    leading.check_comprehension(page, "The length of *both* responses")
    leading.heading(page, "About you")
    axe(page, "background")
    page.get_by_role("button", name="Skip these questions").click()
    page.wait_for_selector(".panel .option")
    checks = 0
    for done in range(1, 5):
        checks += leading.LONG.strip() in page.locator(".material").inner_text()
        assert not page.locator(".who a").is_visible()
        leading.answer_shorter(page)
        page.locator(".count", has_text=f"{done} of 4").wait_for()
        expect(page.locator(".finish")).to_have_count(int(done == 4))  # no code before
        if done == 2:
            page.reload()
            page.wait_for_selector(".panel .option")
    assert checks == 1
    back = page.get_by_role("link", name="Return to Prolific")
    assert back.get_attribute("href") == f"{leading.COMPLETE}DONE1"
    assert page.locator(".code").inner_text().endswith("enter this code at Prolific: DONE1")
    assert _copied(page) == "DONE1"
    axe(page, "end")
    rater = leading.rater_of(crowd.folder, name)
    with open_study(crowd.folder) as study:
        own = study.ratings()[lambda rows: rows["rater_id"] == rater]
        assert len(own) == own["unit_id"].nunique() == 3  # neither practice nor check among them
        results = attention_results(study)
        assert results.loc[results["rater_id"] == rater, "passed"].tolist() == [True]
        assert rater not in set(raters_table(study)["rater_id"])  # skipped
        times = session_times(study, Sessions(study)).set_index("rater_id").loc[rater]
    assert (times["state"], times["units"]) == ("complete", 3)
    assert 0 < times["active_seconds"] < 120


def _copied(page: Page) -> str:
    """What the button copies in a browser that lets no page write to the clipboard."""
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject('not allowed'); }")
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_text("Copied.").wait_for()
    page.context.grant_permissions(["clipboard-read"])
    return str(page.evaluate("navigator.clipboard.readText()"))


SIDES = """[session]
entry = "invite"
[[background.questions]]
key = "party"
question = "Which party are you <b>closer</b> to?"
options = ["The *left* one", "The right one"]
quotas = [1, 1]
"""


@pytest.mark.journey
def test_a_side_is_told_by_keyboard_and_who_finds_it_full_returns(
    new_page, make_session, serve_study, axe
):
    served, left = serve_study(make_session(1, SIDES + CODES)), "The *left* one"
    for name in ("first", "second"):
        page = new_page(served.url + leading.participant(served.folder, name))
        leading.heading(page, "About you")
        page.get_by_text("Which party are you <b>closer</b> to?").wait_for()
        axe(page, "side")
        page.get_by_role("button", name="Continue").press("Enter")
        page.get_by_text("Please answer every question.").wait_for()
        page.get_by_role("radio", name=left).press("Space")
        page.get_by_role("button", name="Continue").press("Enter")
        if name == "first":
            leading.answer_shorter(page)
        back = page.get_by_role("link", name="Return to Prolific")
        assert (
            back.get_attribute("href")
            == leading.COMPLETE + {"first": "DONE1", "second": "OUT2"}[name]
        )
    page.reload()
    leading.heading(page, "Thank you for coming")
    axe(page, "full")
    with open_study(served.folder) as study:
        ((rater, told),) = raters_table(study).to_numpy().tolist()
        assert {rater} == set(study.ratings()["rater_id"])
    assert (rater, told) == (leading.rater_of(served.folder, "first"), left)


@pytest.mark.thorough
def test_no_consent_is_an_end(new_page, crowd, axe):
    page = new_page(crowd.url + leading.participant(crowd.folder, "declines"), color_scheme="dark")
    leading.go_on(page)
    page.get_by_role("button", name="I do not agree").click()
    back = page.get_by_role("link", name="Return to Prolific")
    back.wait_for()
    assert back.get_attribute("href") == f"{leading.COMPLETE}NO3"
    page.get_by_text("enter this code at Prolific: NO3").wait_for()
    # A browser that copies nothing at all: the code is selected instead.
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject('not allowed'); }")
    page.evaluate("() => { document.execCommand = () => false; }")
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_text("The code is selected").wait_for()
    assert "NO3" in page.evaluate("getSelection().toString()")
    axe(page, "code")


@pytest.mark.thorough
def test_a_step_says_that_the_server_is_away_and_loses_no_click(
    new_page, make_session, serve_study
):
    server = serve_study(make_session(2))
    page = new_page(server.url + leading.participant(server.folder, "patient"))
    leading.heading(page, "Before you begin")
    away = page.get_by_text("No answer from the server")
    agree, guidelines = "I agree and want to take part", "Guidelines: Length"
    for button, then in (("Continue", "Your consent"), (agree, guidelines)):
        away.wait_for(state="hidden")
        server.kill()
        away.wait_for()
        server.start()
        away.wait_for(state="hidden")
        page.get_by_role("button", name=button).click()
        leading.heading(page, then)
    leading.go_on(page)
    page.wait_for_selector(".panel .option")
    server.kill()
    page.wait_for_selector("[data-test-connection-state=PINGING_SERVER]")
    assert not away.is_visible()  # the panel says it in its own way
    server.start()


@pytest.mark.thorough
def test_an_expert_logs_in_goes_on_after_a_reload_and_logs_out(
    new_page, make_session, serve_study, axe
):
    folder = make_session(2, '[session]\nentry = "account"')
    with open_study(folder) as study:
        set_account(study.store, "ada", leading.PASSWORD, "expert")
    server = serve_study(folder)
    page = new_page(f"{server.url}?rater=ada")
    page.get_by_role("alert").filter(has_text="A code alone does not open").wait_for()
    page.goto(server.url)
    page.get_by_label("Name").wait_for()
    axe(page, "login")
    leading.log_in(page, "ada", "wrong password")
    page.get_by_text("Name or password is wrong.").wait_for()
    leading.log_in(page, "ada")
    page.wait_for_selector(".panel .option")
    page.reload()
    page.wait_for_selector(".panel .option")
    assert page.locator(".rater").inner_text() == "ada"
    leading.answer_shorter(page)
    page.locator(".count", has_text="1 of 2").wait_for()
    assert holds(lambda: len(server.labels("ada")) == 1)
    assert page.url == server.url  # neither login nor password stands in an address
    ((kept, login),) = page.evaluate("Object.entries(sessionStorage)")
    assert login not in str(page.context.cookies())
    new_page(f"{server.url}?login={login}").get_by_label("Name").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Name").wait_for()
    with open_study(folder) as study, pytest.raises(InputError, match="login has ended"):
        read_login(study.store, login)
    page.go_back()
    page.go_forward()
    page.get_by_label("Name").wait_for()
    # The token, taken from the browser before, opens nothing either.
    page.evaluate("([name, login]) => sessionStorage.setItem(name, login)", [kept, login])
    page.reload()
    page.get_by_role("alert").filter(has_text="This login has ended").wait_for()
    assert page.locator(".panel").count() == 0
    leading.log_in(page, "ada")
    page.wait_for_selector(READY)
    # What waits when a login ends is told, and sent after the next.
    server.kill()
    press_keys(page, "l", "Enter")
    page.locator(".chip[data-state=offline]").wait_for()
    with open_study(folder) as study:
        set_account(study.store, "ada", f"{leading.PASSWORD} changed", "expert")
    server.start()
    page.reload()
    told = page.get_by_role("alert").filter(has_text="sent once you are back")
    told.wait_for()
    assert told.inner_text().startswith("About item 2: ")
    leading.log_in(page, "ada", f"{leading.PASSWORD} changed")
    assert holds(lambda: len(server.labels("ada")) == 2)
