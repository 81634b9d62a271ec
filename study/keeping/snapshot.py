"""A snapshot of a store at one moment, in an SQLite file of its own, for backups."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.study.store.copying import copy_tables
from evenhand.study.store.database import Database


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
        _back_up(store, file)
    else:
        _copy(store, file)
    with contextlib.closing(sqlite3.connect(file)) as snapshot:
        snapshot.execute("PRAGMA journal_mode = DELETE")  # one file, without a log next to it


def _back_up(store: Database, file: Path) -> None:
    with (
        contextlib.closing(store.engine.raw_connection()) as source,
        contextlib.closing(sqlite3.connect(file)) as target,
    ):
        connection: Any = source.driver_connection
        connection.backup(target)


def _copy(store: Database, file: Path) -> None:
    snapshot = Database.connect(file.name, file.parent, create=True)
    with contextlib.closing(snapshot), store.read() as source, snapshot.write() as target:
        copy_tables(source, target, store.goes_on)


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
            rows = {table: _rows(connection, table) for table in tables}
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


def _rows(connection: sqlite3.Connection, table: str) -> int:
    return _count(connection, f'SELECT count(*) FROM "{table}"')  # noqa: S608 - see `_tables`


def _count(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])
