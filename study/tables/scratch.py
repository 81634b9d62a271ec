"""Folders to build in: those whose process was killed are removed by the next one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path

from evenhand.study.tables.private import new_folder

try:
    import fcntl

    HAS_LOCKS = True
except ModuleNotFoundError:  # Windows
    HAS_LOCKS = False


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a folder in `parent` whose name begins with `prefix`, and remove it at the end.

    It is locked until its process ends, however that ends: folders of the same prefix without a
    lock are leftovers of processes that were killed, and are removed first. Windows has no such
    locks, and leftovers stay there.
    """
    for leftover in parent.glob(f"{escape(prefix)}{'[0-9a-f]' * 8}"):
        if leftover.is_dir() and not leftover.is_symlink():
            with suppress(OSError), _locked(leftover, wait=False):
                shutil.rmtree(leftover, ignore_errors=True)
    with ExitStack() as lock:
        folder = _new(parent, prefix, lock)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _new(parent: Path, prefix: str, lock: ExitStack) -> Path:
    while True:
        folder = parent / f"{prefix}{secrets.token_hex(4)}"
        new_folder(folder)
        with suppress(FileNotFoundError):
            lock.enter_context(_locked(folder, wait=True))
            if folder.exists():  # no other process took it for a leftover between the two lines
                return folder


@contextmanager
def _locked(folder: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder. Raises OSError where it cannot be had."""
    if not HAS_LOCKS:
        if not wait:
            raise OSError("no locks")
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
