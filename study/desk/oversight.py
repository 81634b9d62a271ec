"""Decisions of the study's lead while people label: to pause, to exclude a rater, to readmit one.

Decisions are events, each with its author and reason; the latest counts. An exclusion deletes
nothing: the labels stay, their places go to other raters, and the analysis shows both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.store.database import append
from evenhand.study.store.schema import claims, lead_events
from evenhand.study.store.store import Store, rater_kind

DECISION_COLUMNS = ("kind", "rater_id", "reason", "done_by", "created_at")
_DECISIONS = ("pause", "resume", "exclude", "readmit")
"""The kinds of event that are decisions; the lead's events hold used links too."""
STOPPED_BY = "quality rule"
"""The author of a decision that no person took."""


@dataclass(frozen=True)
class Exclusion:
    """The reason why a rater's labels stay out of the main figures, its author, and its date."""

    reason: str
    done_by: str
    created_at: str


@dataclass(frozen=True)
class Oversight:
    """The lead's decisions in force. `seen` is the last event that it includes."""

    paused: bool = False
    exclusions: Mapping[str, Exclusion] = field(default_factory=dict)
    readmitted: frozenset[str] = frozenset()
    """Raters whose exclusion was taken back, and who were not excluded again."""
    seen: int = 0

    def ended(self, rater_id: str) -> str:
        """Why a rater gets no further task: "excluded", "paused", or "" where they do."""
        if rater_id in self.exclusions:
            return "excluded"
        return "paused" if self.paused else ""

    def renewed(self, connection: sa.Connection) -> Oversight:
        """Return the decisions up to date with the store; itself where there are no new ones."""
        paused, exclusions, seen = self.paused, dict(self.exclusions), self.seen
        readmitted = set(self.readmitted)
        since = sa.select(lead_events).where(lead_events.c.event_id > self.seen)
        for event in connection.execute(since.order_by(lead_events.c.event_id)):
            seen = event.event_id
            if event.kind in ("pause", "resume"):
                paused = event.kind == "pause"
            elif event.kind == "exclude":
                exclusions[event.rater_id] = Exclusion(
                    event.reason, event.done_by, event.created_at
                )
                readmitted.discard(event.rater_id)
            elif event.kind == "readmit":
                exclusions.pop(event.rater_id, None)
                readmitted.add(event.rater_id)
        if seen == self.seen:
            return self
        return Oversight(paused, exclusions, frozenset(readmitted), seen)


def oversight(store: Store) -> Oversight:
    """Read the lead's decisions in force."""
    with store.read() as connection:
        return Oversight().renewed(connection)


def pause(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out no further task until `resume`; answers sent meanwhile are still taken."""
    if not oversight(store).paused:
        _decide(store, "pause", "", reason, done_by)


def resume(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out tasks again."""
    if oversight(store).paused:
        _decide(store, "resume", "", reason, done_by)


def exclude(store: Store, rater_id: str, reason: str, done_by: str = "") -> None:
    """Declare that a person's labels stay out of the main figures; they get no further task.

    Raises InputError where the reason is empty, or no rater of this name has begun to label.
    """
    reason = reason.strip()
    if not reason:
        raise InputError("an exclusion needs a reason: it stands in the report")
    with store.read() as connection:
        given_work = sa.select(claims.c.task_id).where(claims.c.rater_id == rater_id)
        kind = rater_kind(connection, rater_id)
        known = kind == "human" or (kind == "" and connection.execute(given_work).first())
    if not known:
        raise InputError(f"no person {rater_id!r} has labelled in this study")
    already = oversight(store).exclusions.get(rater_id)
    if already is None or already.reason != reason:
        _decide(store, "exclude", rater_id, reason, done_by)


def readmit(store: Store, rater_id: str, reason: str, done_by: str = "") -> None:
    """Take an exclusion back. Raises InputError where there is none, or no reason is given."""
    reason = reason.strip()
    if not reason:
        raise InputError("say why the annotator is readmitted")
    if rater_id not in oversight(store).exclusions:
        raise InputError(f"rater {rater_id!r} is not excluded")
    _decide(store, "readmit", rater_id, reason, done_by)


def decisions_table(store: Store) -> pd.DataFrame:
    """Return every decision of the lead in the order in which it was taken."""
    query = sa.select(*(lead_events.c[name] for name in DECISION_COLUMNS))
    query = query.where(lead_events.c.kind.in_(_DECISIONS)).order_by(lead_events.c.event_id)
    return store.table(query)


def _decide(store: Store, kind: str, rater_id: str, reason: str, done_by: str) -> None:
    event = {"kind": kind, "rater_id": rater_id, "reason": reason.strip(), "done_by": done_by}
    with store.write() as connection:
        append(connection, lead_events, event)
