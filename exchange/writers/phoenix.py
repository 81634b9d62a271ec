"""Span annotations for Phoenix: a line for each, as `POST /v1/span_annotations` takes them under
`data`.

https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/spans/create-span-annotations
"""

from __future__ import annotations

from typing import Any

from evenhand.exchange.writers.material import (
    Made,
    Material,
    about_rating,
    lines_of,
    rubric_name,
    tool_id,
    unit_rows,
    with_label,
)


def phoenix(material: Material) -> Made:
    """JSON lines of annotations named by the rubric, on the span that the column `span_id` of the
    units names, else on the item's own id. The rater is in the metadata.

    A rating always has the same identifier: sent twice, it is one annotation.
    """
    rows, unscored = with_label(material.ratings)
    units = unit_rows(material.units)
    records = [_annotation(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
    return Made({"": lines_of(records)}, len(records), unscored)


def _annotation(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    drawn = [str(row[name]) for name in ("order", "draw") if row[name]]
    return {
        "span_id": tool_id(row, unit, "span_id"),
        "name": rubric_name(row["rubric"]),
        "annotator_kind": "LLM" if row["rater_kind"] == "model" else "HUMAN",
        "result": {"label": row["label"]},
        "metadata": about_rating(row),
        "identifier": "/".join([row["rater_id"], *drawn]),
    }
