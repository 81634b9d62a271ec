"""Details of people's answers: how the responses were shown, and which words decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.schema import answer_details, is_latest, labels
from evenhand.study.store.store import Store
from evenhand.study.tables.evidence import Mark, read_marks, written_marks
from evenhand.study.tables.ratings import RATING_KEY

if TYPE_CHECKING:
    import pandas as pd

ANSWERS_COLUMNS = (*RATING_KEY, "rubric_hash", "label", "created_at", "display", "evidence")


def add_details(
    connection: sa.Connection, submit_id: str, display: str, evidence: Iterable[Mark]
) -> None:
    """Append the details of one answer, whose label is stored within the same transaction."""
    cells = {"display": display, "evidence": written_marks(evidence)}
    insert = conflict_free_insert(connection, answer_details).values(submit_id=submit_id, **cells)
    connection.execute(insert.on_conflict_do_nothing(index_elements=["submit_id"]))


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


def marks_on(
    store: Store, units: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return the words marked with each rater's present answers, by (rubric, unit id); hidden
    repeats are left out. Meant for hundreds of units, not thousands.
    """
    query = (
        sa.select(labels.c.rubric, labels.c.unit_id, labels.c.rater_id, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(
            labels.c.rater_kind == "human",
            labels.c.draw == 0,
            labels.c.unit_id.in_({unit for _, unit in units}),
        )
        .order_by(labels.c.event_id)
    )
    latest: dict[tuple[str, str, str], tuple[Mark, ...]] = {}
    with store.read() as connection:
        for row in connection.execute(query):
            marks = read_marks(row.evidence or []) or ()
            latest[row.rubric, row.unit_id, row.rater_id] = marks
    found: dict[tuple[str, str], list[tuple[str, Mark]]] = {}
    for (rubric, unit, rater), marks in sorted(latest.items()):
        if marks and (rubric, unit) in units:
            found.setdefault((rubric, unit), []).extend((rater, mark) for mark in marks)
    return found
