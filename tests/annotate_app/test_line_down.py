"""While the line is slow, or the server or its store does not answer: the page says so, every key
counts for the unit it was meant for, and nothing is lost; and answers that are refused.
"""

import json
import re
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from evenhand.annotate_app.languages import ENGLISH, language
from evenhand.cli.main import lead_link
from evenhand.study import open_study
from evenhand.study.access import revoke_invites
from evenhand.study.keeping import move_store
from evenhand.study.session.sessions import Sessions
from evenhand.texts import written
from harness.annotator import IS_NEXT, READY, SWAPPED, Annotator, arrive, press_keys, reload
from harness.served import holds
from harness.slow_line import SlowLine
from tests.annotate_app.leading import heading, link, turn_to

pytestmark = pytest.mark.browser

OURS = ".evenhand-offline"
AT_THE_TEXT = "([x, y]) => document.elementFromPoint(x, y).dataset.testid"


@pytest.mark.journey
def test_a_dead_server_is_told_at_once_and_what_is_there_stays(annotator, mortal):
    person = annotator("down", mortal)
    person.answer("L")
    page = person.page
    box = page.locator(".response .text").first.bounding_box()
    mortal.kill()
    person.wait_for_chip("away")  # nothing was sent
    assert "All your answers are saved" in page.locator(".chip").inner_text()
    press_keys(page, "Backspace", "c", "Enter")
    page.get_by_test_id("stDialog").wait_for(state="attached")  # Streamlit's, which bars all else
    page.wait_for_timeout(100)
    middle = [box["x"] + 60, box["y"] + 15]
    assert page.evaluate(AT_THE_TEXT, middle) == "stBidiComponentIsolated"
    page.mouse.click(*middle, click_count=3)
    assert page.evaluate("String(getSelection())").startswith("Response")
    mortal.start()
    page.wait_for_selector(READY, timeout=30_000)
    page.locator(".editing").wait_for()  # the wish was kept, but not keys so old
    assert "took too long to load" in page.text_content(".notice")
    person.wait_for_chip("saved")
    assert person.all_stored()


def test_a_line_gone_silent_is_told(new_context, served):
    page = new_context().new_page()
    page.clock.install()
    arrive(page, served, "silent")
    health = re.compile("/_stcore/health")
    page.route(health, lambda route: route.abort())
    for state in ("away", "saved"):
        page.clock.fast_forward(10_500)  # to the next heartbeat
        page.wait_for_selector(f".chip[data-state={state}]")
        page.unroute(health)
    answers = re.compile("/evenhand/answers")
    page.route(answers, lambda route: route.abort())
    press_keys(page, "l", "Enter")
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 9"))  # no repeat comes by itself
    page.wait_for_selector(".chip[data-state=offline]")
    page.unroute(answers)
    page.get_by_role("button", name="Try now").click()
    page.wait_for_selector(".chip[data-state=saved]")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part",
    ["/_stcore/(health|host-config)", "/static/js/index", "/static/js/Bidi", "/evenhand/panel"],
)
def test_a_page_that_came_while_the_line_broke_or_lost_a_part_comes_back_by_itself(
    new_page, served, part
):
    page, lost = new_page("about:blank"), re.compile(part)
    page.route(lost, lambda route: route.abort())
    served.enter("lost")
    page.goto(f"{served.url}?rater=lost")
    page.locator(OURS).wait_for()
    assert ENGLISH.say("page.no_answer") in page.inner_text("body")
    assert "Streamlit" not in page.inner_text("body")
    page.unroute(lost)
    page.wait_for_selector(READY)
    page.locator(OURS).wait_for(state="hidden")


BOX = "[data-testid=stException], [data-testid=stAlert]"
TELLING = ("Traceback", "sqlalchemy", "psycopg", "SELECT", "postgresql", "socket", "/tmp")  # noqa: S108


WELL = {"store": "answers", "read": True, "write": True, "hours_since_backup": None}


def health(server) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"{server.url}health", timeout=10) as reply:  # noqa: S310
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def tells_nothing(*pages) -> None:
    for page in pages:
        assert not page.locator(BOX).all_inner_texts()
        text = page.inner_text("body")
        assert not [word for word in TELLING if word in text], text


