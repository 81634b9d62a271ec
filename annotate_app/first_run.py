"""The first run of a page, sent over the line by which the page came.

The page's own connection needs two ways there and back more, of TLS and of WebSocket. So the script
in the page asks for its first run at once, and Streamlit is given a connection that ends with this
run; the browser's own takes up the session that the run began, as after every break. Who is let in,
from where and with how much at once is decided as for every connection of a page.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.responses import Response
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.annotate_app.where import is_secure

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Message, Scope

FIRST_RUN = "evenhand/first-run"
_STREAM = "_stcore/stream"
_PROTOCOLS = "x-evenhand-protocols"
_LOCALE = "x-evenhand-locale"
"""Headers of our own, which no page of another origin may send without asking first."""
_PATIENCE = 4.0
"""Seconds that a run may take, fewer than nginx waits; one that takes longer is left to the page's
own connection."""
_LOGIN_COOKIE = "_streamlit_user"
"""Streamlit's cookie for a browser that comes from a single sign-on. The run that admits its
visitor counts once and changes the address; a second run, begun at the old one, would undo it."""


async def send_first_run(request: Request) -> Response:
    """Answer with the session's id and the messages of its first run, each behind its length in
    four bytes; without content where the page is to connect as usual.
    """
    nothing = Response(status_code=204)
    if _PROTOCOLS not in request.headers or any(
        name.startswith(_LOGIN_COOKIE) for name in request.cookies
    ):
        return nothing
    connection = _OneRun(request)
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await request.app(connection.scope, connection.receive, connection.send)
    if not connection.is_whole:
        return nothing
    parts = [connection.session.encode(), *connection.messages]
    content = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    kept_nowhere = {"Cache-Control": "no-store"}
    return Response(content, media_type="application/octet-stream", headers=kept_nowhere)


class _OneRun:
    """A connection of a page that asks for one run and hangs up once it has all of it."""

    def __init__(self, request: Request) -> None:
        self.scope = _as_connection(request)
        self.session = ""
        self.messages: list[bytes] = []
        self._to_send: list[Message] = [
            {"type": "websocket.connect"},
            {"type": "websocket.receive", "bytes": _asks_to_run(request)},
        ]
        self._finished = False
        self._over = asyncio.Event()

    @property
    def is_whole(self) -> bool:
        return self._finished and self._over.is_set() and bool(self.session)

    async def receive(self) -> Message:
        if self._to_send:
            return self._to_send.pop(0)
        await self._over.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.close":
            self._over.set()
        if not message.get("bytes"):
            return
        self.messages.append(message["bytes"])
        forward = ForwardMsg.FromString(message["bytes"])
        match forward.WhichOneof("type"):
            case "new_session":
                self.session = forward.new_session.initialize.session_id
            case "script_finished":  # one that begins anew at once is not over
                self._finished = forward.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
            case "session_status_changed":  # comes last
                if self._finished and not forward.session_status_changed.script_is_running:
                    self._over.set()


def _as_connection(request: Request) -> Scope:
    """The scope of the WebSocket that the page would open from where this request comes."""
    protocols = request.headers[_PROTOCOLS].encode("latin-1")
    path = request.scope["path"].removesuffix(FIRST_RUN) + _STREAM
    return {
        **request.scope,
        "type": "websocket",
        "scheme": "wss" if is_secure(request.scope) else "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "subprotocols": [each.strip() for each in protocols.decode("latin-1").split(",")],
        "headers": [*request.scope["headers"], (b"sec-websocket-protocol", protocols)],
    }


def _asks_to_run(request: Request) -> bytes:
    """What Streamlit's page says first: its address and language."""
    asks = BackMsg()
    run = asks.rerun_script
    run.query_string = request.url.query
    run.widget_states.SetInParent()
    run.context_info.locale = request.headers.get(_LOCALE, "")
    run.context_info.url = str(request.url).replace(FIRST_RUN, "", 1)
    return bytes(asks.SerializeToString())
