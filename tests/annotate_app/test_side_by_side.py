"""Several studies behind one address, by the real command: what is apart stays apart."""

import asyncio
import json
import shutil
import signal
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect
from websockets import Origin, Subprotocol
from websockets.asyncio.client import connect as async_connect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from evenhand.cli.verbs import lead_link
from evenhand.study import open_study
from evenhand.study.access.accounts import accounts, new_link_token, set_account
from evenhand.study.access.admission import make_invites
from evenhand.study.settings.study_toml import change_config, read_config
from harness.annotator import arrive
from harness.served import ServedTogether, holds
from harness.studies import write_pairs
from tests.annotate_app.leading import (
    choose,
    complaint,
    fill,
    inside,
    log_in,
    press,
    settled,
    turn_to,
    upload,
)
from tests.annotate_app.test_door import drawn
from tests.annotate_app.together import NAMES, PASSWORD, asked, two_studies
from tests.commands import python

pytestmark = pytest.mark.browser  # it starts the app, as those do


@pytest.mark.journey
def test_people_label_in_both_at_once_each_in_their_own(new_context, together):
    """In one browser and under one code, which is another person in each."""
    context = new_context()
    people = [arrive(context.new_page(), together.study(name), "ann") for name in NAMES]
    for person in people:
        person.answer("L")
    people[0].answer("R")
    assert all(person.all_stored() for person in people)
    assert [len(person.given) for person in people] == [2, 1]
    names = {str(each["name"]) for each in context.cookies()}
    assert {f"evenhand_session_{name}" for name in NAMES} <= names


def test_what_opens_one_opens_nothing_of_the_other(new_context, together):
    first, second = (together.study(name) for name in NAMES)
    page = new_context().new_page()
    page.goto(lead_link(first.folder, second.url))  # a link of the first at the second
    expect(page.get_by_text("this link is not valid")).to_be_visible()
    with open_study(first.folder) as study:
        (invite,) = make_invites(study, ["guest"], 1)
    page.goto(f"{second.url}?invite={invite.token}")
    expect(page.locator(".evenhand-complaint")).to_be_visible()
    page.goto(lead_link(first.folder, first.url))
    inside(page)
    page.goto(f"{second.url}overview")  # in the same window, with all that the first left there
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(0)
    log_in(page, "ada", f"{PASSWORD} for first")
    expect(page.locator(".evenhand-complaint")).to_be_visible()
    page.get_by_label("Password", exact=True).fill(f"{PASSWORD} for second")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.goto(f"{first.url}overview")  # the login in the first is still there
    expect(page.get_by_text("Leading the study")).to_be_visible()


def test_a_session_of_one_opens_in_no_other(together):
    """Not even for its lead, in a browser with one cookie for both."""
    cookie = "; ".join(f"evenhand_session_{name}={'x' * 43}" for name in NAMES)
    with open_study(together.study("first").folder) as study:
        link = new_link_token(study.store)

    async def shown(name: str, query: str, session: str = "", **headers: str) -> tuple[str, str]:
        async with async_connect(
            f"ws://127.0.0.1:{together.port}/{name}/_stcore/stream",
            subprotocols=[Subprotocol(each) for each in ("streamlit", "x", session) if each],
            origin=Origin(f"http://127.0.0.1:{together.port}"),
            additional_headers={"Cookie": cookie, **headers},
            max_size=None,
        ) as line:
            return await drawn(line, query)

    async def try_both() -> None:
        session, seen = await shown("first", f"lead={link}")
        assert "Leading the study" in seen
        got, seen = await shown("second", "lead=in", session, **{"X-Evenhand-Study": "/first"})
        assert got != session
        assert "Leading the study" not in seen
        got, seen = await shown("first", "lead=in", session)
        assert got == session
        assert "Leading the study" in seen

    with ThreadPoolExecutor(1) as apart:  # from the loop of the browser, if one runs here
        apart.submit(asyncio.run, try_both()).result()


ODD = ["/first/..%2fsecond/health", "/first/%2e%2e/second/health", "/first/../second/health",
       "/first%2f..%2fsecond/health", "//second/health", "/first//second/health", "/First/health",
       "/first\\..\\second/health", "/second%00/health", "http://localhost/second/health",
       "*"]  # fmt: skip


