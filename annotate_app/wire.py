"""The panel's own messages: answers, flags and wishes to look back come by POST, and each reply is
the panel's next data. It is sent once all that came is stored.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from itertools import groupby
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from evenhand.annotate_app.door import is_own
from evenhand.annotate_app.languages import fitting, offered
from evenhand.annotate_app.logins.browser import browser_of
from evenhand.annotate_app.payload import (
    lightened,
    read_known,
    read_look,
    read_sent,
    read_states,
    unread_ids,
)
from evenhand.annotate_app.served_study import served
from evenhand.annotate_app.sites import MOST_BYTES, MOST_PAGES, Site, address_of, site_of
from evenhand.annotate_app.unit_page import panel_data
from evenhand.errors import InputError, StoreAway
from evenhand.study.access.admission import read_ticket
from evenhand.study.desk.desk import Desk

ANSWERS = "evenhand/answers"
_TICKET = "x-evenhand-ticket"
"""A header of our own, which no page of another origin may send without asking first."""
_PATIENCE = 30.0
"""Seconds in which a message is to be whole."""
_MOST_WAITING = 64
"""Messages of a study that wait for its store: a browser gives up before more have their turn."""
_under_way: Counter[tuple[str, str]] = Counter()
"""Messages being read or at work, by the study's path and the address."""

_log = logging.getLogger(__name__)


async def take_message(request: Request) -> Response:
    """Answer with the panel's data; 403 to whoever has no ticket for it, 503 where nothing was
    stored, and the panel is to send it again.
    """
    site = site_of(request.scope)
    if site is None or not is_own(request.scope):
        return Response(status_code=403)
    visitor = (site.path, address_of(request.scope))
    if visitor[1] and _under_way[visitor] >= MOST_PAGES:
        return Response(status_code=503)
    _under_way[visitor] += 1
    try:
        async with asyncio.timeout(_PATIENCE):
            body = await _bounded(request)
        if body is None:
            return Response(status_code=413)
        if site.waiting >= _MOST_WAITING:
            return Response(status_code=503)
        ticket, browser = request.headers.get(_TICKET, ""), browser_of(request.scope)
        return await site.work(_reply, site, ticket, browser, body)
    except (ClientDisconnect, TimeoutError):
        return Response(status_code=408)
    except (StoreAway, InputError) as error:
        _log.warning("%s", error)
        return Response(status_code=503)
    except Exception:
        _log.exception("answers could not be stored")
        return Response(status_code=503)
    finally:
        _under_way[visitor] -= 1
        if not _under_way[visitor]:
            del _under_way[visitor]


async def _bounded(request: Request) -> bytes | None:
    """Return the body; None once it is too long."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


def _reply(site: Site, ticket: str, browser: str, body: bytes) -> Response:
    """Store what the panel sent, and return receipts with its next data, or with word that the page
    of another step is to be drawn.
    """
    study = served(site)
    desks = study.desks()
    try:
        admission = read_ticket(desks.desk.study, ticket, browser)
    except InputError:
        return Response(status_code=403)
    try:
        sent = json.loads(body)  # nothing is read of whoever has no ticket
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        return Response(status_code=400)
    rater, practice = admission.rater_id, sent.get("practice") is True
    receipts = dict.fromkeys(unread_ids(sent), "unknown_task")
    states = read_states(sent)
    for state, read in groupby(read_sent(sent), lambda each: states.get(each.submit_id, "")):
        shown = study.desks(state)
        desk: Desk = shown.sessions.practice if practice else shown.desk
        given = desk.submit_all(rater, together := list(read))
        receipts |= {each.submit_id: had.status for each, had in zip(together, given, strict=True)}
    step = desks.sessions.next_step(rater).name
    if step != ("practice" if practice else "labelling"):
        return _unkept({"receipts": receipts, "page": step})
    reader = fitting([_text(sent.get("language"))], offered(desks.desk.study.config.annotation))
    look = read_look(sent.get("look"))
    data = panel_data(desks, admission, reader, practice=practice, receipts=receipts, look=look)
    return _unkept(lightened(data, read_known(sent)))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _unkept(data: dict[str, Any]) -> Response:
    return JSONResponse(data, headers={"Cache-Control": "no-store"})
