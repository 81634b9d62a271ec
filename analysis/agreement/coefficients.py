"""Coefficients of agreement: one public function for each, and the array functions that they use.

The *public functions* take a table of labels (units, raters): nested lists, an array or a DataFrame
of hashable labels, None or NaN where a label is missing. Functions for two raters take two
sequences (units,). Categories are always declared. A coefficient is returned with its 95% interval
from a bootstrap of clusters.

The *array functions* take counts of q categories, which may be weighted. A *table* is an array
(..., q, q): the first rater chose the row's category, the second the column's. A *coincidence
matrix* has the same shape, is symmetric, and counts every pair of labels in both orders, with
weight 1 / (labels - 1) for its unit (Krippendorff 2011). Leading axes, if any, are pairs of raters
or *rows*, the data and then its resamples: one function computes both. Undefined values are NaN.
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
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples, count_labels, ratio
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.scale import Level, category_values
from evenhand.analysis.statistics import Reason
from evenhand.analysis.types import Array, Categories, Clusters, Codes, Integers, Mask, Numbers

Weights = Literal["identity", "linear", "quadratic"]
Resampling = Bootstrap | None
"""Number of resamples and seed of an interval; None for those of `Bootstrap()`."""
PairStatistic = Callable[[Array], Array]
"""Statistic (...) of two raters from tables (..., q, q), or (..., cells) if labels are numbers."""
ChanceAgreement = Callable[[Array, Array], Array]
"""Chance agreement (...) from mean category shares (..., q) and agreement weights (q, q)."""

_NO_VARIATION = 1e-12
"""Tolerance for rounding errors: agreement or disagreement below it counts as 0."""
_MAX_BINS, _MAX_KEYS = 4_000_000, 2**62
"""Most possible patterns that `count_patterns` counts in one bin each, or numbers in int64."""


@dataclass(frozen=True, kw_only=True)
class Agreement(Interval):
    """A coefficient with its 95% interval, from `n` units that at least two raters labelled, in
    `n_clusters` clusters. `se` is the large-sample standard error of Cohen's kappa for independent
    units, `se_null` that if kappa is truly 0; both are NaN for other coefficients.
    """

    n: int
    n_clusters: int
    se: float = np.nan
    se_null: float = np.nan

    @property
    def reason(self) -> str:
        """Reason why the estimate or its interval is NaN; "" if neither is."""
        return self.note if np.isnan([self.estimate, self.low, self.high]).any() else ""


def cohen_kappa(
    first: Any,
    second: Any,
    *,
    categories: Categories,
    weights: Weights | npt.ArrayLike = "identity",
    clusters: Clusters = None,
    bootstrap: Resampling = None,
) -> Agreement:
    """Cohen's kappa of two raters (1960), or weighted kappa (1968), on units that both labelled.

    - `first`, `second`: sequences (units,) of hashable labels, None or NaN for a missing label.
    - `categories`: all permitted labels; in order, if they have one.
    - `weights`: "identity", "linear", "quadratic", or agreement weights (q, q).
    - `clusters`: hashable id of each unit's cluster, (units,); by default units are clusters.
    - `bootstrap`: number of resamples and seed of the interval.

    The standard errors are those of Fleiss, Cohen & Everitt (1969), equations 9 and 13. Raises
    InputError if the sequences differ in length, or a label is not one of the categories.

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
    pair = _Pair.of(first, second, categories, clusters, bootstrap)
    se, se_null = _kappa_errors(pair.table, matrix)
    return replace(pair.agreement(partial(kappas, weights=matrix), matrix), se=se, se_null=se_null)


def scott_pi(
    first: Any,
    second: Any,
    *,
    categories: Categories,
    clusters: Clusters = None,
    bootstrap: Resampling = None,
) -> Agreement:
    """Scott's pi of two raters (1955).

    The parameters, except for `weights`, are those of `cohen_kappa`.

    The unbalanced table of Feinstein & Cicchetti (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(scott_pi(first, second, categories=[0, 1]).estimate, 3)
    0.314
    """
    pair = _Pair.of(first, second, categories, clusters, bootstrap)
    return pair.agreement(partial(corrected, chance=scott_chance), np.eye(len(categories)))


