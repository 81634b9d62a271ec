"""Checks that every request passes before Streamlit sees it.

Streamlit takes a file of any session into memory, gives a session to any client that knows its id,
serves its metrics to any client, answers to every host name, and on a foreign Origin looks up its
own address at an outside server, while all users wait. The door refuses such requests first,
without reading their bodies. What a page and Streamlit say to one another passes it unread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from evenhand.annotate_app.log_lines import visitor
from evenhand.annotate_app.logins.browser import (
    bound,
    browser_of,
    may_download,
    may_upload,
    new_cookie,
)
from evenhand.annotate_app.logins.lead_login import PLACES
from evenhand.annotate_app.sites import (
    address_of,
    base_path,
    has_room,
    headers_of,
    is_own_name,
    is_secure,
    open_pages,
    site_of,
)
from evenhand.texts import written

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_UPLOADS = "/_stcore/upload_file/"
_CLOSED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/script-health-check")
_SIGN_ON = ("/auth/", "/oauth2callback")
_SIGNING_ON = b"_streamlit_session="
_MEDIA = "/media/"
_PATIENCE = 4.0
_PLAIN = b"text/plain; charset=utf-8"


class Door:
    """ASGI middleware around Streamlit's app. Without a provider of logins (`has_sign_on`) the
    addresses of `st.login` are closed.
    """

    def __init__(self, app: ASGIApp, has_sign_on: bool = False) -> None:
        self._app = app
        self._closed = _CLOSED if has_sign_on else (*_CLOSED, *_SIGN_ON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        address = address_of(scope)
        visitor.set(address)
        if scope["type"] == "websocket":
            await self._page(scope, receive, send, address)
        elif status := await _refusal(scope, self._closed):
            await _refuse(status, send)
        else:
            await self._app(scope, receive, _with_cookies(scope, send))

    async def _page(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        who = base_path(scope), address
        if not is_own(scope) or not has_room(who):
            await send({"type": "websocket.close", "code": 1008})
            return
        open_pages[who] += 1
        try:
            await self._app(bound(scope), receive, send)
        finally:
            open_pages[who] -= 1
            if not open_pages[who]:
                del open_pages[who]


async def _refusal(scope: Scope, closed: tuple[str, ...]) -> int:
    """The HTTP status by which a request is refused; 0 where it is not."""
    site = site_of(scope)
    if site is None:
        return 0 if scope["path"] == "/health" else 404
    method, path = scope["method"], scope["path"].removeprefix(site.path)
    if not all(is_own_name(host, site) for host in headers_of(scope, b"host")):
        return 421
    if path.startswith(closed):
        return 404
    if path.startswith(_UPLOADS) and method not in ("GET", "HEAD", "OPTIONS"):
        session, _, _ = path.removeprefix(_UPLOADS).partition("/")
        return await _unless(site.work(may_upload, session, browser_of(scope)))
    if path.startswith(_MEDIA):
        return await _unless(site.work(may_download, browser_of(scope)))
    return 0


async def _unless(asking: Coroutine[Any, Any, bool]) -> int:
    """0 if the store confirms in time that somebody may, else the status of a refusal."""
    asked = asyncio.create_task(asking)
    await asyncio.wait({asked}, timeout=_PATIENCE)
    if not asked.done():
        return 503
    return 0 if asked.result() else 403


async def _refuse(status: int, send: Send) -> None:
    said = b""
    if status in (404, 421):
        said = written("several.nothing_here" if status == 404 else "door.other_name").encode()
    length = str(len(said)).encode()
    headers = [(b"content-length", length), (b"connection", b"close"), (b"content-type", _PLAIN)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def _with_cookies(scope: Scope, send: Send) -> Send:
    """Set our cookie with the first page for a browser without one; behind TLS it is never sent
    unencrypted.
    """

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            base = base_path(scope)
            is_page = scope["path"].removeprefix(base).removeprefix("/") in {"", *PLACES}
            headers = [(name, _for_path(name, value, base)) for name, value in headers]
            if is_page and not browser_of(scope):
                headers.append((b"set-cookie", new_cookie(scope)))
            if is_secure(scope):
                headers = [(name, _secure(name, value)) for name, value in headers]
            message = {**message, "headers": headers}
        await send(message)

    return sent


def _for_path(name: bytes, value: bytes, base: str) -> bytes:
    """Keep the cookie of a login under way at a provider to this study's own path."""
    if name.lower() != b"set-cookie" or not value.startswith(_SIGNING_ON):
        return value
    return value.replace(b"; path=/;", f"; path={base or '/'};".encode())


def _secure(name: bytes, value: bytes) -> bytes:
    is_open = name.lower() == b"set-cookie" and b"; secure" not in value.lower()
    return value + b"; Secure" if is_open else value


def is_own(scope: Scope) -> bool:
    """Return True if the page that asks for a connection is this app's own. Programs name no
    origin.
    """
    site = site_of(scope)
    names = headers_of(scope, b"host")
    names += [origin.partition("://")[2] for origin in headers_of(scope, b"origin")]
    return site is not None and all(is_own_name(name, site) for name in names)
