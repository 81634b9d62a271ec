"""Sample sizes, widths and chances to pass against published values and simulated studies."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from evenhand.analysis import Scale, ppi_plus_plus
from evenhand.analysis import planning as plans
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.requirement import Bound, Pilot, clusters_for_width, clusters_to_decide
from evenhand.analysis.subjects.corrected_rates import LabelSpread
from evenhand.study.settings.analysis import DecisionSettings
from tests.analysis.make import analyse_labels, verdict_on
from tests.cases import refused
from tests.known_values import known_values
from tests.peers import inter_rater, metrics, stats


def test_published_sample_sizes():
    """Cantor (1996) and Donner & Eliasziw (1992); the last of Cantor's is one-sided."""
    expected, fewer = known_values("sample_size")["expected"], plans.KappaTest(0.6, 0.4)
    found = {
        "cantor_k1_085_k0_07_p_05_05": {
            "one_sided": plans.cantor(plans.KappaTest(0.85, 0.7, two_sided=False), 0.5, 0.5),
            "two_sided": plans.cantor(plans.KappaTest(0.85, 0.7), 0.5, 0.5),
        },
        "cantor_k1_07_k0_085": plans.cantor(plans.KappaTest(0.7, 0.85, two_sided=False), 0.5, 0.5),
    }
    found["donner_eliasziw_k0_04_k1_06_p_03_80pct"] = plans.donner_eliasziw(fewer, 0.3)
    assert found == expected


def test_the_variance_of_kappa_is_that_of_statsmodels():
    table = np.array([[0.725, 0.075], [0.075, 0.125]])
    width = 1.959963984540054 * inter_rater.cohens_kappa(250 * table).std_kappa
    scenario = plans.Scenario(0.85, 0.8)
    assert plans.half_width("kappa", 250, scenario) == pytest.approx(width)
    # A scale of two points is yes or no, whose labels correlate by their kappa.
    two_points = plans.ScaleScenario(0, 1, scenario.kappa, 0.8)
    assert plans.half_width("kappa", 250, two_points) == pytest.approx(width, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["kappa", "alpha", "rate", "threshold"])
def test_units_needed_give_the_width_and_fewer_do_not(statistic):
    scenario = plans.Scenario(0.85, 0.6)
    units = plans.units_needed(statistic, 0.12, scenario)
    assert plans.half_width(statistic, units, scenario) <= 0.12
    assert plans.half_width(statistic, units * 0.8, scenario) > 0.12


def test_a_best_threshold_is_surer_with_more_units():
    few, many = (plans.half_width("threshold", n, plans.Scenario(0.85, 0.6)) for n in (20, 200))
    assert 0.5 > few > many > 0.05


def test_the_possible_has_a_width_and_the_impossible_none():
    assert 96_000 < plans.units_needed("kappa", 0.0045, plans.Scenario(0.85, 0.5)) < 97_000
    assert np.isnan(plans.half_width("kappa", 250, plans.Scenario(0.85, 0.05)))
    refused("out of reach", plans.cantor, plans.KappaTest(0.9, 0.4), 0.9, 0.2)
    refused("differ", plans.KappaTest, 0.5, 0.5)


def test_more_clusters_settle_all_that_must_pass_or_one_that_fails():
    wide, narrow = Bound(0.05, 0.2, 0.35, 0.1), Bound(0.1, 0.3, 0.5, 0.15)
    assert clusters_to_decide(50, [wide, narrow], 30) == 180  # the wider one needs 4.6 times
    failing = Bound(-0.4, -0.2, 0.0, -0.05)
    assert clusters_to_decide(50, [wide, failing], 30) == 132
    # A grader that fails is known to fail only beside people who agree.
    assert clusters_to_decide(50, [replace(wide, either_way=True), failing], 30) == 180
    assert clusters_to_decide(50, [Bound(-0.6, 0.0, 0.6, -0.1, varies=False)], 30) == 250
    assert clusters_to_decide(10, [], 30) == 20
    assert clusters_to_decide(50, [Bound(0.0, 0.2, 0.4, 0.19)], 30) is None
    assert clusters_for_width(50, 0.2, 0.6, 0.2) == 0
    assert clusters_for_width(50, float("nan"), 0.6, 0.2) is None
    # 25 times the width takes 625 times the sample: no advice.
    assert clusters_for_width(50, 0.0, 1.0, 0.02) is None


