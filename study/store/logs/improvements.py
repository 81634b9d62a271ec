"""What improving a grader decided: the part of each labelled cluster, the candidates, each reading
of the labels kept for the proof, and what came of it. Append-only, among the lead's events.

Parts and candidates are written down before the first request, a reading before its labels are
used: a run that is killed and started again finds its own, and nobody has to be believed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.events import append
from evenhand.study.store.schema import lead_events

if TYPE_CHECKING:
    from evenhand.study.store.database import Database

PARTED, TRIED, READ, ENDED = KINDS = (
    "improve parted",
    "improve tried",
    "improve read proof",
    "improve ended",
)


@dataclass(frozen=True, kw_only=True)
class ProofReading:
    """A reading of the labels kept for the proof: of which graders, by their rater ids, at which
    labels.
    """

    old: str
    new: str
    labels_hash: str


def note_parts(store: Database, rubric: str, parts: Mapping[str, str], done_by: str) -> None:
    """Append the parts of clusters that had none; durable on return."""
    _append(store, PARTED, rubric, dict(parts), done_by)


def parts_of(store: Database, rubric: str) -> dict[str, str]:
    """Return the part of each cluster, "learn", "choose" or "prove", as it was given first."""
    found: dict[str, str] = {}
    for parts in _all(store, PARTED, rubric):
        found = {**parts, **found}
    return found


def note_candidates(store: Database, rubric: str, raters: Mapping[str, str], done_by: str) -> None:
    """Append candidates that are new: where each comes from, by its rater id."""
    known = candidates_of(store, rubric)
    if new := {rater: origin for rater, origin in raters.items() if rater not in known}:
        _append(store, TRIED, rubric, new, done_by)


def candidates_of(store: Database, rubric: str) -> dict[str, str]:
    """Return where each candidate came from, by its rater id."""
    found: dict[str, str] = {}
    for raters in _all(store, TRIED, rubric):
        found |= raters
    return found


def read_proof(store: Database, rubric: str, reading: ProofReading, done_by: str) -> int:
    """Return the number, from 1, of this reading of the labels kept for the proof; one that is new
    is appended first. The same graders at the same labels are the same reading.
    """
    with store.write() as connection:
        known = [each for _, each in _within(connection, READ, rubric)]
        if (own := asdict(reading)) not in known:
            append(connection, lead_events, _event(READ, rubric, own, done_by))
            known.append(own)
    return known.index(own) + 1


def note_end(store: Database, rubric: str, found: Mapping[str, Any], done_by: str) -> None:
    """Append what came of it, unless it is what came of it last."""
    if (known := list(_all(store, ENDED, rubric))) and known[-1] == dict(found):
        return
    _append(store, ENDED, rubric, found, done_by)


def ends_of(store: Database) -> list[tuple[str, dict[str, Any]]]:
    """Return what came of every run that ended, with its rubric, in the order of time."""
    with store.read() as connection:
        return list(_within(connection, ENDED))


def rubrics_improved(store: Database) -> list[str]:
    """Return the rubrics whose clusters were parted."""
    with store.read() as connection:
        return list(dict.fromkeys(rubric for rubric, _ in _within(connection, PARTED)))


def _event(kind: str, rubric: str, detail: Mapping[str, Any], done_by: str) -> dict[str, str]:
    text = json.dumps(detail, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return {"kind": kind, "rater_id": rubric, "reason": text, "done_by": done_by}


def _append(
    store: Database, kind: str, rubric: str, detail: Mapping[str, Any], done_by: str
) -> None:
    with store.write() as connection:
        append(connection, lead_events, _event(kind, rubric, detail, done_by))


def _all(store: Database, kind: str, rubric: str) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [each for _, each in _within(connection, kind, rubric)]


def _within(
    connection: sa.Connection, kind: str, rubric: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    query = sa.select(lead_events.c.rater_id, lead_events.c.reason)
    query = query.where(lead_events.c.kind == kind).order_by(lead_events.c.event_id)
    if rubric is not None:
        query = query.where(lead_events.c.rater_id == rubric)
    for row in connection.execute(query):
        yield row.rater_id, json.loads(row.reason)
