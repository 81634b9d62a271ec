"""Instructions that a model wrote in place of a rubric's, and why some cannot be tried.

They are put into the rubric's own frame, so that the question, the options and the fences around
texts are those of the rubric, whatever the model writes.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from evenhand.rubrics.rendering import neutralised, placeholders
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

MOST_WORDS = 4_000
"""Characters of proposed instructions."""


class RefusedProposal(ValueError):  # noqa: N818  (nobody made an error)
    """Instructions that cannot be tried, with the reason as a sentence."""


def options_of(rubric: Rubric) -> list[str]:
    """Return the options as a grader reads them, a line each."""
    return [f"({each.key}) {each.name}: {each.description}".rstrip(": ") for each in rubric.options]


def checked(words: str, rubric: Rubric) -> str:
    """Return instructions as they can be tried. Raises RefusedProposal where there are none, or
    they ask something else than the rubric does.
    """
    text = neutralised(words.strip())
    if not text:
        raise RefusedProposal(written("improve.no_words"))
    if len(text) > MOST_WORDS:
        raise RefusedProposal(written("improve.long_words", most=MOST_WORDS))
    if more := placeholders(text) - placeholders(rubric.instructions):
        raise RefusedProposal(written("improve.names_text", name=min(more)))
    if line := _asks_otherwise(text, rubric):
        raise RefusedProposal(written("improve.asks_otherwise", line=line[:80]))
    if " ".join(text.split()) == " ".join(rubric.instructions.split()):
        raise RefusedProposal(written("improve.same_words"))
    return text


def _asks_otherwise(text: str, rubric: Rubric) -> str:
    """Return the first line in the form of a question or an option, with other words than the
    rubric's, or in the form of the frame's own sentences; "" for none.

    Only the form is looked at: what a sentence asks for in plain words is not.
    """
    known = {_plain(each) for each in (*options_of(rubric), rubric.question)}
    keys = "|".join(re.escape(_plain(key)) for key in rubric.categories)
    asks = re.compile(
        rf"\W*(?:{keys})\s*[).:=]|\W*(?:the )?(?:new )?(?:options?|questions?)(?: (?:is|are))?"
        r"(?: now)?\s*:|.*\bstands? between (?:the )?tags\b|\W*answer with\b",
        re.IGNORECASE,
    )
    for line in text.splitlines():
        words = _plain(line)
        if asks.match(words) and words.lstrip("-*# ") not in known:
            return words
    return ""


def _plain(text: str) -> str:
    """Return a text on one line, in the plainest form of each character."""
    return " ".join(unicodedata.normalize("NFKC", text).split())
