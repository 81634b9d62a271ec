"""Replies of graders and subjects (the rated models), append-only: graders' texts and the ids of
their replies, grades of the injection audit, attempts at responses, and batches in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.store import schema
from evenhand.study.store.database import EventLog, append
from evenhand.study.store.grades import ASKED_AGAIN, TRANSIENT_REASONS, GradeAttempt, utc_now
from evenhand.study.store.schema import attacked_grades, batch_events, batches, grades
from evenhand.study.store.store import Store
from evenhand.texts import written

_UNITS_PER_QUERY = 400  # below the databases' limits on the values of a query
_KEY_DIGITS = 40  # of a grade's key, with which the id of its request begins

GradeKey = tuple[str, str, str]  # (rubric, unit id, grader)
Trial = tuple[str, str, str, str, int]
"""(unit_id, attack, target, side, draw): one attacked text shown to a grader."""

_ATTACK_COLUMNS = ("attack", "target", "side")
_TRIAL_COLUMNS = ("unit_id", *_ATTACK_COLUMNS, "draw")
_AUDIT_KEY = ("rater_id", "rubric", "rubric_hash", "suite", *_TRIAL_COLUMNS)


def reply_identities(store: Store, rater_id: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return id, time and choice's index of a grader's replies, by `Question.prompt_key`."""
    key_columns = ("unit_id", "rubric", "order")
    replies: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    with store.read() as connection:
        attacked_key = (*key_columns, *_ATTACK_COLUMNS)
        for table, names in ((grades, key_columns), (attacked_grades, attacked_key)):
            facts = table.c.provenance
            query = sa.select(
                *(table.c[name] for name in names),
                facts["reply_id"].as_string(),
                facts["created"].as_float(),
                facts["choice"].as_integer(),
            ).where(table.c.rater_id == rater_id, table.c.unscored_reason.not_in(TRANSIENT_REASONS))
            for *prompt_key, reply_id, created, choice in connection.execute(query):
                identity = {"reply_id": reply_id, "created": created, "choice": choice}
                replies.setdefault(tuple(prompt_key), []).append(identity)
    return replies


def gave_probabilities_without_reasoning(store: Store, rater_id: str) -> bool:
    """Return True if a grader gave token probabilities at reasoning effort "none"."""
    with store.read() as connection:
        for table in (grades, attacked_grades):
            effort = table.c.provenance["settings", "reasoning_effort"].as_string()
            query = sa.select(table.c.event_id).where(
                table.c.rater_id == rater_id, table.c.prob_method == "logprobs", effort == "none"
            )
            if connection.execute(query.limit(1)).first():
                return True
    return False


def raw_replies(
    store: Store, grade_keys: Sequence[GradeKey], accepted: Mapping[str, Collection[str]]
) -> dict[GradeKey, list[str]]:
    """Return for each grade its latest reply in every order and draw, under a text of the rubric in
    `accepted` (rubric -> hashes). Equal replies are listed once, empty ones not at all. Of a
    reply with a reason only the reason is returned, with a note where the sides were swapped.
    """
    keys = set(grade_keys)
    latest: dict[tuple[GradeKey, str, int], str] = {}  # by grade, order and draw
    units = list(dict.fromkeys(unit for _, unit, _ in grade_keys))
    names = ("rubric", "unit_id", "rater_id", "order", "draw", "rubric_hash", "raw")
    columns = [*(grades.c[name] for name in names), grades.c.provenance["reason"].as_string()]
    query = sa.select(*columns).order_by(schema.is_scored, grades.c.event_id)  # labels last
    with store.read() as connection:
        for start in range(0, len(units), _UNITS_PER_QUERY):
            is_in_chunk = grades.c.unit_id.in_(units[start : start + _UNITS_PER_QUERY])
            for row in connection.execute(query.where(is_in_chunk)):
                rubric, unit, grader, order, draw, rubric_hash, raw, reason = row
                key = (rubric, unit, grader)
                if key in keys and rubric_hash in accepted.get(rubric, ()):
                    if reason:
                        text_key = "reason_ba" if order == "ba" else "reason"
                        raw = written(f"disagreement.{text_key}", reason=reason)
                    latest[key, order, draw] = raw
    replies: dict[GradeKey, list[str]] = {}
    for (key, _, _), raw in sorted(latest.items()):
        if raw.strip() and raw not in replies.setdefault(key, []):
            replies[key].append(raw)
    return replies


