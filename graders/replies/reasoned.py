"""A reason first, and then the label: what is asked for, and how such a reply is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import PromptText, RubricParser, answer_of
from evenhand.rubrics.parsing import json_fields

REASON = "reason"
"""Key in a grade's provenance: the grader's reason, in its own words."""

_FIELDS = [REASON, "label"]


def asking_for_reason(prompt: PromptText) -> PromptText:
    """Replace the prompt's last paragraph: ask for a reason, and then for the key of an option."""
    words = prompt.system.rpartition("\n\n")[0]
    ask = (
        "First give your reason, in at most three sentences. Then give the key of one option, "
        f"alone on the last line. The keys are: {', '.join(prompt.keys)}."
    )
    return replace(prompt, system=f"{words}\n\n{ask}")


def reason_schema(keys: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of the answer, its fields in the order in which they are written."""
    label = {"type": "string", "enum": list(keys)}
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
        texts = [value for _, value in fields if isinstance(value, str)]
        whole = [name for name, _ in fields] == _FIELDS and len(texts) == len(_FIELDS)
        return (texts[0], texts[1]) if whole else ("", "")
    before, _, last = text.strip().rpartition("\n")
    return before, last
