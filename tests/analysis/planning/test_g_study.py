"""Variance components and what more raters bring, against Shrout & Fleiss (1979)."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.planning.g_study import complete_block, d_study, g_study
from evenhand.errors import InputError
from tests.known_values import known_values


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
