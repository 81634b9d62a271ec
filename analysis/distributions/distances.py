"""Distances between shares of labels, corrected for the small number of annotators.

Humans' labels of a unit are draws from the shares that all humans like them would give. Shares of
few draws stray from these, so the plain distance to them is too long and their plain entropy too
low. `counts` (units, q) are the numbers of humans who chose each category of a unit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.types import Array, Codes, Integers, Numbers

MOST_PEOPLE = 1000
"""Upper limit of the number of annotators that a grader is worth."""


def disagreement(counts: Array) -> Array:
    """Probability that two of the humans differ on a unit, (units,); two labels or more.

    Unbiased for 1 - sum p^2 (Simpson 1949), which is also the expected squared distance of one
    human's label, as a certainty, from the shares p.

    >>> disagreement(np.array([[3.0, 1.0], [5.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    people = counts.sum(axis=1)
    return np.asarray(1.0 - (counts * (counts - 1.0)).sum(axis=1) / (people * (people - 1.0)))


def squared_distance(stated: Array, counts: Array) -> Array:
    """Squared distance (units,) of stated probabilities (units, q) from the shares p of all humans.

    Unbiased, as the estimate of the probability that two humans agree is unbiased for sum p^2; it
    may be below 0 by chance.

    >>> squared_distance(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])).tolist()
    [0.0]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    crossed = (stated * (stated - 2.0 * shares)).sum(axis=1)
    return np.asarray(crossed + 1.0 - disagreement(counts))


def total_variation(stated: Array, counts: Array) -> Array:
    """Total variation distance (units,) of stated probabilities from the shares of these humans."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * np.abs(stated - shares).sum(axis=1))


def between_groups(counts: Array, size: Integers) -> Array:
    """Total variation (units,) between the shares of two separate groups of humans.

    Each group has `size` (units,) members; averaged over all ways to draw two such groups from the
    humans of the unit.

    Unbiased for two groups drawn from all humans. Twice the size must not exceed the humans.

    >>> between_groups(np.array([[3.0, 1.0], [2.0, 2.0]]), np.array([2, 2])).round(3).tolist()
    [0.5, 0.333]
    """
    people = np.rint(counts.sum(axis=1)).astype(np.intp)
    chosen = np.rint(counts).astype(np.intp)
    out = np.zeros(len(counts))
    for n, m in np.unique(np.stack([people, size]), axis=1).T.tolist():
        rows = (people == n) & (size == m)
        out[rows] = 0.5 * _apart(n, m)[chosen[rows]].sum(axis=1)
    return out


@lru_cache(maxsize=512)
def _apart(n: int, m: int) -> Array:
    """Expected distance of one category's shares in two groups of m of n humans.

    By the number of the n who chose it: (n + 1,).
    """
    both, first = np.arange(2 * m + 1), np.arange(m + 1)
    gap = np.abs(2 * first - both[:, None]) / m
    in_both = (_hypergeometric(2 * m, both, m, first) * gap).sum(axis=1)
    return np.asarray(_hypergeometric(n, np.arange(n + 1), 2 * m, both) @ in_both)


def _hypergeometric(n: int, good: Codes, drawn: int, found: Codes) -> Array:
    """Probability to find `found` (k,) among `drawn` of n of which `good` (j,): (j, k)."""
    of = good[:, None]
    ways = _log_choose(of, found) + _log_choose(n - of, drawn - found)
    return np.asarray(np.exp(ways - _log_choose(np.array(n), np.array(drawn))))


def _log_choose(n: Codes, k: Codes) -> Array:
    from scipy.special import gammaln

    possible = (k >= 0) & (k <= n)
    inside = np.where(possible, k, 0)
    ways = gammaln(n + 1.0) - gammaln(inside + 1.0) - gammaln(n - inside + 1.0)
    return np.where(possible, ways, -np.inf)


def group_sizes(counts: Array) -> tuple[Codes, Codes]:
    """Return half and a quarter of the humans of each unit, each (units,); four humans or more."""
    half = np.rint(counts.sum(axis=1)).astype(np.intp) // 2
    return half, np.maximum(1, half // 2)


def reach(counts: Array) -> Array:
    """Distance from half to all of the humans, in steps from a quarter to half, (units,)."""
    half, quarter = group_sizes(counts)
    return np.asarray((counts.sum(axis=1) - half) / (half - quarter))


def between_whole_groups(quarter: Numbers, half: Numbers, steps: Numbers) -> Array:
    """Extrapolate the mean total variation between two groups as large as the whole group.

    `quarter` and `half` are the means for a quarter and for half of the humans, `steps` the mean
    `reach`; all of one shape.

    Halves of the humans are further apart than whole groups: by sqrt(2) where they are many, by
    less where few choose a category. The mean is close to a / sqrt(n + b), so 1 / mean^2 is
    extrapolated in a straight line: off by 2% for 5 humans and usual shares, where sqrt(2) is off
    by 12%.

    >>> between_whole_groups(np.array(0.2), np.array(0.2 / 2**0.5), np.array(2.0)).round(6).item()
    0.1
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.maximum(0.0, half**-2.0 - quarter**-2.0)
        whole = (half**-2.0 + slope * steps) ** -0.5
    return np.where(half > 0, whole, 0.0 * half)


def worth_people(distance: Array, one_person: Array) -> Array:
    """Equivalent number of annotators of a grader, (rows,): their shares are as close to all
    humans'.

    Shares of n humans are one human's squared distance / n away. `MOST_PEOPLE` where it is more, or
    the distance is 0 or below by chance; NaN where humans never differ.

    >>> worth_people(np.array([0.1, -0.01, 0.1]), np.array([0.4, 0.4, 0.0])).tolist()
    [4.0, 1000.0, nan]
    """
    near = distance * MOST_PEOPLE <= one_person
    worth = np.where(near, float(MOST_PEOPLE), ratio(one_person, distance))
    return np.where(one_person > 0, worth, np.nan)
