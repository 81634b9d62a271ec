"""The coefficients on plain labels: no tables, no study, one number at a time.

`labels` are (units, raters) of any hashable labels with None or NaN for missing: nested lists, an
array or a DataFrame. Two raters may also be given as two sequences. `categories` are always
declared, in order where there is one, and a label outside them is an error. A result that is not
defined has the estimate NaN and says why in `reason`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.groups import agreeing_shares, coincidences
from evenhand.analysis.agreement.standard_errors import (
    fleiss_null_error,
    group_errors,
    kappa_errors,
)
from evenhand.analysis.labels.plain import category_values, count_labels, encode_labels
from evenhand.analysis.labels.scale import Level

__all__ = [
    "Agreement",
    "brennan_prediger",
    "cohen_kappa",
    "confusion_matrix",
    "fleiss_kappa",
    "gwet_ac1",
    "gwet_ac2",
    "krippendorff_alpha",
    "observed_agreement",
    "scott_pi",
    "specific_agreement",
]

Array = npt.NDArray[np.float64]
Categories = Sequence[Hashable]
Weights = Literal["identity", "linear", "quadratic"]


@dataclass(frozen=True)
class Agreement:
    """A coefficient over `n` units that at least two raters labelled.

    `se` is its large-sample standard error for independent units and `se_null` that under no
    agreement, NaN where none is standard. `reason` says why the estimate is NaN, if it is.
    """

    estimate: float
    n: int
    se: float = np.nan
    se_null: float = np.nan
    reason: str = ""


def observed_agreement(labels: Any, *, categories: Categories) -> Agreement:
    """The mean over units of the share of agreeing pairs of labels (Fleiss 1971, equation 3).

    Two of three raters agree on one unit, all on the other: (1/3 + 1) / 2.

    >>> round(observed_agreement([["a", "a", "b"], ["b", "b", "b"]], categories="ab").estimate, 4)
    0.6667
    """
    return _of_counts(labels, categories, lambda shares, weights: np.zeros(()), "")


def cohen_kappa(
    first: Any,
    second: Any,
    *,
    categories: Categories,
    weights: Weights | npt.ArrayLike = "identity",
) -> Agreement:
    """Cohen's kappa of two raters (1960), or weighted kappa (1968) with its standard errors.

    `first` and `second` are labels (units,); `weights` are "identity", "linear", "quadratic" or
    agreement weights (q, q). Standard errors: Fleiss, Cohen & Everitt 1969.

    The balanced table of Feinstein & Cicchetti (1990), 85% agreement:

    >>> first = ["yes"] * 49 + ["no"] * 51
    >>> second = ["yes"] * 40 + ["no"] * 9 + ["yes"] * 6 + ["no"] * 45
    >>> found = cohen_kappa(first, second, categories=["yes", "no"])
    >>> round(found.estimate, 3), round(found.se, 3), found.n
    (0.7, 0.071, 100)
    """
    table = confusion_matrix(first, second, categories=categories)
    if isinstance(weights, str):
        agreement = c.agreement_weights(len(table), weights)
    else:
        agreement = np.asarray(weights, dtype=float)
    if not table.any():
        return Agreement(np.nan, 0, reason="no_pairable_units")
    found = float(c.cohen_kappa(table, agreement))
    return _with_reason(found, int(table.sum()), *kappa_errors(table, agreement))


def scott_pi(first: Any, second: Any, *, categories: Categories) -> Agreement:
    """Scott's pi of two raters (1955); labels (units,).

    The unbalanced table of Feinstein & Cicchetti (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(scott_pi(first, second, categories=[0, 1]).estimate, 3)
    0.314
    """
    table = confusion_matrix(first, second, categories=categories)
    if not table.any():
        return Agreement(np.nan, 0, reason="no_pairable_units")
    counts = _pair_counts(table)
    se = group_errors(counts, np.eye(len(table)))["fleiss_kappa"]
    return _with_reason(float(c.scott_pi(table)), len(counts), se)


def fleiss_kappa(labels: Any, *, categories: Categories) -> Agreement:
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
    found = _of_counts(
        labels, categories, lambda shares, _: c.scott_expected(shares), "fleiss_kappa"
    )
    counts = count_labels(encode_labels(labels, categories), len(categories))
    return replace(found, se_null=fleiss_null_error(counts))


def gwet_ac1(labels: Any, *, categories: Categories) -> Agreement:
    """Gwet's AC1 of two or more raters (2008; 2014, chapter 5).

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(gwet_ac1(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.808
    """
    return _of_counts(labels, categories, c.gwet_expected, "gwet_ac")


def gwet_ac2(
    labels: Any, *, categories: Categories, weights: Weights | npt.ArrayLike = "quadratic"
) -> Agreement:
    """Gwet's AC2 (2014, chapter 5): AC1 with agreement weights.

    The four raters of `fleiss_kappa`'s example, quadratic weights:

    >>> rows = ["11-1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222"]
    >>> rows += ["-555", "--11", "--3-"]
    >>> labels = [[None if cell == "-" else cell for cell in row] for row in rows]
    >>> round(gwet_ac2(labels, categories="12345").estimate, 4)
    0.914
    """
    q = len(categories)
    kind = c.agreement_weights(q, weights) if isinstance(weights, str) else np.asarray(weights)
    return _of_counts(labels, categories, c.gwet_expected, "gwet_ac", kind)


def brennan_prediger(labels: Any, *, categories: Categories) -> Agreement:
    """Brennan & Prediger's coefficient (1981); with two categories PABAK.

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> round(brennan_prediger(list(zip(first, second)), categories=[0, 1]).estimate, 3)
    0.7
    """
    return _of_counts(
        labels, categories, lambda _, weights: c.uniform_expected(weights), "brennan_prediger"
    )


def krippendorff_alpha(labels: Any, *, categories: Categories, level: Level) -> Agreement:
    """Krippendorff's alpha of two or more raters at the level named (2011).

    The interval level takes the categories' own numbers. The standard error is Gwet's, where his
    weights are Krippendorff's metric: nominal and interval. Krippendorff's example A:

    >>> first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> found = krippendorff_alpha(list(zip(first, second)), categories=[0, 1], level="nominal")
    >>> round(found.estimate, 3)
    0.095
    """
    values = category_values(categories, level)
    counts = count_labels(encode_labels(labels, categories), len(categories))
    counts = counts[counts.sum(axis=1) >= 2]
    if len(counts) == 0:
        return Agreement(np.nan, 0, reason="no_pairable_units")
    found = float(c.alpha(coincidences(counts).sum(axis=0), level, values))
    se = np.nan
    if level != "ordinal":
        apart = np.subtract.outer(values, values) ** 2
        metric = 1.0 - apart / max(float(apart.max()), 1.0)
        weights = np.eye(len(values)) if level == "nominal" else metric
        se = group_errors(counts, weights)["krippendorff_alpha"]
    return _with_reason(found, len(counts), se)


def specific_agreement(labels: Any, *, categories: Categories) -> dict[Hashable, Agreement]:
    """Agreement on each category: of the pairs of labels with one in it, the share with both.

    With two raters and two categories positive and negative agreement; the unbalanced table of
    Cicchetti & Feinstein (1990):

    >>> first = [1] * 90 + [0] * 10
    >>> second = [1] * 80 + [0] * 10 + [1] * 5 + [0] * 5
    >>> found = specific_agreement(list(zip(first, second)), categories=[1, 0])
    >>> [round(each.estimate, 3) for each in found.values()]
    [0.914, 0.4]
    """
    counts = count_labels(encode_labels(labels, categories), len(categories))
    counts = counts[counts.sum(axis=1) >= 2]
    same = (counts * (counts - 1.0)).sum(axis=0)
    every = (counts * (counts.sum(axis=1, keepdims=True) - 1.0)).sum(axis=0)
    return {
        category: Agreement(
            float(same[k] / every[k]) if every[k] else np.nan,
            int((counts[:, k] > 0).sum()),
            reason="" if every[k] else "category_not_used",
        )
        for k, category in enumerate(categories)
    }


def confusion_matrix(first: Any, second: Any, *, categories: Categories) -> Array:
    """How often the first rater chose the row's category and the second the column's, (q, q).

    >>> confusion_matrix("aab", "abb", categories="ab").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    columns = [encode_labels(list(each), categories) for each in (first, second)]
    a, b = (column[:, 0].astype(np.intp) for column in columns)
    both = (a >= 0) & (b >= 0)
    q = len(categories)
    counts = np.bincount(a[both] * q + b[both], minlength=q * q).astype(float)
    return counts.reshape(q, q)


def _of_counts(
    labels: Any,
    categories: Categories,
    chance: Callable[[Array, Array], Array],
    error: str,
    weights: Array | None = None,
) -> Agreement:
    """A coefficient of many raters from its chance agreement, a function of shares and weights."""
    counts = count_labels(encode_labels(labels, categories), len(categories))
    labelled = counts.sum(axis=1)
    several = labelled >= 2
    if not several.any():
        return Agreement(np.nan, 0, reason="no_pairable_units")
    kind = np.eye(len(categories)) if weights is None else weights
    observed = agreeing_shares(counts[several], kind).mean()
    used = counts[labelled > 0]
    shares = (used / used.sum(axis=1, keepdims=True)).mean(axis=0)
    found = float(c.chance_corrected(observed, chance(shares, kind)))
    return _with_reason(found, int(several.sum()), group_errors(counts, kind).get(error, np.nan))


def _pair_counts(table: Array) -> Array:
    """The label counts (units, q) of the units in a table of two raters."""
    q = len(table)
    each = (np.eye(q)[:, None, :] + np.eye(q)[None, :, :]).reshape(-1, q)
    return np.repeat(each, table.astype(np.intp).ravel(), axis=0)


def _with_reason(estimate: float, n: int, se: float = np.nan, se_null: float = np.nan) -> Agreement:
    undefined = np.isnan(estimate)
    return Agreement(estimate, n, se, se_null, "no_variation" if undefined else "")
