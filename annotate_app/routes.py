"""The app's own HTTP addresses, the checks of every request, and the bounds of the log.

The addresses are the front page, the script and the messages of the panel, in which annotators
label, and the health of the app. The panel's answers, flags and wishes to look back come by POST.
The reply, the panel's next data, is sent once everything that came is stored.

Streamlit takes a file of any session into memory, gives a session to any client that knows its id,
serves its metrics to any client, answers to every host name, and on a foreign Origin looks up its
own address at an outside server, while all users wait. Such requests are refused before they reach
it, without reading their bodies. Messages between a page and Streamlit pass unread.
"""

import asyncio
import gzip
import html
import json
import logging
import os
import re
import socket
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import groupby
from typing import Any

from starlette import responses
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.annotate_app import logins, payload, sites
from evenhand.annotate_app.html_texts import in_every_language
from evenhand.annotate_app.languages import ENGLISH, codes_english_first, fitting, offered
from evenhand.annotate_app.rater_pages import hand_out
from evenhand.errors import InputError, StoreAway
from evenhand.study.access import LINK_PARAMETER, read_ticket
from evenhand.study.desk.desk import Desk
from evenhand.study.workspace import StoreState, store_state
from evenhand.texts import written

# The app's log: every record on lines of its own that no visitor's text can forge, and a limit on
# records per minute, for each visitor and for all. Much of it comes from visitors, so from anyone.

visitor: ContextVar[str] = ContextVar("visitor", default="")
"""Address alone, without a study's path, of the visitor of the present request; "" for none."""

_LONGEST_MESSAGE = 1_000
_LONGEST_TRACEBACK = 8_000
_MOST_OF_A_VISITOR = 30  # records per minute
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
    """Passes some records per minute, each on one line, and logs once that more are left out."""

    def __init__(self) -> None:
        super().__init__()
        self._records: Counter[str] = Counter()
        self._since = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        address = visitor.get()
        if (records_left := self._records_left(address)) < 0:
            return False
        if records_left == 0:  # the first that is left out says so
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

    def _records_left(self, address: str) -> int:
        """Count a record; return how many may pass, with it: 0 for the first left out, then -1."""
        now = time.monotonic()
        if now - self._since >= _MINUTE:
            self._records.clear()
            self._since = now
        # The app's own records are counted apart, so that visitors leave room for them.
        n_by_visitors = self._records.total() - self._records[""] if address else 0
        most = _MOST_OF_A_VISITOR if address else _MOST_IN_ALL
        left = min(most - self._records[address], _MOST_IN_ALL - n_by_visitors)
        if left >= 0:
            self._records[address] += 1
        return left


def one_line(text: str) -> str:
    r"""Return a text that looks neither like another line of the log nor like a terminal command.

    >>> one_line("left\n2026-01-01 all is well \x1b[2J")
    'left\\n2026-01-01 all is well \\x1b[2J'
    """
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[:_LONGEST_MESSAGE]}... ({len(text):,} characters)"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)  # unquoted


def _traceback(record: logging.LogRecord) -> str | None:
    """Return a record's traceback, each of its lines behind a bar; None without one."""
    if not record.exc_info or record.exc_info[0] is None:
        return None
    lines = "".join(traceback.format_exception(*record.exc_info))[-_LONGEST_TRACEBACK:].splitlines()
    return "\n".join(f"  | {one_line(line)}" for line in lines)


# The checks of every request. The addresses here are Streamlit's.

_UPLOADS = "/_stcore/upload_file/"
_CLOSED = ("/_stcore/metrics", "/_stcore/agent", "/_stcore/script-health-check")
_SIGN_ON = ("/auth/", "/oauth2callback")  # closed where no provider is set up
_SIGN_ON_COOKIE = b"_streamlit_session="  # of a login that is under way at a provider
_MEDIA = "/media/"
_PATIENCE = 4.0  # seconds in which the store must confirm a permission