# ---- the injection audit: grades of attacked texts, which never become ratings ------------------
_IS_FINISHED = (
    attacked_grades.c.unscored_reason.not_in(TRANSIENT_REASONS),
    attacked_grades.c.provenance[ASKED_AGAIN].as_boolean().is_not(True),
)
"""SQL conditions on an attempt at a trial: the trial is not asked again after it."""


def finished_trials(
    store: Store, rater_id: str, rubric: str, rubric_hashes: Collection[str], suite: str
) -> dict[Trial, str]:
    """Return the trials that need not be requested again, each with its label or ""."""
    columns = attacked_grades.c
    query = sa.select(*(columns[name] for name in _TRIAL_COLUMNS), columns.label).where(
        columns.rater_id == rater_id,
        columns.rubric == rubric,
        columns.suite == suite,
        columns.rubric_hash.in_(rubric_hashes),
        *_IS_FINISHED,
    )
    return {tuple(trial): label for *trial, label in store.rows(query.order_by(columns.event_id))}


def was_audited(store: Store) -> bool:
    """Return True if any grader of the study has answered in an audit."""
    columns = attacked_grades.c
    answered = sa.select(columns.event_id).where(columns.unscored_reason.not_in(TRANSIENT_REASONS))
    return bool(store.rows(answered.limit(1)))


