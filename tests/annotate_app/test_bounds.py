"""What somebody without a login can make the app hold and write: so much and no more."""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from evenhand.annotate_app.log_lines import _Bound, visitor
from harness.served import Served
from harness.sessions import Session, connected

HANDSHAKE = (
    "GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: streamlit\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture(scope="module")
def server(serve) -> Served:
    return serve(5)


def megabytes(server: Served) -> float:
    """The memory of the app's process."""
    assert server.process is not None
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def begun(server: Served, announced: int, sent: int, final: bool = True) -> socket.socket:
    """A line on which a message of `announced` bytes was begun, and `sent` of them came."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    line.sendall(HANDSHAKE.encode())
    while b"\r\n\r\n" not in line.recv(4096):
        pass
    head = bytes([0x82 if final else 0x02, 0xFF]) + struct.pack("!Q", announced) + bytes(4)
    line.settimeout(5)
    try:
        line.sendall(head)
        for _ in range(0, sent, 65536):
            line.sendall(bytes(65536))
    except OSError:
        pass  # the app has hung up
    return line


@pytest.mark.browser
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


@pytest.mark.browser
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


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).split("\n")


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, Kept]]:
    logger, kept = logging.Logger("bounded"), Kept()
    logger.addFilter(_Bound())
    logger.addHandler(kept)
    yield logger, kept
    visitor.set("")


def test_each_visitor_has_room_for_some_lines_a_minute(log):
    logger, kept = log
    for address in ("203.0.113.1", "203.0.113.2"):
        visitor.set(address)
        for _ in range(500):
            logger.warning("of %s", address)
    visitor.set("")
    logger.warning("the app's own")
    assert kept.lines.count("of 203.0.113.1") == kept.lines.count("of 203.0.113.2") == 30
    assert sum("left out" in line for line in kept.lines) == 2
    assert kept.lines[-1] == "the app's own"


def test_nothing_logged_begins_a_line_of_its_own(log):
    logger, kept = log
    hostile = "x\nforged\r\n\x1b[2J\u2028forged"
    logger.warning("said: %s", hostile)
    try:
        raise ValueError(hostile * 9_000)
    except ValueError:
        logger.exception("raised: %s", hostile)
    logger.warning("%d", hostile)  # does not fit
    assert not any(line.startswith("forged") for line in kept.lines)
    assert all(line.isprintable() for line in kept.lines)
    assert sum(map(len, kept.lines)) < 20_000
    assert any(line.startswith("  | ") for line in kept.lines)
