"""A lead with one page open, without a browser: the page redraws as often as it requests."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg

from evenhand.annotate_app.logins import place_of
from harness.sessions import connected, next_message


@dataclass
class Watching:
    """An open page of the lead: `page` is its title, `token` that of a one-time link.

    `parts` are the fragments that are drawn anew by themselves, with their seconds; `seconds` what
    each drawing took; `shown` what the page said last, as its HTML and texts.
    """

    port: int
    token: str
    page: str
    parts: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    _query: str = ""
    _hash: str = ""

    async def open(self) -> None:
        self._query = f"lead={self.token}"
        self.socket = await connected(self.port)
        await self._draw()
        self._query = ""
        await self._draw()

    async def watch(self, until: float) -> None:
        """Go on until this moment (`time.monotonic`)."""
        due = {part: time.monotonic() + every for part, every in self.parts.items()}
        while due and min(due.values()) < until:
            part = min(due, key=lambda each: due[each])
            await asyncio.sleep(max(due[part] - time.monotonic(), 0))
            await self._draw(part)
            due[part] = max(due[part] + self.parts[part], time.monotonic())

    async def close(self) -> None:
        await self.socket.close()

    async def _draw(self, part: str = "") -> None:
        message = BackMsg()
        run = message.rerun_script
        run.query_string, run.page_script_hash, run.fragment_id = self._query, self._hash, part
        run.is_auto_rerun = bool(part)
        run.context_info.timezone = "UTC"
        place = place_of(self.page)
        run.page_name = "" if self._hash else place
        run.context_info.url = f"http://127.0.0.1:{self.port}/{place}"
        run.widget_states.SetInParent()
        begun = time.monotonic()
        await self.socket.send(message.SerializeToString())
        if not part:
            self.parts.clear()
        self.shown.clear()
        await self._until_finished()
        self.seconds.append(time.monotonic() - begun)

    async def _until_finished(self) -> None:
        while True:
            message = await next_message(self.socket)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._hash = message.new_session.page_script_hash
            elif kind == "navigation":
                self._hash = message.navigation.page_script_hash
            elif kind == "auto_rerun":
                self.parts[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "delta":
                element = message.delta.new_element
                self.shown.append(element.html.body or element.text.body)
            elif kind == "script_finished":
                return
