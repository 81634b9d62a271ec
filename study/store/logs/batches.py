"""Batches of grades under way at a provider: recorded before they are sent, so that a run which
ends at any instant is continued by the next.

A chunk is intended, submitted, then collected - or abandoned, where it never reached the provider.
Its grades and the note that it is collected are one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import sqlalchemy as sa

from evenhand.study.store.grades import GradeAttempt, utc_now
from evenhand.study.store.schema import batch_events, batches
from evenhand.study.store.store import Store


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a chunk as it was sent, and the id under which the provider answers it.

    The question by its names, not as a `Question`: the study may drop or edit a rubric meanwhile.
    `more` are the further draws that it asks for, each with its grade's key; `trial` is its attack
    in an injection audit (attack, target, side, suite).
    """

    custom_id: str
    rubric: str
    rubric_hash: str
    unit_id: str
    order: str
    draw: int
    prompt_hash: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    more: Sequence[tuple[int, str]] = ()
    trial: Sequence[str] = ()

    @property
    def draws(self) -> list[tuple[int, str]]:
        """The draws that it asks for, each with its grade's key."""
        return [(self.draw, self.custom_id[:40]), *self.more]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A batch as it was intended. `batch_id` is empty until the provider has named it."""

    chunk: str
    rater_id: str
    base_url: str
    requests: tuple[BatchRequest, ...]
    at_most_usd: float | None = None
    batch_id: str = ""
    created_at: str = field(default_factory=utc_now)


class BatchJournal:
    """The chunks of one study. Methods that write are durable when they return."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def intend(self, chunk: Chunk) -> None:
        row = {
            "chunk": chunk.chunk,
            "rater_id": chunk.rater_id,
            "base_url": chunk.base_url,
            "at_most_usd": chunk.at_most_usd,
            "questions": [astuple(request) for request in chunk.requests],
            "created_at": chunk.created_at,
        }
        with self._store.write() as connection:
            connection.execute(sa.insert(batches), [row])
            _note(connection, chunk.chunk, "intended")

    def submitted(self, chunk: str, batch_id: str) -> None:
        with self._store.write() as connection:
            _note(connection, chunk, "submitted", batch_id)

    def abandoned(self, chunk: str) -> None:
        with self._store.write() as connection:
            _note(connection, chunk, "abandoned")

    def collected(self, chunk: str, batch_id: str, attempts: Sequence[GradeAttempt]) -> None:
        """Append a chunk's grades and close it, in one transaction."""
        with self._store.write() as connection:
            self._store.add_grades(attempts)
            _note(connection, chunk, "collected", batch_id)

    def count(self, rater_id: str) -> int:
        """Count the chunks that this grader ever had."""
        query = sa.select(sa.func.count()).where(batches.c.rater_id == rater_id)
        return int(self._store.values(query)[0])

    def known_batches(self) -> set[str]:
        """Return the batch ids that belong to a chunk."""
        query = sa.select(batch_events.c.batch_id).where(batch_events.c.batch_id != "")
        return set(self._store.values(query))

    def under_way(self, rater_id: str) -> list[Chunk]:
        """The chunks that are neither collected nor abandoned, oldest first."""
        closed = sa.select(batch_events.c.chunk).where(
            batch_events.c.kind.in_(("collected", "abandoned"))
        )
        ids = sa.select(batch_events.c.chunk, batch_events.c.batch_id).where(
            batch_events.c.kind == "submitted"
        )
        query = (
            sa.select(batches)
            .where(batches.c.rater_id == rater_id, batches.c.chunk.not_in(closed))
            .order_by(batches.c.created_at)
        )
        with self._store.read() as connection:
            named = {row.chunk: row.batch_id for row in connection.execute(ids)}
            rows = connection.execute(query).all()
        return [
            Chunk(
                chunk=row.chunk,
                rater_id=row.rater_id,
                base_url=row.base_url,
                requests=tuple(BatchRequest(*cells) for cells in row.questions),
                at_most_usd=row.at_most_usd,
                batch_id=named.get(row.chunk, ""),
                created_at=row.created_at,
            )
            for row in rows
        ]


def _note(connection: sa.Connection, chunk: str, kind: str, batch_id: str = "") -> None:
    row = {"chunk": chunk, "kind": kind, "batch_id": batch_id, "created_at": utc_now()}
    connection.execute(sa.insert(batch_events), [row])
