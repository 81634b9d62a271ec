"""Loopback ports for servers that must be told their port."""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator

_WIDTH = 4_000


def free_port() -> int:
    """Return a port that stays free until the server listens, and while it restarts.

    It lies below those that the system deals out by itself, and every lane of a test run (`-n 2`)
    has ports of its own.
    """
    for port in _ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if not _taken(probe, port):
                return port
    raise AssertionError("unreachable: the ports come round again")


def _taken(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return True
    return False


def _own() -> Iterator[int]:
    """Yield the lane's ports in turn from a random start, so that two runs rarely collide."""
    lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    first, begin = 12_000 + lane * _WIDTH, random.SystemRandom().randrange(_WIDTH)
    return itertools.cycle(first + (begin + n) % _WIDTH for n in range(_WIDTH))


_ports = _own()
