"""Feedback for LangSmith: a line for each, as `POST /feedback` and `FeedbackCreate` take it.

https://docs.langchain.com/langsmith/feedback-data-format
"""

from __future__ import annotations

from typing import Any

from evenhand.exchange.writers.material import (
    Made,
    Material,
    about_rating,
    always_same_id,
    lines_of,
    moment,
    rubric_name,
    tool_id,
    unit_rows,
    with_label,
)


def langsmith(material: Material) -> Made:
    """JSON lines of feedback whose key is the rubric, on the run that the column `run_id` of the
    units names, else on the item's own id. The rater is in the source's metadata.

    A rating always has the same feedback id: sent twice, it is one piece of feedback.
    """
    rows, unscored = with_label(material.ratings)
    units = unit_rows(material.units)
    records = [_feedback(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
    return Made({"": lines_of(records)}, len(records), unscored)


def _feedback(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: str(value) for name, value in about_rating(row).items()}
    kind = "model" if row["rater_kind"] == "model" else "api"
    run = tool_id(row, unit, "run_id")
    feedback = {
        "id": always_same_id(row),
        "run_id": run,
        "trace_id": str(unit.get("trace_id", run)),  # of an uppermost run its own id
        "key": rubric_name(row["rubric"]),
        "value": row["label"],
        "feedback_source": {"type": kind, "metadata": metadata},
    }
    at = moment(row["created_at"]) if row["created_at"] else ""
    return feedback | ({"created_at": at, "modified_at": at} if at else {})
