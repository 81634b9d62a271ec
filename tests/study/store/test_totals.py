"""What graders did and cost, against attempts that are added up by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.totals import TOTALS_COLUMNS, grade_totals


def attempt(unit: str, at: int, *, rater: str = "g", **fields: object) -> GradeAttempt:
    known = {"rater_id": rater, "rubric": "refusal", "unit_id": unit, "rubric_hash": "h"}
    return GradeAttempt(**known | {"created_at": f"2026-11-{at:02d}"} | fields)  # type: ignore[arg-type]


def paid(model: str, tokens: tuple[int, int, int], usd: float | None = None) -> dict[str, object]:
    counts = dict(zip(("input", "output", "cached"), tokens, strict=True))
    facts: dict[str, object] = {"returned_model": model, "tokens": {**counts, "written": 0}}
    return facts if usd is None else facts | {"cost_usd": usd}


def test_nothing_was_graded(make_study) -> None:
    totals = grade_totals(make_study().store)
    assert totals.empty
    assert tuple(totals.columns) == TOTALS_COLUMNS


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_attempts_add_up(make_study, request: pytest.FixtureRequest, database: str) -> None:
    options = {}
    if database == "postgresql":
        options["store"] = request.getfixturevalue("new_postgresql")()
    store = make_study(**options).store
    store.add_grades(
        [
            attempt("u", 3, unscored_reason="refusal", provenance=paid("m-1", (100, 5, 0), 0.25)),
            attempt(
                "u",
                4,
                label="1",
                prob_method="logprobs",
                provenance=paid("m-2", (100, 7, 50), 0.5) | {"low_mass": True},
            ),
            attempt(
                "u",
                4,
                label="1",
                draw=1,
                provenance=paid("m-2", (100, 0, 50), 0.25)
                | {"method": "logprobs", "asked_by": "tool"},
            ),
            attempt("v", 5, unscored_reason="refusal", provenance=paid("m-2", (100, 1, 0), 1)),
            attempt("w", 2, unscored_reason="request_failed", provenance={"error": "no"}),
            attempt("x", 2, unscored_reason="refusal", provenance=paid("m-2", (0, 0, 0), 0)),
            attempt("u", 6, rater="h", label="1", provenance=paid("n", (8, 2, 0))),
            attempt("u", 6, rater="i", label="1"),
        ]
    )
    totals = grade_totals(store).set_index("rater_id")
    first = totals.loc["g"].to_dict()
    assert set(json.loads(first.pop("models"))) == {"m-1", "m-2"}
    assert json.loads(first.pop("unscored_reasons")) == {"refusal": 2, "request_failed": 1}
    assert first == {
        "rubric": "refusal",
        "attempts": 6,
        "units": 4,
        "labelled": 2,
        "unscored": 3,
        "low_mass": 1,
        "without_probabilities": 1,
        "tokens_input": 400,
        "tokens_output": 13,
        "tokens_cached": 100,
        "cached_share": 0.25,
        "cost_usd": 2.0,
        "asked_by": '{"tool": 1}',
        "first_at": "2026-11-02",
        "last_at": "2026-11-05",
    }
    assert totals.loc["h", "tokens_input"] == 8
    assert pd.isna(totals.loc["h", "cost_usd"])  # no known price is not nothing
    assert totals.loc["i", ["tokens_input", "cached_share"]].isna().all()
    assert totals.loc["i", "models"] == "{}"
