"""Attempts at subjects' responses: append-only, and only whole pairs enter the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa

from evenhand.study.prompts.pairs import sides_of
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import response_attempts
from evenhand.study.store.store import Store


@dataclass(frozen=True, kw_only=True)
class ResponseAttempt:
    """The outcome of one prompt: a response, which may be empty, or the reason why there is
    none.
    """

    subject: str
    pair_id: str
    side: str
    response: str = ""
    unscored_reason: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    created_at: str = field(default_factory=utc_now)


class ResponseLog:
    """The log of one study's attempts. Methods that write are durable when they return."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, attempts: Sequence[ResponseAttempt]) -> None:
        if attempts:
            rows = [asdict(attempt) for attempt in attempts]
            with self._store.write() as connection:
                connection.execute(sa.insert(response_attempts), rows)

    def answered(self, subject: str) -> set[tuple[str, str]]:
        """(pair_id, side) of every prompt that this subject has responded to, imports included."""
        known = self._store.answered()
        own = known[known["subject"] == subject]
        return set(self._texts(subject)) | set(zip(own["pair_id"], own["side"], strict=True))

    def add_whole_pairs(self, subject: str) -> int:
        """Take every pair with all its responses into the study; return how many are new.

        The first response to a prompt counts.
        """
        import pandas as pd

        texts = self._texts(subject)
        known = self._store.answered()
        sides = sides_of(self._store.pairs())
        there = set(known.loc[known["subject"] == subject, "pair_id"])
        rows = [
            {"pair_id": pair, "side": side, "subject": subject, "response": text}
            for (pair, side), text in texts.items()
            if pair not in there and all((pair, each) in texts for each in sides)
        ]
        return self._store.add_responses(pd.DataFrame(rows)) if rows else 0

    def _texts(self, subject: str) -> dict[tuple[str, str], str]:
        table = response_attempts.c
        query = (
            sa.select(table.pair_id, table.side, table.response)
            .where(table.subject == subject, table.unscored_reason == "")
            .order_by(table.event_id.desc())
        )
        with self._store.read() as connection:
            return {(row.pair_id, row.side): row.response for row in connection.execute(query)}
