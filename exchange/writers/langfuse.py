"""Scores for Langfuse: a line for each, as `POST /api/public/scores` takes them in a list.

https://langfuse.com/docs/evaluation/evaluation-methods/custom-scores
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from evenhand.exchange.writers.material import (
    Made,
    Material,
    facts_of,
    moment,
    rubric_name,
    unit_rows,
    with_label,
)

_IDS = {"trace_id": "traceId", "observation_id": "observationId", "session_id": "sessionId"}
"""Columns of the units that say what is scored; without any the unit's id is the trace's."""
_FACTS = ("p_positive", "prob_method", "draw", "order", "seconds", "rubric_hash")
_NAMESPACE = uuid.UUID("d1c0b6f0-6f0c-4c39-9f2e-3d2f6d3f6a51")


def langfuse(material: Material) -> Made:
    """JSON lines of categorical scores named by the rubric. The rater is in the metadata.

    A rating always has the same score id: sent twice, it is one score.
    """
    rows, unscored = with_label(material.ratings)
    units = unit_rows(material.units)
    records = [_score(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return Made({"": lines.encode()}, len(records), unscored)


def _score(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    ids = {theirs: str(unit[ours]) for ours, theirs in _IDS.items() if ours in unit}
    key = [row[name] for name in ("unit_id", "rubric", "rater_id", "order", "draw")]
    metadata = facts_of(row, ("rater_id", "rater_kind", *_FACTS))
    if row["probabilities"]:
        metadata["probabilities"] = json.loads(row["probabilities"])
    score = {
        "id": str(uuid.uuid5(_NAMESPACE, json.dumps(key))),
        **(ids or {"traceId": row["unit_id"]}),
        "name": rubric_name(row["rubric"]),
        "value": row["label"],
        "dataType": "CATEGORICAL",
        "metadata": metadata,
    }
    return score | ({"timestamp": moment(row["created_at"])} if row["created_at"] else {})
