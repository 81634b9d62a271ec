"""Coefficients of labels that are already codes, with their intervals, in one call each.

`analyse` composes the whole panel from tables of ratings; these are for those who have an array of
codes (units, raters), 0 to q - 1 and -1 for missing, and want one number. Without `clusters`
(units,) the bootstrap is of units, and then only distinct rows of labels cost anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.groups import agreeing_shares, coincidences
from evenhand.analysis.bootstrap.intervals import Interval, IntervalMethod
from evenhand.analysis.bootstrap.patterns import count_patterns
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.scale import Level

__all__ = ["Bootstrap", "alpha_interval", "fleiss_interval", "kappa_interval"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Bootstrap:
    """How to resample: how often, from which seed, and how to read the interval."""

    resamples: int = 2000
    seed: int = 20231206
    method: IntervalMethod = "percentile"

    def draw(self, frequency: npt.ArrayLike) -> Resamples:
        """Resamples of clusters that stand in the data so often."""
        return Resamples(frequency, self.resamples, np.random.default_rng(self.seed), self.method)


def kappa_interval(
    codes: Codes,
    q: int,
    *,
    weights: str = "identity",
    clusters: Codes | None = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> Interval:
    """Cohen's kappa of two raters from codes (units, 2) on the units that both labelled.

    `weights` are "identity", "linear" or "quadratic" (Cohen 1960, 1968). The balanced table of
    Feinstein & Cicchetti (1990):

    >>> codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 9, 6, 45], axis=0)
    >>> found = kappa_interval(codes, 2)
    >>> round(found.estimate, 3), found.low < 0.7 < found.high
    (0.7, True)
    """
    # One more category for missing, dropped from the table: cheaper than picking the units first.
    wide = q + 1
    cells = (codes[:, 0].astype(np.int32) + 1) * wide + codes[:, 1] + 1
    if clusters is None:
        table = np.bincount(cells, minlength=wide * wide).reshape(wide, wide)[1:, 1:].ravel()
        used = np.flatnonzero(table)
        tables, n = np.eye(q * q, dtype=np.intp)[used], int(table.sum())
        resamples = bootstrap.draw(table[used])
    else:
        n = int(clusters.max(initial=-1)) + 1
        at = clusters * np.intp(wide * wide) + cells
        tables = np.bincount(at, minlength=n * wide * wide).reshape(n, wide, wide)[:, 1:, 1:]
        resamples = bootstrap.draw(np.ones(n))
    totals = resamples.totals(tables).reshape(-1, q, q)
    weighted = None if weights == "identity" else c.agreement_weights(q, weights)
    return resamples.interval(c.cohen_kappa(totals, weighted), n)


def alpha_interval(
    codes: Codes,
    q: int,
    level: Level,
    *,
    values: Sequence[float] | None = None,
    clusters: Codes | None = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> Interval:
    """Krippendorff's alpha of any number of raters from codes (units, raters).

    `values` are the categories' numbers, which the interval level needs (Krippendorff 2011).
    Krippendorff's example of nominal data, four observers and twelve units, is 0.743:

    >>> rows = ["00*0", "1121", "2222", "2222", "1111", "0123", "3333", "0010", "1111"]
    >>> rows += ["*444", "**00", "*2**"]
    >>> codes = np.array([[-1 if cell == "*" else int(cell) for cell in row] for row in rows])
    >>> round(alpha_interval(codes, 5, "nominal").estimate, 3)
    0.743
    """

    def features(counts: Array) -> Array:
        return coincidences(counts).reshape(len(counts), -1)

    def statistic(sums: Array) -> Array:
        return c.alpha(sums.reshape(-1, q, q), level, values)

    return _of_counts(codes, q, features, statistic, clusters, bootstrap)


def fleiss_interval(
    codes: Codes,
    q: int,
    *,
    clusters: Codes | None = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> Interval:
    """Fleiss' kappa (1971), generalised to unequal raters (Gwet 2014), of codes (units, raters)."""
    identity = c.agreement_weights(q)

    def features(counts: Array) -> Array:
        labels = counts.sum(axis=1, keepdims=True)
        agreeing = agreeing_shares(counts, identity)
        return np.column_stack(
            [labels >= 2, agreeing, labels > 0, counts / np.maximum(labels, 1.0)]
        )

    def statistic(sums: Array) -> Array:
        agreed = sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], np.nan)
        shares = sums[:, 3:] / np.where(sums[:, 2:3] > 0, sums[:, 2:3], np.nan)
        return c.chance_corrected(agreed, c.scott_expected(shares))

    return _of_counts(codes, q, features, statistic, clusters, bootstrap)


def _of_counts(
    codes: Codes,
    q: int,
    features: Callable[[Array], Array],
    statistic: Callable[[Array], Array],
    clusters: Codes | None,
    bootstrap: Bootstrap,
) -> Interval:
    """A statistic that is a function of sums over units of features of their label counts."""
    if clusters is None:
        counts, times = count_patterns(codes, q)
        resamples, n = bootstrap.draw(times), int(times.sum())
        sums = features(counts)
    else:
        counts = np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1).astype(float)
        n = int(clusters.max(initial=-1)) + 1
        resamples = bootstrap.draw(np.ones(n))
        sums = resamples.cluster_sums(clusters.astype(np.intp), features(counts))
    return resamples.interval(statistic(resamples.totals(sums)), n)