class RequestFilter:
    """ASGI middleware that checks every request before Streamlit's app. Without a provider of
    logins (`has_sign_on`) the addresses of `st.login` are closed.
    """

    def __init__(self, app: ASGIApp, has_sign_on: bool = False) -> None:
        self._app = app
        self._closed = _CLOSED if has_sign_on else (*_CLOSED, *_SIGN_ON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        address = sites.address_of(scope)
        visitor.set(address)
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send, address)
        elif status := await _refusal(scope, self._closed):
            text = ""
            if status in (404, 421):
                text = written("several.nothing_here" if status == 404 else "door.other_name")
            response = responses.PlainTextResponse(text, status, {"connection": "close"})
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, _with_cookies(scope, send))

    async def _connect(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        """Connect a page, unless another site opened it or its address has too many open."""
        path_and_address = sites.base_path(scope), address  # as in `sites.open_pages`
        if not is_own(scope) or not sites.has_room(*path_and_address):
            await send({"type": "websocket.close", "code": 1008})  # a policy is violated
            return
        sites.open_pages[path_and_address] += 1
        try:
            await self._app(logins.bound_to_browser(scope), receive, send)
        finally:
            sites.open_pages[path_and_address] -= 1
            if not sites.open_pages[path_and_address]:
                del sites.open_pages[path_and_address]


async def _refusal(scope: Scope, closed: tuple[str, ...]) -> int:
    """Return the HTTP status with which a request is refused; 0 if it is not."""
    if (site := sites.site_of(scope)) is None:
        return 0 if scope["path"] == "/health" else 404
    method, path = scope["method"], scope["path"].removeprefix(site.path)
    if not all(sites.is_own_name(host, site) for host in sites.headers_of(scope, b"host")):
        return 421  # under a name that is not the study's
    if path.startswith(closed):
        return 404
    if path.startswith(_UPLOADS) and method not in ("GET", "HEAD", "OPTIONS"):
        session, _, _ = path.removeprefix(_UPLOADS).partition("/")
        upload = site.work(logins.may_upload, session, logins.browser_of(scope))
        return await _refusal_unless(upload)
    if path.startswith(_MEDIA):
        return await _refusal_unless(site.work(logins.may_download, logins.browser_of(scope)))
    return 0


async def _refusal_unless(permission: Coroutine[Any, Any, bool]) -> int:
    """Return 0 if the store confirms a permission in time, else the status of a refusal."""
    answer = asyncio.create_task(permission)
    await asyncio.wait({answer}, timeout=_PATIENCE)
    if not answer.done():
        return 503  # so that the browser may try again
    return 0 if answer.result() else 403


def _with_cookies(scope: Scope, send: Send) -> Send:
    """Return a `send` that gives a browser without our cookie one with its first page. Behind TLS
    every cookie is marked Secure; that of a login under way is limited to this study's path.
    """
    base = sites.base_path(scope)

    def restricted(cookie: bytes) -> bytes:
        if cookie.startswith(_SIGN_ON_COOKIE):
            cookie = cookie.replace(b"; path=/;", f"; path={base or '/'};".encode())
        lacks_secure = sites.is_secure(scope) and b"; secure" not in cookie.lower()
        return cookie + (b"; Secure" if lacks_secure else b"")

    async def send_with_cookies(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            is_page = scope["path"].removeprefix(base).removeprefix("/") in {"", *logins.PLACES}
            if is_page and not logins.browser_of(scope):
                headers.append((b"set-cookie", logins.new_cookie(scope)))
            headers = [
                (name, restricted(value) if name.lower() == b"set-cookie" else value)
                for name, value in headers
            ]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_cookies


def is_own(scope: Scope) -> bool:
    """Return True if our own page asks to connect, or a program, which sends no origin."""
    site = sites.site_of(scope)
    names = sites.headers_of(scope, b"host")
    names += [origin.partition("://")[2] for origin in sites.headers_of(scope, b"origin")]
    return site is not None and all(sites.is_own_name(name, site) for name in names)


# Our own addresses

ANSWERS = "evenhand/answers"
_NO_CACHE = {"Cache-Control": "no-cache"}

_log = logging.getLogger(__name__)


def routes(base: str) -> list[Route]:
    """Return our own addresses below `base`, the path of the app; all others are Streamlit's."""
    scripts = {payload.panel_path(): payload.panel_module(), _front_path(): _front_script()}
    scripts |= dict([payload.typesetter()])  # a pair of path and text, as the others
    return [
        Route(f"{base}/", _answer_front_page),
        *(Route(f"{base}/{place}", _answer_page) for place in logins.PLACES),
        *(Route(f"{base}/{path}", partial(_answer_script, text)) for path, text in scripts.items()),
        Route(f"{base}/{ANSWERS}", take_message, methods=["POST"]),
        Route(f"{base}/health", answer_health),
        Route(f"{base}/evenhand/room", _answer_room),
    ]


async def to_front_page(request: Request) -> Response:
    """Redirect to the address with its slash, but no host, which a proxy may change."""
    query = f"?{request.url.query}" if request.url.query else ""
    address = f"{sites.base_path(request.scope)}/{query}"
    return responses.RedirectResponse(address, headers=_NO_CACHE)


async def _answer_front_page(request: Request) -> Response:
    if LINK_PARAMETER in request.query_params:  # a lead's link, to a page that a reload keeps
        address = f"{logins.FIRST_PLACE}?{request.url.query}"
        return responses.RedirectResponse(address, headers=_NO_CACHE)
    return await _answer_page(request)


async def _answer_page(_: Request) -> Response:
    return responses.HTMLResponse(front_page(), headers=_NO_CACHE)


async def _answer_room(request: Request) -> Response:
    """Answer whether one more page may be open here, as a refused connection gives no reason."""
    scope = request.scope
    return _uncached({"room": sites.has_room(sites.base_path(scope), sites.address_of(scope))})


async def _answer_script(text: str, request: Request) -> Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    content: str | bytes = text
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        content, headers["Content-Encoding"] = _zipped(text), "gzip"
    return Response(content, media_type="text/javascript", headers=headers)


@cache
def _zipped(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def _uncached(data: dict[str, Any], status: int = 200) -> Response:
    return responses.JSONResponse(data, status_code=status, headers={"Cache-Control": "no-store"})


# The front page: Streamlit's, with our additions

_STYLESHEET = r'<link rel="stylesheet"[^>]*>'
_FONT = r'<link\s+rel="preload"[^>]*\sas="font"[^>]*>'
_SCRIPTS = files("streamlit") / "static" / "static" / "js"
_FILE = r"[\w.-]+\.js"
_IMPORT = re.compile(  # `import ... from "./FILE"`, `import "./FILE"` or `export ... from "./FILE"`
    rf'(?<![\w$.])(?:import(?:[\w$*{{}},\s]+?from)?|export[\w$*{{}},\s]+?from)"\./({_FILE})"'
)
_PRELOAD = '<link rel="preload" as="fetch" crossorigin href="./_stcore/{}">'
"""An answer of the server that Streamlit reads as it begins, fetched with the page."""


@cache
def front_page() -> str:
    """Return Streamlit's page with our style, and with our words until its app is loaded."""
    page = (files("streamlit") / "static" / "index.html").read_text("utf-8")
    page = re.sub(r'<link rel="service-desc"[^>]*>', "", page)
    page = re.sub(_FONT, "", page)  # not preloaded: what a page needs first comes first
    # A browser's translator would rewrite what annotators read, and nobody would know.
    page = page.replace("<html ", '<html translate="no" ', 1)
    title = ENGLISH.say("page.title")
    page = page.replace("<title>Streamlit</title>", f"<title>{html.escape(title)}</title>")
    # Fetched first: the script with our words for the visitor, and what Streamlit begins with.
    head_start = f'<script async src="./{_front_path()}"></script>\n'
    head_start += "".join(f"{_PRELOAD.format(name)}\n" for name in ("health", "host-config"))
    modules = [payload.panel_path(), *(f"static/js/{name}" for name in modules_of(page))]
    missing = [path for path in modules if path not in page]
    head_end = "\n".join(f'<link rel="modulepreload" href="./{path}">' for path in missing)
    page = page.replace("<head>", f"<head>\n{head_start}")
    page = page.replace("</head>", f"{head_end}\n</head>")
    # Streamlit's stylesheet goes behind our words, which need not wait for it, and before our own,
    # as the last of two equally specific rules wins.
    stylesheets = "".join(re.findall(_STYLESHEET, page))
    page = re.sub(_STYLESHEET, "", page)
    # Of a text in every language the reader's shows; English until that is known.
    rule = '{} .evenhand-said:not([lang="{}"]) {{ display: none; }}\n'.format
    rules = [rule(f':root[data-reads="{code}"]', code) for code in codes_english_first()]
    rules.append(rule(":root:not([data-reads])", ENGLISH.code))
    front_style = "".join([payload.app_files("front.css"), *rules])
    status = '<div role="status" class="evenhand-{}">{}</div>'.format
    words = status("offline", in_every_language("page.no_answer"))
    words += status("crowded", in_every_language("page.crowded"))
    words += status("loading", in_every_language("page.loading"))
    style = payload.app_files("page.css")
    body = f"<style>\n{front_style}</style>\n{words}\n{stylesheets}\n<style>\n{style}</style>\n"
    return page.replace('<div id="root">', f'{body}<div id="root">')


def modules_of(page: str) -> list[str]:
    """Return the names of the modules with which Streamlit's page begins, its entry first, and of
    those that draw a component, which a browser would fetch late; and of all that these import.
    """
    pending = re.findall(rf'"\./static/js/({_FILE})"', page)
    with suppress(OSError):  # another version of Streamlit may have its scripts elsewhere
        scripts = [script.name for script in _SCRIPTS.iterdir()]
        pending += [name for name in scripts if name.startswith("BidiComponent.")]
    modules: list[str] = []
    while pending:
        name = pending.pop(0)
        if name not in modules:
            modules.append(name)
            with suppress(OSError):
                pending += _IMPORT.findall((_SCRIPTS / name).read_text("utf-8"))
    return modules


@cache
def _front_script() -> str:
    languages = json.dumps(codes_english_first())
    return f"const LANGUAGES = {languages};\n{payload.app_files('front.js')}"


def _front_path() -> str:
    return payload.module_path("front", _front_script())


# The panel's messages

_TICKET = "x-evenhand-ticket"
"""A header of our own: no browser lets a page of another origin send it."""
_MESSAGE_SECONDS = 30.0  # seconds within which all of a message must have come
_MOST_WAITING = 64
"""Messages of a study that may wait for its store: with more, browsers would give up waiting."""
_in_progress: Counter[tuple[str, str]] = Counter()
"""Messages being read or answered, by the study's path and the visitor's address."""


async def take_message(request: Request) -> Response:
    """Answer with the panel's next data; 403 without a valid ticket, 408 or 413 for a message that
    is too slow or too long, 503 if nothing was stored, so that the panel sends it again.
    """
    site = sites.site_of(request.scope)
    if site is None or not is_own(request.scope):
        return Response(status_code=403)
    address = sites.address_of(request.scope)
    sender = (site.path, address)
    if address and _in_progress[sender] >= sites.MOST_PAGES:
        return Response(status_code=503)
    _in_progress[sender] += 1
    try:
        body = bytearray()
        async with asyncio.timeout(_MESSAGE_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > sites.MOST_BYTES:
                    return Response(status_code=413)
        if site.waiting >= _MOST_WAITING:
            return Response(status_code=503)
        ticket, browser = request.headers.get(_TICKET, ""), logins.browser_of(request.scope)
        return await site.work(_reply, site, ticket, browser, bytes(body))
    except (ClientDisconnect, TimeoutError):
        return Response(status_code=408)
    except (StoreAway, InputError) as error:
        _log.warning("%s", error)
        return Response(status_code=503)
    except Exception:
        _log.exception("answers could not be stored")
        return Response(status_code=503)
    finally:
        _in_progress[sender] -= 1
        if not _in_progress[sender]:
            del _in_progress[sender]


def _reply(site: sites.Site, ticket: str, browser: str, body: bytes) -> Response:
    """Store what the panel sent; reply with receipts, by the ids of its answers and flags, and with
    its next data, or the name of the step whose page is to be drawn instead.
    """
    served = sites.served(site)
    desks = served.desks()  # as the files are now
    try:
        admission = read_ticket(desks.desk.study, ticket, browser)
    except InputError:
        return Response(status_code=403)
    try:
        sent = json.loads(body)  # nothing is read that comes without a ticket
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        return Response(status_code=400)
    rater, practice = admission.rater_id, sent.get("practice") is True
    receipts = dict.fromkeys(payload.unread_ids(sent), "unknown_task")  # else they come again
    states = payload.read_states(sent)
    entries = payload.read_sent(sent)
    for state, group in groupby(entries, lambda entry: states.get(entry.submit_id, "")):
        desks_shown, answers = served.desks(state), list(group)  # as the files were when shown
        desk: Desk = desks_shown.sessions.practice if practice else desks_shown.desk
        statuses = desk.submit_all(rater, answers)
        receipts |= zip((answer.submit_id for answer in answers), statuses, strict=True)
    step = desks.sessions.next_step(rater).name
    if step != ("practice" if practice else "labelling"):
        return _uncached({"receipts": receipts, "page": step})
    code = sent.get("language")
    wanted = code if isinstance(code, str) else None
    language = fitting([wanted], offered(desks.desk.study.config.annotation))
    look = payload.read_navigation(sent.get("look"))
    data = hand_out(desks, admission, language, practice=practice, receipts=receipts, look=look)
    return _uncached(payload.lightened(data, payload.read_known(sent)))


# The health of the app, for monitoring: the check writes to a study's store and reads from it, as
# storing an answer does. And the heartbeat, which tells systemd that this process is alive.

_NO_ANSWER = StoreState(can_read=False, can_write=False)


@dataclass
class Health:
    """The state of a store as `ask` returned it last: `ask` never runs twice at once or within
    `keep` seconds, however many clients want to know. If it takes longer than `patience` seconds,
    the store counts as away; nginx waits longer than that, so that it does not mistake a store that
    hangs for an app that hangs.
    """

    ask: Callable[[], Coroutine[Any, Any, StoreState]]
    keep: float = 1.0
    patience: float = 4.0
    _asked_at: float = 0.0
    _answer: asyncio.Task[StoreState] | None = None

    async def state(self) -> StoreState:
        """Return the state of the store, at most `keep` seconds old."""
        is_old = time.monotonic() - self._asked_at >= self.keep
        if self._answer is None or (self._answer.done() and is_old):
            self._asked_at = time.monotonic()
            self._answer = asyncio.create_task(self.ask())
        answer = self._answer  # another client may replace it while this one waits
        await asyncio.wait({answer}, timeout=self.patience)
        if not answer.done() or answer.exception() is not None:
            return _NO_ANSWER
        return answer.result()


@cache
def _health_of(site: sites.Site) -> Health:
    # Through the connection of the study's pages, so that what blocks them is noticed.
    return Health(lambda: site.work(lambda: store_state(sites.served(site).desks().desk.study)))


async def answer_health(request: Request) -> Response:
    """Answer 200 while the study's store can be written and read, else 503, with what fails."""
    site = sites.site_of(request.scope)
    state = await _health_of(site).state() if site else _NO_ANSWER
    is_healthy = state.can_read and state.can_write
    store = "answers" if is_healthy else "cannot be written" if state.can_read else "away"
    parts = {"store": store, "read": state.can_read, "write": state.can_write}
    parts["hours_since_backup"] = state.hours_since_backup
    return _uncached(parts, 200 if is_healthy else 503)


async def answer_health_of_all(_: Request) -> Response:
    """Answer 200 while every study's store can be written and read, without naming one."""
    states = await asyncio.gather(*(_health_of(site).state() for site in sites.sites()))
    are_healthy = all(state.can_read and state.can_write for state in states)
    answer = {"studies": "answer" if are_healthy else "not all answer"}
    return _uncached(answer, 200 if are_healthy else 503)


@asynccontextmanager
async def telling_systemd(_: object) -> AsyncIterator[None]:
    """Tell systemd that the app has started and, at the interval that systemd wants, that its event
    loop and its threads work. A store that is away is no reason to restart.
    """
    _notify("READY=1")
    pulse = asyncio.create_task(_pulse())
    try:
        yield
    finally:
        _notify("STOPPING=1")
        pulse.cancel()


async def _pulse() -> None:
    """Send the heartbeat at a third of the interval after which systemd would restart the app."""
    interval = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / 3  # from microseconds; 0 for none
    while interval:
        await asyncio.to_thread(_notify, "WATCHDOG=1")
        await asyncio.sleep(interval)


def _notify(state: str) -> None:
    """Send a state, as in sd_notify(3), to the socket that systemd names, if it names one."""
    if address := os.environ.get("NOTIFY_SOCKET", ""):
        if address.startswith("@"):  # an abstract socket, which is no file
            address = "\0" + address[1:]
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.sendto(state.encode(), address)
