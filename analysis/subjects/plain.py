"""Corrected rates on plain verdicts, with analytic intervals in addition to the bootstrap.

`reference` and `grades` are verdicts on the labelled units: people's (0, 1, or between the two
where they disagree) and the grader's (0 or 1); `rest` are the grader's on the units that no person
labelled. See `analysis.subjects.formulas` for the two corrections and what they assume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, Z
from evenhand.analysis.bootstrap.patterns import distinct_rows
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.bootstrap.shares import Reach
from evenhand.analysis.labels.plain import cluster_codes, same_length
from evenhand.analysis.notes import Code
from evenhand.analysis.subjects.formulas import (
    RateSums,
    clipped,
    corrected_interval,
    invert,
    ppi_reach,
    rate_features,
)
from evenhand.analysis.types import Array, Codes, Column
from evenhand.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RoganGladen(Interval):
    """People's rate from a grader's and its errors, with its 95% interval, all within [0, 1].

    `note` gives the reason where something is NaN.
    """

    sensitivity: float
    specificity: float


@dataclass(frozen=True, kw_only=True)
class PredictionPowered(Interval):
    """People's rate on the sample, moved by `weight` times the grader's rate elsewhere minus its
    rate on the sample; with its 95% interval, all within [0, 1]. `note` gives the reason for a NaN.
    """

    weight: float


def rogan_gladen(
    reference: Column[float],
    grades: Column[float],
    rest: Column[float],
    *,
    method: Literal["bootstrap", "delta", "lee"] = "bootstrap",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> RoganGladen:
    """Rogan & Gladen's estimate (1978) of people's rate.

    `method` is "bootstrap", which resamples labelled and unlabelled units alike (or `clusters`,
    one for each unit, the labelled ones first); "delta", the delta method with three independent
    shares; or "lee", the same on shares with two units added and moved for the curvature (Lee et
    al. 2025, arXiv 2511.21140). The latter two take units as independent. Raises InputError where
    verdicts are missing or out of range.

    80 units that people affirm, of which the grader affirms 70, and 120 others with 20 false
    alarms; it affirms 480 of 1,000 units elsewhere:

    >>> people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
    >>> elsewhere = np.repeat([1, 0], [480, 520])
    >>> found = rogan_gladen(people, grader, elsewhere, method="delta")
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4)
    (0.4424, 0.3604, 0.5243)
    >>> found = rogan_gladen(people, grader, elsewhere, method="lee")
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4)
    (0.4424, 0.3595, 0.528)
    """
    units = _units(reference, grades, rest)
    sums = RateSums(*units.sum(axis=0))
    found = float(clipped(_inverted(sums)))
    if math.isnan(found):
        bounds = Interval.undefined(_why_undefined(sums))
    elif method == "bootstrap":
        bounds = _resampled(units, clusters, bootstrap, _inverted)
    elif method == "delta":
        bounds = _around(found, _delta_variance(found, sums))
    elif method == "lee":
        bounds = _lee(sums)
    else:
        raise InputError(f"method is {method!r}; it must be bootstrap, delta or lee")
    return RoganGladen(
        found,
        bounds.low,
        bounds.high,
        bounds.remarks,
        sensitivity=float(sums.sensitivity),
        specificity=float(sums.specificity),
    )


def ppi_plus_plus(
    reference: Column[float],
    grades: Column[float],
    rest: Column[float],
    *,
    weight: float | None = None,
    method: Literal["bootstrap", "normal"] = "bootstrap",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> PredictionPowered:
    """Prediction-powered inference for people's rate (Angelopoulos et al. 2023, arXiv 2311.01453).

    The weight on the grader is estimated (PPI++) unless given; 1 is PPI, 0 the sample alone.
    `method` is "bootstrap", as in `rogan_gladen`, with the weight estimated in each resample; or
    "normal", the large-sample interval of independent units. Raises InputError where verdicts are
    missing or out of range. The units of `rogan_gladen`'s example:

    >>> people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
    >>> elsewhere = np.repeat([1, 0], [480, 520])
    >>> found = ppi_plus_plus(people, grader, elsewhere, method="normal")
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4), round(found.weight, 4)
    (0.417, 0.3647, 0.4694, 0.5681)
    >>> found = ppi_plus_plus(people, grader, elsewhere, weight=1, method="normal")
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4)
    (0.43, 0.3684, 0.4916)
    """
    if weight is not None and not 0 <= weight <= 1:
        raise InputError(f"the weight is {weight}; it must lie between 0 and 1")
    units = _units(reference, grades, rest)
    sums = RateSums(*units.sum(axis=0))

    def rate(each: RateSums) -> Array:
        return each.ppi(each.ppi_weight if weight is None else weight)

    used, found = float(sums.ppi_weight if weight is None else weight), float(clipped(rate(sums)))
    if sums.rest == 0:  # there is nothing to draw on
        used = found = math.nan
    if math.isnan(found):
        bounds = Interval.undefined(_why_undefined(sums))
    elif method == "bootstrap":
        bounds = _resampled(units, clusters, bootstrap, rate, used)
    elif method == "normal":
        y, f, g = (np.asarray(given, dtype=float) for given in (reference, grades, rest))
        variance = used**2 * np.var(g) / len(g) + np.var(y - used * f) / len(y)
        bounds = _around(found, float(variance))
    else:
        raise InputError(f"method is {method!r}; it must be bootstrap or normal")
    return PredictionPowered(found, bounds.low, bounds.high, bounds.remarks, weight=used)


def _units(reference: Column[float], grades: Column[float], rest: Column[float]) -> Array:
    """Features of the labelled units, then of the rest: (units, 6)."""
    y, f, g = (np.asarray(given, dtype=float) for given in (reference, grades, rest))
    same_length(y, f)
    binary = np.isin(f, (0, 1)).all() and np.isin(g, (0, 1)).all()
    if not binary or not ((y >= 0) & (y <= 1)).all():
        raise InputError(
            "a grader's verdicts must be 0 or 1, and the reference's between 0 and 1, none missing"
        )
    nobody = np.full(len(g), np.nan)
    return rate_features(np.concatenate([y, nobody]), np.concatenate([f, g]))


def _inverted(sums: RateSums) -> Array:
    return invert(sums.elsewhere, sums.sensitivity, sums.specificity)


def _why_undefined(sums: RateSums) -> Code:
    if sums.rest == 0:
        return "no_unlabelled_units"
    return "no_variation" if math.isnan(sums.youden_j) else "grader_not_informative"


def _resampled(
    units: Array,
    clusters: Column[Hashable] | None,
    bootstrap: Bootstrap | None,
    rate: Callable[[RateSums], Array],
    weight: float | None = None,
) -> Interval:
    """The interval from resamples of units or clusters; like ones are folded into one. `weight` is
    that of prediction-powered inference, None for Rogan & Gladen's rate.

    What is known of the rate rests on the labelled ones: they say how far it can be trusted.
    """
    of = cluster_codes(clusters, len(units))
    sums = np.column_stack([np.bincount(of, weights=column) for column in units.T]).astype(float)
    kept, times = distinct_rows([_small_codes(column) for column in sums.T])
    resamples = (bootstrap or Bootstrap()).draw(times)
    replicates = rate(RateSums(*resamples.totals(sums[kept]).T))
    labelled = int(units[:, 0].sum()), int(np.count_nonzero(sums[:, 0]))
    found = resamples.interval(replicates, labelled[1])
    drawn = resamples.plain(replicates)[1:]
    reach = Reach(np.inf, np.inf, labelled[1]) if weight is None else ppi_reach(sums, weight)
    return corrected_interval(found, drawn, len(units), labelled, reach)


def _small_codes(column: Array) -> Codes:
    return np.unique(column, return_inverse=True)[1].reshape(-1)


def _delta_variance(rate: float, sums: RateSums) -> float:
    """The delta method's variance: three independent shares (Rogan & Gladen 1978)."""
    sensitivity, specificity = float(sums.sensitivity), float(sums.specificity)
    refused = float(sums.labelled - sums.affirmed)
    shares = (
        (float(sums.elsewhere), float(sums.rest), 1.0),
        (sensitivity, float(sums.affirmed), rate**2),
        (specificity, refused, (1.0 - rate) ** 2),
    )
    spread = sum(weight * share * (1.0 - share) / n for share, n, weight in shares)
    return spread / float(sums.youden_j) ** 2


