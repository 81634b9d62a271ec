"""A step of a rater's way through a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.rubrics import Rubric
from evenhand.study.questions import Screen

StepName = Literal[
    "welcome", "consent", "rubric", "practice", "feedback", "comprehension", "background",
    "labelling", "ended",
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A rater's next step."""

    name: StepName
    reason: str = ""
    """The reason why it ended: no_consent, screened_out, returned, timed_out or rejected."""
    attempt: int = 0
    """Number of earlier attempts at this step."""
    missed: frozenset[int] = frozenset()
    """Comprehension questions answered wrongly the last time, from 0 on."""
    rubric: Rubric | None = None
    """The rubric to be read (step "rubric")."""
    screen: Screen = ()
    """The questions to be answered (step "practice"), or just answered (step "feedback")."""
