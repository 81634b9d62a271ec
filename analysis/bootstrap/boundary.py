"""Intervals where the bootstrap fails since resamples do not vary.

Where all agree, or no unit is affirmative, every resample gives the same value, and
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


def unseen(n_clusters: float, tail: float = _TAIL) -> float:
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
