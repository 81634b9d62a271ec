"""How people's answers were given: how the responses were shown, and which words decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.schema import answer_details, is_latest, labels
from evenhand.study.store.store import Store
from evenhand.study.tables.evidence import Mark, written_marks
from evenhand.study.tables.ratings import RATING_KEY

if TYPE_CHECKING:
    import pandas as pd

ANSWERS_COLUMNS = (*RATING_KEY, "rubric_hash", "label", "created_at", "display", "evidence")


def add_details(
    connection: sa.Connection, submit_id: str, display: str, evidence: Iterable[Mark]
) -> None:
    """Append what belongs to one answer, whose label is stored within the same transaction."""
    cells = {"display": display, "evidence": written_marks(evidence)}
    insert = conflict_free_insert(connection, answer_details)
    connection.execute(insert.values(submit_id=submit_id, **cells))


def answers_table(store: Store) -> pd.DataFrame:
    """`ANSWERS_COLUMNS` of the latest answer of every person to every question, in the order in
    which they came; those that were imported or have no label too.

    `display` is "" where it is not known, `evidence` a JSON list of `{"text", "start", "end"}`.
    """
    import json

    known = (labels.c[name] for name in ANSWERS_COLUMNS[:-2])
    query = (
        sa.select(*known, answer_details.c.display, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(labels.c.rater_kind == "human", is_latest(labels, *RATING_KEY, "rubric_hash"))
        .order_by(labels.c.event_id)
    )
    table = store.table(query)

    def text(marks: Any) -> str:
        return json.dumps(marks or [])

    return table.assign(
        display=table["display"].fillna("").astype(str), evidence=table["evidence"].map(text)
    )
