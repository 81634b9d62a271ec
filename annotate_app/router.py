"""The router before several studies: HTTP and WebSocket, each request to the study that the first
part of its path names.

h11 reads and writes what passes; no more of it is changed than the headers that say whom the router
speaks with. Everything is bounded: heads, bodies, connections, and how long anyone may be slow.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import h11

from evenhand.texts import written

_MOST_HEAD = 64 * 1024
_MOST_BODY, _MOST_UPLOAD = 1_000_000, 51_000_000
"""As before one study alone: a request, and a lead's file with what goes round it."""
_MOST_CONNECTIONS, _MOST_OF_AN_ADDRESS = 1_000, 300
_HEAD_SECONDS, _BODY_SECONDS, _SILENT_SECONDS = 10.0, 900.0, 60.0
_HEALTH_SECONDS = 5.0
_PIECE = 64 * 1024
_ODD = re.compile(rb"%(?:2e|2f|5c|00)|\\|//|/\.{1,2}(?:/|$)", re.IGNORECASE)
"""Ways to write a path that some program on the way could take for another one."""
_UPLOAD = re.compile(rb"/[^/]+/_stcore/upload_file/")
_OWN_HOP = (b"connection", b"keep-alive", b"proxy-connection")
"""Headers between two ends of one connection."""
_FRAMES = {b"content-length", b"transfer-encoding"}
"""Two ways to say where a body ends: who names both wants two programs to disagree."""


