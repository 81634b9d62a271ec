"""The health check of a container: `python -m evenhand.annotate_app.alive PORT`.

Exits with 0 if the app can work, with 1 if it cannot or is not running. An app that accepts the
connection but does not answer, twice, is killed: `restart: always` then starts it again, which
nothing else in a container does for a process that hangs.
"""

import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main(port: int, patience: float = 8.0) -> int:
    """Return the exit status; kill the app if `/health` takes over `patience` seconds, twice."""
    for _ in range(2):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=patience):
                return 0
        except urllib.error.HTTPError:
            return 1  # it answers that it cannot work
        except (TimeoutError, urllib.error.URLError, ConnectionError) as error:
            if not isinstance(getattr(error, "reason", error), TimeoutError):  # a URLError's cause
                return 1
    for process in _serving_processes(port):
        os.kill(process, signal.SIGKILL)
    return 1


def _serving_processes(port: int) -> list[int]:
    """Return the ids of processes that serve on this port (see `evenhand.annotate_app.command`)."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # the process has ended
            continue
        is_app = any(word.endswith(b"/annotate_app/app.py") for word in words)
        if is_app and f"--port={port}".encode() in words:
            processes.append(int(folder.name))
    return processes


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
