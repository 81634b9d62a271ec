"""Health of the app for monitoring: it writes to a study's store and reads from it, as for an
answer. And the heartbeat that tells systemd that this process is alive.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evenhand.annotate_app.served_study import served
from evenhand.annotate_app.sites import Site, site_of, sites
from evenhand.study.workspace import StoreState, store_state

_PATIENCE = 4.0
"""Less than nginx waits for an answer: it would take a store that hangs for an app that does."""
Asking = Callable[[], Coroutine[Any, Any, StoreState]]
_NO_ANSWER = StoreState(read=False, write=False)


class Health:
    """Cached answer of `ask`, which never runs twice at once or within `keep` seconds, however many
    clients want to know. An answer that takes longer than `patience` seconds is a no.
    """

    def __init__(self, ask: Asking, keep: float = 1.0, patience: float = _PATIENCE) -> None:
        self._ask = ask
        self._keep = keep
        self._patience = patience
        self._asked_at = 0.0
        self._answer: asyncio.Task[StoreState] | None = None

    async def state(self) -> StoreState:
        old = time.monotonic() - self._asked_at >= self._keep
        if self._answer is None or (self._answer.done() and old):
            self._asked_at = time.monotonic()
            self._answer = asyncio.create_task(self._ask())
        answer = self._answer
        await asyncio.wait({answer}, timeout=self._patience)
        if not answer.done() or answer.exception() is not None:
            return _NO_ANSWER
        return answer.result()


@cache
def _health_of(site: Site) -> Health:
    return Health(lambda: site.work(_ask, site))


def _ask(site: Site) -> StoreState:
    """Ask through the connection of the study's pages, so that what blocks them is noticed."""
    return store_state(served(site).desks().desk.study)


async def answer_health(request: Request) -> Response:
    """200 while the study's store can be written and read, else 503 and the part that fails."""
    site = site_of(request.scope)
    state = await _health_of(site).state() if site else _NO_ANSWER
    is_well = state.read and state.write
    store = "answers" if is_well else "cannot be written" if state.read else "away"
    said = {"store": store, "read": state.read, "write": state.write}
    return _told({**said, "hours_since_backup": state.hours_since_backup}, is_well)


async def answer_health_of_all(_: Request) -> Response:
    """200 while every study's store can be written and read, without naming one."""
    states = await asyncio.gather(*(_health_of(site).state() for site in sites()))
    is_well = all(state.read and state.write for state in states)
    return _told({"studies": "answer" if is_well else "not all answer"}, is_well)


def _told(said: dict[str, object], is_well: bool) -> Response:
    headers = {"Cache-Control": "no-store"}
    return JSONResponse(said, status_code=200 if is_well else 503, headers=headers)


@asynccontextmanager
async def telling_systemd(_: object) -> AsyncIterator[None]:
    """While the app runs: tell systemd that it has started, and, at the interval that systemd
    wants, that its loop turns and its threads take work. A store that is away is no reason to
    restart.
    """
    _notify("READY=1")
    pulse = asyncio.create_task(_pulse())
    try:
        yield
    finally:
        _notify("STOPPING=1")
        pulse.cancel()


async def _pulse() -> None:
    every = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / 3
    while every:
        await asyncio.to_thread(_notify, "WATCHDOG=1")
        await asyncio.sleep(every)


def _notify(state: str) -> None:
    """The protocol of sd_notify(3): a datagram to the socket that systemd names, if it does."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if place:
        address = "\0" + place[1:] if place.startswith("@") else place
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.sendto(state.encode(), address)
