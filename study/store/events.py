"""Logs: tables to which events are only ever added, each with the time at which it came.

An event is a row; one with a dataclass of its own is read and written as that (`EventLog`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from evenhand.study.store.database import Database
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import is_latest

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
            with store.write() as connection:
                append(connection, self.table, *self.rows(events))

    def rows(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        """Return the events as rows of the table."""
        return [asdict(event) for event in events]  # type: ignore[call-overload]

    def all(self, store: Database, *where: sa.ColumnElement[bool]) -> list[Event]:
        """Return the events that meet all conditions, in the order in which they came."""
        with store.read() as connection:
            return self.within(connection, *where)

    def within(self, connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Event]:
        """Return the same as `all`, as seen by a transaction."""
        columns = [self.table.c[each.name] for each in fields(self.kind)]  # type: ignore[arg-type]
        found = sa.select(*columns).where(*where).order_by(self.table.c.event_id)
        return [self.kind(**row._mapping) for row in connection.execute(found)]

    def latest(self, store: Database, *key: str) -> list[Event]:
        """Return the last event of every key, in the order in which they came."""
        return self.all(store, is_latest(self.table, *key))
