"""People's remarks to their labels: confidence, rationale, and flags on units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.schema import flag_events, remarks
from evenhand.study.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

REMARKS_COLUMNS = (
    "kind",
    "unit_id",
    "rubric",
    "rater_id",
    "order",
    "draw",
    "confidence",
    "reason",
    "text",
    "rubric_hash",
    "created_at",
)
WITHDRAWN = "withdrawn"
"""The kind of the event that takes a flag back, by the rater who raised it."""


def add_remark(connection: sa.Connection, event: dict[str, Any]) -> bool:
    """Append one remark; False where its `submit_id` is there already."""
    insert = conflict_free_insert(connection, remarks).values(event)
    insert = insert.on_conflict_do_nothing(index_elements=["submit_id"])
    return connection.execute(insert.returning(remarks.c.event_id)).first() is not None


def remarks_table(store: Store) -> pd.DataFrame:
    """Return all remarks in the order in which they came, edits included: `REMARKS_COLUMNS`, and
    `withdrawn_at`, when a flag's rater took it back ("" if they did not).
    """
    withdrawn = (
        sa.select(sa.func.min(flag_events.c.created_at))
        .where(flag_events.c.flag_id == remarks.c.event_id, flag_events.c.kind == WITHDRAWN)
        .scalar_subquery()
    )
    said = (remarks.c[name] for name in REMARKS_COLUMNS)
    query = sa.select(*said, sa.func.coalesce(withdrawn, "").label("withdrawn_at"))
    return store.table(query.order_by(remarks.c.event_id)).astype({"confidence": "Int64"})


def standing(said: pd.DataFrame) -> pd.DataFrame:
    """Remarks without the flags that were withdrawn."""
    return said[said["withdrawn_at"] == ""]
