"""Writing files so that a crash leaves the old one or the new one, never half of either."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from evenhand.errors import InputError
from evenhand.study.tables.private import FILE

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def check_folder(path: Path) -> None:
    """Raise InputError where a file is in the place of the folder or of one of its parents."""
    for place in (path, *path.parents):
        if place.exists():
            if not place.is_dir():
                raise InputError(f"{place} is a file; name a folder")
            return


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file in one step, on disk when this returns; only the owner can read it."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():  # a file in the place of a device would stay there
        raise InputError(f"{path} is a device; name a file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, _NEW, FILE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
