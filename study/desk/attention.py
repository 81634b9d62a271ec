"""Attention checks: units with a known answer, mixed in among the real ones, answers kept apart.

On the page a check looks like any other unit: it has an opaque task id, counts in the progress, and
is in the list of earlier answers.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.desk.known_units import KnownUnits
from evenhand.study.questions import Key, Question, Screen
from evenhand.study.seeding import digest, drawn
from evenhand.study.store.schema import attention_labels, is_latest

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study

ATTENTION_COLUMNS = (
    "rater_id",
    "check_id",
    "rubric",
    "expected",
    "given",
    "passed",
    "created_at",
)


class AttentionChecks(KnownUnits):
    """The study's checks, and where they come for each rater: fixed by the study's own key."""

    def __init__(self, study: Study) -> None:
        settings = study.config.attention
        super().__init__(study, settings.file if settings else "", "check")
        self._every = settings.every if settings else 1

    def left(self, rater_id: str, had: Container[Key]) -> list[Screen]:
        """The checks that are not among those that this rater `had`, in the rater's order."""
        return sorted(
            (screen for screen in self.screens if screen[0].key not in had),
            key=lambda screen: digest(self.study.blinding_key, "check", rater_id, *screen[0].key),
        )

    def due_after(self, rater_id: str, number: int) -> int:
        """Return after how many answers to real units the rater's check of this number (from 0)
        comes: once in every stretch of `every`, at a random place in it.
        """
        key = self.study.blinding_key
        within = drawn(key, self._every, "check", rater_id, str(number))
        return number * self._every + 1 + within

    def order(self, rater_id: str, question: Question) -> str:
        """Return the order of the two sides ("ab" or "ba"), or "" where there is one side only."""
        if question.rubric.unit == "response":
            return ""
        return ("ab", "ba")[drawn(self.study.blinding_key, 2, "order", rater_id, question.unit_id)]


def attention_results(study: Study) -> pd.DataFrame:
    """Return every rater's answer to every check: `rater_id, check_id, rubric, expected, given,
    passed, created_at`; one row per rater, check and rubric, in the order of the answers.

    The latest answer counts. `expected` is what the study's file accepts now ("4 or 5"). `given`
    has the same orientation of the sides; it is empty where the check was skipped, which is a
    failure.
    """
    import pandas as pd

    checks = AttentionChecks(study)
    query = (
        sa.select(attention_labels)
        .where(is_latest(attention_labels, "rater_id", "unit_id", "rubric"))
        .order_by(attention_labels.c.event_id)
    )
    with study.store.read() as connection:
        answers = connection.execute(query).all()
    rows = []
    for answer in answers:
        key = (answer.unit_id, answer.rubric)
        accepted = checks.accepted(key) if key in checks else ()
        if accepted:
            rows.append(
                {
                    "rater_id": answer.rater_id,
                    "check_id": answer.unit_id.partition(":")[2],
                    "rubric": answer.rubric,
                    "expected": " or ".join(accepted),
                    "given": answer.label,
                    "passed": answer.label in accepted,
                    "created_at": answer.created_at,
                }
            )
    return pd.DataFrame(rows, columns=list(ATTENTION_COLUMNS)).astype({"passed": bool})
