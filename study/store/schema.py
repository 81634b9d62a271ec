"""The store's tables. Labels and grades are events: rows are added, never changed or deleted."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, Column, Float, Index, Integer, String, Table, Text

SCHEMA_VERSION = "2"
"""Rises with every change of a table, and every new one; `keeping` brings a store along."""

metadata = sa.MetaData()


def _filled(*names: str, of: type[sa.types.TypeEngine[Any]] = String) -> list[Column[Any]]:
    """Return columns of a type that are filled in in every row."""
    return [Column(name, of, nullable=False) for name in names]


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, String, primary_key=True) for name in names]


def _log(name: str, *columns: sa.schema.SchemaItem, by: str = "") -> Table:
    """Return a table of numbered events with their times. Columns of `by` get an index, which is
    named after what the first of them identifies.
    """
    number = Column("event_id", Integer, primary_key=True, autoincrement=True)
    if "created_at" not in (getattr(column, "name", "") for column in columns):
        columns = (*columns, *_filled("created_at"))
    table = Table(name, metadata, number, *columns)
    if by:
        subject = by.split()[0].removesuffix("_id").removesuffix("_key")
        Index(f"{name}_by_{subject}", *(table.c[column] for column in by.split()))
    return table


def _table(name: str, *columns: sa.schema.SchemaItem) -> Table:
    return Table(name, metadata, *columns)


meta = _table("meta", *_keys("key"), *_filled("value", of=Text))

pairs = _table(
    "pairs",
    *_keys("pair_id"),
    Column("position", Integer, nullable=False, unique=True),
    *_filled("cells", of=JSON),  # the pairs file's row, every column as text
    Column("sample_position", Integer, unique=True),  # order of labelling; empty: not sampled
)

responses = _table("responses", *_keys("pair_id", "subject", "side"), *_filled("response", of=Text))


def _rating_columns() -> list[Column[object]]:
    """Return the columns that a label and a grade share: those of the `ratings` table."""
    return [
        *_filled("unit_id", "rubric", "rater_id", "rater_kind", "label"),
        Column("p_positive", Float),
        Column("probabilities", JSON(none_as_null=True)),
        Column("prob_method", String, nullable=False, default=""),
        Column("draw", Integer, nullable=False, default=0),
        Column("order", String, nullable=False, default=""),
        Column("unscored_reason", String, nullable=False, default=""),
        Column("seconds", Float),
        Column("rubric_hash", String, nullable=False, default=""),
        *_filled("created_at"),
    ]


def _reply_columns() -> list[Column[object]]:
    provenance = Column("provenance", JSON, nullable=False, default=dict)
    return [Column("raw", Text, nullable=False, default=""), provenance]


SHOWN = ("page_language", "shown_hash")
"""Columns on how a person was asked: the page's language, and the hash of the rubric's text as
shown, which is that of a translation where there is one. Empty where it is not known.
"""


def _label_table(name: str) -> Table:
    return _log(
        name,
        Column("submit_id", String, nullable=False, unique=True),
        *_rating_columns(),
        *(Column(column, String, nullable=False, server_default="") for column in SHOWN),
        by="rater_id unit_id rubric",
    )


labels = _label_table("labels")
attention_labels = _label_table("attention_labels")
practice_labels = _label_table("practice_labels")  # draw: the attempt at the practice

grades = _log("grades", *_rating_columns(), *_reply_columns(), by="rater_id rubric rubric_hash")

attacked_grades = _log(
    "attacked_grades",
    *_rating_columns(),
    # The attack (see study.tables.ratings), the option that it asks for, of a pair the side whose
    # response holds it, and the version of the attacks' texts.
    *_filled("attack", "target", "side", "suite"),
    *_reply_columns(),
    by="rater_id rubric suite",
)
"""Grades of texts that try to sway a grader: kept only here, never ratings."""

is_scored = sa.or_(
    grades.c.label != "", sa.and_(grades.c.p_positive.is_not(None), grades.c.unscored_reason == "")
)
"""SQL condition on a row of `grades`; an imported one may have a probability and no label."""


def is_latest(events: Table, *key: str) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the event is the last one of its key, and so the one in force."""
    last = sa.select(sa.func.max(events.c.event_id)).group_by(*(events.c[name] for name in key))
    return events.c.event_id.in_(last)


remarks = _log(
    "remarks",
    Column("submit_id", String, nullable=False, unique=True),  # an answer's is that of its label
    *_filled("kind", "unit_id", "rubric", "rater_id", "order"),  # kind: answer | flag
    *_filled("draw", of=Integer),
    *_filled("rubric_hash"),
    Column("confidence", Integer),
    Column("reason", String, nullable=False, default=""),
    Column("text", Text, nullable=False, default=""),
    by="rater_id unit_id",
)
"""People's remarks to their labels: append-only, never part of the `ratings` table."""

