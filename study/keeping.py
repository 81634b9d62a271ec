"""Maintenance of a study: backups in one file, moving and upgrading a store, and a health check.

Copies of a store's rows and the form of an archive come first; the rest needs them: `backup_study`
and `keep_backups` write an archive, `restore_study` reads one, `move_store` and `upgrade_store`
change the store, and `examine` and `serving_notes` check a study.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import re
import sqlite3
import stat
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from shutil import disk_usage
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.schema import CreateColumn

from evenhand import __version__
from evenhand.errors import InputError, StoreAway
from evenhand.study import workspace
from evenhand.study.creation import built_whole, unused_folder
from evenhand.study.settings import study_toml
from evenhand.study.settings.sections import Section
from evenhand.study.store import database
from evenhand.study.store.database import SCHEMA, SILENT, Database, resolved
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import SCHEMA_VERSION, SHOWN, batches, grades, meta, metadata
from evenhand.study.store.store import Store
from evenhand.study.tables.columns import listed
from evenhand.study.tables.files import (
    FILE,
    HAS_MODES,
    atomic_write,
    give_to_owner_of,
    new_folder,
    tighten,
    user_name,
)
from evenhand.study.trust import remember
from evenhand.texts import written

# ---- copies of a database -----------------------------------------------------------------------
# All rows of a database, SQLite or PostgreSQL, in another one, with proof that none changed. The
# tables are read from the database itself, so a store of an older schema is copied unchanged.
_STUDY_TABLES = {*metadata.tables, "alembic_version"}  # the last one is in stores of before 0.3.0
_ROWS_PER_CHUNK = 1000


@dataclass
class TableState:
    """The number of a table's rows, and a checksum of their cells that ignores the rows' order."""

    rows: int = 0
    checksum: int = field(default=0, repr=False)

    def add(self, rows: Sequence[Iterable[Any]]) -> None:
        """Count these rows too."""
        digests = (hashlib.sha256(json.dumps(list(row)).encode()).digest() for row in rows)
        self.rows += len(rows)
        self.checksum = (self.checksum + sum(map(int.from_bytes, digests))) % 2**256


States = dict[str, TableState]  # of a database's tables, by name
OnRows = Callable[[], object]  # called at each chunk of rows, so that its caller sees progress


def reflected_tables(connection: sa.Connection) -> sa.MetaData:
    """Return a study's tables as they are in a database, with types that every database has."""
    reflected, portable = sa.MetaData(), sa.MetaData()
    reflected.reflect(connection, only=lambda name, _: name in _STUDY_TABLES)
    for table in reflected.tables.values():
        columns = [_portable_column(column) for column in table.columns]
        unique = [
            sa.UniqueConstraint(*(column.name for column in constraint.columns))
            for constraint in table.constraints
            if isinstance(constraint, sa.UniqueConstraint)
        ]
        table_copy = sa.Table(table.name, portable, *columns, *unique)
        for index in table.indexes:
            if not index.unique:  # PostgreSQL shows a unique constraint as an index, too
                sa.Index(index.name, *(table_copy.c[column.name] for column in index.columns))
    return portable


def _portable_column(column: sa.Column[Any]) -> sa.Column[Any]:
    """Return a copy of a column with a type that every database has, without its default."""
    generic: Any = column.type.as_generic()
    if isinstance(generic, sa.JSON):
        generic = sa.JSON(none_as_null=bool(column.nullable))
    elif isinstance(generic, sa.Float):
        generic = sa.Float()
    is_key, nullable = column.primary_key, bool(column.nullable)
    return sa.Column(column.name, generic, primary_key=is_key, nullable=nullable)


def states(connection: sa.Connection, tables: sa.MetaData, on_rows: OnRows) -> States:
    """Return the rows and checksum of each table, by name."""
    state_by_table = {name: TableState() for name in tables.tables}
    for name, table in tables.tables.items():
        for rows in _chunks(connection, table, on_rows):
            state_by_table[name].add(rows)
    return state_by_table


