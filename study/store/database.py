"""Where a study is kept: SQLAlchemy Core over SQLite in WAL mode, or PostgreSQL by URL.

What `write()` commits is on disk. Within a process all threads share one SQLite connection under a
lock: a connection per thread runs into "database is locked" under load.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool

from evenhand.errors import InputError
from evenhand.study.store.address import is_url, resolved
from evenhand.study.store.schema import SCHEMA_VERSION, meta, metadata
from evenhand.study.tables.private import new_file

if TYPE_CHECKING:
    import pandas as pd

_BUSY_MILLISECONDS = 30_000
_BUSY_ALONE = 2_000  # who wants to be alone learns soon that others are there
_SCHEMA = "schema"  # the row of `meta` that holds the version
_IN_USE = (
    "the study is open elsewhere; stop `evenhand annotate` and every other run on it, then run "
    "this again"
)
_LOCKED = (
    "another run has the study to itself, such as `evenhand store`; run this when it has ended"
)
_ADVISORY_LOCK = 0x65766E68  # one writer at a time on PostgreSQL too


class Database:
    """A study's tables, and transactions on them."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._lock = threading.RLock()

    @classmethod
    def open(cls, location: str, folder: Path, *, create: bool = False) -> Self:
        """The store at a URL, or at a file name within the study's folder.

        Raises InputError where there is none (unless `create`) or its schema is not this one.
        """
        store = cls.connect(location, folder, create=create)
        try:
            if create:
                store.create_tables()
            else:
                store.check_schema()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def connect(
        cls, location: str, folder: Path, *, create: bool = False, alone: bool = False
    ) -> Self:
        """The same of whatever schema it is, and empty where it is new. With `alone` nobody else
        may have it open, now or until it is closed: see `only_user`.
        """
        location = resolved(location)
        if is_url(location):
            return cls(_url_engine(location))
        file = folder / location
        if not create and not file.is_file():
            raise InputError(f"the study's store {location} is missing from {folder}")
        if not os.access(file if file.exists() else folder, os.W_OK):
            raise InputError(f"the study's store {file} cannot be written; mend its permissions")
        if create:
            new_file(file)  # the log beside it takes over its mode
        return cls(_sqlite_engine(file, alone=alone))

    def create_tables(self) -> None:
        """Make every table. Raises InputError where the database holds a study."""
        with self.write() as connection:
            if sa.inspect(connection).has_table(meta.name):
                raise InputError("the database holds a study already; name an empty database")
            metadata.create_all(connection)
            connection.execute(sa.insert(meta).values(key=_SCHEMA, value=SCHEMA_VERSION))

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction that excludes every other writer, in this and any other process."""
        with self._lock, self.engine.connect() as connection:
            connection = connection.execution_options(evenhand_write=True)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
                yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One transaction that sees one state and changes nothing."""
        with self._lock, self.engine.connect() as connection:
            connection = connection.execution_options(evenhand_write=False)
            with connection.begin():
                yield connection

    def table(self, query: sa.Select[Any]) -> pd.DataFrame:
        """What a query finds: a row for each of its rows, its columns by their names."""
        import pandas as pd

        with self.read() as connection:
            found = connection.execute(query)
            return pd.DataFrame([tuple(row) for row in found], columns=list(found.keys()))

    @contextmanager
    def only_user(self) -> Iterator[sa.Connection]:
        """One transaction while nobody else has the store open: what others would write after it
        could be lost. Raises InputError where somebody has.
        """
        try:
            with self._lock, self.engine.connect() as connection, connection.begin():
                if connection.dialect.name == "postgresql":
                    _keep_others_out(connection)
                yield connection
        except sa.exc.OperationalError as error:
            if not _is_locked(error):
                raise
            raise InputError(_IN_USE) from None

    def schema_version(self) -> int:
        """Raises InputError where this is no store, or a newer evenhand wrote it."""
        version = None
        try:
            with self.read() as connection:
                found = connection.execute(sa.select(meta.c.value).where(meta.c.key == _SCHEMA))
                version = found.scalar_one_or_none()
        except sa.exc.DatabaseError as error:
            if _is_locked(error):
                raise InputError(_LOCKED) from None
        if version is None or not version.isdecimal():
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
            found = sa.inspect(connection).get_multi_columns()
        there = {table: {column["name"] for column in own} for (_, table), own in found.items()}
        for table in metadata.tables.values():
            if missing := set(table.columns.keys()) - there.get(table.name, set()):
                raise InputError(
                    f"the store is damaged: table {table.name} lacks the column "
                    f"{min(missing)}; restore a backup (`evenhand restore`)"
                )


def set_schema_version(connection: sa.Connection) -> None:
    """Note that the tables are now those of the program."""
    connection.execute(sa.update(meta).where(meta.c.key == _SCHEMA).values(value=SCHEMA_VERSION))


def _is_locked(error: sa.exc.DatabaseError) -> bool:
    return isinstance(error, sa.exc.OperationalError) and "lock" in str(error.orig)


def _keep_others_out(connection: sa.Connection) -> None:
    # Whoever opens the study looks into `meta` first, and waits there.
    connection.execute(sa.text("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE NOWAIT"))
    others = sa.text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    if connection.execute(others).scalar_one():
        raise InputError(_IN_USE)


def conflict_free_insert(connection: sa.Connection, table: sa.Table) -> Any:
    """The dialect's own insert, which knows ON CONFLICT."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def renew_statistics(connection: sa.Connection) -> None:
    """For after many rows came at once. Until PostgreSQL knows that a table has grown it reads the
    whole of it for the few rows that are new; SQLite has no such mind of its own.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")


def _sqlite_engine(file: Path, *, alone: bool = False) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        busy = _BUSY_ALONE if alone else _BUSY_MILLISECONDS
        connection.execute(f"PRAGMA busy_timeout = {busy}")
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


def _url_engine(url: str) -> sa.Engine:
    try:
        engine = sa.create_engine(url, pool_pre_ping=True)
        with engine.connect():
            return engine
    except ModuleNotFoundError as error:
        raise InputError(
            f"the store needs {error.name}, which is not installed; for PostgreSQL: "
            "pip install 'evenhand[postgresql]'"
        ) from None
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        # The URL may hold a password: name its kind only.
        kind = url.partition("://")[0]
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        raise InputError(f"the store ({kind}) cannot be opened: {reason}") from None
