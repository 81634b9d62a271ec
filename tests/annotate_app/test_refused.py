"""Answers that are refused, whenever and wherever: each says so, with its unit."""

import pytest

from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.access.admission import revoke_invites
from evenhand.study.session.sessions import Sessions
from harness.annotator import READY, arrive, press_keys, reload
from harness.served import holds
from tests.annotate_app.leading import log_in
from tests.annotate_app.participants import heading, link

pytestmark = pytest.mark.browser


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
    told = page.get_by_role("alert").filter(has_text="Item 1")
    told.wait_for()
    assert "is not stored" in told.inner_text()
    assert desk.stored() == stored == desk.given
    page.get_by_role("button", name="I have read this").click()
    told.wait_for(state="hidden")


def test_back_on_a_unit_answered_in_another_window_opens_that_answer(
    annotator, new_context, short_lived
):
    context = new_context()
    first = annotator("windows", short_lived, context)
    second = annotator("windows", short_lived, context)
    unit = second.unit()
    first.answer("C")
    second.page.keyboard.press("Backspace")
    second.in_panel("!panel.querySelector('.editing').hidden")
    assert (second.unit(), second.chosen()) == (unit, "C")


def test_what_was_refused_is_told_until_it_is_read_over_reloads(annotator, short_lived):
    first = annotator("unread", short_lived)
    other = annotator("unread", short_lived)
    first.answer("L")
    other.give("R")  # goes on at once, and is refused
    told = other.page.get_by_role("alert").filter(has_text="Item 1")
    told.wait_for()
    reload(other.page)
    told.wait_for()
    other.page.get_by_role("button", name="I have read this").click()
    told.wait_for(state="hidden")
    reload(other.page)
    assert told.is_hidden()


FLAG_OF_ANOTHER_VERSION = """
() => {
  const name = Object.keys(localStorage).find((each) => each.includes(":answer:"));
  localStorage.setItem(name, localStorage.getItem(name).replace(/"flag":"[^"]*"/, '"flag":"gone"'));
}
"""


def test_a_flag_that_is_refused_names_its_unit(annotator, short_lived):
    person = annotator("flags", short_lived)
    short_lived.kill()
    person.press("+", "1", "Enter")
    person.wait_for_chip("offline")
    person.page.evaluate(FLAG_OF_ANOTHER_VERSION)
    short_lived.start()
    told = person.page.get_by_role("alert").filter(
        has_text="Item 1: The study has changed, and your"
    )
    told.wait_for()


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


def answer_unsent(server, page):
    """Answer the first unit while the server is away, so that the answer waits in the browser."""
    server.kill()
    press_keys(page, "l", "Enter")
    page.locator(".chip[data-state=offline]").wait_for()


def left_unsent(server, context, rater: str) -> str:
    """Somebody who came by a link answers while the server is away, and closes the page; the
    link's query."""
    own, page = link(server.folder, rater), context.new_page()
    page.goto(server.url + own)
    page.wait_for_selector(READY)
    answer_unsent(server, page)
    page.close()
    return own


@pytest.fixture(scope="module")
def by_link(make_session, serve_study):
    return serve_study(make_session(2, '[session]\nentry = "invite"'))


NAMES_KEPT = "() => Object.keys(localStorage).filter((name) => name.includes(':answer:'))"


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
    told = page.get_by_role("alert").filter(has_text="Item 1: 1 answer or flag")
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
    page.get_by_role("button", name="I have read this").click()
    told.wait_for(state="hidden")
    page.reload()
    heading(page, "Your part has ended")
    page.wait_for_timeout(1000)
    assert told.is_hidden()
    with open_study(by_link.folder) as study:
        Sessions(study).readmit("ends")
    reload(page)
    assert holds(lambda: len(by_link.labels("ends")) == 1)  # it was kept all the same


def test_an_answer_that_arrived_without_its_receipt_is_not_told_as_lost(new_page, by_link):
    page = new_page(by_link.url + link(by_link.folder, "arrives"))
    page.wait_for_selector(READY)
    answer_unsent(by_link, page)
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
    assert told.inner_text().startswith("Item 1: ")
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


def test_what_waits_when_a_login_ends_is_told_and_sent_after_the_next(
    new_page, make_session, serve_study
):
    folder = make_session(2, '[session]\nentry = "account"')
    password = "correct horse battery"
    with open_study(folder) as study:
        set_account(study.store, "ada", password, "expert")
    server = serve_study(folder)
    page = new_page(server.url)
    log_in(page, "ada", password)
    page.wait_for_selector(READY)
    answer_unsent(server, page)
    with open_study(folder) as study:
        set_account(study.store, "ada", f"{password} changed", "expert")
    server.start()
    told = page.get_by_role("alert").filter(has_text="sent once you are back")
    for _ in range(2):
        page.reload()
        page.get_by_label("Name").wait_for()
        told.wait_for()
    assert told.inner_text().startswith("Item 1: ")
    log_in(page, "ada", f"{password} changed")
    assert holds(lambda: len(server.labels("ada")) == 1)
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Name").wait_for()
    page.wait_for_timeout(1000)
    assert told.is_hidden()
