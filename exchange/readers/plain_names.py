"""Names that make it plain whether a rater is a person or a model."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HUMAN = re.compile(r"(human|annotator|expert|crowd ?worker|person)s?([ _.-]?([a-z]|\d+))?", re.I)
_MODEL = re.compile(
    r"([a-z-]+[:/])?(gpt-?\d|chatgpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|gemma|phi-?\d|"
    r"command-r|grok|o[134](-|$)|llm|model[ _-]?(\d|$))[\w.:/@ -]*",
    re.I,
)
_ABOUT = re.compile(r"reason|explan|comment|note|rationale|confiden|time|cost|prompt|answer", re.I)
"""Names of columns about a rater's label, such as gpt-4o_reason."""


def plain_kind(name: str) -> str:
    """Kind of rater that the name makes plain: human or model; "" where it may be either.

    >>> [plain_kind(name) for name in ("human_1", "gpt-4o", "openai:gpt-5", "ann", "gpt4_reason")]
    ['human', 'model', 'model', '', '']
    """
    if _HUMAN.fullmatch(name):
        return "human"
    return "model" if _MODEL.fullmatch(name) and not _ABOUT.search(name) else ""


def plain_kinds(names: Iterable[str]) -> dict[str, str]:
    """The kinds of the raters whose names make it plain."""
    return {name: kind for name in names if (kind := plain_kind(name))}