def copy_tables(source: sa.Connection, target: sa.Connection, on_rows: OnRows) -> States:
    """Create the source's tables in an empty target and fill them; return the state of each table.
    Both connections are in a transaction, which the caller ends. Raises InputError where the
    target's rows are not those of the source afterwards.
    """
    tables = reflected_tables(source)
    tables.create_all(target)
    source_states = {name: TableState() for name in tables.tables}
    for table in tables.sorted_tables:
        columns = table.columns.keys()
        try:
            for rows in _chunks(source, table, on_rows):
                source_states[table.name].add(rows)
                cells = [dict(zip(columns, row, strict=True)) for row in rows]
                target.execute(sa.insert(table), cells)
        except sa.exc.DataError as error:
            reason = str(error.orig).splitlines()[0]
            raise InputError(f"a row of {table.name} cannot be copied: {reason}") from None
    if target.dialect.name == "postgresql":
        _set_counters(target, tables)
    database.renew_statistics(target)
    target_states = states(target, tables, on_rows)
    for name, state in source_states.items():
        if target_states[name] != state:
            raise InputError(
                f"the copy's table {name} is not the same as the store's "
                f"({target_states[name].rows} and {state.rows} rows); nothing was changed"
            )
    return source_states


def _set_counters(connection: sa.Connection, tables: sa.MetaData) -> None:
    """Set PostgreSQL's counters, so that it numbers new events after the last of each table."""
    for table in tables.tables.values():
        if (column := table.autoincrement_column) is not None:
            counter = sa.func.pg_get_serial_sequence(table.name, column.name)
            last = sa.func.max(column)
            # The third argument is False for an empty table: its next number is 1 itself.
            set_counter = sa.func.setval(counter, sa.func.coalesce(last, 1), last.is_not(None))
            connection.execute(sa.select(set_counter))


def _chunks(
    connection: sa.Connection, table: sa.Table, on_rows: OnRows
) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield a table's rows in chunks."""
    options = {"stream_results": True, "yield_per": _ROWS_PER_CHUNK}
    for rows in connection.execute(sa.select(table), execution_options=options).partitions():
        on_rows()
        yield rows


# ---- a copy of the store in one SQLite file -----------------------------------------------------
@dataclass(frozen=True)
class Contents:
    """Counts of a store's labels and grades, their annotators and graders, pairs and responses."""

    labels: int
    grades: int
    raters: int
    graders: int
    pairs: int
    responses: int


def take_snapshot(store: Database, file: Path) -> None:
    """Write the store as it is now to a new SQLite file, while people label."""
    if store.engine.dialect.name == "sqlite":
        with (
            closing(store.engine.raw_connection()) as source,
            closing(sqlite3.connect(file)) as copy,
        ):
            connection: Any = source.driver_connection
            connection.backup(copy)
    else:
        target = Database.connect(file.name, file.parent, create=True)
        with closing(target), store.read() as present, target.write() as new:
            copy_tables(present, new, store.report_answer)
    with closing(sqlite3.connect(file)) as snapshot:
        snapshot.execute("PRAGMA journal_mode = DELETE")  # one file, without a log next to it


def read_snapshot(file: Path) -> tuple[Contents, dict[str, int]]:
    """Return counts of what a store's file holds, and the number of rows of each table. Raises
    InputError where it is damaged, or is not plainly a store: the file may come from anyone.
    """
    raters_query = (
        "SELECT (SELECT count(DISTINCT rater_id) FROM labels WHERE rater_kind = 'human'), "
        "(SELECT count(DISTINCT rater_id) FROM grades)"
    )
    with closing(sqlite3.connect(file)) as connection:
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            tables = _plain_tables(connection)
            fault = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if fault != "ok":
                raise InputError(f"the store is damaged: {fault}; restore an earlier backup")
            n_rows = {}
            for table in tables:
                count = f'SELECT count(*) FROM "{table}"'  # noqa: S608 - no name has a quote
                n_rows[table] = int(connection.execute(count).fetchone()[0])
            if missing := {"labels", "grades", "pairs", "responses"} - n_rows.keys():
                raise InputError(f"this is no store of an evenhand study: it has no {min(missing)}")
            n_raters, n_graders = connection.execute(raters_query).fetchone()
            counts = {name: n_rows[name] for name in ("labels", "grades", "pairs", "responses")}
            return Contents(**counts, raters=n_raters, graders=n_graders), n_rows
        except sqlite3.DatabaseError as error:
            raise InputError(f"the store is damaged: {error}; restore an earlier backup") from None


