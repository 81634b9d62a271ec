"""The database of a study: SQLAlchemy Core over SQLite in WAL mode, or PostgreSQL by URL.

`Database` opens one and gives transactions. What `write()` commits is on disk. Within a process all
threads share one SQLite connection under a lock: a connection per thread runs into "database is
locked" under load. A database of either kind that does not answer raises `StoreAway`. Sections
after the class: servers that hang, engines, addresses in study.toml, logs of events.
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
from urllib.parse import parse_qs, quote, unquote

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

SCHEMA = "schema"  # the key of the row of `meta` that holds the version of the tables

PATIENCE = 30.0  # default patience: seconds for which a call waits for others' work on the store
_QUEUE_FACTOR = 3  # multiple of the patience to wait for other threads, each of which may wait
_HANG_FACTOR = 8  # multiple of a short patience after which the server counts as hanging
SILENT = 60.0  # seconds within which a server must answer in long work: see `report_answer`
_IDLE = 10.0  # seconds after which PostgreSQL ends an idle writer: others wait for its lock
_ALONE_PATIENCE = 2.0  # seconds to wait for exclusive use
_IN_USE = (
    "the study is open elsewhere; stop `evenhand annotate` and every other run on it, then run "
    "this again"
)
_LOCKED = (
    "another run has the study to itself, such as `evenhand store`; run this when it has ended"
)
_NO_ANSWER = "the store does not answer: {reason}"
_OTHER_SESSIONS = sa.text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"  # not the server's own background work
)
_ADVISORY_LOCK = 0x65766E68  # a number of our own: the lock of the one writer at a time
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK))
_LOCK_BOUNDED = sa.select(
    sa.func.set_config("idle_in_transaction_session_timeout", str(round(_IDLE * 1000)), True),
    sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK),
)


class Database:
    """A study's tables, and transactions on them."""

    def __init__(self, engine: sa.Engine, patience: float, silent: float | None = None) -> None:
        """Wrap an engine. For `patience` and `silent`, in seconds, see `connect`."""
        self.engine = engine
        self._patience = patience
        self._lock = threading.RLock()
        self._open_write: sa.Connection | None = None  # of the thread that holds the lock
        limit = silent  # seconds without an answer before the server is given up; None: no limit
        if silent is not None:  # long work: each statement that ends is an answer
            sa.event.listen(engine, "after_cursor_execute", lambda *_: self.report_answer())
        elif patience < PATIENCE:  # with the default patience a server may take its time
            limit = _HANG_FACTOR * patience
        is_server = engine.dialect.name == "postgresql"
        self._watch = _Watch(engine, limit) if is_server and limit is not None else None

    @classmethod
    def open(cls, location: str, folder: Path, *, patience: float = PATIENCE) -> Self:
        """Open the store at a URL, or at a file name within the study's folder. Raises InputError
        where its schema is not the program's; StoreAway where there is none and, as every method
        does, where it has not answered after `patience` seconds.
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
        """Open a database of any schema, or with `create` a new one. With `alone` no other process
        may have it open, now or until it is closed: see `only_user`. A server that is silent for
        `silent` seconds within a transaction is given up; see `report_answer`.
        """
        if create:  # the operator has named it
            confirm(location)
        else:
            check_store(location, folder)
        location = resolved(location)
        if "://" in location:
            return cls(_url_engine(location, patience), patience, silent)
        file = folder / location
        if not create and not file.is_file():
            raise StoreAway(f"the study's store {location} is missing from {folder}")
        if not os.access(file if file.exists() else folder, os.W_OK):
            raise StoreAway(f"the study's store {file} cannot be written; fix its permissions")
        if create:
            new_file(file)  # SQLite gives its log the same mode
        patience = _ALONE_PATIENCE if alone else patience
        return cls(_sqlite_engine(file, patience, alone=alone), patience)

    def create_tables(self) -> None:
        """Create every table. Raises InputError where the database holds a study."""
        with self.write() as connection:
            if sa.inspect(connection).has_table(meta.name):
                raise InputError("the database holds a study already; name an empty database")
            metadata.create_all(connection)
            connection.execute(sa.insert(meta).values(key=SCHEMA, value=SCHEMA_VERSION))
            add_secret(connection)

    def report_answer(self) -> None:
        """Report to the watch of a long transaction that the server has answered."""
        if self._watch is not None:
            self._watch.note_answer()

    def close(self) -> None:
        """Close all connections."""
        if self._watch is not None:
            self._watch.is_closed.set()
        self.engine.dispose()

    @contextmanager
    def write(self, *, bounded: bool = True) -> Iterator[sa.Connection]:
        """Open a transaction that excludes every other writer, in this and any other process. A
        `bounded` one is ended by the server if this process is silent in the middle of it. Reads
        and writes of the same thread within it are part of it.
        """
        with self._turn():
            if self._open_write is not None:
                yield self._open_write
                return
            with self.engine.connect() as connection:
                connection = connection.execution_options(evenhand_write=True)
                with connection.begin():
                    if connection.dialect.name == "postgresql":
                        connection.execute(_LOCK_BOUNDED if bounded else _LOCK)
                    self._open_write = connection
                    try:
                        yield connection
                    finally:
                        self._open_write = None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a read-only transaction on one state of the data, or join an open `write()`."""
        with self._turn():
            if self._open_write is not None:
                yield self._open_write
                return
            with self.engine.connect() as connection:
                connection = connection.execution_options(evenhand_write=False)
                if connection.dialect.name == "postgresql":  # else each statement sees another
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield connection

    def rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return the rows of a query."""
        with self.read() as connection:
            return connection.execute(query).all()

    def values(self, query: sa.Executable) -> list[Any]:
        """Return the first cell of each row of a query."""
        return [row[0] for row in self.rows(query)]

    def table(self, query: sa.Select[Any]) -> pd.DataFrame:
        """Return the rows of a query as a table with its columns."""
        with self.read() as connection:
            rows = connection.execute(query)
            return pd.DataFrame([tuple(row) for row in rows], columns=list(rows.keys()))

    @contextmanager
    def only_user(self) -> Iterator[sa.Connection]:
        """Open a transaction as the only user. Raises InputError if another process has it open."""
        try:
            with self._turn(), self.engine.connect() as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    # A process that opens the study reads `meta` first, and waits there.
                    connection.execute(sa.text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE NOWAIT"))
                    if connection.execute(_OTHER_SESSIONS).scalar_one():
                        raise InputError(_IN_USE)
                yield connection
        except StoreAway as error:
            if not _is_locked(error):
                raise
            raise InputError(_IN_USE) from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock of this process's threads. Raises StoreAway if others hold it too long."""
        if not self._lock.acquire(timeout=_QUEUE_FACTOR * self._patience):
            raise StoreAway(_NO_ANSWER.format(reason="others wait for it"))
        try:
            with self._watch or contextlib.nullcontext():
                yield
        finally:
            self._lock.release()

    def schema_version(self) -> int:
        """Return the schema's version. Raises InputError for no store, or a newer version."""
        version = ""  # as it stays without a database, a table `meta` or its row
        try:
            version = "".join(self.values(sa.select(meta.c.value).where(meta.c.key == SCHEMA)))
        except StoreAway as error:
            if _is_locked(error):
                raise InputError(_LOCKED) from None
            if _is_operational(error):  # it does not answer; otherwise it is no database
                raise
        except sa.exc.DatabaseError:
            pass  # no table `meta`
        if not version.isdecimal():
            raise InputError("the store is no store of an evenhand study, or it is damaged")
        if int(version) > int(SCHEMA_VERSION):
            raise InputError(
                f"the store is of version {version}, newer than this evenhand, which knows "
                f"{SCHEMA_VERSION}; update evenhand"
            )
        return int(version)

    def check_schema(self) -> None:
        """Raise InputError unless the tables are those that the program reads and writes."""
        if (version := self.schema_version()) != int(SCHEMA_VERSION):
            raise InputError(
                f"the store is of version {version}, this evenhand reads {SCHEMA_VERSION}; run "
                "`evenhand store upgrade` on the study's folder"
            )
        with self.read() as connection:
            columns = sa.inspect(connection).get_multi_columns()
        names = {table: {col["name"] for col in cols} for (_, table), cols in columns.items()}
        for table in metadata.tables.values():
            if missing := set(table.columns.keys()) - names.get(table.name, set()):
                raise InputError(
                    f"the store is damaged: table {table.name} lacks the column "
                    f"{min(missing)}; restore a backup (`evenhand restore`)"
                )


