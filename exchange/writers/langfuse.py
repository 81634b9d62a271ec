"""Scores for Langfuse: a line for each, as `POST /api/public/scores` takes them in a list.

https://langfuse.com/docs/evaluation/evaluation-methods/custom-scores
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

_IDS = {"trace_id": "traceId", "observation_id": "observationId", "session_id": "sessionId"}
"""Columns of the units that say what is scored; without any the item's id, or the unit's, is the
trace's.
"""


def langfuse(material: Material) -> Made:
    """JSON lines of categorical scores named by the rubric. The rater is in the metadata.

    A rating always has the same score id: sent twice, it is one score.
    """
    rows, unscored = with_label(material.ratings)
    units = unit_rows(material.units)
    records = [_score(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
    return Made({"": lines_of(records)}, len(records), unscored)


def _score(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    ids = {theirs: str(unit[ours]) for ours, theirs in _IDS.items() if ours in unit}
    score = {
        "id": always_same_id(row),
        **(ids or {"traceId": tool_id(row, unit, "trace_id")}),
        "name": rubric_name(row["rubric"]),
        "value": row["label"],
        "dataType": "CATEGORICAL",
        "metadata": about_rating(row),
    }
    return score | ({"timestamp": moment(row["created_at"])} if row["created_at"] else {})
