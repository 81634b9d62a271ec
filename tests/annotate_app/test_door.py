"""What somebody without a login can make the app do, hold and write: so much and no more. A session
belongs to the browser that began it, and no page of another name speaks to the study. Of several
studies behind one address, by the real command, what is apart stays apart.
"""

import http.client
import json
import re
import shutil
import signal
import socket
import sqlite3
import struct
import time
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.sites import MOST_PAGES
from evenhand.cli.main import lead_link
from evenhand.study import open_study
from evenhand.study.access import accounts, make_invites, new_link_token, set_account
from evenhand.study.settings.study_toml import change_config, read_config
from harness.annotator import arrive
from harness.served import Served, ServedTogether, holds
from harness.sessions import Session, connected
from harness.studies import write_pairs
from tests.annotate_app import leading
from tests.annotate_app.together import NAMES, PASSWORD, PROXY, asked, two_studies
from tests.commands import python

pytestmark = pytest.mark.browser  # it starts the app, as those do

HANDSHAKE = (
    "GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: streamlit\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PROXIED = """
[session]
hosts = ["lab.example.org"]
trusted_proxies = ["127.0.0.1"]
"""


@pytest.fixture(scope="module")
def server(make_session, serve_study) -> Served:
    return serve_study(make_session(5, PROXIED))


def answer_of(
    server: Served, path: str, method: str = "GET", host: str = "", **headers: str
) -> http.client.HTTPResponse:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    line.putrequest(method, path, skip_host=True)
    for name, value in {"Host": host or f"127.0.0.1:{server.port}", **headers}.items():
        line.putheader(name.replace("_", "-"), value)
    line.endheaders()
    return line.getresponse()


def line_to(server: Served | ServedTogether, path: str = "", address: str = "") -> socket.socket:
    """An open page that says nothing."""
    source = (address, 0) if address else None
    line = socket.create_connection(("127.0.0.1", server.port), 20, source_address=source)
    line.sendall(HANDSHAKE.replace("GET ", f"GET {path}").encode())
    assert b" 101 " in line.recv(4096)
    return line


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "health", 200),
        *(("GET", path, 404) for path in ("metrics", "metrics?families=x", "script-health-check")),
        ("POST", "agent/interact", 404),
        *((method, "upload_file/session/file", 403) for method in ("DELETE", "POST")),
    ],
)
def test_what_is_not_for_visitors_is_closed(server, method, path, status):
    given = {"Cookie": "_streamlit_xsrf=2|0|0|0", "X-Xsrftoken": "x"}
    assert answer_of(server, f"/_stcore/{path}", method, **given).status == status


def test_a_file_of_somebody_without_a_login_is_refused_unread(server):
    size = 400 * 1024 * 1024
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        head = (
            "PUT /_stcore/upload_file/some-session/some-file HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {size}\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n"
        )
        line.sendall(head.encode())
        assert b" 403 " in line.recv(4096)
        sent = 0
        try:
            while sent < size:
                sent += line.send(bytes(1024 * 1024))
        except OSError:
            pass  # the app has hung up
    assert sent < 50 * 1024 * 1024


async def knock(server: Served | ServedTogether, origin: str, **how: Any) -> int:
    try:
        async with page_of(server, origin=origin, **how):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


@asynccontextmanager
async def page_of(
    server: Served | ServedTogether, cookie: str = "", session: str = "", *,
    origin: str = "", host: str = "127.0.0.1", path: str = "", **headers: str,
) -> Any:  # fmt: skip
    at = f"{host}:{server.port}"
    how = {"subprotocols": ["streamlit", "token", session] if session else ["streamlit"]}
    how |= {"origin": origin or f"http://{at}", "max_size": None}
    how |= {"additional_headers": {"Cookie": cookie, **headers} if cookie else headers}
    there = {"host": "127.0.0.1", "port": server.port}
    async with connect(f"ws://{at}{path}/_stcore/stream", **how, **there) as socket:
        yield socket


def test_a_foreign_page_is_refused_at_once_and_costs_nobody_a_moment(server):
    own = f"http://127.0.0.1:{server.port}"
    foreign = ("https://elsewhere.example.org", "null", "http://[", "https://127.0.0.1.example.org")
    begun = time.perf_counter()
    for origin in foreign * 3:
        assert anyio.run(knock, server, origin) == 403
    # Looking up the address of this machine outside takes ten seconds for each.
    assert time.perf_counter() - begun < 10
    for origin in (own, "http://localhost:1"):
        assert anyio.run(knock, server, origin) == 101
    # A browser that was led here by a hostile name: Origin and Host are equal, and foreign.
    for host, status in (("rebound.example.org", 403), ("lab.example.org", 101)):
        assert anyio.run(lambda host=host: knock(server, "", host=host)) == status


@pytest.mark.parametrize(("status", "hosts"), [
    (200, ["localhost", "LOCALHOST:1", "[::1]:8501", "lab.example.org"]),
    (421, ["rebound.example.org", "127.0.0.1.example.org", "10.0.0.1",
           "localhost@rebound.example.org", "["]),
])  # fmt: skip
def test_only_the_studys_own_names_are_answered(server, status, hosts):
    for host in hosts:
        answer = answer_of(server, "/", host=host)
        assert answer.status == status, host
        if status == 421:
            assert b"hosts" in answer.read()
            assert answer_of(server, "/_stcore/host-config", host=host).status == 421


def megabytes(server: Served) -> float:
    assert server.process is not None
    return psutil.Process(server.process.pid).memory_info().rss / 1e6


def begun(server: Served, announced: int, sent: int) -> socket.socket:
    """A line on which a message of `announced` bytes was begun, and `sent` of them came."""
    line = line_to(server)
    line.settimeout(5)
    try:
        line.sendall(bytes([0x82, 0xFF]) + struct.pack("!Q", announced) + bytes(4))
        for _ in range(0, sent, 65536):
            line.sendall(bytes(65536))
    except OSError:
        pass  # the app has hung up
    return line


@pytest.mark.parametrize("announced", [19_000_000, 950_000])
def test_messages_that_never_end_fill_no_memory(server, announced):
    async def label() -> float:
        server.enter(f"at-work-{announced}")
        person = Session(server.port, f"at-work-{announced}")
        await person.open()
        await person.answer()
        await person.close()
        return person.milliseconds[0]

    anyio.run(label)
    before = megabytes(server)
    lines = [begun(server, announced, announced - 100) for _ in range(58)]
    assert megabytes(server) < before + 100
    assert anyio.run(label) < 5000  # somebody else at work is not the one who is hung up on
    for line in lines:
        line.close()
    time.sleep(0.5)
    assert megabytes(server) < before + 100


def test_messages_leave_a_few_lines_in_the_log_and_forge_none(server):
    forged = "\n2026-11-22 12:00:00.000 [lead] logged in"

    async def send(number: int) -> None:
        line = await connected(server.port)
        await line.send(bytes([number]) + forged.encode() * 20_000)
        await line.wait_closed()

    before = (server.home / "server.log").stat().st_size
    for number in range(10):
        anyio.run(send, number)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as line:
        line.sendall(HANDSHAKE.replace("Host", "Origin: http://x\x0bforged\r\nHost").encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 4")
    written = (server.home / "server.log").read_bytes()[before:]
    assert len(written) < 20_000
    assert not re.search(rb"^2026-11-22", written, re.MULTILINE)


def test_a_message_that_is_too_long_ends_its_own_connection(server):
    async def flood() -> int:
        server.enter("other", "long")
        other, long = Session(server.port, "other"), Session(server.port, "long")
        await other.open()
        await long.open()
        asked = long.asks()
        asked.rerun_script.query_string = "x" * 2_000_000
        with pytest.raises(ConnectionClosed) as closed:
            await long.draw(asked)
        assert await other.answer()
        assert other.milliseconds[0] < 1000
        await other.close()
        return closed.value.rcvd.code

    assert anyio.run(flood) == 1009


def new_browser(server: Served) -> str:
    cookies = answer_of(server, "/").headers.get_all("Set-Cookie", [])
    (given,) = [each for each in cookies if each.startswith("evenhand_session=")]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(given.split("; "))
    return str(given.partition(";")[0])


async def drawn(socket: Any, query: str = "") -> tuple[str, str]:
    """The session's id, and all that its page shows."""
    message = BackMsg()
    message.rerun_script.query_string = query
    message.rerun_script.widget_states.SetInParent()
    await socket.send(message.SerializeToString())
    session, seen = "", ""
    while True:
        said = ForwardMsg.FromString(await socket.recv())
        kind = said.WhichOneof("type")
        if kind == "new_session":
            session = said.new_session.initialize.session_id
        seen += str(said)
        if kind == "script_finished" and session:
            return session, seen


def test_a_sessions_id_without_the_cookie_is_nobodys_session(server):
    async def try_all() -> None:
        own, other = new_browser(server), new_browser(server)
        with open_study(server.folder) as study:
            link = new_link_token(study.store)
        async with page_of(server, own) as lead:
            session, seen = await drawn(lead, f"lead={link}")
            assert "Leading the study" in seen
            for cookie in ("", other, "evenhand_session=" + "x" * 43):
                async with page_of(server, cookie, session) as thief:
                    got, shown = await drawn(thief, "lead=in")
                    assert got != session
                    assert "Leading the study" not in shown
                    assert "Leading a study" in shown  # the door
            async with page_of(server, "", session, **{"X-Evenhand-Browser": "x"}) as thief:
                assert (await drawn(thief, "lead=in"))[0] != session
            # The lead's page is still theirs, and after a break they go on in it.
            assert "Leading the study" in (await drawn(lead, "lead=in"))[1]
        async with page_of(server, own, session) as lead:
            got, seen = await drawn(lead, "lead=in")
            assert got == session
            assert "Leading the study" in seen

    anyio.run(try_all)


def test_a_file_is_taken_from_and_given_to_the_leads_browser_alone(server):
    async def try_all() -> None:
        own, other = new_browser(server), new_browser(server)
        with open_study(server.folder) as study:
            link = new_link_token(study.store)
        async with page_of(server, own) as lead:
            session, _ = await drawn(lead, f"lead={link}")
            upload, file = f"/_stcore/upload_file/{session}/file", "/media/" + "0" * 56 + ".csv"

            def statuses(cookie: str) -> tuple[int, int]:
                said = {"Cookie": cookie} if cookie else {}
                taken = answer_of(server, upload, method="DELETE", **said)
                return taken.status, answer_of(server, file, **said).status

            for cookie in ("", other):
                assert await anyio.to_thread.run_sync(statuses, cookie) == (403, 403)
            # Past the door: Streamlit wants its own token too, and has no such file.
            taken, given = await anyio.to_thread.run_sync(statuses, own)
            assert given == 404
            assert taken != 404

    anyio.run(try_all)


def test_behind_tls_no_cookie_travels_without_it(server):
    own, streamlits = "evenhand_session", "_streamlit_xsrf"
    for path, names in (("/", {own}), ("/_stcore/health", {streamlits})):
        for tls in (True, False):
            said = {"X-Forwarded-Proto": "https"} if tls else {}
            cookies = answer_of(server, path, **said).headers.get_all("Set-Cookie", [])
            assert all(("Secure" in cookie.split("; ")) == tls for cookie in cookies)
            told = {each.partition("=")[0].removeprefix("__Host-" * tls) for each in cookies}
            assert told == names


def test_a_session_of_one_opens_in_no_other(together):
    cookie = "; ".join(f"evenhand_session_{name}={'x' * 43}" for name in NAMES)
    with open_study(together.study("first").folder) as study:
        link = new_link_token(study.store)

    async def shown(name: str, query: str, session: str = "", **headers: str) -> tuple[str, str]:
        async with page_of(together, cookie, session, path=f"/{name}", **headers) as line:
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

    anyio.run(try_both)


ODD = ["/first/..%2fsecond/health", "/first/%2e%2e/second/health", "/first/../second/health",
       "/first%2f..%2fsecond/health", "//second/health", "/first//second/health", "/First/health",
       "/first\\..\\second/health", "/second%00/health", "http://localhost/second/health",
       "*"]  # fmt: skip


def test_a_stranger_learns_of_no_study(together):
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
        assert anyio.run(lambda path=path: knock(together, "", path=path)) in (400, 403, 404)
    for target in ODD:
        with socket.create_connection(("127.0.0.1", together.port), 30) as line:
            head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            line.sendall(head.encode())
            said = b"".join(iter(lambda: line.recv(65536), b""))
        assert b'"store"' not in said, target
        assert b" 500 " not in said.partition(b"\r\n")[0], target


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


def test_each_study_counts_the_pages_of_an_address_and_believes_its_own_proxy_alone(together):
    full, free, theirs = "127.0.0.2", "127.0.0.3", "203.0.113.5"

    def room(name: str, address: str, forwarded: str = "") -> bool:
        said = {"X_Forwarded_For": forwarded} if forwarded else {}
        found, text = asked(together, f"/{name}/evenhand/room", address, **said)
        assert found == 200
        return bool(json.loads(text)["room"])

    with ExitStack() as pages:
        for _ in range(MOST_PAGES):
            pages.enter_context(line_to(together, "/first", full))
        assert not room("first", full)
        assert room("first", free) and room("second", full)
        assert not room("first", full, theirs)
        assert room("first", PROXY, theirs)
        assert not room("first", PROXY, f"{theirs}, {full}")
    assert holds(lambda: room("first", full))


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
    assert (done.returncode, "/first/" in done.stdout) == (2, number == 2)
    assert f"Port {port} is not available" in done.stderr
    assert "Traceback" not in done.stderr


# From here on browsers, last, since while their loop runs no test can run its own.
def test_the_sixty_first_person_reads_a_sentence(new_page, server):
    def room(address: str) -> bool:
        answer = answer_of(server, "/evenhand/room", X_Forwarded_For=address)
        return bool(json.loads(answer.read())["room"])

    lines = [line_to(server) for _ in range(MOST_PAGES)]
    try:
        page = new_page(server.url)
        expect(page.get_by_text(ENGLISH.say("page.crowded"))).to_be_visible(timeout=15_000)
        assert not page.get_by_text(ENGLISH.say("page.no_answer")).is_visible()
        assert not room("127.0.0.1")
        assert room("203.0.113.10")  # another address goes on
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
            line.sendall(HANDSHAKE.encode())
            assert b" 101 " not in line.recv(4096)
    finally:
        for line in lines:
            line.close()
    expect(page.get_by_text(ENGLISH.say("page.crowded"))).not_to_be_visible(timeout=30_000)
    expect(page.get_by_role("heading", name=ENGLISH.say("entry.title"))).to_be_visible()


@pytest.mark.journey
def test_people_label_in_both_at_once_and_a_kill_loses_nothing_in_any_study(new_context, together):
    """In one browser and under one code, which is another person in each."""
    context = new_context()
    people = [arrive(context.new_page(), together.study(name), "ann") for name in NAMES]
    for person in people:
        person.answer("L")
    people[0].answer("R")
    names = {str(each["name"]) for each in context.cookies()}
    assert {f"evenhand_session_{name}" for name in NAMES} <= names
    together.process.kill()
    together.process.wait()
    for person in people:
        person.give("C")  # which nobody hears yet
    together.start()
    for person in people:
        person.wait_for_chip("saved")
    assert all(person.all_stored() for person in people)
    assert [len(person.given) for person in people] == [3, 2]


def test_what_opens_one_opens_nothing_of_the_other(new_page, together):
    first, second = (together.study(name) for name in NAMES)
    page = new_page(lead_link(first.folder, second.url))  # a link of the first at the second
    expect(page.get_by_text("this link is not valid")).to_be_visible()
    with open_study(first.folder) as study:
        (invite,) = make_invites(study, ["guest"], 1)
        set_account(study.store, "chair", PASSWORD, "expert")
    page.goto(f"{second.url}?invite={invite.token}")
    expect(page.locator(".evenhand-complaint")).to_be_visible()
    page.goto(lead_link(first.folder, first.url))
    leading.inside(page)
    ways = page.get_by_role("navigation", name="Other studies at this address")
    expect(ways.get_by_role("link")).to_have_text(["second"])
    leading.turn_to(page, "New study")  # every page has its address under the study's
    page.wait_for_url(f"{first.url}new-study")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("New study")
    leading.turn_to(ways, "second")  # in the same window, with all that the first left there
    page.wait_for_url(f"{second.url}overview")
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(0)
    leading.log_in(page, "ada", f"{PASSWORD} for first")
    expect(page.locator(".evenhand-complaint")).to_be_visible()
    leading.log_in(page, "ada", f"{PASSWORD} for second")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.goto(f"{first.url}overview")  # the login in the first is still there
    expect(page.get_by_text("Leading the study")).to_be_visible()
    page = new_page(f"{first.url}adjudication")
    leading.log_in(page, "chair")  # an expert finds no way
    expect(page.get_by_text("Leading the study")).to_be_visible()
    expect(page.get_by_role("navigation", name="Other studies at this address")).to_have_count(0)


def test_a_study_made_in_the_browser_is_served_at_once_for_the_lead_who_made_it(
    new_page, together, tmp_path
):
    first, third = together.study("first"), together.study("third")
    page = new_page(f"{first.url}new-study")
    leading.log_in(page, "ada", f"{PASSWORD} for first")
    leading.settled(page).get_by_text("Paired prompts", exact=True).click()
    expect(page.get_by_text("Pairs of prompts")).to_be_visible()
    leading.upload(page, write_pairs(tmp_path / "pairs.csv"))
    expect(page.get_by_text("pairs.csv")).to_be_visible()
    leading.choose(page, "Rubrics", "refusal")
    leading.fill(page, "Pairs to label", "4")
    for name in ("SECOND", "third"):  # the first is taken here, whatever the case
        leading.fill(page, "Name of the study, and of its folder", name)
        page.keyboard.press("Tab")
        leading.press(page, "Create the study")
        if name == "SECOND":
            leading.complaint(page, "/SECOND")
    expect(page.get_by_text(f"It is served at {third.url} now")).to_be_visible(timeout=90_000)
    assert holds(lambda: asked(together, "/third/health")[0] == 200, 60)
    page.get_by_role("link", name="Invite annotators").click()
    page.wait_for_url(f"{third.url}recruitment")
    expect(page.get_by_text("Leading the study")).to_be_visible()
    ways = page.get_by_role("navigation", name="Other studies at this address")
    expect(ways.get_by_role("link")).to_have_text(["first", "second"])
    assert read_config(third.folder).session.trusted_proxies == ("127.0.0.9",)
    with open_study(third.folder) as study:
        assert accounts(study.store)["ada"].role == "lead"
    page = new_page(f"{third.url}overview")
    leading.log_in(page, "ada", f"{PASSWORD} for first")
    expect(page.get_by_text("Leading the study")).to_be_visible()


def test_links_and_files_of_a_leads_page_are_of_its_study(lead, together):
    second = together.study("second")
    page = lead(second, "Recruitment")
    leading.fill(page, "Annotator codes", "dora")
    leading.press(page, "Make links")
    expect(page.locator("code")).to_contain_text(f"{second.url}?invite=")
    leading.turn_to(page, "Export")
    with page.expect_download() as started:
        page.get_by_role("button", name="Times and pay CSV").click()
    assert started.value.url.startswith(f"{second.url}media/")
    assert Path(started.value.path()).read_text("utf-8").startswith("rater_id")
    path = started.value.url.removeprefix(together.url.rstrip("/"))
    assert asked(together, path)[0] == 403  # without the browser's cookie
    cookie = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
    assert asked(together, path, Cookie=cookie)[0] == 200
    assert asked(together, path.replace("/second/", "/first/", 1), Cookie=cookie)[0] == 403
