"""Records that come with people's labels: details of each answer, remarks and flags, the languages
in which they were asked, and the events of their sessions. Append-only, and never part of the
`ratings` table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.store.database import EventLog, append
from evenhand.study.store.schema import (
    SHOWN,
    answer_details,
    flag_events,
    is_latest,
    labels,
    remarks,
    session_events,
)
from evenhand.study.store.store import Store
from evenhand.study.tables.ratings import RATING_KEY, Mark, read_marks

ANSWERS_COLUMNS = (*RATING_KEY, "rubric_hash", "label", "created_at", "display", "evidence")
REMARKS_COLUMNS = (
    "kind", "unit_id", "rubric", "rater_id", "order", "draw", "confidence", "reason", "text",
    "rubric_hash", "created_at",
)  # fmt: skip
WITHDRAWN = "withdrawn"
"""The kind of the event that takes a flag back, by the rater who raised it."""
ANSWERED = "answered"
"""The kind of the event that holds a lead's answer to whoever raised a flag."""
_ORIGINAL = ("", "en")


def answers_table(store: Store) -> pd.DataFrame:
    """`ANSWERS_COLUMNS` of the latest answer of every person to every question, in the order in
    which they came; those that were imported or have no label too. `display` is "" where it is not
    known, `evidence` a JSON list of `{"text", "start", "end"}`.
    """
    known = (labels.c[name] for name in ANSWERS_COLUMNS[:-2])
    query = (
        sa.select(*known, answer_details.c.display, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(labels.c.rater_kind == "human", is_latest(labels, *RATING_KEY, "rubric_hash"))
        .order_by(labels.c.event_id)
    )
    table = store.table(query)
    evidence = [json.dumps(marks or []) for marks in table["evidence"]]
    return table.assign(display=table["display"].fillna("").astype(str), evidence=evidence)


def marks_on(
    store: Store, units: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return the words marked with each rater's present answers, by (rubric, unit id); hidden
    repeats are left out. Meant for hundreds of units, not thousands.
    """
    ids = {unit for _, unit in units}
    query = (
        sa.select(labels.c.rubric, labels.c.unit_id, labels.c.rater_id, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(labels.c.rater_kind == "human", labels.c.draw == 0, labels.c.unit_id.in_(ids))
        .order_by(labels.c.event_id)
    )
    latest = {(row.rubric, row.unit_id, row.rater_id): row.evidence for row in store.rows(query)}
    marked: dict[tuple[str, str], list[tuple[str, Mark]]] = {}
    for rubric, unit, rater in sorted(latest):
        marks = read_marks(latest[rubric, unit, rater] or []) or ()
        if marks and (rubric, unit) in units:
            marked.setdefault((rubric, unit), []).extend((rater, mark) for mark in marks)
    return marked


def remarks_table(store: Store) -> pd.DataFrame:
    """Return all remarks in the order in which they came, edits included: `REMARKS_COLUMNS`, and
    `withdrawn_at`, when a flag's rater took it back ("" if they did not).
    """
    withdrawn = (
        sa.select(sa.func.min(flag_events.c.created_at))
        .where(flag_events.c.flag_id == remarks.c.event_id, flag_events.c.kind == WITHDRAWN)
        .scalar_subquery()
    )
    columns = (remarks.c[name] for name in REMARKS_COLUMNS)
    query = sa.select(*columns, sa.func.coalesce(withdrawn, "").label("withdrawn_at"))
    return store.table(query.order_by(remarks.c.event_id)).astype({"confidence": "Int64"})


def standing(remarked: pd.DataFrame) -> pd.DataFrame:
    """Remarks without the flags that were withdrawn."""
    return remarked[remarked["withdrawn_at"] == ""]


def with_shown(store: Store, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings with `page_language` and `shown_hash`, empty for graders and where not
    known. Without the columns where everyone was asked in English.
    """
    key = [*RATING_KEY, "rubric_hash"]
    columns = [labels.c[name] for name in (*key, *SHOWN)]
    shown = store.table(sa.select(*columns).where(is_latest(labels, *key)))
    if shown["page_language"].isin(_ORIGINAL).all():
        return ratings
    return ratings.merge(shown, on=key, how="left").fillna(dict.fromkeys(SHOWN, ""))


def languages_of_raters(store: Store) -> dict[str, str]:
    """The language of each rater's page; "" where it changed between labels."""
    query = sa.select(labels.c.rater_id, labels.c.page_language).distinct()
    languages: dict[str, str] = {}
    for rater, code in store.rows(query.where(labels.c.page_language != "")):
        languages[rater] = "" if rater in languages else code
    return languages


# The log of each rater's session: events, from which the rater's present step follows. So a reload,
# another computer or a crash continues where the rater was.

EventKind = Literal[
    "entered",  # came in: {"way"}
    "welcome_read",  # {"text"}: hash of the text read
    "consent",  # {"agreed", "text"}
    "rubric_read",  # {"rubric", "text"}
    "feedback_read",  # {"unit", "rubric", "attempt"}
    "comprehension",  # {"answers", "right", "text"}
    "background_done",
    "side_answered",  # and has one of its places
    "screened_out",  # failed the training for good, or their side was full: {"side": True}
    "completed",  # nothing was left to label
    "released",  # the place was given back: {"reason"}
    "readmitted",
]


@dataclass(frozen=True)
class Event:
    """An event of a rater's session."""

    kind: str
    detail: dict[str, Any]
    created_at: str


def add_event(connection: sa.Connection, rater_id: str, kind: EventKind, **detail: Any) -> None:
    """Append one event within a `write()`."""
    append(connection, session_events, {"rater_id": rater_id, "kind": kind, "detail": detail})


def events_of(connection: sa.Connection, rater_id: str) -> list[Event]:
    """Return a rater's events in the order in which they came."""
    log = EventLog(session_events, Event)
    return log.within(connection, session_events.c.rater_id == rater_id)


def given_back(log: Sequence[Event]) -> str:
    """Return why the rater's place was given back for good; "" where they have it still."""
    turns = [event for event in log if event.kind in ("released", "readmitted")]
    if not turns or turns[-1].kind == "readmitted":
        return ""
    return str(turns[-1].detail["reason"])
