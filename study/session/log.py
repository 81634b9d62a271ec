"""The log of what every rater went through: events, from which it follows where they stand.

So a reload, another computer or a crash goes on where the rater was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.rubrics import Rubric
from evenhand.study.desk.places import Screen
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import session_events

__all__ = ["Event", "Standing", "Step", "add_event", "events_of", "text_hash"]

Kind = Literal[
    "entered",  # came in: {"way"}
    "welcome_read",  # {"text"}: hash of what was read
    "consent",  # {"agreed", "text"}
    "rubric_read",  # {"rubric", "text"}
    "feedback_read",  # {"unit", "rubric", "attempt"}
    "comprehension",  # {"answers", "right", "text"}
    "background_done",
    "completed",  # nothing was left to label
    "released",  # the place was given back: {"reason"}
    "readmitted",
]
Step = Literal[
    "welcome",
    "consent",
    "rubric",
    "practice",
    "feedback",
    "comprehension",
    "background",
    "labelling",
    "ended",
]


@dataclass(frozen=True)
class Event:
    kind: str
    detail: dict[str, Any]
    created_at: str


@dataclass(frozen=True)
class Standing:
    """What a rater has to do next."""

    step: Step
    outcome: str = ""
    """Why it ended: no_consent, screened_out, returned, timed_out or rejected."""
    attempt: int = 0
    """How often this step was tried before."""
    missed: frozenset[int] = frozenset()
    """Which comprehension questions were answered wrongly the last time, from 0 on."""
    rubric: Rubric | None = None
    """What is to be read (step "rubric")."""
    screen: Screen = ()
    """What is to be answered (step "practice"), or was (step "feedback")."""


def add_event(connection: sa.Connection, rater_id: str, kind: Kind, **detail: Any) -> None:
    """Append one event within a `write()`."""
    event = {"rater_id": rater_id, "kind": kind, "detail": detail, "created_at": utc_now()}
    connection.execute(sa.insert(session_events).values(event))


def events_of(connection: sa.Connection, rater_id: str) -> list[Event]:
    """A rater's events in the order in which they came."""
    query = (
        sa.select(session_events)
        .where(session_events.c.rater_id == rater_id)
        .order_by(session_events.c.event_id)
    )
    return [Event(row.kind, row.detail, row.created_at) for row in connection.execute(query)]


def text_hash(*texts: str | Sequence[str]) -> str:
    """16 hexadecimal digits that change with any of the texts: who read an older one reads anew."""
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
