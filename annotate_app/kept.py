"""Payload sent once: words and rubrics, which the browser keeps. With each answer it lists what it
has, by names derived from the content; those parts are not sent again.

The server remembers nothing about it, so that it cannot be wrong: a run that was not started by a
message of the panel sends everything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_LENGTH = 16
_MOST = 64
_SAID_ONCE = ("words", "asks", "controls")
_OF_THE_UNIT = ("task", "given", "evidence")
"""Fields of a question about the unit at hand; the others are its rubric's."""


def lightened(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The page's data with words and rubrics by name, and as "kept" those the browser lacks."""
    parts: dict[str, Any] = {}

    def named(part: Any) -> str:
        name = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:_LENGTH]
        parts[name] = part
        return name

    light = {**data, **{key: named(data[key]) for key in _SAID_ONCE}}
    if sheet := data["sheet"]:
        questions = []
        for question in sheet["questions"]:
            own = {key: question[key] for key in _OF_THE_UNIT if key in question}
            rubric = {key: question[key] for key in question.keys() - own.keys()}
            questions.append({**own, "rubric": named(rubric)})
        light["sheet"] = {**sheet, "questions": questions}
    light["kept"] = {name: part for name, part in parts.items() if name not in known}
    return light


def read_known(sent: Any) -> frozenset[str]:
    """The names of the parts that the browser lists as kept; empty if it is no list of names."""
    names = sent.get("has") if isinstance(sent, Mapping) else None
    if not isinstance(names, list):
        return frozenset()
    return frozenset(n for n in names[:_MOST] if isinstance(n, str) and len(n) == _LENGTH)
