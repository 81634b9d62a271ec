"""Agreement on plain labels: no tables, no study, one coefficient at a time.

`labels` are (units, raters) of any hashable labels with None or NaN for missing: nested lists, an
array or a DataFrame. Two raters are given as two sequences (units,). `categories` are always
declared, in order where there is one, and a label outside them raises InputError.

A coefficient comes with its 95% interval from a bootstrap of `clusters` (units,), any hashable id
of each unit's cluster, or else of units. `bootstrap` sets the number of resamples and the method
(see `Bootstrap`). Undefined values are NaN, and `reason` explains why.

There are two ways to the sums that a bootstrap needs: for two raters a table of counts for each
cluster, for more raters a row of label counts for each unit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.bootstrap.intervals import Interval, widened
from evenhand.analysis.bootstrap.patterns import count_labels, count_patterns
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, ratio
from evenhand.analysis.bootstrap.shares import share_interval
from evenhand.analysis.labels.encoding import (
    category_values,
    cluster_codes,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.scale import Level
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
    return np.asarray((first.astype(np.intp) + 1) * (len(categories) + 1) + second + 1)


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
        agreed = c.agreeing_shares(self.counts, weights)
        shares = self.counts / np.maximum(labels, 1.0)
        sums = self.totals(np.column_stack([labels >= 2, agreed, labels > 0, shares]))
        expected = chance(ratio(sums[:, 3:], sums[:, 2:3]), weights)
        apart = 1.0 - float(np.atleast_1d(expected)[0])
        corrected = c.chance_corrected(ratio(sums[:, 1], sums[:, 0]), expected)
        found = self.agreement(corrected, apart=apart)
        errors = c.group_errors(self.counts, self.times, weights) if error else {}
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


Weights = Literal["identity", "linear", "quadratic"]


def observed_agreement(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Mean over units of the share of agreeing pairs of labels (Fleiss 1971, equation 3).

    Two of three raters agree on one unit, all on the other: (1/3 + 1) / 2.

    >>> round(observed_agreement([["a", "a", "b"], ["b", "b", "b"]], categories="ab").estimate, 4)
    0.6667
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    agreed = c.agreeing_shares(group.counts, np.eye(len(categories)))
    return group.agreement(ratio(*group.totals(np.column_stack([agreed, group.several])).T))


def cohen_kappa(
    first: Any,
    second: Any,
    *,
    categories: Column[Hashable],
    weights: Weights | npt.ArrayLike = "identity",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Cohen's kappa of two raters (1960), or weighted kappa (1968), on units that both labelled.

    `first` and `second` are labels (units,); `weights` are "identity", "linear", "quadratic" or
    agreement weights (q, q). Standard errors: Fleiss, Cohen & Everitt 1969, equations 9 and 13.
    Raises InputError where the two have different lengths or a label is none of the categories.

    The balanced table of Feinstein & Cicchetti (1990), 85% agreement:

    >>> first = ["yes"] * 49 + ["no"] * 51
    >>> second = ["yes"] * 40 + ["no"] * 9 + ["yes"] * 6 + ["no"] * 45
    >>> found = cohen_kappa(first, second, categories=["yes", "no"])
    >>> round(found.estimate, 3), round(found.low, 2), round(found.high, 2), found.n
    (0.7, 0.54, 0.83, 100)

    The same labels, ten to a cluster:

    >>> tens = [unit // 10 for unit in range(100)]
    >>> found = cohen_kappa(first, second, categories=["yes", "no"], clusters=tens)
    >>> round(found.estimate, 3), round(found.low, 2), found.n_clusters
    (0.7, 0.0, 10)
    """
    plain = isinstance(weights, str) and weights == "identity"
    agreement = None if plain else _weights(weights, len(categories))
    return from_table(
        (first, second),
        categories,
        lambda tables: c.cohen_kappa(tables, agreement),
        lambda table: c.kappa_errors(table, agreement),
        clusters,
        bootstrap,
        agreement,
    )


