"""Whom to use, or what to label first: a sentence that keeps every condition of the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.analysis.verdicts.ranking import Candidate, recommend


def candidate(grader: str, verdict: str, price: float | None = None, **more: Any) -> Candidate:
    given = {
        "rubric": "r",
        "grader": grader,
        "verdict": verdict,
        "reason": "a reason",
        "holds_for": "",
        "threshold": None,
        "promising": False,
        "more_clusters": 0,
        "next": None,
    }
    estimate = more.pop("difference", 0.0)
    figures = {"estimate": estimate, "low": estimate - 0.2, "high": estimate + 0.2}
    cost = None if price is None else {"estimate": price}
    return Candidate(given | more, figures, None, None, None, cost)  # type: ignore[arg-type]


PASS, AT = "may_stand_in", "may_stand_in_at_threshold"


@pytest.mark.parametrize(
    ("ranked", "said"),
    [
        ([candidate("g", PASS)], "Use g for r."),
        ([candidate("g", PASS, holds_for="labels")], "Use g for r, for its labels only."),
        ([candidate("g", PASS, holds_for="binary")], "Use g for r, for the binary verdict."),
        (
            [candidate("g", AT, holds_for="binary", threshold=0.1312)],
            "Use g for r at threshold 0.131, for the binary verdict.",
        ),
        (
            [candidate("g", "agrees_with_reference", holds_for="binary", threshold=0.25)],
            "Use g for r at threshold 0.25: its binary verdicts agree with the reference.",
        ),
        (
            [candidate("g", PASS, 1.5), candidate("dear", PASS, 12.0, difference=0.05)],
            "Use g for r: the cheapest that passes. dear would do, too.",
        ),
        (
            [candidate("g", PASS, 1.5, difference=0.05), candidate("worse", PASS, 12.0)],
            "Use g for r. worse would do, too.",
        ),
        (
            [candidate("g", PASS), candidate("k", AT, holds_for="binary", threshold=0.2)],
            "Use g for r. k (binary verdict at threshold 0.2) would do, too.",
        ),
        (
            # What would rather be ruled out is no reason to label more.
            [
                candidate("bad", "cannot_tell", more_clusters=300),
                candidate("near", "cannot_tell", more_clusters=500, promising=True),
            ],
            "No grader yet for r: a reason to decide on near.",
        ),
        (
            [
                candidate("half", "only_with_correction"),
                candidate("near", "cannot_tell", more_clusters=50, promising=True),
            ],
            "No grader yet for r: a reason to decide on near. "
            "Until then use half only with correction (a reason).",
        ),
        ([candidate("bad", "cannot_tell")], "No grader yet for r: a reason (bad)."),
        ([candidate("bad", "do_not_use")], "No grader for r. The closest is bad: a reason."),
    ],
)
def test_a_recommendation_keeps_the_conditions(ranked: list[Candidate], said: str) -> None:
    found = recommend(ranked, "r")
    assert found is not None
    assert found.sentence == said


def test_without_graders_there_is_none() -> None:
    assert recommend([], "r") is None
