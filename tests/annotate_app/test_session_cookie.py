"""A session belongs to the browser that began it: what stands in an address, a log or a referrer
opens nothing, and no page of another name speaks to the study."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.where import MOST_PAGES
from evenhand.study import open_study
from evenhand.study.access.lead_login import new_link_token
from harness.served import Served

pytestmark = pytest.mark.browser  # it starts the app, as those do


@pytest.fixture(scope="module")
def server(make_study, serve_study) -> Served:
    folder = make_study(3)
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write('\n[session]\nhosts = ["lab.example.org"]\ntrusted_proxies = ["127.0.0.1"]\n')
    return serve_study(folder)


def asked(
    server: Served, path: str, host: str = "", method: str = "GET", **headers: str
) -> http.client.HTTPResponse:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    line.putrequest(method, path, skip_host=True)
    for name, value in {"Host": host or f"127.0.0.1:{server.port}", **headers}.items():
        line.putheader(name.replace("_", "-"), value)
    line.endheaders()
    return line.getresponse()


def new_browser(server: Served) -> str:
    """The cookie that a browser gets with its first page."""
    cookies = asked(server, "/").headers.get_all("Set-Cookie", [])
    (given,) = [each for each in cookies if each.startswith("evenhand_session=")]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(given.split("; "))
    return str(given.partition(";")[0])


@asynccontextmanager
async def page_of(server: Served, cookie: str = "", session: str = "", **headers: str) -> Any:
    own = f"127.0.0.1:{server.port}"
    origin = f"http://{headers.pop('origin', own)}"
    if cookie:
        headers["Cookie"] = cookie
    asks = ["streamlit", "token", session] if session else ["streamlit"]
    async with connect(
        f"ws://{own}/_stcore/stream",
        subprotocols=asks,
        origin=origin,
        additional_headers=headers,
        max_size=None,
    ) as socket:
        yield socket


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
                return (
                    asked(server, upload, method="DELETE", **said).status,
                    asked(server, file, **said).status,
                )

            for cookie in ("", other):
                assert await anyio.to_thread.run_sync(statuses, cookie) == (403, 403)
            # Past the door: Streamlit wants its own token too, and has no such file.
            taken, given = await anyio.to_thread.run_sync(statuses, own)
            assert given == 404
            assert taken != 404

    anyio.run(try_all)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8501", 200),
        ("lab.example.org", 200),
        ("rebound.example.org", 421),
        ("127.0.0.1.example.org", 421),
        ("localhost@rebound.example.org", 421),
        ("10.0.0.1", 421),
        ("[", 421),
    ],
)
def test_only_the_studys_own_names_are_answered(server, host, status):
    answer = asked(server, "/", host)
    assert answer.status == status
    if status == 421:
        assert b"hosts" in answer.read()
        assert asked(server, "/_stcore/host-config", host).status == 421


def test_a_rebound_name_gets_no_connection(server):
    """As a browser that was led here by a hostile name: Origin and Host are equal, and foreign."""

    async def knock(host: str) -> int:
        try:
            async with connect(
                f"ws://{host}/_stcore/stream", origin=f"http://{host}", host="127.0.0.1",
                port=server.port, subprotocols=["streamlit"],
            ):  # fmt: skip
                return 101
        except InvalidStatus as refusal:
            return refusal.response.status_code

    assert anyio.run(knock, f"rebound.example.org:{server.port}") == 403
    assert anyio.run(knock, f"lab.example.org:{server.port}") == 101


def test_behind_tls_no_cookie_travels_without_it(server):
    own, streamlits = "evenhand_session", "_streamlit_xsrf"
    for path, names in (("/", {own}), ("/_stcore/health", {streamlits})):
        for tls in (True, False):
            said = {"X-Forwarded-Proto": "https"} if tls else {}
            cookies = asked(server, path, **said).headers.get_all("Set-Cookie", [])
            assert all(("Secure" in cookie.split("; ")) == tls for cookie in cookies)
            assert {
                each.partition("=")[0].removeprefix("__Host-" * tls) for each in cookies
            } == names


def test_who_finds_no_room_is_told_so(server):
    """A page more than one address may have open; another address, and who closes one, go on."""

    def room(address: str) -> bool:
        answer = asked(server, "/evenhand/room", X_Forwarded_For=address)
        return bool(json.loads(answer.read())["room"])

    async def crowd() -> None:
        async with anyio.create_task_group() as pages:
            over, opened = anyio.Event(), []

            async def stay() -> None:
                async with page_of(server, **{"X-Forwarded-For": "203.0.113.9"}) as socket:
                    opened.append(socket)
                    await over.wait()

            for _ in range(MOST_PAGES):
                pages.start_soon(stay)
            with anyio.fail_after(30):
                while len(opened) < MOST_PAGES:
                    await anyio.sleep(0.05)
            assert not await anyio.to_thread.run_sync(room, "203.0.113.9")
            assert await anyio.to_thread.run_sync(room, "203.0.113.10")
            with pytest.raises(InvalidStatus):
                async with page_of(server, **{"X-Forwarded-For": "203.0.113.9"}):
                    pass
            async with page_of(server, **{"X-Forwarded-For": "203.0.113.10"}):
                pass
            over.set()
        with anyio.fail_after(10):
            while not await anyio.to_thread.run_sync(room, "203.0.113.9"):
                await anyio.sleep(0.05)

    anyio.run(crowd)


def test_the_sixty_first_person_reads_a_sentence(new_page, served):
    """A classroom behind one address, and one more: there is an answer, and it says what to do."""
    lines = [line_of(served) for _ in range(MOST_PAGES)]
    try:
        page = new_page(served.url)
        expect(page.get_by_text(ENGLISH.say("page.crowded"))).to_be_visible(timeout=15_000)
        assert not page.get_by_text(ENGLISH.say("page.no_answer")).is_visible()
    finally:
        for line in lines:
            line.close()
    expect(page.get_by_text(ENGLISH.say("page.crowded"))).not_to_be_visible(timeout=30_000)
    expect(page.get_by_role("heading", name=ENGLISH.say("entry.title"))).to_be_visible()


def line_of(server: Served) -> socket.socket:
    """An open page that says nothing."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    line.sendall(
        b"GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: streamlit\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert b" 101 " in line.recv(4096)
    return line
