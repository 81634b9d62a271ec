"""One step of a rater's way through a study: what they have to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.rubrics import Rubric
from evenhand.study.desk.screens import Screen

StepName = Literal[
    "welcome",
    "consent",
    "rubric",
    "practice",
    "feedback",
    "comprehension",
    "background",
    "labelling",
    "ended",
]


@dataclass(frozen=True)
class Step:
    """What a rater has to do next."""

    name: StepName
    reason: str = ""
    """Why it ended: no_consent, screened_out, returned, timed_out or rejected."""
    attempt: int = 0
    """How often this step was tried before."""
    missed: frozenset[int] = frozenset()
    """Which comprehension questions were answered wrongly the last time, from 0 on."""
    rubric: Rubric | None = None
    """What is to be read (step "rubric")."""
    screen: Screen = ()
    """What is to be answered (step "practice"), or was (step "feedback")."""