class _End:
    """One end of what passes: bytes outside, h11's events inside."""

    def __init__(
        self,
        role: type[h11.CLIENT | h11.SERVER],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.conn = h11.Connection(role, max_incomplete_event_size=_MOST_HEAD)
        self.reader, self.writer = reader, writer

    async def event(self) -> h11.Event:
        while (event := self.conn.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(_SILENT_SECONDS):
                self.conn.receive_data(await self.reader.read(_PIECE))
        if not isinstance(event, h11.Event):
            raise ConnectionError("nothing more is to come")
        return event

    async def send(self, event: h11.Event) -> None:
        await _write(self.writer, self.conn.send(event) or b"")


class Router:
    """Passes what comes in over a connection on to the studies' sockets, by name. Through `proxies`
    many people come, and these have limits of their own.
    """

    def __init__(self, sockets: Mapping[str, Path], proxies: Collection[str]) -> None:
        self._sockets, self._proxies = sockets, proxies
        self._open: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        address = str((writer.get_extra_info("peername") or ("",))[0])
        client = _End(h11.SERVER, reader, writer)
        self._open[address] += 1
        try:
            if not self._has_room(address):
                await _say(client, 503, written("several.no_room"))
                return
            while await self._answer(client, address):
                client.conn.start_next_cycle()
        except h11.RemoteProtocolError as error:
            with suppress(h11.LocalProtocolError, OSError, TimeoutError):
                await _say(client, error.error_status_hint, written("several.bad_request"))
        except (h11.LocalProtocolError, OSError, TimeoutError):
            pass  # who has gone, or is too slow, is told nothing
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
            writer.close()

    def _has_room(self, address: str) -> bool:
        is_few = address in self._proxies or self._open[address] <= _MOST_OF_AN_ADDRESS
        return is_few and self._open.total() <= _MOST_CONNECTIONS

    async def _answer(self, client: _End, address: str) -> bool:
        """Answer one request. True if another may follow on this connection."""
        async with asyncio.timeout(_HEAD_SECONDS):
            request = await client.event()
        if not isinstance(request, h11.Request):
            return False
        path = request.target.partition(b"?")[0]
        framed_twice = {name for name, _ in request.headers} >= _FRAMES
        if not path.startswith(b"/") or _ODD.search(path) or framed_twice:
            return await _say(client, 400, written("several.bad_request"))
        if path == b"/health":
            return await self._say_health(client)
        if (socket := self._sockets.get(path.split(b"/")[1].decode("ascii"))) is None:
            return await _say(client, 404, written("several.nothing_here"))
        most = _MOST_UPLOAD if _UPLOAD.match(path) else _MOST_BODY
        if any(name == b"content-length" and int(size) > most for name, size in request.headers):
            return await _say(client, 413, written("several.too_large"))
        try:
            study = _End(h11.CLIENT, *await asyncio.open_unix_connection(socket))
            try:
                return await _pass_on(client, study, request, address, most)
            finally:
                study.writer.close()
        except (h11.ProtocolError, OSError, TimeoutError):  # no word where an answer has begun
            return await _say(client, 503, written("several.away"))

    async def _say_health(self, client: _End) -> bool:
        asked = [status_of(path, f"/{name}/health") for name, path in self._sockets.items()]
        well = all(status == 200 for status in await asyncio.gather(*asked))
        said = json.dumps({"studies": "answer" if well else "not all answer"})
        return await _say(client, 200 if well else 503, said, b"application/json")


async def status_of(socket: Path, path: str) -> int:
    """Return the status by which a study answers; 0 if it does not in time."""
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            study = _End(h11.CLIENT, *await asyncio.open_unix_connection(socket))
            try:
                headers = [("Host", "localhost"), ("Connection", "close")]
                await study.send(h11.Request(method="GET", target=path, headers=headers))
                await study.send(h11.EndOfMessage())
                answer = await study.event()
                return answer.status_code if isinstance(answer, h11.Response) else 0
            finally:
                study.writer.close()
    except (h11.ProtocolError, OSError, TimeoutError):
        return 0


async def _pass_on(
    client: _End, study: _End, request: h11.Request, address: str, most: int
) -> bool:
    upgrades = any(name == b"upgrade" for name, _ in request.headers)
    hops = [value for name, value in request.headers if name == b"x-forwarded-for"]
    headers = [
        *_without(request, *_OWN_HOP, b"x-forwarded-for"),
        (b"Connection", b"Upgrade" if upgrades else b"close"),
        (b"X-Forwarded-For", b", ".join([*hops, address.encode("ascii")])),
    ]
    await study.send(h11.Request(method=request.method, target=request.target, headers=headers))
    body = asyncio.create_task(_pass_body(client, study, most))
    try:
        while True:
            event = await study.event()
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                await client.send(event)
                await _splice(client, study)
                return False
            if isinstance(event, h11.Response):
                headers = _without(event, *_OWN_HOP)
                event = h11.Response(
                    status_code=event.status_code, headers=headers, reason=event.reason
                )
            await client.send(event)
            if isinstance(event, h11.EndOfMessage):
                break
    finally:
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)
    return client.conn.our_state is h11.DONE and client.conn.their_state is h11.DONE


async def _pass_body(client: _End, study: _End, most: int) -> None:
    """Pass a body on while the study takes it, which may answer before it has read all."""
    is_whole = False
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while most >= 0 and not is_whole:
                event = await client.event()
                most -= len(event.data) if isinstance(event, h11.Data) else 0
                is_whole = isinstance(event, h11.EndOfMessage)
                await study.send(event)
    finally:
        if not is_whole:
            study.writer.close()


def _without(event: h11.Request | h11.Response, *names: bytes) -> list[tuple[bytes, bytes]]:
    return [each for each in event.headers.raw_items() if each[0].lower() not in names]


async def _splice(client: _End, study: _End) -> None:
    """Pass bytes both ways until one end is silent for good."""
    await _write(study.writer, client.conn.trailing_data[0])
    await _write(client.writer, study.conn.trailing_data[0])
    ways = {
        asyncio.create_task(_pour(client.reader, study.writer)),
        asyncio.create_task(_pour(study.reader, client.writer)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, TimeoutError):
        while piece := await reader.read(_PIECE):
            await _write(writer, piece)


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    async with asyncio.timeout(_SILENT_SECONDS):
        await writer.drain()


async def _say(
    client: _End, status: int, text: str, kind: bytes = b"text/plain; charset=utf-8"
) -> bool:
    """Answer with a text of our own; the connection ends, as its body may be unread."""
    body = f"{text}\n".encode()
    headers = [
        (b"Content-Type", kind),
        (b"Content-Length", str(len(body)).encode()),
        (b"Cache-Control", b"no-store"),
        (b"Connection", b"close"),
    ]
    await client.send(h11.Response(status_code=status, headers=headers))
    with suppress(h11.LocalProtocolError):  # HEAD has no body
        await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
    return False
