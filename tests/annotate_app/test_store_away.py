"""The store goes away while people are at work: they wait in our words, then all goes on."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request

import pytest

from evenhand.annotate_app.languages import language
from evenhand.cli.lead import lead_link
from evenhand.study.keeping.moving import move_store
from evenhand.texts import written
from harness.annotator import IS_NEXT
from tests.annotate_app.leading import turn_to

pytestmark = pytest.mark.browser

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
    places = lead.locator("summary", has_text="Places by rubric")
    places.wait_for()
    assert health(served) == (200, WELL)

    postgresql.crash()
    before = person.page.text_content(".material")
    person.choose("R")
    person.submit()
    person.wait_for_next(before)
    ahead = person.page.text_content(".material")
    newcomer = new_page(served.url, locale="de-DE")
    newcomer.get_by_text(language("de").say("page.waiting_text")).wait_for()
    person.wait_for_chip("failed")
    turn_to(lead, "Accounts")
    lead.get_by_text(written("lead_door.away_text")).wait_for()
    assert person.page.text_content(".material") == ahead  # one unit further, and no more
    tells_nothing(person.page, lead, newcomer)
    assert not newcomer.get_by_text(language("en").say("page.away_title")).is_visible()
    assert health(served) == (503, WELL | {"store": "away", "read": False, "write": False})

    postgresql.start()
    person.wait_for_chip("saved")
    newcomer.get_by_label(language("en").say("entry.label")).wait_for()  # all that is offered
    lead.locator("a[aria-current=page]", has_text="Accounts").wait_for()  # where the lead was going
    assert not lead.get_by_text(written("lead_door.away_text")).count()
    person.answer("C")
    assert person.all_stored()
    assert health(served) == (200, WELL)


def test_a_lock_of_another_process_keeps_people_waiting_and_no_longer(annotator, mortal):
    person = annotator("locked", mortal)
    other = sqlite3.connect(mortal.folder / "study.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = person.page.text_content(".material")
    person.choose("L")
    person.submit()
    person.wait_for_chip("failed")
    tells_nothing(person.page)
    assert health(mortal) == (503, WELL | {"store": "cannot be written", "write": False})
    other.execute("ROLLBACK")
    person.page.wait_for_function(IS_NEXT, arg=before)
    assert person.all_stored()
    other.close()
