"""Tables for looks at the verdict, waves of the sample, tuned thresholds, the lead's acts, the
totals announced to raters, details of answers, and grades under attack; the language in which a
label was given, and the origin of a wrong password.

Graders whose answers came from another server than their provider's get its address in their name.

Written out as they were then: `study.store.schema` may have the tables of a later version.
"""

from alembic import op
from sqlalchemy import (
    JSON,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    update,
)

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


_LABELS = ("labels", "attention_labels", "practice_labels")


def upgrade() -> None:
    """Add those that are not there: before versions were counted, opening a store added some."""
    connection = op.get_bind()
    metadata.create_all(connection)
    added = dict.fromkeys(_LABELS, ("page_language", "shown_hash"))
    for table, names in (added | {"login_attempts": ("address_key",)}).items():
        there = {column["name"] for column in inspect(connection).get_columns(table)}
        for name in names:
            if name not in there:
                op.add_column(table, Column(name, String, nullable=False, server_default=""))
    for rated in (_grades, _batches):
        _name_addresses(rated)


_grades = Table("grades", MetaData(), Column("rater_id", String), Column("provenance", JSON))
_batches = Table("batches", MetaData(), Column("rater_id", String), Column("base_url", String))
_EVERYBODYS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}


def _name_addresses(table: Table) -> None:
    """Put the address into the names of graders that another server than the provider's answered.

    Version 0.1.0 sent `anthropic:MODEL` to ANTHROPIC_BASE_URL and kept the grades under that name.
    """
    connection = op.get_bind()
    column = table.c.base_url if table is _batches else table.c.provenance["base_url"].as_string()
    for rater, address in connection.execute(select(table.c.rater_id, column).distinct()).all():
        provider, _, model = rater.partition(":")
        known, address = _EVERYBODYS.get(provider), (address or "").rstrip("/")
        if not known or not address or address == known or "@http" in rater:
            continue
        named, hashed, settings = model.partition("#")
        connection.execute(
            update(table)
            .where(table.c.rater_id == rater, column.in_((address, f"{address}/")))
            .values(rater_id=f"{provider}:{named}@{address}{hashed}{settings}")
        )