def add_secret(connection: sa.Connection) -> None:
    """Add the study's secret, unless the store has one."""
    append_once(connection, meta, "key", {"key": "secret", "value": secrets.token_hex(32)})


# ---- servers that hang --------------------------------------------------------------------------
class _Watch:
    """Closes the connections to a server that has not answered for `limit` seconds: the driver
    would wait for as long as the server hangs. Entered in each `Database._turn`, perhaps nested.
    """

    def __init__(self, engine: sa.Engine, limit: float) -> None:
        self.is_closed = threading.Event()
        self._limit = limit
        self._last_answers: list[float] = []  # time of the last answer, for each nested turn
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        sa.event.listen(engine, "checkout", lambda opened, *_: self._connections.add(opened))
        threading.Thread(target=self._check, daemon=True).start()

    def __enter__(self) -> None:
        self._last_answers.append(time.monotonic())

    def __exit__(self, *_: object) -> None:
        self._last_answers.pop()

    def note_answer(self) -> None:
        """Record that the server has answered."""
        self._last_answers[:] = [time.monotonic()] * len(self._last_answers)

    def _check(self) -> None:
        """End a turn that has waited too long; runs in a thread until `is_closed` is set."""
        while not self.is_closed.wait(min(1.0, self._limit / 4)):
            outermost = self._last_answers[:1]  # a copy: the turn may end at any time
            if outermost and time.monotonic() - outermost[0] > self._limit:
                for connection in list(self._connections):  # a waiting thread fails at once
                    with (
                        contextlib.suppress(Exception),  # closed meanwhile: each driver has its own
                        # A duplicate of the descriptor: closing it leaves the driver's own open.
                        socket.socket(fileno=os.dup(connection.fileno())) as tcp_socket,
                    ):
                        tcp_socket.shutdown(socket.SHUT_RDWR)


