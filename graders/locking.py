"""One runner per study: two at once would ask, and pay for, the same questions twice."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenhand.errors import InputError
from evenhand.study.tables.private import FILE

_FILE = ".grading.lock"


@contextmanager
def only_runner(folder: Path) -> Iterator[None]:
    """Hold the study's lock. The system releases it when the process ends, however it ends.

    Raises InputError at once where another runner holds it, whichever graders it asks.
    """
    descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, FILE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise InputError(
                f"another run (process {holder}) is collecting for this study; wait until it ends, "
                "or stop it: what it has collected is kept"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
