"""Answers of a model under test beside the gold ones, where both choose among few options: labels
by the model and by an adjudicator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evenhand.exchange.readers.rows import LONGEST_LABEL, Rows
from evenhand.exchange.readers.source import text_of
from evenhand.texts import written

GOLD, MODEL = "gold", "model"
"""The raters, where a file does not name the model."""
MOST_OPTIONS = 20
_JUDGE = re.compile(r"judge|llm|gpt", re.I)
"""Names of metrics that a model gives."""


@dataclass(frozen=True)
class Answer:
    """What a model said on a unit, and what is true; both may be None."""

    unit: str
    rubric: str
    said: object
    true: object


def add_answers(rows: Rows, answers: Iterable[Answer], model: str = MODEL) -> None:
    """Add answers as labels if the true ones are options: few, and most of them more than once.
    Others are texts, which are counted as left out.
    """
    found = list(answers)
    options = {text_of(each.true) for each in found} - {""}
    few = 0 < len(options) <= min(MOST_OPTIONS, max(len(found) // 2, 1))
    if not few or any(len(option) > LONGEST_LABEL for option in options):
        if found:
            rows.leave_out(written("left_out.open_answers"), len(found))
        return
    for each in found:
        rows.add(each.unit, GOLD, "adjudicator", each.true, each.rubric)
        rows.add(each.unit, model, "model", each.said, each.rubric)


def add_metrics(rows: Rows, unit: str, metrics: Mapping[str, object], how: str = "") -> None:
    """Add the metrics that a model gave, each as a rubric, or as one for each way in which answers
    were extracted (`how`); those that code computed are counted.
    """
    for name, value in metrics.items():
        if _JUDGE.search(name):
            rows.add(unit, name, "model", value, f"{name}, {how}" if how else name)
        else:
            rows.leave_out(written("left_out.by_code"))
