"""`python -m evenhand.annotate_app.alive PORT`: the health check of a container, where nothing else
restarts a process that hangs.

It exits with 0 if the app can work, with 1 if it cannot or is not running. An app that accepts the
connection but does not answer, twice, is killed: `restart: always` then brings it back. Before
several studies that is their router, which looks after them itself.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

_PATIENCE = 8.0
"""More than `/health` takes where the store says nothing."""


def main(port: int, patience: float = _PATIENCE) -> int:
    """The exit status for the app on this port."""
    for _ in range(2):
        try:
            address = f"http://127.0.0.1:{port}{_path(_serving(port))}/health"
            with urllib.request.urlopen(address, timeout=patience):
                return 0
        except urllib.error.HTTPError:
            return 1  # it answers that it cannot work
        except (TimeoutError, urllib.error.URLError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            if not isinstance(reason, TimeoutError):
                return 1
    found = _serving(port)
    routers = [process for process, words in found.items() if _is_router(words)]
    for process in routers or found:
        os.kill(process, signal.SIGKILL)
    return 1


def _path(serving: dict[int, list[bytes]]) -> str:
    """The path at which one study is served alone; "" where there is none, or a router."""
    option = b"--path="
    if any(map(_is_router, serving.values())):
        return ""
    paths = [each for words in serving.values() for each in words if each.startswith(option)]
    return paths[0].removeprefix(option).decode() if paths else ""


def _is_router(words: list[bytes]) -> bool:
    return b"annotate" in words


def _serving(port: int) -> dict[int, list[bytes]]:
    """The processes on this port and their commands: the router's, and those that serve a study
    (see `serve.command`).
    """
    asked = str(port).encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_app = any(word.endswith(b"/annotate_app/app.py") for word in words)
        is_evenhand = any(word.endswith(b"evenhand") for word in words) and _is_router(words)
        if (is_app and b"--port=" + asked in words) or (
            is_evenhand and {asked, b"--port=" + asked} & {*words}
        ):
            found[int(folder.name)] = words
    return found


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