answer_details = _table(
    "answer_details",
    *_keys("submit_id"),  # that of its label
    *_filled("display"),  # text | markdown | opened; empty: not known
    *_filled("evidence", of=JSON),  # see study.tables.ratings
)
"""Details of a person's answer: how responses were shown, and which words decided."""

claims = _table(
    "claims",
    *_keys("task_id"),
    *_filled("rater_id", "unit_id", "rubric", "rubric_hash", "order"),
    Column("draw", Integer, nullable=False, default=0),
    *_filled("claimed_at", "state"),  # state: open | labelled | released
    *_filled("version", of=Integer),  # rises with every change of any row
    sa.UniqueConstraint("rater_id", "unit_id", "rubric", "rubric_hash", "draw"),
    Index("claims_by_version", "version"),
)
"""Claims: which rater was given what. The labels are the truth; the desk hands out by this."""

batches = _table(
    "batches",
    *_keys("chunk"),
    *_filled("rater_id", "base_url"),
    Column("at_most_usd", Float),  # empty: no known price
    *_filled("questions", of=JSON),
    *_filled("created_at"),
)

# kind: intended, submitted, collected, abandoned
_batch = Column("batch_id", String, nullable=False, default="")
batch_events = _log("batch_events", *_filled("chunk", "kind"), _batch, by="chunk")

response_attempts = _log(
    "response_attempts",
    *_filled("subject", "pair_id", "side"),
    Column("response", Text, nullable=False, default=""),
    Column("unscored_reason", String, nullable=False, default=""),  # why there is no response
    Column("provenance", JSON, nullable=False, default=dict),
    by="subject pair_id side",
)

# kind: set | disabled
account_events = _log(
    "account_events", *_filled("name", "kind", "role", "password_hash"), by="name"
)

login_attempts = _log(
    "login_attempts",
    *_filled("name_key"),  # a keyed digest of the name typed
    Column("address_key", String, nullable=False, server_default=""),  # the same of the sender's
    *_filled("admitted", of=Integer),
    by="name_key created_at",
)

# kind: made | revoked
invite_events = _log("invite_events", *_filled("invite_id", "rater_id", "kind"), by="rater_id")

participant_entries = _log(
    "participant_entries",
    *_filled("rater_id", "participant_id", "study_id", "session_id"),
    by="participant_id",
)
"""Ids of a crowd's raters on the platform they come from: kept only here, never with labels."""

# kind: see store.py
session_events = _log(
    "session_events", *_filled("rater_id", "kind"), *_filled("detail", of=JSON), by="rater_id"
)

told_totals = _log(
    "told_totals", *_filled("rater_id", "plan"), *_filled("total", of=Integer), by="rater_id"
)
"""Only in stores of earlier versions does anything stand here: totals announced to raters."""

background_answers = _log("background_answers", *_filled("rater_id", "question", "answer"))
"""People's answers about themselves: kept only here, never with labels."""

# kind: pause, resume, exclude, readmit, used, logged_out
lead_events = _log(
    "lead_events", *_filled("kind", "rater_id"), *_filled("reason", of=Text), *_filled("done_by")
)
"""The lead's decisions while people label, one-time links that were used, logins that ended; and
what improving a grader decided (`logs.decisions`)."""

look_events = _log("look_events", *_filled("rubric", "labels_hash"))
"""Looks at the verdict: each at other labels of people spends part of the error that is allowed."""

sample_waves = _log(
    "sample_waves",
    *_filled("by"),  # chance | uncertainty
    *_filled("chances", of=JSON),  # by pair: of being taken, if not taken before
    *_filled("taken", of=JSON),  # ids of pairs, in their order of labelling
)
"""Draws of the sample, from the first one on in which pairs were not all equally likely."""

threshold_events = _log(
    "threshold_events",
    *_filled("rubric", "grader"),
    *_filled("threshold", of=Float),
    *_filled("objective", "reference"),
    *_filled("instead_of", of=Float),  # the rubric's threshold, or a declared one
    *_filled("clusters", of=JSON),  # ids of the pairs whose labels it was tuned on
)
"""Thresholds that were tuned. Those in force are in study.toml, which anyone may edit."""

adjudication_leases = _table(
    "adjudication_leases", *_keys("unit_id", "rubric"), *_filled("holder", "taken_at")
)
"""Only in stores of earlier versions does anything stand here: items that adjudicators had open."""

flag_events = _log(
    "flag_events",
    *_filled("flag_id", of=Integer),  # the flag's event_id among the remarks
    *_filled("kind"),  # closed | reopened | answered, or withdrawn by who raised it
    *_filled("text", of=Text),
    *_filled("done_by"),
    by="flag_id",
)
"""Outcomes of people's flags: the lead's answers, and withdrawals by their raters."""

# kind: see lead.disagreements; empty: taken back
sorted_disagreements = _log(
    "sorted_disagreements",
    *_filled("rubric", "rubric_hash", "unit_id", "grader", "kind"),
    *_filled("note", of=Text),
    *_filled("done_by"),
)
"""The lead's judgments on a grader's label that differs from people's."""
