"""The store's tables. Labels and grades are events: rows are added, never changed or deleted."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import JSON, Column, Float, Index, Integer, String, Table, Text

SCHEMA_VERSION = "2"
"""Rises with every change of a table, and every new one; `keeping` brings a store along."""

metadata = sa.MetaData()


def _texts(*names: str) -> list[Column[str]]:
    """Return columns of short texts that are filled in."""
    return [Column(name, String, nullable=False) for name in names]


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, String, primary_key=True) for name in names]


def _log(name: str, *columns: sa.schema.SchemaItem, by: str = "") -> Table:
    """Return a table of numbered events with their times. Columns of `by` get an index, which is
    named after what the first of them identifies.
    """
    number = Column("event_id", Integer, primary_key=True, autoincrement=True)
    if "created_at" not in (getattr(each, "name", "") for each in columns):
        columns = (*columns, *_texts("created_at"))
    table = Table(name, metadata, number, *columns)
    if by:
        subject = by.split()[0].removesuffix("_id").removesuffix("_key")
        Index(f"{name}_by_{subject}", *(table.c[each] for each in by.split()))
    return table


meta = Table("meta", metadata, *_keys("key"), Column("value", Text, nullable=False))

pairs = Table(
    "pairs",
    metadata,
    *_keys("pair_id"),
    Column("position", Integer, nullable=False, unique=True),
    Column("cells", JSON, nullable=False),  # the pairs file's row, every column as text
    Column("sample_position", Integer, unique=True),  # order of labelling; empty: not sampled
)

responses = Table(
    "responses",
    metadata,
    *_keys("pair_id", "subject", "side"),
    Column("response", Text, nullable=False),
)


def _rating_columns() -> list[Column[object]]:
    """Return the columns that a label and a grade share: those of the `ratings` table."""
    return [
        *_texts("unit_id", "rubric", "rater_id", "rater_kind", "label"),
        Column("p_positive", Float),
        Column("probabilities", JSON(none_as_null=True)),
        Column("prob_method", String, nullable=False, default=""),
        Column("draw", Integer, nullable=False, default=0),
        Column("order", String, nullable=False, default=""),
        Column("unscored_reason", String, nullable=False, default=""),
        Column("seconds", Float),
        Column("rubric_hash", String, nullable=False, default=""),
        *_texts("created_at"),
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
        *(Column(each, String, nullable=False, server_default="") for each in SHOWN),
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
    *_texts("attack", "target", "side", "suite"),
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
    *_texts("kind", "unit_id", "rubric", "rater_id", "order"),  # kind: answer | flag
    Column("draw", Integer, nullable=False),
    *_texts("rubric_hash"),
    Column("confidence", Integer),
    Column("reason", String, nullable=False, default=""),
    Column("text", Text, nullable=False, default=""),
    by="rater_id unit_id",
)
"""People's remarks to their labels: append-only, never part of the `ratings` table."""

answer_details = Table(
    "answer_details",
    metadata,
    *_keys("submit_id"),  # that of its label
    *_texts("display"),  # text | markdown; empty: not known
    Column("evidence", JSON, nullable=False),  # see study.tables.ratings
)
"""Details of a person's answer: how responses were shown, and which words decided."""

claims = Table(
    "claims",
    metadata,
    *_keys("task_id"),
    *_texts("rater_id", "unit_id", "rubric", "rubric_hash", "order"),
    Column("draw", Integer, nullable=False, default=0),
    *_texts("claimed_at", "state"),  # state: open | labelled | released
    Column("version", Integer, nullable=False),  # rises with every change of any row
    sa.UniqueConstraint("rater_id", "unit_id", "rubric", "rubric_hash", "draw"),
    Index("claims_by_version", "version"),
)
"""Claims: which rater was given what. The labels are the truth; the desk hands out by this."""

batches = Table(
    "batches",
    metadata,
    *_keys("chunk"),
    *_texts("rater_id", "base_url"),
    Column("at_most_usd", Float),  # empty: no known price
    Column("questions", JSON, nullable=False),
    *_texts("created_at"),
)

