"""The chance to pass against verdicts on the same simulated studies, and against another population
of studies.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from benchmarks.decisions import Cell, study
from evenhand.analysis import Scale, analyse
from evenhand.analysis.planning.pass_chance import (
    panels,
    pass_chance,
    pass_chances,
    study_precision,
)
from evenhand.analysis.planning.scenarios import Scenario, usual_strictness
from evenhand.analysis.types import Mask
from evenhand.study.settings.analysis import DecisionSettings, Scope

SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))


def _ratings(verdicts: Mask) -> pd.DataFrame:
    """Of verdicts (raters, units), the grader's last."""
    rater, unit = (index.ravel() for index in np.indices(verdicts.shape))
    is_grader = rater == len(verdicts) - 1
    return pd.DataFrame(
        {
            "unit_id": [f"u{n}" for n in unit],
            "rater_id": np.where(is_grader, "g", [f"h{n}" for n in rater]),
            "rater_kind": np.where(is_grader, "model", "human"),
            "label": np.where(verdicts.ravel(), "yes", "no"),
        }
    )


def _said(verdicts: Mask) -> npt.NDArray[np.float64]:
    """Of verdicts (raters, studies, units), as panels take them."""
    return np.where(verdicts, 1.0, -1.0).swapaxes(1, 2)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("scope", "people", "units", "prevalence"),
    [("these", 3, 250, 0.5), ("these", 3, 100, 0.15), ("like_these", 6, 250, 0.5)],
)
def test_a_study_passes_where_its_verdict_does(
    scope: Scope, people: int, units: int, prevalence: float
) -> None:
    """The same simulated studies through the whole analysis, one by one."""
    scenario = Scenario(0.88, prevalence, strictness=0.1)
    drawn = scenario.draw(np.random.default_rng(2), (8, units), people, graders=1)
    *_, panel = panels(_said(drawn))
    verdicts = [
        analyse(_ratings(drawn[:, n]), None, [SCALE], resamples=10, scope=scope).verdicts[0]
        for n in range(8)
    ]
    shown = [verdict["verdict"] == "may_stand_in" for verdict in verdicts]
    assert panel.passes(scope, 0.1, DecisionSettings()).tolist() == shown
    assert len(set(shown)) == 2 or prevalence != 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "strictness"), [("drawn", 0.25), ("", 0.0)])
def test_the_chance_is_that_of_the_population_of_the_benchmark(
    kind: Literal["drawn", ""], strictness: float
) -> None:
    """Studies of `benchmarks.decisions` with a grader as good as a person: kappa .7, three people,
    within three standard errors of both simulations.
    """
    cell = Cell(0.5, 250, 1, kind=kind)
    studies = [study(cell, 250, 0.0, np.random.default_rng([5, run])) for run in range(150)]
    labels = [each["label"].eq("yes").to_numpy().reshape(250, 4) for each in studies]
    *_, panel = panels(_said(np.array(labels).transpose(2, 0, 1)))
    chances = pass_chances(250, Scenario(0.85, 0.5, strictness=strictness), [3])
    for scope in ("these", "like_these"):
        share = panel.passes(scope, 0.1, DecisionSettings()).mean()
        assert share == pytest.approx(chances[scope][3], abs=0.13)
    assert chances["like_these"][3] < chances["these"][3] - 0.3


def test_raters_agree_as_often_as_assumed_and_the_grader_with_people_alike() -> None:
    scenario = Scenario(0.85, 0.3, strictness=0.2)
    drawn = scenario.draw(np.random.default_rng(3), (1000, 200), 3, graders=1)
    agree = {(a, b): (drawn[a] == drawn[b]).mean() for a, b in combinations(range(4), 2)}
    assert list(agree.values()) == pytest.approx([0.85] * 6, abs=0.004)
    assert drawn.mean(axis=(1, 2)) == pytest.approx([0.3] * 4, abs=0.006)
    shares = drawn.mean(axis=2).var(axis=1) - 0.3 * 0.7 / 200
    assert np.sqrt(shares[:3]) == pytest.approx([scenario.spread_of_shares] * 3, rel=0.08)


@pytest.mark.parametrize(("agreement", "prevalence"), [(0.85, 0.5), (0.9, 0.2)])
def test_likeness_is_the_tetrachoric_correlation(agreement: float, prevalence: float) -> None:
    likeness = Scenario(agreement, prevalence).likeness
    cut = norm.ppf(prevalence)
    both = multivariate_normal([0, 0], [[1, likeness], [likeness, 1]]).cdf([cut, cut])
    assert 1 + 2 * both - 2 * prevalence == pytest.approx(agreement, abs=1e-4)


@pytest.mark.slow
def test_what_the_rule_asks_moves_the_chance() -> None:
    scenario = Scenario(0.85, 0.5)
    usual = pass_chance(250, scenario)
    assert 0.58 < usual < 0.72
    assert pass_chance(250, scenario, rule=DecisionSettings(looks=5)) < usual - 0.05
    assert pass_chance(250, scenario, margin=0.2) >= 0.99
    assert pass_chance(250, scenario, rule=DecisionSettings(margin_share=0.05)) < 0.2
    # Where nine in ten are affirmative people's kappa is .17: nobody is judged beside them.
    lopsided = Scenario(0.85, 0.9)
    assert pass_chance(1000, lopsided) == 0
    # With no floor the margin is a quarter of that, .04, which few studies can show.
    assert 0.05 < pass_chance(1000, lopsided, rule=DecisionSettings(min_people_kappa=-1)) < 0.3
    assert pass_chance(1000, scenario, humans=2, rule=DecisionSettings(scope="like_these")) == 0
    assert pass_chance(50, Scenario(0.95, 0.1), rule=DecisionSettings()) < 0.01  # five rare units


def test_usual_strictness_leaves_room_for_other_errors() -> None:
    for agreement in (0.6, 0.85, 0.9, 0.99):
        strictness = usual_strictness(agreement, 0.4)
        assert Scenario(agreement, 0.4, strictness=strictness).is_possible_so_strict
    assert not Scenario(0.95, 0.5, strictness=0.25).is_possible_so_strict


def test_what_a_study_decides_is_said_at_its_own_rule() -> None:
    _, balanced, lopsided = study_precision(pairs=250, subjects=1, humans=3, margin=0.1)
    assert "in about" in balanced
    assert "No grader can be judged, because that kappa is only 0.17" in lopsided
    rule = DecisionSettings(min_people_kappa=0.1)
    *_, judged = study_precision(pairs=250, subjects=1, humans=3, margin=0.1, rule=rule)
    assert "in about" in judged


def test_more_than_ten_people_count_as_ten() -> None:
    scenario = Scenario(0.85, 0.5)
    few, many = (pass_chances(40, scenario, [people]) for people in (10, 60))
    assert many["these"][60] == few["these"][10]
    assert many["like_these"][60] == few["like_these"][10]