def _plain_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of a file's tables, sorted. Raises InputError if it holds anything else than
    tables and indexes, such as a trigger or a virtual table, which would run when it is used.
    """
    schema = "SELECT type, name, coalesce(sql, '') FROM sqlite_master"
    entries = connection.execute(schema).fetchall()
    for kind, name, sql in entries:
        is_plain_table = kind == "table" and sql.upper().startswith("CREATE TABLE")
        if not (is_plain_table or kind == "index") or '"' in name:  # a quote would end the name
            raise InputError(f"the store holds the {kind} {name!r}, which no store does; refused")
    return sorted(name for kind, name, _ in entries if kind == "table")


# ---- the archive: a zip of the study's folder, and a list of its files --------------------------
# It may come from anyone: reading it writes only into one folder, and no more than the list says.
LIST = "backup.json"
STORE = "study.db"
"""The store's name in a backup, whatever it was kept in; so no database's password gets there."""
FORMAT = 1
# What `zipfile` raises for damaged archives, and for versions and compressions that it lacks.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAX_FILES = 10_000
_MAX_LIST_BYTES = 4_000_000
_CHUNK_BYTES = 1 << 20


class Entry(Section):
    """A file of the archive: its size and checksum."""

    bytes: int = Field(ge=0)
    sha256: str


class Listing(Section):
    """An archive's list: its files, and the number of rows of each table of the store."""

    format: int
    evenhand: str
    created_at: str
    files: dict[str, Entry]
    tables: dict[str, int]


def check_archive(path: Path) -> Listing:
    """Read every byte and compare it with the list. Raises InputError if one differs."""
    with _open_archive(path) as (archive, listing):
        for name, entry in listing.files.items():
            _read_member(archive, name, entry, write=lambda _: None)
    return listing


def unpack(path: Path, folder: Path) -> Listing:
    """Write an archive's files into a folder, for the owner alone. Raises InputError where it is
    not a backup, is damaged, or holds files that a backup does not have.
    """
    with _open_archive(path) as (archive, listing):
        n_bytes = sum(entry.bytes for entry in listing.files.values())
        if n_bytes > disk_usage(folder).free:
            raise InputError(f"the backup needs {n_bytes:,} bytes; the disk has fewer free")
        for name, entry in listing.files.items():
            target = folder / name
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            try:
                new_folder(target.parent)
                with os.fdopen(os.open(target, flags, FILE), "wb") as file:
                    _read_member(archive, name, entry, file.write)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:  # such as a file where another file's folder would be
                reason = str(error.strerror).lower()
                raise InputError(f"{name} of the backup cannot be unpacked: {reason}") from None
    return listing


@contextmanager
def _open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, Listing]]:
    """Open an archive and its checked list."""
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except (*_UNREADABLE, OSError):  # such as a position before the file's beginning
            raise InputError(f"{path} is no backup of evenhand, or only a part of one") from None
        with archive:
            yield archive, _read_list(archive)


def _read_list(archive: zipfile.ZipFile) -> Listing:
    """Return the archive's list. Raises InputError unless it names exactly the archive's files, and
    all of them are plain files inside the folder.
    """
    members = archive.infolist()
    names = [member.filename for member in members]
    if LIST not in names:
        raise InputError(f"{archive.filename} is no backup of evenhand: it has no {LIST}")
    if archive.getinfo(LIST).file_size > _MAX_LIST_BYTES or len(names) > _MAX_FILES:
        raise InputError(f"{archive.filename} is larger than any backup; it is not read")
    for name, member in zip(names, members, strict=True):
        mode = member.external_attr >> 16  # on Unix; 0: none
        is_file = not member.is_dir() and stat.S_IFMT(mode) in (0, stat.S_IFREG)
        if not is_file or member.compress_type not in _COMPRESSIONS or not _is_fit(name):
            raise InputError(f"the archive holds {name!r}, which no backup does; refused")
    try:
        listing = Listing.model_validate_json(archive.read(LIST))
    except (*_UNREADABLE, OSError):
        raise InputError(
            f"{archive.filename} is damaged, or a newer evenhand made it: its {LIST} is not read"
        ) from None
    if listing.format != FORMAT:
        raise InputError(f"a newer evenhand made {archive.filename}; update this one")
    if sorted(names) != sorted([LIST, *listing.files]):
        raise InputError(f"{archive.filename} holds other files than its list says")
    for name, entry in listing.files.items():
        if entry.bytes != archive.getinfo(name).file_size:
            raise InputError(f"{name} has another size in the archive than in its list")
    return listing