def fleiss_kappa(
    labels: Any, *, categories: Categories, clusters: Clusters = None, bootstrap: Resampling = None
) -> Agreement:
    """Fleiss' kappa of many raters (1971), generalised to unequal numbers of them (Gwet 2014).

    `labels` is a table (units, raters): nested lists, an array or a DataFrame of hashable labels,
    None or NaN if missing. The other parameters are those of `cohen_kappa`. Raises InputError if
    labels are not a table, a label is not one of the categories, or a unit has no cluster.

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
    labels: Any, *, categories: Categories, clusters: Clusters = None, bootstrap: Resampling = None
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
    categories: Categories,
    weights: Weights | npt.ArrayLike = "quadratic",
    clusters: Clusters = None,
    bootstrap: Resampling = None,
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
    labels: Any, *, categories: Categories, clusters: Clusters = None, bootstrap: Resampling = None
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
    categories: Categories,
    level: Level,
    clusters: Clusters = None,
    bootstrap: Resampling = None,
) -> Agreement:
    """Krippendorff's alpha of two or more raters (2011).

    `level` is the level of measurement: "nominal", "ordinal" or "interval". The interval level
    raises InputError if the categories are not numbers. The other parameters are those of
    `fleiss_kappa`.

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
    # Disagreement expected by chance, from which `widened` makes an interval if nothing varies.
    squared_distances = np.subtract.outer(values, values) ** 2
    metric_weights = 1.0 - squared_distances / (squared_distances.max() or 1.0)
    weights = np.eye(q) if level == "nominal" else metric_weights
    shares = matrices[0].sum(axis=0) / max(float(matrices[0].sum()), 1.0)  # 0 without pairs
    disagreement = 1.0 - shares @ weights @ shares
    return group.agreement(alpha(matrices, level, values), chance_disagreement=disagreement)


def observed_agreement(
    labels: Any, *, categories: Categories, clusters: Clusters = None, bootstrap: Resampling = None
) -> Agreement:
    """Mean over units of the share of agreeing pairs of labels (Fleiss 1971, equation 3).

    The parameters are those of `fleiss_kappa`. In the example, 1 of 3 pairs of labels agrees on the
    first unit and all 3 on the second: (1/3 + 1) / 2.

    >>> round(observed_agreement([["a", "a", "b"], ["b", "b", "b"]], categories="ab").estimate, 4)
    0.6667
    """
    group = _Group.of(labels, categories, clusters, bootstrap)
    agreed = agreeing_shares(group.counts, np.eye(len(categories)))
    return group.agreement(ratio(*group.sums(agreed, group.pairable).T))


def specific_agreement(
    labels: Any, *, categories: Categories, clusters: Clusters = None, bootstrap: Resampling = None
) -> dict[Hashable, Agreement]:
    """Return the agreement on each category, by category (Uebersax 1982; with two raters Dice's
    index): among the ordered pairs of labels on a unit whose first label is the category, the share
    whose second label is the category too.

    The parameters are those of `fleiss_kappa`; `n` counts the units where a rater chose the
    category. With two raters and two categories this is positive and negative agreement. The
    unbalanced table of Cicchetti & Feinstein (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> result = specific_agreement(list(zip(first, second)), categories=[1, 0])
    >>> [round(agreement.estimate, 3) for agreement in result.values()]
    [0.914, 0.4]
    """
    group = _Group.of(labels, categories, clusters, bootstrap)
    n_others = np.maximum(group.counts.sum(axis=1, keepdims=True) - 1.0, 0.0)
    sums = group.sums(group.counts * (group.counts - 1.0), group.counts * n_others)
    values = ratio(*np.split(sums, 2, axis=1))  # agreeing pairs over all pairs, (rows, q)
    is_used = (group.counts > 0) & group.pairable[:, None]
    return {
        category: group.agreement(values[:, k], is_used[:, k], "category_not_used")
        for k, category in enumerate(categories)
    }


