"""Tasks for Label Studio with a prediction by each grader, and the labelling config they fit.

https://labelstud.io/guide/predictions
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from evenhand.exchange.writers.material import (
    Made,
    Material,
    combined,
    grades_only,
    not_carried,
    rubric_name,
    unit_rows,
    unit_text,
    with_label,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

TEXT = "text"


def label_studio(material: Material) -> Made:
    """A JSON list of tasks to import, and `NAME.config.xml` for the project in the same folder.

    A task's `text` is what was rated; an item that came from Label Studio keeps its task's `id`.
    Each grader's prediction has its id as `model_version`, a choice for every rubric, and as score
    the probability of its label, where there is one rubric.
    """
    grades, people = grades_only(material.combined, "Label Studio")
    grades, unscored = with_label(grades)
    units = unit_rows(material.units)
    tasks = []
    for unit, own in grades.groupby("unit_id", sort=True):
        about = units.get(str(unit), {"unit_id": unit})
        data = about | {TEXT: unit_text(about)}
        known = {"id": about["task_id"]} if "task_id" in about else {}
        tasks.append({**known, "data": data, "predictions": _predictions(own)})
    count = sum(len(task["predictions"]) for task in tasks)
    files = {
        "": json.dumps(tasks, ensure_ascii=False, indent=1).encode(),
        ".config.xml": _config(material, grades["rubric"].unique()).encode(),
    }
    lost = not_carried(material, "Label Studio", ("unscored_reason",))
    return Made(files, count, [*combined(material), *people, *unscored, *lost])


def _predictions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "model_version": rater,
            **_score(own.to_dict("records")),
            "result": [
                {
                    "from_name": rubric_name(rubric),
                    "to_name": TEXT,
                    "type": "choices",
                    "value": {"choices": [label]},
                }
                for rubric, label in zip(own["rubric"], own["label"], strict=True)
            ],
        }
        for rater, own in rows.groupby("rater_id", sort=True)
    ]


def _score(rows: list[dict[Any, Any]]) -> dict[str, float]:
    if len(rows) > 1 or not rows[0]["probabilities"]:
        return {}
    return {"score": json.loads(rows[0]["probabilities"])[rows[0]["label"]]}


def _config(material: Material, rubrics: Iterable[str]) -> str:
    lines = ["<View>", f'  <Text name="{TEXT}" value="${TEXT}"/>']
    for rubric in rubrics:
        scale = material.scales[rubric]
        lines += [
            f"  <Header value={quoteattr(scale.title)}/>",
            f'  <Choices name={quoteattr(rubric_name(rubric))} toName="{TEXT}">',
            *(
                f"    <Choice value={quoteattr(key)} hint={quoteattr(name)}/>"
                for key, name in scale.labels.items()
            ),
            "  </Choices>",
        ]
    return "\n".join([*lines, "</View>", ""])
