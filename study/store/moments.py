"""The time of the last event of a kind in a study (such as a backup): a row of `meta` for each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from evenhand.study.store.database import Database, conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import meta

Moment = Literal["asked", "backup"]
"""A check that the store can be written; a good backup made."""


def note_moment(store: Database, what: Moment) -> None:
    """Record that this event happened now."""
    key, now = _key(what), utc_now()
    with store.write() as connection:
        insert = conflict_free_insert(connection, meta).values(key=key, value=now)
        connection.execute(
            insert.on_conflict_do_update(index_elements=["key"], set_={"value": now})
        )


def hours_since_backup(store: Database) -> float | None:
    """Return the hours since the last good backup; None if there was none."""
    query = sa.select(meta.c.value).where(meta.c.key == _key("backup"))
    with store.read() as connection:
        found = connection.execute(query).scalar_one_or_none()
    if found is None:
        return None
    passed = datetime.now(UTC) - datetime.fromisoformat(found)
    return round(passed.total_seconds() / 3600, 2)


def _key(what: Moment) -> str:
    return f"last_{what}"
