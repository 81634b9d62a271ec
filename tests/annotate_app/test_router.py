"""The router before several studies, asked by raw requests: what is odd, too large, too slow or too
much is refused, and nothing reaches another study than the one that its path names."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from evenhand.annotate_app.where import MOST_PAGES
from harness.served import ServedTogether, holds
from tests.annotate_app.together import PROXY, asked

pytestmark = pytest.mark.slow

OF_AN_ADDRESS = 300


def line_to(together: ServedTogether, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", together.port), 30, (address, 0))


def answer_of(line: socket.socket) -> bytes:
    """All that comes until the other end is closed."""
    found = b""
    with suppress(ConnectionError):
        while piece := line.recv(65536):
            found += piece
    return found


def answered(together: ServedTogether, request: bytes) -> bytes:
    with line_to(together) as line:
        line.sendall(request)
        return answer_of(line)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def head(target: str, *lines: str, method: str = "GET") -> bytes:
    text = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    return "\r\n".join([*text, "", ""]).encode()


# ---- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/first/..%2fsecond/health",
        "/first/%2e%2e/second/health",
        "/first/%2E./second/health",
        "/first/../second/health",
        "/first/./health",
        "/first/..",
        "/first%2f..%2fsecond/health",
        "/first%2fhealth",
        "//second/health",
        "/first//second/health",
        "/first\\..\\second/health",
        "/first/%5c..%5csecond/health",
        "/first/health%00",
        "http://localhost/second/health",
        "*",
    ],
)
def test_a_path_that_could_be_taken_for_another_is_refused(
    together: ServedTogether, target: str
) -> None:
    assert status(answered(together, head(target))) == 400


def test_who_names_no_host_is_told_that_the_request_is_bad(together: ServedTogether) -> None:
    """HTTP/1.0 may leave it out; a study's process would not take it, and is not away."""
    for target, wanted in (("/first/", 400), ("/health", 200)):
        for lines in ("", "Connection: keep-alive\r\n"):
            request = f"GET {target} HTTP/1.0\r\n{lines}\r\n".encode()
            assert status(answered(together, request)) == wanted


@pytest.mark.parametrize("target", ["/First/health", "/firs/health", "/first%20/", "/?/first/"])
def test_only_its_own_name_leads_to_a_study(together: ServedTogether, target: str) -> None:
    assert status(answered(together, head(target))) == 404


def test_a_study_answers_to_nothing_beside_its_own_path(together: ServedTogether) -> None:
    """Even over its own socket, past the router."""
    (path,) = [
        each.laddr
        for each in together.process.net_connections("unix")
        if each.laddr.endswith("/0") and each.status != "LISTEN"
    ][:1] or [""]
    assert path, "the router's folder is not found"
    for target, wanted in (("/first/health", 200), ("/second/health", 404), ("/health", 404)):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(path)
            line.sendall(head(target, "X-Forwarded-For: 127.0.0.1"))
            assert status(answer_of(line)) == wanted, target
    assert (Path(path).parent.stat().st_mode & 0o777) == 0o700


def test_one_connection_may_ask_both_each_answers_for_itself(together: ServedTogether) -> None:
    line = http.client.HTTPConnection("127.0.0.1", together.port, timeout=20)
    kept = None
    for name in ("first", "second", "first"):
        line.request("GET", f"/{name}/")
        answer = line.getresponse()
        answer.read()
        (given,) = [
            each
            for each in answer.headers.get_all("Set-Cookie", [])
            if each.startswith("evenhand_session")
        ]
        assert given.startswith(f"evenhand_session_{name}=")
        assert kept in (None, line.sock)
        kept = line.sock
    line.close()


# ---- connections of pages -----------------------------------------------------------------------


