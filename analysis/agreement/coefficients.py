"""Coefficients of agreement: a function each for plain labels, and the kernels beneath them.

*Plain labels* are a table (units, raters) of any hashable labels with None or NaN for missing:
nested lists, an array or a DataFrame; those of two raters are two sequences (units,). Categories
are always declared. A coefficient comes with its 95% interval from a bootstrap of clusters.

*Kernels* are pure functions of sums. A *table* is an array (..., q, q): how often the first rater
chose the row's category and the second the column's. A *coincidence matrix* has the same shape, is
symmetric and holds both orders of every pair of labels, each unit weighted 1 / (labels - 1)
(Krippendorff 2011). Leading axes are resamples or pairs of raters, or absent: the same function
serves the estimate and its resamples. Counts may be weighted. Undefined values are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.analysis.bootstrap.intervals import Interval, share_interval, widened
from evenhand.analysis.bootstrap.resamples import (
    Bootstrap,
    Resamples,
    count_labels,
    count_patterns,
    ratio,
)
from evenhand.analysis.labels.encoding import (
    cluster_codes,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.scale import Level, category_values
from evenhand.analysis.statistics import Reason
from evenhand.analysis.types import Array, Codes, Column, Mask, Numbers

Weights = Literal["identity", "linear", "quadratic"]
PairStatistic = Callable[[Array], Array]
"""A statistic (...) of two raters from their tables (..., q, q), or of numbers (..., cells)."""
Chance = Callable[[Array, Array], Array]
"""Agreement by chance (...) from mean shares of the categories (..., q) and agreement weights
(q, q)."""

_NO_VARIATION = 1e-12
"""Room for rounding: expected (dis)agreement this close to its bound means no variation."""


@dataclass(frozen=True, kw_only=True)
class Agreement(Interval):
    """A coefficient with its 95% interval.

    It is over `n` units that at least two raters labelled, in `n_clusters` clusters.

    `se` is the large-sample standard error of Cohen's kappa for independent units and `se_null`
    that under no agreement; NaN for other coefficients.
    """

    n: int
    n_clusters: int
    se: float = np.nan
    se_null: float = np.nan

    @property
    def reason(self) -> str:
        """Reason why the estimate or its interval is NaN; empty where neither is."""
        return self.note if np.isnan([self.estimate, self.low, self.high]).any() else ""


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

    Parameters
    ----------
    first, second : sequence (units,)
        Labels, any hashable; None or NaN where there is none.
    categories : sequence
        All labels that may be given, in order where there is one.
    weights : "identity", "linear", "quadratic" or agreement weights (q, q)
    clusters : sequence (units,), optional
        Any hashable id of each unit's cluster; without them every unit is its own.
    bootstrap : Bootstrap, optional
        Number of resamples, seed and method of the interval.

    Returns
    -------
    Agreement
        Its standard errors are those of Fleiss, Cohen & Everitt (1969), equations 9 and 13.

    Raises
    ------
    InputError
        Where the two have different lengths or a label is none of the categories.

    Examples
    --------
    The balanced table of Feinstein & Cicchetti (1990), 85% agreement:

    >>> first = ["yes"] * 49 + ["no"] * 51
    >>> second = ["yes"] * 40 + ["no"] * 9 + ["yes"] * 6 + ["no"] * 45
    >>> result = cohen_kappa(first, second, categories=["yes", "no"])
    >>> round(result.estimate, 3), round(result.low, 2), round(result.high, 2), result.n
    (0.7, 0.54, 0.83, 100)

    The same labels, ten to a cluster:

    >>> tens = [unit // 10 for unit in range(100)]
    >>> result = cohen_kappa(first, second, categories=["yes", "no"], clusters=tens)
    >>> round(result.estimate, 3), round(result.low, 2), result.n_clusters
    (0.7, 0.0, 10)
    """
    matrix = agreement_weights(len(categories), weights)
    labels, statistic = (first, second), partial(kappas, weights=matrix)
    options = categories, clusters, bootstrap
    result, table = _agreement_of_two(labels, *options, statistic, matrix)
    se, se_null = _kappa_errors(table, matrix)
    return replace(result, se=se, se_null=se_null)