def confusion_matrix(first: Any, second: Any, *, categories: Categories) -> Array:
    """Return the confusion matrix (q, q): the number of units for which the first rater chose the
    row's category and the second the column's.

    `first` and `second` are labels (units,); units that only one rater labelled are left out.

    >>> confusion_matrix("aab", "abb", categories="ab").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return np.asarray(_tables_of_two(first, second, categories)[0], dtype=float)


@dataclass(frozen=True)
class IntraRater:
    """Agreement of a rater with their own repeated labels: mean observed agreement and mean kappa
    over pairs of readings, and the kappa of each pair by its two columns.
    """

    agreement: float
    kappa: float
    pairs: dict[tuple[int, int], Agreement]


def intra_rater(
    readings: Any,
    *,
    categories: Categories,
    weights: Weights = "identity",
    clusters: Clusters = None,
    bootstrap: Resampling = None,
) -> IntraRater:
    """Return the agreement of one rater's repeated labels of the same units.

    `readings` is a table of labels (units, readings); the other parameters are those of
    `cohen_kappa`, which is computed for every two readings.

    >>> result = intra_rater([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]], categories="ab")
    >>> result.agreement, result.kappa
    (0.75, 0.5)
    """
    codes, code_range = encoding.encode_labels(readings, categories), range(len(categories))
    columns = codes.T.astype(object)
    columns[columns < 0] = None  # a missing label, as `cohen_kappa` takes it
    kappa_by_pair, agreements = {}, []
    options: dict[str, Any] = {"weights": weights, "clusters": clusters, "bootstrap": bootstrap}
    for i, j in combinations(range(len(columns)), 2):
        table = confusion_matrix(columns[i], columns[j], categories=code_range)
        agreements.append(float(observed(table)))
        kappa_by_pair[i, j] = cohen_kappa(columns[i], columns[j], categories=code_range, **options)
    estimates = [kappa.estimate for kappa in kappa_by_pair.values()]
    return IntraRater(_mean_of_defined(agreements), _mean_of_defined(estimates), kappa_by_pair)


def _mean_of_defined(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if all are."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _tables_of_two(
    first: Any, second: Any, categories: Categories, clusters: Clusters = None
) -> Codes:
    """Return two raters' tables (clusters, q, q) of counts; one table if there are no clusters."""
    rows, columns = (encoding.encode_column(labels, categories) for labels in (first, second))
    encoding.check_same_length(rows, columns)
    n = len(rows)
    cluster = np.zeros(n, np.intp) if clusters is None else encoding.cluster_codes(clusters, n)
    # Row and column 0 count missing labels (code -1): faster than to select units with two labels.
    n_clusters, width = int(cluster.max()) + 1, len(categories) + 1
    cells = (cluster * width + rows + 1) * width + columns + 1
    counts = np.bincount(cells, minlength=n_clusters * width * width)
    return counts.reshape(n_clusters, width, width)[:, 1:, 1:]


def _no_pairable_units() -> Agreement:
    """Return an undefined agreement, of raters who share no unit."""
    return Agreement(**vars(Interval.undefined("no_pairable_units")), n=0, n_clusters=0)


