"""The rate of a grader's affirmative verdicts, corrected with a sample that people labelled.

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
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.boundary import widened
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.bootstrap.shares import Reach, powered_reach, share_interval
from evenhand.analysis.types import Array


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
