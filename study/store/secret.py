"""The study's secret: random bytes made with its store, kept in it alone, and never shown.

It signs tokens, and draws what annotators must not foresee. Backups hold it, exports do not.
"""

from __future__ import annotations

import hashlib
import hmac

import sqlalchemy as sa

from evenhand.study.store.database import Database, add_secret
from evenhand.study.store.schema import meta


def study_secret(store: Database) -> bytes:
    """Return the secret; made now where the store is of a version that made it late."""
    query = sa.select(meta.c.value).where(meta.c.key == "secret")
    with store.read() as connection:
        found = connection.execute(query).scalar_one_or_none()
    if found is None:
        with store.write() as connection:
            add_secret(connection)
            found = connection.execute(query).scalar_one()
    return bytes.fromhex(found)


def key_for(store: Database, purpose: str) -> bytes:
    """Return a key for one purpose only, which reveals nothing of the secret or of other keys."""
    return hmac.new(study_secret(store), purpose.encode(), hashlib.sha256).digest()
