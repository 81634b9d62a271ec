"""The log of each rater's session: events, from which the rater's present step follows.

So a reload, another computer or a crash continues where the rater was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.study.store.database import EventLog, append
from evenhand.study.store.schema import session_events

EventKind = Literal[
    "entered",  # came in: {"way"}
    "welcome_read",  # {"text"}: hash of the text read
    "consent",  # {"agreed", "text"}
    "rubric_read",  # {"rubric", "text"}
    "feedback_read",  # {"unit", "rubric", "attempt"}
    "comprehension",  # {"answers", "right", "text"}
    "background_done",
    "screened_out",  # the training or the questions about it were failed for good
    "completed",  # nothing was left to label
    "released",  # the place was given back: {"reason"}
    "readmitted",
]


@dataclass(frozen=True)
class Event:
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
    """Why the rater's place was given back and not taken up again; "" where they have it still."""
    turns = [event for event in log if event.kind in ("released", "readmitted")]
    if not turns or turns[-1].kind == "readmitted":
        return ""
    return str(turns[-1].detail["reason"])
