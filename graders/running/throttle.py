"""How many requests one grader has under way: fewer when the server says so, then slowly more."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from evenhand.graders.failures import Transient

_TOO_BUSY = (429, 529)
_CUT = 0.75


class Throttle:
    """A limit on concurrent requests that falls by a quarter when the server is too busy and rises
    by one for every full round of replies. One fall per round: requests that were already under way
    when the limit fell say nothing new.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter = anyio.CapacityLimiter(most)
        self._last_cut = 0.0
        self._replies = 0

    @property
    def limit(self) -> int:
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold room for one request."""
        async with self._limiter:
            sent = time.monotonic()
            try:
                yield
            except Transient as failure:
                if failure.status in _TOO_BUSY and sent >= self._last_cut:
                    self._set(int(self.limit * _CUT))
                    self._last_cut = time.monotonic()
                raise
            self._replies += 1
            if self._replies >= self.limit:
                self._set(self.limit + 1)

    def _set(self, limit: int) -> None:
        self._limiter.total_tokens = min(max(limit, 1), self._most)
        self._replies = 0
