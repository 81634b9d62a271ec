"""Checks that every request passes before Streamlit sees it, and the bounds of the log.

Streamlit takes a file of any session into memory, gives a session to any client that knows its id,
serves its metrics to any client, answers to every host name, and on a foreign Origin looks up its
own address at an outside server, while all users wait. Such requests are refused first, without
reading their bodies. What a page and Streamlit say to one another passes unread.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections import Counter
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.annotate_app.logins import (
    PLACES,
    bound,
    browser_of,
    may_download,
    may_upload,
    new_cookie,
)
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

# The app's log: every record on lines of its own that no visitor's text can forge, and a limit on
# records per minute, for each visitor and for all. Much of what is logged comes from a visitor, who
# may be anyone.

visitor: ContextVar[str] = ContextVar("visitor", default="")
"""Address of the visitor whose request is being handled; "" for none."""

_LONGEST = 1_000
_LONGEST_TRACEBACK = 8_000
_MOST_OF_A_VISITOR = 30
_MOST_IN_ALL = 600
_MINUTE = 60.0


def keep_log_short() -> None:
    """Bound everything that this process logs from now on."""
    log_limit = LogLimit()

    class Logger(logging.getLoggerClass()):  # type: ignore[misc]
        def __init__(self, name: str, level: int = logging.NOTSET) -> None:
            super().__init__(name, level)
            self.addFilter(log_limit)

    logging.setLoggerClass(Logger)
    logging.root.addFilter(log_limit)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.addFilter(log_limit)


class LogLimit(logging.Filter):
    """Let through the records that have room, one a line, and log once that others are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._records: Counter[str] = Counter()
        self._since = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        address = visitor.get()
        room = self._room(address)
        if room < 0:
            return False
        if room == 0:
            record.msg = f"more of {address or 'the app'} in this minute is left out"
            record.exc_info = None
        else:
            try:
                message = record.getMessage()
            except Exception:  # arguments that do not fit the format must not raise in the caller
                message = str(record.msg)
            record.msg = one_line(message)
        record.args = ()
        record.exc_text = _traceback(record)
        return True

    def _room(self, address: str) -> int:
        """Return how many records there is room for; 0 once, when it is used up, then negative."""
        now = time.monotonic()
        if now - self._since >= _MINUTE:
            self._records.clear()
            self._since = now
        # The app's own records are counted apart: no crowd of visitors crowds them out.
        of_all = self._records.total() - self._records[""] if address else 0
        most = _MOST_OF_A_VISITOR if address else _MOST_IN_ALL
        room = min(most - self._records[address], _MOST_IN_ALL - of_all)
        if room >= 0:
            self._records[address] += 1
        return room


def one_line(text: str) -> str:
    r"""A text that cannot look like another line of the log, nor like an order to a terminal.

    >>> one_line("left\n2026-01-01 all is well \x1b[2J")
    'left\\n2026-01-01 all is well \\x1b[2J'
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text):,} characters)"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _traceback(record: logging.LogRecord) -> str | None:
    """The traceback, each of its lines behind a bar."""
    if not record.exc_info or record.exc_info[0] is None:
        return None
    lines = "".join(traceback.format_exception(*record.exc_info))[-_LONGEST_TRACEBACK:].splitlines()
    return "\n".join(f"  | {one_line(line)}" for line in lines)


_UPLOADS = "/_stcore/upload_file/"
_CLOSED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/script-health-check")
_SIGN_ON = ("/auth/", "/oauth2callback")
_SIGNING_ON = b"_streamlit_session="
_MEDIA = "/media/"
_PATIENCE = 4.0


class RequestFilter:
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
            text = written("several.nothing_here" if status == 404 else "door.other_name")
            text = text if status in (404, 421) else ""
            await PlainTextResponse(text, status, {"connection": "close"})(scope, receive, send)
        else:
            await self._app(scope, receive, _with_cookies(scope, send))

    async def _page(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        page = base_path(scope), address
        if not is_own(scope) or not has_room(page):
            await send({"type": "websocket.close", "code": 1008})
            return
        open_pages[page] += 1
        try:
            await self._app(bound(scope), receive, send)
        finally:
            open_pages[page] -= 1
            if not open_pages[page]:
                del open_pages[page]


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


async def _unless(permission: Coroutine[Any, Any, bool]) -> int:
    """0 if the store confirms in time that somebody may, else the status of a refusal."""
    answer = asyncio.create_task(permission)
    await asyncio.wait({answer}, timeout=_PATIENCE)
    if not answer.done():
        return 503
    return 0 if answer.result() else 403


def _with_cookies(scope: Scope, send: Send) -> Send:
    """Set our cookie with the first page for a browser without one; behind TLS it is never sent
    unencrypted. The cookie of a login under way at a provider is kept to this study's own path.
    """
    base = base_path(scope)

    def adapted(cookie: bytes) -> bytes:
        if cookie.startswith(_SIGNING_ON):
            cookie = cookie.replace(b"; path=/;", f"; path={base or '/'};".encode())
        return cookie + b"; Secure" * (is_secure(scope) and b"; secure" not in cookie.lower())

    async def send_with_cookies(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            is_page = scope["path"].removeprefix(base).removeprefix("/") in {"", *PLACES}
            if is_page and not browser_of(scope):
                headers.append((b"set-cookie", new_cookie(scope)))
            headers = [
                (name, adapted(value) if name.lower() == b"set-cookie" else value)
                for name, value in headers
            ]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_cookies


def is_own(scope: Scope) -> bool:
    """Return True if the page that asks to connect is this app's own. Programs name no origin."""
    site = site_of(scope)
    names = headers_of(scope, b"host")
    names += [origin.partition("://")[2] for origin in headers_of(scope, b"origin")]
    return site is not None and all(is_own_name(name, site) for name in names)
