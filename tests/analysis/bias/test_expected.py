"""What a grader would answer if nothing but people's own answers counted, solved for."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.bias.expected import Labelled, People, _Cycle, beyond_expected
from evenhand.analysis.types import Codes


def test_rows_that_go_back_and_forth_end_where_all_steps_would_have_led(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps are cut off in small samples of a grader that sees little of what people see."""
    rng = np.random.default_rng(5)
    tau = rng.beta(0.4, 0.6, (200, 2, 30))
    people = rng.random((3, *tau.shape)) < tau
    calls = rng.random(tau.shape) < 0.5 + 0.3 * tau
    n, mean, two = np.full(tau.shape[:2], 30.0), people.mean(axis=0), people[0] & people[1]
    features = (calls, mean, calls * mean, mean, two, mean, two, two & people[2])
    grader, person, both, *rest = (each.sum(axis=-1).astype(float) for each in features)
    sums = Labelled(n, grader, person, both, n, *rest[:2], n, *rest[2:])
    law, without, parked = People.of(sums, third=True), _Cycle.without, []

    def noted(self: _Cycle, rest: Codes, left: int) -> Codes:
        kept = without(self, rest, left)
        parked.append(len(rest) - len(kept))
        return kept

    monkeypatch.setattr(_Cycle, "without", noted)
    jumped = beyond_expected(sums, law, free=True)
    assert sum(parked) > 20
    monkeypatch.setattr(_Cycle, "without", lambda self, rest, left: rest)
    stepped = beyond_expected(sums, law, free=True)
    assert np.array_equal(jumped.share, stepped.share, equal_nan=True)
    assert np.array_equal(jumped.rise, stepped.rise, equal_nan=True)
