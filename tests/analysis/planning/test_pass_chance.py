"""The chance to pass against verdicts on the same simulated studies, and against another population
of studies.
"""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.decisions import Cell, study
from evenhand.analysis import Scale
from evenhand.analysis.agreement.coefficients import kappa_on_scale
from evenhand.analysis.planning import (
    ScaleScenario,
    Scenario,
    half_width,
    panels,
    pass_chance,
    pass_chances,
    study_precision,
)
from evenhand.study.settings.analysis import DecisionSettings
from tests.analysis.make import verdict_on
from tests.peers import metrics

SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))


def _verdict(codes, scale, scope):
    """The verdict on codes (raters, units) of its labels, the grader's last."""
    names = [*(f"h{n}" for n in range(len(codes) - 1)), "g"]
    labels = dict(zip(names, np.array(scale.categories)[codes], strict=True))
    return verdict_on(labels, scale, resamples=10, scope=scope)["verdict"]


SCALED = [
    ("these", 3, 120, ScaleScenario(1, 5, 0.7, 3.0, strictness=0.2)),
    ("these", 2, 90, ScaleScenario(1, 5, 0.8, 4.4)),
    ("like_these", 5, 80, ScaleScenario(0, 10, 0.7, 6.0, strictness=0.1)),
    ("these", 3, 400, ScaleScenario(1, 5, 0.35, 3.0)),  # the linear bound is enough for some
    ("these", 3, 100, ScaleScenario(0, 20, 0.7, 10.0)),
]
OF_TWO = [
    ("these", 3, 250, Scenario(0.88, 0.5, strictness=0.1)),
    ("like_these", 6, 250, Scenario(0.88, 0.5, strictness=0.1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "people", "units", "scenario"),
    [*SCALED, *(pytest.param(*each, marks=pytest.mark.thorough) for each in OF_TWO)],
)
def test_a_study_passes_where_its_verdict_does(scope, people, units, scenario):
    """The same simulated studies through the whole analysis, one by one: two categories, ordered
    ones, and numbers, of which there are twenty.
    """
    scale, least, is_ordered = SCALE, 0.2, isinstance(scenario, ScaleScenario)
    if is_ordered:
        labels = tuple(str(each) for each in range(scenario.low, scenario.high + 1))
        scale = Scale("r", labels, "ordinal" if len(labels) < 12 else "interval")
        least = scenario.least_kappa(0.2)
    drawn = scenario.draw(np.random.default_rng(2), (8, units), people, graders=1)
    *_, panel = panels(drawn, scenario.distance, is_ordered=is_ordered)
    shown = [_verdict(drawn[:, n], scale, scope) == "can_replace" for n in range(8)]
    assert panel.passes(scope, 0.1, DecisionSettings(), least).tolist() == shown
    assert len(set(shown)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "strictness"), [("drawn", 0.25), ("", 0.0)])
def test_the_chance_is_that_of_the_population_of_the_benchmark(kind, strictness):
    """Studies of `benchmarks.decisions` with a grader as good as a person: kappa .7, three people,
    within three standard errors of both simulations.
    """
    cell = Cell(0.5, 250, 1, kind=kind)
    studies = [study(cell, 250, 0.0, np.random.default_rng([5, run])) for run in range(150)]
    labels = [each["label"].eq("yes").to_numpy().reshape(250, 4) for each in studies]
    codes = np.array(labels, dtype=np.intp).transpose(2, 0, 1)
    *_, panel = panels(codes, Scenario(0.85, 0.5).distance)
    chances = pass_chances(250, Scenario(0.85, 0.5, strictness=strictness), [3])
    for scope in ("these", "like_these"):
        share = panel.passes(scope, 0.1, DecisionSettings(), 0.2).mean()
        assert share == pytest.approx(chances[scope][3], abs=0.13)
    assert chances["like_these"][3] < chances["these"][3] - 0.3


def test_raters_agree_as_often_as_assumed_and_the_grader_with_people_alike():
    scenario = Scenario(0.85, 0.3, strictness=0.2)
    drawn = scenario.draw(np.random.default_rng(3), (1000, 200), 3, graders=1)
    agree = {(a, b): (drawn[a] == drawn[b]).mean() for a, b in combinations(range(4), 2)}
    assert list(agree.values()) == pytest.approx([0.85] * 6, abs=0.004)
    assert drawn.mean(axis=(1, 2)) == pytest.approx([0.3] * 4, abs=0.006)
    shares = drawn.mean(axis=2).var(axis=1) - 0.3 * 0.7 / 200
    assert np.sqrt(shares[:3]) == pytest.approx([scenario.spread_of_shares] * 3, rel=0.08)


