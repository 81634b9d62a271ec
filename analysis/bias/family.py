"""Self-preference: does a grader go easier on subjects of its own family than humans do?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.shift import shift_with

FAMILIES: dict[str, tuple[str, ...]] = {
    "anthropic": ("claude",),
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "davinci"),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama",),
    "mistral": ("mistral", "mixtral", "ministral", "magistral"),
    "qwen": ("qwen", "qwq"),
    "deepseek": ("deepseek",),
    "xai": ("grok",),
    "cohere": ("command",),
    "microsoft": ("phi",),
}
"""Parts of a model's name by which its family is known."""


def family_of(rater: str, families: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the family of a grader or subject by its model's name, "" where none is known.

    Only the model's name counts, not the provider before the colon: many servers speak another's
    protocol. The part that comes first decides, an own entry of `families` before all others.

    >>> family_of("anthropic:claude-opus-5"), family_of("openai:llama-3@http://gpt.example/v1")
    ('anthropic', 'meta')
    >>> family_of("deepseek-r1-distill-llama-8b"), family_of("baseline:lexical")
    ('deepseek', '')
    >>> family_of("our-tune-7b", {"anthropic": ["our-tune"]})
    'anthropic'
    """
    name = rater.partition("@")[0].rpartition(":")[2].casefold()
    for known in (families or {}, FAMILIES):
        found = [
            (place.start(), family)
            for family, parts in known.items()
            for part in parts
            if (place := re.search(rf"(?<![a-z0-9]){re.escape(part.casefold())}", name))
        ]
        if found:
            return min(found)[1]
    return ""


def add_family_rows(
    audit: AuditRows, calls: Calls | None, families: Mapping[str, Sequence[str]]
) -> None:
    """Add `bias_self_preference` of graders whose family is among the subjects, with others.

    It is the affirmative calls on subjects of its own family minus those on the others, beyond what
    humans' score of the same units explains (see `analysis.bias.shift`). `at` is the family.
    """
    if calls is None:
        return
    of_subject = [family_of(subject, families) for subject in calls.subjects]
    of_unit = np.array([*of_subject, ""])[calls.subject]
    for grader in calls.graders:
        family = family_of(calls.raters[grader], families)
        if not family or family not in of_subject or set(of_subject) == {family}:
            continue
        own = np.where(calls.subject >= 0, of_unit == family, np.nan)
        shift = shift_with(calls, grader, own, audit.resamples)
        if shift is not None:
            audit.add_shift(
                "bias_self_preference",
                calls.raters[grader],
                shift,
                subset=calls.subset,
                at=family,
            )
