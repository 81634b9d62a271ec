"""Leases on units to adjudicate, so that two adjudicators at work never get the same one.

A lease runs out, so that a unit comes back from an adjudicator who has left. Leases divide the work
and decide nothing: decisions are labels, and appended like any.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.desk.next_tasks import minutes_ago
from evenhand.study.questions import Key
from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import adjudication_leases as leases
from evenhand.study.store.schema import labels
from evenhand.study.store.store import Store

LEASE_MINUTES = 15.0


def last_label(store: Store) -> int:
    """Return the number of the latest label: later ones have not been seen yet."""
    with store.read() as connection:
        return connection.execute(sa.select(sa.func.max(labels.c.event_id))).scalar_one() or 0


def take_first(store: Store, holder: str, keys: Sequence[Key], seen: int) -> Key | None:
    """Lease the first of these units that no other login has open, or has decided since the label
    number `seen`; None if there is none.

    `holder` identifies the login. Any other unit that it had open is given back.
    """
    with store.write() as connection:
        taken = _taken(connection, holder, seen)
        key = next((key for key in keys if key not in taken), None)
        connection.execute(sa.delete(leases).where(leases.c.holder == holder))  # one at a time
        if key is not None:
            row = {"unit_id": key[0], "rubric": key[1], "holder": holder, "taken_at": utc_now()}
            insert = conflict_free_insert(connection, leases).values(row)
            again = {"holder": holder, "taken_at": row["taken_at"]}
            connection.execute(
                insert.on_conflict_do_update(index_elements=["unit_id", "rubric"], set_=again)
            )
    return key


def give_back(store: Store, holder: str) -> None:
    """Give back the unit that this login has open."""
    with store.write() as connection:
        connection.execute(sa.delete(leases).where(leases.c.holder == holder))


def check_held(connection: sa.Connection, holder: str, key: Key) -> None:
    """Raise InputError unless this login was the last to open the unit.

    Its lease may be over: it is enough that no other login has taken the unit since.
    """
    query = sa.select(leases.c.holder).where(leases.c.unit_id == key[0], leases.c.rubric == key[1])
    if connection.execute(query).scalar_one_or_none() != holder:
        raise InputError(
            "another adjudicator has this unit now; nothing was stored, so go on with the next"
        )


def _taken(connection: sa.Connection, holder: str, seen: int) -> set[Key]:
    running = leases.c.taken_at >= minutes_ago(LEASE_MINUTES)
    others = sa.select(leases.c.unit_id, leases.c.rubric).where(running, leases.c.holder != holder)
    decided = sa.select(labels.c.unit_id, labels.c.rubric).where(
        labels.c.event_id > seen, labels.c.rater_kind == "adjudicator"
    )
    return {
        (row.unit_id, row.rubric)
        for query in (others, decided)
        for row in connection.execute(query)
    }