def _is_fit(name: str) -> bool:
    """Return True if an archive may hold a file of this name: a plain one, inside the folder, and
    neither hidden, as other programs' settings are, nor that of a log next to the store, which
    would be played into it when it is opened.
    """
    is_visible = all(part[:1] not in ("", ".") for part in name.split("/"))
    is_inside = is_visible and not Path(name).drive  # on Windows a drive leads elsewhere
    # Of all spaces, such as those in names of screenshots, only the usual one is printable.
    is_plain = all(sign.isprintable() or unicodedata.category(sign) == "Zs" for sign in name)
    return is_inside and is_plain and "\\" not in name and not name.startswith(f"{STORE}-")


def _read_member(
    archive: zipfile.ZipFile, name: str, entry: Entry, write: Callable[[bytes], object]
) -> None:
    """Pass an archive's file to `write` in chunks. Raises InputError if it is not as its entry."""
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(name) as file:
            while (chunk := file.read(_CHUNK_BYTES)) and size <= entry.bytes:
                size += len(chunk)
                digest.update(chunk)
                write(chunk)
    except _UNREADABLE:
        raise InputError(f"the backup is damaged: {name} cannot be read") from None
    if (size, digest.hexdigest()) != (entry.bytes, entry.sha256):
        raise InputError(f"the backup is damaged: {name} is not as it was when it was made")


# ---- backups: a study in one archive ------------------------------------------------------------
# They are made while people label, and restored in a new folder.
BACKUPS = "backups"  # folder in the study's folder that backups leave out
_SQLITE_HEADER = b"SQLite format 3\0"
_log = logging.getLogger(__name__)
_SQLITE_LOGS = ("-wal", "-shm", "-journal")  # endings of files next to a store, present or former


def backup_study(folder: Path, file: Path) -> Contents:
    """Write a backup of a study to a new file, while people label, and verify it. Return the counts
    of what it holds. Raises InputError where the file exists, or the store is damaged.
    """
    with closing(_open_store(folder)) as store:
        contents = backup_of(store, folder, file)
        workspace.note_event_time(store, "backup")
        return contents


def keep_backups(folder: Path, to: Path, keep: int, *, verify: bool = False) -> KeptBackup:
    """Write a backup to the folder `to`, named after study and time, and delete the study's older
    ones there except the last `keep`. With `verify` it is restored on trial first, and counts only
    if that works. Raises InputError as `backup_study` does, where `to` cannot be written, and where
    `keep` is less than 1; then all older backups stay.
    """
    if keep < 1:
        raise InputError("--keep must be 1 or more")
    if not to.is_dir():
        raise InputError(f"there is no folder {to}; make it first")
    with closing(_open_store(folder)) as store:
        # A mark tells the backups from those of another folder of the same name, which stay.
        with store.write() as connection:
            database.append_once(connection, meta, "key", {"key": "mark", "value": token_hex(4)})
        (mark,) = store.values(sa.select(meta.c.value).where(meta.c.key == "mark"))
        prefix = f"{folder.resolve().name}-{mark}"
        name = f"{prefix}-{datetime.now(UTC):%Y%m%d-%H%M%S}.zip"
        contents = backup_of(store, folder, to / name)
        if verify:
            _verify(to / name, contents)
        workspace.note_event_time(store, "backup")
    name_pattern = re.compile(re.escape(prefix) + r"-\d{8}-\d{6}\.zip")
    backups = sorted(path for path in to.iterdir() if name_pattern.fullmatch(path.name))
    for old in backups[:-keep]:
        old.unlink()
    return KeptBackup(to / name, contents, len(backups[-keep:]))


@dataclass(frozen=True)
class KeptBackup:
    """A new backup, its contents, and the number of backups of the study that are kept now."""

    file: Path
    contents: Contents
    n_kept: int


