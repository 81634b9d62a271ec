"""How many more clusters would decide a question, from the intervals that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.analysis.bootstrap.boundary import unseen
from evenhand.analysis.notes import says
from evenhand.analysis.results import ResultRow

REALISTIC = 20
"""Beyond so many times the present sample, "label more" is no advice."""


@dataclass(frozen=True)
class Bound:
    """An estimate with its interval, and the value that the interval has to clear.

    Where no resample differed, `unseen` is the share of clusters that may be unlike all others.
    """

    low: float
    estimate: float
    high: float
    bound: float
    unseen: float = 0.0

    @classmethod
    def of(cls, row: ResultRow, bound: float) -> Bound:
        """Read off a results row."""
        unvaried = says(row["remarks"], "as_clusters_allow")
        share = unseen(row["n_clusters"]) if unvaried else 0.0
        return cls(row["low"], row["estimate"], row["high"], bound, share)

    @property
    def growth(self) -> float:
        """By what factor the sample must grow until the interval clears the bound.

        Intervals narrow with the root of the number of clusters, if the estimate stays; where no
        resample differed, with the share of clusters that may be unlike those that were seen.

        >>> Bound(0.0, 0.2, 0.4, 0.1).growth.__round__(9)
        4.0
        >>> Bound(-0.2, 0.0, 0.2, -0.1, unseen(36)).growth.__round__(1)
        2.1
        """
        above = self.estimate - self.bound
        if above == 0:
            return math.inf
        room = self.estimate - self.low if above > 0 else self.high - self.estimate
        if self.unseen:
            return math.log1p(-self.unseen) / math.log1p(-self.unseen * abs(above) / room)
        return (room / above) ** 2


def clusters_to_decide(clusters: int, undecided: Sequence[Bound], at_least: int) -> int | None:
    """How many more clusters settle whether all bounds are cleared; None where no realistic number.

    To pass, all must be cleared; where an estimate lies on the wrong side, one that settles it is
    enough. `at_least` are needed in any case.

    >>> clusters_to_decide(100, [Bound(0.0, 0.2, 0.4, 0.1)], 30)
    300
    """
    passing = [each.growth for each in undecided if each.estimate > each.bound]
    failing = [each.growth for each in undecided if each.estimate <= each.bound]
    growth = max(min(failing) if failing else max(passing, default=1.0), 1.0)
    if growth - 1.0 > REALISTIC:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, at_least - clusters, 0))


def clusters_for_width(
    clusters: int, low: float, high: float, wanted: float, at_most: float = REALISTIC
) -> int | None:
    """How many more clusters narrow an interval to half a width of `wanted`.

    None where there is no interval, or more than `at_most` times the present sample is needed.

    >>> clusters_for_width(100, 0.2, 0.6, 0.1), clusters_for_width(100, 0.58, 0.62, 0.05)
    (300, 0)
    """
    growth = ((high - low) / 2 / wanted) ** 2
    if not math.isfinite(growth) or growth - 1.0 > at_most:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, 0))