def test_a_stranger_learns_of_no_study_and_no_odd_path_leads_to_one(together):
    for path in ("/", "/third/", "/overview", "/_stcore/health", "/favicon.ico"):
        status, said = asked(together, path)
        assert (status, said) == (404, "Nothing is here. Use the link that you were given.")
    assert asked(together, "/health") == (200, '{"studies":"answer"}')
    for name in NAMES:
        status, said = asked(together, f"/{name}/")
        assert status == 200
        assert not [each for each in NAMES if f"/{each}" in said]
    assert asked(together, "/first/", Host="rebound.example.org")[0] == 421
    for path in ("", "/third", "/first/..%2fsecond"):
        with pytest.raises(InvalidStatus) as refusal:
            page_of(together, f"{path}/_stcore/stream")
        assert refusal.value.response.status_code in (400, 403, 404)
    for target in ODD:
        with socket.create_connection(("127.0.0.1", together.port), 30) as line:
            head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            line.sendall(head.encode())
            said = b"".join(iter(lambda: line.recv(65536), b""))
        assert b'"store"' not in said, target
        assert b" 500 " not in said.partition(b"\r\n")[0], target


def page_of(together: ServedTogether, path: str, address: str = "127.0.0.1") -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{together.port}{path}",
        subprotocols=[Subprotocol("streamlit")],
        source_address=(address, 0),
        open_timeout=20,
    )


def test_a_lead_goes_from_one_study_to_the_other_and_an_expert_does_not(new_page, together):
    first, second = (together.study(name) for name in NAMES)
    page = new_page(lead_link(first.folder, first.url))
    inside(page)
    ways = page.get_by_role("navigation", name="Other studies at this address")
    expect(ways.get_by_role("link")).to_have_text(["second"])
    turn_to(page, "New study")  # every page has its address under the study's
    page.wait_for_url(f"{first.url}new-study")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("New study")
    turn_to(ways, "second")
    page.wait_for_url(f"{second.url}overview")
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    with open_study(first.folder) as study:
        set_account(study.store, "chair", PASSWORD, "expert")
    page = new_page(f"{first.url}adjudication")
    log_in(page, "chair")
    expect(page.get_by_text("Leading the study")).to_be_visible()
    expect(page.get_by_role("navigation", name="Other studies at this address")).to_have_count(0)


def test_a_study_made_in_the_browser_is_served_at_once_for_the_lead_who_made_it(
    new_page, together, tmp_path
):
    first, third = together.study("first"), together.study("third")
    page = new_page(f"{first.url}new-study")
    log_in(page, "ada", f"{PASSWORD} for first")
    settled(page).get_by_text("Paired prompts", exact=True).click()
    expect(page.get_by_text("Pairs of prompts")).to_be_visible()
    upload(page, write_pairs(tmp_path / "pairs.csv"))
    expect(page.get_by_text("pairs.csv")).to_be_visible()
    choose(page, "Rubrics", "refusal")
    fill(page, "Pairs to label", "4")
    for name in ("SECOND", "third"):  # the first is taken here, whatever the case
        fill(page, "Name of the study, and of its folder", name)
        press(page, "Create the study")
        if name == "SECOND":
            complaint(page, "/SECOND")
    expect(page.get_by_text(f"It is served at {third.url} now")).to_be_visible(timeout=90_000)
    assert holds(lambda: asked(together, "/third/health")[0] == 200, 60)
    page.get_by_role("link", name="Invite annotators").click()
    page.wait_for_url(f"{third.url}sessions")
    expect(page.get_by_text("Leading the study")).to_be_visible()
    ways = page.get_by_role("navigation", name="Other studies at this address")
    expect(ways.get_by_role("link")).to_have_text(["first", "second"])
    assert read_config(third.folder).session.trusted_proxies == ("127.0.0.9",)
    with open_study(third.folder) as study:
        assert accounts(study.store)["ada"].role == "lead"
    page = new_page(f"{third.url}overview")
    log_in(page, "ada", f"{PASSWORD} for first")
    expect(page.get_by_text("Leading the study")).to_be_visible()


def test_links_and_files_of_a_leads_page_are_of_its_study(lead, together):
    second = together.study("second")
    page = lead(second, "Sessions")
    page.get_by_label("Annotator codes").fill("dora")
    settled(page).get_by_role("button", name="Make links").click()
    expect(page.locator("code")).to_contain_text(f"{second.url}?invite=")
    turn_to(page, "Export")
    with page.expect_download() as started:
        page.get_by_role("button", name="Times and pay", exact=True).click()
    assert started.value.url.startswith(f"{second.url}media/")
    assert Path(started.value.path()).read_text("utf-8").startswith("rater_id")
    path = started.value.url.removeprefix(together.url.rstrip("/"))
    assert asked(together, path)[0] == 403  # without the browser's cookie
    cookie = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
    assert asked(together, path, Cookie=cookie)[0] == 200
    elsewhere = path.replace("/second/", "/first/", 1)
    assert asked(together, elsewhere, Cookie=cookie)[0] == 403