# ---- engines ------------------------------------------------------------------------------------
# Errors of drivers that mean that the store is away, by SQLite's codes and by name.
_AWAY_CODES = (
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
)  # fmt: skip
_AWAY_NAMES = {
    "OperationalError", "InterfaceError",  # DB-API 2.0 (PEP 249)
    "IdleInTransactionSessionTimeout",  # of `_IDLE`, reported at the next statement
}  # fmt: skip
# libpq's connection settings: without them TCP waits long for a host that is gone.
_CLIENT_LIMITS = {
    "connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}  # fmt: skip
# The server's settings, so that the locks of a client that is gone are soon free again.
_SERVER_LIMITS = {
    "tcp_keepalives_idle": 5, "tcp_keepalives_interval": 3, "tcp_keepalives_count": 2,
    "tcp_user_timeout": 10_000,
}  # fmt: skip


def _sqlite_engine(file: Path, patience: float, *, alone: bool = False) -> sa.Engine:
    """Return an engine for a file; `alone` excludes other processes."""
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False},
        hide_parameters=True,  # raters' texts must not be logged
    )
    sa.event.listen(engine, "handle_error", _store_error)

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # `_begin` opens transactions, not the driver
        connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # before the log is first used
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # An immediate transaction waits for other writers; a deferred one can fail when it writes.
        # `read` and `write` set the option; without it (`only_user`) a transaction may write.
        is_write = connection.get_execution_options().get("evenhand_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine


def _url_engine(url: str, patience: float) -> sa.Engine:
    """Return an engine for a URL. Raises StoreAway or InputError where it does not connect."""
    check_url(url)
    kind = url.partition("://")[0]  # the URL may hold a password: name its kind only
    try:
        parsed = sa.make_url(url)
        is_psycopg = parsed.drivername == "postgresql+psycopg"
        unset = _CLIENT_LIMITS.keys() - parsed.query.keys()
        client_limits = {name: _CLIENT_LIMITS[name] for name in unset} if is_psycopg else {}
        options = {"pool_pre_ping": True, "hide_parameters": True}
        engine = sa.create_engine(url, connect_args=client_limits, **options)
        sa.event.listen(engine, "handle_error", _store_error)
        if engine.dialect.name == "postgresql":
            _limit_waits(engine, patience)
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


def _limit_waits(engine: sa.Engine, patience: float) -> None:
    """Limit on PostgreSQL each wait for a lock, and how long a lost client keeps its locks."""
    limits = {"lock_timeout": round(patience * 1000), **_SERVER_LIMITS}

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in limits.items()))
        connection.commit()


