"""Backups: a study in one file, and a study from such a file."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from shutil import disk_usage
from typing import IO

import sqlalchemy as sa
from pydantic import Field, ValidationError

from evenhand.errors import InputError
from evenhand.study.creation import built_whole, new_folder
from evenhand.study.keeping.copying import Contents, read_snapshot, take_snapshot
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import FILE_NAME, changed_text, read_config, without_hosts
from evenhand.study.store.database import SILENT, Database, conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.meta import note_moment
from evenhand.study.store.schema import meta
from evenhand.study.tables.files import FILE, atomic_write
from evenhand.study.tables.files import new_folder as private_folder
from evenhand.study.workspace import open_study, study_rubrics
from evenhand.texts import written

BACKUPS = "backups"
"""A folder within the study's that goes into no backup."""
_DATABASE = b"SQLite format 3\0"
_LOGS = ("-wal", "-shm", "-journal")  # next to the store, or to a former one that it was moved from


def backup_study(folder: Path, file: Path) -> Contents:
    """Write a study to a new file, while people label, and verify it. Return its contents.

    Raises InputError where the file is there already, or the store is damaged.
    """
    with closing(_store_of(folder)) as store:
        contents = backup_of(store, folder, file)
        note_moment(store, "backup")
        return contents


def keep_backups(folder: Path, to: Path, keep: int, *, verify: bool = False) -> Kept:
    """Write a backup to a folder under the study's name and the time, and remove the study's oldest
    there but `keep`. With `verify` it is restored on trial first, and counts only if that works.

    Raises InputError as `backup_study` does, where `to` cannot be written, and where `keep` is less
    than 1; then all older backups stay.
    """
    if keep < 1:
        raise InputError("--keep must be 1 or more")
    if not to.is_dir():
        raise InputError(f"there is no folder {to}; make it first")
    with closing(_store_of(folder)) as store:
        begin = f"{folder.resolve().name}-{_mark(store)}"
        name = f"{begin}-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip"
        contents = backup_of(store, folder, to / name)
        if verify:
            _try(to / name, contents)
        note_moment(store, "backup")
    own_name = re.compile(re.escape(begin) + r"-\d{8}-\d{6}\.zip")
    own = sorted(each for each in to.iterdir() if own_name.fullmatch(each.name))
    for old in own[:-keep]:
        old.unlink()
    return Kept(to / name, contents, len(own[-keep:]))


@dataclass(frozen=True)
class Kept:
    """A backup that was made, its contents, and how many backups of the study there are now."""

    file: Path
    contents: Contents
    number: int


def _store_of(folder: Path) -> Database:
    """The study's store, from which something has to be heard every now and then."""
    return Database.connect(read_config(folder).store, folder, silent=SILENT)


def _mark(store: Database) -> str:
    """Return the mark that tells a study's backups from those of another folder of the same name,
    which are never removed. It is made once.
    """
    query = sa.select(meta.c.value).where(meta.c.key == "mark")
    with store.write() as connection:
        insert = conflict_free_insert(connection, meta).on_conflict_do_nothing()
        connection.execute(insert.values(key="mark", value=secrets.token_hex(4)))
        return str(connection.execute(query).scalar_one())


def _try(file: Path, contents: Contents) -> None:
    """Restore a backup on trial. Raises InputError, and removes the backup, where the restored
    study does not open or does not hold the same.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as trial:
        folder = Path(trial) / "trial"
        try:
            restored = restore_study(file, folder)
            with open_study(folder):
                pass
            if restored != contents:
                raise InputError("it holds other rows")
        except InputError as error:
            file.unlink()
            raise InputError(f"the backup could not be restored and is removed: {error}") from None


def backup_of(store: Database, folder: Path, file: Path) -> Contents:
    """Write a study whose store is open to a new file, and verify it. Return its contents."""
    from evenhand import __version__

    file = _new_file(folder, file)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as place:
        snapshot, whole = Path(place) / STORE, Path(place) / file.name
        files = _files(folder)
        take_snapshot(store, snapshot)
        if _settings(_files(folder)) != _settings(files):  # they must fit the store
            raise InputError("the study's settings were changed meanwhile; run this again")
        contents, tables = read_snapshot(snapshot)
        entries: dict[str, Path | bytes] = {**files, STORE: snapshot}
        listing = Listing(
            format=FORMAT,
            evenhand=__version__,
            created_at=utc_now(),
            files={name: entry_of(content) for name, content in entries.items()},
            tables=tables,
        )
        with os.fdopen(os.open(whole, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE), "w+b") as out:
            write_archive(out, entries, listing)
            out.flush()
            os.fsync(out.fileno())
        check_archive(whole)
        os.replace(whole, file)
    return contents


def restore_study(
    file: Path, folder: Path, on_hosts: Callable[[list[str]], None] = lambda names: None
) -> Contents:
    """Make a study's folder from a backup; its store is SQLite. Return its contents. A backup may
    come from anybody, so sections that name hosts become comments; `on_hosts` is told which.

    Raises InputError, with nothing written, where the folder exists, or the file is damaged or not
    a backup.
    """
    folder = new_folder(folder)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    with built_whole(folder) as building:
        listing = unpack(file, building)
        if not (building / STORE).is_file() or not (building / FILE_NAME).is_file():
            raise InputError(f"{file} holds no whole study; name another backup")
        if read_config(building).store != STORE:
            raise InputError(f"the backup's {FILE_NAME} names another store than {STORE}; refused")
        settings = building / FILE_NAME
        heading = written("keep.hosts_heading")
        text, names = without_hosts(settings.read_text("utf-8-sig"), heading)
        if names:
            atomic_write(settings, text.encode())
            read_config(building)
        study_rubrics(building)
        contents, tables = read_snapshot(building / STORE)
        if tables != listing.tables:
            raise InputError("the backup's store holds other rows than its list says; refused")
        with closing(Database.connect(STORE, building)) as store:
            store.schema_version()
    on_hosts(names)
    return contents


def _new_file(folder: Path, file: Path) -> Path:
    """The absolute path of a backup that may be made."""
    file, home = file.absolute(), folder.resolve()
    if file.exists():
        raise InputError(f"{file} exists already; name a new file")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent}; make it first")
    place = file.parent.resolve()
    if place.is_relative_to(home) and not place.is_relative_to(home / BACKUPS):
        raise InputError(
            f"{file} would be lost with the study's folder; name a file elsewhere, best on another "
            "disk"
        )
    return file


def _files(folder: Path) -> dict[str, bytes]:
    """All files of a study but its stores, temporary files and older backups, by name.

    Where study.toml names another store, the copy names the backup's own.
    """
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_hidden = name.parts[0] == BACKUPS or any(part[0] == "." for part in name.parts)
        if path.is_file() and not is_hidden and not path.name.endswith(_LOGS):
            content = path.read_bytes()
            if not content.startswith(_DATABASE):
                found[name.as_posix()] = content
    settings = found[FILE_NAME].decode("utf-8-sig")
    if read_config(folder).store != STORE:
        settings = changed_text(settings, {"": {"store": STORE}})
    found[FILE_NAME] = settings.encode()
    return found


def _settings(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name.endswith(".toml")}


# A whole study in one file: a zip of its folder, and a list of what it must hold. An archive may
# come from anyone. Reading one writes nothing outside the folder named, follows no link, and takes
# no byte more than the list says.


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
            private_folder(target.parent)
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
