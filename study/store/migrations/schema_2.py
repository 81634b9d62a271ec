"""Tables for looks at the verdict, waves of the sample, tuned thresholds, what leads do, the totals
that raters are told, how answers were given, and what graders said under attack; the language in
which a label was given.

Written out as they were then: what `study.store.schema` has may be of a later version.
"""

from alembic import op
from sqlalchemy import JSON, Column, Float, Index, Integer, MetaData, String, Table, Text, inspect

revision = "2"
down_revision = "1"

metadata = MetaData()

Table(
    "look_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("labels_hash", String, nullable=False),
    Column("created_at", String, nullable=False),
)

Table(
    "sample_waves",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("by", String, nullable=False),
    Column("chances", JSON, nullable=False),
    Column("taken", JSON, nullable=False),
    Column("created_at", String, nullable=False),
)

Table(
    "threshold_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("grader", String, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("objective", String, nullable=False),
    Column("reference", String, nullable=False),
    Column("instead_of", Float, nullable=False),
    Column("clusters", JSON, nullable=False),
    Column("created_at", String, nullable=False),
)

Table(
    "adjudication_leases",
    metadata,
    Column("unit_id", String, primary_key=True),
    Column("rubric", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("taken_at", String, nullable=False),
)

Table(
    "flag_events",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("flag_id", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("done_by", String, nullable=False),
    Column("created_at", String, nullable=False),
    Index("flag_events_by_flag", "flag_id"),
)

Table(
    "sorted_disagreements",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rubric", String, nullable=False),
    Column("rubric_hash", String, nullable=False),
    Column("unit_id", String, nullable=False),
    Column("grader", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("note", Text, nullable=False),
    Column("done_by", String, nullable=False),
    Column("created_at", String, nullable=False),
)

Table(
    "told_totals",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
    Column("rater_id", String, nullable=False),
    Column("plan", String, nullable=False),
    Column("total", Integer, nullable=False),
    Column("created_at", String, nullable=False),
    Index("told_totals_by_rater", "rater_id"),
)

Table(
    "answer_details",
    metadata,
    Column("submit_id", String, primary_key=True),
    Column("display", String, nullable=False),
    Column("evidence", JSON, nullable=False),
)

Table(
    "attacked_grades",
    metadata,
    Column("event_id", Integer, primary_key=True, autoincrement=True),
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
    Column("attack", String, nullable=False),
    Column("target", String, nullable=False),
    Column("side", String, nullable=False),
    Column("suite", String, nullable=False),
    Column("raw", Text, nullable=False, default=""),
    Column("provenance", JSON, nullable=False, default=dict),
    Index("attacked_grades_by_rater", "rater_id", "rubric", "suite"),
)


def upgrade() -> None:
    """Add those that are not there: before versions were counted, opening a store added some."""
    metadata.create_all(op.get_bind())
    for table in ("labels", "attention_labels", "practice_labels"):
        there = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
        for name in ("page_language", "shown_hash"):
            if name not in there:
                op.add_column(table, Column(name, String, nullable=False, server_default=""))