def scott_pi(
    first: Any,
    second: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Scott's pi of two raters (1955); the parameters are those of `cohen_kappa`.

    The unbalanced table of Feinstein & Cicchetti (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(scott_pi(first, second, categories=[0, 1]).estimate, 3)
    0.314
    """
    labels, statistic = (first, second), partial(corrected, chance=scott_chance)
    options = categories, clusters, bootstrap
    return _agreement_of_two(labels, *options, statistic, np.eye(len(categories)))[0]


def fleiss_kappa(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Fleiss' kappa of many raters (1971), generalised to unequal numbers of them (Gwet 2014).

    Parameters
    ----------
    labels : table (units, raters)
        Nested lists, an array or a DataFrame of any hashable; None or NaN where there is none.
    categories : sequence
        All labels that may be given, in order where there is one.
    clusters : sequence (units,), optional
        Any hashable id of each unit's cluster; without them every unit is its own.
    bootstrap : Bootstrap, optional
        Number of resamples, seed and method of the interval.

    Returns
    -------
    Agreement

    Raises
    ------
    InputError
        Where labels are no table, a label is none of the categories, or a unit has no cluster.

    Examples
    --------
    Four raters with gaps (Gwet 2014, p. 120):

    >>> rows = ["11-1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222"]
    >>> rows += ["-555", "--11", "--3-"]
    >>> labels = [[None if cell == "-" else cell for cell in row] for row in rows]
    >>> result = fleiss_kappa(labels, categories="12345")
    >>> round(result.estimate, 4), result.n
    (0.7612, 11)
    """
    return _Group.of(labels, categories, clusters, bootstrap).corrected(scott_chance)


def gwet_ac1(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Gwet's AC1 of two or more raters (2008; 2014, chapter 5).

    The parameters are those of `fleiss_kappa`.

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(gwet_ac1(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.808
    """
    return _Group.of(labels, categories, clusters, bootstrap).corrected(gwet_chance)


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
    group = _Group.of(labels, categories, clusters, bootstrap)
    return group.corrected(gwet_chance, agreement_weights(len(categories), weights))


def brennan_prediger(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Brennan & Prediger's coefficient (1981) of two or more raters; with two categories PABAK.

    The parameters are those of `fleiss_kappa`.

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(brennan_prediger(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.7
    """
    return _Group.of(labels, categories, clusters, bootstrap).corrected(uniform_chance)


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
    raises InputError where they are none. Other parameters are those of `fleiss_kappa`.

    Krippendorff's example A:

    >>> first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> result = krippendorff_alpha(list(zip(first, second)), categories=[0, 1], level="nominal")
    >>> round(result.estimate, 3)
    0.095
    """
    values, q = category_values(categories, level), len(categories)
    group = _Group.of(labels, categories, clusters, bootstrap)
    unit_pairs = coincidences(group.counts).reshape(len(group.counts), -1)
    matrices = group.sums(unit_pairs).reshape(-1, q, q)
    squares = np.subtract.outer(values, values) ** 2
    metric = 1.0 - squares / max(float(squares.max()), 1.0)
    weights = np.eye(q) if level == "nominal" else metric
    shares = matrices[0].sum(axis=0) / max(float(matrices[0].sum()), 1.0)
    disagreement = 1.0 - shares @ weights @ shares
    return group.agreement(alpha(matrices, level, values), chance_disagreement=disagreement)


def observed_agreement(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> Agreement:
    """Mean over units of the share of agreeing pairs of labels (Fleiss 1971, equation 3).

    The parameters are those of `fleiss_kappa`. Two of three raters agree on one unit, all on the
    other: (1/3 + 1) / 2.

    >>> round(observed_agreement([["a", "a", "b"], ["b", "b", "b"]], categories="ab").estimate, 4)
    0.6667
    """
    group = _Group.of(labels, categories, clusters, bootstrap)
    agreed = agreeing_shares(group.counts, np.eye(len(categories)))
    return group.agreement(ratio(*group.sums(agreed, group.pairable).T))


def specific_agreement(
    labels: Any,
    *,
    categories: Column[Hashable],
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> dict[Hashable, Agreement]:
    """Agreement on each category: of all ordered pairs of labels on a unit whose first is the
    category, the share whose second is too (Uebersax 1982; with two raters Dice's index).

    The parameters are those of `fleiss_kappa`. Returns a dict by category; `n` counts the units
    where some rater chose it. With two raters and two categories this is positive and negative
    agreement; the unbalanced table of Cicchetti & Feinstein (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> result = specific_agreement(list(zip(first, second)), categories=[1, 0])
    >>> [round(agreement.estimate, 3) for agreement in result.values()]
    [0.914, 0.4]
    """
    group = _Group.of(labels, categories, clusters, bootstrap)
    n_others = np.maximum(group.counts.sum(axis=1, keepdims=True) - 1.0, 0.0)
    sums = group.sums(group.counts * (group.counts - 1.0), group.counts * n_others)
    values = ratio(*np.split(sums, 2, axis=1))
    is_used = (group.counts > 0) & group.pairable[:, None]
    return {
        category: group.agreement(values[:, k], is_used[:, k], "category_not_used")
        for k, category in enumerate(categories)
    }


def confusion_matrix(first: Any, second: Any, *, categories: Column[Hashable]) -> Array:
    """Count how often the first rater chose the row's category and the second the column's, (q, q).

    `first` and `second` are labels (units,); units without a label from both are left out.

    >>> confusion_matrix("aab", "abb", categories="ab").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return np.asarray(_tables_of_two(first, second, categories)[0], dtype=float)


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

    >>> result = intra_rater([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]], categories="ab")
    >>> result.agreement, result.kappa
    (0.75, 0.5)
    """
    codes, code_range = encode_labels(readings, categories), range(len(categories))
    columns = codes.T.astype(object)
    columns[columns < 0] = None
    pairs, agreements = {}, []
    for a, b in combinations(range(len(columns)), 2):
        labels = columns[a], columns[b]
        agreements.append(float(observed(confusion_matrix(*labels, categories=code_range))))
        pairs[a, b] = cohen_kappa(
            *labels, categories=code_range, weights=weights, clusters=clusters, bootstrap=bootstrap
        )
    estimates = [kappa.estimate for kappa in pairs.values()]
    return IntraRater(_mean_of_defined(agreements), _mean_of_defined(estimates), pairs)


def _mean_of_defined(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _tables_of_two(
    first: Any, second: Any, categories: Column[Hashable], clusters: Column[Hashable] | None = None
) -> Codes:
    """Return two raters' tables (clusters, q, q) of counts; one table if there are no clusters."""
    rows, columns = (encode_column(labels, categories) for labels in (first, second))
    same_length(rows, columns)
    cluster = np.zeros_like(rows, np.intp)
    if clusters is not None:
        cluster = cluster_codes(clusters, len(rows))
    # The first row and column are for missing labels: cheaper than selecting the units with both.
    n, width = int(cluster.max()) + 1, len(categories) + 1
    cells = (cluster * width + rows + 1) * width + columns + 1
    counts = np.bincount(cells, minlength=n * width * width).reshape(n, width, width)
    return counts[:, 1:, 1:]


def _no_pairable_units() -> Agreement:
    return Agreement(**vars(Interval.undefined("no_pairable_units")), n=0, n_clusters=0)


def _agreement_of_two(
    labels: tuple[Any, Any],
    categories: Column[Hashable],
    clusters: Column[Hashable] | None,
    bootstrap: Bootstrap | None,
    statistic: Callable[[Array], Array],
    weights: Array,
) -> tuple[Agreement, Array]:
    """Return a statistic of tables (..., q, q) that uses agreement weights (q, q), with its
    interval, and the table (q, q) of all units. Without clusters, units with the same two labels
    are resampled as one cluster that occurs as often as there are such units.
    """
    tables = _tables_of_two(*labels, categories, clusters)
    frequency = np.ones(len(tables), dtype=np.intp)
    if clusters is None and tables.any():
        counts, shape = tables.ravel(), tables.shape[1:]
        used = np.flatnonzero(counts)
        tables = np.eye(counts.size, dtype=np.intp)[used].reshape(-1, *shape)
        frequency = counts[used]
    table = np.tensordot(frequency, tables, axes=1).astype(float)
    n = int(table.sum())
    if not n:
        return _no_pairable_units(), table
    n_clusters = int(frequency @ tables.any((1, 2)))
    resamples = (bootstrap or Bootstrap()).draw(frequency)
    result = resamples.interval(statistic(resamples.totals(tables)), n_clusters)
    shares = (table.sum(axis=0) + table.sum(axis=1)) / (2.0 * n)
    result = widened(result, n_clusters, "coefficient", 1.0 - shares @ weights @ shares)
    return Agreement(**vars(result), n=n, n_clusters=n_clusters), table


@dataclass(frozen=True)
class _Group:
    """Labels of a group of raters as counts of the categories (rows, q), with the cluster of each
    row, (rows,), and the resamples of these.

    Without clusters, units with equal counts share one row, a cluster that occurs as often as there
    are such units: a million units cost no more than their few hundred patterns.
    """

    counts: Array
    clusters: Codes
    resamples: Resamples

    @classmethod
    def of(
        cls,
        labels: Any,
        categories: Column[Hashable],
        clusters: Column[Hashable] | None,
        bootstrap: Bootstrap | None,
    ) -> _Group:
        codes, draw = encode_labels(labels, categories), (bootstrap or Bootstrap()).draw
        if clusters is None:
            counts, frequency = count_patterns(codes, len(categories))
            return cls(counts, np.arange(len(frequency)), draw(frequency))
        cluster = cluster_codes(clusters, len(codes))
        frequency = np.ones(int(cluster.max()) + 1, dtype=np.intp)
        return cls(count_labels(codes, len(categories)), cluster, draw(frequency))

    @property
    def pairable(self) -> Mask:
        """True for the rows with two labels or more."""
        return np.asarray(self.counts.sum(axis=1) >= 2)

    def sums(self, *features: Array | Mask) -> Array:
        """Return sums of features (rows, ...) in the data and in every resample: (resamples, k)."""
        return self.resamples.sums(self.clusters, *features)

    def corrected(self, chance: Chance, weights: Array | None = None) -> Agreement:
        """Return observed agreement corrected for chance."""
        matrix = np.eye(self.counts.shape[1]) if weights is None else weights
        labels = self.counts.sum(axis=1, keepdims=True)
        agreed = agreeing_shares(self.counts, matrix)
        unit_shares = self.counts / np.maximum(labels, 1.0)
        sums = self.sums(self.pairable, agreed, labels > 0, unit_shares)
        shares = ratio(sums[:, 3:], sums[:, 2:3])
        expected = chance(shares, matrix)
        values = chance_corrected(ratio(sums[:, 1], sums[:, 0]), expected)
        return self.agreement(values, chance_disagreement=1.0 - float(expected[0]))

    def agreement(
        self,
        values: Array,
        chosen: Mask | None = None,
        reason: Reason = "no_variation",
        chance_disagreement: float | None = None,
    ) -> Agreement:
        """Return estimate and interval from replicates (resamples,), over the rows `chosen`.

        Without `chosen` these are the `pairable` rows. `reason` explains an undefined estimate.
        `chance_disagreement` is the disagreement that a coefficient expects by chance; without it
        the statistic is a share.
        """
        if not self.pairable.any():
            return _no_pairable_units()
        rows = self.pairable if chosen is None else chosen
        n, n_clusters = self.resamples.count(self.clusters, rows)
        result = self.resamples.interval(values, n_clusters, reason=reason)
        if chance_disagreement is None:
            result = share_interval(result, values[1:], n, n_clusters)
            result = widened(result, n_clusters, "share")
        else:
            result = widened(result, n_clusters, "coefficient", chance_disagreement)
        return Agreement(**vars(result), n=n, n_clusters=n_clusters)


def kappa_on_scale(kappa: float, weights: str = "linear") -> float:
    """Return the weighted kappa on a scale of many points that shows as much as this kappa of two
    raters who say yes to half of the units.

    Both come from the same correlation r of what two raters see, if that is normal. Balanced yes/no
    labels have the tetrachoric correlation r = sin(kappa pi / 2) (Sheppard 1899; Pearson 1900). On
    a scale the mean distance of two raters is the root of 1 - r of that expected by chance, so that
    kappa with linear weights (Cohen 1968) is 1 - sqrt(1 - r); with quadratic weights it is r.

    >>> [round(kappa_on_scale(kappa), 3) for kappa in (0.0, 0.2, 0.4, 1.0)]
    [0.0, 0.169, 0.358, 1.0]
    >>> round(kappa_on_scale(0.2, "quadratic"), 3)
    0.309
    """
    correlation = math.sin(kappa * math.pi / 2.0)
    return correlation if weights == "quadratic" else 1.0 - math.sqrt(1.0 - correlation)


def agreement_weights(q: int, kind: str | npt.ArrayLike = "identity") -> Array:
    """Agreement weights (q, q): "identity", "linear" 1 - |i-j|/(q-1), or "quadratic", 1 - its
    square; given weights as they are. Source: Cohen 1968; Fleiss & Cohen 1973 for the quadratic
    ones.

    >>> agreement_weights(3, "linear").tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    if not isinstance(kind, str):
        return np.asarray(kind, dtype=float)
    if kind == "identity":
        return np.eye(q)
    steps = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / max(q - 1, 1)
    return 1.0 - steps ** {"linear": 1, "quadratic": 2}[kind]


def chance_corrected(observed: Array, expected: Array) -> Array:
    """Return (observed - expected) / (1 - expected); NaN where chance alone explains everything."""
    room = 1.0 - np.asarray(expected, dtype=float)
    beyond = np.asarray(observed - expected, dtype=float)
    # No better than chance is 0, not 1e-17: verdicts compare with it.
    beyond = np.where(np.abs(beyond) < _NO_VARIATION, 0.0, beyond)
    defined = room > _NO_VARIATION
    return np.asarray(np.where(defined, beyond / np.where(defined, room, 1.0), np.nan))


def marginals(tables: Array) -> tuple[Array, Array]:
    """Return each rater's shares of the categories, two arrays (..., q); NaN for an empty table."""
    first, second = tables.sum(-1), tables.sum(-2)
    totals = first.sum(-1)[..., None]
    return ratio(first, totals), ratio(second, totals)


def observed(tables: Array, weights: Array | None = None) -> Array:
    """Share (...) of units on which two raters agree, from tables (..., q, q), or weighted."""
    if weights is None:
        agreed = np.trace(tables, axis1=-2, axis2=-1)
    else:  # the last axes first, as they lie in memory: along contiguous memory
        flat = np.swapaxes(tables, -1, -2).T.reshape(weights.size, -1)
        agreed = (weights.reshape(-1) @ flat).reshape(tables.shape[:-2][::-1]).T
    return ratio(agreed, tables.sum((-2, -1)))


def kappas(tables: Array, weights: Array | None = None) -> Array:
    """Cohen's kappa (...) from tables (..., q, q), or weighted kappa (Cohen 1960, 1968).

    The same 85% agreement under imbalance (Feinstein & Cicchetti 1990, two tables):

    >>> kappas(np.array([[[40.0, 9], [6, 45]], [[80.0, 10], [5, 5]]])).round(3).tolist()
    [0.7, 0.318]
    """
    first, second = marginals(tables)
    if weights is not None:  # shares @ weights, along contiguous memory as in `observed`
        flat = weights.T @ first.T.reshape(len(weights), -1)
        first = flat.reshape(first.T.shape).T
    return chance_corrected(observed(tables, weights), (first * second).sum(-1))


def corrected(tables: Array, chance: Chance, weights: Array | None = None) -> Array:
    """Agreement (...) corrected for the agreement by chance of the raters' mean marginals: Scott's
    pi (1955), Gwet's AC1, with weights (q, q) his AC2 (2014, ch. 4), Brennan & Prediger (1981).

    >>> table = np.array([[80.0, 10], [5, 5]])
    >>> [round(float(corrected(table, by)), 3) for by in (scott_chance, gwet_chance)]
    [0.314, 0.808]
    """
    first, second = marginals(tables)
    mean = (first + second) / 2.0
    matrix = agreement_weights(tables.shape[-1]) if weights is None else weights
    return chance_corrected(observed(tables, weights), chance(mean, matrix))


def balanced_accuracy(tables: Array) -> Array:
    """Mean (...), over the categories that the first rater uses, of the share of them that the
    second repeats, from tables (..., q, q) (Brodersen et al. 2010); NaN for an empty table.

    >>> balanced_accuracy(np.array([[8.0, 2], [0, 1]])).item()
    0.9
    """
    n_labels = tables.sum(axis=-1)
    n_repeated = np.diagonal(tables, axis1=-2, axis2=-1)
    return ratio(np.nansum(ratio(n_repeated, n_labels), axis=-1), (n_labels > 0).sum(axis=-1))


def prevalence_index(tables: Array) -> Array:
    """Return (both first category - both second) / n of 2 x 2 tables (Byrt, Bishop & Carlin 1993).

    >>> prevalence_index(np.array([[80.0, 10], [5, 5]])).item()
    0.75
    """
    return ratio(tables[..., 0, 0] - tables[..., 1, 1], tables.sum((-2, -1)))


def bias_index(tables: Array) -> Array:
    """Return the first rater's share of the first category minus the second rater's, from 2 x 2
    tables (Byrt, Bishop & Carlin 1993).

    >>> bias_index(np.array([[80.0, 10], [5, 5]])).item()
    0.05
    """
    return ratio(tables[..., 0, 1] - tables[..., 1, 0], tables.sum((-2, -1)))


def mean_differences(tables: Array, values: Sequence[float]) -> Array:
    """Mean (...) of the second rater's labels minus the first's, from tables (..., q, q) of
    categories with these `values` (q,).

    >>> mean_differences(np.array([[2.0, 1], [0, 1]]), [1, 2]).item()
    0.25
    """
    first, second = marginals(tables)
    return np.asarray((second - first) @ np.asarray(values, dtype=float))


def rank_correlations(tables: Array) -> Array:
    """Spearman's rho (...) of two raters' labels in ordered categories, ties at their mean rank
    (Kendall & Gibbons 1990, section 3.8), from tables (..., q, q); NaN where one rater is constant.

    >>> rank_correlations(np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 2]])).round(4).item()
    0.87
    """
    first, second = marginals(tables)
    x, y = (np.cumsum(margin, -1) - margin / 2.0 - 0.5 for margin in (first, second))
    joint = ratio(tables, tables.sum((-2, -1), keepdims=True))
    covariance = (x * (joint @ y[..., None])[..., 0]).sum(-1)
    spread = (first * x**2).sum(-1) * (second * y**2).sum(-1)
    return ratio(covariance, np.sqrt(spread))


def scott_chance(shares: Array, weights: Array) -> Array:
    """Chance agreement of raters with one marginal, unweighted: Scott 1955, Fleiss 1971."""
    return np.asarray((shares**2).sum(-1))


def gwet_chance(shares: Array, weights: Array) -> Array:
    """Gwet's chance agreement from shares (..., q): sum(W) / (q (q-1)) * sum pi (1 - pi)."""
    q = shares.shape[-1]
    if q < 2:
        return np.full(shares.shape[:-1], np.nan)
    return np.asarray(weights.sum() / (q * (q - 1)) * (shares * (1.0 - shares)).sum(-1))


def uniform_chance(shares: Array, weights: Array) -> Array:
    """Chance agreement where every category is equally likely: the mean weight."""
    return np.full(shares.shape[:-1], weights.mean())


def alpha(
    coincidences: Array, level: str = "nominal", values: Sequence[float] | None = None
) -> Array:
    """Krippendorff's alpha (...), 1 - D_o / D_e, from coincidence matrices (..., q, q). `level` is
    "nominal", "ordinal" or "interval", the last with the categories' `values`. Source: Krippendorff
    2011, section E. His example A: two raters, ten units, labels 0 and 1.

    >>> alpha(np.array([[10.0, 4.0], [4.0, 2.0]])).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    within, expected = np.zeros((2, *totals.shape[:-1]))
    positions: Array | None = None  # nominal categories are equally far from each other
    if level == "ordinal":
        # His distance between c and k sums the frequencies from c to k, less half of those two (eq.
        # 8), which is the difference of the categories' mid-ranks.
        positions = np.cumsum(totals, axis=-1) - totals / 2.0
    elif level != "nominal":
        if values is None or len(values) != totals.shape[-1]:
            raise ValueError("the interval metric needs the categories' values")
        positions = np.asarray(values, dtype=float)
    for i, j in combinations(range(totals.shape[-1]), 2):
        distance = 1.0 if positions is None else (positions[..., i] - positions[..., j]) ** 2
        within += (coincidences[..., i, j] + coincidences[..., j, i]) * distance
        expected += 2.0 * totals[..., i] * totals[..., j] * distance
    return alpha_of(within, expected, totals)


def alpha_with(coincidences: Array, distances: Array) -> Array:
    """Krippendorff's alpha (...) from coincidence matrices (..., q, q) and squared `distances`
    (q, q) between categories.

    >>> alpha_with(np.array([[10.0, 4.0], [4.0, 2.0]]), 1 - np.eye(2)).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    expected = ((totals @ distances) * totals).sum(-1)
    return alpha_of((coincidences * distances).sum((-2, -1)), expected, totals)


def alpha_of(within: Array, expected: Array, totals: Array) -> Array:
    """Krippendorff's alpha (...) from the summed distances of labels `within` units, those
    `expected` of all pairs of labels, and how often each category was used, `totals` (..., q).
    """
    return 1.0 - ratio((totals.sum(-1) - 1.0) * within, expected)


def _kappa_errors(table: Array, weights: Array) -> tuple[float, float]:
    """Standard errors of kappa from counts (q, q) with agreement weights (q, q): unrestricted, and
    under the hypothesis of no agreement.

    Source: Fleiss, Cohen & Everitt 1969, equations 9 and 13. Their example:

    >>> table = np.array([[106.0, 10, 4], [22, 28, 10], [2, 12, 6]])
    >>> [round(error, 4) for error in _kappa_errors(table, np.eye(3))]
    [0.0537, 0.0555]
    """
    n = table.sum()
    p = table / max(n, 1.0)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    chance = np.outer(rows, columns)
    agreed, expected = (p * weights).sum(), (chance * weights).sum()
    mean_weights = np.add.outer(weights @ columns, rows @ weights)
    room = 1.0 - expected
    if not n or room < _NO_VARIATION:
        return np.nan, np.nan
    spread = (p * (weights * room - mean_weights * (1 - agreed)) ** 2).sum()
    spread -= (agreed * expected - 2 * expected + agreed) ** 2
    null = (chance * (weights - mean_weights) ** 2).sum() - expected**2
    return (
        float(np.sqrt(max(spread, 0.0) / n) / room**2),
        float(np.sqrt(max(null, 0.0) / n) / room),
    )


def label_counts(coded: Coded, members: Sequence[int]) -> Array:
    """Count the raters that chose each category, (units, q)."""
    return count_labels(coded.codes[:, list(members)], coded.q)


def majority_codes(counts: Array) -> Codes:
    """Return the most frequent category (units,) from label counts (units, q); -1 if none or tied.

    >>> majority_codes(np.array([[2, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])).tolist()
    [0, -1, -1, 2]
    """
    return np.where(is_tied(counts) | (counts.sum(axis=1) == 0), -1, counts.argmax(axis=1))


def median_codes(counts: Array) -> Codes:
    """Return the median (lower) label (units,) from label counts (units, q); -1 for none."""
    half = (counts.sum(axis=1, keepdims=True) + 1.0) // 2
    return np.where(counts.any(axis=1), (counts.cumsum(axis=1) >= half).argmax(axis=1), -1)


def unseen_labels(counts: Array, *, ordered: bool, step: int = 1) -> list[Codes]:
    """Return codes (units,) that a grader could have given, from people's label counts (units, q).

    They are every category in turn, beginning with the one that most people chose; of `ordered`
    categories people's median, its neighbours (`step` away), and both ends of the scale, where
    gross errors lie.
    """
    q = counts.shape[1]
    if not ordered:
        plurality = counts.argmax(axis=1)
        return [(plurality + distance) % q for distance in range(q)]
    median = np.maximum(median_codes(counts), 0)
    return [np.clip(median + distance, 0, q - 1) for distance in (-q, -step, 0, step, q)]


def is_tied(counts: Array) -> Mask:
    """True where two or more categories share the highest count, (units,)."""
    highest = counts.max(axis=1, keepdims=True)
    return np.asarray(((counts == highest).sum(axis=1) > 1) & (highest[:, 0] > 0))


def category_shares(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Return category shares (rows, q); each labelled unit counts once (Gwet 2014, ch. 5)."""
    labels = counts.sum(axis=1, keepdims=True)
    sums = resamples.sums(coded.clusters, labels > 0, counts / np.maximum(labels, 1.0))
    return ratio(sums[:, 1:], sums[:, :1])


def agreeing_shares(counts: Array, weights: Array) -> Array:
    """Return each unit's (weighted) share of agreeing ordered label pairs; 0 below two labels."""
    labels = counts.sum(axis=1)
    agreeing = (counts * (counts @ weights - 1.0)).sum(axis=1)
    pairs = labels * (labels - 1.0)
    return np.asarray(np.divide(agreeing, pairs, out=np.zeros(len(counts)), where=pairs > 0))


def coincidences(counts: Array) -> Array:
    """Return each unit's ordered pairs of labels, weighted 1 / (labels - 1): (units, q, q)."""
    q = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(q), range(q)] -= counts
    return np.asarray(pairs * one_over(counts.sum(axis=1) - 1.0)[:, None, None])


def one_over(number: Numbers) -> Array:
    """Return 1 / number; 0 where it is not positive."""
    return np.where(number > 0, 1.0 / np.maximum(number, 1), 0.0)
