"""Several studies behind one address: a router, and one process of the app for each study.

The router opens a socket for each in a folder of its own, which the process inherits: no port can
be taken by another, and who asks while a process is started again waits instead of being refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import signal
import socket
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable
from pathlib import Path

from evenhand.annotate_app.health import telling_systemd
from evenhand.annotate_app.neighbours import VARIABLE, add_study, names_in
from evenhand.annotate_app.router import Router, status_of
from evenhand.annotate_app.serve import app_environment, command
from evenhand.errors import InputError
from evenhand.study.settings.study_toml import read_config
from evenhand.texts import written

_LOOK_SECONDS = 1.0
_FIRST_WAIT, _LONGEST_WAIT, _SETTLED_SECONDS = 0.5, 30.0, 60.0
"""Seconds before a process that ended is started again: twice as many each time that it ends soon.
"""
_HEALTH_EVERY, _MOST_MISSED, _MOST_AT_START = 10.0, 2, 12
_STOP_SECONDS = 10.0
_OPEN_FILES = 4_096

_log = logging.getLogger(__name__)


def serve_several(folders: Iterable[Path], port: int, public_host: str = "") -> None:
    """Serve each study at `/NAME/` of this port, by the name of its folder, until SIGTERM or
    SIGINT. Raises InputError where the port is taken.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    with tempfile.TemporaryDirectory(prefix="evenhand-") as home:
        held = os.open(home, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_SH)  # or systemd-tmpfiles takes old sockets and links away
        place = Path(home) / "studies"
        place.mkdir()
        for folder in folders:
            add_study(place, folder)
        asyncio.run(_Studies(place, port, public_host).serve())
        os.close(held)


class _Studies:
    """The studies that are linked in `place`, each with its socket and its process."""

    def __init__(self, place: Path, port: int, public_host: str) -> None:
        self._place, self._port, self._public_host = place, port, public_host
        self._sockets: dict[str, Path] = {}
        self._proxies = {"127.0.0.1", "::1"}
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        over = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        host = os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1")
        router = Router(self._sockets, self._proxies)
        try:
            server = await asyncio.start_server(router.serve, host, self._port)
        except OSError:
            raise InputError(written("several.port_taken", port=self._port)) from None
        async with telling_systemd(None):
            while not over.is_set():
                for name in names_in(self._place):
                    try:
                        if name not in self._sockets:
                            self._take_up(name)
                    except OSError as error:
                        _log.error("%s cannot be served yet: %s", name, error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), _LOOK_SECONDS)
        server.close()
        for study in self._running:
            study.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _take_up(self, name: str) -> None:
        path = self._place.parent / str(len(self._sockets))  # short: some systems take 100 letters
        listening = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen()
        self._sockets[name] = path
        with contextlib.suppress(InputError):
            self._proxies |= {*read_config(self._place / name).session.trusted_proxies}
        self._running.add(asyncio.create_task(self._keep_running(name, listening)))

    async def _keep_running(self, name: str, listening: socket.socket) -> None:
        folder = (self._place / name).resolve()
        words = command(folder, self._port, public_host=self._public_host, path=f"/{name}")
        words.append(f"--socket={listening.fileno()}")
        environment = app_environment() | {VARIABLE: str(self._place)}
        environment.pop("NOTIFY_SOCKET", None)  # the router tells systemd of itself
        wait = _FIRST_WAIT
        while True:
            begun = time.monotonic()
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=PIPE,
                    pass_fds=[listening.fileno()],
                    env=environment,
                    start_new_session=True,  # Ctrl+C is for the router, which ends them
                )
                try:
                    await self._until_it_ends(process, name)
                finally:
                    await _end(process)
                _log.error("%s has ended (%s), and is started again", name, process.returncode)
            except OSError as error:  # the machine has no room for a process now
                _log.error("%s cannot be started (%s), and is tried again", name, error)
            if time.monotonic() - begun > _SETTLED_SECONDS:
                wait = _FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _until_it_ends(self, process: Process, name: str) -> None:
        """Wait for the end of a process, or until it hangs: it answers no more, or never did."""
        most, missed = _MOST_AT_START, 0
        while missed < most:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _HEALTH_EVERY)
                return
            if await status_of(self._sockets[name], f"/{name}/_stcore/health"):
                most, missed = _MOST_MISSED, 0
            else:
                missed += 1


async def _end(process: Process) -> None:
    """Ask a process to end, and make it end."""
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
