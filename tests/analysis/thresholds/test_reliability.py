"""The reliability curve and the parts of the Brier score, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from evenhand.analysis.thresholds.probabilities import (
    MAX_POINTS,
    brier_parts,
    reliability_curve,
)


def test_parts_by_hand() -> None:
    """Four units at .2, .4, .6, .8 of which the second and the fourth are affirmed. The curve is 0,
    1/2, 1/2, 1: its score 2/16; at the constant 1/2 1/4; as stated (.04 + .36 + .36 + .04) / 4."""
    parts = brier_parts(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert parts.uncertainty == pytest.approx(1 / 4)
    assert parts.discrimination == pytest.approx(1 / 4 - 1 / 8)
    assert parts.miscalibration == pytest.approx(0.2 - 1 / 8)


def test_parts_of_the_extremes() -> None:
    verdicts = np.array([0.0, 1.0, 1.0, 0.0])
    sure = brier_parts(verdicts, verdicts)
    assert (sure.miscalibration, sure.discrimination, sure.uncertainty) == (0.0, 0.25, 0.25)
    constant = brier_parts(np.full(4, 0.5), verdicts)
    assert (constant.miscalibration, constant.discrimination) == (0.0, 0.0)
    inverted = brier_parts(1.0 - verdicts, verdicts)
    assert (inverted.miscalibration, inverted.discrimination) == (0.75, 0.0)
    agreed = brier_parts(np.array([0.3, 0.6]), np.ones(2))
    assert (agreed.discrimination, agreed.uncertainty) == (0.0, 0.0)


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=40))
@trials(max_examples=60, deadline=None)
def test_parts_add_up_and_are_scikit_learns(pairs: list[tuple[int, bool]]) -> None:
    p, y = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    p /= 10
    parts = brier_parts(p, y)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(np.mean((p - y) ** 2))
    theirs = IsotonicRegression().fit(p, y).predict(p)
    assert parts.miscalibration == pytest.approx(
        np.mean((p - y) ** 2) - np.mean((theirs - y) ** 2), abs=1e-12
    )
    assert min(vars(parts).values()) >= 0


def test_points_are_both_ends_of_every_step() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    curve = reliability_curve(p, np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.arange(5))
    assert curve.stated.tolist() == [0.1, 0.2, 0.3, 0.4, 0.9]
    assert curve.share.tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert curve.step.tolist() == [0, 1, 1, 2, 2]
    assert curve.step_of_unit.tolist() == [0, 1, 1, 2, 2]


def test_a_long_curve_is_thinned(rng: np.random.Generator) -> None:
    p = rng.random(20_000)
    curve = reliability_curve(p, (rng.random(20_000) < p).astype(float), np.arange(20_000))
    assert len(curve.stated) == MAX_POINTS
    assert (curve.stated[0], curve.stated[-1]) == (p.min(), p.max())


def _outside(rng: np.random.Generator, subjects: int, together: bool, distort: float) -> float:
    """Share of the points that lie outside the band, over 40 studies of 60 clusters."""
    shares = []
    for _ in range(40):
        p = rng.uniform(0.05, 0.95, (60, subjects))
        luck = rng.random((60, 1 if together else subjects)) * np.ones((60, subjects))
        y = (luck < p**distort).astype(float)
        curve = reliability_curve(p.ravel(), y.ravel(), np.repeat(np.arange(60), subjects))
        shares.append(((curve.share < curve.low) | (curve.share > curve.high)).mean())
    return float(np.mean(shares))


@pytest.mark.slow
def test_the_band_holds_calibrated_graders_and_no_others(rng: np.random.Generator) -> None:
    assert _outside(rng, 1, together=False, distort=1.0) < 0.13
    assert _outside(rng, 1, together=False, distort=3.0) > 0.35


@pytest.mark.slow
def test_the_band_is_wider_where_units_of_a_cluster_go_together(rng: np.random.Generator) -> None:
    assert _outside(rng, 6, together=True, distort=1.0) < 0.16
