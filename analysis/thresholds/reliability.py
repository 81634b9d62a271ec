"""Reliability without bins (CORP): the share affirmative at each stated probability.

The curve is the isotonic regression of the reference on the probability, which picks its steps
itself; it splits the Brier score into miscalibration, discrimination and uncertainty.
Source: Dimitriadis, Gneiting & Jordan 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.analysis.types import Array, Codes

MAX_POINTS = 60
"""Points through which a curve is drawn at most."""
_DRAWS = 400
_DRAWN_UNITS = 20_000_000
_FEWEST_DRAWS = 100


def isotonic_curve(
    positive: Array, affirmed: Array, weight: Array | None = None
) -> tuple[Array, Array]:
    """The distinct probabilities, and the share of affirmatives at each that rises best with them.

    `weight` (units,) is how much each unit counts, here and below; 1 unless given.

    >>> isotonic_curve(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]))[1].tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.optimize import isotonic_regression

    counts = np.ones(len(positive)) if weight is None else weight
    stated, place = np.unique(positive, return_inverse=True)
    times = np.bincount(place.reshape(-1), weights=counts)
    share = np.bincount(place.reshape(-1), weights=counts * affirmed) / times
    return stated, np.asarray(isotonic_regression(share, weights=times).x)


@dataclass(frozen=True)
class BrierParts:
    """Brier score = miscalibration - discrimination + uncertainty.

    `miscalibration` is how much recalibration on the same units would lower the score,
    `discrimination` how much lower the recalibrated probabilities score than the constant share of
    affirmatives, and `uncertainty` is the score of that constant. No part is below 0.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float


def brier_parts(positive: Array, affirmed: Array, weight: Array | None = None) -> BrierParts:
    """Parts of the mean squared distance of probabilities (units,) from 0 or 1 (units,).

    Scores of 1.01 / 3 as stated, .5 / 3 along the curve 0, 1/2, 1/2, and 2/9 at the constant 1/3:

    >>> parts = brier_parts(np.array([0.1, 0.2, 0.6]), np.array([0.0, 1.0, 0.0]))
    >>> [round(each, 4) for each in (parts.miscalibration, parts.discrimination, parts.uncertainty)]
    [0.17, 0.0556, 0.2222]
    """
    curve = np.interp(positive, *isotonic_curve(positive, affirmed, weight))
    share = np.average(affirmed, weights=weight)
    stated, recalibrated, constant = (
        float(np.average((each - affirmed) ** 2, weights=weight))
        for each in (positive, curve, share)
    )
    return BrierParts(max(0.0, stated - recalibrated), max(0.0, constant - recalibrated), constant)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Points of the curve, both ends of its steps: `stated` probability, `share` affirmative, and
    which `step` they are on; `low` and `high` are the bounds of a calibrated grader's share in 95%.
    All (points,); `step_of_unit` (units,) says where each unit is.
    """

    stated: Array
    share: Array
    step: Codes
    low: Array
    high: Array
    step_of_unit: Codes


def reliability_curve(
    positive: Array, affirmed: Array, clusters: Codes, weight: Array | None = None
) -> ReliabilityCurve:
    """The isotonic curve with its consistency band, from arrays (units,).

    For the band the reference is simulated as if the probabilities were true, and the curve fitted
    to it; the errors of units in one cluster are correlated in the simulation as in the data.
    """
    stated, share = isotonic_curve(positive, affirmed, weight)
    step = np.cumsum(np.diff(share, prepend=share[0]) > 0)
    change = np.flatnonzero(np.diff(step))
    ends = np.unique([0, *change, *(change + 1), len(step) - 1])
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, MAX_POINTS).round().astype(int))]
    together = _resemblance(affirmed, np.interp(positive, stated, share), clusters)
    counts = np.ones(len(positive)) if weight is None else weight
    low, high = _band(positive, clusters, together, ends, counts)
    of_unit = np.asarray(step[np.searchsorted(stated, positive)], dtype=np.intp)
    return ReliabilityCurve(stated[ends], share[ends], step[ends], low, high, of_unit)


def _band(
    positive: Array, clusters: Codes, together: float, points: Codes, counts: Array
) -> tuple[Array, Array]:
    """Bounds (points,) at some of the distinct probabilities."""
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(2021)
    draws = int(np.clip(_DRAWN_UNITS // len(positive), _FEWEST_DRAWS, _DRAWS))
    place, n_clusters = np.unique(positive, return_inverse=True)[1], int(clusters.max()) + 1
    place = place.reshape(-1)
    times = np.bincount(place, weights=counts)
    curves = np.empty((draws, len(points)))
    for draw in range(draws):
        chance = rng.random(len(positive))
        if together > 0:
            shared = rng.random(len(positive)) < np.sqrt(together)
            chance = np.where(shared, rng.random(n_clusters)[clusters], chance)
        share = np.bincount(place, weights=counts * (chance < positive)) / times
        curves[draw] = isotonic_regression(share, weights=times).x[points]
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    return low, high


def _resemblance(affirmed: Array, expected: Array, clusters: Codes) -> float:
    """The correlation of two units' errors within a cluster, from 0 to 1; 0 for single units."""
    error, spread = affirmed - expected, np.sqrt(expected * (1.0 - expected))
    both, most = (
        float((np.bincount(clusters, weights=each) ** 2).sum() - (each**2).sum())
        for each in (error, spread)
    )
    return float(np.clip(both / most, 0.0, 1.0)) if most > 1e-12 else 0.0