def _open_store(folder: Path) -> Database:
    """Open the study's store; the server must answer every `SILENT` seconds during long work."""
    return Database.connect(study_toml.read_config(folder).store, folder, silent=SILENT)


def _verify(file: Path, contents: Contents) -> None:
    """Restore a backup on trial. Raises InputError, and deletes the backup, where that fails."""
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as trial:
        folder = Path(trial) / "trial"
        try:
            restored = restore_study(file, folder)
            workspace.open_study(folder).close()  # raises InputError if the study does not open
            if restored != contents:
                raise InputError("it holds other rows")
        except InputError as error:
            file.unlink()
            raise InputError(f"the backup could not be restored and is removed: {error}") from None


def backup_of(store: Database, folder: Path, file: Path) -> Contents:
    """Write a backup of a study, whose store is open, and verify it. Return what it holds."""
    file, home = file.absolute(), folder.resolve()
    _check_target(file, home)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as temporary:
        snapshot, archive_file = Path(temporary) / STORE, Path(temporary) / file.name
        files = _study_files(folder)  # before the snapshot; its settings must be the same after it
        take_snapshot(store, snapshot)
        if any(name.endswith(".toml") for name, _ in files.items() ^ _study_files(folder).items()):
            raise InputError("the study's settings were changed meanwhile; run this again")
        odd_names = {name for name in files if name in (LIST, STORE) or not _is_fit(name)}
        # Links out of the folder could name files of the operator's, in a study from somebody else.
        # The settings stay, as every command follows a link to them.
        links = {name for name in files if not (folder / name).resolve().is_relative_to(home)}
        if unfit := sorted(odd_names | links - {study_toml.FILE_NAME}):
            files = {name: content for name, content in files.items() if name not in unfit}
            advice = "give them other names, and put files in the place of links out of the folder"
            _log.warning("Note: the backup leaves out %s; %s", listed(unfit), advice)
        contents, tables = read_snapshot(snapshot)
        entries = {
            name: Entry(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
            for name, content in files.items()
        }
        with snapshot.open("rb") as store_file:
            digest = hashlib.file_digest(store_file, "sha256")
            entries[STORE] = Entry(bytes=store_file.tell(), sha256=digest.hexdigest())
        listing = Listing(
            format=FORMAT, evenhand=__version__, created_at=utc_now(), files=entries, tables=tables
        )
        _write_archive(archive_file, listing, files, snapshot)
        check_archive(archive_file)
        os.replace(archive_file, file)
    return contents


def _check_target(file: Path, study_folder: Path) -> None:
    """Raise InputError unless `file` is new, and in no folder of the study except the backups'."""
    if file.exists():
        raise InputError(f"{file} exists already; name a new file")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent}; make it first")
    target_folder = file.parent.resolve()
    is_in_backups = target_folder.is_relative_to(study_folder / BACKUPS)
    if target_folder.is_relative_to(study_folder) and not is_in_backups:
        raise InputError(
            f"{file} would be lost with the study's folder; name a file elsewhere, best on another "
            "disk"
        )