PILOT = Pilot("r", "g", -0.01, 0.1, 0.002, 100, 0.0006, 3, 0.02, these=100)


@pytest.mark.parametrize(("clusters", "people"), [(150, 90_000), (300, 8), (900, 20)])
def test_the_chance_is_that_of_simulated_bounds(clusters, people):
    """Estimates and both variances drawn, and the bound taken as verdicts take it."""
    rng, n = np.random.default_rng(1), 20_000
    cluster_variance = PILOT.cluster_variance * PILOT.clusters / clusters
    people_variance = PILOT.people_variance * PILOT.people / people
    estimate = rng.normal(PILOT.difference, math.sqrt(cluster_variance + people_variance), n)
    seen = cluster_variance * rng.chisquare(clusters - 1, n) / (clusters - 1)
    seen_people = people_variance * rng.chisquare(people - 1, n) / (people - 1)
    parts = seen**2 / (clusters - 1) + seen_people**2 / (people - 1)
    freedom = (seen + seen_people) ** 2 / parts
    low = estimate - stats.t.ppf(1 - PILOT.alpha, freedom) * np.sqrt(seen + seen_people)
    assert PILOT.chance(clusters, people) == pytest.approx((low > -PILOT.margin).mean(), abs=0.03)


def test_clusters_to_decide_are_the_fewest():
    for people in (8, 20):
        needed = PILOT.clusters_to_decide(people)
        assert PILOT.chance(needed, people) >= 0.8 > PILOT.chance(needed - 1, people)
    assert PILOT.clusters_to_decide(20) < PILOT.clusters_to_decide(8)


def test_no_number_of_pairs_makes_up_for_people():
    assert PILOT.clusters_to_decide(3) is None
    assert replace(PILOT, difference=-PILOT.margin).clusters_to_decide(8) is None
    assert replace(PILOT, alpha=0.0).clusters_to_decide(8) is None


def test_the_bounds_come_back_from_the_variances():
    scenario = plans.Scenario(0.85, 0.5, strictness=0.25)
    drawn = scenario.draw(np.random.default_rng(1), (1, 200), 5, graders=1)[:, 0]
    names = ["h0", "h1", "h2", "h3", "h4", "g"]
    labels = dict(zip(names, np.where(drawn, "yes", "no"), strict=True))
    found = analyse_labels(labels, Scale("r", ("no", "yes")), why=True)
    (pilot,) = found.pilots
    rows = {row["statistic"]: row for row in found.rows if row["at"] == ""}
    assert (pilot.rubric, pilot.grader, pilot.clusters, pilot.people) == ("r", "g", 200, 5)
    assert pilot.difference == rows["non_inferiority"]["estimate"]
    assert pilot.alpha == level_of_look(2)
    both, units = pilot.cluster_variance + pilot.people_variance, pilot.cluster_variance
    freedom = both**2 / (units**2 / 199 + pilot.people_variance**2 / 4)
    wider = rows["non_inferiority_people"]
    reached = stats.t.ppf(1 - level_of_look(1), freedom) * both**0.5
    assert (wider["high"] - wider["low"]) / 2 == pytest.approx(reached, rel=0.05)


