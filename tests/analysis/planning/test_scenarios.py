"""Sample sizes and widths against published values and against simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evenhand.analysis import Analysis, Scale, ppi_plus_plus
from evenhand.analysis.bootstrap.influence import level_of_look
from evenhand.analysis.planning import (
    KappaTest,
    Scenario,
    cantor,
    complete_block,
    d_study,
    design_effect,
    donner_eliasziw,
    g_study,
    half_width,
    kappa_half_width,
    two_rater_table,
    units_needed,
)
from evenhand.analysis.requirement import Bound, Pilot, clusters_for_width, clusters_to_decide
from evenhand.analysis.subjects.scores import Corrected
from evenhand.analysis.verdicts.evidence import pilots
from evenhand.errors import InputError
from tests.analysis.make import analyse_labels
from tests.known_values import known_values
from tests.peers import inter_rater, stats


def test_published_sample_sizes():
    """Cantor (1996) and Donner & Eliasziw (1992); the last of Cantor's is one-sided."""
    expected = known_values("sample_size")["expected"]
    found = {
        "cantor_k1_085_k0_07_p_05_05": {
            "one_sided": cantor(KappaTest(0.85, 0.7, two_sided=False), 0.5, 0.5),
            "two_sided": cantor(KappaTest(0.85, 0.7), 0.5, 0.5),
        },
        "cantor_k1_07_k0_085": cantor(KappaTest(0.7, 0.85, two_sided=False), 0.5, 0.5),
        "donner_eliasziw_k0_04_k1_06_p_03_80pct": donner_eliasziw(KappaTest(0.6, 0.4), 0.3),
    }
    assert found == expected


def test_the_variance_of_kappa_is_that_of_statsmodels():
    table = two_rater_table(0.85, 0.8)
    width = 1.959963984540054 * inter_rater.cohens_kappa(250 * table).std_kappa
    assert kappa_half_width(250, 0.85, 0.8) == pytest.approx(width)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["kappa", "alpha", "rate", "threshold"])
def test_units_needed_give_the_width_and_fewer_do_not(statistic):
    scenario = Scenario(0.85, 0.6)
    units = units_needed(statistic, 0.12, scenario)
    assert half_width(statistic, units, scenario) <= 0.12
    assert half_width(statistic, units * 0.8, scenario) > 0.12


def test_overlap_is_what_agreement_rests_on():
    half = Scenario(0.85, 0.5, overlap=0.5)
    assert half_width("kappa", 200, half) == half_width("kappa", 100, Scenario(0.85, 0.5))
    assert half_width("rate", 200, half) == half_width("rate", 200, Scenario(0.85, 0.5))


def test_impossible_scenarios_have_no_width():
    assert np.isnan(half_width("kappa", 250, Scenario(0.85, 0.05)))
    with pytest.raises(InputError, match="out of reach"):
        cantor(KappaTest(0.9, 0.4), 0.9, 0.2)
    with pytest.raises(InputError, match="differ"):
        KappaTest(0.5, 0.5)


def test_design_effect():
    assert design_effect(1, 1.0) == 1
    assert design_effect(4, 1.0) == 4
    assert design_effect(4, 0.0) == 1


def test_more_clusters_settle_all_that_must_pass_or_one_that_fails():
    wide, narrow = Bound(0.05, 0.2, 0.35, 0.1), Bound(0.1, 0.3, 0.5, 0.15)
    assert clusters_to_decide(50, [wide, narrow], 30) == 180  # the wider one needs 4.6 times
    failing = Bound(-0.4, -0.2, 0.0, -0.05)
    assert clusters_to_decide(50, [wide, failing], 30) == 132
    # A grader that fails is known to fail only beside people who agree.
    agree = replace(wide, either_way=True)
    assert clusters_to_decide(50, [agree, failing], 30) == 180
    assert clusters_to_decide(50, [Bound(-0.6, 0.0, 0.6, -0.1, varies=False)], 30) == 250
    assert clusters_to_decide(10, [], 30) == 20
    assert clusters_to_decide(50, [Bound(0.0, 0.2, 0.4, 0.19)], 30) is None
    assert clusters_for_width(50, 0.2, 0.6, 0.2) == 0
    assert clusters_for_width(50, float("nan"), 0.6, 0.2) is None
    # 25 times the width takes 625 times the sample: no advice, unless it is asked for.
    assert clusters_for_width(50, 0.0, 1.0, 0.02) is None
    assert clusters_for_width(50, 0.0, 1.0, 0.02, at_most=math.inf) == 50 * 624


