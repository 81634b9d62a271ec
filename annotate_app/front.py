"""The app's own HTTP responses: the page that everything begins with, the panel, and the health of
the store.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from evenhand.annotate_app.drawn import said
from evenhand.annotate_app.health import answer_health
from evenhand.annotate_app.languages import ENGLISH, codes_english_first
from evenhand.annotate_app.logins.lead_login import FIRST_PLACE, PLACES
from evenhand.annotate_app.payload import panel_module, panel_path
from evenhand.annotate_app.sites import address_of, base_path, has_room
from evenhand.annotate_app.wire import ANSWERS, take_message
from evenhand.study.access.accounts import LINK_PARAMETER

_HERE = Path(__file__).parent
_ASKED_AGAIN = {"Cache-Control": "no-cache"}
_STYLESHEET = r'<link rel="stylesheet"[^>]*>'
_FONT = r'<link\s+rel="preload"[^>]*\sas="font"[^>]*>'
_SCRIPTS = files("streamlit") / "static" / "static" / "js"
_FILE = r"[\w.-]+\.js"
_IMPORT = re.compile(
    rf'(?<![\w$.])(?:import(?:[\w$*{{}},\s]+?from)?|export[\w$*{{}},\s]+?from)"\./({_FILE})"'
)
_COMPONENT = re.compile(r"BidiComponent\.")
_ASKED = '<link rel="preload" as="fetch" crossorigin href="./_stcore/{}">'
"""Asked for now, read by Streamlit as it begins."""


def routes(base: str) -> list[Route]:
    """Our own addresses below that of the app; every other one is Streamlit's."""
    return [
        Route(f"{base}/", _front_page),
        *(Route(f"{base}/{place}", _page) for place in PLACES),
        Route(f"{base}/{panel_path()}", _panel),
        Route(f"{base}/{_front_path()}", _script),
        Route(f"{base}/{ANSWERS}", take_message, methods=["POST"]),
        Route(f"{base}/health", answer_health),
        Route(f"{base}/evenhand/room", _room),
    ]


async def to_front_page(request: Request) -> Response:
    """Add the slash that is missing; nothing of the address is repeated that a proxy changes."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{base_path(request.scope)}/{query}", headers=_ASKED_AGAIN)


async def _front_page(request: Request) -> Response:
    if LINK_PARAMETER in request.query_params:  # to the address of a page, which a reload keeps
        return RedirectResponse(f"{FIRST_PLACE}?{request.url.query}", headers=_ASKED_AGAIN)
    return await _page(request)


async def _page(request: Request) -> Response:
    return HTMLResponse(front_page(), headers=_ASKED_AGAIN)


async def _panel(request: Request) -> Response:
    return _kept_script(request, panel_module())


async def _script(request: Request) -> Response:
    return _kept_script(request, _front_script())


async def _room(request: Request) -> Response:
    """Answer if one more page may be open at the visitor's address. A browser whose connection is
    refused does not learn the reason otherwise.
    """
    scope, headers = request.scope, {"Cache-Control": "no-store"}
    return JSONResponse({"room": has_room((base_path(scope), address_of(scope)))}, headers=headers)


def _kept_script(request: Request, text: str) -> Response:
    kept = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return Response(text, media_type="text/javascript", headers=kept)
    headers = kept | {"Content-Encoding": "gzip"}
    return Response(_zipped(text), media_type="text/javascript", headers=headers)


@cache
def _zipped(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


@cache
def front_page() -> str:
    """Streamlit's page with our style and, until its app is loaded, our words."""
    page = (files("streamlit") / "static" / "index.html").read_text("utf-8")
    page = re.sub(r'<link rel="service-desc"[^>]*>', "", page)
    page = re.sub(_FONT, "", page)  # it comes once it is used: after all that a page needs
    # A browser's translator would rewrite what annotators read, and nobody would know.
    page = page.replace("<html ", '<html translate="no" ', 1)
    title = ENGLISH.say("page.title")
    page = page.replace("<title>Streamlit</title>", f"<title>{html.escape(title)}</title>")
    # First of all that is fetched: what speaks to the visitor, and what they are shown.
    first = f'<script async src="./{_front_path()}"></script>\n'
    first += "".join(f"{_ASKED.format(name)}\n" for name in ("health", "host-config"))
    needed = [panel_path(), *(f"static/js/{name}" for name in modules_of(page))]
    later = [path for path in needed if path not in page]
    last = "\n".join(f'<link rel="modulepreload" href="./{path}">' for path in later)
    page = page.replace("<head>", f"<head>\n{first}").replace("</head>", f"{last}\n</head>")
    # In the body, so that our words need not wait for Streamlit's file of styles; ours come after
    # it, because of two equally specific rules the last wins.
    styles = "".join(re.findall(_STYLESHEET, page))
    page = re.sub(_STYLESHEET, "", page)
    begin = (_HERE / "front.css").read_text("utf-8") + _one_language_shows()
    style = (_HERE / "page.css").read_text("utf-8")
    spoken = {
        "offline": said("page.no_answer"),
        "crowded": said("page.crowded"),
        "loading": said("page.loading"),
    }
    words = "".join(
        f'<div role="status" class="evenhand-{kind}">{text}</div>' for kind, text in spoken.items()
    )
    body = f"<style>\n{begin}</style>\n{words}\n{styles}\n<style>\n{style}</style>\n"
    return page.replace('<div id="root">', f'{body}<div id="root">')


def modules_of(page: str) -> list[str]:
    """The names of the modules with which Streamlit's page begins, its entry first, and of those
    that draw a component, which a browser would ask for only once it is told to.
    """
    waiting = re.findall(rf'"\./static/js/({_FILE})"', page)
    with suppress(OSError):
        waiting += [each.name for each in _SCRIPTS.iterdir() if _COMPONENT.match(each.name)]
    found: list[str] = []
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            with suppress(OSError):  # where Streamlit has it in another place
                waiting += _IMPORT.findall((_SCRIPTS / name).read_text("utf-8"))
    return found


def _one_language_shows() -> str:
    """Return CSS that shows texts given in every language only in the reader's; English until
    known.
    """
    rules = [
        f':root:not([data-reads="{code}"]) .evenhand-said[lang="{code}"] {{ display: none; }}'
        for code in codes_english_first()
        if code != ENGLISH.code
    ]
    code = ENGLISH.code
    other = f':root[data-reads]:not([data-reads="{code}"]) .evenhand-said[lang="{code}"]'
    return "\n".join([*rules, f"{other} {{ display: none; }}\n"])


@cache
def _front_script() -> str:
    script = (_HERE / "front.js").read_text("utf-8")
    return f"const LANGUAGES = {json.dumps(codes_english_first())};\n{script}"


def _front_path() -> str:
    return _path("front", _front_script())


def _path(name: str, text: str) -> str:
    return f"evenhand/{name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
