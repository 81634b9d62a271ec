"""A pilot's variances from the rows that its verdicts are taken from."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis import Analysis, Scale
from evenhand.analysis.bootstrap.influence import level_of_look
from evenhand.analysis.planning.scenarios import Scenario
from evenhand.analysis.verdicts.evidence import pilots
from tests.analysis.make import analyse_labels

SCALE = Scale("r", ("no", "yes"))


def _analysed(people: int) -> Analysis:
    scenario = Scenario(0.85, 0.5, strictness=0.25)
    drawn = scenario.draw(np.random.default_rng(1), (1, 200), people, graders=1)[:, 0]
    names = [*(f"h{n}" for n in range(people)), "g"]
    labels = dict(zip(names, np.where(drawn, "yes", "no"), strict=True))
    return analyse_labels(labels, SCALE, resamples=20)


def test_the_bounds_come_back_from_the_variances():
    found = _analysed(5)
    (pilot,) = pilots(found.rows)
    rows = {row["statistic"]: row for row in found.rows if row["at"] == ""}
    assert (pilot.rubric, pilot.grader, pilot.clusters, pilot.people) == ("r", "g", 200, 5)
    assert pilot.difference == rows["non_inferiority"]["estimate"]
    assert pilot.alpha == level_of_look(2)
    both, units = pilot.of_clusters + pilot.of_people, pilot.of_clusters
    freedom = both**2 / (units**2 / 199 + pilot.of_people**2 / 4)
    from scipy.stats import t

    wider = rows["non_inferiority_people"]
    reached = t.ppf(1 - level_of_look(1), freedom) * both**0.5
    assert (wider["high"] - wider["low"]) / 2 == pytest.approx(reached, rel=0.05)


def test_two_people_say_nothing_of_people_like_them():
    (pilot,) = pilots(_analysed(2).rows)
    assert pilot.people == 0
    assert np.isnan(pilot.of_people)
    assert pilot.clusters_to_decide() is not None
