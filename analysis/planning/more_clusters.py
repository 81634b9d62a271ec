"""How many more clusters would decide a question, from the intervals that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.analysis.bootstrap.influence import ALPHA

REALISTIC = 20
"""Beyond so many times the present sample, "label more" is no advice."""


CHANCE = 0.8
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

    @property
    def growth(self) -> float:
        """By what factor the sample must grow until a bound clears the value in 80% of studies.

        The next estimate is predicted from this one: its distance to the value is normal about
        today's, with the variance that this estimate and the further clusters leave (predictive
        power, Spiegelhalter, Freedman & Blackburn 1986). Either answer decides.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1).growth, 1)
        23.4
        """
        from scipy.optimize import brentq
        from scipy.special import ndtr, ndtri

        above = self.estimate - self.bound
        room = self.estimate - self.low if above > 0 else self.high - self.estimate
        if not room > 0 or not self.next_alpha > 0:
            return math.inf
        distance = abs(above) / room * -float(ndtri(self.alpha))
        critical = -float(ndtri(self.next_alpha))

        def too_unsure(share: float) -> float:
            """By how much the chance falls short where today's sample is this share of the next."""
            left, needed = math.sqrt(1.0 - share), critical * math.sqrt(share)
            clears = ndtr((distance - needed) / left) + ndtr((-distance - needed) / left)
            return CHANCE - float(clears)

        least = 1.0 / (2.0 * (1.0 + REALISTIC))
        if too_unsure(least) > 0:
            return math.inf
        most = 1.0 - 1e-6
        return 1.0 / float(brentq(too_unsure, least, most)) if too_unsure(most) > 0 else 1.0


def clusters_to_decide(clusters: int, undecided: Sequence[Bound], at_least: int) -> int | None:
    """How many more clusters settle whether all bounds are cleared; None where no realistic number.

    To pass, all must be cleared; where an estimate lies on the wrong side, one that settles it is
    enough. `at_least` are needed in any case.

    >>> clusters_to_decide(100, [Bound(0.0, 0.3, 0.6, 0.1)], 30)
    1035
    """
    passing = [each.growth for each in undecided if each.estimate > each.bound]
    failing = [each.growth for each in undecided if each.estimate <= each.bound]
    growth = max(min(failing) if failing else max(passing, default=1.0), 1.0)
    if growth - 1.0 > REALISTIC:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, at_least - clusters, 0))


def clusters_for_width(clusters: int, low: float, high: float, wanted: float) -> int | None:
    """How many more clusters narrow an interval to half a width of `wanted`; None if unrealistic.

    >>> clusters_for_width(100, 0.2, 0.6, 0.1)
    300
    """
    growth = ((high - low) / 2 / wanted) ** 2
    if math.isnan(growth) or growth - 1.0 > REALISTIC:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, 0))
