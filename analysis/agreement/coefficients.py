"""Coefficients of agreement as pure functions of contingency tables and coincidence matrices.

A *table* is an array (..., q, q): how often the first rater chose the row's category and the second
the column's. A *coincidence matrix* has the same shape, is symmetric and holds both orders of every
pair of labels, each unit weighted 1 / (labels - 1) (Krippendorff 2011). Leading axes are resamples
or pairs of raters, or absent: the same function serves the estimate and its resamples. Counts may
be weighted. Undefined values are NaN.

The large-sample standard errors, for independent units, are those that textbooks and other programs
print with a coefficient; the analysis takes its intervals from a bootstrap of clusters instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.patterns import count_labels
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.types import Array, Codes, Integers, Mask

_NO_VARIATION = 1e-12
"""Room for rounding: expected (dis)agreement this close to its bound means no variation."""


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


def agreement_weights(q: int, kind: str = "identity") -> Array:
    """Agreement weights (q, q): "identity", "linear" 1 - |i-j|/(q-1), or "quadratic", its square.

    Source: Cohen 1968; Fleiss & Cohen 1973 for the quadratic ones.

    >>> agreement_weights(3, "linear").tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
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
    totals = _nan_if_empty(first.sum(-1))[..., None]
    return first / totals, second / totals


def observed_agreement(tables: Array, weights: Array | None = None) -> Array:
    """Share of units on which two raters agree, weighted where weights (q, q) are given.

    >>> observed_agreement(np.array([[80.0, 10.0], [5.0, 5.0]])).item()
    0.85
    """
    if weights is None:
        agreed: Array = np.trace(tables, axis1=-2, axis2=-1)
    else:
        agreed = _weighed(tables, weights)
    return agreed / _totals(tables)


def cohen_kappa(tables: Array, weights: Array | None = None) -> Array:
    """Cohen's kappa, or weighted kappa (Cohen 1960, 1968).

    The same 85% agreement under imbalance (Feinstein & Cicchetti 1990, two tables):

    >>> cohen_kappa(np.array([[[40.0, 9], [6, 45]], [[80.0, 10], [5, 5]]])).round(3).tolist()
    [0.7, 0.318]
    """
    first, second = marginals(tables)
    reached = first if weights is None else _summed(first, weights)
    return chance_corrected(observed_agreement(tables, weights), (reached * second).sum(-1))


def balanced_accuracy(tables: Array) -> Array:
    """The mean, over categories that the first rater uses, of the share that the second repeats.

    Tables (..., q, q); NaN where the first rater uses none (Brodersen et al. 2010).

    >>> balanced_accuracy(np.array([[8.0, 2], [0, 1]])).item()
    0.9
    """
    of = tables.sum(axis=-1)
    hits = np.diagonal(tables, axis1=-2, axis2=-1)
    used = of > 0
    recall = np.where(used, hits / np.where(used, of, 1.0), 0.0).sum(axis=-1)
    count = used.sum(axis=-1)
    return np.asarray(np.where(count > 0, recall / np.maximum(count, 1), np.nan))


def scott_pi(tables: Array) -> Array:
    """Scott's pi (1955): chance from the raters' mean marginal.

    >>> scott_pi(np.array([[80.0, 10], [5, 5]])).round(4).item()
    0.3143
    """
    return chance_corrected(observed_agreement(tables), scott_expected(_mean_marginal(tables)))


def gwet_ac(tables: Array, weights: Array | None = None) -> Array:
    """Gwet's AC1, or AC2 where weights (q, q) are given (Gwet 2014, chapters 4 and 5).

    >>> gwet_ac(np.array([[80.0, 10], [5, 5]])).round(3).item()
    0.808
    """
    given = agreement_weights(tables.shape[-1]) if weights is None else weights
    expected = gwet_expected(_mean_marginal(tables), given)
    return chance_corrected(observed_agreement(tables, weights), expected)


def brennan_prediger(tables: Array) -> Array:
    """Brennan & Prediger's coefficient (1981), with two categories PABAK: chance is 1 / q.

    >>> brennan_prediger(np.array([[80.0, 10], [5, 5]])).round(3).item()
    0.7
    """
    return chance_corrected(
        observed_agreement(tables), uniform_expected(agreement_weights(tables.shape[-1]))
    )


def specific_agreement(tables: Array) -> Array:
    """Agreement on each category (..., q): 2 n_kk / (n_k. + n_.k); NaN for an unused category.

    With two categories this is positive and negative agreement (Cicchetti & Feinstein 1990; their
    values for the unbalanced table):

    >>> specific_agreement(np.array([[80.0, 10], [5, 5]])).round(3).tolist()
    [0.914, 0.4]
    """
    either = tables.sum(-1) + tables.sum(-2)
    same = 2.0 * np.diagonal(tables, axis1=-2, axis2=-1)
    return np.asarray(np.divide(same, either, out=np.full(either.shape, np.nan), where=either > 0))