def page_of(together: ServedTogether, path: str, address: str = "127.0.0.1") -> ClientConnection:
    own = f"127.0.0.1:{together.port}"
    return connect(
        f"ws://{own}{path}",
        subprotocols=["streamlit"],  # type: ignore[list-item]
        origin=f"http://{own}",  # type: ignore[arg-type]
        source_address=(address, 0),
        open_timeout=20,
    )


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/stream",
        "/third/_stcore/stream",
        "/first/second/_stcore/stream",
        "/first/health",
        "/first/..%2fsecond/_stcore/stream",
    ],
)
def test_no_connection_is_made_at_a_wrong_path(together: ServedTogether, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        page_of(together, path)
    assert refused.value.response.status_code in (400, 403, 404)


def has_room(together: ServedTogether, name: str, address: str, **headers: str) -> bool:
    found, said = asked(together, f"/{name}/evenhand/room", address, **headers)
    assert found == 200
    return bool(json.loads(said)["room"])


def test_each_study_counts_the_pages_of_an_address_and_believes_its_own_proxy_alone(
    together: ServedTogether,
) -> None:
    full, free = "127.0.0.2", "127.0.0.3"
    with ExitStack() as pages:
        for _ in range(MOST_PAGES):
            pages.enter_context(page_of(together, "/first/_stcore/stream", full))
        assert not has_room(together, "first", full)
        assert has_room(together, "first", free)
        assert has_room(together, "second", full)
        assert not has_room(together, "first", full, X_Forwarded_For="203.0.113.5")
        assert has_room(together, "first", PROXY, X_Forwarded_For="203.0.113.5")
        assert not has_room(together, "first", PROXY, X_Forwarded_For=f"203.0.113.5, {full}")
    assert holds(lambda: has_room(together, "first", full))


# ---- bounds -------------------------------------------------------------------------------------


def test_a_head_without_end_is_refused(together: ServedTogether) -> None:
    with line_to(together) as line:
        line.sendall(b"GET /first/ HTTP/1.1\r\nHost: localhost\r\n")
        with suppress(ConnectionError):
            for n in range(100):
                line.sendall(f"X-{n}: {'x' * 1000}\r\n".encode())
        assert status(answer_of(line)) == 431


@pytest.mark.parametrize("started", [b"", b"GET /fir"])
def test_who_does_not_say_what_they_want_is_hung_up_on(
    together: ServedTogether, started: bytes
) -> None:
    with line_to(together) as line:
        line.sendall(started)
        line.settimeout(1)
        told = time.monotonic() + 60
        while time.monotonic() < told:
            try:
                assert line.recv(100) == b""
                return
            except TimeoutError:
                with suppress(ConnectionError):
                    line.sendall(b"s" if started else b"")
    raise AssertionError("the connection stays open")


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: -1",),
        ("Bad header: x",),
    ],
)
def test_what_two_programs_could_read_in_two_ways_is_refused(
    together: ServedTogether, lines: tuple[str, ...]
) -> None:
    assert status(answered(together, head("/first/", *lines, method="POST"))) == 400


def test_a_body_is_bounded_before_it_is_sent_and_on_its_way(together: ServedTogether) -> None:
    large = head("/first/", "Content-Length: 2000000", method="POST")
    assert status(answered(together, large)) == 413
    upload = head("/first/_stcore/upload_file/x/y", "Content-Length: 50000000", method="PUT")
    assert status(answered(together, upload)) == 403  # the study's own answer
    with line_to(together) as line:
        line.sendall(head("/first/", "Transfer-Encoding: chunked", method="POST"))
        pieces = (b"2710\r\n" + b"x" * 10_000 + b"\r\n" for _ in range(2_000))
        with pytest.raises(ConnectionError):
            line.sendall(b"".join(pieces))


def test_of_one_address_only_so_many_connections_are_open(together: ServedTogether) -> None:
    with ExitStack() as lines:
        for _ in range(OF_AN_ADDRESS):
            lines.enter_context(line_to(together, PROXY))
        assert asked(together, "/first/health", PROXY)[0] == 200  # many people come through it
    with ExitStack() as lines:
        for _ in range(OF_AN_ADDRESS):
            lines.enter_context(line_to(together, "127.0.0.4"))
        with line_to(together, "127.0.0.4") as one_more:
            assert status(answer_of(one_more)) == 503
        assert asked(together, "/first/health", "127.0.0.5")[0] == 200
    assert holds(lambda: asked(together, "/first/health", "127.0.0.4")[0] == 200)


# ---- health -------------------------------------------------------------------------------------


def test_health_is_good_only_where_all_are(together: ServedTogether) -> None:
    second = together.process_of("second")
    second.suspend()
    try:
        assert asked(together, "/health") == (503, '{"studies": "not all answer"}\n')
        assert asked(together, "/first/health")[0] == 200
    finally:
        second.resume()
    assert holds(together.is_well)


@pytest.mark.thorough
def test_a_study_that_hangs_is_started_again(together: ServedTogether) -> None:
    hung = together.process_of("second")
    hung.suspend()
    assert holds(lambda: not hung.is_running(), 240)  # later where it had not answered yet
    assert holds(together.is_well, 60)
    assert together.process_of("second").pid != hung.pid