def _store_error(context: sa.engine.ExceptionContext) -> StoreAway | None:
    """Return the error to raise instead of a driver's; None where the program is at fault."""
    error = context.original_exception
    if isinstance(error, sqlite3.DatabaseError):
        # The lowest byte is the kind of error (SQLite, "Result and Error Codes").
        is_away = getattr(error, "sqlite_errorcode", 0) & 0xFF in _AWAY_CODES
    else:
        is_away = any(error_type.__name__ in _AWAY_NAMES for error_type in type(error).__mro__)
    return StoreAway(_NO_ANSWER.format(reason=str(error).splitlines()[0])) if is_away else None


def _is_locked(error: StoreAway) -> bool:
    """Return True if another process has locked the store."""
    return _is_operational(error) and "lock" in str(error.__cause__)


def _is_operational(error: StoreAway) -> bool:
    """Return True for a driver's operational error, which leaves the store itself intact."""
    return any(kind.__name__ == "OperationalError" for kind in type(error.__cause__).__mro__)


# ---- addresses of databases in study.toml -------------------------------------------------------
# They are checked before a driver reads them. A driver's messages show the host; where a password
# has an @ that is not escaped, that would be the end of the password.
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DRIVER = re.compile(r"^postgres(ql)?://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]]*)(:\d{1,5})?")
_FORM = (
    "the address of the database cannot be read; write "
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %3A for :, %2F for /, %23 for "
    "#, %3F for ? and %25 for % in a password, or leave the password to the environment: ${NAME}"
)


def check_url(url: str) -> None:
    """Raise InputError, without the address, if its password and host cannot be told apart.

    >>> check_url("postgresql://lead:p%40ss@db.example:5432/study?sslmode=verify-full")
    >>> check_url("postgresql://lead:p@ss@db.example/study")
    Traceback (most recent call last):
    evenhand.errors.InputError: the address of the database cannot be read; write ...
    """
    _, is_address, after_scheme = url.partition("://")
    authority, *after_authority = re.split(r"[/?#]", after_scheme, maxsplit=1)
    login, _, hosts = authority.rpartition("@")
    # For libpq an address, and so perhaps its password, ends at the character NUL.
    is_unambiguous = "@" not in "".join([login, *after_authority]) and "\0" not in unquote(url)
    if not (is_address and is_unambiguous and all(map(_HOST.fullmatch, hosts.split(",")))):
        raise InputError(_FORM)


# Where libpq finds the password of an address without one; the files are Unix's and Windows's. It
# looks up the host's name in them, but sends the password to the `hostaddr` of the address.
_PASSWORD_VARIABLES = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE")
_PASSWORD_FILES = ("~/.pgpass", r"%APPDATA%\postgresql\pgpass.conf")
_SECRET_PARAMETERS = {"service", "passfile", "sslkey", "sslkeylogfile", "gssdelegation"}
"""Parameters of an address that make libpq send secrets from outside the study's folder."""


