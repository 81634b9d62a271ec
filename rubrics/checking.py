"""Faults of a rubric that loads: its text contradicts what is sent around it."""

from __future__ import annotations

import re

from evenhand.rubrics.model import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES
from evenhand.texts import written

_TAG = re.compile(r"</?([A-Za-z][\w-]*)[^<>\n]{0,80}>")
_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_STARTS_WITH = re.compile(
    r"\b(?:begin|start|open|prefix|preface)\w*\b[^.\n]{0,60}?\b(?:with|by)\b\W{0,3}"
    r"(?:an?\s+)?(?:open\w*\s+)?(?:\(|paren\w*|bracket)",
    re.IGNORECASE,
)
_REASONS = re.compile(
    r"step[- ]by[- ]step|\b(?:explain|justify|discuss) your\b|\breason(?:ing)? (?:first|before)\b|"
    r"\bthink (?:carefully )?before\b|\bbefore (?:you )?(?:answer|giv)",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"\bJSON\b|\bXML\b|\boutput format\b", re.IGNORECASE)


def contradictions(rubric: Rubric) -> list[str]:
    """Return a sentence for each place where a rubric's words contradict what is sent with them.

    People see the texts without tags and choose with a click. A grader is sent tags named as the
    variables, and asked for one key alone, unless the rubric has a prompt of its own.
    """
    said = [*_in_instructions(rubric), *_in_keys(rubric)]
    if rubric.prompt:
        said += _in_template(rubric)
    return said


def _in_instructions(rubric: Rubric) -> list[str]:
    options = (f"{option.name} {option.description}" for option in rubric.options)
    text = "\n".join([rubric.instructions, rubric.question, *options])
    who = "people" if rubric.prompt else "both"
    named = {*_TAG.findall(text), *_NAME.findall(text)} - set(rubric.variables)
    tags = ", ".join(f"<{name}>" for name in rubric.variables if name in TEXT_VARIABLES)
    said = [
        written(f"rubric_check.tag_{who}", tag=name, **({} if rubric.prompt else {"tags": tags}))
        for name in sorted(named)
    ]
    asked = (("starts", _STARTS_WITH), ("reasons", _REASONS), ("format", _FORMAT))
    for what, pattern in asked:
        if found := pattern.search(text):
            words = " ".join(found[0].split())
            said.append(written(f"rubric_check.{what}_{who}", words=words))
    return said


def _in_keys(rubric: Rubric) -> list[str]:
    """Keys of which one begins another: a token that begins both does not tell them apart."""
    keys = () if rubric.number else rubric.categories
    pairs = ((key, each) for key in keys for each in keys if key != each)
    found = [(key, each) for key, each in pairs if each.casefold().startswith(key.casefold())]
    if not found:
        return []
    key, longer = found[0]
    return [written("rubric_check.begins_another", key=key, longer=longer)]


def _in_template(rubric: Rubric) -> list[str]:
    template = rubric.prompt.template if rubric.prompt else ""
    missing = [
        key
        for key in (() if rubric.number else rubric.categories)
        if not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", template)
    ]
    said = [written("rubric_check.no_option", key=key) for key in missing]
    if _REASONS.search(template):
        said.append(written("rubric_check.reasons_template"))
    return said
