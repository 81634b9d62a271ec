"""One coefficient of plain labels with its interval: the machinery of `plain`.

There are two ways to the sums that a bootstrap needs: for two raters a table of counts for each
cluster, for more raters a row of label counts for each unit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import agreeing_shares
from evenhand.analysis.agreement.standard_errors import group_errors
from evenhand.analysis.bootstrap.boundary import widened
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.patterns import count_labels, count_patterns
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, ratio
from evenhand.analysis.bootstrap.shares import share_interval
from evenhand.analysis.labels.plain import cluster_codes, encode_column, encode_labels, same_length
from evenhand.analysis.notes import Reason
from evenhand.analysis.types import Array, Codes, Column, Mask


@dataclass(frozen=True, kw_only=True)
class Agreement(Interval):
    """A coefficient with its 95% interval.

    It is over `n` units that at least two raters labelled, in `n_clusters` clusters.

    `se` is its large-sample standard error for independent units and `se_null` that under no
    agreement, NaN where there is no standard formula.
    """

    n: int
    n_clusters: int
    se: float = np.nan
    se_null: float = np.nan

    @property
    def reason(self) -> str:
        """Reason why the estimate or its interval is NaN; empty where neither is."""
        return self.note if np.isnan([self.estimate, self.low, self.high]).any() else ""


def from_table(
    raters: tuple[Any, Any],
    categories: Column[Hashable],
    statistic: Callable[[Array], Array],
    errors: Callable[[Array], tuple[float, float]],
    clusters: Column[Hashable] | None,
    bootstrap: Bootstrap | None,
    weights: Array | None = None,
) -> Agreement:
    """Estimate a coefficient of two raters from their tables of counts (..., q, q).

    `weights` (q, q) are the agreement weights that it uses.
    """
    q, cells = len(categories), table_cells(raters, categories)
    wide = (q + 1) ** 2
    of = None if clusters is None else cluster_codes(clusters, len(cells))
    n = 1 if of is None else int(of.max()) + 1
    at = cells if of is None else of * wide + cells
    tables = np.bincount(at, minlength=n * wide).reshape(n, q + 1, q + 1)[:, 1:, 1:]
    tables = tables.reshape(n, q * q)
    table = tables.sum(axis=0)
    if not table.any():
        return _no_pairable_units()
    if of is None:
        # Units with the same two labels are one kind of unit, a table with a single count.
        used = np.flatnonzero(table)
        tables, times = np.eye(q * q, dtype=np.intp)[used], table[used]
        n_clusters = int(table.sum())
    else:
        times, n_clusters = np.ones(n, dtype=np.intp), int(tables.any(axis=1).sum())
    resamples = (bootstrap or Bootstrap()).draw(times)
    values = statistic(resamples.totals(tables).reshape(-1, q, q))
    se, se_null = errors(table.reshape(q, q).astype(float))
    pooled = (table.reshape(q, q).sum(axis=0) + table.reshape(q, q).sum(axis=1)) / 2.0
    apart = apart_by_chance(pooled / table.sum(), weights)
    found = widened(resamples.interval(values, n_clusters), n_clusters, "coefficient", apart)
    return Agreement(
        **vars(found), n=int(table.sum()), n_clusters=n_clusters, se=se, se_null=se_null
    )


def apart_by_chance(shares: Array, weights: Array | None = None) -> float:
    """Return the disagreement that shares (q,) of the categories imply by chance."""
    near = np.eye(len(shares)) if weights is None else weights
    return 1.0 - float(shares @ near @ shares)


def table_cells(raters: tuple[Any, Any], categories: Column[Hashable]) -> Codes:
    """Index of the cell of two raters' table that each unit is in, (units,).

    Tables have q + 1 rows and columns, the first ones for missing labels: cheaper than selecting
    the units that have both.
    """
    first, second = (encode_column(labels, categories) for labels in raters)
    same_length(first, second)
    cells: Codes = (first.astype(np.intp) + 1) * (len(categories) + 1) + second + 1
    return cells


def _no_pairable_units() -> Agreement:
    return Agreement(**vars(Interval.undefined("no_pairable_units")), n=0, n_clusters=0)


@dataclass(frozen=True)
class Group:
    """Labels of a group of raters as counts of the categories.

    `counts` (rows, q) are label counts, `times` (rows,) the number of units like each row,
    `clusters` (rows,) the cluster of each row, `resamples` the resamples of these. Without
    clusters, units with equal counts share one row, so that a million units cost no more than their
    few hundred patterns.
    """

    counts: Array
    times: Codes
    clusters: Codes
    resamples: Resamples

    @classmethod
    def of(
        cls,
        labels: Any,
        categories: Column[Hashable],
        clusters: Column[Hashable] | None,
        bootstrap: Bootstrap | None,
    ) -> Group:
        codes, how = encode_labels(labels, categories), bootstrap or Bootstrap()
        if clusters is None:
            counts, times = count_patterns(codes, len(categories))
            return cls(counts, times, np.arange(len(times)), how.draw(times))
        of = cluster_codes(clusters, len(codes))
        counts = count_labels(codes, len(categories))
        return cls(counts, np.ones_like(of), of, how.draw(np.ones(int(of.max()) + 1)))

    @property
    def several(self) -> Mask:
        """True for the rows with two labels or more."""
        return np.asarray(self.counts.sum(axis=1) >= 2)

    def totals(self, features: Array) -> Array:
        """Return sums of features (rows, k) in the data and in every resample: (resamples, k)."""
        return self.resamples.totals(self.resamples.cluster_sums(self.clusters, features))

    def corrected_for(
        self, chance: Callable[[Array, Array], Array], near: Array | None = None, *, error: str = ""
    ) -> Agreement:
        """Correct observed agreement for `chance`, a function of shares (..., q) and weights."""
        if not self.several.any():
            return _no_pairable_units()
        weights = c.agreement_weights(self.counts.shape[1]) if near is None else near
        labels = self.counts.sum(axis=1, keepdims=True)
        agreed = agreeing_shares(self.counts, weights)
        shares = self.counts / np.maximum(labels, 1.0)
        sums = self.totals(np.column_stack([labels >= 2, agreed, labels > 0, shares]))
        expected = chance(ratio(sums[:, 3:], sums[:, 2:3]), weights)
        apart = 1.0 - float(np.atleast_1d(expected)[0])
        corrected = c.chance_corrected(ratio(sums[:, 1], sums[:, 0]), expected)
        found = self.agreement(corrected, apart=apart)
        errors = group_errors(self.counts, self.times, weights) if error else {}
        return replace(found, se=errors.get(error, np.nan))

    def agreement(
        self,
        values: Array,
        chosen: Mask | None = None,
        reason: Reason = "no_variation",
        apart: float | None = None,
    ) -> Agreement:
        """Return estimate and interval from replicates (resamples,), over the rows `chosen`.

        Without `chosen` these are the rows with several labels. `reason` explains an undefined
        estimate. `apart` is the disagreement that a coefficient expects by chance; without it the
        statistic is a share.
        """
        if not self.several.any():
            return _no_pairable_units()
        held = self.several if chosen is None else chosen
        n = int(self.times[held].sum())
        n_clusters = self.resamples.count(self.clusters, held)[1]
        found = self.resamples.interval(values, n_clusters, reason=reason)
        if apart is None:
            found = share_interval(found, self.resamples.plain(values)[1:], n, n_clusters)
        found = widened(found, n_clusters, "share" if apart is None else "coefficient", apart or 0)
        return Agreement(**vars(found), n=n, n_clusters=n_clusters)