def prevalence_index(tables: Array) -> Array:
    """Return (both first category - both second) / n of 2 x 2 tables (Byrt, Bishop & Carlin 1993).

    >>> prevalence_index(np.array([[80.0, 10], [5, 5]])).item()
    0.75
    """
    return np.asarray((tables[..., 0, 0] - tables[..., 1, 1]) / _totals(tables))


def bias_index(tables: Array) -> Array:
    """First rater's share of the first category minus the second's (Byrt, Bishop & Carlin 1993).

    >>> bias_index(np.array([[80.0, 10], [5, 5]])).item()
    0.05
    """
    return np.asarray((tables[..., 0, 1] - tables[..., 1, 0]) / _totals(tables))


def constant_raters(tables: Array) -> Mask:
    """True where at least one of the two raters used a single category throughout, shape (...)."""
    rows, columns = ((tables.sum(axis) > 0).sum(-1) == 1 for axis in (-1, -2))
    return np.asarray(rows | columns)


def scott_expected(shares: Array) -> Array:
    """Chance agreement of raters who share one marginal (..., q): Scott 1955, Fleiss 1971."""
    return np.asarray((shares**2).sum(-1))


def gwet_expected(shares: Array, weights: Array) -> Array:
    """Gwet's chance agreement from shares (..., q): sum(W) / (q (q-1)) * sum pi (1 - pi)."""
    q = shares.shape[-1]
    if q < 2:
        return np.full(shares.shape[:-1], np.nan)
    return np.asarray(weights.sum() / (q * (q - 1)) * (shares * (1.0 - shares)).sum(-1))


def uniform_expected(weights: Array) -> Array:
    """Chance agreement where every category is equally likely: the mean weight."""
    return np.asarray(weights.mean())


def ordinal_positions(totals: Array) -> Array:
    """Positions (..., q) whose distances are Krippendorff's ordinal metric.

    His distance between c and k sums the frequencies from c to k, less half of those two
    (Krippendorff 2011, eq. 8), which is the difference of the categories' mid-ranks.
    """
    ranks: Array = np.cumsum(totals, axis=-1) - totals / 2.0
    return ranks


def alpha(
    coincidences: Array, level: str = "nominal", values: Sequence[float] | None = None
) -> Array:
    """Krippendorff's alpha, 1 - D_o / D_e, from coincidence matrices (..., q, q).

    `level` is "nominal", "ordinal" or "interval", the last with the categories' `values`.
    Source: Krippendorff 2011, section E.

    His example A: two raters, ten units, labels 0 and 1.

    >>> alpha(np.array([[10.0, 4.0], [4.0, 2.0]])).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    observed, expected = np.zeros((2, *totals.shape[:-1]))
    at = _positions(level, totals, values)
    for i, j in combinations(range(totals.shape[-1]), 2):
        apart = 1.0 if at is None else (at[..., i] - at[..., j]) ** 2
        observed += (coincidences[..., i, j] + coincidences[..., j, i]) * apart
        expected += 2.0 * totals[..., i] * totals[..., j] * apart
    defined = expected > _NO_VARIATION
    pairable = totals.sum(-1) - 1.0
    result: Array = np.where(
        defined, 1.0 - pairable * observed / np.where(defined, expected, 1.0), np.nan
    )
    return result


def alpha_with(coincidences: Array, apart: Array) -> Array:
    """Krippendorff's alpha from coincidence matrices (..., q, q) with given squared distances
    `apart` (q, q) between categories.

    >>> alpha_with(np.array([[10.0, 4.0], [4.0, 2.0]]), 1 - np.eye(2)).round(3).item()
    0.095
    """
    totals = coincidences.sum(-1)
    observed = (coincidences * apart).sum((-2, -1))
    expected = ((totals @ apart) * totals).sum(-1)
    defined = expected > _NO_VARIATION
    pairable = totals.sum(-1) - 1.0
    return np.asarray(
        np.where(defined, 1.0 - pairable * observed / np.where(defined, expected, 1.0), np.nan)
    )


def _positions(level: str, totals: Array, values: Sequence[float] | None) -> Array | None:
    """Positions of the categories (..., q), or None where all are equally far from each other."""
    if level == "nominal":
        return None
    if level == "ordinal":
        return ordinal_positions(totals)
    if values is None or len(values) != totals.shape[-1]:
        raise ValueError("the interval metric needs the categories' values")
    return np.asarray(values, dtype=float)


def _mean_marginal(tables: Array) -> Array:
    first, second = marginals(tables)
    return (first + second) / 2.0


def _totals(tables: Array) -> Array:
    return _nan_if_empty(tables.sum((-2, -1)))


def _nan_if_empty(totals: Array) -> Array:
    return np.where(totals > 0, totals, np.nan)


# Both put the last axes first, as they lie in memory, and flatten the axes before them into one:
# the product and what is computed from it then run along contiguous memory.


def _summed(shares: Array, weights: Array) -> Array:
    """Return shares (..., q) @ weights (q, q)."""
    flat = shares.T.reshape(len(weights), -1)
    return (weights.T @ flat).reshape(shares.T.shape).T


def _weighed(tables: Array, weights: Array) -> Array:
    """The sum of each table's cells (..., q, q) times weights (q, q)."""
    before = tables.shape[:-2]
    flat = np.swapaxes(tables, -1, -2).T.reshape(weights.size, -1)
    return np.asarray((weights.reshape(-1) @ flat).reshape(before[::-1]).T)


