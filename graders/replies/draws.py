"""Repeated draws: how often each option came, how sure that makes them, and which are no new draws.

A gateway may keep replies and give one of them to every later request of the same words. For a draw
that is no answer: a hundred draws would be one. Such replies are declined, and noticed where they
come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from evenhand.graders.replies.outcome import Outcome
from evenhand.rubrics import Rubric

_Z = 1.959963984540054
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


def as_draw(outcome: Outcome, rubric: Rubric) -> Outcome:
    """Return one draw's outcome, with all probability on the option that was drawn.

    The mean over a unit's draws, which is how repeats are combined everywhere, is then the share of
    each option. Of numbers the median is taken, which needs no probabilities.
    """
    if not outcome.label or rubric.number:
        return outcome
    drawn = {key: float(key == outcome.label) for key in rubric.categories}
    return replace(outcome, probabilities=drawn, prob_method="draws")


def binomial_interval(successes: int, draws: int) -> tuple[float, float]:
    """Return the 95% score interval of a share (Wilson 1927, JASA 22, 209).

    >>> [round(bound, 3) for bound in binomial_interval(7, 10)]
    [0.397, 0.892]
    >>> binomial_interval(0, 0)
    (0.0, 1.0)
    """
    if draws == 0:
        return 0.0, 1.0
    share, z2 = successes / draws, _Z * _Z
    centre = (share + z2 / (2 * draws)) / (1 + z2 / draws)
    reach = _Z * math.sqrt(share * (1 - share) / draws + z2 / (4 * draws**2)) / (1 + z2 / draws)
    low = 0.0 if successes == 0 else max(centre - reach, 0.0)
    return low, 1.0 if successes == draws else min(centre + reach, 1.0)


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
