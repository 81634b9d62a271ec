"""The port of an app that is served on this machine, and a browser that opens its page."""

import socket
import subprocess
import sys
from contextlib import suppress

from evenhand.errors import InputError

DEFAULT_PORT = 8501
_PORTS_TRIED = 100


def app_port(port: int | None) -> int:
    """Return the user's port, or the first free one from 8501. Raises InputError if not valid."""
    if port is not None:
        if not 0 < port < 65536:  # ports below 1024 are valid, but mostly need special rights
            raise InputError(f"--port {port} is not a valid port; use one from 1024 to 65535")
        return port
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        with socket.socket() as probe, suppress(OSError):  # a port in use raises OSError
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", candidate))
            return candidate
    return DEFAULT_PORT  # not free either: the app will print the error


def open_when_up(url: str, port: int) -> None:
    """Start a process that waits up to a minute for the app and then opens a page in a browser."""
    program = (  # 240 attempts, a quarter of a second apart
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
    quiet = subprocess.DEVNULL
    subprocess.Popen([sys.executable, "-c", program, str(port), url], stdout=quiet, stderr=quiet)
