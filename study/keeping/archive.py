"""A whole study in one file: a zip of its folder, and a list of what it must hold.

An archive may come from anyone. Reading one writes nothing outside the folder named, follows no
link, and takes no byte more than the list says.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from shutil import disk_usage
from typing import IO

from pydantic import Field, ValidationError

from evenhand.errors import InputError
from evenhand.study.settings.sections import Section
from evenhand.study.tables.private import FILE, new_folder

LIST = "backup.json"
STORE = "study.db"
"""The store's name in a backup, whatever it was kept in; so no database's password gets there."""
FORMAT = 1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MOST_FILES = 10_000
_MOST_LIST_BYTES = 4_000_000
_PIECE = 1 << 20


class Entry(Section):
    """A file of the archive."""

    bytes: int = Field(ge=0)
    sha256: str


class Listing(Section):
    """The contents of an archive: its files, and the number of rows of each table of the store."""

    format: int
    evenhand: str
    created_at: str
    files: dict[str, Entry]
    tables: dict[str, int]


def write_archive(file: IO[bytes], entries: dict[str, Path | bytes], listing: Listing) -> None:
    """The entries and their list, by name: files, or contents."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(LIST, listing.model_dump_json(indent=1))
        for name, content in entries.items():
            if isinstance(content, Path):
                archive.write(content, name)
            else:
                archive.writestr(name, content)


def entry_of(content: Path | bytes) -> Entry:
    """Size and checksum."""
    if isinstance(content, bytes):
        return Entry(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    with content.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return Entry(bytes=file.tell(), sha256=digest.hexdigest())


def check_archive(path: Path) -> Listing:
    """Read every byte and compare it with the list. Raises InputError where one differs."""
    with _opened(path) as archive:
        listing = _listing(archive)
        for name, entry in listing.files.items():
            _read(archive, name, entry, lambda _: None)
    return listing


def unpack(path: Path, folder: Path) -> Listing:
    """Write an archive's files into a folder, for the owner alone. Raises InputError where it is
    not a backup, is damaged, or holds files that a backup does not have.
    """
    with _opened(path) as archive:
        listing = _listing(archive)
        wanted = sum(entry.bytes for entry in listing.files.values())
        if wanted > disk_usage(folder).free:
            raise InputError(f"the backup needs {wanted:,} bytes; the disk has fewer free")
        for name, entry in listing.files.items():
            target = folder / name
            new_folder(target.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(target, flags, FILE), "wb") as file:
                _read(archive, name, entry, file.write)
                file.flush()
                os.fsync(file.fileno())
    return listing


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise InputError(f"{path} is no backup of evenhand, or only a part of one") from None
    with archive:
        yield archive


def _listing(archive: zipfile.ZipFile) -> Listing:
    """The list, once it is known to name exactly the archive's files and nothing dangerous."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if LIST not in names:
        raise InputError(f"{archive.filename} is no backup of evenhand: it has no {LIST}")
    if archive.getinfo(LIST).file_size > _MOST_LIST_BYTES or len(names) > _MOST_FILES:
        raise InputError(f"{archive.filename} is larger than any backup; it is not read")
    try:
        listing = Listing.model_validate_json(archive.read(LIST))
    except (ValidationError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):
        raise InputError(
            f"{archive.filename} is damaged, or a newer evenhand made it: its {LIST} is not read"
        ) from None
    if listing.format != FORMAT:
        raise InputError(f"a newer evenhand made {archive.filename}; update this one")
    if sorted(names) != sorted([LIST, *listing.files]):
        raise InputError(f"{archive.filename} holds other files than its list says")
    for member in members:
        _check_member(member, listing)
    return listing


def _check_member(member: zipfile.ZipInfo, listing: Listing) -> None:
    name = member.filename
    path, mode = PurePosixPath(name), member.external_attr >> 16
    is_file = not member.is_dir() and stat.S_IFMT(mode) in (0, stat.S_IFREG)
    is_inside = not path.is_absolute() and ".." not in path.parts and str(path) == name
    is_plain = name.isprintable() and "\\" not in name and member.compress_type in _PACKED
    # A log next to the store would be played into it when it is opened.
    if not (is_file and is_inside and is_plain) or name.startswith(f"{STORE}-"):
        raise InputError(f"the archive holds {name!r}, which no backup does; refused")
    entry = listing.files.get(member.filename)
    if entry is not None and entry.bytes != member.file_size:
        raise InputError(f"{member.filename} has another size in the archive than in its list")


def _read(
    archive: zipfile.ZipFile, name: str, entry: Entry, take: Callable[[bytes], object]
) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(name) as file:
            while (piece := file.read(_PIECE)) and size <= entry.bytes:
                size += len(piece)
                digest.update(piece)
                take(piece)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):
        raise InputError(f"the backup is damaged: {name} cannot be read") from None
    if (size, digest.hexdigest()) != (entry.bytes, entry.sha256):
        raise InputError(f"the backup is damaged: {name} is not as it was when it was made")
