"""Where a study is kept: SQLAlchemy Core over SQLite in WAL mode, or PostgreSQL by URL.

What `write()` commits is on disk. Within a process all threads share one SQLite connection under a
lock: a connection per thread runs into "database is locked" under load.
"""

from __future__ import annotations

import contextlib
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
from evenhand.study.store.schema import SCHEMA_VERSION, meta, metadata
from evenhand.study.tables.private import new_file

if TYPE_CHECKING:
    import pandas as pd

_BUSY_MILLISECONDS = 30_000
_ADVISORY_LOCK = 0x65766E68  # one writer at a time on PostgreSQL too


class Database:
    """A study's tables, and transactions on them."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._lock = threading.RLock()

    @classmethod
    def open(cls, location: str, folder: Path, *, create: bool = False) -> Self:
        """The store at a URL, or at a file name within the study's folder.

        Raises InputError where there is none (unless `create`) or it is of another version.
        """
        if "://" not in location:
            file = folder / location
            if not create and not file.is_file():
                raise InputError(f"the study's store {location} is missing from {folder}")
            if not os.access(file if file.exists() else folder, os.W_OK):
                raise InputError(
                    f"the study's store {file} cannot be written; mend its permissions"
                )
            if create:
                new_file(file)  # the log beside it takes over its mode
            store = cls(_sqlite_engine(file))
        else:
            store = cls(_url_engine(location))
        if create:
            if sa.inspect(store.engine).has_table(meta.name):
                raise InputError("the database holds a study already; name an empty database")
            metadata.create_all(store.engine)
            store._set_version()
        else:
            store._check_version()
            store._add_missing_tables()
        return store

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

    def _set_version(self) -> None:
        with self.write() as connection:
            connection.execute(
                conflict_free_insert(connection, meta).values(key="schema", value=SCHEMA_VERSION)
            )

    def _add_missing_tables(self) -> None:
        """What an older evenhand did not know yet."""
        with self.read() as connection:
            known = sa.inspect(connection).get_table_names()
        if not metadata.tables.keys() <= set(known):
            with self.write() as connection:
                metadata.create_all(connection)

    def _check_version(self) -> None:
        version = None
        with contextlib.suppress(sa.exc.DatabaseError), self.read() as connection:
            found = connection.execute(sa.select(meta.c.value).where(meta.c.key == "schema"))
            version = found.scalar_one_or_none()
        if version is None:
            raise InputError("the store is no store of an evenhand study, or it is damaged")
        if version != SCHEMA_VERSION:
            raise InputError(
                f"the store is of version {version}, this evenhand reads {SCHEMA_VERSION}; "
                "export it with the evenhand that wrote it and import it into a new study"
            )


def conflict_free_insert(connection: sa.Connection, table: sa.Table) -> Any:
    """The dialect's own insert, which knows ON CONFLICT."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def _sqlite_engine(file: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
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
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        # The URL may hold a password: name its kind only.
        kind = url.partition("://")[0]
        reason = str(getattr(error, "orig", error)).splitlines()[0]
        raise InputError(f"the store ({kind}) cannot be opened: {reason}") from None
