"""The best of several graders: its estimate, corrected for having been chosen as the best.

The best of many looks better than it is. Given that it is the best, its estimate is normal with the
tail below the runner-up cut off; the corrected estimate is the value under which the observed one
would be the median (Andrews, Kitagawa & McCloskey 2024, section 3). It is kept within the reach of
the simultaneous interval, as their hybrid estimator is: far from a tie it is the plain estimate,
and near one it is not carried away.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.types import Array


def winner_corrected(estimates: Array, covariance: Array, reach: float) -> tuple[int, float]:
    """(winner, corrected estimate) of jointly normal estimates (graders,).

    `covariance` (graders, graders) is theirs; `reach` is how many standard errors the simultaneous
    interval reaches to each side, within which the corrected value is kept.

    >>> far = winner_corrected(np.array([0.5, 0.0]), np.diag([0.01, 0.01]), 2.5)
    >>> near = winner_corrected(np.array([0.05, 0.0]), np.diag([0.01, 0.01]), 2.5)
    >>> far[0], round(far[1], 3), near[0], round(near[1], 3)
    (0, 0.5, 0, -0.057)
    """
    from scipy.optimize import brentq

    best = int(np.argmax(estimates))
    value, spread = float(estimates[best]), float(np.sqrt(covariance[best, best]))
    if len(estimates) < 2 or not spread > 0:
        return best, value
    ends = _ends(estimates, covariance, best)
    low, high = value - reach * spread, value + reach * spread

    def too_likely(mean: float) -> float:
        """Return the probability of a value up to the observed one, minus a half."""
        return _share_below(value, mean, spread, *ends) - 0.5

    if too_likely(low) <= 0:
        return best, low
    if too_likely(high) >= 0:
        return best, value
    return best, float(brentq(too_likely, low, high))


def _ends(estimates: Array, covariance: Array, best: int) -> tuple[float, float]:
    """The range of values in which this grader wins, with the independent part of the others held
    fixed.
    """
    slope = covariance[:, best] / covariance[best, best]
    rest = estimates - slope * estimates[best]
    low, high = -np.inf, np.inf
    for other in range(len(estimates)):
        if other == best or slope[other] == 1.0:
            continue
        at = float(rest[other] / (1.0 - slope[other]))
        low, high = (max(low, at), high) if slope[other] < 1.0 else (low, min(high, at))
    return low, high


def _share_below(value: float, mean: float, spread: float, low: float, high: float) -> float:
    """P(X <= value) for X normal about `mean` and known to lie between `low` and `high`."""
    from scipy.stats import truncnorm

    ends = ((end - mean) / spread for end in (low, high))
    return float(truncnorm.cdf((value - mean) / spread, *ends))
