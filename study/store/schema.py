"""The store's tables. Labels and grades are events: rows are added, never changed or deleted."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    func,
    or_,
    select,
)

SCHEMA_VERSION = "2"
"""Rises with every change of a table, and every new one; `migrations` says how a store follows."""

metadata = MetaData()

meta = Table(
    "meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False)
)

pairs = Table(
    "pairs",
    metadata,
    Column("pair_id", String, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("cells", JSON, nullable=False),  # the pairs file's row, every column as text
    Column("sample_position", Integer, unique=True),  # order of labelling; empty: not sampled
)

responses = Table(
    "responses",
    metadata,
    Column("pair_id", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("side", String, primary_key=True),
    Column("response", Text, nullable=False),
)


def _rating_columns() -> list[Column[object]]:
    """Return the columns that a label and a grade share: those of the `ratings` table."""
    return [
        Column("unit_id", String, nullable=False),
        Column("rubric", String, nullable=False),
        Column("rater_id", String, nullable=False),
        Column("rater_kind", String, nullable=False),
        Column("label", String, nullable=False),
        Column("p_positive", Float),
        Column("probabilities", JSON(none_as_null=True)),
        Column("prob_method", String, nullable=False, default=""),
        Column("draw", Integer, nullable=False, default=0),
        Column("order", String, nullable=False, default=""),
        Column("unscored_reason", String, nullable=False, default=""),
        Column("seconds", Float),
        Column("rubric_hash", String, nullable=False, default=""),
        Column("created_at", String, nullable=False),
    ]


SHOWN = ("page_language", "shown_hash")
"""Columns on how a person was asked: the page's language, and the hash of the rubric's text as
shown, which is that of a translation where there is one. Empty where it is not known.
"""


def _label_table(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("event_id", Integer, primary_key=True, autoincrement=True),
        Column("submit_id", String, nullable=False, unique=True),
        *_rating_columns(),
        *(Column(each, String, nullable=False, server_default="") for each in SHOWN),
        Index(f"{name}_by_rater", "rater_id", "unit_id", "rubric"),
    )


labels = _label_table("labels")
attention_labels = _label_table("attention_labels")
practice_labels = _label_table("practice_labels")  # draw: the attempt at the practice

grades = Table(
    "grades",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    *_rating_columns(),
    Column("raw", Text, nullable=False, default=""),
    Column("provenance", JSON, nullable=False, default=dict),
    Index("grades_by_rater", "rater_id", "rubric", "rubric_hash"),
)

attacked_grades = Table(
    "attacked_grades",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    *_rating_columns(),
    Column("attack", String, nullable=False),  # see study.tables.attacks
    Column("target", String, nullable=False),  # the option that the attack asks for
    Column("side", String, nullable=False),  # of a pair: whose response holds the attack
    Column("suite", String, nullable=False),  # the version of the attacks' texts
    Column("raw", Text, nullable=False, default=""),
    Column("provenance", JSON, nullable=False, default=dict),
    Index("attacked_grades_by_rater", "rater_id", "rubric", "suite"),
)
"""Grades of texts that try to sway a grader: kept only here, never ratings."""

is_scored = or_(
    grades.c.label != "", and_(grades.c.p_positive.is_not(None), grades.c.unscored_reason == "")
)
"""Of a row of `grades`; one from elsewhere may hold a probability and no label."""


def is_latest(events: Table, *key: str) -> ColumnElement[bool]:
    """Return an SQL condition: the event is the last one of its key, and so the one in force."""
    last = select(func.max(events.c.event_id)).group_by(*(events.c[name] for name in key))
    return events.c.event_id.in_(last)


remarks = Table(
    "remarks",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("submit_id", String, nullable=False, unique=True),  # an answer's is that of its label
    Column("kind", String, nullable=False),  # answer | flag
    Column("unit_id", String, nullable=False),
    Column("rubric", String, nullable=False),
    Column("rater_id", String, nullable=False),
    Column("order", String, nullable=False),
    Column("draw", Integer, nullable=False),
    Column("rubric_hash", String, nullable=False),
    Column("confidence", Integer),
    Column("reason", String, nullable=False, default=""),
    Column("text", Text, nullable=False, default=""),
    Column("created_at", String, nullable=False),
    Index("remarks_by_rater", "rater_id", "unit_id"),
)
"""People's remarks to their labels: append-only, never part of the `ratings` table."""

answer_details = Table(
    "answer_details",
    metadata,
    Column("submit_id", String, primary_key=True),  # that of its label
    Column("display", String, nullable=False),  # text | markdown; empty: not known
    Column("evidence", JSON, nullable=False),  # see study.tables.evidence
)
"""Details of a person's answer: how responses were shown, and which words decided."""

claims = Table(
    "claims",
    metadata,
    Column("task_id", String, primary_key=True),
    Column("rater_id", String, nullable=False),
    Column("unit_id", String, nullable=False),
    Column("rubric", String, nullable=False),
    Column("rubric_hash", String, nullable=False),
    Column("order", String, nullable=False),
    Column("draw", Integer, nullable=False, default=0),
    Column("claimed_at", String, nullable=False),
    Column("state", String, nullable=False),  # open | labelled | released
    Column("version", Integer, nullable=False),  # rises with every change of any row
    UniqueConstraint("rater_id", "unit_id", "rubric", "rubric_hash", "draw"),
    Index("claims_by_version", "version"),
)
"""Claims: which rater was given what. The labels are the truth; the desk hands out by this."""

batches = Table(
    "batches",
    metadata,
    Column("chunk", String, primary_key=True),
    Column("rater_id", String, nullable=False),
    Column("base_url", String, nullable=False),
    Column("at_most_usd", Float),  # empty: no known price
    Column("questions", JSON, nullable=False),
    Column("created_at", String, nullable=False),
)

