"""Number of humans and pairs that decide on a grader, from a pilot's variances."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.analysis.planning.more_clusters import POWER

_MOST = 100
"""Beyond this multiple of the pilot's clusters, "label more" is not a plan."""


@dataclass(frozen=True)
class Pilot:
    """A grader's difference from the humans' kappa, as estimated in a pilot.

    `of_clusters` is its variance over the pilot's `clusters`, `of_people` that over its `people`,
    NaN for fewer than three. `alpha` is the one-sided level of the next look.
    """

    rubric: str
    grader: str
    difference: float
    margin: float
    of_clusters: float
    clusters: int
    of_people: float
    people: int
    alpha: float

    def chance(self, clusters: int, people: int | None = None) -> float:
        """Probability that `clusters` clusters decide, if the estimate stays the same.

        Without `people` this is for these humans; else for humans like them, `people` in number.

        A t test on both variances, which fall with the number of clusters and of humans; degrees of
        freedom as for the bound (`analysis.bootstrap.influence.reach_over_people`).

        >>> pilot = Pilot("", "g", 0.0, 0.1, 0.0016, 100, 0.0004, 4, 0.025)
        >>> [round(pilot.chance(150, people), 2) for people in (None, 4, 8)]
        [0.86, 0.72, 0.8]
        """
        from scipy.special import nctdtr, stdtrit

        of_clusters = self.of_clusters * self.clusters / clusters
        of_people = self.of_people * self.people / people if people else 0.0
        both = of_clusters + of_people
        if not both > 0 or not self.alpha > 0:
            return 0.0
        freedom = clusters - 1.0
        if people and of_people:
            parts = of_clusters**2 / (clusters - 1) + of_people**2 / (people - 1)
            freedom = both**2 / parts
        away = abs(self.difference + self.margin) / math.sqrt(both)
        return float(1.0 - nctdtr(freedom, away, stdtrit(freedom, 1.0 - self.alpha)))

    def clusters_to_decide(self, people: int | None = None, power: float = POWER) -> int | None:
        """Return the smallest total number of clusters with a chance of `power`.

        The pilot's are included; None where no realistic number has it.
        """
        low, high = self.clusters - 1, self.clusters
        while self.chance(high, people) < power:
            low, high = high, 2 * high
            if high > _MOST * self.clusters:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance(middle, people) >= power else (middle, high)
        return high
