"""The distance of stated probabilities from observed shares: debiased, with an interval.

Shares differ from probabilities by chance alone, in bins of few units by a lot: the plain mean
distance of a perfectly calibrated grader is far from 0. The squared distance can be debiased
exactly (Kumar, Liang & Ma 2019); its root is on the scale of the probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.notes import Remark
from evenhand.analysis.types import Array, Codes

BINS = 10
MIN_IN_BIN = 10
"""Units in a bin at least: with fewer than 100 units there are fewer bins."""


def equal_mass_bins(positive: Array, bins: int | None = None) -> Codes:
    """Bins (units,) of about equally many units; equal probabilities share a bin.

    >>> equal_mass_bins(np.array([0.1, 0.2, 0.2, 0.2, 0.8, 0.9]), 3).tolist()
    [0, 1, 1, 1, 2, 2]
    """
    wanted = bins or min(BINS, max(1, len(positive) // MIN_IN_BIN))
    shares = np.arange(1, wanted) / wanted
    bounds = np.unique(np.quantile(positive, shares, method="higher"))
    place = np.searchsorted(bounds, positive, side="right")
    return np.unique(place, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True)
class BinnedGaps:
    """Gaps between shares and probabilities in bins: share affirmative minus mean probability,
    `gap` (bins,), and the share of the units in each bin, `weight` (bins,). `influence` (clusters,
    bins) is the contribution of each cluster to the error of a gap, as often as it counts,
    `variance` (bins,) that of the gap; in a bin of a single cluster all of the gap.
    """

    gap: Array
    weight: Array
    influence: Array
    variance: Array

    @classmethod
    def of(
        cls,
        positive: Array,
        affirmed: Array,
        clusters: Codes,
        n_clusters: int,
        bins: int | None = None,
        counts: Array | None = None,
    ) -> BinnedGaps:
        """Compute the gaps from probabilities, 0 or 1, and clusters numbered below `n_clusters`,
        each (units,); `counts` (clusters,) is how often each cluster counts, 1 unless given.
        """
        place = equal_mass_bins(positive, bins)
        shape = (n_clusters, int(place.max()) + 1)
        cell = clusters * shape[1] + place
        units, apart = (
            np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape)
            for weights in (np.ones(len(place)), affirmed - positive)
        )
        each = np.ones((n_clusters, 1)) if counts is None else counts[:, None]
        inside = (each * units).sum(axis=0)
        gap = (each * apart).sum(axis=0) / inside
        # Deviations from a mean are a little smaller than errors, the more so the fewer clusters.
        clusters_in = (units > 0).sum(axis=0)
        wider = np.sqrt(clusters_in / np.maximum(clusters_in - 1, 1))
        influence = (apart - gap * units) / inside * wider
        variance = np.where(clusters_in > 1, ((each * influence) ** 2).sum(axis=0), gap**2)
        return cls(gap, inside / inside.sum(), influence, variance)

    @property
    def squared(self) -> float:
        """The mean squared gap minus its bias, the variance of the gaps; below 0 by chance."""
        return float(self.weight @ (self.gap**2 - self.variance))

    @property
    def error(self) -> float:
        """Calibration error, the root of `squared`; 0 where the latter is below 0."""
        return math.sqrt(max(0.0, self.squared))

    def interval(self, resamples: Resamples, n_clusters: int) -> Interval:
        """The error with its 95% interval, by inverting a test at every size of error.

        The gaps' errors in the resamples are added to gaps of the same shape and every size; a size
        is in the interval unless the mean squared gap seen is in its highest or lowest 2.5%. 0 is
        tried like any other size, which percentiles of resamples cannot do. Where the squared error
        is below 0 the upper bound is that of 0.
        """
        if n_clusters < MIN_CLUSTERS:
            return Interval.point(self.error, Remark("too_few_clusters"))
        if resamples.resamples == 0:
            return Interval.point(self.error, Remark("not_resampled"))
        errors = resamples.totals(self.influence)[1 : 1 + resamples.resamples]
        chance = (errors**2) @ self.weight
        if not chance.any():
            return Interval.point(self.error, Remark("no_variation"))
        seen = float(self.weight @ self.gap**2)
        size = math.sqrt(seen)
        shape = self.gap / size if size > 0 else np.ones(len(self.gap))
        along = errors @ (self.weight * shape)
        at_least = max(seen, seen - self.squared)
        low = float(np.quantile(_sizes(seen, along, chance), 0.025))
        high = float(np.quantile(_sizes(at_least, along, chance), 0.975))
        return Interval(self.error, min(low, self.error), max(high, self.error))


def _sizes(seen: float, along: Array, chance: Array) -> Array:
    """The size of error that each resample's errors would turn into the mean square `seen`: the
    larger solution of size^2 + 2 size x along + chance = seen; 0 where chance alone is more.
    """
    root = -along + np.sqrt(np.maximum(0.0, along**2 + seen - chance))
    return np.asarray(np.where(chance < seen, root, 0.0))
