"""Folders to build in: those whose process was killed are removed by the next one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path

from evenhand.study.tables.private import new_folder

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ModuleNotFoundError:  # Windows: leftovers stay
    LOCK_EX = LOCK_NB = 0

    def flock(_descriptor: int, _how: int) -> None:
        raise BlockingIOError


@contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a folder in `parent` whose name begins with `prefix`; it is removed at the end, unless
    it was renamed.

    It is locked while its process lives, however that ends: folders of the same prefix without a
    lock are leftovers of processes that were killed, and are removed first.
    """
    for leftover in parent.glob(f"{escape(prefix)}{'[0-9a-f]' * 8}"):
        _remove_unlocked(leftover)
    folder, lock = _locked(parent, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


class _Lock:
    """A folder that is locked until this is closed."""

    def __init__(self, folder: Path, how: int) -> None:
        self._descriptor = os.open(folder, os.O_RDONLY) if LOCK_EX else None
        if self._descriptor is not None:
            try:
                flock(self._descriptor, how)
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def _locked(parent: Path, prefix: str) -> tuple[Path, _Lock]:
    while True:
        folder = parent / f"{prefix}{secrets.token_hex(4)}"
        new_folder(folder)
        with suppress(FileNotFoundError):
            lock = _Lock(folder, LOCK_EX)
            if folder.exists():  # not removed as a leftover between the two lines above
                return folder, lock
            lock.close()


def _remove_unlocked(folder: Path) -> None:
    if not LOCK_EX or folder.is_symlink() or not folder.is_dir():
        return
    with suppress(OSError), closing(_Lock(folder, LOCK_EX | LOCK_NB)):
        shutil.rmtree(folder, ignore_errors=True)
