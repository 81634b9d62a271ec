"""Intervals where the bootstrap fails: shares of few cases, and resamples that do not vary.

*Few cases.* Resamples of two affirmative units in fifty contain no third. Where fewer than ten
cases lie on the rarer side of a share, its interval is Wilson's (1927) on the effective sample
size, units over the design effect, with Student's t in place of the normal quantile (Korn &
Graubard 1998).

*No variation.* Where all agree, or no unit is affirmative, every resample gives the same value, and
its quantiles are one number. Yet n identical clusters rule out, at 97.5%, only that more than 1 -
.025^(1/n) of all clusters differ from them: the bound of Clopper & Pearson (1934) for none of n.
The interval lets a statistic move as far as that share of clusters, each at an end of the
statistic's range, could move it. For a share this is Clopper and Pearson's interval. A kappa of 1
falls by that share over the disagreement expected by chance: 1 - share / (1 - pe).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.bootstrap.intervals import LEVEL, Interval
from evenhand.analysis.notes import Remark
from evenhand.analysis.statistics import Kind, entry_for
from evenhand.analysis.types import Array
from evenhand.study.settings.analysis import OrderedWeights

FEW_CASES = 10
"""Fewer expected cases on the rarer side of a share have Wilson's interval. By simulation (true
share .02 to .5, 10 to 250 clusters of 1 or 4 units): with 5, one tail still misses .04."""

_TAIL = (1.0 - LEVEL) / 2.0
_NO_WIDTH = 1e-12


def kind_of(name: str) -> Kind | None:
    """Return the kind of a statistic of results.csv, or None where its range is not known.

    >>> kind_of("coverage"), kind_of("consensus_kappa"), kind_of("stability_sd")
    ('share', 'coefficient', None)
    """
    return entry_for(name).kind


@dataclass(frozen=True)
class Chance:
    """Disagreement that coefficients expect by chance.

    Computed from the categories' shares (q,) of the humans' labels, and from the weights of the
    deciding kappa if they are `ordered`; `values` are those of numbers.
    """

    shares: Array
    ordered: OrderedWeights | None = None
    values: tuple[float, ...] = ()

    def disagreement(self, name: str) -> float:
        """Return 1 - pe for a statistic, by the raters' pooled shares; AC and Brennan-Prediger by
        equal ones, which is the most that they ever take. Weights are the statistic's own, else
        those of the deciding kappa.
        """
        if self.values:
            at = np.asarray(self.values)
            at = at / max(float(np.ptp(at)), 1e-300)
            if (entry_for(name).weights or self.ordered) == "linear":
                return float(self.shares @ np.abs(at[:, None] - at) @ self.shares)
            return float(2.0 * self.shares @ (at - self.shares @ at) ** 2)
        q, entry = len(self.shares), entry_for(name)
        apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / max(q - 1, 1)
        weights = entry.weights or (self.ordered or "identity")
        apart = {"identity": np.sign(apart), "linear": apart, "quadratic": apart**2}[weights]
        if entry.chance == "uniform":
            return float(apart.mean())
        return float(self.shares @ apart @ self.shares)


def unseen(n_clusters: int, tail: float = _TAIL) -> float:
    """Return the largest share of clusters that may differ from all n observed ones, at 97.5%, or 1
    less the `tail`.

    >>> round(unseen(60), 4)
    0.0596
    """
    return float(1.0 - tail ** (1.0 / n_clusters))


def widened(found: Interval, n_clusters: int, kind: Kind | None, apart: float = 1.0) -> Interval:
    """Widen an interval without width as far as the number of clusters allows; keep any other.

    `apart` is the disagreement expected by chance, for coefficients and their differences. Where
    the statistic's range is not known there is no interval.

    >>> widened(Interval(1.0, 1.0, 1.0), 60, "coefficient", 0.5).low.__round__(4)
    0.8807
    """
    if kind == "place" or not found.high - found.low <= _NO_WIDTH:
        return found
    if kind is None or n_clusters < 1:
        return Interval.point(found.estimate, (*found.remarks, Remark("no_resample_differs")))
    at, share = found.estimate, unseen(n_clusters)
    reach = 1.0 / apart if apart > 0 else math.inf
    first, last = {
        "share": (0.0, 1.0),
        "unit": (0.0, 1.0),
        "signed": (-1.0, 1.0),
        "coefficient": (1.0 - reach, 1.0),
        "difference": (at - reach, at + reach),
    }[kind]
    floor = 0.0 if kind in ("share", "unit") else -1.0
    low, high = at - share * (at - first), at + share * (last - at)
    low, high = max(low, min(floor, at)), min(high, max(1.0, at))
    remarks = (*found.remarks, Remark("as_clusters_allow", (n_clusters,)))
    return replace(found, low=low, high=high, remarks=remarks)


def share_interval(
    found: Interval, drawn: Array, n_units: int, n_clusters: int, labelled: int | None = None
) -> Interval:
    """Return the interval of a share: Wilson's where cases are few, else `found` unchanged.

    `drawn` are the resampled values. Without variation it is left to `widened`. A rate that is
    corrected by `labelled` of its units may be 0 while its resamples vary: it then counts as if one
    of these were affirmative.
    """
    if math.isnan(found.low) or n_clusters < 2:
        return found
    least = 1.0 / (labelled or n_units)
    share = min(max(found.estimate, least), 1.0 - least)
    size = effective_size(share, drawn, n_units, n_clusters)
    if math.isnan(size) or size * min(found.estimate, 1.0 - found.estimate) >= FEW_CASES:
        return found
    low, high = wilson(found.estimate, size * student_shrinkage(n_clusters))
    return replace(found, low=low, high=high)


def effective_size(share: float, drawn: Array, n_units: int, n_clusters: int) -> float:
    """Number of independent units that would estimate a share as precisely.

    This is p (1 - p) over its variance.

    At most the number of units; NaN where nothing varies.
    """
    variance = float(np.nanvar(drawn)) * n_clusters / (n_clusters - 1)
    if variance < _NO_WIDTH:
        return math.nan
    return min(share * (1.0 - share) / variance, n_units)


def student_shrinkage(n_clusters: int) -> float:
    """Factor on an effective size for its estimated variance: (z / t)^2.

    Korn & Graubard (1998), t on clusters - 1 degrees of freedom.

    >>> round(student_shrinkage(10), 3), round(student_shrinkage(250), 3)
    (0.751, 0.99)
    """
    from scipy.special import ndtri, stdtrit

    return float((ndtri(1.0 - _TAIL) / stdtrit(n_clusters - 1, 1.0 - _TAIL)) ** 2)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95% interval (1927) of a share of n; n need not be whole.

    Newcombe (1998, Table I) has 0.2553 to 0.3662 for 81 of 263 and 0 to 0.1611 for 0 of 20.

    >>> [round(bound, 4) for bound in (*wilson(81 / 263, 263), *wilson(0, 20))]
    [0.2553, 0.3662, 0.0, 0.1611]
    """
    from scipy.special import ndtri

    z2 = float(ndtri(1.0 - _TAIL)) ** 2
    middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = math.sqrt(z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))) / (1.0 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
