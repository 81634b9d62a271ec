"""While the server or its store does not answer, the page says so, and nothing is lost."""

import json
import re
import sqlite3
import urllib.error
import urllib.request

import pytest

from evenhand.annotate_app.languages import ENGLISH, language
from evenhand.cli.verbs import lead_link
from evenhand.study.keeping import move_store
from evenhand.texts import written
from harness.annotator import IS_NEXT, READY, arrive, press_keys
from tests.annotate_app.leading import turn_to

pytestmark = pytest.mark.browser

OURS = ".evenhand-offline"
AT_THE_TEXT = "([x, y]) => document.elementFromPoint(x, y).dataset.testid"


@pytest.mark.journey
def test_a_dead_server_is_told_at_once_and_what_is_there_stays(annotator, mortal):
    person = annotator("down", mortal)
    person.answer("L")
    page = person.page
    text = page.locator(".response .text").first
    box = text.bounding_box()
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


@pytest.mark.thorough
def test_who_has_no_unit_yet_reads_our_words_and_goes_on_when_the_server_is_back(new_page, mortal):
    page = new_page(mortal.url)
    code = page.get_by_label("Annotator code")
    code.wait_for()
    assert not page.locator(OURS).is_visible()
    mortal.kill()
    page.locator(OURS).wait_for()
    page.get_by_test_id("stDialog").wait_for(state="attached")
    assert not page.get_by_test_id("stDialog").is_visible()
    mortal.start()
    page.locator(OURS).wait_for(state="hidden")
    code.fill("newcomer")
    code.press("Enter")
    page.get_by_role("button", name="Go on with this code").click()
    page.wait_for_selector(READY)


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
    assert not page.locator(OURS).is_visible()


@pytest.mark.thorough
def test_a_page_that_is_long_on_its_way_says_so_until_it_is_there(new_context, served):
    page = new_context().new_page()
    page.clock.install()
    page.route(re.compile("/static/js/index"), lambda route: None)  # neither comes nor fails
    served.enter("late")
    page.goto(f"{served.url}?rater=late", wait_until="commit")
    page.locator(OURS).wait_for(state="attached")
    assert not page.locator(OURS).is_visible()
    page.locator(":root[data-reads]").wait_for()  # what counts the seconds is there
    page.clock.fast_forward(20_000)
    page.locator(OURS).wait_for()
    page.unroute(re.compile("/static/js/index"))
    page.wait_for_selector(READY)
    page.clock.fast_forward(4_000)
    page.locator(OURS).wait_for(state="hidden")


# The store goes away


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
        assert not page.locator(BOX).count()
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
    lead.get_by_role("table", name="Places by rubric").wait_for()
    assert health(served) == (200, WELL)

    postgresql.crash()
    person.choose("R")
    person.go_on("Enter")
    ahead = person.page.text_content(".material")
    newcomer = new_page(served.url, locale="de-DE")
    newcomer.get_by_text(language("de").say("page.waiting_text")).wait_for()
    person.wait_for_chip("failed")
    turn_to(lead, "Sessions")
    lead.get_by_text(written("lead_door.away_text")).wait_for()
    assert person.page.text_content(".material") == ahead  # one unit further, and no more
    tells_nothing(person.page, lead, newcomer)
    assert not newcomer.get_by_text(language("en").say("page.away_title")).is_visible()
    assert health(served) == (503, WELL | {"store": "away", "read": False, "write": False})

    postgresql.start()
    person.wait_for_chip("saved")
    newcomer.get_by_label(language("en").say("entry.label")).wait_for()  # all that is offered
    lead.get_by_role("heading", name="Sessions").wait_for()  # where the lead was going
    assert not lead.get_by_text(written("lead_door.away_text")).count()
    person.answer("C")
    assert person.all_stored()
    assert health(served) == (200, WELL)


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
