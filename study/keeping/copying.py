"""Copying all rows of one database to another, SQLite or PostgreSQL, with proof that none changed.

The tables are taken as they are found, so a store of an older schema is copied unchanged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.store.database import Database, renew_statistics
from evenhand.study.store.schema import metadata

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