# kind: intended, submitted, collected, abandoned
batch_events = _log(
    "batch_events",
    *_texts("chunk", "kind"),
    Column("batch_id", String, nullable=False, default=""),
    by="chunk",
)

response_attempts = _log(
    "response_attempts",
    *_texts("subject", "pair_id", "side"),
    Column("response", Text, nullable=False, default=""),
    Column("unscored_reason", String, nullable=False, default=""),  # why there is no response
    Column("provenance", JSON, nullable=False, default=dict),
    by="subject pair_id side",
)

# kind: set | disabled
account_events = _log("account_events", *_texts("name", "kind", "role", "password_hash"), by="name")

login_attempts = _log(
    "login_attempts",
    *_texts("name_key"),  # a keyed digest of the name typed
    Column("address_key", String, nullable=False, server_default=""),  # the same of the sender's
    Column("admitted", Integer, nullable=False),
    by="name_key created_at",
)

# kind: made | revoked
invite_events = _log("invite_events", *_texts("invite_id", "rater_id", "kind"), by="rater_id")

participant_entries = _log(
    "participant_entries",
    *_texts("rater_id", "participant_id", "study_id", "session_id"),
    by="participant_id",
)
"""Ids of a crowd's raters on the platform they come from: kept only here, never with labels."""

# kind: see logs.answers
session_events = _log(
    "session_events",
    *_texts("rater_id", "kind"),
    Column("detail", JSON, nullable=False),
    by="rater_id",
)

# plan: a digest of the study as it was, see SessionDesign
told_totals = _log(
    "told_totals",
    *_texts("rater_id", "plan"),
    Column("total", Integer, nullable=False),
    by="rater_id",
)
"""The number of answers announced to each rater: the latest counts."""

background_answers = _log("background_answers", *_texts("rater_id", "question", "answer"))
"""People's answers about themselves: kept only here, never with labels."""

# kind: pause, resume, exclude, readmit, used, logged_out
lead_events = _log(
    "lead_events",
    *_texts("kind", "rater_id"),
    Column("reason", Text, nullable=False),
    *_texts("done_by"),
)
"""The lead's decisions while people label, one-time links that were used, logins that ended; and
what improving a grader decided (`logs.decisions`)."""

look_events = _log("look_events", *_texts("rubric", "labels_hash"))
"""Looks at the verdict: each at other labels of people spends part of the error that is allowed."""

sample_waves = _log(
    "sample_waves",
    *_texts("by"),  # chance | uncertainty
    Column("chances", JSON, nullable=False),  # by pair: of being taken, if not taken before
    Column("taken", JSON, nullable=False),  # ids of pairs, in their order of labelling
)
"""Draws of the sample, from the first one on in which pairs were not all equally likely."""

threshold_events = _log(
    "threshold_events",
    *_texts("rubric", "grader"),
    Column("threshold", Float, nullable=False),
    *_texts("objective", "reference"),
    Column("instead_of", Float, nullable=False),  # the rubric's threshold, or a declared one
    Column("clusters", JSON, nullable=False),  # ids of the pairs whose labels it was tuned on
)
"""Thresholds that were tuned. Those in force are in study.toml, which anyone may edit."""

adjudication_leases = Table(
    "adjudication_leases",
    metadata,
    *_keys("unit_id", "rubric"),
    *_texts("holder", "taken_at"),  # holder: the name of the adjudicator
)
"""Leases: which adjudicator has which unit open, to divide the work; the decisions are labels."""

flag_events = _log(
    "flag_events",
    Column("flag_id", Integer, nullable=False),  # the flag's event_id among the remarks
    *_texts("kind"),  # closed | reopened | answered, or withdrawn by who raised it
    Column("text", Text, nullable=False),
    *_texts("done_by"),
    by="flag_id",
)
"""Outcomes of people's flags: the lead's answers, and withdrawals by their raters."""

# kind: see lead.disagreements; empty: taken back
sorted_disagreements = _log(
    "sorted_disagreements",
    *_texts("rubric", "rubric_hash", "unit_id", "grader", "kind"),
    Column("note", Text, nullable=False),
    *_texts("done_by"),
)
"""The lead's judgments on a grader's label that differs from people's."""
