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
_MOST_CONNECTIONS, _MOST_OF_AN_ADDRESS, _MOST_OF_A_STUDY = 1_000, 300, 400
_HEAD_SECONDS, _BODY_SECONDS, _SILENT_SECONDS = 10.0, 900.0, 60.0
_ANSWER_SECONDS, _UPLOAD_SECONDS = 4.5, 25.0
"""More than a study's `/health` takes, less than nginx waits, which would take all for hung."""
_PIECE = 64 * 1024
_ODD = re.compile(rb"%(?:2e|2f|5c|00)|\\|//|/\.{1,2}(?:/|$)", re.IGNORECASE)
"""Ways to write a path that some program on the way could take for another one."""
_UPLOAD = re.compile(rb"/[^/]+/_stcore/upload_file/")
_OWN_HOP = (b"connection", b"keep-alive", b"proxy-connection")
"""Headers between two ends of one connection."""
_FRAMES = {b"content-length", b"transfer-encoding"}
"""Two ways to say where a body ends: who names both wants two programs to disagree."""
_AWAY_PAGE = Path(__file__).with_name("away.html")
_HTML = b"text/html; charset=utf-8"


class _TooLargeError(Exception):
    """A body that goes on beyond what it may hold."""


class _End:
    """One end of what passes: bytes outside, h11's events inside. It may be silent, or take
    nothing, for `patience` seconds.
    """

    def __init__(
        self,
        role: type[h11.CLIENT | h11.SERVER],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.conn = h11.Connection(role, max_incomplete_event_size=_MOST_HEAD)
        self.reader, self.writer = reader, writer
        self.patience = _SILENT_SECONDS
        writer.transport.set_write_buffer_limits(0)  # what is drained is with the system

    async def event(self, patience: float = 0) -> h11.Event:
        while (event := self.conn.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(patience or self.patience):
                self.conn.receive_data(await self.reader.read(_PIECE))
        if not isinstance(event, h11.Event):
            raise ConnectionError("nothing more is to come")
        return event

    async def send(self, event: h11.Event) -> None:
        await self.write(self.conn.send(event) or b"")

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(self.patience):
            await self.writer.drain()

    def close(self) -> None:
        """End it at once: to close in peace waits for ever on who does not read."""
        self.writer.transport.abort()


class Router:
    """Passes what comes in over a connection on to the studies' sockets, by name. Through `proxies`
    many people come, and these have limits of their own.
    """

    def __init__(self, sockets: Mapping[str, Path], proxies: Collection[str]) -> None:
        self._sockets, self._proxies = sockets, proxies
        self._open: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        """The connections of each study, so that none takes the room of all."""

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
            with suppress(h11.LocalProtocolError, OSError):
                await _say(client, error.error_status_hint, written("several.bad_request"))
        except (h11.LocalProtocolError, OSError):
            pass  # who has gone, or is too slow, is told nothing
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
            client.close()

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
        if not any(name == b"host" for name, _ in request.headers):  # HTTP/1.0 may do without
            return await _say(client, 400, written("several.bad_request"))
        name = path.split(b"/")[1].decode("ascii")
        if name not in self._sockets:
            return await _say(client, 404, written("several.nothing_here"))
        if self._asked[name] >= _MOST_OF_A_STUDY:
            return await _say(client, 503, written("several.no_room"))
        uploads = bool(_UPLOAD.match(path))
        most = _MOST_UPLOAD if uploads else _MOST_BODY
        self._asked[name] += 1
        try:
            if any(key == b"content-length" and int(size) > most for key, size in request.headers):
                raise _TooLargeError
            study = _End(h11.CLIENT, *await asyncio.open_unix_connection(self._sockets[name]))
            study.patience = _UPLOAD_SECONDS if uploads else _ANSWER_SECONDS
            try:
                return await _pass_on(client, study, request, address, most)
            finally:
                study.close()
        except _TooLargeError:
            return await _say(client, 413, written("several.too_large"))
        except (h11.ProtocolError, OSError):  # no word where an answer has begun
            if any(key == b"accept" and b"text/html" in kinds for key, kinds in request.headers):
                return await _say(client, 503, _AWAY_PAGE.read_text("utf-8"), _HTML)
            return await _say(client, 503, written("several.away"))
        finally:
            self._asked[name] -= 1

    async def _say_health(self, client: _End) -> bool:
        asked = [status_of(path, f"/{name}/health") for name, path in self._sockets.items()]
        well = all(status == 200 for status in await asyncio.gather(*asked))
        said = json.dumps({"studies": "answer" if well else "not all answer"})
        return await _say(client, 200 if well else 503, said, b"application/json")


async def status_of(socket: Path, path: str) -> int:
    """Return the status by which a study answers; 0 if it does not in time."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            study = _End(h11.CLIENT, *await asyncio.open_unix_connection(socket))
            try:
                headers = [("Host", "localhost"), ("Connection", "close")]
                await study.send(h11.Request(method="GET", target=path, headers=headers))
                await study.send(h11.EndOfMessage())
                answer = await study.event()
                return answer.status_code if isinstance(answer, h11.Response) else 0
            finally:
                study.close()
    except (h11.ProtocolError, OSError):
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
        event = await _first_event(study, body)
        study.patience = _SILENT_SECONDS
        while True:
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
            event = await study.event()
    finally:
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)
    return client.conn.our_state is h11.DONE and client.conn.their_state is h11.DONE


async def _first_event(study: _End, body: asyncio.Task[None]) -> h11.Event:
    """Return how the answer begins, which may be before the body is whole; only then is a study
    silent that says nothing. Raises _TooLargeError.
    """
    first = asyncio.create_task(study.event(_BODY_SECONDS))
    try:
        await asyncio.wait({first, body}, return_when=asyncio.FIRST_COMPLETED)
        if body.done():
            with suppress(h11.ProtocolError, OSError):
                await body
        async with asyncio.timeout(study.patience):
            return await first
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


async def _pass_body(client: _End, study: _End, most: int) -> None:
    """Pass a body on while the study takes it, which may answer before it has read all."""
    is_whole = False
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while not is_whole:
                event = await client.event()
                most -= len(event.data) if isinstance(event, h11.Data) else 0
                if most < 0:
                    raise _TooLargeError
                is_whole = isinstance(event, h11.EndOfMessage)
                await study.send(event)
    finally:
        if not is_whole:
            study.close()


def _without(event: h11.Request | h11.Response, *names: bytes) -> list[tuple[bytes, bytes]]:
    return [each for each in event.headers.raw_items() if each[0].lower() not in names]


async def _splice(client: _End, study: _End) -> None:
    """Pass bytes both ways until one end is silent for good."""
    await study.write(client.conn.trailing_data[0])
    await client.write(study.conn.trailing_data[0])
    ways = {
        asyncio.create_task(_pour(client, study)),
        asyncio.create_task(_pour(study, client)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _pour(source: _End, target: _End) -> None:
    with suppress(OSError):
        while piece := await source.reader.read(_PIECE):
            await target.write(piece)


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