def test_health_is_good_only_where_all_are(together):
    lock = sqlite3.connect(together.study("second").folder / "study.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    try:
        assert holds(lambda: asked(together, "/health")[0] == 503)
        assert json.loads(asked(together, "/second/health")[1])["store"] == "cannot be written"
        assert asked(together, "/first/health")[0] == 200
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    assert holds(together.is_well)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_command(tmp_path, number):
    served = ServedTogether(two_studies(tmp_path), tmp_path)
    served.start()
    running = served.process.children(recursive=True)
    served.process.send_signal(number)
    assert served.process.wait(30) == (0 if number == signal.SIGINT else -number)
    psutil.wait_procs(running, timeout=30)
    assert not [each for each in running if each.is_running()]
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", served.port))


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> list[Path]:
    """For commands that refuse them, or change nothing."""
    return two_studies(tmp_path_factory.mktemp("two"))


def refused(*words: object, says: str) -> None:
    """Check that the command serves nothing and says why in one sentence."""
    done = python("-m", "evenhand", "annotate", *words, timeout=60)
    assert done.returncode == 2
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_what_cannot_be_served_together_is_refused(two, tmp_path, monkeypatch):
    same, other, *odd = (tmp_path / n for n in ("A/Same", "B/same", "a b", "health", "static"))
    for folder in (same, other, *odd):
        folder.mkdir(parents=True)
    refused(same, other, says="Two studies would have the address /same; rename one")
    for folder in odd:
        refused(same, folder, says=f"{folder.name} cannot be the path of an address")
    refused(tmp_path, tmp_path, "--path", "/x", says="is of one study")
    refused(tmp_path, "--path", "/a/b", says="cannot be the path")
    url, first = "https://study.example.org", two[0]
    for path in ("/first", "/elsewhere"):
        refused(*two, "--url", f"{url}{path}", says=f"Leave it out: {url}")
    refused(first, "--url", f"{url}/elsewhere", "--path", "/first", says=f"Leave it out: {url}")
    shutil.copytree(first, tmp_path / "copy")  # links would open both
    refused(first, tmp_path / "copy", says="copy is a copy of first")
    monkeypatch.setenv("EVENHAND_TEST_SECRET", "x")
    settings = {
        "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
        "client_id": "evenhand",
        "client_secret": "${EVENHAND_TEST_SECRET}",
        "address": f"{url}/second",
    }
    folder = shutil.copytree(first, tmp_path / "first")
    change_config(folder, {"oidc": settings})  # a single sign-on that would lead elsewhere
    for options, path in (([], "/"), (["--path", "/first"], "/first")):
        refused(folder, *options, says=f"/second, but this study is served at {path}.")
    refused(folder, two[1], says="--path /first")


def test_what_is_broken_in_the_folder_around_keeps_no_other_from_being_served(tmp_path):
    home = tmp_path / "studies"
    home.mkdir()
    first, second = two_studies(home)
    for name in NAMES:
        shutil.rmtree(home / f"of-{name}")
    shutil.copytree(first, home / ".first.5e1f")  # as a killed restore leaves it
    with (second / "study.toml").open("a") as settings:
        settings.write("nonsense = [\n")
    with ServedTogether([home], tmp_path) as served:
        assert asked(served, "/first/health")[0] == 200
        assert asked(served, "/second/health")[0] == 404
        assert "second is not served: " in served.log
        assert ".first" not in served.log
    refused(first, second, says="second: ")
    shutil.copytree(second, tmp_path / "broken" / "second")
    refused(tmp_path / "broken", says="No study can be served")


@pytest.mark.parametrize("number", [1, 2])
def test_a_port_that_is_taken_is_one_sentence_and_a_folder_one_stands_in_has_its_name(
    two, number, monkeypatch
):
    monkeypatch.chdir(two[0])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = python("-m", "evenhand", "annotate", ".", *two[1:number], "--port", port)
    assert done.returncode == 2
    assert ("/first/" in done.stdout) == (number == 2)
    assert f"Port {port} is not available" in done.stderr
    assert "Traceback" not in done.stderr
