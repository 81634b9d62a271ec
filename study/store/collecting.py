"""Locks on collecting for a study on a database server: one process for each part, on any machine.

The lock is the server's own and belongs to a connection: it ends with the process, however that
ends, and within a minute where a whole machine is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from evenhand.study.store.database import Database

_SPACE = 0x65766763
"""Among the advisory locks of the database; the second number says which part of how many."""
_NOTICED = (
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_HELD = sa.text(
    "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def collecting(database: Database, index: int, of: int) -> Iterator[str]:
    """Collect part `index` of `of`. Yields the conflict with another process: "" if there is none,
    "same" if it has this part, or "3" if it collects in three parts.
    """
    with database.engine.connect().execution_options(
        isolation_level="AUTOCOMMIT", evenhand_write=False
    ) as connection:
        for setting in _NOTICED:
            connection.exec_driver_sql(setting)
        mine = sa.func.pg_try_advisory_lock(_SPACE, (of << 16) + index)
        if not connection.execute(sa.select(mine)).scalar_one():
            yield "same"
            return
        try:
            held = connection.execute(_HELD, {"space": _SPACE}).scalars()
            yield next((str(number >> 16) for number in held if number >> 16 != of), "")
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(_SPACE, (of << 16) + index)))