def _write_archive(path: Path, listing: Listing, files: Mapping[str, bytes], store: Path) -> None:
    """Write a new archive of the list, the study's `files` and its `store`, for the owner alone."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE), "w+b") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(LIST, listing.model_dump_json(indent=1))
            for name, content in files.items():
                archive.writestr(name, content)
            archive.write(store, STORE)
        stream.flush()
        os.fsync(stream.fileno())


def restore_study(
    file: Path, folder: Path, on_hosts: Callable[[list[str]], None] = lambda names: None
) -> Contents:
    """Make a study's folder, with an SQLite store, from a backup. Return its contents. A backup may
    come from anyone, so sections that name hosts are commented out, and `on_hosts` gets their
    names. Raises InputError, with nothing written, for a folder with files, or for no backup.
    """
    folder = unused_folder(folder)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    with built_whole(folder) as building:
        listing = unpack(file, building)
        settings = building / study_toml.FILE_NAME
        if not (building / STORE).is_file() or not settings.is_file():
            raise InputError(f"{file} holds no whole study; name another backup")
        if study_toml.read_config(building).store != STORE:
            raise InputError(f"the backup's {settings.name} names another store than {STORE}")
        heading = written("keep.hosts_heading")
        text, names = study_toml.without_hosts(settings.read_text("utf-8-sig"), heading)
        if names:
            atomic_write(settings, text.encode())
            study_toml.read_config(building)  # raises InputError if the new text is invalid
        workspace.study_rubrics(building)  # raises InputError for a bad rubric
        contents, tables = read_snapshot(building / STORE)
        if tables != listing.tables:
            raise InputError("the backup's store holds other rows than its list says; refused")
        with closing(Database.connect(STORE, building)) as store:
            store.schema_version()  # raises InputError if it is newer than the program's
    on_hosts(names)
    return contents


def _study_files(folder: Path) -> dict[str, bytes]:
    """Return a study's files by name, without stores and backups; study.toml names `STORE`."""
    files: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_left_out = name.parts[0] == BACKUPS or any(part[0] == "." for part in name.parts)
        if path.is_file() and not is_left_out and not path.name.endswith(_SQLITE_LOGS):
            content = path.read_bytes()
            if not content.startswith(_SQLITE_HEADER):
                files[name.as_posix()] = content
    settings_text = files[study_toml.FILE_NAME].decode("utf-8-sig")
    if study_toml.read_config(folder).store != STORE:
        settings_text = study_toml.changed_text(settings_text, {"": {"store": STORE}})
    files[study_toml.FILE_NAME] = settings_text.encode()
    return files


# ---- moving a store to another database, SQLite or PostgreSQL, or to a newer schema -------------
# Until the last step the study is unchanged, so a run that is killed has done nothing, or all.
_FILE_URL = "sqlite:///"


@dataclass(frozen=True)
class Upgraded:
    """The schema versions before and after an upgrade, and the backup made before it."""

    before: int
    now: int
    backup: Path | None


def move_store(folder: Path, to: str) -> States:
    """Copy the store to a URL, or to a file name within the folder, and name it in study.toml.
    Return the rows and checksum of every table. The former store is unchanged. Raises InputError
    where the study is open elsewhere or the new store holds other rows, StoreAway for no answer.
    """
    config = study_toml.read_config(folder)
    new_store = _new_store_name(folder, config.store, to)
    if "://" in new_store or "$" in new_store:  # an address, not the name of a file
        remember(folder, [new_store])  # the operator has typed it, so it is trusted
    store = Database.connect(config.store, folder, alone=True, silent=SILENT)
    with closing(store), store.only_user() as source:
        location = resolved(new_store)
        if "://" in location or (folder / location).exists():
            with closing(Database.connect(new_store, folder, silent=SILENT)) as target:
                copied = _copy_store(store, source, target)
        else:
            with tempfile.TemporaryDirectory(dir=folder, prefix=f".{location}.") as temporary:
                with closing(Database.connect(location, Path(temporary), create=True)) as target:
                    copied = _copy_store(store, source, target)
                # The target is closed, so it has no log next to it.
                os.replace(Path(temporary) / location, folder / location)
        study_toml.change_config(folder, {"": {"store": new_store}})
    _secure_folder(folder)
    return copied


def upgrade_store(folder: Path) -> Upgraded:
    """Upgrade the store to the program's schema, all or nothing, after a backup. Raises InputError
    where a newer evenhand wrote it, or the study is open elsewhere; StoreAway without an answer.
    """
    config = study_toml.read_config(folder)
    store = Database.connect(config.store, folder, alone=True, silent=SILENT)
    with closing(store):
        with store.only_user():  # raises InputError if the study is open elsewhere
            pass
        before, after, file = store.schema_version(), int(SCHEMA_VERSION), None
        if before != after:
            new_folder(folder / BACKUPS)
            moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
            file = folder / BACKUPS / f"schema-{before}-{moment}.zip"
            backup_of(store, folder, file)
            with store.only_user() as connection:
                old_tables = reflected_tables(connection)
                n_rows = _row_counts(connection, old_tables)
                migrate(connection, before)
                if _row_counts(connection, old_tables) != n_rows:
                    raise InputError("the upgrade would have lost rows; nothing was changed")
        store.check_schema()
        workspace.study_secret(store)  # makes one if there is none, as before 0.3.0
    _secure_folder(folder)
    return Upgraded(before, after, file)