@pytest.mark.parametrize(
    ("agreement", "size", "scope", "these", "like_3"),
    [(0.55, 150, "these", None, None), (0.9, 150, "these", 150, None),
     (0.9, 40, "these", 110, None), (0.9, 150, "like_these", 150, 1029),
     (0.97, 300, "like_these", 300, 300)],
)  # fmt: skip
def test_a_pilot_needs_what_its_verdict_needs(agreement, size, scope, these, like_3):
    """No number is enough where annotators do not agree; a decided verdict needs no more."""
    scenario, rng = plans.Scenario(agreement, 0.5), np.random.default_rng(9)
    drawn = np.where(scenario.draw(rng, (1, size), 3, graders=1)[:, 0], "yes", "no")
    labels = dict(zip(["h0", "h1", "h2", "g"], drawn, strict=True))
    found = analyse_labels(labels, Scale("r", ("no", "yes")), why=True, scope=scope)
    (pilot,), (verdict,) = found.pilots, found.verdicts
    assert (pilot.these, pilot.clusters_to_decide(3)) == (these, like_3)
    assert pilot.stopped_by == ("" if these else verdict["sentence"])
    assert verdict["more_clusters"] in (0, (like_3 or these or 0) - size)


def test_published_components_and_correlations():
    example = known_values("shrout_fleiss1979")
    found = plans.g_study(example["data"]["items_x_raters"])
    components, icc = example["expected"]["variance_components"], example["expected"]["icc"]
    parts = {"person": found.unit, "rater": found.rater, "residual": found.residual}
    assert parts == pytest.approx({name: components[name] for name in parts}, abs=1e-9)
    assert sum(found.shares) == pytest.approx(1)
    one, four = plans.d_study(found, 1), plans.d_study(found, 4)
    assert (one.relative, one.absolute) == pytest.approx((icc["ICC(C,1)"], icc["ICC(A,1)"]))
    assert (four.relative, four.absolute) == pytest.approx((icc["ICC(C,k)"], icc["ICC(A,k)"]))


def test_no_negative_variance_and_no_variation():
    assert plans.g_study([[0, 1], [1, 0], [0, 1], [1, 0]]).unit == 0
    flat = plans.g_study(np.ones((5, 3)))
    assert np.isnan(flat.shares).all()
    assert np.isnan(plans.d_study(flat, 2).relative)


@pytest.mark.parametrize("values", [[[1, 2]], [[1], [2]], [[1, np.nan], [2, 3]], [1, 2, 3]])
def test_incomplete_tables_are_refused(values):
    refused("every rater on every unit", plans.g_study, values)


def test_the_largest_complete_part():
    codes = np.full((40, 3), -1, dtype=np.int8)
    codes[:, 0] = 0
    codes[:30, 1] = 1
    codes[28:, 2] = 0
    raters, units = plans.complete_block(codes)
    assert (raters, np.flatnonzero(units).tolist()) == ((0, 1), list(range(30)))
    assert plans.complete_block(np.full((40, 3), -1, dtype=np.int8))[0] == ()


@pytest.mark.slow
def test_a_planned_corrected_mean_is_as_precise_as_planned():
    """By the variance of PPI++ at its weight, and by simulated studies (synthetic)."""
    given, rng = LabelSpread(0.5, 0.7), np.random.default_rng(3)
    labelled = given.labels_for(0.06, 1000)
    widths = []
    for n in (labelled, labelled - 1):
        weight = 0.7 / (1 + n / (1000 - n))  # example 6.1, of standardised labels and grades
        variance = (1 + weight**2 - 2 * weight * 0.7) / n + weight**2 / (1000 - n)
        widths.append(1.96 * 0.5 * math.sqrt(variance))
    assert widths[0] <= 0.06 < widths[1]
    people = rng.random((300, 1000)) < 0.5
    grades = np.where(rng.random(people.shape) < 0.85, people, ~people)  # a correlation of .7
    found = [
        ppi_plus_plus(y[:labelled], f[:labelled], f[labelled:], method="normal")
        for y, f in zip(people, grades, strict=True)
    ]
    assert np.mean([each.high - each.low for each in found]) == pytest.approx(0.12, rel=0.02)
    assert 0.92 < np.mean([each.low <= 0.5 <= each.high for each in found]) < 0.98


