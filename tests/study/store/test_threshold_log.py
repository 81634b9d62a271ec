"""The log of tuned thresholds, on both kinds of store."""

from __future__ import annotations

import pytest

from evenhand.study.store.logs.threshold_log import (
    TunedThreshold,
    add_tuned_thresholds,
    tuned_thresholds,
)
from evenhand.study.store.schema import threshold_events
from harness.studies import upgraded_without


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_was_tuned_is_kept_to_the_last_digit(
    make_study, request: pytest.FixtureRequest, database: str
) -> None:
    options = {}
    if database == "postgresql":
        options["store"] = request.getfixturevalue("new_postgresql")()
    study = make_study(**options)
    about = {"rubric": "refusal", "grader": "g", "reference": "humans", "instead_of": 0.1 + 0.2}
    first = TunedThreshold(threshold=1 / 3, objective="kappa", clusters=["p2", "p1"], **about)
    second = TunedThreshold(threshold=0.1314, objective="f1", clusters=frozenset({"p9"}), **about)
    with upgraded_without(study, threshold_events) as again:
        assert tuned_thresholds(again.store) == []
        add_tuned_thresholds(again.store, [])
        add_tuned_thresholds(again.store, [first])
        add_tuned_thresholds(again.store, [second])
        found = tuned_thresholds(again.store)
    assert [each.clusters for each in found] == [["p1", "p2"], ["p9"]]
    assert [(each.threshold, each.instead_of) for each in found] == [
        (1 / 3, 0.1 + 0.2),
        (0.1314, 0.1 + 0.2),
    ]
    assert [(each.objective, each.created_at) for each in found] == [
        ("kappa", first.created_at),
        ("f1", second.created_at),
    ]
