"""What a grader would answer if nothing but people's own answers counted, solved for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from evenhand.analysis.bias.expected import (
    Labelled,
    Noise,
    People,
    _Curves,
    _third_of_normal,
    beyond_expected,
)

ROWS = 40
ONES = np.ones((ROWS, 2))


def _sums(tau: np.ndarray, chance: np.ndarray, rng: np.random.Generator) -> Labelled:
    """Of three people who see `tau` (rows, strata, units) and a grader who affirms by `chance`."""
    people = rng.random((3, *tau.shape)) < tau
    calls = rng.random(tau.shape) < chance
    n, mean, two = np.full(tau.shape[:2], tau.shape[2]), people.mean(axis=0), people[0] & people[1]
    features = (calls, mean, calls * mean, mean, two, mean, two, two & people[2])
    grader, person, both, *rest = (each.sum(axis=-1).astype(float) for each in features)
    return Labelled(n, grader, person, both, n, *rest[:2], n, *rest[2:])


def _curves(wide: float, rng: np.random.Generator) -> tuple[_Curves, np.ndarray, np.ndarray]:
    """Of two strata and several rows; and where z lies, with what weight, to integrate over."""
    place = ndtri(rng.uniform(0.05, 0.95, (2, ROWS)))
    center, spread = place * np.sqrt(1.0 + wide**2), np.full((2, ROWS), wide)
    at = rng.normal(size=(2, 4, ROWS))
    apart = ndtr(at) - ndtr(place)[:, None]
    part = np.repeat([[0.3], [0.7]], ROWS, axis=1)
    weight = rng.normal(size=at.shape) / 10.0
    relative, zero = rng.uniform(0.5, 2.0, (2, ROWS)), np.zeros(ROWS)
    return (
        _Curves(part, relative, center, spread, at, weight, apart, zero, zero),
        np.concatenate([center[:, None] + wide * _FINE[:, None], at], axis=1),
        np.concatenate([np.broadcast_to(_SHARES[:, None], (2, len(_FINE), ROWS)), weight], axis=1),
    )


_FINE = np.linspace(-9.0, 9.0, 20_001)
_SHARES = np.exp(-(_FINE**2) / 2.0) / np.exp(-(_FINE**2) / 2.0).sum()


@pytest.mark.parametrize("wide", [0.3, 1.2, 8.0])
def test_moments_and_their_slopes_are_those_of_the_integral(wide, rng):
    curves, at, weight = _curves(wide, rng)
    a, b = rng.normal(size=ROWS), rng.uniform(0.0, 3.0, ROWS)
    apart = ndtr(at) - ndtr(curves.center / np.sqrt(1.0 + wide**2))[:, None]

    def by_hand(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        answers = curves.part[:, None] * weight * ndtr(curves.relative[:, None] * a + b * at)
        return [answers.sum(axis=(0, 1)), (answers * apart).sum(axis=(0, 1))]

    assert np.allclose(curves.off(a, b), by_hand(a, b), atol=1e-9)
    assert np.allclose(curves.mean_off(a, b), by_hand(a, b)[0], atol=1e-9)
    step, slopes = 1e-5, np.array(curves.slopes(a, b))
    along_a = np.subtract(by_hand(a + step, b), by_hand(a - step, b)) / (2.0 * step)
    along_b = np.subtract(by_hand(a, b + step), by_hand(a, b - step)) / (2.0 * step)
    assert np.allclose(slopes[:, 0], along_a, atol=1e-7)
    assert np.allclose(slopes[:, 1], along_b, atol=1e-7)


def test_noise_is_that_of_a_general_fit(rng):
    """Least squares by scipy, on chances by its bivariate normal law."""
    x = np.linspace(-1.0, 2.0, 5)
    spread = np.exp(0.3 - 0.4 * (x - x.mean()))[None, :, None]
    tau = ndtr(spread * rng.normal(size=(1, 5, 500)) + 0.3 * x[:, None])
    sums = _sums(tau, tau > 0.5, rng)
    found = Noise.along(sums, x[None])
    mean, two = ((each / sums.n)[0] for each in (sums.person, sums.two2))

    def covariance(k: float, g: float) -> np.ndarray:
        square = np.exp(2.0 * (k - g * x))
        place, rho = ndtri(mean), square / (1.0 + square)
        both = [
            multivariate_normal.cdf([z, z], cov=[[1.0, r], [r, 1.0]])
            for z, r in zip(place, rho, strict=True)
        ]
        return np.array(both) - mean**2

    def off(at: np.ndarray) -> np.ndarray:
        return (covariance(*at) - (two - mean**2)) / (mean * (1.0 - mean))

    k, g = least_squares(off, [0.0, 0.0], xtol=1e-12, ftol=1e-12).x
    assert g == pytest.approx(0.4, abs=0.1)
    assert found.rise[0, 0] == pytest.approx(g, abs=1e-4)
    assert found.covariance[0] == pytest.approx(covariance(k, g), abs=1e-5)
    ratios = found.strictness[0] / found.strictness[0, 0]
    assert ratios == pytest.approx(np.exp(-g * (x - x[0])), abs=1e-4)


@pytest.mark.parametrize("labels", [0.0, 1.0])
def test_noise_of_unanimous_annotators_is_finite(labels):
    n, x = np.full((1, 5), 20.0), np.arange(5.0)[None]
    all_ = labels * n
    found = Noise.along(Labelled(n, all_, all_, all_, n, all_, all_, n, all_, all_, all_), x)
    assert np.isfinite(found.covariance).all()
    assert np.isfinite(found.strictness).all()


@pytest.mark.parametrize("wide", [0.3, 1.2, 8.0])
def test_the_third_moment_is_that_of_the_integral(wide):
    place = np.array([[-1.5, 0.0, 0.7]])
    angle = np.full(place.shape, np.arcsin(wide**2 / (1.0 + wide**2)))
    tau = ndtr(place * np.sqrt(1.0 + wide**2) + wide * _FINE[:, None])
    # Twelve points of Legendre for one integral over the angle.
    assert _third_of_normal(place, angle)[0] == pytest.approx(_SHARES @ tau**3, abs=1e-5)


def test_a_solution_has_the_graders_mean_and_covariance(rng):
    tau = ndtr(rng.normal(size=(ROWS, 2, 400)))
    sums = _sums(tau, ndtr(-0.5 + 0.7 * ndtri(tau)), rng)
    law = People.of(sums, third=True)
    level = sums.grader.sum(axis=1) / sums.n.sum(axis=1)
    share = sums.grader / sums.n
    together = (0.5 * (sums.both / sums.n - share * law.mean)).sum(axis=1)
    curves = _Curves.of_people(law, np.full((ROWS, 2), 0.5), ONES, level, together)
    a, b, fits = curves.fitted()
    assert fits.all()
    assert np.abs(curves.off(a, b)).max() < 1e-9
    assert np.median(b) == pytest.approx(0.7, abs=0.1)
    found = beyond_expected(sums, law, free=True)
    assert np.abs(found.share.sum(axis=1)).max() < 1e-9


def test_where_no_sharpness_fits_that_of_the_highest_covariance_is_nearest():
    rng = np.random.default_rng(1)
    tau = ndtr(rng.normal(size=(ROWS, 2, 400)))
    sums = _sums(tau, tau > 0.6, rng)
    law = People.of(sums, third=True)
    level = sums.grader.sum(axis=1) / sums.n.sum(axis=1)
    curves = _Curves.of_people(law, np.full((ROWS, 2), 0.5), ONES, level, np.full(ROWS, 0.5))
    curves = curves.of(np.array([7, 10, 17]))  # the highest of these is neither first nor last
    a, b, fits = curves.fitted()
    assert not fits.any()
    assert (b < 3.5).all()
    best = curves.off(a, b)[1]
    for other in np.linspace(0.05, 4.0, 80):
        at = np.full(3, other)
        assert (curves.off(curves.strictness(at, a), at)[1] <= best + 1e-9).all()


def test_a_grader_that_copies_a_person_cannot_be_told(rng):
    """Its errors are that person's: no grader that sees what all people see goes so far along."""
    tau = ndtr(0.6 * rng.normal(size=(ROWS, 2, 600)))
    sums = _sums(tau, ndtr(ndtri(tau)), rng)
    assert beyond_expected(sums, People.of(sums, third=False), free=True).told
    # Of three people one is itself.
    copied = sums.person3 / 3.0 + 2.0 / 3.0 * sums.two2
    sums = replace(sums, grader=sums.person3, both=copied)
    found = beyond_expected(sums, People.of(sums, third=False), free=True)
    assert not found.told
    assert np.isnan(found.share).all()


def test_a_grader_that_guesses_has_no_sharpness(rng):
    tau = ndtr(rng.normal(size=(ROWS, 2, 100)))
    sums = _sums(tau, np.full(tau.shape, 0.3), rng)
    found = beyond_expected(sums, People.of(sums, third=True), free=True)
    assert found.told
    sums = replace(sums, both=sums.both * 0.0)
    found = beyond_expected(sums, People.of(sums, third=True), free=True)
    share = sums.grader / sums.n
    assert found.share == pytest.approx(share - share.mean(axis=1, keepdims=True))
    assert np.abs(found.rise).max() < 1e-9