@pytest.mark.thorough
def test_postgresql_crashes_under_an_annotator_a_lead_and_a_newcomer(
    new_page, annotator, make_study, serve_study, postgresql
):
    folder = make_study(6)
    move_store(folder, postgresql.new_database())
    served = serve_study(folder)
    person = annotator("works", served)
    person.answer("L")
    lead = new_page(lead_link(folder, served.url))
    turn_to(lead, "Progress")
    lead.get_by_role("table", name="Labels by rubric").wait_for()
    assert health(served) == (200, WELL)
    postgresql.crash()
    person.choose("R")
    person.go_on("Enter")
    ahead = person.page.text_content(".material")
    newcomer = new_page(served.url, locale="de-DE")
    newcomer.get_by_text(language("de").say("page.waiting_text")).wait_for()
    person.wait_for_chip("failed")
    turn_to(lead, "Recruitment")
    lead.get_by_text(written("lead_door.away_text")).first.wait_for()
    assert person.page.text_content(".material") == ahead  # one unit further, and no more
    tells_nothing(person.page, lead, newcomer)
    assert not newcomer.get_by_text(language("en").say("page.away_title")).is_visible()
    assert health(served) == (503, WELL | {"store": "away", "read": False, "write": False})
    postgresql.start()
    person.wait_for_chip("saved")
    newcomer.get_by_label(language("en").say("entry.label")).wait_for()  # all that is offered
    lead.get_by_role("heading", name="Recruitment").wait_for()  # where the lead was going
    assert not lead.get_by_text(written("lead_door.away_text")).count()
    person.answer("C")
    assert person.all_stored()
    assert health(served) == (200, WELL)


@pytest.fixture(scope="module")
def short_lived(serve):
    return serve(6)


def test_an_answer_refused_after_a_reload_names_its_unit(annotator, new_context, short_lived):
    context = new_context()
    tablet = annotator("both", short_lived, context)
    short_lived.kill()
    tablet.page.keyboard.press("l")
    tablet.submit()
    tablet.wait_for_chip("offline")
    tablet.page.close()
    short_lived.start()
    desk = annotator("both", short_lived)
    desk.answer("R")  # the same unit, on another device
    stored = desk.stored()
    page = context.new_page()
    arrive(page, short_lived, "both")
    told = page.get_by_role("alert").filter(has_text="About item 1")
    told.wait_for()
    assert "is not stored" in told.inner_text()
    assert desk.stored() == stored == desk.given
    page.get_by_role("button", name="OK").click()
    told.wait_for(state="hidden")


def test_back_opens_what_this_window_answered_whatever_another_one_has_answered_since(
    annotator, short_lived
):
    here = annotator("two", short_lived)
    unit, _ = here.unit()
    here.answer("L")
    there = annotator("two", short_lived)
    there.answer("R")  # the unit that is on the screen here
    here.press("Backspace", "c", "Enter")
    assert holds(lambda: here.stored() == {unit: "C"} | there.given)


def left_unsent(server, context, rater: str) -> str:
    """Answer the first unit while the server is away, so that the answer waits in the browser, and
    close the page; the link of whoever has done so."""
    own, page = link(server.folder, rater), context.new_page()
    page.goto(server.url + own)
    page.wait_for_selector(READY)
    server.kill()
    press_keys(page, "l", "Enter")
    page.locator(".chip[data-state=offline]").wait_for()
    page.close()
    return own


@pytest.fixture(scope="module")
def by_link(make_session, serve_study):
    return serve_study(make_session(2, '[session]\nentry = "invite"'))


def test_what_waits_when_a_session_ends_is_told_until_it_is_read(new_context, by_link, axe):
    context, other = new_context(), link(by_link.folder, "beside")
    own = left_unsent(by_link, context, "ends")
    with open_study(by_link.folder) as study:
        for rater in ("ends", "beside"):
            Sessions(study).release(rater, "timed_out")
    by_link.start()
    page = context.new_page()
    page.goto(by_link.url + own)
    heading(page, "Your part has ended")
    told = page.get_by_role("alert").filter(has_text="About item 1: 1 answer or flag")
    told.wait_for()
    assert "did not reach the study" in told.inner_text()
    axe(page, "ended with an answer unsent")
    page.reload()
    told.wait_for()
    beside = context.new_page()  # another rater in the same browser
    beside.goto(by_link.url + other)
    heading(beside, "Your part has ended")
    beside.wait_for_timeout(1000)
    assert beside.get_by_role("alert").count() == 0
    page.get_by_role("button", name="OK").click()
    told.wait_for(state="hidden")
    page.reload()
    heading(page, "Your part has ended")
    page.wait_for_timeout(1000)
    assert told.is_hidden()
    with open_study(by_link.folder) as study:
        Sessions(study).readmit("ends")
    reload(page)
    assert holds(lambda: len(by_link.labels("ends")) == 1)  # it was kept all the same


