"""Health of the app for monitoring: it writes to the study's store and reads from it, as for an
answer. And the heartbeat that tells systemd that this process is alive.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evenhand.study import Study
from evenhand.study.workspace import StoreState, store_state

_PATIENCE = 4.0
"""Less than nginx waits for an answer: it would take a store that hangs for an app that does."""
_NO_ANSWER = StoreState(read=False, write=False)


class Health:
    """Cached answer of `ask`, which runs in a thread, never twice at once or within `keep` seconds,
    however many clients want to know. An answer that takes longer than `patience` seconds is a no.
    """

    def __init__(
        self, ask: Callable[[], StoreState], keep: float = 1.0, patience: float = _PATIENCE
    ) -> None:
        self._ask = ask
        self._keep = keep
        self._patience = patience
        self._asked_at = 0.0
        self._answer: asyncio.Task[StoreState] | None = None

    async def state(self) -> StoreState:
        old = time.monotonic() - self._asked_at >= self._keep
        if self._answer is None or (self._answer.done() and old):
            self._asked_at = time.monotonic()
            self._answer = asyncio.create_task(asyncio.to_thread(self._ask))
        answer = self._answer
        await asyncio.wait({answer}, timeout=self._patience)
        if not answer.done() or answer.exception() is not None:
            return _NO_ANSWER
        return answer.result()


_studies: list[Study] = []


def watch_over(study: Study) -> None:
    """Check this study from now on, through the same connection as its pages, so that what blocks
    them is noticed.
    """
    _studies[:] = [study]


def _ask() -> StoreState:
    return store_state(_studies[0] if _studies else Path(sys.argv[1]))


_store = Health(_ask)


async def answer_health(_: Request) -> Response:
    """200 while the store can be written and read, else 503 and the part that fails."""
    state = await _store.state()
    is_well = state.read and state.write
    store = "answers" if is_well else "cannot be written" if state.read else "away"
    said = {"store": store, "read": state.read, "write": state.write}
    return JSONResponse(
        {**said, "hours_since_backup": state.hours_since_backup},
        status_code=200 if is_well else 503,
        headers={"Cache-Control": "no-store"},
    )


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
