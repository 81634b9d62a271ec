"""What one reply says about one unit, before the runner turns it into a grade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from evenhand.graders.scrub import storable

MOST_KEPT = 20_000
"""Characters kept of a reply that could not be read."""

ASKED_AGAIN = "asked_again"
"""Marks, in the provenance of an unreadable attempt, that the same run asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A label with its evidence, or the reason why there is none.

    Labels and probabilities are in the order that was shown: the runner maps them back. A reply
    without a valid label is an outcome too (`refusal`, `truncated`, `unparseable`,
    `content_filter`), never a default label, and does not by itself make the runner ask again.
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
        """Return the outcome of a reply that does not fit the provider's interface; its text is
        kept up to `MOST_KEPT` characters.
        """
        return cls(unscored_reason="unparseable", raw=json.dumps(storable(reply))[:MOST_KEPT])


T = TypeVar("T")


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OrNone = Annotated[T | None, WrapValidator(_or_none)]
"""A field that is None where the value has another type."""