def test_what_waits_behind_a_link_that_was_revoked_is_told_and_sent_later(new_context, by_link):
    context = new_context()
    own = left_unsent(by_link, context, "revoked")
    with open_study(by_link.folder) as study:
        revoke_invites(study, "revoked")
    by_link.start()
    page = context.new_page()
    page.goto(by_link.url + own)
    told = page.get_by_role("alert").filter(has_text="sent once you are back")
    told.wait_for()
    assert told.inner_text().startswith("About item 1: ")
    foreign = context.new_page()
    foreign.goto(f"{by_link.url}{own}x")
    foreign.get_by_role("alert").filter(has_text="This link is not valid").wait_for()
    foreign.wait_for_timeout(1000)
    assert foreign.get_by_role("alert").count() == 1
    page.goto(by_link.url + link(by_link.folder, "revoked"))
    page.wait_for_selector(".panel")
    assert holds(lambda: len(by_link.labels("revoked")) == 1)
    page.goto(by_link.url + own)
    page.get_by_role("alert").filter(has_text="This link").wait_for()
    page.wait_for_timeout(1000)
    assert page.get_by_role("alert").count() == 1  # nothing waits any more


GAPS = (0, 30, 50, 80, 100, 150, 200, 250)
"""Milliseconds between two keys."""
WAYS = [
    pytest.param(0, [0], 1, id="0", marks=pytest.mark.thorough),
    pytest.param(75, [0, 100], 1, id="75"),
    pytest.param(250, [30], 1, id="250", marks=pytest.mark.thorough),
    *(pytest.param(each_way, GAPS, 8, id=f"{each_way}-all", marks=pytest.mark.load)
      for each_way in (0, 75, 250)),
]  # fmt: skip
"""(milliseconds each way, milliseconds between keys, trials)"""


Far = Callable[..., Annotator]


@pytest.fixture(scope="module")
def far(browser, served) -> Iterator[Far]:
    """far(milliseconds, name) -> a person so far away each way, at work already. One page serves
    all tests of one delay and name: to open it takes longer than they do."""
    here: dict[str, Annotator] = {}
    with ExitStack() as lines:

        def come(each_way: int, name: str = "") -> Annotator:
            rater = f"far-{each_way}{name}"
            if rater not in here:
                line = lines.enter_context(SlowLine(served.port))
                here[rater] = arrive(browser.new_page(), served, rater, line.url)
                line.milliseconds = each_way
            person = here[rater]
            person.page.wait_for_selector(READY)
            person.given = person.stored()
            return person

        yield come
        for person in here.values():
            person.page.close()


def type_in(person: Annotator, keys: tuple[str, ...], gap: float) -> None:
    for number, key in enumerate(keys):
        if gap and number:
            person.page.wait_for_timeout(gap)
        person.page.keyboard.press(key)


def label(option: str, order: str) -> str:
    return option if order == "ab" else SWAPPED[option]


@pytest.mark.thorough
@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_typed_after_backspace_changes_the_last_one_only(far, each_way, gaps, trials):
    person = far(each_way, "-undo" if trials > 1 else "")
    for gap in gaps * trials:
        unit, order = person.unit()
        person.answer("L")
        present, _ = person.unit()
        type_in(person, ("Backspace", "c", "Enter"), gap)
        person.given[unit] = label("C", order)
        assert person.all_stored()
        person.page.locator(READY, has_text=f"Response {int(present[1:5])}, side").wait_for()
        assert person.chosen() is None


@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_typed_after_escape_leaves_the_earlier_one(far, each_way, gaps, trials):
    person = far(each_way, "-leave" if trials > 1 else "")
    if not person.given:
        person.answer("L")
    for gap in gaps * trials:
        present, order = person.unit()
        text = person.page.text_content(".material")
        person.page.keyboard.press("Backspace")
        person.in_panel("!panel.querySelector('.editing').hidden")
        type_in(person, ("Escape", "r", "Enter"), gap)
        person.given[present] = label("R", order)
        assert person.all_stored()
        person.wait_for_next(text)