def scott_pi(
    first: Any,
    second: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Scott's pi of two raters (1955); labels (units,), as in `cohen_kappa`.

    The unbalanced table of Feinstein & Cicchetti (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(scott_pi(first, second, categories=[0, 1]).estimate, 3)
    0.314
    """

    def error(table: Array) -> tuple[float, float]:
        q, times = len(table), table.astype(np.intp).ravel()
        pairs = (np.eye(q)[:, None, :] + np.eye(q)[None, :, :]).reshape(-1, q)
        return c.group_errors(pairs, times, np.eye(q))["fleiss_kappa"], np.nan

    return from_table((first, second), categories, c.scott_pi, error, clusters, bootstrap)


def fleiss_kappa(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Fleiss' kappa of many raters (1971), generalised to unequal numbers of them (Gwet 2014).

    `se_null` is that of Fleiss, Nee & Landis (1979), for equal numbers of raters only. Gwet (2014,
    p. 120), four raters with gaps:

    >>> rows = ["11-1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222"]
    >>> rows += ["-555", "--11", "--3-"]
    >>> labels = [[None if cell == "-" else cell for cell in row] for row in rows]
    >>> found = fleiss_kappa(labels, categories="12345")
    >>> round(found.estimate, 4), round(found.se, 4), found.n
    (0.7612, 0.153, 11)
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    found = group.corrected_for(lambda shares, _: c.scott_expected(shares), error="fleiss_kappa")
    return replace(found, se_null=c.fleiss_null_error(group.counts, group.times))


def gwet_ac1(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Gwet's AC1 of two or more raters (2008; 2014, chapter 5).

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(gwet_ac1(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.808
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    return group.corrected_for(c.gwet_expected, error="gwet_ac")


def gwet_ac2(
    labels: Any,
    *,
    categories: Column[Hashable],
    weights: Weights | npt.ArrayLike = "quadratic",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Gwet's AC2 (2014, chapter 5): AC1 with agreement weights, as in `cohen_kappa`.

    The four raters of `fleiss_kappa`'s example, quadratic weights:

    >>> rows = ["11-1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222"]
    >>> rows += ["-555", "--11", "--3-"]
    >>> labels = [[None if cell == "-" else cell for cell in row] for row in rows]
    >>> round(gwet_ac2(labels, categories="12345").estimate, 4)
    0.914
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    near = _weights(weights, len(categories))
    return group.corrected_for(c.gwet_expected, near, error="gwet_ac")


def brennan_prediger(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Brennan & Prediger's coefficient (1981) of two or more raters; with two categories PABAK.

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(brennan_prediger(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.7
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    return group.corrected_for(
        lambda shares, weights: c.uniform_expected(weights), error="brennan_prediger"
    )


def krippendorff_alpha(
    labels: Any,
    *,
    categories: Column[Hashable],
    level: Level,
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Krippendorff's alpha of two or more raters at the level named (2011).

    `level` is "nominal", "ordinal" or "interval"; the last takes the categories' own numbers and
    raises InputError where they are none. The standard error is Gwet's, where his weights are
    Krippendorff's metric: nominal and interval. Krippendorff's example A:

    >>> first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> found = krippendorff_alpha(list(zip(first, second)), categories=[0, 1], level="nominal")
    >>> round(found.estimate, 3)
    0.095
    """
    values, q = category_values(categories, level), len(categories)
    group = Group.of(labels, categories, clusters, bootstrap)
    together = group.totals(c.coincidences(group.counts).reshape(len(group.counts), -1))
    apart = np.subtract.outer(values, values) ** 2
    metric = 1.0 - apart / max(float(apart.max()), 1.0)
    weights = np.eye(q) if level == "nominal" else metric
    shares = together[0].reshape(q, q).sum(axis=0) / max(float(together[0].sum()), 1.0)
    alpha = c.alpha(together.reshape(-1, q, q), level, values)
    found = group.agreement(alpha, apart=apart_by_chance(shares, weights))
    if level == "ordinal" or not found.n:
        return found
    errors = c.group_errors(group.counts, group.times, weights)
    return replace(found, se=errors["krippendorff_alpha"])


def specific_agreement(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> dict[Hashable, Agreement]:
    """Agreement on each category: of the pairs of labels with one in it, the share with both.

    Returns a dict by category; `n` counts the units where some rater chose it. With two raters and
    two categories this is positive and negative agreement; the unbalanced table of Cicchetti &
    Feinstein (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> found = specific_agreement(list(zip(first, second)), categories=[1, 0])
    >>> [round(each.estimate, 3) for each in found.values()]
    [0.914, 0.4]
    """
    group = Group.of(labels, categories, clusters, bootstrap)
    counts = np.where(group.several[:, None], group.counts, 0.0)
    same = group.totals(counts * (counts - 1.0))
    every = group.totals(counts * (counts.sum(axis=1, keepdims=True) - 1.0))
    found = ratio(same, every)
    return {
        category: group.agreement(found[:, k], counts[:, k] > 0, "category_not_used")
        for k, category in enumerate(categories)
    }


def confusion_matrix(first: Any, second: Any, *, categories: Column[Hashable]) -> Array:
    """Count how often the first rater chose the row's category and the second the column's, (q, q).

    `first` and `second` are labels (units,); units without a label from both are left out.

    >>> confusion_matrix("aab", "abb", categories="ab").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    q = len(categories)
    counts = np.bincount(table_cells((first, second), categories), minlength=(q + 1) ** 2)
    return counts.reshape(q + 1, q + 1)[1:, 1:].astype(float)


@dataclass(frozen=True)
class IntraRater:
    """Agreement of a rater with themselves: means over pairs of readings, and each pair's kappa."""

    agreement: float
    kappa: float
    pairs: dict[tuple[int, int], Agreement]


def intra_rater(
    readings: Any,
    *,
    categories: Column[Hashable],
    weights: Weights = "identity",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> IntraRater:
    """Agreement of one rater's repeated readings (units, readings) of the same units.

    Observed agreement and `cohen_kappa` of every two readings, by their columns.

    >>> found = intra_rater([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]], categories="ab")
    >>> found.agreement, found.kappa
    (0.75, 0.5)
    """
    codes = encode_labels(readings, categories)
    named = [[None if code < 0 else int(code) for code in column] for column in codes.T]
    pairs: dict[tuple[int, int], Agreement] = {}
    agreed = []
    for a, b in combinations(range(codes.shape[1]), 2):
        pairs[a, b] = cohen_kappa(
            named[a],
            named[b],
            categories=range(len(categories)),
            weights=weights,
            clusters=clusters,
            bootstrap=bootstrap,
        )
        both = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        agreed.append(float((codes[both, a] == codes[both, b]).mean()) if both.any() else np.nan)
    return IntraRater(_mean(agreed), _mean([each.estimate for each in pairs.values()]), pairs)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _weights(weights: Weights | npt.ArrayLike, q: int) -> Array:
    if isinstance(weights, str):
        return c.agreement_weights(q, weights)
    return np.asarray(weights, dtype=float)
