"""Single values of a study, a row of `meta` each: its secret, and when something last happened."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from evenhand.study.store.database import Database, add_secret, conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import meta

# The secret: random bytes made with the store, kept in it alone, and never shown. It signs tokens,
# and draws what annotators must not foresee. Backups hold it, exports do not.


def study_secret(store: Database) -> bytes:
    """Return the secret; made now where the store is of a version that made it late."""
    query = sa.select(meta.c.value).where(meta.c.key == "secret")
    found = store.values(query)
    if not found:
        with store.write() as connection:
            add_secret(connection)
            found = store.values(query)
    return bytes.fromhex(found[0])


def key_for(store: Database, purpose: str) -> bytes:
    """Return a key for one purpose only, which reveals nothing of the secret or of other keys."""
    return hmac.new(study_secret(store), purpose.encode(), hashlib.sha256).digest()


# Times of the last event of a kind


Moment = Literal["asked", "backup"]
"""A check that the store can be written; a good backup made."""


def note_moment(store: Database, what: Moment) -> None:
    """Record that this event happened now."""
    key, now = f"last_{what}", utc_now()
    with store.write() as connection:
        insert = conflict_free_insert(connection, meta).values(key=key, value=now)
        again = insert.on_conflict_do_update(index_elements=["key"], set_={"value": now})
        connection.execute(again)


def hours_since_backup(store: Database) -> float | None:
    """Return the hours since the last good backup; None if there was none."""
    query = sa.select(meta.c.value).where(meta.c.key == "last_backup")
    if not (found := store.values(query)):
        return None
    passed = datetime.now(UTC) - datetime.fromisoformat(found[0])
    return round(passed.total_seconds() / 3600, 2)
