"""The real app in its own process, serving one study on a free port, or several studies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

from evenhand.study import open_study
from evenhand.study.access import record_entry
from evenhand.study.store.store import remarks_table
from harness.ports import free_port

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Served:
    """The app serving one study, which can be killed and restarted on the same port."""

    folder: Path
    home: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    public_host: str = ""
    path: str = ""
    """Where the study's address begins, such as "/first"."""
    python: Path | str = sys.executable
    """The Python in which the app is installed: another one for another version of it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}/"

    def start(self) -> None:
        self.port = self.port or free_port()
        arguments = f"{str(self.folder)!r}, {self.port}, public_host={self.public_host!r}"
        arguments += f", path={self.path!r}" if self.path else ""  # which older versions lack
        starts = f"from evenhand.annotate_app import serve; serve({arguments})"
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.python, "-P", "-c", starts],
                cwd=self.home,  # anywhere but the checkout
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
            )
        _wait_for(lambda: answers(f"{self.url}_stcore/health"), "the server to start")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """kill -9: nothing that the server holds in memory can be written any more."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        """Suspend the process: it accepts connections, and does not answer."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def enter(self, *raters: str) -> None:
        """Begin under these codes, confirming that a new code is the annotator's own."""
        with open_study(self.folder) as study:
            for rater in raters:
                record_entry(study, rater)

    def labels(self, rater: str) -> pd.DataFrame:
        """Return the annotator's rows of the `ratings` table, read from another process."""
        with open_study(self.folder) as study:
            ratings = study.ratings()
        return ratings[ratings["rater_id"] == rater]

    def remarks(self, rater: str) -> pd.DataFrame:
        """Return the annotator's rows of the table of remarks, likewise."""
        with open_study(self.folder) as study:
            remarks = remarks_table(study.store)
        return remarks[remarks["rater_id"] == rater]

    def comes_to_hold(self, rater: str, labels: list[str]) -> bool:
        """Wait until the rater's stored labels are these: a unit can be left while its answer
        is still on its way.
        """
        return holds(lambda: self.labels(rater)["label"].tolist() == labels)


@dataclass
class ServedTogether:
    """`evenhand annotate STUDY STUDY ...`, on a port of its own."""

    folders: list[Path]
    home: Path
    port: int = field(default_factory=free_port)
    environment: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def log(self) -> str:
        return (self.home / "together.log").read_text("utf-8")

    def study(self, name: str) -> Served:
        """Return one of the studies at its annotators' address; they start and stop together."""
        folders = {each.name: each for each in self.folders}
        folder = folders.get(name, self.folders[0].parent / name)
        return Served(folder, self.home, self.port, path=f"/{name}")

    def start(self) -> None:
        words = ["annotate", *map(str, self.folders), "--port", str(self.port), *self.options]
        with (self.home / "together.log").open("ab") as log:
            self.process = psutil.Popen(
                [sys.executable, "-P", "-m", "evenhand", *words],
                cwd=self.home,
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
            )
        _wait_for(self.is_well, "all studies to be served")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def is_well(self) -> bool:
        return answers(f"{self.url}health")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


def holds(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Return True if a condition becomes true within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def answers(url: str) -> bool:
    """Return True if a server answers at this address."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as reply:  # noqa: S310
        return bool(reply.status == 200)
    return False


def _wait_for(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    if not holds(condition, seconds):
        raise TimeoutError(f"waited {seconds} s for {what}")
