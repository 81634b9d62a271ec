"""The database of a study: SQLAlchemy Core over SQLite in WAL mode, or PostgreSQL by URL.

What `write()` commits is on disk. Within a process all threads share one SQLite connection under a
lock: a connection per thread runs into "database is locked" under load. A store that does not
answer is `StoreAway`, whichever database it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from urllib.parse import parse_qs, quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool

from evenhand.errors import InputError, StoreAway
from evenhand.lazy import pd
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import SCHEMA_VERSION, meta, metadata
from evenhand.study.tables.files import new_file
from evenhand.study.trust import check_variable, confirm, inside, is_trusted
from evenhand.texts import written

PATIENCE = 30.0
"""Seconds to wait by default for others' work on the store."""
_TURNS = 3  # whose turn it is may wait for so long as well, and so may the next
_HANGS = 8  # after this multiple of a short patience, the server itself hangs
SILENT = 60.0
"""Seconds within which a server must answer during long work, which reports with `goes_on`."""
_IDLE = 10.0  # seconds in which a writer has to say something: others wait for its lock
_ALONE = 2.0  # who wants to be alone learns soon that others are there
SCHEMA = "schema"
"""The key of the row of `meta` that holds the version of the tables."""
_IN_USE = (
    "the study is open elsewhere; stop `evenhand annotate` and every other run on it, then run "
    "this again"
)
_LOCKED = (
    "another run has the study to itself, such as `evenhand store`; run this when it has ended"
)
_NO_ANSWER = "the store does not answer: {reason}"
_ADVISORY_LOCK = 0x65766E68  # one writer at a time on PostgreSQL too
_AWAY_CODES = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
)
_AWAY_NAMES = {
    "OperationalError", "InterfaceError",  # DB-API 2.0 (PEP 249)
    "IdleInTransactionSessionTimeout",  # reported too late: see `_IDLE`
}  # fmt: skip
# libpq's own settings. A host that is gone says nothing, and TCP alone would wait for long.
_REACH = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}
# The same seen from the server: the locks of a client that is gone are free again.
_VANISHED = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 3,
    "tcp_keepalives_count": 2,
    "tcp_user_timeout": 10_000,
}
_OTHERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"  # the server's own cleaning is nobody else
)
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK))
_LOCK_BOUNDED = sa.select(
    sa.func.set_config("idle_in_transaction_session_timeout", str(round(_IDLE * 1000)), True),
    sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK),
)


