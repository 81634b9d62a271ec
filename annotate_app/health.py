"""Whether the app can work at present, for whoever watches over it: it asks the study's store."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evenhand.study.workspace import store_answers


class Health:
    """What `ask` answers, asked in a thread, and never twice at once or within `keep` seconds,
    however many want to know. An answer that takes longer than `patience` seconds is a no.
    """

    def __init__(self, ask: Callable[[], bool], keep: float = 1.0, patience: float = 3.0) -> None:
        self._ask = ask
        self._keep = keep
        self._patience = patience
        self._asked_at = 0.0
        self._answer: asyncio.Task[bool] | None = None

    async def is_well(self) -> bool:
        old = time.monotonic() - self._asked_at >= self._keep
        if self._answer is None or (self._answer.done() and old):
            self._asked_at = time.monotonic()
            self._answer = asyncio.create_task(asyncio.to_thread(self._ask))
        answer = self._answer
        await asyncio.wait({answer}, timeout=self._patience)
        return answer.done() and answer.exception() is None and answer.result()


_store = Health(lambda: store_answers(Path(sys.argv[1])))


async def answer_health(_: Request) -> Response:
    """200 while the store answers, else 503."""
    is_well = await _store.is_well()
    return JSONResponse(
        {"store": "answers" if is_well else "away"},
        status_code=200 if is_well else 503,
        headers={"Cache-Control": "no-store"},
    )
