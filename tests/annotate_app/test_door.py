"""What the running app refuses before it costs anyone anything: uploads, figures, foreign pages."""

from __future__ import annotations

import http.client
import socket
import time

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from harness.served import Served
from harness.sessions import Session

pytestmark = pytest.mark.browser  # it starts the app, as those do


@pytest.fixture(scope="module")
def server(serve) -> Served:
    return serve(5)


def asked(server: Served, method: str, path: str, body: bytes = b"") -> int:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    line.request(method, path, body, {"Cookie": "_streamlit_xsrf=2|0|0|0", "X-Xsrftoken": "x"})
    status = line.getresponse().status
    line.close()
    return status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/_stcore/health", 200),
        ("GET", "/_stcore/metrics", 404),
        ("GET", "/_stcore/metrics?families=x", 404),
        ("POST", "/_stcore/agent/interact", 404),
        ("GET", "/_stcore/script-health-check", 404),
        ("DELETE", "/_stcore/upload_file/session/file", 403),
        ("POST", "/_stcore/upload_file/session/file", 403),
    ],
)
def test_what_is_not_for_visitors_is_closed(server, method, path, status):
    assert asked(server, method, path) == status


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


async def opened(server: Served, origin: str) -> bool:
    """Whether a page of this origin gets a connection; by any status but 403 it fails."""
    try:
        async with connect(
            f"ws://127.0.0.1:{server.port}/_stcore/stream", origin=origin, open_timeout=10
        ):
            return True
    except InvalidStatus as refusal:
        if refusal.response.status_code != 403:
            raise
        return False


def test_a_foreign_page_is_refused_at_once_and_costs_nobody_a_moment(server):
    own = f"http://127.0.0.1:{server.port}"
    foreign = ("https://elsewhere.example.org", "null", "http://[", "https://127.0.0.1.example.org")

    async def knock() -> tuple[list[bool], float]:
        begun = time.perf_counter()
        found = [await opened(server, origin) for origin in foreign * 3]
        return found, time.perf_counter() - begun

    found, seconds = anyio.run(knock)
    assert not any(found)
    assert seconds < 10  # looking up the address of this machine outside takes that for each
    assert anyio.run(opened, server, own)
    assert anyio.run(opened, server, "http://localhost:1")


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