@pytest.mark.slow
def test_what_the_rule_asks_moves_the_chance():
    scenario = Scenario(0.85, 0.5)
    usual = pass_chance(250, scenario)
    assert 0.58 < usual < 0.72
    assert pass_chance(250, scenario, rule=DecisionSettings(looks=5)) < usual - 0.05
    assert pass_chance(250, scenario, margin=0.2) >= 0.99
    assert pass_chance(250, scenario, rule=DecisionSettings(margin_share=0.05)) < 0.2
    # Where nine in ten are affirmative annotators' kappa is .17: nobody is judged beside them.
    lopsided = Scenario(0.85, 0.9)
    assert pass_chance(1000, lopsided) == 0
    # With no floor the margin is a quarter of that, .04, which few studies can show.
    assert 0.05 < pass_chance(1000, lopsided, rule=DecisionSettings(min_people_kappa=-1)) < 0.3
    assert pass_chance(1000, scenario, humans=2, rule=DecisionSettings(scope="like_these")) == 0
    assert pass_chance(50, Scenario(0.95, 0.1), rule=DecisionSettings()) < 0.01  # five rare units


def test_what_a_study_decides_is_said_at_its_own_rule():
    _, balanced, lopsided = study_precision(pairs=250, subjects=1, humans=3, margin=0.1)
    assert "in about" in balanced
    assert "No grader can be evaluated, because that kappa is only 0.17" in lopsided
    rule = DecisionSettings(min_people_kappa=0.1)
    *_, judged = study_precision(pairs=250, subjects=1, humans=3, margin=0.1, rule=rule)
    assert "in about" in judged


def test_more_than_ten_people_count_as_ten():
    scenario = Scenario(0.85, 0.5)
    few, many = (pass_chances(40, scenario, [people]) for people in (10, 60))
    assert many["these"][60] == few["these"][10]
    assert many["like_these"][60] == few["like_these"][10]


STRICT = [ScaleScenario(1, 5, *of, strictness=0.2) for of in ((0.7, 3.0), (0.5, 4.5))]


@pytest.mark.parametrize("scenario", [*STRICT, ScaleScenario(0, 10, 0.9, 2.0)])
def test_labels_on_a_scale_are_as_assumed(scenario):
    """Over studies, as annotators' strictness is drawn in each."""
    drawn = scenario.draw(np.random.default_rng(3), (2000, 100), 2, graders=1)
    labels = scenario.low + drawn.reshape(3, -1)
    assert labels.mean(axis=1) == pytest.approx([scenario.mean] * 3, abs=0.03)
    pairs = np.corrcoef(labels)[np.triu_indices(3, 1)]
    assert pairs == pytest.approx([scenario.correlation] * 3, abs=0.01)
    kappa = metrics.cohen_kappa_score(labels[0], labels[2], weights="linear")
    assert kappa == pytest.approx(scenario.kappa, abs=0.01)


def test_the_floor_on_a_scale_shows_as_much_as_on_two_categories():
    """The same raters, whose views correlate by .309, with two cuts or more."""
    views = np.random.default_rng(6).multivariate_normal([0, 0], [[1, 0.309], [0.309, 1]], 200_000)
    yes = (views > 0).T
    assert metrics.cohen_kappa_score(*yes) == pytest.approx(0.2, abs=0.01)
    for low, high, mean in ((1, 5, 3.0), (1, 5, 4.5), (0, 10, 5.0), (0, 10, 8.0), (0, 100, 60.0)):
        scenario = ScaleScenario(low, high, 0.5, mean)
        codes = np.searchsorted(scenario.cuts, views.T)
        kappa = metrics.cohen_kappa_score(*codes, weights="linear")
        assert kappa == pytest.approx(scenario.least_kappa(0.2), abs=0.013)
    fine = np.round(views.T * 20)
    for weights in ("linear", "quadratic"):
        kappa = metrics.cohen_kappa_score(*fine, weights=weights)
        assert kappa == pytest.approx(kappa_on_scale(0.2, weights), abs=0.006)


def test_the_width_of_kappa_on_a_scale_is_that_of_simulated_studies():
    scenario = ScaleScenario(1, 5, 0.7, 4.2)
    first, second = scenario.draw(np.random.default_rng(4), (500, 200), 2)
    of = {"weights": "linear", "labels": range(5)}
    pairs = zip(first, second, strict=True)
    kappas = [metrics.cohen_kappa_score(*pair, **of) for pair in pairs]
    assert half_width("kappa", 200, scenario) == pytest.approx(1.96 * np.std(kappas), rel=0.1)
    assert np.isnan(half_width("alpha", 200, scenario))
