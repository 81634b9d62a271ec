"""Sample sizes and widths against published values and against simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from evenhand.analysis.planning.more_clusters import Bound, clusters_for_width, clusters_to_decide
from evenhand.analysis.planning.scenarios import (
    KappaTest,
    Scenario,
    ac1_half_width,
    cantor,
    design_effect,
    donner_eliasziw,
    half_width,
    kappa_half_width,
    two_rater_table,
    units_needed,
)
from evenhand.errors import InputError
from tests.known_values import known_values


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
    width = 1.959963984540054 * cohens_kappa(250 * table).std_kappa
    assert kappa_half_width(250, 0.85, 0.8) == pytest.approx(width)


@pytest.mark.parametrize(("agreement", "prevalence"), [(0.85, 0.5), (0.85, 0.9), (0.7, 0.3)])
def test_the_width_of_ac1_is_that_of_simulated_studies(agreement, prevalence):
    cells = two_rater_table(agreement, prevalence).ravel()
    drawn = np.random.default_rng(3).multinomial(400, cells, size=20_000) / 400
    share = (2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2]) / 2
    expected = 2 * share * (1 - share)
    ac1 = (drawn[:, 0] + drawn[:, 3] - expected) / (1 - expected)
    assert ac1_half_width(400, agreement, prevalence) == pytest.approx(1.96 * ac1.std(), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["kappa", "alpha", "ac1", "rate", "threshold"])
def test_units_needed_give_the_width_and_fewer_do_not(statistic):
    scenario = Scenario(0.85, 0.6)
    units = units_needed(statistic, 0.12, scenario)
    assert units is not None
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