YES_NO = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))


def _verdict(codes, scale, scope):
    """The verdict on codes (raters, units) of its labels, the grader's last."""
    names = [*(f"h{n}" for n in range(len(codes) - 1)), "g"]
    labels = dict(zip(names, np.array(scale.categories)[codes], strict=True))
    return verdict_on(labels, scale, scope=scope)["verdict"]


SCALED = [
    ("these", 3, 120, plans.ScaleScenario(1, 5, 0.7, 3.0, strictness=0.2)),
    ("these", 2, 90, plans.ScaleScenario(1, 5, 0.8, 4.4)),
    ("like_these", 5, 80, plans.ScaleScenario(0, 10, 0.7, 6.0, strictness=0.1)),
    ("these", 3, 400, plans.ScaleScenario(1, 5, 0.35, 3.0)),  # the linear bound is enough for some
    ("these", 3, 100, plans.ScaleScenario(0, 20, 0.7, 10.0)),
]
OF_TWO = [
    ("these", 3, 250, plans.Scenario(0.88, 0.5, strictness=0.1)),
    ("like_these", 6, 250, plans.Scenario(0.88, 0.5, strictness=0.1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "people", "units", "scenario"),
    [*SCALED, *(pytest.param(*each, marks=pytest.mark.thorough) for each in OF_TWO)],
)
def test_a_study_passes_where_its_verdict_does(scope, people, units, scenario):
    """The same simulated studies through the whole analysis, one by one."""
    scale, least, is_ordered = YES_NO, 0.2, isinstance(scenario, plans.ScaleScenario)
    if is_ordered:
        labels = tuple(str(each) for each in range(scenario.low, scenario.high + 1))
        scale = Scale("r", labels, "ordinal" if len(labels) < 12 else "interval")
        least = scenario.least_kappa(0.2)
    drawn = scenario.draw(np.random.default_rng(2), (8, units), people, graders=1)
    *_, panel = plans.panels(drawn, scenario.distance, is_ordered=is_ordered)
    shown = [_verdict(drawn[:, n], scale, scope) == "can_replace" for n in range(8)]
    assert panel.passes(scope, 0.1, DecisionSettings(), least).tolist() == shown
    assert len(set(shown)) == 2


def test_raters_agree_as_often_as_assumed_and_the_grader_with_people_alike():
    scenario = plans.Scenario(0.85, 0.3, strictness=0.2)
    drawn = scenario.draw(np.random.default_rng(3), (1000, 200), 3, graders=1)
    agree = {(a, b): (drawn[a] == drawn[b]).mean() for a, b in combinations(range(4), 2)}
    assert list(agree.values()) == pytest.approx([0.85] * 6, abs=0.004)
    assert drawn.mean(axis=(1, 2)) == pytest.approx([0.3] * 4, abs=0.006)
    shares = drawn.mean(axis=2).var(axis=1) - 0.3 * 0.7 / 200
    assert np.sqrt(shares[:3]) == pytest.approx([scenario.spread_of_shares] * 3, rel=0.08)


@pytest.mark.slow
def test_what_the_rule_asks_moves_the_chance():
    scenario = plans.Scenario(0.85, 0.5)
    usual = plans.pass_chance(250, scenario)
    assert 0.58 < usual < 0.72
    assert plans.pass_chance(250, scenario, rule=DecisionSettings(looks=5)) < usual - 0.05
    assert plans.pass_chance(250, scenario, margin=0.2) >= 0.99
    assert plans.pass_chance(250, scenario, rule=DecisionSettings(margin_share=0.05)) < 0.2
    # Where nine in ten are affirmative annotators' kappa is .17: nobody is judged beside them.
    lopsided = plans.Scenario(0.85, 0.9)
    assert plans.pass_chance(1000, lopsided) == 0
    # With no floor the margin is a quarter of that, .04, which few studies can show.
    no_floor = DecisionSettings(min_people_kappa=-1)
    like_these = DecisionSettings(scope="like_these")
    assert 0.05 < plans.pass_chance(1000, lopsided, rule=no_floor) < 0.3
    assert plans.pass_chance(1000, scenario, humans=2, rule=like_these) == 0
    assert plans.pass_chance(50, plans.Scenario(0.95, 0.1)) < 0.01  # five rare units


@pytest.mark.slow
def test_what_a_study_decides_is_said_at_its_own_rule():
    _, balanced, lopsided = plans.study_precision(pairs=250, subjects=1, humans=3, margin=0.1)
    assert "in about" in balanced
    assert "No grader can be evaluated, because that kappa is only 0.17" in lopsided
    rule = DecisionSettings(min_people_kappa=0.1)
    *_, judged = plans.study_precision(pairs=250, subjects=1, humans=3, margin=0.1, rule=rule)
    assert "in about" in judged
    of_scale = {"pairs": 200, "subjects": 1, "humans": 3, "margin": 0.1, "points": 5}
    on_scale, chance = plans.study_precision(**of_scale)
    assert "on the scale correlate by 0.7 (their kappa is then" in on_scale
    scenario = plans.ScaleScenario(1, 5, 0.7, 3.0)
    scenario = replace(scenario, strictness=plans.default_strictness(scenario.likeness))
    assert f"in about {plans.pass_chance(200, scenario):.0%}" in chance


@pytest.mark.journey
def test_more_than_ten_people_count_as_ten():
    scenario = plans.Scenario(0.85, 0.5)
    few, many = (plans.pass_chances(40, scenario, [people]) for people in (10, 60))
    assert many["these"][60] == few["these"][10]
    assert many["like_these"][60] == few["like_these"][10]


STRICT = [plans.ScaleScenario(1, 5, *of, strictness=0.2) for of in ((0.7, 3.0), (0.5, 4.5))]


@pytest.mark.parametrize("scenario", [*STRICT, plans.ScaleScenario(0, 10, 0.9, 2.0)])
def test_labels_on_a_scale_are_as_assumed(scenario):
    """Over studies, as annotators' strictness is drawn in each."""
    drawn = scenario.draw(np.random.default_rng(3), (2000, 100), 2, graders=1)
    labels = scenario.low + drawn.reshape(3, -1)
    assert labels.mean(axis=1) == pytest.approx([scenario.mean] * 3, abs=0.03)
    pairs = np.corrcoef(labels)[np.triu_indices(3, 1)]
    assert pairs == pytest.approx([scenario.correlation] * 3, abs=0.01)
    kappa = metrics.cohen_kappa_score(labels[0], labels[2], weights="linear")
    assert kappa == pytest.approx(scenario.kappa, abs=0.01)


@pytest.mark.slow
def test_the_width_of_kappa_on_a_scale_is_that_of_simulated_studies():
    scenario = plans.ScaleScenario(1, 5, 0.7, 4.2)
    first, second = scenario.draw(np.random.default_rng(4), (200, 200), 2)
    of = {"weights": "linear", "labels": range(5)}
    kappas = [metrics.cohen_kappa_score(*pair, **of) for pair in zip(first, second, strict=True)]
    assert plans.half_width("kappa", 200, scenario) == pytest.approx(1.96 * np.std(kappas), rel=0.1)
    assert np.isnan(plans.half_width("alpha", 200, scenario))


@pytest.mark.parametrize(("agreement", "prevalence"), [(0.85, 0.5), (0.9, 0.2)])
def test_likeness_is_the_tetrachoric_correlation(agreement, prevalence):
    likeness = plans.Scenario(agreement, prevalence).likeness
    cut = stats.norm.ppf(prevalence)
    both = stats.multivariate_normal([0, 0], [[1, likeness], [likeness, 1]]).cdf([cut, cut])
    assert 1 + 2 * both - 2 * prevalence == pytest.approx(agreement, abs=1e-4)
