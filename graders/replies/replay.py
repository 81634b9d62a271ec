"""Answers that a cache between us and the model gives again: declined, and noticed where they come.

A gateway may keep replies and give one of them to every later request of the same words. For a draw
that is no answer: a hundred draws would be one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DECLINED = {
    "Cache-Control": "no-cache",
    "X-OpenRouter-Cache": "false",
    "Helicone-Cache-Enabled": "false",
    "cf-aig-skip-cache": "true",
    "x-portkey-cache-force-refresh": "true",
}
"""Request headers that decline cached answers; servers ignore those that they do not know."""

LITELLM_DECLINED = {"cache": {"no-cache": True}}
"""LiteLLM's way of declining them, in the body, where other servers would refuse it."""

REPEATED = "repeated_reply"

Prompted = tuple[str, ...]
"""The values that determine a question's prompt (`Question.prompted`)."""


def by_litellm(headers: Mapping[str, str]) -> bool:
    """Return True if a reply came through LiteLLM's proxy."""
    return any(name.lower().startswith("x-litellm-") for name in headers)


class Replies:
    """The replies that each question has had, so that one that comes twice counts once."""

    def __init__(self, known: Mapping[Prompted, Iterable[Mapping[str, Any]]]) -> None:
        self._seen = {
            question: {reply_identity(facts) for facts in replies}
            for question, replies in known.items()
        }

    def is_repeat(self, question: Prompted, facts: Mapping[str, Any]) -> bool:
        """Return True if a reply with these facts came before, and remember it.

        A reply is identified by its time as well as its id: some local servers draw ids from only
        a thousand.
        """
        reply = reply_identity(facts)
        if reply is None:
            return False
        seen = self._seen.setdefault(question, set())
        if reply in seen:
            return True
        seen.add(reply)
        return False


def reply_identity(facts: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return (id, time, index of the answer in the reply), or None where the reply has no id.

    >>> reply_identity({"reply_id": "msg_1"}), reply_identity({"reply_id": ""})
    (('msg_1', None, 0), None)
    """
    if not facts.get("reply_id"):
        return None
    return facts["reply_id"], facts.get("created"), facts.get("choice") or 0
