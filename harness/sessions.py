"""Annotators without a browser: they open the page and send messages as its panel does."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx2
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

GONE = (OSError, TimeoutError, httpx2.HTTPError, websockets.WebSocketException)
"""What is raised where the server is away."""


@dataclass
class Session:
    """An open page; `acknowledged` are the submit ids that the server confirmed as stored.

    `address` is the loopback address that it comes from: of one address only so many pages may be
    open.
    """

    port: int
    rater: str
    address: str = "127.0.0.1"
    component: str = ""
    ticket: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    milliseconds: list[float] = field(default_factory=list)
    begun: float = 0.0

    async def open(self) -> None:
        """Have Streamlit draw the page, which stays open."""
        cookie = f"evenhand_session={secrets.token_urlsafe(32)}"  # what else a page would give it
        self.client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Cookie": cookie},
            transport=httpx2.AsyncHTTPTransport(local_address=self.address, verify=False),
            timeout=60,
        )
        self.socket = await connected(self.port, self.address, cookie)
        self.begun = time.perf_counter()
        await self.draw(self.asks())

    async def close(self) -> None:
        await self.client.aclose()
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
        said = await self.say({"answers": answers, "has": [*self.kept]})
        said.raise_for_status()
        self.milliseconds.append((time.perf_counter() - self.begun) * 1000)
        self.take(said.json())
        receipts = self.data["receipts"]
        for answer in answers:
            if receipts.get(answer["submit_id"]) == "stored":
                self.acknowledged.add(answer["submit_id"])

    async def say(self, said: Any) -> httpx2.Response:
        """Return the server's answer to a message of the panel's."""
        self.begun = time.perf_counter()
        headers = {"X-Evenhand-Ticket": self.ticket, "Content-Type": "application/json"}
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        return await self.client.post("/evenhand/answers", content=content, headers=headers)

    def asks(self) -> BackMsg:
        """Return the message with which the page asks to be drawn."""
        message = BackMsg()
        message.rerun_script.query_string = f"rater={self.rater}"
        message.rerun_script.context_info.timezone = "UTC"
        message.rerun_script.widget_states.SetInParent()
        return message

    async def draw(self, asked: BackMsg) -> None:
        """Have the page drawn, and wait until it is."""
        await self.socket.send(asked.SerializeToString())
        while (heard := await self._next()).WhichOneof("type") != "script_finished":
            element = heard.delta.new_element.bidi_component
            if element.component_name == "evenhand_panel":
                self.component, drawn = element.id, json.loads(element.json)
                self.ticket = drawn["ticket"]
                self.take(drawn["panel"])

    async def _next(self) -> ForwardMsg:
        return await next_message(self.socket)

    def take(self, data: dict[str, Any]) -> None:
        """Keep what is sent once, and put it where it is named: what `panel/kept.js` does."""
        self.kept |= data["kept"]
        for sheet in filter(None, (data["sheet"], data["ahead"])):
            sheet["blocks"] = [self.kept[name] for name in sheet["blocks"]]
            for question in sheet["questions"]:
                question |= self.kept[question["rubric"]]
        self.data = data


def address_of(number: int) -> str:
    """Return a loopback address (Linux) for the page of this number.

    >>> address_of(0), address_of(250)
    ('127.0.1.1', '127.0.2.51')
    """
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


async def connected(
    port: int, address: str = "127.0.0.1", cookies: str = ""
) -> websockets.ClientConnection:
    """Return the WebSocket connection over which Streamlit draws a page, from this address."""
    return await websockets.connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        subprotocols=[websockets.Subprotocol("streamlit")],
        origin=websockets.Origin(f"http://127.0.0.1:{port}"),
        additional_headers={"Cookie": cookies} if cookies else None,
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
