"""Backups: a study in one file, and a study from such a file; and copies of a store's rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sqlite3
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from shutil import disk_usage
from typing import IO, Any

import sqlalchemy as sa
from pydantic import Field, ValidationError

from evenhand.errors import InputError
from evenhand.study.creation import built_whole, new_folder
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import FILE_NAME, changed_text, read_config, without_hosts
from evenhand.study.store.database import SILENT, Database, append_once, renew_statistics
from evenhand.study.store.grades import utc_now
from evenhand.study.store.meta import note_moment
from evenhand.study.store.schema import meta, metadata
from evenhand.study.tables.files import FILE, atomic_write
from evenhand.study.tables.files import new_folder as private_folder
from evenhand.study.workspace import open_study, study_rubrics
from evenhand.texts import written

# Copying all rows of one database to another, SQLite or PostgreSQL, with proof that none changed.
# The tables are taken as they are found, so a store of an older schema is copied unchanged.

_KNOWN = {*metadata.tables, "alembic_version"}
_AT_ONCE = 1000


@dataclass
class TableState:
    """The number of rows of a table, and a checksum of their cells that does not depend on their
    order: two databases sort texts differently.
    """

    rows: int = 0
    checksum: int = field(default=0, repr=False)

    def add(self, row: Iterable[Any]) -> None:
        digest = hashlib.sha256(json.dumps(list(row)).encode()).digest()
        self.rows += 1
        self.checksum = (self.checksum + int.from_bytes(digest)) % 2**256


States = dict[str, TableState]


def _nothing() -> None:
    pass


def found_tables(connection: sa.Connection) -> sa.MetaData:
    """A study's tables as they are in a database, in terms that every database understands."""
    found, plain = sa.MetaData(), sa.MetaData()
    found.reflect(connection, only=lambda name, _: name in _KNOWN)
    for table in found.tables.values():
        columns = [_plain(column) for column in table.columns]
        unique = [
            sa.UniqueConstraint(*(column.name for column in each.columns))
            for each in table.constraints
            if isinstance(each, sa.UniqueConstraint)
        ]
        own = sa.Table(table.name, plain, *columns, *unique)
        for index in table.indexes:
            if not index.unique:  # PostgreSQL shows a unique constraint as an index, too
                sa.Index(index.name, *(own.c[column.name] for column in index.columns))
    return plain


def _plain(column: sa.Column[Any]) -> sa.Column[Any]:
    kind: Any = column.type.as_generic()
    if isinstance(kind, sa.JSON):
        kind = sa.JSON(none_as_null=bool(column.nullable))
    elif isinstance(kind, sa.Float):
        kind = sa.Float()
    return sa.Column(
        column.name, kind, primary_key=column.primary_key, nullable=bool(column.nullable)
    )


def states(
    connection: sa.Connection, tables: sa.MetaData, on_rows: Callable[[], None] = _nothing
) -> States:
    """Rows and checksum of each table, by name."""
    found = {name: TableState() for name in tables.tables}
    for name, table in tables.tables.items():
        for row in _rows(connection, table, on_rows):
            found[name].add(row)
    return found


def copy_tables(
    source: sa.Connection, target: sa.Connection, on_rows: Callable[[], None] = _nothing
) -> States:
    """Make the source's tables in an empty target and fill them; return the state of each table.

    Both connections are in a transaction, which their owners end. `on_rows` is called whenever some
    rows have arrived. Raises InputError where the target cannot take a row, or does not hold the
    same as the source afterwards.
    """
    tables = found_tables(source)
    tables.create_all(target)
    given = {name: TableState() for name in tables.tables}
    for table in tables.sorted_tables:
        try:
            _fill(target, table, source, given[table.name], on_rows)
        except sa.exc.DataError as error:
            reason = str(error.orig).splitlines()[0]
            raise InputError(f"a row of {table.name} cannot be copied: {reason}") from None
    if target.dialect.name == "postgresql":
        _set_counters(target, tables)
    renew_statistics(target)
    kept = states(target, tables, on_rows)
    for name, state in given.items():
        if kept[name] != state:
            raise InputError(
                f"the copy's table {name} is not the same as the store's ({kept[name].rows} and "
                f"{state.rows} rows); nothing was changed"
            )
    return given


