"""Intervals where resamples do not vary."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bootstrap.intervals import (
    Chance,
    Interval,
    kind_of,
    unseen,
    widened,
)
from evenhand.analysis.statistics import statistics


@pytest.mark.parametrize("n", [1, 5, 60, 250])
def test_a_share_without_variation_has_clopper_and_pearsons_interval(n: int) -> None:
    for estimate in (0.0, 1.0):
        found = widened(Interval(estimate, estimate, estimate), n, "share")
        expected = proportion_confint(estimate * n, n, method="beta")
        assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_unlike_clusters_move_each_statistic_as_far_as_its_range_allows() -> None:
    share = unseen(60)
    assert (1 - share) ** 60 == pytest.approx(0.025)

    def bounds(estimate: float, kind: str, apart: float = 1.0) -> tuple[float, float]:
        found = widened(Interval(estimate, estimate, estimate), 60, kind, apart)  # type: ignore[arg-type]
        return found.low, found.high

    assert bounds(0.5, "share") == pytest.approx((0.5 - 0.5 * share, 0.5 + 0.5 * share))
    assert bounds(1.0, "signed") == pytest.approx((1 - 2 * share, 1.0))
    assert bounds(0.0, "signed") == pytest.approx((-share, share))
    # Kappa 1 with chance agreement .5, and a difference of two such.
    assert bounds(1.0, "coefficient", 0.5) == pytest.approx((1 - share / 0.5, 1.0))
    assert bounds(0.0, "difference", 0.5) == pytest.approx((-share / 0.5, share / 0.5))
    # Nobody knows how far: all that is sure is the range.
    assert bounds(1.0, "coefficient", 0.0) == (-1.0, 1.0)
    assert bounds(-1.0, "difference", 0.5) == pytest.approx((-1.0, -1 + share / 0.5))


def test_only_an_interval_without_width_is_widened() -> None:
    wide, none = Interval(0.5, 0.4, 0.6), Interval(0.5, math.nan, math.nan)
    assert widened(wide, 60, "share") is wide
    assert widened(none, 60, "share") is none
    place = Interval(2.0, 2.0, 2.0)
    assert widened(place, 60, "place") is place
    unknown = widened(Interval(3.0, 3.0, 3.0), 60, None)
    assert math.isnan(unknown.low)
    assert unknown.note == "no_resample_differs"


def test_expected_disagreement_by_the_names_of_coefficients() -> None:
    shares = np.array([0.5, 0.25, 0.25])
    nominal, ordered = Chance(shares), Chance(shares, ordered="linear")
    assert nominal.disagreement("cohen_kappa") == pytest.approx(1 - (0.25 + 0.0625 + 0.0625))
    assert ordered.disagreement("cohen_kappa") == nominal.disagreement("cohen_kappa")
    linear = 2 * (0.5 * 0.25 * 0.5 + 0.5 * 0.25 * 1 + 0.25 * 0.25 * 0.5)
    assert ordered.disagreement("weighted_kappa_linear") == pytest.approx(linear)
    quadratic = 2 * (0.5 * 0.25 * 0.25 + 0.5 * 0.25 * 1 + 0.25 * 0.25 * 0.25)
    assert ordered.disagreement("weighted_kappa_quadratic") == pytest.approx(quadratic)
    for name in ("human_ceiling_difference", "consensus_kappa"):
        assert ordered.disagreement(name) == pytest.approx(linear)
        assert Chance(shares, "quadratic").disagreement(name) == pytest.approx(quadratic)
    assert nominal.disagreement("human_ceiling_difference") == nominal.disagreement("scott_pi")
    assert ordered.disagreement("gwet_ac1") == pytest.approx(2 / 3)
    assert ordered.disagreement("brennan_prediger") == pytest.approx(2 / 3)


def test_every_statistic_of_the_glossary_with_an_interval_has_a_range() -> None:
    """A new statistic gets a kind, or is named here as one that has no interval of resamples."""
    without = {name for name in statistics() if kind_of(name) is None}
    assert without == NO_RANGE
    unexplained = [name for name, entry in statistics().items() if not entry.why.endswith(".")]
    assert not unexplained, "say in one sentence why it is there"


NO_RANGE = {
    # No interval: counts, prices, p values, fits and shares of resamples.
    "alt_test_winning_rate",
    "confusion",
    "cost_usd",
    "disagreement",
    "disagreement_sorted",
    "mcnemar_p",
    "models_answered",
    "price_per_1000_units",
    "same_best",
    "stuart_maxwell_p",
    # Unbounded, or not bounded by 1.
    "squared_distance",
    "stability_sd",
    "strength",
}


def test_where_hardly_anybody_says_yes_the_interval_is_doubted(make_ratings: Callable) -> None:
    """Such intervals of alpha hold the truth in .69 of studies (benchmarks.small_samples)."""
    rare = {"ann": "2" * 4 + "1" * 96, "ben": "12" * 2 + "1" * 96, "cem": "2" * 3 + "1" * 97}
    usual = {name: labels[:50] + "2" * 50 for name, labels in rare.items()}
    doubted = {}
    for name, labels in (("rare", rare), ("usual", usual)):
        found = analyse(make_ratings(labels, []), None, [Scale("r", ("1", "2"))], resamples=200)
        own = found.results[found.results["statistic"] == "krippendorff_alpha_nominal"]
        assert own["low"].notna().all()
        doubted[name] = own["note"].str.contains("a rarer category in only 4 clusters").all()
    assert doubted == {"rare": True, "usual": False}
