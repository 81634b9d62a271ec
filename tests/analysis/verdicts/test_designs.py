"""No labelling design buys a verdict. All data are synthetic; `python -m benchmarks.designs` has
more designs, and many studies of each.
"""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis import Scale
from tests.analysis.simulated_labels import analysed, passes

pytestmark = pytest.mark.slow

SCALE = Scale("r", ("0", "1"))
NOISE, STRICT = 0.35, (-0.25, 0.25, 0.0)
"""Errors of annotators, and how far each is off; kappa of the first two is .59."""


def draw(
    rng: np.random.Generator, items: int, annotators: int, noise: float = NOISE, flips: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Annotators' labels (items, annotators), a grader's (items,), and how hard items are: the
    grader errs more on hard items, or gives the other label on a share `flips` of all items alike.
    """
    place, hard = rng.normal(size=items), np.exp(0.8 * rng.normal(size=items))
    error = NOISE * hard[:, None] * rng.normal(size=(items, annotators))
    people = (place[:, None] + np.array(STRICT[:annotators]) + error > 0).astype(int)
    grader = (place + noise * hard * rng.normal(size=items) > 0).astype(int)
    return people, np.where(rng.random(items) < flips, 1 - grader, grader), hard


@pytest.mark.parametrize(("noise", "items"), [(1.63, 800), (2.88, 800), (2.88, 400)])
def test_a_third_label_where_two_differ_lets_no_bad_grader_pass(noise, items):
    """True difference -.18 and -.29: a mean over pairs of annotators, each pair on its own items,
    lets nearly all such graders pass.
    """
    for seed in range(2):
        people, grader, _ = draw(np.random.default_rng([items, seed]), items, 3, noise)
        people[people[:, 0] == people[:, 1], 2] = -1
        found = analysed(people, grader[:, None], SCALE)
        assert passes(found) == [False], seed
        assert "Labels by a002 were given mostly where others disagree" in " ".join(found.notes)


def test_a_second_label_on_hard_items_lets_no_bad_grader_pass():
    """True difference -.10, of a grader that errs on all items alike, where people err on hard
    ones: there, where two labelled, it seems to be as good as they are.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        people, grader, hard = draw(rng, 1000, 2, flips=0.157)
        people[rng.random(1000) >= np.where(hard > 1.3, 0.9, 0.05), 1] = -1
        found = analysed(people, grader[:, None], SCALE)
        assert passes(found) == [False], seed
        assert "do not show how well annotators agree" in found.verdicts[0]["sentence"]


def test_a_good_grader_passes_where_third_labels_are_left_out():
    people, grader, _ = draw(np.random.default_rng(1), 800, 3)
    people[people[:, 0] == people[:, 1], 2] = -1
    assert passes(analysed(people, grader[:, None], SCALE)) == [True]


def test_an_annotator_whose_items_have_two_labels_each_can_be_left_out():
    """In a crowd the jackknife over annotators leaves items with one label, and no pair."""
    rng = np.random.default_rng(2)
    people = np.full((60, 40), -1)
    truth = rng.integers(0, 2, 60)
    for item in range(60):
        who = [38, 39] if item == 0 else rng.choice(38, 3, replace=False)
        people[item, who] = np.where(rng.random(len(who)) < 0.1, 1 - truth[item], truth[item])
    (found,) = analysed(people, truth[:, None], SCALE).verdicts
    assert "40 people" in found["sentence"] or "40 annotators" in found["sentence"]
