"""The router before studies of a few lines that hang, dawdle or send too much: who waits for what,
and what is left open. And a process that cannot be started."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from evenhand.annotate_app import health, router, side_by_side
from evenhand.annotate_app.router import Router, status_of
from harness.proxy import DEPLOY

Study = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65536):
        pass
    writer.close()


async def takes_ten(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a head and ten bytes, and answer."""
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(10)
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writer.close()


async def pours(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with far more than a line holds."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" + bytes(50_000_000))


def in_a_loop(work: Coroutine[None, None, None]) -> None:
    """Run it in a thread: a browser's loop, where a test before this had one, runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def before(
    place: Path, study: Study, asks: Callable[[Callable[[], Awaitable[Line]]], Awaitable[None]]
) -> None:
    """Have somebody ask through a router before this one study, called first."""

    async def run() -> None:
        place.unlink(missing_ok=True)
        own = await asyncio.start_unix_server(study, place)
        front = await asyncio.start_server(
            Router({"first": place}, {"127.0.0.1"}).serve, "127.0.0.1", 0
        )
        port = front.sockets[0].getsockname()[1]
        async with asyncio.timeout(60):
            await asks(lambda: asyncio.open_connection("127.0.0.1", port))
        front.close()
        own.close()

    in_a_loop(run())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # some systems take 100 letters
    return Path("0")


def head(target: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def test_a_study_that_hangs_is_answered_for_before_a_proxy_gives_up(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = (DEPLOY / "nginx" / "evenhand.conf").read_text("utf-8")
    usual, upload, _ = map(float, re.findall(r"proxy_read_timeout (\d+)s;", shipped))
    assert health._PATIENCE < router._ANSWER_SECONDS < usual
    assert upload > router._UPLOAD_SECONDS
    monkeypatch.setattr(router, "_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(router, "_SILENT_SECONDS", 600.0)

    async def asks(connect: Callable[[], Awaitable[Line]]) -> None:
        reader, writer = await connect()
        writer.write(head("/first/", "Accept: text/html,*/*"))
        said = await reader.read()
        assert b" 503 " in said.splitlines()[0]
        assert b'http-equiv="refresh"' in said
        reader, writer = await connect()
        writer.write(head("/first/health"))
        assert (await reader.read()).endswith(
            b"\r\nThe server does not answer. Try again in a minute.\n"
        )
        assert await status_of(place, "/first/health") == 0

    before(place, hangs, asks)


def test_a_slow_body_is_no_silence_of_the_study(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(router, "_UPLOAD_SECONDS", 0.5)

    async def asks(connect: Callable[[], Awaitable[Line]]) -> None:
        for target in ("/first/", "/first/_stcore/upload_file/x/y"):
            reader, writer = await connect()
            writer.write(head(target, "Content-Length: 10", method="PUT"))
            for _ in range(10):
                await asyncio.sleep(0.1)
                writer.write(b"x")
            assert b" 204 " in await reader.readline()

    before(place, takes_ten, asks)


def test_a_body_that_goes_on_too_long_is_said_to_be_too_large(place: Path) -> None:
    async def asks(connect: Callable[[], Awaitable[Line]]) -> None:
        reader, writer = await connect()
        writer.write(head("/first/", "Transfer-Encoding: chunked", method="POST"))
        writer.write((b"2710\r\n" + b"x" * 10_000 + b"\r\n") * 100 + b"1\r\nx\r\n")
        assert b" 413 " in await reader.readline()

    before(place, hangs, asks)


def test_no_study_takes_the_room_of_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "_MOST_OF_A_STUDY", 2)

    async def asks(connect: Callable[[], Awaitable[Line]]) -> None:
        waiting = [await connect() for _ in range(3)]
        for _, writer in waiting:
            writer.write(head("/first/_stcore/upload_file/x/y"))
        said = [asyncio.create_task(reader.readline()) for reader, _ in waiting]
        done, _ = await asyncio.wait(said, return_when=asyncio.FIRST_COMPLETED)
        assert [b" 503 " in each.result() for each in done] == [True]
        reader, writer = await connect()
        writer.write(head("/"))
        assert b" 404 " in await reader.readline()
        for each in said:
            each.cancel()

    before(place, hangs, asks)


def test_who_does_not_read_leaves_nothing_open(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_SILENT_SECONDS", 0.3)

    async def asks(connect: Callable[[], Awaitable[Line]]) -> None:
        own = psutil.Process()
        lines = [await connect() for _ in range(5)]
        for _, writer in lines:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(head("/first/"))
        port = lines[0][1].get_extra_info("peername")[1]

        def held() -> int:
            all_open = own.net_connections("tcp")
            return sum(each.laddr.port == port and each.status != "LISTEN" for each in all_open)

        assert held() == 5
        while held():
            await asyncio.sleep(0.05)

    before(place, pours, asks)


def test_a_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the machine has no room for one more."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "first").symlink_to(tmp_path)
    monkeypatch.setattr(side_by_side, "command", lambda *_, **__: [str(tmp_path / "none")])
    monkeypatch.setattr(side_by_side, "_FIRST_WAIT", 0.01)

    async def watch() -> None:
        studies = side_by_side._Studies(tmp_path / "studies", 1, "")
        with socket.socket() as listening:
            running = asyncio.create_task(studies._keep_running("first", listening))
            async with asyncio.timeout(30):
                while caplog.text.count("first cannot be started") < 2:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    in_a_loop(watch())