class Database:
    """A study's tables, and transactions on them."""

    def __init__(
        self, engine: sa.Engine, patience: float = PATIENCE, silent: float | None = None
    ) -> None:
        self.engine = engine
        self._patience = patience
        self._lock = threading.RLock()
        self._begun: sa.Connection | None = None  # of the writer who has the turn
        if silent is not None:  # long work: a statement that ends is a word
            sa.event.listen(engine, "after_cursor_execute", lambda *_: self.goes_on())
        # A file's lock has its own limit, and the command line may take its time.
        if silent is None and patience < PATIENCE:
            silent = _HANGS * patience
        is_file = engine.dialect.name != "postgresql"
        self._watch = None if is_file or silent is None else _Watch(engine, silent)

    @classmethod
    def open(cls, location: str, folder: Path, *, patience: float = PATIENCE) -> Self:
        """The store at a URL, or at a file name within the study's folder. Raises InputError where
        its schema is not this one; StoreAway where there is none and, as every act on it does,
        where it has not answered after `patience` seconds.
        """
        store = cls.connect(location, folder, patience=patience)
        try:
            store.check_schema()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def connect(
        cls,
        location: str,
        folder: Path,
        *,
        create: bool = False,
        alone: bool = False,
        patience: float = PATIENCE,
        silent: float | None = None,
    ) -> Self:
        """Open a database of any schema, or an empty one if it is new. With `alone` no other
        process may have it open, now or until it is closed: see `only_user`. A server that is
        silent for `silent` seconds within a transaction is given up: it has to end a statement by
        then, or send rows, of which `goes_on` tells.
        """
        if create:  # as the operator asks
            confirm(location)
        else:
            check_store(location, folder)
        location = resolved(location)
        if is_url(location):
            return cls(_url_engine(location, patience), patience, silent)
        file = folder / location
        if not create and not file.is_file():
            raise StoreAway(f"the study's store {location} is missing from {folder}")
        if not os.access(file if file.exists() else folder, os.W_OK):
            raise StoreAway(f"the study's store {file} cannot be written; fix its permissions")
        if create:
            new_file(file)  # the log next to it takes over its mode
        patience = _ALONE if alone else patience
        return cls(_sqlite_engine(file, patience, alone=alone), patience)

    def create_tables(self) -> None:
        """Make every table. Raises InputError where the database holds a study."""
        with self.write() as connection:
            if sa.inspect(connection).has_table(meta.name):
                raise InputError("the database holds a study already; name an empty database")
            metadata.create_all(connection)
            connection.execute(sa.insert(meta).values(key=SCHEMA, value=SCHEMA_VERSION))
            add_secret(connection)

    def goes_on(self) -> None:
        """Tell the watch of a long transaction that it has heard from the server."""
        if self._watch is not None:
            self._watch.heard()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.over.set()
        self.engine.dispose()

    @contextmanager
    def write(self, *, bounded: bool = True) -> Iterator[sa.Connection]:
        """Open a transaction that excludes every other writer, in this and any other process. A
        `bounded` one ends by itself if this process falls silent in the middle of it. What is read
        or written within it by the same thread is part of it.
        """
        with self._turn():
            if self._begun is not None:
                yield self._begun
                return
            with self.engine.connect() as connection:
                connection = connection.execution_options(evenhand_write=True)
                with connection.begin():
                    if connection.dialect.name == "postgresql":
                        connection.execute(_LOCK_BOUNDED if bounded else _LOCK)
                    self._begun = connection
                    try:
                        yield connection
                    finally:
                        self._begun = None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a transaction that sees one state and changes nothing."""
        with self._turn(), contextlib.ExitStack() as opened:
            if self._begun is not None:
                yield self._begun
                return
            connection = opened.enter_context(self.engine.connect())
            connection = connection.execution_options(evenhand_write=False)
            if connection.dialect.name == "postgresql":  # else each statement has its own
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return the rows that a query finds."""
        with self.read() as connection:
            return connection.execute(query).all()

    def values(self, query: sa.Executable) -> list[Any]:
        """Return the first cell of each row that a query finds."""
        return [row[0] for row in self.rows(query)]

    def table(self, query: sa.Select[Any]) -> pd.DataFrame:
        """Return the rows that a query finds, with its columns by their names."""
        with self.read() as connection:
            rows = connection.execute(query)
            return pd.DataFrame([tuple(row) for row in rows], columns=list(rows.keys()))

    @contextmanager
    def only_user(self) -> Iterator[sa.Connection]:
        """Open a transaction while no other process has the store open: what it wrote afterwards
        could be lost. Raises InputError where one has.
        """
        try:
            with self._turn(), self.engine.connect() as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    # A process that opens the study reads `meta` first, and waits there.
                    connection.execute(sa.text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE NOWAIT"))
                    if connection.execute(_OTHERS).scalar_one():
                        raise InputError(_IN_USE)
                yield connection
        except StoreAway as away:
            if not _is_locked(away):
                raise
            raise InputError(_IN_USE) from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Until this thread's turn is over no other has one: not for long behind one that waits."""
        if not self._lock.acquire(timeout=_TURNS * self._patience):
            raise StoreAway(_NO_ANSWER.format(reason="others wait for it"))
        try:
            with self._watch or contextlib.nullcontext():
                yield
        finally:
            self._lock.release()

    def schema_version(self) -> int:
        """Raises InputError where this is no store, or a newer evenhand wrote it."""
        version = ""
        try:
            version = "".join(self.values(sa.select(meta.c.value).where(meta.c.key == SCHEMA)))
        except StoreAway as away:
            if _is_locked(away):
                raise InputError(_LOCKED) from None
            if _is_operational(away):
                raise
        except sa.exc.DatabaseError:
            pass  # it lacks a table that every store has
        if not version.isdecimal():
            raise InputError("the store is no store of an evenhand study, or it is damaged")
        if int(version) > int(SCHEMA_VERSION):
            raise InputError(
                f"the store is of version {version}, newer than this evenhand, which knows "
                f"{SCHEMA_VERSION}; update evenhand"
            )
        return int(version)

    def check_schema(self) -> None:
        """Raises InputError where the tables are not those that the program reads and writes."""
        version = self.schema_version()
        if version != int(SCHEMA_VERSION):
            raise InputError(
                f"the store is of version {version}, this evenhand reads {SCHEMA_VERSION}; run "
                "`evenhand store upgrade` on the study's folder"
            )
        with self.read() as connection:
            columns = sa.inspect(connection).get_multi_columns()
        existing = {
            table: {column["name"] for column in has} for (_, table), has in columns.items()
        }
        for table in metadata.tables.values():
            if missing := set(table.columns.keys()) - existing.get(table.name, set()):
                raise InputError(
                    f"the store is damaged: table {table.name} lacks the column "
                    f"{min(missing)}; restore a backup (`evenhand restore`)"
                )


def add_secret(connection: sa.Connection) -> None:
    """Give the store the secret that it is to have from now on, if it has none yet."""
    append_once(connection, meta, "key", {"key": "secret", "value": secrets.token_hex(32)})


class _Watch:
    """Ends the connections to a server from which a turn has waited too long: a server that hangs
    says nothing, and the driver would wait for as long as it does.
    """

    def __init__(self, engine: sa.Engine, longest: float) -> None:
        self.over = threading.Event()
        self._longest = longest
        self._begun: list[float] = []
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        sa.event.listen(engine, "checkout", lambda made, *_: self._connections.add(made))
        threading.Thread(target=self._look, daemon=True).start()

    def __enter__(self) -> None:
        self._begun.append(time.monotonic())

    def __exit__(self, *_: object) -> None:
        self._begun.pop()

    def heard(self) -> None:
        self._begun[:] = [time.monotonic()] * len(self._begun)

    def _look(self) -> None:
        while not self.over.wait(min(1.0, self._longest / 4)):
            begun = self._begun[:1]
            if begun and time.monotonic() - begun[0] > self._longest:
                for held in list(self._connections):  # a thread that waits on it fails at once
                    with (
                        contextlib.suppress(Exception),  # closed meanwhile, as its driver says it
                        socket.socket(fileno=os.dup(held.fileno())) as line,
                    ):
                        line.shutdown(socket.SHUT_RDWR)


def _is_locked(away: StoreAway) -> bool:
    return _is_operational(away) and "lock" in str(away.__cause__)


def _is_operational(away: StoreAway) -> bool:
    """Return True for a driver's operational error, which leaves the store itself intact."""
    return any(kind.__name__ == "OperationalError" for kind in type(away.__cause__).__mro__)


def conflict_free_insert(connection: sa.Connection, table: sa.Table) -> Any:
    """The dialect's own insert, which knows ON CONFLICT."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def append_once(
    connection: sa.Connection, table: sa.Table, key: str, event: Mapping[str, Any]
) -> bool:
    """Append an event within a `write()`; False where one with this `key` is there already."""
    insert = conflict_free_insert(connection, table).values(dict(event))
    insert = insert.on_conflict_do_nothing(index_elements=[key]).returning(table.c[key])
    return connection.execute(insert).first() is not None


def renew_statistics(connection: sa.Connection) -> None:
    """Update PostgreSQL's statistics after many rows were added at once. Until it knows that a
    table has grown, it reads all of it to find the few new rows; SQLite needs none of this.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")


def _sqlite_engine(file: Path, patience: float, *, alone: bool = False) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False},
        hide_parameters=True,  # what a rater wrote is not for the log
    )
    sa.event.listen(engine, "handle_error", _as_away)

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # before the log is first used
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A deferred transaction that turns to writing can fail at once when another process writes;
        # an immediate one waits for its turn.
        writing = connection.get_execution_options().get("evenhand_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _url_engine(url: str, patience: float) -> sa.Engine:
    check_url(url)
    kind = url.partition("://")[0]  # the URL may hold a password: name its kind only
    try:
        target = sa.make_url(url)
        has_limits = target.drivername == "postgresql+psycopg"
        reach = {name: _REACH[name] for name in _REACH.keys() - target.query.keys() if has_limits}
        options = {"pool_pre_ping": True, "hide_parameters": True}
        engine = sa.create_engine(url, connect_args=reach, **options)
        sa.event.listen(engine, "handle_error", _as_away)
        if engine.dialect.name == "postgresql":  # limit waits for a lock, and for a lost client
            limits = {"lock_timeout": round(patience * 1000), **_VANISHED}
            commands = "; ".join(f"SET {name} = {value}" for name, value in limits.items())

            @sa.event.listens_for(engine, "connect")
            def _configure(connection: Any, _record: Any) -> None:
                connection.execute(commands)
                connection.commit()

        with engine.connect():
            return engine
    except StoreAway as error:
        reason = str(error.__cause__).splitlines()[0]
        raise StoreAway(f"the store ({kind}) cannot be opened: {reason}") from error.__cause__
    except ModuleNotFoundError as error:
        raise InputError(
            f"the store needs {error.name}, which is not installed; for PostgreSQL: "
            "pip install 'evenhand[postgresql]'"
        ) from None
    except (sa.exc.SQLAlchemyError, ImportError, ValueError) as error:
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        raise InputError(f"the store ({kind}) cannot be opened: {reason}") from None


def _as_away(context: sa.engine.ExceptionContext) -> StoreAway | None:
    """The one place where drivers' errors become `StoreAway`; others are faults of the program."""
    error = context.original_exception
    if isinstance(error, sqlite3.DatabaseError):
        # The lowest byte is the kind of error (SQLite, "Result and Error Codes").
        is_away = getattr(error, "sqlite_errorcode", 0) & 0xFF in _AWAY_CODES
    else:
        is_away = any(error_type.__name__ in _AWAY_NAMES for error_type in type(error).__mro__)
    return StoreAway(_NO_ANSWER.format(reason=str(error).splitlines()[0])) if is_away else None


# Addresses of databases as study.toml gives them, checked before a driver reads them. A driver's
# messages show what it takes for the host; where a password holds an @ that is not escaped, that
# would be the tail of the password.

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DRIVER = re.compile(r"^postgres(ql)?://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]]*)(:\d{1,5})?")
_FORM = (
    "the address of the database cannot be read; write "
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %3A for :, %2F for /, %23 for "
    "#, %3F for ? and %25 for % in a password, or leave the password to the environment: ${NAME}"
)


def check_url(url: str) -> None:
    """Raise InputError, which shows nothing of it, where password and host of an address cannot be
    told apart.

    >>> check_url("postgresql://lead:p%40ss@db.example:5432/study?sslmode=verify-full")
    >>> check_url("postgresql://lead:p@ss@db.example/study")
    Traceback (most recent call last):
    evenhand.errors.InputError: the address of the database cannot be read; write ...
    """
    _, is_address, rest = url.partition("://")
    authority, *behind = re.split(r"[/?#]", rest, maxsplit=1)
    before, _, after = authority.rpartition("@")
    is_clear = "@" not in "".join([before, *behind])
    if not (is_address and is_clear and all(map(_HOST.fullmatch, after.split(",")))):
        raise InputError(_FORM)


_LIBPQ = ("PGPASSWORD", "PGSERVICE")
"""Variables from which the driver takes a password where the address has none."""
_ELSEWHERE = {"service", "passfile", "sslkey", "gssdelegation"}
"""Parameters of an address that make the driver send what is outside the study's folder."""


def check_store(location: str, folder: Path) -> None:
    """Raise InputError where the `store` of a study's settings would send what it may not to a
    database, or names a file that is not in the study's folder.
    """
    if is_trusted(folder, location):
        return
    names = _VARIABLE.findall(location)
    kind, is_address, rest = location.partition("://")
    if is_address and kind.startswith("sqlite"):  # a file anywhere
        raise InputError(written("trust.outside", file="study.toml", key="store", name=location))
    if is_address:
        login = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
        asked = parse_qs(rest.partition("?")[2])
        if not login.partition(":")[2] and "password" not in asked:
            names += [name for name in _LIBPQ if os.environ.get(name)]
        names += sorted(_ELSEWHERE & asked.keys())
    elif not names:
        inside(folder, location, "store")
    for name in names:
        check_variable(folder / "study.toml", "store", name, location)


def resolved(location: str) -> str:
    """Return the location with each `${NAME}` replaced from the environment, so that no file need
    hold a password. A value within a URL is quoted; a `${NAME}` alone may hold a whole URL.

    Raises InputError where a variable is not set.

    >>> resolved("study.db")
    'study.db'
    >>> resolved("postgresql://lead@host/db")
    'postgresql+psycopg://lead@host/db'
    """

    def value(match: re.Match[str]) -> str:
        if (setting := os.environ.get(match[1])) is None:
            raise InputError(
                f"study.toml: store names the environment variable {match[1]}, which is not set; "
                "set it"
            )
        return setting if match[0] == location else quote(setting, safe="")

    return _DRIVER.sub("postgresql+psycopg://", _VARIABLE.sub(value, location))


def is_url(location: str) -> bool:
    """Return True if a resolved location is a database's URL, not a file."""
    return "://" in location


# Logs: tables to which events are only ever added, each with the time at which it came. An event is
# a row; one with a dataclass of its own is read and written as that (`EventLog`).

Event = TypeVar("Event")


def append(connection: sa.Connection, table: sa.Table, *events: Mapping[str, Any]) -> None:
    """Append events within a `write()`. They come now, unless they say when (`created_at`)."""
    if events:
        rows = [{"created_at": utc_now(), **event} for event in events]
        connection.execute(sa.insert(table), rows)


@dataclass(frozen=True)
class EventLog(Generic[Event]):
    """The log of one kind of event: a table, and the dataclass whose fields are columns of it."""

    table: sa.Table
    kind: type[Event]

    def append(self, store: Database, events: Sequence[Event]) -> None:
        """Append events; durable on return."""
        if events:
            rows = [asdict(event) for event in events]  # type: ignore[call-overload]
            with store.write() as connection:
                append(connection, self.table, *rows)

    def all(self, store: Database, *where: sa.ColumnElement[bool]) -> list[Event]:
        """Return the events that meet all conditions, in the order in which they came."""
        with store.read() as connection:
            return self.within(connection, *where)

    def within(self, connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Event]:
        """Return the same as `all`, as seen by a transaction."""
        columns = [self.table.c[field.name] for field in fields(self.kind)]  # type: ignore[arg-type]
        query = sa.select(*columns).where(*where).order_by(self.table.c.event_id)
        return [self.kind(**row._mapping) for row in connection.execute(query)]
