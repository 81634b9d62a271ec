"""The ways between the lead's pages: each has its address, and nobody else learns of them."""

import urllib.request

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.logins import PLACES, place_of
from evenhand.annotate_app.routes import front_page
from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.texts import written
from harness.annotator import arrive
from harness.served import Served
from tests.annotate_app.leading import PASSWORD, inside, log_in, shut_out
from tests.annotate_app.participants import frames_of


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    folder = make_study(2)
    with open_study(folder) as study:
        set_account(study.store, "ada", PASSWORD, "lead")
        set_account(study.store, "chair", PASSWORD, "expert")
    return serve_study(folder)


def is_at(page: Page, served: Served, title: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.wait_for_url(served.url + place_of(title))
    expect(page.locator("a[aria-current=page]").last).to_have_text(title)


def test_every_page_has_its_address():
    assert {place_of(page.title) for page in PAGES} == PLACES


@pytest.mark.browser
def test_back_reload_and_bookmark_lead_to_the_same_page(lead, new_page, served):
    page = lead(served)
    is_at(page, served, "Overview")
    settings = page.get_by_test_id("stSidebarNav").get_by_role("link", name="Settings")
    for title in ("Sessions", "Settings"):
        page.get_by_role("link", name=title, exact=True).focus()
        page.keyboard.press("Enter")
        is_at(page, served, title)
    assert page.title().startswith("Settings: ")
    page.get_by_role("link", name="Log", exact=True).click()
    is_at(page, served, "Log")
    expect(settings).to_have_attribute("aria-current", "true")
    page.go_back()
    is_at(page, served, "Settings")
    page.go_back()
    is_at(page, served, "Sessions")
    page.reload()
    is_at(page, served, "Sessions")
    page.get_by_role("button", name="Log out").click()
    shut_out(page)

    kept = new_page(f"{served.url}accounts")  # with a bookmark
    log_in(kept, "ada")
    expect(kept.get_by_role("heading", level=1)).to_have_text("Accounts")
    assert kept.context.cookies()  # without which no file is taken in


@pytest.mark.browser
def test_an_expert_finds_one_page_at_every_address(new_page, served):
    page = new_page(f"{served.url}?lead")
    log_in(page, "chair")
    inside(page)
    for place in ("overview", "sessions", "adjudication"):
        page.goto(served.url + place)
        expect(page.get_by_role("heading", level=1)).to_have_text("Adjudication")
        expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(0)  # one needs no list
        page.wait_for_url(served.url + place)
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.browser
def test_a_rater_receives_no_name_of_a_page(new_page, served):
    page = new_page("about:blank")
    received = frames_of(page, "framereceived")
    arrive(page, served, "curious")
    assert named_to(received) == set()
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)
    received.clear()
    page.goto(f"{served.url}progress")  # the door says what was asked for, and no more
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    assert named_to(received) == {"progress", written("lead_door.title")}


def named_to(received: list[bytes]) -> set[str]:
    """The pages that a browser was told of, by the two kinds of messages that name any."""
    messages = [ForwardMsg.FromString(each) for each in received]
    assert "delta" in {message.WhichOneof("type") for message in messages}  # the listening works
    lists = [message.navigation.app_pages for message in messages]
    lists += [message.new_session.app_pages for message in messages]
    pages = [page for each in lists for page in each]
    return {name for page in pages for name in (page.page_name, page.url_pathname)} - {""}


@pytest.mark.browser
def test_every_address_begins_with_our_page(served):
    for place in PLACES:
        with urllib.request.urlopen(served.url + place) as answer:  # noqa: S310
            assert answer.read().decode() == front_page()
