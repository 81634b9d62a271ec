"""A grader that fails in a part of the sample does not pass, and the sentence names the part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, Verdict, analyse

TWO = Scale("tone", ("1", "2"))


@pytest.fixture
def judged(make_ratings: Callable, noisy: Callable, rng: np.random.Generator) -> Callable:
    """The verdict on a grader that is inverted on the first units, the slice `rare`."""

    def judge(
        n: int, inverted: int, of_slice: int, slices: tuple[str, ...], **fields: float
    ) -> Verdict:
        truth = rng.integers(0, 2, n)
        labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(3)}
        seen = np.where(np.arange(n) < inverted, 1 - truth, truth)
        ratings = make_ratings(labels | {"g": noisy(rng, seen, 2, 0.93)}, ["g"])
        names = ratings["unit_id"].drop_duplicates()
        where = np.where(np.arange(n) < of_slice, "rare", "usual")
        units = pd.DataFrame({"unit_id": names, "cluster_id": names, "slice": where})
        found = analyse(ratings, units, [TWO], resamples=200, slices=slices, **fields)
        return found.verdicts[0]

    return judge


def test_a_failing_part_fails(judged: Callable) -> None:
    verdict = judged(1000, 50, 50, ("slice",))
    assert verdict["verdict"] == "only_with_correction"
    assert "not for slice=rare" in verdict["sentence"]
    assert "every part" not in verdict["limits"]
    assert verdict["reason"] == "falls short for slice=rare"


def test_labels_are_not_promised_to_help_who_fails_in_a_part(judged: Callable) -> None:
    """On the whole it lies within the margin by its estimate, and may or may not be below."""
    verdict = judged(1000, 80, 80, ("slice",), margin=0.08, min_information=1)
    assert verdict["verdict"] == "cannot_tell"
    assert "Its agreement could lie more than the margin below" in verdict["sentence"]
    assert "It would probably fail: label about" in verdict["sentence"]
    assert not verdict["promising"]


def test_nothing_is_known_of_parts_that_nobody_looked_at(judged: Callable) -> None:
    verdict = judged(1000, 50, 50, ())
    assert verdict["verdict"] == "may_stand_in"
    assert "nor in every part of the sample" in verdict["limits"]


def test_parts_that_are_looked_at_and_fine_are_named(judged: Callable) -> None:
    verdict = judged(1000, 0, 400, ("slice",))
    assert verdict["verdict"] == "may_stand_in"
    assert "holds in each part looked at (slice=rare, slice=usual)" in verdict["sentence"]


def test_a_part_that_is_too_small_is_not_known(judged: Callable) -> None:
    verdict = judged(600, 12, 12, ("slice",))
    assert verdict["verdict"] == "may_stand_in"
    assert (
        "within the margin in slice=usual; too few labels to tell in 1 of 2" in verdict["sentence"]
    )


@pytest.mark.thorough
def test_good_grader_are_seldom_said_to_fail_in_a_part(
    make_ratings: Callable, noisy: Callable
) -> None:
    """Synthetic: 8 parts of 40 units, as good as people; a false alarm in 2.5% at most."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = (rng.random(320) < 0.3).astype(int)
        labels = {f"h{k}": noisy(rng, truth, 2, 0.7) for k in range(3)}
        ratings = make_ratings(labels | {"g": noisy(rng, truth, 2, 0.7)}, ["g"])
        names = ratings["unit_id"].drop_duplicates()
        units = pd.DataFrame({"unit_id": names, "part": [f"p{n % 8}" for n in range(320)]})
        verdict = analyse(ratings, units, [TWO], resamples=10, slices=("part",)).verdicts[0]
        alarms += "not for part" in verdict["sentence"]
    assert alarms <= 4  # more than 4 of 40 at 2.5% happen once in 300
