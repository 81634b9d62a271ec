"""The connections of open pages: unfinished messages are bounded before they are read, for each
connection, for each address and for the whole app, and a page that has gone silent is disconnected.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from evenhand.annotate_app.where import address_of, as_sent

MOST_BYTES = 1_000_000
"""Bytes of one message at most: `maxWidgetStateSize` in Streamlit's settings."""
_MOST_PIECES = 256
_MOST_OF_AN_ADDRESS = 8_000_000
_MOST_IN_ALL = 32_000_000
_PATIENCE = 60.0
"""Seconds in which a message is to be whole, and after which a browser that is silent is gone."""
UVICORN = {
    "ws_max_size": MOST_BYTES,
    # Shorter than nginx waits for an answer: a process that hangs is left soon, one at work is not.
    "ws_ping_interval": 2,
    # An annotator who reads for a minute sends over the connection that is there.
    "timeout_keep_alive": 75,
    "ws_ping_timeout": None,  # a slow line may take longer to answer: see `_PATIENCE`
}


class Line(WebSocketsSansIOProtocol):
    """The connection of one page."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._address = ""
        self._pieces = 0
        self._heard = self._begun = self.loop.time()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self._address = address_of(as_sent(self.scope))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        super().data_received(data)
        unfinished = len(self.conn.reader.buffer) + self._pieces
        if not unfinished or self.transport.is_closing():
            _held.pop(self, None)
            return
        if self not in _held:
            self._begun = self._heard
        _held[self] = unfinished
        if len(self.frames) > _MOST_PIECES:
            self._end()
        _keep_within(
            _MOST_OF_AN_ADDRESS, [line for line in _held if line._address == self._address]
        )
        _keep_within(_MOST_IN_ALL, [*_held])

    def connection_lost(self, exc: Exception | None) -> None:
        _held.pop(self, None)
        super().connection_lost(exc)

    def handle_text(self, event: Frame) -> None:
        self._pieces = len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._pieces = len(event.data)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._pieces += len(event.data)
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        self._pieces = 0
        super().send_receive_event_to_app()

    def send_keepalive_ping(self) -> None:
        now = self.loop.time()
        if now - self._heard > _PATIENCE or (self in _held and now - self._begun > _PATIENCE):
            self._end()
        else:
            super().send_keepalive_ping()

    def _end(self) -> None:
        """Hang up, and forget what was sent."""
        _held.pop(self, None)
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(CloseCode.MESSAGE_TOO_BIG)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.frames = []
        self.transport.close()


_held: dict[Line, int] = {}
"""The bytes of messages that are not whole yet."""


def _keep_within(most: int, lines: list[Line]) -> None:
    """Disconnect pages until the rest hold no more than `most` bytes: those that hold most go
    first, so that no page at work suffers for another.
    """
    held = sum(_held.get(line, 0) for line in lines)
    for line in sorted(lines, key=lambda each: _held.get(each, 0), reverse=True):
        if held <= most:
            return
        held -= _held.get(line, 0)
        line._end()
