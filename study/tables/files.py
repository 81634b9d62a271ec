"""Files and folders: readable by their owner alone, written whole or not at all, removed after use.

Windows has no modes: files there are as private as the folder they are in.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Set
from itertools import chain
from pathlib import Path

from evenhand.errors import InputError

FILE, FOLDER = 0o600, 0o700
HAS_MODES = hasattr(os, "geteuid")


def new_file(path: Path) -> None:
    """Create an empty file, if there is none yet: programs that open it later keep its mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))


def new_folder(path: Path) -> None:
    """A folder with those above it, if there is none yet; one that is there stays as it is."""
    path.mkdir(mode=FOLDER, parents=True, exist_ok=True)


def tighten(folder: Path) -> int:
    """Take everyone else's rights from a folder and all in it that is ours; return from how many.
    For root the folder's owner counts as well. `folder` itself may be a link; links in it are not
    followed.
    """
    folder = folder.resolve()
    if not HAS_MODES:
        return 0
    ours = {os.geteuid()} | ({folder.stat().st_uid} if is_root() else set())
    inside = (Path(place, name) for place, *names in os.walk(folder) for name in chain(*names))
    return sum(_closed(entry, ours) for entry in (folder, *inside))


def give_to_owner_of(folder: Path, *files: Path) -> None:
    """Give files that root copied to the folder's owner; other users cannot give any."""
    if not is_root():
        return
    owner = folder.stat()
    for file in files:
        os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def is_root() -> bool:
    """Return True for a process that may do anything to anybody's files."""
    return HAS_MODES and os.geteuid() == 0


def process_owner() -> str:
    """Return the operating system's name of the user whose process this is."""
    return user_name(os.getuid()) if HAS_MODES else os.getlogin()


def user_name(number: int) -> str:
    """Return the operating system's name of a user; the number where it has no name."""
    try:
        import pwd  # not on every platform

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _closed(entry: Path, ours: Set[int]) -> bool:
    try:
        status = entry.lstat()
        kept = stat.S_IMODE(status.st_mode) & FOLDER
        is_ours = status.st_uid in ours and not stat.S_ISLNK(status.st_mode)
        if not is_ours or stat.S_IMODE(status.st_mode) == kept:
            return False
        entry.chmod(kept)
    except OSError:  # gone meanwhile, as a temporary file is; or nothing can be changed there
        return False
    return True


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