def _secure_folder(folder: Path) -> None:
    """Close the folder to other users, and give files that root wrote to the study's owner."""
    tighten(folder)
    give_to_owner_of(folder, *folder.iterdir(), *(folder / BACKUPS).glob("*"))


def _row_counts(connection: sa.Connection, tables: sa.MetaData) -> dict[str, int]:
    """Return the number of rows of each table, by name."""
    return {
        name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        for name, table in tables.tables.items()
        if name != "alembic_version"
    }


def _new_store_name(folder: Path, present: str, to: str) -> str:
    """Return the new store as study.toml names it. Raises InputError where it cannot be one."""
    location = resolved(to)
    if location.startswith(_FILE_URL):
        path = Path(location.removeprefix(_FILE_URL))
        is_in_folder = path.parent.resolve() == folder.resolve()
        to = location = path.name if is_in_folder else str(path)  # a path is refused below
    if location == resolved(present):
        raise InputError("--to names the place where the study's store is already")
    is_name = Path(location).name == location and location[:1] not in ("", ".")
    is_file = is_name and not (folder / location).is_dir()
    if not (location.startswith("postgresql+psycopg://") or is_file):
        raise InputError(
            "--to takes the URL of a PostgreSQL database, or the name of a file in the study's "
            "folder, such as study.db"
        )
    return to


def _copy_store(store: Database, source: sa.Connection, target: Database) -> States:
    """Copy the store to an empty database, or find the same rows there; return the states."""

    def on_rows() -> None:  # while rows come from one database, the other need not answer either
        store.report_answer()
        target.report_answer()

    try:
        with target.write(bounded=False) as connection:
            if not sa.inspect(connection).has_table(meta.name):
                return copy_tables(source, connection, on_rows)
            source_states = states(source, reflected_tables(source), on_rows)
            if states(connection, reflected_tables(connection), on_rows) == source_states:
                return source_states
    except (StoreAway, sa.exc.DatabaseError) as error:
        reason = str(error.__cause__).splitlines()[0]  # in the driver's words
        raise InputError(f"the store cannot be copied there: {reason}") from None
    raise InputError("--to holds another study, or another state of this one; name a new one")


ADDED_COLUMNS = {
    "labels": SHOWN,
    "attention_labels": SHOWN,
    "practice_labels": SHOWN,
    "login_attempts": ("address_key",),
}
"""Columns that tables of schema 1 (version 0.1.0) lack; version 0.2.0 has schema 2."""
_PROVIDER_URLS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


def migrate(connection: sa.Connection, version: int) -> None:
    """Upgrade a store of schema 1, within a transaction. Raises InputError for other versions."""
    if version != 1:
        raise InputError(f"the store is of version {version}, which no evenhand wrote")
    metadata.create_all(connection)
    for table, names in ADDED_COLUMNS.items():
        for name in names:
            column = CreateColumn(metadata.tables[table].c[name]).compile(connection)
            connection.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN {column}"))
    _add_server_to_names(connection, grades, grades.c.provenance["base_url"].as_string())
    _add_server_to_names(connection, batches, batches.c.base_url)
    connection.execute(sa.update(meta).where(meta.c.key == SCHEMA).values(value=SCHEMA_VERSION))


def _add_server_to_names(
    connection: sa.Connection, table: sa.Table, column: sa.ColumnElement[str]
) -> None:
    """Add the server's address, in `column`, to the names of graders that used another server than
    the provider's: version 0.1.0 kept the grades of ANTHROPIC_BASE_URL under `anthropic:MODEL`.
    """
    for rater, base_url in connection.execute(sa.select(table.c.rater_id, column).distinct()).all():
        provider, _, model_and_settings = rater.partition(":")
        provider_url, address = _PROVIDER_URLS.get(provider), (base_url or "").rstrip("/")
        if not provider_url or not address or address == provider_url or "@http" in rater:
            continue  # no server, the provider's own, or one that is in the name already
        model, separator, settings = model_and_settings.partition("#")
        connection.execute(
            sa.update(table)
            .where(table.c.rater_id == rater, column.in_((address, f"{address}/")))
            .values(rater_id=f"{provider}:{model}@{address}{separator}{settings}")
        )


