"""Thresholds judged on clusters that they were not tuned on."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.thresholds.sweep import Candidates, folds, held_out_verdicts


def test_no_unit_has_a_say_in_its_own_threshold(rng: np.random.Generator) -> None:
    """Turning the reference of one cluster round changes no verdict in its fold."""
    p, clusters = rng.random(200), np.repeat(np.arange(50), 4)
    reference = (rng.random(200) < p).astype(np.int8)
    before = held_out_verdicts(p, reference, clusters, 0.5)
    own = folds(clusters) == folds(clusters)[0]
    turned = np.where(own, 1 - reference, reference).astype(np.int8)
    after = held_out_verdicts(p, turned, clusters, 0.5)
    assert all((before[name][own] == after[name][own]).all() for name in before)
    assert any((before[name][~own] != after[name][~own]).any() for name in before)


def test_units_without_a_reference_are_judged_and_not_tuned_on(rng: np.random.Generator) -> None:
    p, clusters = rng.random(100), np.arange(100)
    reference = (p >= 0.3).astype(np.int8)
    reference[::5] = -1
    found = held_out_verdicts(p, reference, clusters, 0.5)["kappa"]
    # A cut between the nearest probabilities on either side of .3 that have a reference.
    known = np.sort(p[reference >= 0])
    near = known[known >= 0.3][:3].max()
    clear = (p < known[known < 0.3][-1]) | (p > near)
    assert (found[clear] == (p >= 0.3)[clear]).all()


def test_a_single_cluster_cannot_be_held_out() -> None:
    one = np.zeros(20, dtype=np.intp)
    assert held_out_verdicts(np.linspace(0, 1, 20), np.ones(20, dtype=np.int8), one, 0.5) == {}


def test_candidates_count_what_lies_below() -> None:
    affirmed = np.array([False, True, True])
    found = Candidates.of(np.array([0.2, 0.9, 0.2]), affirmed, np.arange(3), 0.5)
    below = zip(*(each.tolist() for each in found.below), strict=True)
    assert dict(zip(found.thresholds.tolist(), below, strict=True)) == {
        0.2: (0, 0),
        0.5: (1, 1),
        0.9: (1, 1),
        1.0: (2, 1),
    }
