"""Replies of graders and subjects: graders' words and the facts of each reply, grades of the
injection audit, attempts at subjects' responses, and batches under way. Append-only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.store.database import EventLog, append
from evenhand.study.store.grades import TRANSIENT_REASONS, GradeAttempt, utc_now
from evenhand.study.store.schema import (
    attacked_grades,
    batch_events,
    batches,
    grades,
    is_latest,
    response_attempts,
)
from evenhand.study.store.store import Store
from evenhand.texts import written

_AT_ONCE = 400  # units in one query

About = tuple[str, str, str]
"""(rubric, unit id, grader)."""
Trial = tuple[str, str, str, str, int]
"""(unit_id, attack, target, side, draw): one text that was put to a grader."""

_TRIAL = ("unit_id", "attack", "target", "side", "draw")
_KEY = ("rater_id", "rubric", "rubric_hash", "suite", *_TRIAL)


def known_replies(store: Store, rater_id: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return the facts that identify a grader's replies, attacked ones too, by question."""
    asked = ("unit_id", "rubric", "order")
    replies: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    with store.read() as connection:
        for table, names in ((grades, asked), (attacked_grades, (*asked, *_TRIAL[1:4]))):
            facts = table.c.provenance
            query = sa.select(
                *(table.c[name] for name in names),
                facts["reply_id"].as_string(),
                facts["created"].as_float(),
                facts["choice"].as_integer(),
            ).where(table.c.rater_id == rater_id, table.c.unscored_reason.not_in(TRANSIENT_REASONS))
            for *prompted, reply_id, created, choice in connection.execute(query):
                identity = {"reply_id": reply_id, "created": created, "choice": choice}
                replies.setdefault(tuple(prompted), []).append(identity)
    return replies


def gave_without_reasoning(store: Store, rater_id: str) -> bool:
    """Return True if a grader gave token probabilities when asked with reasoning effort none."""
    with store.read() as connection:
        for table in (grades, attacked_grades):
            effort = table.c.provenance["settings", "reasoning_effort"].as_string()
            gave = sa.select(table.c.event_id).where(
                table.c.rater_id == rater_id, table.c.prob_method == "logprobs", effort == "none"
            )
            if connection.execute(gave.limit(1)).first():
                return True
    return False


def raw_replies(
    store: Store, wanted: Sequence[About], accepted: Mapping[str, Collection[str]]
) -> dict[About, list[str]]:
    """Return the latest reply to every order and draw of each grade wanted, by (rubric, unit id,
    grader).

    Only replies under a text that `accepted` (rubric -> hashes) names; a reply that was given
    several times stands once, and one without words not at all. Of a reply with a reason that alone
    is shown, and whether the sides were exchanged, which a reason speaks of.
    """
    keys, latest = set(wanted), dict[tuple[About, str, int], str]()
    units = list(dict.fromkeys(unit for _, unit, _ in wanted))
    names = ("rubric", "unit_id", "rater_id", "order", "draw", "rubric_hash", "raw")
    columns = [*(grades.c[name] for name in names), grades.c.provenance["reason"].as_string()]
    query = sa.select(*columns).order_by(grades.c.event_id)
    with store.read() as connection:
        for start in range(0, len(units), _AT_ONCE):
            some = grades.c.unit_id.in_(units[start : start + _AT_ONCE])
            for row in connection.execute(query.where(some)):
                rubric, unit, grader, order, draw, digest, raw, reason = row
                key = (rubric, unit, grader)
                if key in keys and digest in accepted.get(rubric, ()):
                    if reason:
                        form = "reason_ba" if order == "ba" else "reason"
                        raw = written(f"disagreement.{form}", reason=reason)
                    latest[key, order, draw] = raw
    replies: dict[About, dict[str, None]] = {}
    for (key, _, _), raw in sorted(latest.items()):
        if raw.strip():
            replies.setdefault(key, {})[raw] = None
    return {key: list(reply) for key, reply in replies.items()}


# The injection audit: grades of texts that try to sway a grader, which never become ratings


def finished_trials(
    store: Store, rater_id: str, rubric: str, rubric_hashes: Collection[str], suite: str
) -> dict[Trial, str]:
    """Return the trials not to ask again, each with its label; "" where none came."""
    columns = attacked_grades.c
    asked = columns.rater_id == rater_id, columns.rubric == rubric, columns.suite == suite
    counts = columns.rubric_hash.in_(rubric_hashes)
    is_final = columns.unscored_reason.not_in(TRANSIENT_REASONS)
    query = sa.select(*(columns[name] for name in _TRIAL), columns.label)
    query = query.where(*asked, counts, is_final).order_by(columns.event_id)
    return {tuple(row[:5]): row.label for row in store.rows(query)}