# ---- the health check ---------------------------------------------------------------------------
OLD_HOURS = 50.0  # age at which a backup is old: of nightly ones, more than one is missing
_MIN_POSTGRESQL = 14


@dataclass(frozen=True)
class Finding:
    """The result of one check: a sentence, with what to do where `is_well` is False."""

    is_well: bool
    sentence: str


def examine(folder: Path, url: str = "") -> list[Finding]:
    """Return the findings about a study that people reach at `url`; "" where that is not known.
    Raises InputError where the folder holds no study.
    """
    # Modes first: opening a study closes its files to others.
    findings = [*_check_modes(folder), *_check_access(study_toml.read_config(folder).session, url)]
    try:
        with workspace.open_study(folder, patience=2.0) as study:
            kind = study.store.engine.dialect.name
            findings += [*_check_store(study), _check_versions(study.store)]
            return [_well("opens", kind=kind), *findings]
    except (InputError, StoreAway) as error:
        return [_problem("not_open", reason=error), *findings]


def serving_notes(study: workspace.Study, url: str) -> list[str]:
    """Return what should be repaired in an open study that is about to be served at `url`."""
    findings = [*_check_modes(study.folder), *_check_access(study.config.session, url)]
    findings += _check_store(study)
    return [finding.sentence for finding in findings if not finding.is_well]


def _check_access(session: study_toml.SessionSettings, url: str) -> Iterator[Finding]:
    """Yield findings about who can reach the study's pages, and through which hosts."""
    entry, proxies = session.entry, ", ".join(session.trusted_proxies)
    yield _problem("open_entry") if entry == "open" else _well("entry", entry=entry)
    yield _well("proxies", proxies=proxies) if proxies else _problem("no_proxies")
    address = urlsplit(url)
    names = [name for name in (address.hostname, *session.hosts) if name]
    yield _well("hosts", hosts=", ".join(names)) if names else _problem("no_hosts")
    if url and address.scheme != "https":
        yield _problem("no_tls", url=url)


def _check_modes(folder: Path) -> Iterator[Finding]:
    """Yield findings about the owner and permissions of the folder and its files."""
    if not HAS_MODES:
        return
    folder = folder.resolve()
    owner = folder.stat().st_uid
    of_other_owners, too_open = [], []
    for path in (folder, *folder.rglob("*")):
        try:
            status = path.lstat()
        except OSError:  # gone meanwhile, as a temporary file is
            continue
        name = str(path.relative_to(folder.parent))
        if status.st_uid != owner:
            of_other_owners.append(name)
        others_rights = stat.S_IMODE(status.st_mode) & 0o077  # those of the group, and of all users
        if others_rights and not stat.S_ISLNK(status.st_mode):
            too_open.append(name)
    if of_other_owners:
        yield _problem("other_owner", files=listed(sorted(of_other_owners)), owner=user_name(owner))
    if too_open:
        yield _problem("loose_modes", files=listed(sorted(too_open)))
    if not of_other_owners and not too_open:
        yield _well("modes")


def _check_store(study: workspace.Study) -> Iterator[Finding]:
    """Yield findings about writing to the store, and the age of the last backup."""
    state = workspace.store_state(study)
    yield _well("writes") if state.can_write else _problem("no_write")
    if (hours := state.hours_since_backup) is None:
        yield _problem("no_backup")
    elif hours > OLD_HOURS:
        yield _problem("old_backup", hours=hours)
    else:
        yield _well("backup", hours=hours)


def _check_versions(store: Store) -> Finding:
    """Return the versions in use; a problem where PostgreSQL is too old."""
    engine = f"SQLite {sqlite3.sqlite_version}"
    if store.engine.dialect.name == "postgresql":
        server = str(store.values(sa.text("SHOW server_version"))[0])
        engine = f"PostgreSQL {server}"
        if int(server.partition(".")[0]) < _MIN_POSTGRESQL:
            return _problem("old_server", version=server)
    installed = {"evenhand": __version__, "streamlit": version("streamlit")}
    return _well("versions", python=platform.python_version(), database=engine, **installed)


def _well(name: str, **fields: object) -> Finding:
    return Finding(True, written(f"doctor.{name}", **fields))


def _problem(name: str, **fields: object) -> Finding:
    return Finding(False, written(f"doctor.{name}", **fields))
