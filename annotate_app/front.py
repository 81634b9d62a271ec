"""What a browser gets over HTTP beside Streamlit's own: the page that everything begins with, the
panel, and the page for a proxy to show while the app is away. And what it does not get: a path or a
version of this machine.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.file_util import get_static_dir
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.annotate_app import strings
from evenhand.annotate_app.panel_files import panel_module, panel_path
from evenhand.annotate_app.plain_text import block

_HERE = Path(__file__).parent
_CLOSED = ("/_stcore/agent", "/_stcore/metrics")
"""Pages of Streamlit's for operators and programs, which tell of the machine."""


def routes() -> list[Route]:
    """Our own addresses; every other one is Streamlit's."""
    return [
        Route("/", _front_page),
        Route(f"/{panel_path()}", _panel),
        Route("/evenhand/away.html", _away_page),
    ]


def middleware() -> list[Middleware]:
    return [Middleware(Discreet)]


class Discreet:
    """Takes what tells of this machine out of what goes to the browser.

    Streamlit names its version, Python's, the script's path and the installation whenever a page
    is drawn; the browser needs none of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_CLOSED):
            await PlainTextResponse("not found", 404)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, lambda message: send(_discreet(message)))
        else:
            await self._app(scope, receive, send)


def _discreet(message: Message) -> Message:
    if not message.get("bytes"):
        return message
    forward = ForwardMsg.FromString(message["bytes"])
    if forward.WhichOneof("type") != "new_session":
        return message
    session = forward.new_session
    session.ClearField("main_script_path")
    for part in (session.initialize.environment_info, session.initialize.user_info):
        part.Clear()
        part.SetInParent()  # empty, but there: the browser reads its fields
    return {**message, "bytes": forward.SerializeToString()}


async def _front_page(_: Request) -> Response:
    return HTMLResponse(front_page(), headers={"Cache-Control": "no-cache"})


async def _panel(_: Request) -> Response:
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(panel_module(), media_type="text/javascript", headers=kept)


async def _away_page(_: Request) -> Response:
    return HTMLResponse(away_page())


@cache
def front_page() -> str:
    """Streamlit's page with our style and, for as long as nothing else is there, our words."""
    page = (Path(get_static_dir()) / "index.html").read_text("utf-8")
    page = re.sub(r'<link rel="service-desc"[^>]*>', "", page)
    page = page.replace("<title>Streamlit</title>", f"<title>{strings.PAGE_TITLE}</title>")
    style, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "front.js"))
    head = f'<script>\n{script}</script>\n<link rel="modulepreload" href="./{panel_path()}">\n'
    page = page.replace("</head>", f"{head}</head>")
    # In the body: of two rules that weigh the same, Streamlit's stand in the head and come first.
    words = block(strings.NO_ANSWER, "offline")
    before = f'<style>\n{style}</style>\n<div role="status">{words}</div>\n'
    return page.replace('<div id="root">', f'{before}<div id="root">')


def away_page() -> str:
    """The page that a proxy shows while the app does not answer: it needs nothing else."""
    page = (_HERE / "away.html").read_text("utf-8")
    for name, said in (("title", strings.AWAY_TITLE), ("text", strings.AWAY_TEXT)):
        page = page.replace(f"{{{name}}}", html.escape(said))
    return page