# --- What a pilot says of more annotators and pairs, against simulated tests ----------------------
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
    low = estimate - stats.t.ppf(1 - PILOT.alpha, freedom) * np.sqrt(seen + seen_people)
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


# --- A pilot from the rows that its verdicts are taken from ---------------------------------------
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
    wider = rows["non_inferiority_people"]
    reached = stats.t.ppf(1 - level_of_look(1), freedom) * both**0.5
    assert (wider["high"] - wider["low"]) / 2 == pytest.approx(reached, rel=0.05)


def test_two_people_say_nothing_of_people_like_them():
    (pilot,) = pilots(_analysed(2).rows)
    assert pilot.people == 0
    assert np.isnan(pilot.of_people)
    assert pilot.clusters_to_decide() is not None


# --- Variance components and what more raters bring -----------------------------------------------
def test_published_components_and_correlations():
    example = known_values("shrout_fleiss1979")
    found = g_study(example["data"]["items_x_raters"])
    components, icc = example["expected"]["variance_components"], example["expected"]["icc"]
    assert found.unit == pytest.approx(components["person"], abs=1e-9)
    assert found.rater == pytest.approx(components["rater"], abs=1e-9)
    assert found.residual == pytest.approx(components["residual"], abs=1e-9)
    one, four = d_study(found, 1), d_study(found, 4)
    assert (one.relative, one.absolute) == pytest.approx((icc["ICC(C,1)"], icc["ICC(A,1)"]))
    assert (four.relative, four.absolute) == pytest.approx((icc["ICC(C,k)"], icc["ICC(A,k)"]))


def test_known_components_are_recovered(rng):
    units, raters = 2.0 * rng.standard_normal((4000, 1)), rng.standard_normal((1, 12))
    found = g_study(units + raters + 0.5 * rng.standard_normal((4000, 12)))
    assert found.unit == pytest.approx(4, rel=0.1)
    assert found.rater == pytest.approx(float(raters.var(ddof=1)), rel=0.1)
    assert found.residual == pytest.approx(0.25, rel=0.05)


def test_no_negative_variance_and_no_variation():
    crossed = g_study([[0, 1], [1, 0], [0, 1], [1, 0]])
    assert crossed.unit == 0
    flat = g_study(np.ones((5, 3)))
    assert np.isnan(flat.shares).all()
    assert np.isnan(d_study(flat, 2).relative)


@pytest.mark.parametrize("values", [[[1, 2]], [[1], [2]], [[1, np.nan], [2, 3]], [1, 2, 3]])
def test_incomplete_tables_are_refused(values):
    with pytest.raises(InputError, match="every rater on every unit"):
        g_study(values)  # type: ignore[arg-type]


def test_the_largest_complete_part():
    codes = np.full((40, 3), -1, dtype=np.int8)
    codes[:, 0] = 0
    codes[:30, 1] = 1
    codes[28:, 2] = 0
    raters, units = complete_block(codes)
    assert raters == (0, 1)
    assert units.tolist() == list(range(30))
    assert complete_block(np.full((40, 3), -1, dtype=np.int8))[0] == ()


@pytest.mark.slow
def test_a_planned_corrected_mean_is_as_precise_as_planned():
    """By the variance of PPI++ at its weight, and by simulated studies (synthetic)."""
    given, rng = Corrected(0.5, 0.7), np.random.default_rng(3)
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
