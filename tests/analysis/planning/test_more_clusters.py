"""What a pilot says of more people and pairs, against simulated tests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from evenhand.analysis.planning.more_clusters import Pilot

PILOT = Pilot("r", "g", -0.01, 0.1, 0.002, 100, 0.0006, 3, 0.02)


@pytest.mark.parametrize(("clusters", "people"), [(150, None), (300, None), (300, 8), (900, 20)])
def test_the_chance_is_that_of_simulated_bounds(clusters, people):
    """Estimates and both variances drawn, and the bound taken as verdicts take it."""
    rng, n = np.random.default_rng(1), 20_000
    of_clusters = PILOT.of_clusters * PILOT.clusters / clusters
    of_people = PILOT.of_people * PILOT.people / people if people else 0.0
    estimate = rng.normal(PILOT.difference, math.sqrt(of_clusters + of_people), n)
    seen = of_clusters * rng.chisquare(clusters - 1, n) / (clusters - 1)
    seen_people = np.zeros(n)
    if people:
        seen_people = of_people * rng.chisquare(people - 1, n) / (people - 1)
    parts = seen**2 / (clusters - 1) + (seen_people**2 / (people - 1) if people else 0.0)
    freedom = (seen + seen_people) ** 2 / parts
    low = estimate - t.ppf(1 - PILOT.alpha, freedom) * np.sqrt(seen + seen_people)
    assert PILOT.chance(clusters, people) == pytest.approx((low > -PILOT.margin).mean(), abs=0.03)


def test_clusters_to_decide_are_the_fewest():
    for people in (None, 8, 20):
        needed = PILOT.clusters_to_decide(people)
        assert needed is not None
        assert PILOT.chance(needed, people) >= 0.8 > PILOT.chance(needed - 1, people)
    assert PILOT.clusters_to_decide(20) < PILOT.clusters_to_decide(8)  # type: ignore[operator]


def test_no_number_of_pairs_makes_up_for_people():
    assert PILOT.clusters_to_decide(3) is None
    assert replace(PILOT, difference=-PILOT.margin).clusters_to_decide() is None
    assert replace(PILOT, alpha=0.0).clusters_to_decide() is None


def test_what_is_clear_takes_no_more():
    assert replace(PILOT, difference=0.4).clusters_to_decide() == PILOT.clusters
    # As far on the other side of the margin: shown to be below as soon.
    below = replace(PILOT, difference=-0.6)
    assert below.clusters_to_decide() == PILOT.clusters