@dataclass(frozen=True)
class _Pair:
    """Labels of two raters as a table of counts for each cluster, (clusters, q, q).

    `frequency` (clusters,) is the number of times that each cluster occurs. Without clusters, units
    with the same two labels are one cluster that occurs as often as there are such units.
    """

    tables: Codes
    frequency: Codes
    bootstrap: Bootstrap

    @classmethod
    def of(
        cls,
        first: Any,
        second: Any,
        categories: Categories,
        clusters: Clusters,
        bootstrap: Resampling,
    ) -> _Pair:
        tables = _tables_of_two(first, second, categories, clusters)
        frequency = np.ones(len(tables), dtype=np.intp)
        if clusters is None and tables.any():
            # Each used cell of the only table becomes a cluster, whose own table has a 1 there.
            counts, shape = tables.ravel(), tables.shape[1:]
            used_cells = np.flatnonzero(counts)
            tables = np.eye(counts.size, dtype=np.intp)[used_cells].reshape(-1, *shape)
            frequency = counts[used_cells]
        return cls(tables, frequency, bootstrap or Bootstrap())

    @property
    def table(self) -> Array:
        """Table (q, q) of all units."""
        return np.asarray(np.tensordot(self.frequency, self.tables, axes=1), dtype=float)

    def agreement(self, statistic: PairStatistic, weights: Array) -> Agreement:
        """Return a statistic and its interval; `weights` (q, q) are its agreement weights."""
        table = self.table
        n = int(table.sum())
        if not n:
            return _no_pairable_units()
        n_clusters = int(self.frequency @ self.tables.any((1, 2)))
        resamples = self.bootstrap.draw(self.frequency)
        result = resamples.interval(statistic(resamples.to_rows(self.tables)), n_clusters)
        shares = (table.sum(axis=0) + table.sum(axis=1)) / (2.0 * n)  # of both raters' labels
        result = widened(result, n_clusters, "coefficient", 1.0 - shares @ weights @ shares)
        return Agreement(**vars(result), n=n, n_clusters=n_clusters)


@dataclass(frozen=True)
class _Group:
    """Labels of a group of raters as counts of the categories (units, q), with the cluster of each
    unit, (units,), and the resamples of the clusters.

    Without clusters, units with equal counts are merged into one, a cluster that occurs as often as
    there are such units: a million units cost no more than their few hundred patterns.
    """

    counts: Array
    clusters: Codes
    resamples: Resamples

    @classmethod
    def of(
        cls, labels: Any, categories: Categories, clusters: Clusters, bootstrap: Resampling
    ) -> _Group:
        codes, bootstrap = encoding.encode_labels(labels, categories), bootstrap or Bootstrap()
        if clusters is None:
            counts, frequency = count_patterns(codes, len(categories))
            return cls(counts, np.arange(len(frequency)), bootstrap.draw(frequency))
        cluster = encoding.cluster_codes(clusters, len(codes))
        frequency = np.ones(int(cluster.max()) + 1, dtype=np.intp)
        return cls(count_labels(codes, len(categories)), cluster, bootstrap.draw(frequency))

    @property
    def pairable(self) -> Mask:
        """Mask (units,) of the units with two labels or more."""
        return np.asarray(self.counts.sum(axis=1) >= 2)

    def sums(self, *features: Array | Mask) -> Array:
        """Return sums of features (units, ...) over all units, (rows, columns)."""
        return self.resamples.sums(self.clusters, *features)

    def corrected(self, chance: ChanceAgreement, weights: Array | None = None) -> Agreement:
        """Return observed agreement corrected for chance."""
        matrix = np.eye(self.counts.shape[1]) if weights is None else weights
        n_labels = self.counts.sum(axis=1, keepdims=True)
        agreed = agreeing_shares(self.counts, matrix)
        unit_shares = self.counts / np.maximum(n_labels, 1.0)
        sums = self.sums(self.pairable, agreed, n_labels > 0, unit_shares)
        n_pairable, agreed_sum, n_labelled, share_sums = np.split(sums, [1, 2, 3], axis=1)
        expected = chance(ratio(share_sums, n_labelled), matrix)
        values = chance_corrected(ratio(agreed_sum, n_pairable)[:, 0], expected)
        return self.agreement(values, chance_disagreement=1.0 - float(expected[0]))

    def agreement(
        self,
        values: Array,
        units: Mask | None = None,
        reason: Reason = "no_variation",
        chance_disagreement: float | None = None,
    ) -> Agreement:
        """Return the estimate and its interval from `values` (rows,) of a statistic.

        `units` masks the units that it is computed from, by default the `pairable` ones. `reason`
        explains an undefined estimate. `chance_disagreement`, the disagreement expected by chance,
        determines the range of a coefficient (`widened`); None if the statistic is a share.
        """
        if not self.pairable.any():
            return _no_pairable_units()
        units = self.pairable if units is None else units
        n, n_clusters = self.resamples.count(self.clusters, units)
        result = self.resamples.interval(values, n_clusters, reason=reason)
        if chance_disagreement is None:
            result = share_interval(result, values[1:], n, n_clusters)
            result = widened(result, n_clusters, "share")
        else:
            result = widened(result, n_clusters, "coefficient", chance_disagreement)
        return Agreement(**vars(result), n=n, n_clusters=n_clusters)


