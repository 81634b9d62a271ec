"""Scores for Inspect's own scorer `precomputed_scores`, which puts them on the samples of a log.

https://inspect.aisi.org.uk/reference/inspect_ai.scorer.html
"""

from __future__ import annotations

import json
from typing import Any

from evenhand.exchange.writers.material import (
    Made,
    Material,
    combined,
    facts_of,
    not_carried,
    rubric_name,
    tool_id,
    unit_rows,
)

_FACTS = ("rater_id", "rater_kind", "p_positive", "unscored_reason")


def inspect_scores(material: Material) -> Made:
    """A JSON list with a record for each unit: `value` maps every rater to the label, None where
    there is none, and `metadata` describes each rater.

    Where there are several rubrics a rater is named RUBRIC/RATER. The sample's `id` and `epoch`
    are the units' columns `sample_id` and `epoch`, else the item's own id, or the unit's, and every
    epoch.
    """
    rows, units = material.combined, unit_rows(material.units)
    several = rows["rubric"].nunique() > 1
    names = (rows["rubric"].map(rubric_name) + "/" if several else "") + rows["rater_id"]
    everyone = dict.fromkeys(sorted(names.unique()))
    rows = rows.assign(name=names)
    records = [
        _record(units.get(str(unit), {"unit_id": unit}), own.to_dict("records"), everyone)
        for unit, own in rows.groupby("unit_id", sort=True)
    ]
    content = json.dumps(records, ensure_ascii=False, indent=1)
    lost = not_carried(material, "Inspect", _FACTS)
    return Made({"": content.encode()}, len(records), [*combined(material), *lost])


def _record(
    unit: dict[str, Any], rows: list[dict[Any, Any]], everyone: dict[str, None]
) -> dict[str, Any]:
    raters = [
        {"name": row["name"], "rubric": rubric_name(row["rubric"]), **facts_of(row, _FACTS)}
        for row in rows
    ]
    record = {
        "id": tool_id(unit, unit, "sample_id"),
        "value": everyone | {row["name"]: row["label"] or None for row in rows},
        "metadata": {"unit_id": unit["unit_id"], "raters": raters},
    }
    return record | ({"epoch": int(unit["epoch"])} if "epoch" in unit else {})
