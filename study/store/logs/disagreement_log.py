"""The log of how the lead sorted disagreements between a grader and people. Append-only.

The latest judgment on a unit and grader counts, and an empty one takes the former back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

import sqlalchemy as sa

from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import is_latest, sorted_disagreements
from evenhand.study.store.store import Store

Kind = Literal["grader_wrong", "people_wrong", "rubric_unclear"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class SortedDisagreement:
    """A judgment by the lead `done_by` on who is wrong where a grader's label differs from
    people's.

    `kind` is one of `KINDS`, or empty where a former judgment is taken back.
    """

    rubric: str
    rubric_hash: str
    unit_id: str
    grader: str
    kind: Kind | Literal[""]
    note: str = ""
    done_by: str = ""
    created_at: str = field(default_factory=utc_now)


def add_sorted(store: Store, found: SortedDisagreement) -> None:
    """Append one; durable on return."""
    with store.write() as connection:
        connection.execute(sa.insert(sorted_disagreements).values(asdict(found)))


def ever_sorted(store: Store, rubric: str) -> set[str]:
    """Return the ids of the units on which the lead ever sorted a disagreement, even if taken
    back.
    """
    table = sorted_disagreements
    with store.read() as connection:
        query = sa.select(table.c.unit_id).where(table.c.rubric == rubric).distinct()
        return set(connection.execute(query).scalars())


def all_sorted(store: Store, accepted: Mapping[str, Collection[str]]) -> list[SortedDisagreement]:
    """The latest on each unit and grader under a text that `accepted` (rubric -> hashes) names, in
    the order in which they came.
    """
    table = sorted_disagreements
    columns = [table.c[name] for name in SortedDisagreement.__dataclass_fields__]
    latest = is_latest(table, "rubric", "unit_id", "grader", "rubric_hash")
    query = sa.select(*columns).where(latest).order_by(table.c.event_id)
    with store.read() as connection:
        rows = [SortedDisagreement(**row._mapping) for row in connection.execute(query)]
    counted = (each for each in rows if each.rubric_hash in accepted.get(each.rubric, ()))
    current = {(each.rubric, each.unit_id, each.grader): each for each in counted}
    return [each for each in current.values() if each.kind]
