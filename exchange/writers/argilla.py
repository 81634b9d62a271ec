"""A dataset folder for Argilla with a grader's suggestions; `argilla.Dataset.from_disk` reads it.

https://docs.argilla.io/latest/how_to_guides/import_export/
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.exchange.writers.material import (
    Made,
    Material,
    combined,
    grades_only,
    not_carried,
    rubric_name,
    tool_id,
    unit_rows,
    unit_text,
    with_label,
)

if TYPE_CHECKING:
    import pandas as pd

TEXT = "text"


def argilla(material: Material) -> Made:
    """`records.json` with a record for each unit, its text and a suggestion for every rubric; the
    settings in `.argilla` ask one label question a rubric.

    Raises InputError where there are several graders: Argilla holds one suggestion a question.
    """
    grades, people = grades_only(material.combined, "Argilla")
    raters = sorted(grades["rater_id"].unique())
    if len(raters) > 1:
        raise InputError(
            "Argilla holds one suggestion for each unit and rubric; name one grader with --rater: "
            + ", ".join(raters)
        )
    grades, unscored = with_label(grades)
    units = unit_rows(material.units)
    records = [
        _record(units.get(str(unit), {"unit_id": unit}), own)
        for unit, own in grades.groupby("unit_id", sort=True)
    ]
    rubrics = sorted(grades["rubric"].unique())
    files = {
        ".argilla/dataset.json": {"name": material.name},
        ".argilla/settings.json": _settings(material, rubrics),
        "records.json": records,
    }
    lost = not_carried(material, "Argilla", ("unscored_reason",))
    return Made(
        {name: json.dumps(each, ensure_ascii=False).encode() for name, each in files.items()},
        len(grades),
        [*combined(material), *people, *unscored, *lost],
    )


def _record(unit: dict[str, Any], rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "id": tool_id(unit, unit, "record_id"),
        "fields": {TEXT: unit_text(unit)},
        "metadata": {"unit_id": unit["unit_id"]},
        "suggestions": {
            rubric_name(row["rubric"]): {
                "value": row["label"],
                "score": json.loads(row["probabilities"] or "{}").get(row["label"]),
                "agent": row["rater_id"],
            }
            for row in rows.to_dict("records")
        },
        "responses": {},
        "vectors": {},
    }


def _settings(material: Material, rubrics: list[str]) -> dict[str, Any]:
    return {
        "guidelines": None,
        "fields": [_part(TEXT, "What was rated", "text", {"use_markdown": False})],
        "questions": [
            _part(
                rubric_name(rubric),
                material.scales[rubric].title,
                "label_selection",
                {"options": _options(material, rubric), "visible_options": None},
            )
            for rubric in rubrics
        ],
        "metadata": [
            {
                "name": "unit_id",
                "title": "unit_id",
                "visible_for_annotators": True,
                "settings": {"type": "terms", "values": None, "visible_for_annotators": True},
            }
        ],
        "vectors": [],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
    }


def _part(name: str, title: str, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "required": True,
        "type": kind,
        "settings": {"type": kind, **settings},
    }


def _options(material: Material, rubric: str) -> list[dict[str, str]]:
    labels = material.scales[rubric].labels
    return [{"value": key, "text": name} for key, name in labels.items()]