class KappaErrors(NamedTuple):
    """Standard errors of a kappa: unrestricted, and under the hypothesis of no agreement."""

    se: float
    se_null: float


def kappa_errors(table: Array, weights: Array | None = None) -> KappaErrors:
    """Standard errors of Cohen's kappa from counts (q, q).

    Weighted kappa where agreement weights (q, q) are given.

    Source: Fleiss, Cohen & Everitt 1969, equations 9 and 13. Their example:

    >>> table = np.array([[106.0, 10, 4], [22, 28, 10], [2, 12, 6]])
    >>> [round(error, 4) for error in kappa_errors(table)]
    [0.0537, 0.0555]
    """
    weights = np.eye(len(table)) if weights is None else weights
    n = table.sum()
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    chance = np.outer(rows, columns)
    observed, expected = (p * weights).sum(), (chance * weights).sum()
    mean_weights = np.add.outer(weights @ columns, rows @ weights)
    if 1.0 - expected < 1e-12:
        return KappaErrors(np.nan, np.nan)
    spread = (p * (weights * (1 - expected) - mean_weights * (1 - observed)) ** 2).sum()
    spread -= (observed * expected - 2 * expected + observed) ** 2
    null = (chance * (weights - mean_weights) ** 2).sum() - expected**2
    return KappaErrors(
        float(np.sqrt(max(spread, 0.0) / n) / (1 - expected) ** 2),
        float(np.sqrt(max(null, 0.0) / n) / (1 - expected)),
    )


def group_errors(counts: Array, times: Integers, weights: Array) -> dict[str, float]:
    """Standard errors of the coefficients of many raters, by name.

    Names are `fleiss_kappa`, `gwet_ac`, `brennan_prediger` and `krippendorff_alpha`.

    `counts` (rows, q) are how many raters chose each category of a unit, `times` (rows,) how many
    units are like that; `weights` (q, q) are agreement weights. By linearisation, with raters fixed
    and units sampled. Alpha is that with the same weights: nominal for the identity, interval for
    quadratic ones. Source: Gwet 2014, chapter 5.
    """
    labelled = counts.sum(axis=1) > 0
    counts, times = counts[labelled], times[labelled]
    labels = counts.sum(axis=1)
    several = labels >= 2
    n, pairable, q = times.sum(), times[several].sum(), counts.shape[1]
    agreed = (counts * (counts @ weights - 1.0)).sum(axis=1) / np.where(
        several, labels * (labels - 1.0), 1.0
    )
    agreed = np.where(several, agreed, 0.0)
    observed = times @ agreed / pairable if pairable else np.nan
    own = counts / labels[:, None]
    shares = times @ own / n
    near = (weights @ shares + shares @ weights) / 2.0
    mixing = weights.sum() / (q * (q - 1.0)) if q > 1 else np.nan
    chance = {
        "fleiss_kappa": (shares @ weights @ shares, own @ near),
        "gwet_ac": (mixing * (shares * (1 - shares)).sum(), mixing * (own @ (1 - shares))),
        "brennan_prediger": (weights.mean(), np.full(len(counts), weights.mean())),
    }
    errors = {}
    for name, (expected, by_unit) in chance.items():
        room = 1.0 - expected
        if room < 1e-12 or not pairable:
            errors[name] = np.nan
            continue
        estimate = (observed - expected) / room
        each = n / pairable * np.where(several, agreed - expected, 0.0) / room
        each -= 2 * (1 - estimate) * (by_unit - expected) / room
        errors[name] = _error(each - estimate, times)
    errors["krippendorff_alpha"] = _alpha_error(counts[several], times[several], weights)
    return errors


