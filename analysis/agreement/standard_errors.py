"""Large-sample standard errors, for independent units.

The analysis takes its intervals from a bootstrap of clusters instead; these are the values that
textbooks and other programs print with a coefficient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.analysis.types import Array, Integers


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
