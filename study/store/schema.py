"""Tables of the store. Labels and grades are events: rows are added, never changed or deleted.

A unit is what gets a label; `draw` counts repeats of a question, `order` is the shown order of
sides, `done_by` the person who acted.
"""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, Column, Float, Index, Integer, String, Table, Text

SCHEMA_VERSION = "2"  # rises with every change of the tables; `study.keeping` upgrades a store

metadata = sa.MetaData()


def _required(*names: str, kind: type[sa.types.TypeEngine[Any]] = String) -> list[Column[Any]]:
    """Return columns of one type that every row fills in."""
    return [Column(name, kind, nullable=False) for name in names]


def _keys(*names: str) -> list[Column[str]]:
    """Return text columns that are the table's primary key."""
    return [Column(name, String, primary_key=True) for name in names]


def _log(name: str, *columns: sa.schema.SchemaItem, index: str = "") -> Table:
    """Return a table of numbered events with their times. Columns named in `index`, separated by
    spaces, are indexed; the index is named after what the first of them identifies.
    """
    event_id = Column("event_id", Integer, primary_key=True, autoincrement=True)
    if "created_at" not in (getattr(column, "name", "") for column in columns):
        columns = (*columns, *_required("created_at"))
    table = Table(name, metadata, event_id, *columns)
    if index:
        subject = index.split()[0].removesuffix("_id").removesuffix("_key")
        Index(f"{name}_by_{subject}", *(table.c[column] for column in index.split()))
    return table


def _table(name: str, *columns: sa.schema.SchemaItem) -> Table:
    return Table(name, metadata, *columns)


meta = _table("meta", *_keys("key"), *_required("value", kind=Text))  # such as schema, secret

pairs = _table(
    "pairs",
    *_keys("pair_id"),
    Column("position", Integer, nullable=False, unique=True),
    *_required("cells", kind=JSON),  # the pairs file's row, every column as text
    Column("sample_position", Integer, unique=True),  # order of labelling; empty: not sampled
)

responses = _table(
    "responses", *_keys("pair_id", "subject", "side"), *_required("response", kind=Text)
)


def _rating_columns() -> list[Column[object]]:
    """Return the columns that labels and grades share: those of the `ratings` table."""
    return [
        *_required("unit_id", "rubric", "rater_id", "rater_kind", "label"),
        Column("p_positive", Float),  # probability of the positive options
        Column("probabilities", JSON(none_as_null=True)),
        Column("prob_method", String, nullable=False, default=""),  # see tables.ratings
        Column("draw", Integer, nullable=False, default=0),
        Column("order", String, nullable=False, default=""),
        Column("unscored_reason", String, nullable=False, default=""),
        Column("seconds", Float),
        Column("rubric_hash", String, nullable=False, default=""),
        *_required("created_at"),
    ]


def _reply_columns() -> list[Column[object]]:
    """Return the columns on a model's reply."""
    provenance = Column("provenance", JSON, nullable=False, default=dict)
    return [Column("raw", Text, nullable=False, default=""), provenance]


SHOWN = ("page_language", "shown_hash")
"""Columns on the page that a person saw: its language, and the hash of the rubric's text as shown
(that of the translation, if there is one). Empty where it is not known."""


def _label_table(name: str) -> Table:
    """Return a table of people's labels."""
    return _log(
        name,
        Column("submit_id", String, nullable=False, unique=True),  # a resent one is ignored
        *_rating_columns(),
        *(Column(key, String, nullable=False, default="", server_default="") for key in SHOWN),
        index="rater_id unit_id rubric",
    )


labels = _label_table("labels")
attention_labels = _label_table("attention_labels")
practice_labels = _label_table("practice_labels")  # draw: the attempt at the practice

grades = _log("grades", *_rating_columns(), *_reply_columns(), index="rater_id rubric rubric_hash")

attacked_grades = _log(
    "attacked_grades",
    *_rating_columns(),
    # The attack (see study.tables.ratings), the option that it asks for, the side of a pair whose
    # response has it, and the version of the attacks' texts.
    *_required("attack", "target", "side", "suite"),
    *_reply_columns(),
    index="rater_id rubric suite",
)
"""Grades of attacked texts, which are never ratings."""

has_probability = grades.c.p_positive.is_not(None)
is_scored = sa.or_(grades.c.label != "", sa.and_(has_probability, grades.c.unscored_reason == ""))
"""SQL condition on a row of `grades`; an imported one may have a probability and no label."""


def accepted_text(
    table: sa.Table, accepted: Mapping[str, Collection[str]]
) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the row was given under a text that `accepted` (rubric -> hashes of
    its texts) names, or under any.
    """
    texts = (
        (table.c.rubric == name) & table.c.rubric_hash.in_(hashes)
        for name, hashes in accepted.items()
    )
    return sa.or_(table.c.rubric_hash == "", *texts)


def is_latest(events: Table, *key: str) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the event is the last one with its key, and so the present one."""
    last = sa.select(sa.func.max(events.c.event_id)).group_by(*(events.c[name] for name in key))
    return events.c.event_id.in_(last)


remarks = _log(
    "remarks",
    Column("submit_id", String, nullable=False, unique=True),  # an answer's is that of its label
    *_required("kind", "unit_id", "rubric", "rater_id", "order"),  # kind: answer | flag
    *_required("draw", kind=Integer),
    *_required("rubric_hash"),
    Column("confidence", Integer),
    Column("reason", String, nullable=False, default=""),
    Column("text", Text, nullable=False, default=""),
    index="rater_id unit_id",
)
"""People's remarks on their labels, and flags; never part of the `ratings` table."""