def _alpha_error(counts: Array, times: Integers, weights: Array) -> float:
    n = times.sum()
    if n < 2:
        return np.nan
    labels = counts.sum(axis=1)
    mean = times @ labels / n
    more = (labels - mean) / mean
    agreed = (counts * (counts @ weights - 1.0)).sum(axis=1) / (mean * (labels - 1.0))
    observed = times @ agreed / n
    shares = times @ counts / (n * mean)
    expected = shares @ weights @ shares
    room = 1.0 - expected
    if room < 1e-12:
        return np.nan
    near = (weights @ shares + shares @ weights) / 2.0
    estimate = (observed - expected) / room
    # Krippendorff's correction for small samples; the source has it here, not in the estimate.
    small = 1.0 / (times @ labels)
    each = (agreed - ((1.0 - small) * observed + small) * more - expected) / room
    each -= 2 * (1 - estimate) * (counts @ near / mean - expected * more - expected) / room
    return _error(each - estimate, times)


def fleiss_null_error(counts: Array, times: Integers) -> float:
    """Standard error of Fleiss' kappa under no agreement.

    `counts` (rows, q) are label counts of units, `times` (rows,) how many units are like each; NaN
    for unequal numbers of raters.

    Source: Fleiss, Nee & Landis 1979.
    """
    raters = counts.sum(axis=1)
    if len(counts) == 0 or raters[0] < 2 or not (raters == raters[0]).all():
        return np.nan
    m, n = raters[0], times.sum()
    shares = times @ counts / (n * m)
    spread = shares * (1 - shares)
    if spread.sum() < 1e-12:
        return np.nan
    inner = spread.sum() ** 2 - (spread * (1 - 2 * shares)).sum()
    return float(np.sqrt(2.0 * inner / (n * m * (m - 1.0))) / spread.sum())


def _error(deviations: Array, times: Integers) -> float:
    n = times.sum()
    return float(np.sqrt(times @ deviations**2 / (n * (n - 1.0)))) if n > 1 else np.nan


def label_counts(coded: Coded, members: Sequence[int]) -> Array:
    """Count the raters that chose each category, (units, q)."""
    return count_labels(coded.codes[:, list(members)], coded.q)


def majority_codes(counts: Array) -> Codes:
    """Most frequent category (units,) from label counts (units, q); -1 for no label or a tie.

    >>> majority_codes(np.array([[2, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])).tolist()
    [0, -1, -1, 2]
    """
    return np.where(is_tied(counts) | (counts.sum(axis=1) == 0), -1, counts.argmax(axis=1))


def usual_codes(coded: Coded, members: Sequence[int]) -> Codes:
    """The label (units,) that most of some raters gave, -1 for none or a tie; of numbers their
    median, the lower one of two.
    """
    counts = label_counts(coded, members)
    return median_codes(counts) if coded.is_number else majority_codes(counts)


def median_codes(counts: Array) -> Codes:
    """Median label (units,) from label counts (units, q), the lower one of two; -1 for none."""
    half = (counts.sum(axis=1, keepdims=True) + 1.0) // 2
    reached = (counts.cumsum(axis=1) >= half).argmax(axis=1)
    return np.where(counts.any(axis=1), reached, -1)


def unseen_labels(counts: Array, *, ordered: bool, step: int = 1) -> list[Codes]:
    """Labels (units,) that a grader could have given but did not, by how many people chose each
    (units, q): the categories after the one that most people chose, in turn; of ordered ones
    people's median, its neighbours (`step` away), and both ends of the scale, where gross errors
    lie.
    """
    q = counts.shape[1]
    if not ordered:
        most = counts.argmax(axis=1)
        return [(most + each) % q for each in range(q)]
    usual = np.maximum(median_codes(counts), 0)
    return [np.clip(usual + each, 0, q - 1) for each in (-q, -step, 0, step, q)]


def is_tied(counts: Array) -> Mask:
    """True where two or more categories share the highest count, (units,)."""
    most = counts.max(axis=1, keepdims=True)
    return np.asarray(((counts == most).sum(axis=1) > 1) & (most[:, 0] > 0))


def category_shares(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Shares of the categories (rows, q), each labelled unit counting once (Gwet 2014, ch. 5)."""
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
    others = counts.sum(axis=1) - 1.0
    weight = np.divide(1.0, others, out=np.zeros(len(counts)), where=others > 0)
    return np.asarray(pairs * weight[:, None, None])