def kappa_on_scale(kappa: float, weights: str = "linear") -> float:
    """Return the weighted kappa on a scale of many points that corresponds to this kappa of yes/no
    labels, if two raters each answer yes for half of the units.

    The correspondence assumes that both kappas come from one correlation r of the raters' normally
    distributed impressions. Balanced yes/no labels have the tetrachoric correlation
    r = sin(kappa pi / 2) (Sheppard 1899; Pearson 1900). On a scale, the mean distance of two raters
    is sqrt(1 - r) times the distance expected by chance. So kappa with linear weights (Cohen 1968)
    is 1 - sqrt(1 - r); with quadratic weights it is r.

    >>> [round(kappa_on_scale(kappa), 3) for kappa in (0.0, 0.2, 0.4, 1.0)]
    [0.0, 0.169, 0.358, 1.0]
    >>> round(kappa_on_scale(0.2, "quadratic"), 3)
    0.309
    """
    correlation = math.sin(kappa * math.pi / 2.0)
    return correlation if weights == "quadratic" else 1.0 - math.sqrt(1.0 - correlation)


def agreement_weights(q: int, kind: str | npt.ArrayLike = "identity") -> Array:
    """Return agreement weights (q, q). "identity" is 1 for equal categories and 0 for others,
    "linear" is 1 - d with the distance d = |i - j| / (q - 1) (Cohen 1968), "quadratic" is 1 - d^2
    (Fleiss & Cohen 1973). An array of weights is returned unchanged.

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
    """Return (observed - expected) / (1 - expected); NaN where the expected agreement is 1."""
    chance_disagreement = 1.0 - np.asarray(expected, dtype=float)
    excess = np.asarray(observed - expected, dtype=float)
    # Agreement no better than chance is exactly 0, not 1e-17, because verdicts compare with 0.
    excess = np.where(np.abs(excess) < _NO_VARIATION, 0.0, excess)
    is_defined = chance_disagreement > _NO_VARIATION
    return np.asarray(excess / np.where(is_defined, chance_disagreement, np.nan))


def marginals(tables: Array) -> tuple[Array, Array]:
    """Return each rater's shares of the categories, two arrays (..., q); NaN for an empty table."""
    first, second = tables.sum(-1), tables.sum(-2)
    totals = first.sum(-1)[..., None]
    return ratio(first, totals), ratio(second, totals)


def observed(tables: Array, weights: Array | None = None) -> Array:
    """Return the share (...) of units on which two raters agree, from tables (..., q, q); with
    agreement weights (q, q), their mean weight.
    """
    if weights is None:
        agreed = np.trace(tables, axis1=-2, axis2=-1)
    else:  # `.T` reverses the axes: cells first, in contiguous memory; the last `.T` undoes it
        cells = np.swapaxes(tables, -1, -2).T.reshape(weights.size, -1)
        agreed = (weights.reshape(-1) @ cells).reshape(tables.shape[:-2][::-1]).T
    return ratio(agreed, tables.sum((-2, -1)))


