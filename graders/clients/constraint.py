"""A provider's own means of holding an answer to the rubric's keys, and which a request uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.replies.stated import (
    asking_for_percent,
    asking_for_reason,
    one_of,
    percent_schema,
    reason_schema,
)
from evenhand.rubrics import PromptText

WAYS = ("json_schema", "tool")
"""Tried in this order: a strict JSON schema whose field is an enumeration, then a forced tool."""
PLAIN = "plain"
"""The bare question, whose answer is read as free text."""

TOOL = "rate"
_REFUSED = re.compile(
    r"response_format|output_config|output_format|json_?schema|structured|schema|guided|grammar|"
    r"tool|function|enum\b"
)


def asked(prompt: PromptText, settings: GraderSettings) -> tuple[PromptText, dict[str, Any]]:
    """Return the prompt as the method words it, and the JSON schema of its answer."""
    if settings.method == "verbalised":
        return asking_for_percent(prompt), percent_schema(prompt.keys)
    if settings.reason:
        return asking_for_reason(prompt), reason_schema(prompt.keys)
    return prompt, label_schema(prompt.keys)


def label_schema(keys: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of an answer that is one of the keys."""
    return {
        "type": "object",
        "properties": {"label": one_of(keys)},
        "required": ["label"],
        "additionalProperties": False,
    }


def ways_from(known: str) -> tuple[str, ...]:
    """Return the ways still to be tried with a server, from the one known to work; all if none is.

    >>> ways_from(""), ways_from("tool"), ways_from("plain")
    (('json_schema', 'tool'), ('tool',), ())
    """
    if known == PLAIN:
        return ()
    return WAYS[WAYS.index(known) :] if known in WAYS else WAYS


def way_of(request: Mapping[str, Any]) -> str:
    """Return the way in which a request, to any provider, constrains its answer, or "plain".

    >>> way_of({"response_format": {}}), way_of({"tools": []}), way_of({"logprobs": True})
    ('json_schema', 'tool', 'plain')
    """
    output = request.get("output_config")
    if "response_format" in request or (isinstance(output, Mapping) and "format" in output):
        return WAYS[0]
    return WAYS[1] if "tools" in request else PLAIN


def refuses_constraint(complaint: str) -> bool:
    """Return True if a server's complaint is about the constraint on the answer."""
    return bool(_REFUSED.search(complaint.casefold()))