answer_details = _table(
    "answer_details",
    *_keys("submit_id"),  # that of its label
    *_required("display"),  # text | markdown | opened; empty: not known
    *_required("evidence", kind=JSON),  # see study.tables.ratings
)
"""Details of a person's answer: how responses were shown, and words marked as evidence."""

claims = _table(
    "claims",
    *_keys("task_id"),
    *_required("rater_id", "unit_id", "rubric", "rubric_hash", "order"),
    Column("draw", Integer, nullable=False, default=0),
    *_required("claimed_at", "state"),  # state: open | labelled | released
    *_required("version", kind=Integer),  # rises with every change of any row
    sa.UniqueConstraint("rater_id", "unit_id", "rubric", "rubric_hash", "draw"),
    Index("claims_by_version", "version"),
)
"""Claims: the tasks given to each rater, by which the desk hands out further ones."""

batches = _table(
    "batches",
    *_keys("chunk"),  # the study's id of the batch; `batch_id` is the provider's, once it is sent
    *_required("rater_id", "base_url"),
    Column("at_most_usd", Float),  # empty: no known price
    *_required("questions", kind=JSON),  # fields of each `BatchRequest`, in their order
    *_required("created_at"),
)

# kind: intended, submitted, collected, abandoned
_batch_id = Column("batch_id", String, nullable=False, default="")
batch_events = _log("batch_events", *_required("chunk", "kind"), _batch_id, index="chunk")

response_attempts = _log(
    "response_attempts",
    *_required("subject", "pair_id", "side"),
    Column("response", Text, nullable=False, default=""),
    Column("unscored_reason", String, nullable=False, default=""),  # why there is no response
    Column("provenance", JSON, nullable=False, default=dict),
    index="subject pair_id side",
)

# kind: set | disabled
account_events = _log(
    "account_events", *_required("name", "kind", "role", "password_hash"), index="name"
)

login_attempts = _log(
    "login_attempts",
    *_required("name_key"),  # a keyed digest of the name typed
    Column("address_key", String, nullable=False, server_default=""),  # the same of the sender's
    *_required("admitted", kind=Integer),
    index="name_key created_at",
)

# kind: made | revoked
invite_events = _log("invite_events", *_required("invite_id", "rater_id", "kind"), index="rater_id")

participant_entries = _log(
    "participant_entries",
    *_required("rater_id", "participant_id", "study_id", "session_id"),
    index="participant_id",
)
"""Ids of participants on Prolific: stored only here, never with labels."""

# kind: see store.py
session_events = _log(
    "session_events",
    *_required("rater_id", "kind"),
    *_required("detail", kind=JSON),
    index="rater_id",
)

told_totals = _log(
    "told_totals",
    *_required("rater_id", "plan"),
    *_required("total", kind=Integer),
    index="rater_id",
)
"""Totals announced to raters; only earlier versions wrote them."""

background_answers = _log("background_answers", *_required("rater_id", "question", "answer"))
"""People's answers about themselves: stored only here, never with labels."""

# kind: see logs/decisions.py; rater_id: what the event is about; reason: its detail
lead_events = _log(
    "lead_events",
    *_required("kind", "rater_id"),
    *_required("reason", kind=Text),
    *_required("done_by"),
)
"""The lead's acts, one-time links that were used, logins that ended, and steps of improving a
grader (`logs.decisions`)."""

look_events = _log("look_events", *_required("rubric", "labels_hash"))
"""Interim analyses: each look at the verdict with new labels spends part of the error rate."""

sample_waves = _log(
    "sample_waves",
    *_required("by"),  # chance | uncertainty
    *_required("chances", kind=JSON),  # by pair: probability of being taken, if not taken before
    *_required("taken", kind=JSON),  # ids of pairs, in their order of labelling
)
"""Draws of the sample, from the first one with unequal probabilities on."""

threshold_events = _log(
    "threshold_events",
    *_required("rubric", "grader"),
    *_required("threshold", kind=Float),
    *_required("objective", "reference"),
    *_required("instead_of", kind=Float),  # the rubric's threshold, or a declared one
    *_required("clusters", kind=JSON),  # ids of the pairs whose labels it was tuned on
)
"""Tuned thresholds. The active ones are in study.toml, which anyone may edit."""

adjudication_leases = _table(
    "adjudication_leases", *_keys("unit_id", "rubric"), *_required("holder", "taken_at")
)
"""Items that adjudicators had open; only earlier versions wrote them."""

flag_events = _log(
    "flag_events",
    *_required("flag_id", kind=Integer),  # the flag's event_id among the remarks
    *_required("kind"),  # closed | reopened | answered, or withdrawn by who raised it
    *_required("text", kind=Text),
    *_required("done_by"),
    index="flag_id",
)
"""Outcomes of people's flags: the lead's answers and closings, and raters' withdrawals."""

# kind: see lead.disagreements; empty: taken back
sorted_disagreements = _log(
    "sorted_disagreements",
    *_required("rubric", "rubric_hash", "unit_id", "grader", "kind"),
    *_required("note", kind=Text),
    *_required("done_by"),
)
"""The lead's judgments on graders' labels that differ from people's."""
