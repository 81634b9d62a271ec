"""Answers of more than a label: what is asked for, and how such a reply is read.

Either a distribution that the model states in words, which is another measurement than token
probabilities; or a reason first, and then the label.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import PromptText, RubricParser, answer_of
from evenhand.rubrics.parsing import json_fields

_FARTHEST_SUM = 5.0
"""Percentages whose sum misses 100 by more than this are not a distribution."""
REASON = "reason"
"""Key in a grade's provenance: the grader's reason, in its own words."""
_FIELDS = [REASON, "label"]


def asking_for_percent(prompt: PromptText) -> PromptText:
    """Replace the prompt's last paragraph: ask for a probability for every option."""
    words = prompt.system.rpartition("\n\n")[0]
    keys = ", ".join(prompt.keys)
    ask = (
        "Answer with a JSON object that gives for every option the probability, in percent, that "
        f"a careful rater would choose it; the numbers add up to 100. Its keys are: {keys}."
    )
    return replace(prompt, system=f"{words}\n\n{ask}")


def percent_schema(keys: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of the answer: one number per option, nothing else."""
    return {
        "type": "object",
        "properties": {key: {"type": "number"} for key in keys},
        "required": list(keys),
        "additionalProperties": False,
    }


def read_percent(text: str, keys: Sequence[str], evidence: dict[str, Any]) -> Outcome:
    """Return the stated distribution, scaled to sum to 1; the label is its most probable option.

    >>> outcome = read_percent('{"A": 20, "B": 79}', ("A", "B"), {})
    >>> outcome.label, round(outcome.probabilities["B"], 3), outcome.evidence["stated_sum"]
    ('B', 0.798, 99.0)
    >>> read_percent('{"A": 50, "B": 20}', ("A", "B"), {}).unscored_reason
    'unparseable'
    """
    stated = _stated(text, keys)
    total = math.fsum(stated.values()) if stated else 0.0
    if not stated or abs(total - 100) > _FARTHEST_SUM:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    probabilities = {key: stated[key] / total for key in keys}
    return Outcome(
        label=max(keys, key=lambda key: probabilities[key]),
        probabilities=probabilities,
        prob_method="verbalised",
        raw=text,
        evidence=evidence | {"stated_sum": total},
    )


def _stated(text: str, keys: Sequence[str]) -> dict[str, float] | None:
    try:
        answer = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, Mapping) or set(answer) != set(keys):
        return None
    numbers = {
        key: float(value)
        for key, value in answer.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    if len(numbers) < len(keys) or not all(0 <= value <= 100 for value in numbers.values()):
        return None
    return numbers


MOST_LISTED = 250
"""Keys that a schema lists; more are numbers. Providers bound the length of an enumeration, and
some take no bounds of a number."""


def one_of(keys: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of one of the keys: their enumeration, or of many numbers a number,
    whose bounds the reader of the answer checks.
    """
    if len(keys) > MOST_LISTED:
        return {"type": "number"}
    return {"type": "string", "enum": list(keys)}


def asking_for_reason(prompt: PromptText) -> PromptText:
    """Replace the prompt's last paragraph: ask for a reason, and then for the key of an option."""
    words = prompt.system.rpartition("\n\n")[0]
    wanted = prompt.number or "the key of one option"
    keys = "" if prompt.number else f" The keys are: {', '.join(prompt.keys)}."
    ask = (
        f"First give your reason, in at most three sentences. Then give {wanted}, "
        f"alone on the last line.{keys}"
    )
    return replace(prompt, system=f"{words}\n\n{ask}")


def reason_schema(keys: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of the answer, its fields in the order in which they are written."""
    label = one_of(keys)
    return {
        "type": "object",
        "properties": {REASON: {"type": "string"}, "label": label},
        "required": _FIELDS,
        "additionalProperties": False,
    }


def read_reason(text: str, parser: RubricParser, evidence: dict[str, Any]) -> Outcome:
    """Return the label that follows a reason. A label without a reason, or before it, does not
    count.

    >>> parser = RubricParser({"A": "First", "B": "Second"})
    >>> outcome = read_reason('{"reason": "A is vague.", "label": "B"}', parser, {})
    >>> outcome.label, outcome.evidence["reason"]
    ('B', 'A is vague.')
    >>> [read_reason(text, parser, {}).label for text in ("A is vague.\\n\\nB", "B", "B\\nVague.")]
    ['B', '', '']
    """
    reason, answer = _parts(answer_of(text) or "")
    label = parser.label(answer) if reason.strip() else None
    if label is None:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    return Outcome(label=label, raw=text, evidence=evidence | {REASON: reason.strip()})


def _parts(text: str) -> tuple[str, str]:
    """Split a reply into reason and answer: the two fields of a JSON object, else the text before
    the last line and the last line.
    """
    if re.match(r"(?:```\w*\s*)?\{", text):
        objects = json_fields(text)
        fields = objects[0] if len(objects) == 1 else []
        if [name for name, _ in fields] != _FIELDS:
            return "", ""
        reason, label = (value for _, value in fields)
        if isinstance(label, int | float) and not isinstance(label, bool):
            label = f"{label:g}"
        both = isinstance(reason, str) and isinstance(label, str)
        return (reason, label) if both else ("", "")
    before, _, last = text.strip().rpartition("\n")
    return before, last