@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_undone_before_its_successor_is_here(far, each_way, gaps, trials):
    person = far(each_way, "-at-once" if trials > 1 else "")
    for gap in gaps * trials:
        unit, order = person.unit()
        text = person.page.text_content(".material")
        type_in(person, ("l", "Enter", "Backspace", "r", "Enter"), gap)
        person.given[unit] = label("R", order)
        assert person.all_stored()
        person.wait_for_next(text)
        assert person.chosen() is None


PRESS_EARLY = """
(milliseconds) => new Promise((done) => {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]").shadowRoot;
  const material = root.querySelector(".material");
  const press = (key) => material.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  let pressed = 0;
  const again = (painted) => {
    if (performance.now() - painted > milliseconds) return done(pressed);
    pressed += 1;
    press("c");
    requestAnimationFrame(() => again(painted));
  };
  new MutationObserver((_, observer) => {
    observer.disconnect();
    press("c"); // drawn, and not painted yet
    requestAnimationFrame(() => {
      press("c");
      requestAnimationFrame(() => again(performance.now()));
    });
  }).observe(material, { childList: true });
  press("l");
  press("Enter");
})
"""


@pytest.mark.journey
def test_an_option_counts_only_once_its_unit_has_been_seen(far):
    person = far(0)
    for _ in range(3):
        unit, order = person.unit()
        person.given[unit] = label("L", order)
        assert person.page.evaluate(PRESS_EARLY, 140) > 1  # in each frame of 140 ms
        assert person.unit()[0] != unit
        assert person.chosen() is None
        assert "Not counted" in person.page.text_content(".notice")
        person.page.wait_for_selector(READY)
        person.answer("R")
        assert person.page.text_content(".notice") == ""
    assert person.all_stored()
    click = PRESS_EARLY.replace('press("c")', 'root.querySelector(".options input")?.click()')
    person.page.evaluate(click, 100)
    assert person.chosen() is None
    assert "Not counted" in person.page.text_content(".notice")


def test_an_answer_that_waits_for_another_is_sent_as_the_window_closes(far):
    person = far(1_000, "-leaving")
    page = person.page
    person.choose("L")
    with page.expect_request("**/evenhand/answers"):
        person.submit()
    page.wait_for_selector(READY)  # the unit that was sent ahead, while the first answer travels
    person.give("R")
    page.close(run_before_unload=True)
    assert person.all_stored()


def test_a_lock_of_another_process_keeps_people_waiting_and_no_longer(annotator, mortal):
    person = annotator("locked", mortal)
    other = sqlite3.connect(mortal.folder / "study.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = person.page.text_content(".material")
    person.give("L")
    person.wait_for_chip("failed")
    tells_nothing(person.page)
    assert health(mortal) == (503, WELL | {"store": "cannot be written", "write": False})
    other.execute("ROLLBACK")
    person.page.wait_for_function(IS_NEXT, arg=before)
    assert person.all_stored()
    other.close()


WATCH = """
window.alarms = 0;
const look = () => {
  const said = document.querySelector(".evenhand-offline");
  if (said?.checkVisibility({ visibilityProperty: true })) window.alarms += 1;
  requestAnimationFrame(look);
};
look();
"""


def test_nothing_alarms_who_opens_the_page_over_a_slow_line(browser, served):
    page = browser.new_page()
    page.add_init_script(WATCH)
    with SlowLine(served.port) as line:
        line.milliseconds = 75
        arrive(page, served, "opens", line.url)
        assert page.evaluate("window.alarms") == 0
    page.close()


NAMES_KEPT = "() => Object.keys(localStorage).filter((name) => name.includes(':answer:'))"


def test_an_answer_that_arrived_without_its_receipt_is_not_told_as_lost(new_page, by_link):
    page = new_page(by_link.url + link(by_link.folder, "arrives"))
    page.wait_for_selector(READY)
    by_link.kill()
    press_keys(page, "l", "Enter")
    page.locator(".chip[data-state=offline]").wait_for()
    kept = page.evaluate("() => Object.entries(localStorage)")
    by_link.start()
    assert holds(lambda: len(by_link.labels("arrives")) == 1)
    page.locator(".chip[data-state=saved]").wait_for()
    with open_study(by_link.folder) as study:
        Sessions(study).release("arrives", "returned")
    page.evaluate(
        "(kept) => kept.forEach(([name, text]) => localStorage.setItem(name, text))", kept
    )
    assert page.evaluate(NAMES_KEPT)
    page.reload()
    heading(page, "Your part has ended")
    assert holds(lambda: not page.evaluate(NAMES_KEPT))
    assert page.get_by_role("alert").count() == 0