def attacked_table(store: Store, accepted: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Return each grader's latest grades under a text that `accepted` (rubric -> hashes) names, for
    the latest version of the attacks that it was tested with. Columns: `rubric, rater_id, unit_id,
    attack, target, side, draw, label, probabilities` (a dict or None).
    """
    columns = attacked_grades.c
    names = ("rubric", "rater_id", *_TRIAL_COLUMNS, "label", "probabilities")
    query = sa.select(*(columns[name] for name in (*names, "rubric_hash", "suite")))
    table = store.table(query.where(*_IS_FINISHED).order_by(columns.event_id))
    table = table.drop_duplicates([*_AUDIT_KEY], keep="last")
    texts = zip(table["rubric"], table["rubric_hash"], strict=True)
    table = table.loc[[digest in accepted.get(rubric, ()) for rubric, digest in texts]]
    latest_suite = table.groupby(["rubric", "rater_id"])["suite"].transform("last")
    table = table[table["suite"] == latest_suite].drop(columns=["suite", "rubric_hash"])
    return table.reset_index(drop=True)


# ---- subjects' responses ------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class ResponseAttempt:
    """The result of sending a prompt: a response, which may be empty, or why there is none."""

    subject: str
    pair_id: str
    side: str
    response: str = ""
    unscored_reason: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    created_at: str = field(default_factory=utc_now)


class ResponseLog:
    """The log of a study's attempts at responses. Methods that write are durable on return."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log = EventLog(schema.response_attempts, ResponseAttempt)

    def append(self, attempts: Sequence[ResponseAttempt]) -> None:
        """Append attempts; they are on disk on return."""
        self._log.append(self._store, attempts)

    def answered(self, subject: str) -> set[tuple[str, str]]:
        """Return (pair_id, side) of each prompt that this subject has answered, also by import."""
        stored = self._store.answered()
        stored = stored[stored["subject"] == subject]
        return set(self._texts(subject)) | set(zip(stored["pair_id"], stored["side"], strict=True))

    def add_whole_pairs(self, subject: str) -> int:
        """Add logged responses to the study, of whole pairs that it lacks; return how many."""
        texts = self._texts(subject)
        stored_responses = self._store.answered()
        sides = sides_of(self._store.pairs())
        stored_pairs = set(stored_responses.loc[stored_responses["subject"] == subject, "pair_id"])
        rows = [
            {"pair_id": pair, "side": side, "subject": subject, "response": text}
            for (pair, side), text in texts.items()
            if pair not in stored_pairs and all((pair, other) in texts for other in sides)
        ]
        return self._store.add_responses(pd.DataFrame(rows)) if rows else 0

    def _texts(self, subject: str) -> dict[tuple[str, str], str]:
        """Return the subject's first response to each prompt, by (pair_id, side)."""
        table = schema.response_attempts.c
        query = (
            sa.select(table.pair_id, table.side, table.response)
            .where(table.subject == subject, table.unscored_reason == "")
            .order_by(table.event_id.desc())  # so that the first one replaces later ones
        )
        return {(row.pair_id, row.side): row.response for row in self._store.rows(query)}


# ---- batches of grades in progress at a provider ------------------------------------------------
# They are recorded before they are sent, so that a run that is killed at any time is continued by
# the next. A chunk, as a batch is called here, is intended, submitted, then collected - or, if it
# never reached the provider, abandoned. Its grades are written together with "collected".
@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a chunk as it was sent, and the id under which the provider answers it. It names
    its question, as the study may drop or edit a rubric meanwhile. `more` are the further draws
    that it asks for, each with its grade's key; `trial` is its attack in an injection audit
    (attack, target, side, suite). The store has the fields in this order: add new ones last.
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
        """Return the draws that it asks for, each with its grade's key."""
        first_key = self.custom_id[:_KEY_DIGITS]  # the id is this key, or "KEY-NUMBER"
        return [(self.draw, first_key), *self.more]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A batch as it was intended. `batch_id` is empty until the provider has given it."""

    chunk: str  # its id, known before it is sent
    rater_id: str
    base_url: str
    requests: tuple[BatchRequest, ...]
    at_most_usd: float | None = None  # its largest possible cost, if known
    batch_id: str = ""
    created_at: str = field(default_factory=utc_now)


_CHUNK_COLUMNS = ("chunk", "rater_id", "base_url", "at_most_usd", "created_at")
"""Fields of `Chunk` that are columns of the table `batches`."""


class BatchJournal:
    """The chunks of a study. Methods that write are durable on return."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def intend(self, chunk: Chunk) -> None:
        """Record a chunk before it is sent."""
        row = {name: getattr(chunk, name) for name in _CHUNK_COLUMNS}
        row["questions"] = [astuple(request) for request in chunk.requests]
        with self._store.write() as connection:
            connection.execute(sa.insert(batches), [row])
            _append_event(connection, chunk.chunk, "intended")

    def submitted(self, chunk: str, batch_id: str) -> None:
        """Record the id that the provider has given a chunk."""
        with self._store.write() as connection:
            _append_event(connection, chunk, "submitted", batch_id)

    def abandoned(self, chunk: str) -> None:
        """Record that a chunk never reached the provider."""
        with self._store.write() as connection:
            _append_event(connection, chunk, "abandoned")

    def collected(self, chunk: str, batch_id: str, attempts: Sequence[GradeAttempt]) -> None:
        """Append a chunk's grades and close it, in one transaction."""
        with self._store.write() as connection:
            self._store.add_grades(attempts)  # within this transaction
            _append_event(connection, chunk, "collected", batch_id)

    def count(self, rater_id: str) -> int:
        """Return the number of chunks that this grader ever had."""
        query = sa.select(sa.func.count()).where(batches.c.rater_id == rater_id)
        return int(self._store.values(query)[0])

    def known_batches(self) -> set[str]:
        """Return the batch ids that belong to a chunk."""
        query = sa.select(batch_events.c.batch_id).where(batch_events.c.batch_id != "")
        return set(self._store.values(query))

    def under_way(self, rater_id: str) -> list[Chunk]:
        """Return this grader's chunks that are neither collected nor abandoned, oldest first."""
        events = batch_events.c
        closed = sa.select(events.chunk).where(events.kind.in_(("collected", "abandoned")))
        submitted = sa.select(events.chunk, events.batch_id).where(events.kind == "submitted")
        is_open = batches.c.chunk.not_in(closed)
        query = sa.select(batches).where(batches.c.rater_id == rater_id, is_open)
        with self._store.read() as connection:
            batch_ids = {row.chunk: row.batch_id for row in connection.execute(submitted)}
            rows = connection.execute(query.order_by(batches.c.created_at)).all()
        chunks = []
        for row in rows:
            columns = {name: getattr(row, name) for name in _CHUNK_COLUMNS}
            requests = tuple(BatchRequest(*cells) for cells in row.questions)
            batch_id = batch_ids.get(row.chunk, "")
            chunks.append(Chunk(**columns, requests=requests, batch_id=batch_id))
        return chunks


def _append_event(connection: sa.Connection, chunk: str, kind: str, batch_id: str = "") -> None:
    append(connection, batch_events, {"chunk": chunk, "kind": kind, "batch_id": batch_id})