def was_audited(store: Store) -> bool:
    """Return True if a grader of the study ever answered in an audit."""
    table = attacked_grades
    answered = sa.select(table.c.event_id).where(table.c.unscored_reason.not_in(TRANSIENT_REASONS))
    return bool(store.rows(answered.limit(1)))


def attacked_table(store: Store, accepted: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Return each grader's latest grades under a text that `accepted` (rubric -> hashes) names, for
    the latest version of the attacks put to it. Columns: `rubric, rater_id, unit_id, attack,
    target, side, draw, label, probabilities` (a dict or None).
    """
    attacked = attacked_grades
    names = ("rubric", "rater_id", *_TRIAL, "label", "probabilities", "rubric_hash", "suite")
    query = (
        sa.select(*(attacked.c[name] for name in names))
        .where(is_latest(attacked, *_KEY), attacked.c.unscored_reason.not_in(TRANSIENT_REASONS))
        .order_by(attacked.c.event_id)
    )
    table = store.table(query)
    texts = zip(table["rubric"], table["rubric_hash"], strict=True)
    table = table.loc[[digest in accepted.get(rubric, ()) for rubric, digest in texts]]
    newest = table.groupby(["rubric", "rater_id"])["suite"].transform("last")
    table = table[table["suite"] == newest].drop(columns=["suite", "rubric_hash"])
    return table.reset_index(drop=True)


@dataclass(frozen=True, kw_only=True)
class ResponseAttempt:
    """The outcome of one prompt: a response, which may be empty, or why there is none."""

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
        self._log = EventLog(response_attempts, ResponseAttempt)

    def append(self, attempts: Sequence[ResponseAttempt]) -> None:
        self._log.append(self._store, attempts)

    def answered(self, subject: str) -> set[tuple[str, str]]:
        """(pair_id, side) of every prompt that this subject has responded to, imports included."""
        known = self._store.answered()
        known = known[known["subject"] == subject]
        return set(self._texts(subject)) | set(zip(known["pair_id"], known["side"], strict=True))

    def add_whole_pairs(self, subject: str) -> int:
        """Take every pair with all its responses into the study; return how many are new. The first
        response to a prompt counts.
        """
        texts = self._texts(subject)
        known = self._store.answered()
        sides = sides_of(self._store.pairs())
        stored = set(known.loc[known["subject"] == subject, "pair_id"])
        rows = [
            {"pair_id": pair, "side": side, "subject": subject, "response": text}
            for (pair, side), text in texts.items()
            if pair not in stored and all((pair, shown) in texts for shown in sides)
        ]
        return self._store.add_responses(pd.DataFrame(rows)) if rows else 0

    def _texts(self, subject: str) -> dict[tuple[str, str], str]:
        table = response_attempts.c
        query = (
            sa.select(table.pair_id, table.side, table.response)
            .where(table.subject == subject, table.unscored_reason == "")
            .order_by(table.event_id.desc())
        )
        return {(row.pair_id, row.side): row.response for row in self._store.rows(query)}


# Batches of grades under way at a provider: recorded before they are sent, so that a run which ends
# at any instant is continued by the next. A chunk is intended, submitted, then collected - or
# abandoned, where it never reached the provider. Its grades and the note that it is collected are
# one transaction.


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


_CHUNK = ("chunk", "rater_id", "base_url", "at_most_usd", "created_at")
"""The columns of a batch that are fields of its chunk."""


class BatchJournal:
    """The chunks of one study. Methods that write are durable when they return."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def intend(self, chunk: Chunk) -> None:
        row = {name: getattr(chunk, name) for name in _CHUNK}
        row["questions"] = [astuple(request) for request in chunk.requests]
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
        events = batch_events.c
        closed = sa.select(events.chunk).where(events.kind.in_(("collected", "abandoned")))
        ids = sa.select(events.chunk, events.batch_id).where(events.kind == "submitted")
        query = sa.select(batches).order_by(batches.c.created_at)
        wanted = batches.c.rater_id == rater_id, batches.c.chunk.not_in(closed)
        with self._store.read() as connection:
            named = {row.chunk: row.batch_id for row in connection.execute(ids)}
            rows = connection.execute(query.where(*wanted)).all()
        chunks = []
        for row in rows:
            facts = {name: getattr(row, name) for name in _CHUNK}
            requests = tuple(BatchRequest(*cells) for cells in row.questions)
            batch_id = named.get(row.chunk, "")
            chunks.append(Chunk(**facts, requests=requests, batch_id=batch_id))
        return chunks


def _note(connection: sa.Connection, chunk: str, kind: str, batch_id: str = "") -> None:
    append(connection, batch_events, {"chunk": chunk, "kind": kind, "batch_id": batch_id})
