"""Detection of responses written in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 0.5
"""From this share of them on, responses are shown as Markdown in a new study."""
_LONGEST = 50_000

_LOOKS_MARKED = re.compile(
    r"^#{1,6} \S"
    r"|^(?:[-*+]|\d{1,3}[.)]) +\S.*\n\n?(?:[-*+]|\d{1,3}[.)]) +\S"
    r"|\*\*\S[^\n]*?\*\*"
    r"|^```"
    r"|`[^`\n]+`"
    r"|^\|.*\|[ \t]*\n\|[ \t:|-]+\|",
    re.MULTILINE,
)


def looks_like_markdown(text: str) -> bool:
    """Return True if a text has headings, lists, strong words, code or tables in Markdown's syntax.

    >>> looks_like_markdown("It is **so**."), looks_like_markdown("2 * 3 * 4, a_b and #1")
    (True, False)
    """
    return bool(_LOOKS_MARKED.search(text[:_LONGEST]))


def markdown_share(responses: Iterable[str]) -> float:
    """The share of responses that look like Markdown; 0 where there are none."""
    found = [looks_like_markdown(text) for text in responses]
    return sum(found) / len(found) if found else 0.0
