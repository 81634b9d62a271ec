"""A page that is served on this machine: its port, and the browser that shows it."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress

from evenhand.errors import InputError

USUAL_PORT = 8501


def app_port(port: int | None) -> int:
    """The port asked for, or 8501, or the next one that is free. Raises InputError for one that
    there cannot be.
    """
    if port is not None:
        if not 0 < port < 65536:
            raise InputError(f"--port {port} is not a valid port; use one from 1024 to 65535")
        return port
    for free in range(USUAL_PORT, USUAL_PORT + 100):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", free))
            return free
    return USUAL_PORT


def open_when_up(url: str, port: int) -> None:
    """Open a page in the user's browser once the app answers on its port; another process waits,
    since `serve` gives up this one.
    """
    program = (
        "import socket, sys, time, webbrowser\n"
        "for _ in range(240):\n"
        "    try:\n"
        "        socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1).close()\n"
        "    except OSError:\n"
        "        time.sleep(0.25)\n"
        "    else:\n"
        "        webbrowser.open(sys.argv[2])\n"
        "        break\n"
    )
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        [sys.executable, "-c", program, str(port), url], stdout=nowhere, stderr=nowhere
    )
