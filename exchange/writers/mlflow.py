"""Assessments for MLflow: a line for each; `mlflow.entities.Assessment.from_dictionary` reads it.

https://mlflow.org/docs/latest/genai/assessments/feedback/
"""

from __future__ import annotations

from typing import Any

from evenhand.exchange.writers.material import (
    Made,
    Material,
    facts_of,
    lines_of,
    moment,
    rubric_name,
    tool_id,
    unit_rows,
)

_FACTS = (
    "rater_kind",
    "p_positive",
    "probabilities",
    "prob_method",
    "draw",
    "order",
    "seconds",
    "rubric_hash",
)


def mlflow(material: Material) -> Made:
    """JSON lines of feedback named by the rubric, on the trace (and span) that the columns
    `trace_id` and `span_id` of the units name, else on the item's own id, or the unit's.

    A rating without a label is feedback with an error, whose code is the reason.
    """
    units = unit_rows(material.units)
    rows = material.ratings.to_dict("records")
    records = [_assessment(row, units.get(row["unit_id"], {})) for row in rows]
    return Made({"": lines_of(records)}, len(records), [])


def _assessment(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    at = moment(row["created_at"])
    record = {
        "assessment_name": rubric_name(row["rubric"]),
        "trace_id": tool_id(row, unit, "trace_id"),
        "source": {"source_type": _source_type(row), "source_id": row["rater_id"]},
        "create_time": at,
        "last_update_time": at,
        "feedback": _feedback(row),
        "metadata": {name: str(value) for name, value in facts_of(row, _FACTS).items()},
        "valid": True,
    }
    return record | ({"span_id": str(unit["span_id"])} if "span_id" in unit else {})


def _feedback(row: dict[Any, Any]) -> dict[str, Any]:
    if row["label"]:
        return {"value": row["label"]}
    return {"value": None, "error": {"error_code": row["unscored_reason"] or "no_label"}}


def _source_type(row: dict[Any, Any]) -> str:
    if row["rater_kind"] != "model":
        return "HUMAN"
    return "CODE" if row["rater_id"].startswith("baseline:") else "LLM_JUDGE"
