"""`python launch.py run app.py ... -- STUDY_DIR`: Streamlit's own command, with our bounds on
what it receives and what it writes to the log.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Not installed, but run from a checkout. A folder that is called evenhand by chance has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from streamlit.web import cli
from streamlit.web.server.starlette import starlette_server

from evenhand.annotate_app.log_lines import keep_log_short
from evenhand.annotate_app.serve import SOCKET_VARIABLE
from evenhand.annotate_app.where import MOST_BYTES

_STOP_SECONDS = 5.0
_UVICORN = {
    "ws": "websockets-sansio",
    "ws_max_size": MOST_BYTES,
    # Shorter than nginx waits for an answer: a process that hangs is left soon, one at work is not.
    "ws_ping_interval": 2,
    "ws_ping_timeout": 60,  # a slow line may take long to answer
    # An annotator who reads for a minute sends over the connection that is there.
    "timeout_keep_alive": 75,
}
_usual = starlette_server._get_uvicorn_config_kwargs
_usual_socket = starlette_server._bind_server_socket


def _bounded() -> dict[str, Any]:
    return _usual() | _UVICORN


def _without_delay(
    server_address: str, bind_address: str, port: int, backlog: int
) -> tuple[socket.socket, str]:
    """Bind as usual, but have an answer's last piece sent at once: the system would keep it until
    the piece before has arrived (RFC 896), which takes a way there and back. asyncio turns this off
    for the sockets that it makes itself.
    """
    listening, address = _usual_socket(server_address, bind_address, port, backlog)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening, address


def _inherit_socket(number: int) -> None:
    """Listen on the socket of the router that started this process, and end with it."""
    listening = socket.socket(fileno=number)
    listening.setblocking(False)
    starlette_server._bind_server_socket = lambda *_: (listening, "the router's socket")
    threading.Thread(target=_end_with_router, daemon=True).start()


def _end_with_router() -> None:
    while os.read(0, 1):  # the router writes nothing; its end of the pipe closes as it ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    starlette_server._get_uvicorn_config_kwargs = _bounded
    starlette_server._bind_server_socket = _without_delay
    if number := os.environ.pop(SOCKET_VARIABLE, ""):
        _inherit_socket(int(number))
    keep_log_short()
    cli.main()