def kappas(tables: Array, weights: Array | None = None) -> Array:
    """Return Cohen's kappa (...) from tables (..., q, q), or weighted kappa (Cohen 1960, 1968).

    Two tables with 85% agreement, balanced and unbalanced (Feinstein & Cicchetti 1990):

    >>> kappas(np.array([[[40.0, 9], [6, 45]], [[80.0, 10], [5, 5]]])).round(3).tolist()
    [0.7, 0.318]
    """
    first, second = marginals(tables)
    mean_weights = first  # of each category of the second rater, over the first rater's shares
    if weights is not None:  # first @ weights, with the categories as first axis as in `observed`
        mean_weights = (weights.T @ first.T.reshape(len(weights), -1)).reshape(first.T.shape).T
    return chance_corrected(observed(tables, weights), (mean_weights * second).sum(-1))


def corrected(tables: Array, chance: ChanceAgreement, weights: Array | None = None) -> Array:
    """Return agreement (...) of two raters corrected for chance, from tables (..., q, q); `chance`
    computes the agreement by chance from the raters' mean marginals.

    With `scott_chance` it is Scott's pi (1955), with `gwet_chance` Gwet's AC1, or AC2 if there are
    `weights` (q, q) (2014, ch. 4), with `uniform_chance` Brennan & Prediger's coefficient (1981).

    >>> table = np.array([[80.0, 10], [5, 5]])
    >>> [round(float(corrected(table, chance)), 3) for chance in (scott_chance, gwet_chance)]
    [0.314, 0.808]
    """
    first, second = marginals(tables)
    matrix = agreement_weights(tables.shape[-1]) if weights is None else weights
    return chance_corrected(observed(tables, weights), chance((first + second) / 2.0, matrix))


def balanced_accuracy(tables: Array) -> Array:
    """Return balanced accuracy (...) from tables (..., q, q) (Brodersen et al. 2010): the mean over
    the first rater's categories of the share of labels that the second repeats; NaN if empty.

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
    """Return the mean (...) of the second rater's values minus the first's, from tables (..., q, q)
    of categories with these `values` (q,).

    >>> mean_differences(np.array([[2.0, 1], [0, 1]]), [1, 2]).item()
    0.25
    """
    first, second = marginals(tables)
    return np.asarray((second - first) @ np.asarray(values, dtype=float))


def rank_correlations(tables: Array) -> Array:
    """Return Spearman's rho (...) from tables (..., q, q) of ordered categories, with ties at their
    mean rank (Kendall & Gibbons 1990, section 3.8); NaN if one rater is constant.

    >>> rank_correlations(np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 2]])).round(4).item()
    0.87
    """
    first, second = marginals(tables)
    # A category's mean rank: the share below it and half of its own, minus the mean of ranks, 1/2.
    x, y = (np.cumsum(margin, -1) - margin / 2.0 - 0.5 for margin in (first, second))
    joint = ratio(tables, tables.sum((-2, -1), keepdims=True))
    covariance = (x * (joint @ y[..., None])[..., 0]).sum(-1)
    return ratio(covariance, np.sqrt((first * x**2).sum(-1) * (second * y**2).sum(-1)))


def scott_chance(shares: Array, weights: Array) -> Array:
    """Return sum p^2 for shares p, as Scott (1955) and Fleiss (1971) do; `weights` are not used."""
    return np.asarray((shares**2).sum(-1))


def gwet_chance(shares: Array, weights: Array) -> Array:
    """Return sum(W) / (q (q - 1)) sum p (1 - p) for shares p and weights W (Gwet 2014, ch. 5)."""
    q = shares.shape[-1]
    if q < 2:
        return np.full(shares.shape[:-1], np.nan)
    return np.asarray(weights.sum() / (q * (q - 1)) * (shares * (1.0 - shares)).sum(-1))


def uniform_chance(shares: Array, weights: Array) -> Array:
    """Return the chance agreement if every category is equally likely: the mean weight."""
    return np.full(shares.shape[:-1], weights.mean())


def alpha(
    coincidences: Array, level: str = "nominal", values: Sequence[float] | None = None
) -> Array:
    """Return Krippendorff's alpha (...), 1 - D_o / D_e, from coincidence matrices (..., q, q)
    (Krippendorff 2011, section E).

    `level` is "nominal", "ordinal" or "interval"; the interval level needs the categories' `values`
    (q,). Krippendorff's example A, of two raters, ten units, and labels 0 and 1:

    >>> alpha(np.array([[10.0, 4.0], [4.0, 2.0]])).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    observed_sum, expected_sum = np.zeros((2, *totals.shape[:-1]))
    positions: Array | None = None  # nominal categories are equally far from each other
    if level == "ordinal":
        # Krippendorff's distance between categories c and k (eq. 8) is the sum of the frequencies
        # from c to k, less half of those of c and k: the difference of their mid-ranks.
        positions = np.cumsum(totals, axis=-1) - totals / 2.0
    elif level != "nominal":
        if values is None or len(values) != totals.shape[-1]:
            raise ValueError("the interval metric needs the categories' values")
        positions = np.asarray(values, dtype=float)
    for i, j in combinations(range(totals.shape[-1]), 2):
        distance = 1.0 if positions is None else (positions[..., i] - positions[..., j]) ** 2
        observed_sum += (coincidences[..., i, j] + coincidences[..., j, i]) * distance
        expected_sum += 2.0 * totals[..., i] * totals[..., j] * distance
    return alpha_from_sums(observed_sum, expected_sum, totals)


