"""What one reply says about one unit, before the runner turns it into a grade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.graders.scrub import storable

MOST_KEPT = 20_000
"""Characters of a reply that is kept although nothing could be read off it."""

ASKED_AGAIN = "asked_again"
"""In the provenance of an attempt that could not be read: another one follows in the same run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A label with its evidence, or the reason why there is none.

    Labels and probabilities are in the order that was shown: the runner maps them back. A reply
    without a valid label is an outcome too (`refusal`, `truncated`, `unparseable`,
    `content_filter`), never a default label and no cause to ask again.
    """

    label: str = ""
    probabilities: dict[str, float] | None = None
    prob_method: str = ""
    unscored_reason: str = ""
    raw: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", storable(self.raw))
        object.__setattr__(self, "evidence", storable(self.evidence))

    @classmethod
    def unreadable(cls, reply: Mapping[str, Any]) -> Outcome:
        """Of a reply that is not what the provider's interface promises; kept as it came."""
        return cls(unscored_reason="unparseable", raw=_as_text(reply)[:MOST_KEPT])


def _as_text(reply: Mapping[str, Any]) -> str:
    return json.dumps(storable(reply))
