"""Corrected rates on plain verdicts, with analytic intervals in addition to the bootstrap.

`reference` and `grades` are verdicts on the labelled units: people's (0, 1, or between the two
where they disagree) and the grader's (0 or 1); `rest` are the grader's on the units that no person
labelled.

A grader that errs gets a rate wrong, however much it grades. Two corrections, both from the
sample that people labelled and the units that only the grader labelled:

- Rogan & Gladen (1978): sensitivity and specificity turn the grader's rate into people's,
  (rate + specificity - 1) / (sensitivity + specificity - 1). It holds where the grader errs alike
  on both parts, whatever their prevalence.
- Prediction-powered inference (Angelopoulos et al. 2023a; PPI++ 2023b): people's own rate on the
  sample, plus the grader's rate elsewhere minus its rate on the sample, times a weight. With weight
  1 that is PPI, with 0 people's rate alone; PPI++ takes the weight that varies least, from 0 to 1.
  It holds for any grader where the sample is a random one.

Both are functions of a few sums over units, so that a bootstrap resamples the labelled and the
unlabelled part alike. A reference may lie between 0 and 1: a tied unit counts half on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, Z, widened
from evenhand.analysis.bootstrap.patterns import distinct_rows
from evenhand.analysis.bootstrap.resamples import Bootstrap, ratio
from evenhand.analysis.bootstrap.shares import Reach, powered_reach, share_interval
from evenhand.analysis.labels.encoding import cluster_codes, same_length
from evenhand.analysis.notes import Code
from evenhand.analysis.types import Array, Column
from evenhand.errors import InputError


class RateSums(NamedTuple):
    """Sums over units, all of one shape (rows, ...): the labelled part, then the rest.

    `labelled` units have a reference and a grade, of which `affirmed` and `graded` are the sums and
    `both` the sum of their product; `rest` units have a grade only, `rest_graded` is its sum.
    """

    labelled: Array
    affirmed: Array
    graded: Array
    both: Array
    rest: Array
    rest_graded: Array

    @property
    def raw(self) -> Array:
        """The grader's rate on all units that it graded."""
        return ratio(self.graded + self.rest_graded, self.labelled + self.rest)

    @property
    def people(self) -> Array:
        """The reference's rate on the labelled units."""
        return ratio(self.affirmed, self.labelled)

    @property
    def sensitivity(self) -> Array:
        """Share of the units that the reference affirms which the grader affirms too."""
        return ratio(self.both, self.affirmed)

    @property
    def specificity(self) -> Array:
        """Share of the units that the reference does not affirm which the grader does not affirm
        either.
        """
        refused = self.labelled - self.affirmed
        return ratio(refused - (self.graded - self.both), refused)

    @property
    def youden_j(self) -> Array:
        """Sensitivity + specificity - 1: 0 for a grader without any information (Youden 1950)."""
        return self.sensitivity + self.specificity - 1.0

    @property
    def graded_labelled(self) -> Array:
        """The grader's rate on the labelled units."""
        return ratio(self.graded, self.labelled)

    @property
    def elsewhere(self) -> Array:
        """The grader's rate where there is no reference."""
        return ratio(self.rest_graded, self.rest)

    @property
    def ppi_weight(self) -> Array:
        """The weight of PPI++ for a mean (Angelopoulos et al. 2023b, example 6.1), from 0 to 1.

        cov(reference, grade) / ((1 + labelled / rest) var(grade)), the variance over all graded
        units; 0 where the grades do not vary. In resamples of clusters the weight is not the very
        best if units of one cluster go together. A weight fixed beforehand biases no rate; one
        taken from the labels does, the more the fewer they are.
        """
        return self.weight_for(self.raw * (1.0 - self.raw))

    def weight_for(self, variance: Array) -> Array:
        """Return the weight of PPI++ for grades with this variance over all graded units; 0, its
        limit, where people labelled all of them.
        """
        n = self.labelled
        covariance = ratio(self.both, n) - self.people * self.graded_labelled
        spread = variance * (1.0 + ratio(n, self.rest))
        weight = np.divide(covariance, spread, out=np.zeros(spread.shape), where=spread > 1e-12)
        undefined = np.isnan(spread) & (self.rest > 0)
        return np.where(undefined, np.nan, np.clip(weight, 0.0, 1.0))

    def ppi(self, weight: Array | float) -> Array:
        """People's rate by prediction-powered inference with this weight, as it comes; where people
        labelled everything, their own.
        """
        apart = self.elsewhere - self.graded_labelled
        return self.people + weight * np.where(self.rest > 0, apart, 0.0)


