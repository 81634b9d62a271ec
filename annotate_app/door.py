"""What every request passes before Streamlit sees it.

Streamlit takes a file of any session into memory, tells its figures to whoever asks, and on a
foreign Origin asks an address outside for its own, while everybody waits. The door refuses these
first, and reads nothing of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from streamlit import config
from streamlit.auth_util import get_secrets_auth_section
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes

from evenhand.annotate_app.logins.upload_pass import may_upload

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from streamlit.proto.WidgetStates_pb2 import WidgetState

_UPLOADS = "/_stcore/upload_file/"
_CLOSED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/script-health-check")
_SIGN_ON = ("/auth/", "/oauth2callback")
_HERE = ("localhost", "127.0.0.1")
_PARTS = ("$$ID-", "$$STREAMLIT_INTERNAL_KEY_")
_MOST_WIDGETS = 500
_MEANT = (
    "rerun_script",
    "stop_script",
    "app_heartbeat",
    "file_urls_request",
    "backend_operation_request",
)


class Door:
    """ASGI middleware around Streamlit's app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and not _is_own(scope):
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http" and (status := _refusal(scope["method"], scope["path"])):
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body"})
        else:
            await self._app(scope, _only_sound(scope, receive, send), send)


def _refusal(method: str, path: str) -> int:
    """The HTTP status by which a request is refused; 0 where it is not."""
    if path.startswith(_CLOSED):
        return 404
    if path.startswith(_SIGN_ON) and not get_secrets_auth_section():
        return 404
    if path.startswith(_UPLOADS) and method not in ("GET", "HEAD", "OPTIONS"):
        session, _, _ = path.removeprefix(_UPLOADS).partition("/")
        return 0 if may_upload(session) else 403
    return 0


def _only_sound(scope: Scope, receive: Receive, send: Send) -> Receive:
    """The messages of a page as they come. One that no page of ours sends ends the connection:
    Streamlit would write its own code into the log for it. An order that is not for visitors, such
    as to clear everybody's caches, is passed over.
    """

    async def heard() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            try:
                if _is_meant(message.get("bytes")):
                    return message
            except ValueError:
                await send({"type": "websocket.close", "code": 1002})
                return {"type": "websocket.disconnect", "code": 1002}

    return heard if scope["type"] == "websocket" else receive


def _is_meant(sent: bytes | None) -> bool:
    """Whether Streamlit is to see a message. Raises ValueError for one that no page sends."""
    if sent is None:
        raise ValueError("text")
    if len(sent) > get_max_widget_state_size_bytes():
        return True  # refused there
    message = BackMsg()
    try:
        message.ParseFromString(sent)
    except DecodeError as error:
        raise ValueError from error
    widgets = message.rerun_script.widget_states.widgets
    if len(widgets) > _MOST_WIDGETS or not all(map(_is_page_part, widgets)):
        raise ValueError("widgets")
    return message.WhichOneof("type") in _MEANT


def _is_page_part(widget: WidgetState) -> bool:
    """Whether a value is of a part that a page can have, and is what it says it is."""
    if not widget.id.startswith(_PARTS):
        return False
    kind = widget.WhichOneof("value")
    if kind in ("json_value", "json_trigger_value"):
        try:
            json.loads(getattr(widget, kind))
        except (ValueError, RecursionError):
            return False
    return True


def _is_own(scope: Scope) -> bool:
    """Whether the page that asks for a connection is this app's own. Programs name no origin."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if (origin := headers.get(b"origin")) is None:
        return True
    try:
        asking = urlsplit(origin)
        host = asking.hostname
    except ValueError:
        return False
    if asking.netloc and asking.netloc == headers.get(b"host"):
        return True
    return host in (*_HERE, _public_host())


def _public_host() -> str:
    """The name under which people reach the app through a proxy; see `serve.command`."""
    set_by_hand = config.is_manually_set("browser.serverAddress")
    return config.get_option("browser.serverAddress") if set_by_hand else _HERE[0]
