"""Annotators without a browser: they speak to the app as its page does, over the WebSocket."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


@dataclass
class Session:
    """One page that is open: `acknowledged` are the submit ids that the server said it stored.

    `address` is the loopback address that it comes from: of one address only so many pages may be
    open.
    """

    port: int
    rater: str
    address: str = "127.0.0.1"
    page_hash: str = ""
    component: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    milliseconds: list[float] = field(default_factory=list)
    begun: float = 0.0

    async def open(self) -> None:
        self.socket = await connected(self.port, self.address)
        await self._send()
        await self._until_finished()

    async def close(self) -> None:
        await self.socket.close()

    async def answer(self) -> bool:
        """Answer what is asked and wait for what comes next; False when nothing is left."""
        sheet = self.data["sheet"]
        if sheet is None:
            return False
        await self.submit(self.first_options(sheet))
        return True

    @staticmethod
    def first_options(sheet: dict[str, Any]) -> list[dict[str, Any]]:
        """Answers to all that a sheet asks: the first option each time."""
        return [
            {
                "submit_id": uuid.uuid4().hex,
                "sheet_id": sheet["id"],
                "task_id": question["task"],
                "option_key": question["options"][0]["key"],
                "skip_reason": "",
                "seconds": 1.0,
                "edit": False,
                "confidence": None,
                "rationale": "",
            }
            for question in sheet["questions"]
        ]

    async def submit(self, answers: list[dict[str, Any]]) -> None:
        """Send answers, and wait for their receipts and what comes next."""
        await self._send({"event": "submit", "value": {"answers": answers, "has": [*self.kept]}})
        await self._until_finished()
        self.milliseconds.append((time.perf_counter() - self.begun) * 1000)
        receipts = self.data["receipts"]
        for answer in answers:
            if receipts.get(answer["submit_id"]) == "stored":
                self.acknowledged.add(answer["submit_id"])

    async def _next(self) -> ForwardMsg:
        return await next_message(self.socket)

    async def _send(self, event: dict[str, Any] | None = None) -> None:
        self.begun = time.perf_counter()
        message = BackMsg()
        run = message.rerun_script
        run.query_string = f"rater={self.rater}"
        run.page_script_hash = self.page_hash
        run.context_info.timezone = "UTC"
        run.widget_states.SetInParent()
        if event is not None:
            widget = run.widget_states.widgets.add()
            widget.id = self.component.replace("$$ID", "$$STREAMLIT_INTERNAL_KEY_$$ID") + "__events"
            widget.json_trigger_value = json.dumps([event])
        await self.socket.send(message.SerializeToString())

    async def _until_finished(self) -> None:
        while True:
            message = await self._next()
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.page_hash = message.new_session.page_script_hash
            elif kind == "delta" and message.delta.new_element.HasField("bidi_component"):
                element = message.delta.new_element.bidi_component
                if element.component_name == "evenhand_panel":
                    self.component = element.id
                    self.data = self._restored(json.loads(element.json))
            elif kind == "script_finished":
                return

    def _restored(self, data: dict[str, Any]) -> dict[str, Any]:
        """With the texts and rubrics that were sent before: what `panel/kept.js` does."""
        self.kept |= data["kept"]
        for sheet in filter(None, (data["sheet"], data["ahead"])):
            sheet["blocks"] = [self.kept[name] for name in sheet["blocks"]]
            for question in sheet["questions"]:
                question |= self.kept[question["rubric"]]
        return data


def address_of(number: int) -> str:
    """A loopback address (Linux) for the page of this number.

    >>> address_of(0), address_of(250)
    ('127.0.1.1', '127.0.2.51')
    """
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


async def connected(port: int, address: str = "127.0.0.1") -> websockets.ClientConnection:
    """The connection over which a page works, from this address."""
    return await websockets.connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        subprotocols=[websockets.Subprotocol("streamlit")],
        origin=websockets.Origin(f"http://127.0.0.1:{port}"),
        max_size=None,
        open_timeout=60,
        local_addr=(address, 0),
    )


async def next_message(socket: websockets.ClientConnection) -> ForwardMsg:
    raw = await asyncio.wait_for(socket.recv(), 60)
    message = ForwardMsg()
    message.ParseFromString(raw if isinstance(raw, bytes) else raw.encode())
    return message


async def work_at_pace(session: Session, pause: float, opening: float, seconds: float) -> None:
    """Open the page at some moment of `opening` seconds; when that is over, label for `seconds`,
    one unit each `pause` seconds on average.
    """
    begin = time.monotonic() + opening
    await asyncio.sleep(random.random() * opening * 0.8)
    await session.open()
    await asyncio.sleep(max(begin - time.monotonic(), 0) + random.random() * pause)
    while time.monotonic() < begin + seconds and await session.answer():
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))
