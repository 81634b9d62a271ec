"""What somebody without a login can make the app do, hold and write: so much and no more. A session
belongs to the browser that began it, and no page of another name speaks to the study.
"""

import http.client
import json
import re
import socket
import struct
import time
from contextlib import asynccontextmanager
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
from evenhand.study import open_study
from evenhand.study.access.accounts import new_link_token
from harness.served import Served
from harness.sessions import Session, connected

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


def asked(
    server: Served, path: str, method: str = "GET", host: str = "", **headers: str
) -> http.client.HTTPResponse:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    line.putrequest(method, path, skip_host=True)
    for name, value in {"Host": host or f"127.0.0.1:{server.port}", **headers}.items():
        line.putheader(name.replace("_", "-"), value)
    line.endheaders()
    return line.getresponse()


def line_to(server: Served) -> socket.socket:
    """An open page that says nothing."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    line.sendall(HANDSHAKE.encode())
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
    assert asked(server, f"/_stcore/{path}", method, **given).status == status


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


async def knock(server: Served, origin: str, **how: Any) -> int:
    """The status with which a page of this origin is answered."""
    try:
        async with page_of(server, origin=origin, **how):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


@asynccontextmanager
async def page_of(
    server: Served, cookie: str = "", session: str = "", *,
    origin: str = "", host: str = "127.0.0.1", **headers: str,
) -> Any:  # fmt: skip
    at = f"{host}:{server.port}"
    how = {"subprotocols": ["streamlit", "token", session] if session else ["streamlit"]}
    how |= {"origin": origin or f"http://{at}", "max_size": None}
    how |= {"additional_headers": {"Cookie": cookie, **headers} if cookie else headers}
    there = {"host": "127.0.0.1", "port": server.port}
    async with connect(f"ws://{at}/_stcore/stream", **how, **there) as socket:
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


@pytest.mark.parametrize(
    ("status", "hosts"),
    [
        (200, ["localhost", "LOCALHOST:1", "[::1]:8501", "lab.example.org"]),
        (421, ["rebound.example.org", "127.0.0.1.example.org", "10.0.0.1",
               "localhost@rebound.example.org", "["]),
    ],
)  # fmt: skip
def test_only_the_studys_own_names_are_answered(server, status, hosts):
    for host in hosts:
        answer = asked(server, "/", host=host)
        assert answer.status == status, host
        if status == 421:
            assert b"hosts" in answer.read()
            assert asked(server, "/_stcore/host-config", host=host).status == 421


def megabytes(server: Served) -> float:
    """The memory of the app's process."""
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
    """The cookie that a browser gets with its first page."""
    cookies = asked(server, "/").headers.get_all("Set-Cookie", [])
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
            forged = {"X-Evenhand-Browser": "x"}
            async with page_of(server, "", session, **forged) as thief:
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
                taken = asked(server, upload, method="DELETE", **said)
                return taken.status, asked(server, file, **said).status

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
            cookies = asked(server, path, **said).headers.get_all("Set-Cookie", [])
            assert all(("Secure" in cookie.split("; ")) == tls for cookie in cookies)
            told = {each.partition("=")[0].removeprefix("__Host-" * tls) for each in cookies}
            assert told == names


def test_the_sixty_first_person_reads_a_sentence(new_page, server):
    """A classroom behind one address, and one more: there is an answer, and it says what to do."""

    def room(address: str) -> bool:
        answer = asked(server, "/evenhand/room", X_Forwarded_For=address)
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