def _lee(sums: RateSums) -> Interval:
    """Lee et al. 2025: Agresti and Coull's shares, and half the curvature as a shift."""
    z2 = Z**2
    n, affirmed = float(sums.rest) + z2, float(sums.affirmed) + 2.0
    refused = float(sums.labelled - sums.affirmed) + 2.0
    p = (float(sums.rest_graded) + z2 / 2.0) / n
    sensitivity = (float(sums.both) + 1.0) / affirmed
    specificity = (refused - 1.0 - float(sums.graded - sums.both)) / refused
    rate = float(invert(*(np.asarray(each) for each in (p, sensitivity, specificity))))
    missed = sensitivity * (1.0 - sensitivity) / affirmed
    alarms = specificity * (1.0 - specificity) / refused
    j = sensitivity + specificity - 1.0
    shift = 2.0 * z2 * (rate * missed - (1.0 - rate) * alarms)
    spread = p * (1.0 - p) / n + rate**2 * missed + (1.0 - rate) ** 2 * alarms
    return _around(rate + shift, spread / j**2)


def _around(middle: float, variance: float) -> Interval:
    half = Z * math.sqrt(variance)
    low, high = (float(clipped(np.asarray(bound))) for bound in (middle - half, middle + half))
    return Interval(middle, low, high)