def check_store(location: str, folder: Path) -> None:
    """Raise InputError where the `store` of a study's settings would send secrets to a database
    without the operator's consent, or names a file that is not in the study's folder.
    """
    if is_trusted(folder, location):
        return
    secrets_sent = _VARIABLE.findall(location)
    kind, is_address, after_scheme = location.partition("://")
    if is_address and kind.startswith("sqlite"):  # a file anywhere
        raise InputError(written("trust.outside", file="study.toml", key="store", name=location))
    if is_address:
        # As the driver gets it: a variable may be empty, and then so is the password.
        after_scheme = _VARIABLE.sub(
            lambda match: quote(os.environ.get(match[1], ""), safe=""), after_scheme
        )
        login = re.split(r"[/?#]", after_scheme, maxsplit=1)[0].rpartition("@")[0]
        parameters = parse_qs(after_scheme.partition("?")[2])
        if not (login.partition(":")[2] or "password" in parameters):
            secrets_sent += [name for name in _PASSWORD_VARIABLES if os.environ.get(name)]
            for file in _PASSWORD_FILES:  # without a home, or such a variable, it stays as it is
                path = Path(os.path.expandvars(os.path.expanduser(file)))  # noqa: PTH111
                secrets_sent += [file] if path.exists() else []
        secrets_sent += sorted(_SECRET_PARAMETERS & parameters.keys())
    elif not secrets_sent:  # a file's name; with ${NAME} alone it may be an address
        inside(folder, location, "store")
    for name in secrets_sent:
        check_variable(folder / "study.toml", "store", name, location)


def resolved(location: str) -> str:
    """Return the location with each `${NAME}` replaced from the environment, so that no file has to
    hold a password, and with the driver in a PostgreSQL URL. A value within a URL is quoted; a
    `${NAME}` alone may hold a whole URL. Raises InputError where a variable is not set.
    """

    def from_environment(match: re.Match[str]) -> str:
        if (setting := os.environ.get(match[1])) is None:
            raise InputError(
                f"study.toml: store names the environment variable {match[1]}, which is not set; "
                "set it"
            )
        return setting if match[0] == location else quote(setting, safe="")

    return _DRIVER.sub("postgresql+psycopg://", _VARIABLE.sub(from_environment, location))


# ---- logs of events -----------------------------------------------------------------------------
# Tables to which events are only added, each with its time. An `EventLog` reads and writes the
# events of one kind as instances of a dataclass.
EventType = TypeVar("EventType")


def append(connection: sa.Connection, table: sa.Table, *events: Mapping[str, Any]) -> None:
    """Append events within a `write()`; without a `created_at` their time is now."""
    if events:
        rows = [{"created_at": utc_now(), **event} for event in events]
        connection.execute(sa.insert(table), rows)


def conflict_free_insert(connection: sa.Connection, table: sa.Table) -> Any:
    """Return the dialect's insert, which has ON CONFLICT."""
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def append_once(
    connection: sa.Connection, table: sa.Table, key: str, event: Mapping[str, Any]
) -> bool:
    """Append a whole event within a `write()`; return False if its value in column `key` exists."""
    insert = conflict_free_insert(connection, table).values(dict(event))
    insert = insert.on_conflict_do_nothing(index_elements=[key]).returning(table.c[key])
    return connection.execute(insert).first() is not None


def renew_statistics(connection: sa.Connection) -> None:
    """Update PostgreSQL's statistics after many rows were added at once. Until it knows that a
    table has grown, it reads all of it to find few new rows; SQLite does not need this.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")


@dataclass(frozen=True)
class EventLog(Generic[EventType]):
    """A log of one kind of event: a table, and the dataclass whose fields are columns of it."""

    table: sa.Table
    kind: type[EventType]

    def append(self, store: Database, events: Sequence[EventType]) -> None:
        """Append events; they are on disk on return."""
        if events:
            rows = [asdict(event) for event in events]  # type: ignore[call-overload]
            with store.write() as connection:
                append(connection, self.table, *rows)

    def all(self, store: Database, *where: sa.ColumnElement[bool]) -> list[EventType]:
        """Return the events that meet all conditions, in the order of time."""
        with store.read() as connection:
            return self.within(connection, *where)

    def within(self, connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[EventType]:
        """Return the events as `all` does, within a transaction."""
        columns = [self.table.c[field.name] for field in fields(self.kind)]  # type: ignore[arg-type]
        query = sa.select(*columns).where(*where).order_by(self.table.c.event_id)
        return [self.kind(**row._mapping) for row in connection.execute(query)]