def _fill(
    target: sa.Connection,
    table: sa.Table,
    source: sa.Connection,
    state: TableState,
    on_rows: Callable[[], None],
) -> None:
    names = table.columns.keys()
    batch: list[dict[str, Any]] = []
    for row in _rows(source, table, on_rows):
        state.add(row)
        batch.append(dict(zip(names, row, strict=True)))
        if len(batch) == _AT_ONCE:
            target.execute(sa.insert(table), batch)
            batch = []
    if batch:
        target.execute(sa.insert(table), batch)


def _rows(
    connection: sa.Connection, table: sa.Table, on_rows: Callable[[], None]
) -> Iterator[sa.Row[Any]]:
    options = {"stream_results": True, "yield_per": _AT_ONCE}
    for part in connection.execute(sa.select(table), execution_options=options).partitions():
        on_rows()
        yield from part


def _set_counters(connection: sa.Connection, tables: sa.MetaData) -> None:
    """Let PostgreSQL count events on from the last one."""
    for table in tables.tables.values():
        column = table.autoincrement_column
        if column is not None:
            counter = sa.func.pg_get_serial_sequence(table.name, column.name)
            last = sa.func.max(column)
            connection.execute(
                sa.select(sa.func.setval(counter, sa.func.coalesce(last, 1), last.is_not(None)))
            )


# A snapshot of a store at one moment, in an SQLite file of its own, for backups


@dataclass(frozen=True)
class Contents:
    """Counts of a store's contents: events of labels and grades, the people and graders who gave
    them, pairs and responses.
    """

    labels: int
    grades: int
    raters: int
    graders: int
    pairs: int
    responses: int


def take_snapshot(store: Database, file: Path) -> None:
    """Write the store as it is now to a new file; people label on meanwhile."""
    if store.engine.dialect.name == "sqlite":
        with (
            contextlib.closing(store.engine.raw_connection()) as source,
            contextlib.closing(sqlite3.connect(file)) as copy,
        ):
            connection: Any = source.driver_connection
            connection.backup(copy)
    else:
        target = Database.connect(file.name, file.parent, create=True)
        with contextlib.closing(target), store.read() as present, target.write() as new:
            copy_tables(present, new, store.goes_on)
    with contextlib.closing(sqlite3.connect(file)) as snapshot:
        snapshot.execute("PRAGMA journal_mode = DELETE")  # one file, without a log next to it


def read_snapshot(file: Path) -> tuple[Contents, dict[str, int]]:
    """Return the contents of a store's file, and the number of rows of each table.

    Raises InputError where it is damaged, or has what no store has: such a file may come from
    anyone.
    """
    with contextlib.closing(sqlite3.connect(file)) as connection:
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            tables = _tables(connection)
            verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if verdict != "ok":
                raise InputError(f"the store is damaged: {verdict}; restore an earlier backup")
            rows = {
                table: _count(connection, f'SELECT count(*) FROM "{table}"')  # noqa: S608 - checked
                for table in tables
            }
            return _contents(connection, rows), rows
        except sqlite3.DatabaseError as error:
            raise InputError(f"the store is damaged: {error}; restore an earlier backup") from None


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    for kind, name, sql in found:
        is_plain = kind == "index" or sql.upper().startswith("CREATE TABLE")
        if kind not in ("table", "index") or not is_plain or '"' in name:
            raise InputError(f"the store holds the {kind} {name!r}, which no store does; refused")
    return sorted(name for kind, name, _ in found if kind == "table")


def _contents(connection: sqlite3.Connection, rows: Mapping[str, int]) -> Contents:
    missing = {"labels", "grades", "pairs", "responses"} - rows.keys()
    if missing:
        raise InputError(f"the store is no store of an evenhand study: it has no {min(missing)}")
    raters = "SELECT count(DISTINCT rater_id) FROM labels WHERE rater_kind = 'human'"
    graders = "SELECT count(DISTINCT rater_id) FROM grades"
    return Contents(
        labels=rows["labels"],
        grades=rows["grades"],
        raters=_count(connection, raters),
        graders=_count(connection, graders),
        pairs=rows["pairs"],
        responses=rows["responses"],
    )


def _count(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


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
        append_once(connection, meta, "key", {"key": "mark", "value": secrets.token_hex(4)})
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