batch_events = Table(
    "batch_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("chunk", String, nullable=False),
    Column("kind", String, nullable=False),  # intended, submitted, collected, abandoned
    Column("batch_id", String, nullable=False, default=""),
    Column("created_at", String, nullable=False),
    Index("batch_events_by_chunk", "chunk"),
)

response_attempts = Table(
    "response_attempts",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("subject", String, nullable=False),
    Column("pair_id", String, nullable=False),
    Column("side", String, nullable=False),
    Column("response", Text, nullable=False, default=""),
    Column("unscored_reason", String, nullable=False, default=""),  # why there is no response
    Column("provenance", JSON, nullable=False, default=dict),
    Column("created_at", String, nullable=False),
    Index("response_attempts_by_subject", "subject", "pair_id", "side"),
)


account_events = Table(
    "account_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False),
    Column("kind", String, nullable=False),  # set | disabled
    Column("role", String, nullable=False),
    Column("password_hash", String, nullable=False),
    Column("created_at", String, nullable=False),
    Index("account_events_by_name", "name"),
)

login_attempts = Table(
    "login_attempts",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("name_key", String, nullable=False),  # a keyed digest of the name typed
    Column("address_key", String, nullable=False, server_default=""),  # the same of the sender's
    Column("admitted", Integer, nullable=False),
    Column("created_at", String, nullable=False),
    Index("login_attempts_by_name", "name_key", "created_at"),
)

invite_events = Table(
    "invite_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("invite_id", String, nullable=False),
    Column("rater_id", String, nullable=False),
    Column("kind", String, nullable=False),  # made | revoked
    Column("created_at", String, nullable=False),
    Index("invite_events_by_rater", "rater_id"),
)

participant_entries = Table(
    "participant_entries",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rater_id", String, nullable=False),
    Column("participant_id", String, nullable=False),
    Column("study_id", String, nullable=False),
    Column("session_id", String, nullable=False),
    Column("created_at", String, nullable=False),
    Index("participant_entries_by_participant", "participant_id"),
)
"""Ids of a crowd's raters on the platform they come from: kept only here, never with labels."""

session_events = Table(
    "session_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rater_id", String, nullable=False),
    Column("kind", String, nullable=False),  # see logs.session
    Column("detail", JSON, nullable=False),
    Column("created_at", String, nullable=False),
    Index("session_events_by_rater", "rater_id"),
)

told_totals = Table(
    "told_totals",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rater_id", String, nullable=False),
    Column("plan", String, nullable=False),  # a digest of the study as it was, see SessionDesign
    Column("total", Integer, nullable=False),
    Column("created_at", String, nullable=False),
    Index("told_totals_by_rater", "rater_id"),
)
"""The number of answers announced to each rater: the latest counts."""

background_answers = Table(
    "background_answers",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rater_id", String, nullable=False),
    Column("question", String, nullable=False),
    Column("answer", String, nullable=False),
    Column("created_at", String, nullable=False),
)
"""People's answers about themselves: kept only here, never with labels."""

lead_events = Table(
    "lead_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String, nullable=False),  # pause, resume, exclude, readmit, used, logged_out
    Column("rater_id", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("done_by", String, nullable=False),
    Column("created_at", String, nullable=False),
)
"""The lead's decisions while people label, one-time links that were used, logins that ended; and
what improving a grader decided (`logs.improvements`)."""

look_events = Table(
    "look_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("labels_hash", String, nullable=False),  # of people's labels as they were
    Column("created_at", String, nullable=False),
)
"""Looks at the verdict: each at other labels spends part of the error that is allowed."""

sample_waves = Table(
    "sample_waves",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("by", String, nullable=False),  # chance | uncertainty
    Column("chances", JSON, nullable=False),  # by pair: of being taken, if not taken before
    Column("taken", JSON, nullable=False),  # ids of pairs, in their order of labelling
    Column("created_at", String, nullable=False),
)
"""Draws of the sample, from the first one on in which pairs were not all equally likely."""

threshold_events = Table(
    "threshold_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("grader", String, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("objective", String, nullable=False),
    Column("reference", String, nullable=False),
    Column("instead_of", Float, nullable=False),  # the rubric's threshold, or a declared one
    Column("clusters", JSON, nullable=False),  # ids of the pairs whose labels it was tuned on
    Column("created_at", String, nullable=False),
)
"""Thresholds that were tuned. Those in force are in study.toml, which anyone may edit."""

adjudication_leases = Table(
    "adjudication_leases",
    metadata,
    Column("unit_id", String, primary_key=True),
    Column("rubric", String, primary_key=True),
    Column("holder", String, nullable=False),  # the name of the adjudicator
    Column("taken_at", String, nullable=False),
)
"""Leases: which adjudicator has which unit open, to divide the work; the decisions are labels."""

flag_events = Table(
    "flag_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("flag_id", Integer, nullable=False),  # the flag's event_id among the remarks
    Column(
        "kind", String, nullable=False
    ),  # closed | reopened | answered, or withdrawn by who raised it
    Column("text", Text, nullable=False),
    Column("done_by", String, nullable=False),
    Column("created_at", String, nullable=False),
    Index("flag_events_by_flag", "flag_id"),
)
"""Outcomes of people's flags: the lead's answers, and withdrawals by their raters."""

sorted_disagreements = Table(
    "sorted_disagreements",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("rubric_hash", String, nullable=False),
    Column("unit_id", String, nullable=False),
    Column("grader", String, nullable=False),
    Column("kind", String, nullable=False),  # see logs.decisions; empty: taken back
    Column("note", Text, nullable=False),
    Column("done_by", String, nullable=False),
    Column("created_at", String, nullable=False),
)
"""The lead's judgments on a grader's label that differs from people's."""