def stratified_ppi(sums: RateSums) -> tuple[Array, Array]:
    """People's rate by stratified prediction-powered inference, and the weight on the grader.

    `sums` are (rows, ..., strata), row 0 the data; both results (rows, ...). Each stratum counts by
    its share of all units in the data, as the sample is random within strata only (Fisch et al.
    2024, section 4). One weight for all strata
    is as good as the sample allows: tuned on the few labels of each, many weights add up to a bias.
    It is the one that varies least, sum W^2 cov / n over sum W^2 var (1 / n + 1 / rest), and with
    one stratum that of PPI++.
    """
    size = (sums.labelled + sums.rest)[:1]
    share = ratio(size, size.sum(axis=-1, keepdims=True))
    covariance = ratio(sums.both, sums.labelled) - sums.people * sums.graded_labelled
    one = np.ones(1)
    spread = sums.raw * (1.0 - sums.raw) * (ratio(one, sums.labelled) + ratio(one, sums.rest))
    shared = (share**2 * ratio(covariance, sums.labelled)).sum(axis=-1)
    total = (share**2 * spread).sum(axis=-1)
    weight = np.divide(shared, total, out=np.zeros(total.shape), where=total > 1e-12)
    weight = np.where(np.isnan(total), np.nan, np.clip(weight, 0.0, 1.0))
    return (share * sums.ppi(weight[..., None])).sum(axis=-1), weight


def corrected_interval(
    found: Interval,
    drawn: Array,
    n_units: int,
    labelled: tuple[int, int],
    reach: Reach | None = None,
) -> Interval:
    """The interval of a corrected rate, within [0, 1]: a share's with the rate's own variance, or
    as wide as the clusters allow where no resample differs.

    `drawn` are the resampled rates as they come, `n_units` all units graded, `labelled` the (units,
    clusters) that people labelled, `reach` that of prediction-powered inference.
    """
    estimate, low, high = clipped(np.array([found.estimate, found.low, found.high])).tolist()
    within = Interval(estimate, low, high, found.remarks)
    units = n_units if reach is None else labelled[0]
    found = share_interval(within, drawn, units, labelled[1], reach)
    low, high = clipped(np.array([found.low, found.high])).tolist()
    return widened(replace(found, low=low, high=high), labelled[1], "unit")


def ppi_reach(sums: Array, weight: float) -> Reach | None:
    """Return the score reach of a PPI++ rate, from sums of features over clusters (clusters, 6), or
    (clusters, strata, 6), and the weight on the grader.

    Units count so that each stratum has its share of all. None without a weight: then the rate is
    people's own, and its interval that of any share.
    """
    if not weight > 0.0:
        return None
    sums = sums.reshape(len(sums), -1, 6)
    held = sums[..., [0, 4]].sum(axis=0)
    counted = np.nan_to_num(ratio(held.sum(axis=1, keepdims=True), held))[:, [0, 0, 0, 0, 1, 1]]
    labelled, affirmed, graded, _, rest, rest_graded = (sums * counted).sum(axis=1).T
    apart = rest_graded - rest_graded.sum() / rest.sum() * rest
    beside = weight * math.sqrt(float((apart**2).sum())) / float(rest.sum())
    columns = np.column_stack([affirmed, weight * graded, labelled])[labelled > 0]
    kinds, times = np.unique(columns, axis=0, return_counts=True)
    cases, shifted, sizes = kinds.T
    return powered_reach(cases, shifted, sizes, times.astype(float), beside)


def invert(rate: Array, sensitivity: Array, specificity: Array) -> Array:
    """Rogan & Gladen's estimate, NaN where sensitivity + specificity is no more than 1.

    >>> invert(np.array(0.48), np.array(70 / 80), np.array(100 / 120)).round(4).item()
    0.4424
    """
    j = sensitivity + specificity - 1.0
    return np.where(j > 0, (rate + specificity - 1.0) / np.where(j > 0, j, 1.0), np.nan)


def clipped(rate: Array) -> Array:
    """Move a corrected rate that leaves the range of rates by chance to its nearest end."""
    return np.asarray(np.clip(rate, 0.0, 1.0))


def rate_features(reference: Array, grades: Array) -> Array:
    """Return the six features of each unit that `RateSums` sums, (units, 6), from reference and
    grades (units,), NaN for none.

    Units without a grade count nowhere.
    """
    labelled = ~np.isnan(reference) & ~np.isnan(grades)
    rest = np.isnan(reference) & ~np.isnan(grades)
    y, f = np.nan_to_num(reference), np.nan_to_num(grades)
    return np.column_stack([labelled, labelled * y, labelled * f, labelled * y * f, rest, rest * f])


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
    given = found, bounds.low, bounds.high, bounds.remarks
    sensitivity, specificity = float(sums.sensitivity), float(sums.specificity)
    return RoganGladen(*given, sensitivity=sensitivity, specificity=specificity)


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
    codes = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in sums.T]
    kept, times = distinct_rows(codes)
    resamples = (bootstrap or Bootstrap()).draw(times)
    replicates = rate(RateSums(*resamples.totals(sums[kept]).T))
    labelled = int(units[:, 0].sum()), int(np.count_nonzero(sums[:, 0]))
    found = resamples.interval(replicates, labelled[1])
    drawn = resamples.plain(replicates)[1:]
    reach = Reach(np.inf, np.inf, labelled[1]) if weight is None else ppi_reach(sums, weight)
    return corrected_interval(found, drawn, len(units), labelled, reach)


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
