"""How many more clusters would decide a question, from the intervals that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.analysis.bootstrap.influence import ALPHA

REALISTIC = 10
"""Beyond so many times the present sample, "label more" is no advice."""
POWER = 0.8
"""How likely the number of further clusters that is advised is to decide the question."""


@dataclass(frozen=True)
class Bound:
    """An estimate with its one-sided bounds, the value that they have to clear, and the levels: of
    these bounds, and of those at the next look.
    """

    low: float
    estimate: float
    high: float
    bound: float
    alpha: float = ALPHA
    next_alpha: float = ALPHA
    varies: bool = True
    """Else the bounds speak of clusters not seen yet, and close in with their number itself."""
    of_people: float = 0.0
    """The share of the variance that is people's, which no further cluster takes away."""
    either_way: bool = False
    """It must be cleared before anything is decided, for or against."""
    known_growth: float | None = None
    """What the sample must grow by, where that is known otherwise."""

    @property
    def growth(self) -> float:
        """By what factor the sample must grow until a bound clears the value in 80% of studies.

        If the truth is what is estimated now: the standard error falls with the root of the number
        of clusters, and the distance must then be as many as the level and the chance ask for.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1).growth, 2)
        8.17
        """
        if self.known_growth is not None:
            return self.known_growth
        if not self._room > 0 or not self.next_alpha > 0 or self._above == 0:
            return math.inf
        if not self.varies:
            return max(self._room / self._above, 1.0) if self._above > 0 else math.inf
        left = self._variance_left - self.of_people
        return max((1.0 - self.of_people) / left, 1.0) if left > 0 else math.inf

    @property
    def people_growth(self) -> float:
        """By what factor the number of people must grow instead, on the clusters that there are.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1, of_people=0.9).people_growth, 2)
        40.26
        >>> Bound(0.0, 0.2, 0.4, 0.1, of_people=0.8).people_growth
        inf
        """
        if not self._room > 0 or not self.next_alpha > 0 or self._above == 0:
            return math.inf
        left = self._variance_left - (1.0 - self.of_people)
        return max(self.of_people / left, 1.0) if left > 0 else math.inf

    @property
    def _above(self) -> float:
        return self.estimate - self.bound

    @property
    def _room(self) -> float:
        return self.estimate - self.low if self._above > 0 else self.high - self.estimate

    @property
    def _variance_left(self) -> float:
        """What share of today's variance may be left."""
        from scipy.special import ndtri

        distance = abs(self._above) / self._room * -float(ndtri(self.alpha))
        needed = float(ndtri(POWER)) - float(ndtri(self.next_alpha))
        return (distance / needed) ** 2


def surer_level(alpha: float) -> float:
    """The level of a bound that is cleared on average where that at `alpha` is in 80% of studies.

    >>> round(surer_level(0.025), 4)
    0.0025
    """
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(alpha) - ndtri(POWER)))


def clusters_to_decide(clusters: int, undecided: Sequence[Bound], at_least: int) -> int | None:
    """How many more clusters settle whether all bounds are cleared; None where no realistic number.

    To pass, all must be cleared; where an estimate lies on the wrong side, one that settles it is
    enough, beside those that are needed either way. `at_least` are needed in any case.

    >>> clusters_to_decide(100, [Bound(0.0, 0.3, 0.6, 0.1)], 30)
    360
    """
    passing = [each.growth for each in undecided if each.estimate > each.bound]
    failing = [each.growth for each in undecided if each.estimate <= each.bound]
    either_way = [each.growth for each in undecided if each.either_way]
    growth = max(min(failing) if failing else max(passing, default=1.0), *either_way, 1.0)
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