def alpha_with(coincidences: Array, distances: Array) -> Array:
    """Return Krippendorff's alpha (...) from coincidence matrices (..., q, q) and squared
    `distances` (q, q) between categories.

    >>> alpha_with(np.array([[10.0, 4.0], [4.0, 2.0]]), 1 - np.eye(2)).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    expected_sum = ((totals @ distances) * totals).sum(-1)
    return alpha_from_sums((coincidences * distances).sum((-2, -1)), expected_sum, totals)


def alpha_from_sums(observed_sum: Array, expected_sum: Array, totals: Array) -> Array:
    """Return Krippendorff's alpha (...) from sums of squared distances: `observed_sum` over pairs
    of labels of the same unit, `expected_sum` over all pairs of labels. `totals` (..., q) is the
    number of labels of each category.
    """
    return 1.0 - ratio((totals.sum(-1) - 1.0) * observed_sum, expected_sum)


def _kappa_errors(table: Array, weights: Array) -> tuple[float, float]:
    """Return two standard errors of kappa from counts (q, q) with agreement weights (q, q): in
    general, and if kappa is 0 (Fleiss, Cohen & Everitt 1969, equations 9 and 13; their data):

    >>> table = np.array([[106.0, 10, 4], [22, 28, 10], [2, 12, 6]])
    >>> [round(error, 4) for error in _kappa_errors(table, np.eye(3))]
    [0.0537, 0.0555]
    """
    n = table.sum()
    shares = table / max(n, 1.0)
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    chance = np.outer(rows, columns)
    agreed, expected = (shares * weights).sum(), (chance * weights).sum()
    mean_weights = np.add.outer(weights @ columns, rows @ weights)  # of row plus column
    chance_disagreement = 1.0 - expected
    if not n or chance_disagreement < _NO_VARIATION:
        return np.nan, np.nan
    variance = (shares * (weights * chance_disagreement - mean_weights * (1 - agreed)) ** 2).sum()
    variance -= (agreed * expected - 2 * expected + agreed) ** 2
    null_variance = (chance * (weights - mean_weights) ** 2).sum() - expected**2
    se = np.sqrt(max(variance, 0.0) / n) / chance_disagreement**2
    return float(se), float(np.sqrt(max(null_variance, 0.0) / n) / chance_disagreement)


def label_counts(coded: Coded, members: Sequence[int]) -> Array:
    """Return the number of raters in `members` (columns) that chose each category, (units, q)."""
    return count_labels(coded.codes[:, list(members)], coded.q)


def count_patterns(codes: Integers, q: int) -> tuple[Array, Codes]:
    """Return the distinct counts of the categories, (patterns, q), and their frequencies over
    units. `codes` (units, raters) are 0 to q - 1, -1 missing. Statistics of a group of raters
    depend on these only: five raters on five categories have at most 126 patterns without gaps.

    >>> counts, frequency = count_patterns(np.array([[0, 1, 0], [1, 0, 0], [1, 1, -1]]), 2)
    >>> counts.tolist(), frequency.tolist()
    ([[2.0, 1.0], [0.0, 2.0]], [2, 1])
    """
    base = codes.shape[1] + 1  # a count is 0 to the number of raters
    if base**q >= _MAX_KEYS:
        return np.unique(count_labels(codes, q), axis=0, return_counts=True)
    # A pattern's key is a number whose digits in this base are its counts: each label adds the
    # place value of its category. A missing label, code -1, adds the last value, 0.
    place_values = np.array([base**code for code in range(q)] + [0], dtype=np.intp)
    key = np.zeros(len(codes), dtype=np.intp)
    for rater in range(codes.shape[1]):
        key += place_values[np.ascontiguousarray(codes[:, rater])]
    if base**q <= _MAX_BINS:  # faster than to sort the keys
        counts = np.bincount(key, minlength=1)
        used_keys = np.flatnonzero(counts)
        frequency = counts[used_keys]
    else:
        used_keys, frequency = np.unique(key, return_counts=True)
    return (used_keys[:, None] // place_values[:q] % base).astype(float), frequency


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
    """Return other labels that a grader could give, codes (units,) each, from people's counts
    (units, q). With them, score bounds (`bootstrap.bounds`) allow for errors not observed yet.

    These are all categories, people's most frequent one first; if `ordered`, people's median, the
    categories `step` below and above it, and both ends of the scale, the largest possible errors.
    """
    q = counts.shape[1]
    if not ordered:
        plurality = counts.argmax(axis=1)
        return [(plurality + shift) % q for shift in range(q)]
    median = np.maximum(median_codes(counts), 0)
    return [np.clip(median + shift, 0, q - 1) for shift in (-q, -step, 0, step, q)]  # q: the ends


def is_tied(counts: Array) -> Mask:
    """Return the mask (units,) of units where two or more categories share the highest count."""
    highest = counts.max(axis=1, keepdims=True)
    return np.asarray(((counts == highest).sum(axis=1) > 1) & (highest[:, 0] > 0))


def category_shares(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Return category shares (rows, q); each labelled unit counts once (Gwet 2014, ch. 5)."""
    n_labels = counts.sum(axis=1, keepdims=True)
    sums = resamples.sums(coded.clusters, n_labels > 0, counts / np.maximum(n_labels, 1.0))
    return ratio(sums[:, 1:], sums[:, :1])


def agreeing_shares(counts: Array, weights: Array) -> Array:
    """Return the mean agreement weight of each unit's pairs of labels, (units,), from label counts
    (units, q); 0 for units with fewer than two labels.
    """
    n_labels = counts.sum(axis=1)
    agreeing = (counts * (counts @ weights - 1.0)).sum(axis=1)  # no label pairs with itself
    n_pairs = n_labels * (n_labels - 1.0)
    return np.asarray(np.divide(agreeing, n_pairs, out=np.zeros(len(counts)), where=n_pairs > 0))


def coincidences(counts: Array) -> Array:
    """Return each unit's ordered pairs of labels, weighted 1 / (labels - 1): (units, q, q)."""
    q = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(q), range(q)] -= counts  # no label pairs with itself
    return np.asarray(pairs * one_over(counts.sum(axis=1) - 1.0)[:, None, None])


def one_over(number: Numbers) -> Array:
    """Return 1 / number; 0 where it is not positive."""
    return np.where(number > 0, 1.0 / np.maximum(number, 1), 0.0)
