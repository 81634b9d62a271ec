"""Files and folders that only their owner can read, and files that are written whole or not at all.

Windows has no modes: files there are as private as the folder they are in.
"""

import os
import secrets
import stat
from collections.abc import Set
from pathlib import Path

from evenhand.errors import InputError

FILE, FOLDER = 0o600, 0o700  # modes of files and folders: only the owner can read and write them
HAS_MODES = hasattr(os, "geteuid")  # False on Windows


def new_file(path: Path) -> None:
    """Create an empty file, if there is none yet: programs that open it later keep its mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))


def new_folder(path: Path) -> None:
    """Create a folder and those above it, if there is none yet."""
    path.mkdir(mode=FOLDER, parents=True, exist_ok=True)


def tighten(folder: Path) -> int:
    """Remove other users' rights to a folder and to its files that are the user's or, for root, the
    folder owner's. Return how many changed. `folder` may be a link; links in it are not followed.
    """
    folder = folder.resolve()
    if not HAS_MODES:
        return 0
    owners = {os.geteuid()} | ({folder.stat().st_uid} if is_root() else set())
    walk = os.walk(folder)
    entries = (Path(parent, name) for parent, inner, files in walk for name in (*inner, *files))
    return sum(_make_private(entry, owners) for entry in (folder, *entries))


def give_to_owner_of(folder: Path, *files: Path) -> None:
    """Give files that root copied to the folder's owner; other users cannot give any."""
    if not is_root():
        return
    owner = folder.stat()
    for file in files:
        os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def is_root() -> bool:
    """Return True if the process runs as root, which may change all files."""
    return HAS_MODES and os.geteuid() == 0


def process_owner() -> str:
    """Return the operating system's name of the user who runs the process."""
    return user_name(os.getuid()) if HAS_MODES else os.getlogin()


def user_name(number: int) -> str:
    """Return the operating system's name of a user; the number where it has no name."""
    try:
        import pwd  # not on every platform

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _make_private(entry: Path, owners: Set[int]) -> bool:
    """Remove other users' rights to a file of one of these owners; return True if it had any."""
    try:
        status = entry.lstat()
        mode = stat.S_IMODE(status.st_mode) & FOLDER  # the owner's own rights alone
        may_change = status.st_uid in owners and not stat.S_ISLNK(status.st_mode)
        if not may_change or stat.S_IMODE(status.st_mode) == mode:
            return False
        entry.chmod(mode)
    except OSError:  # deleted meanwhile, as a temporary file is, or on a read-only file system
        return False
    return True


def check_folder(path: Path) -> None:
    """Raise InputError where the folder, or one of its parents, is a file."""
    for folder in (path, *path.parents):
        if folder.exists():
            if not folder.is_dir():
                raise InputError(f"{folder} is a file; name a folder")
            return


def atomic_write(path: Path, content: bytes) -> None:
    """Replace the file in one step; it is on disk on return, and only the owner can read it."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():  # such as /dev/null: not to be replaced
        raise InputError(f"{path} is a device; name a file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(temporary, flags, FILE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
