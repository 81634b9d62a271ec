"""A requirement: a bound held against its limit, its sentences, and what would settle it.

Verdicts, the faults that audits find, and the conditions of a gate are requirements. What would
settle one is a number of further clusters, from the present intervals; or of humans and clusters,
from a pilot's variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import nctdtr, ndtr, ndtri, stdtrit

from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.study.settings.analysis import DecisionSettings

REALISTIC = 10
"""Beyond this multiple of the present sample, "label more" is not given as advice."""
POWER = 0.8
"""Probability that the advised number of further clusters decides the question."""


@dataclass(frozen=True)
class Bound:
    """An estimate with its one-sided bounds and the value that they have to clear. `alpha` is the
    level of these bounds, `next_alpha` of those at the next look.
    """

    low: float
    estimate: float
    high: float
    bound: float
    alpha: float = ALPHA
    next_alpha: float = ALPHA
    varies: bool = True
    """If False the bounds allow for unobserved clusters, and narrow in proportion to the count."""
    of_people: float = 0.0
    """Share of the variance that is between humans, which further clusters do not reduce."""
    either_way: bool = False
    """True if it must be cleared before anything is decided, for or against."""
    known_growth: float | None = None
    """Factor by which the sample must grow, where that is known otherwise."""

    @property
    def growth(self) -> float:
        """Factor by which the sample must grow until a bound clears the value in 80% of studies.

        This assumes that the truth equals the present estimate: the standard error falls with the
        root of the number of clusters, and the distance in standard errors must then suit level and
        power.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1).growth, 2)
        8.17
        """
        if self.known_growth is not None:
            return self.known_growth
        if self.varies or not self._is_decidable:
            return self._factor(1.0 - self.of_people, self.of_people)
        return max(self._room / self._above, 1.0) if self._above > 0 else math.inf

    @property
    def people_growth(self) -> float:
        """Factor by which the number of humans must grow instead, on the present clusters.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1, of_people=0.9).people_growth, 2)
        40.26
        >>> Bound(0.0, 0.2, 0.4, 0.1, of_people=0.8).people_growth
        inf
        """
        return self._factor(self.of_people, 1.0 - self.of_people)

    @property
    def _above(self) -> float:
        return self.estimate - self.bound

    @property
    def _room(self) -> float:
        return self.estimate - self.low if self._above > 0 else self.high - self.estimate

    @property
    def _is_decidable(self) -> bool:
        return self._room > 0 and self.next_alpha > 0 and self._above != 0

    def _factor(self, shrinks: float, stays: float) -> float:
        """Factor by which the share of the variance that `shrinks` must shrink, where another share
        `stays`.
        """
        if not self._is_decidable:
            return math.inf
        distance = abs(self._above) / self._room * -float(ndtri(self.alpha))
        needed = float(ndtri(POWER)) - float(ndtri(self.next_alpha))
        left = (distance / needed) ** 2 - stays
        return max(shrinks / left, 1.0) if left > 0 else math.inf


def surer_level(alpha: float) -> float:
    """Level of a bound that is cleared on average where that at `alpha` is in 80% of studies.

    >>> round(surer_level(0.025), 4)
    0.0025
    """
    return float(ndtr(ndtri(alpha) - ndtri(POWER)))


def clusters_to_decide(clusters: int, undecided: Sequence[Bound], at_least: int) -> int | None:
    """Number of further clusters that settle whether all bounds are cleared; None if unrealistic.

    To pass, all must be cleared; where an estimate lies on the wrong side, one that settles it is
    enough, besides those that are needed either way. `at_least` are needed in any case.

    >>> clusters_to_decide(100, [Bound(0.0, 0.3, 0.6, 0.1)], 30)
    360
    """
    passing = [bound.growth for bound in undecided if bound.estimate > bound.bound]
    failing = [bound.growth for bound in undecided if bound.estimate <= bound.bound]
    either_way = [bound.growth for bound in undecided if bound.either_way]
    growth = max(min(failing) if failing else max(passing, default=1.0), *either_way, 1.0)
    if growth - 1.0 > REALISTIC:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, at_least - clusters, 0))


State = Literal["met", "open", "broken"]


@dataclass(frozen=True)
class Reason:
    """A `sentence` with its figures, and the same in a few words."""

    sentence: str
    short: str = ""


@dataclass(frozen=True)
class Requirement:
    """One requirement, held against the labels.

    It is *met* where the bound clears the limit, *broken* where the other bound lies beyond it, and
    *open* otherwise. `why` gives the reasons why it is not met. `is_likely` is True if the
    estimate clears the limit. `unsettled` is the bound that more labels, or people, may bring to
    clear its limit; None where it is a count, which more labels raise in any case.
    """

    state: State
    why: Callable[[], Sequence[Reason]]
    is_likely: bool = True
    unsettled: Bound | None = None

    @property
    def is_met(self) -> bool:
        """True if the bound clears the limit."""
        return self.state == "met"

    @property
    def is_broken(self) -> bool:
        """True if the requirement clearly is not met."""
        return self.state == "broken"


Requirements = Mapping[str, Requirement]
"""Requirements by name, in the order in which reasons are given."""


def state_of(*, met: bool, broken: bool = False) -> State:
    """Return the state of what is met, else broken, else open."""
    return "met" if met else "broken" if broken else "open"


def all_met(held: Requirements) -> bool:
    """Return True if every requirement is met."""
    return all(need.is_met for need in held.values())


def likely_fault(held: Requirements) -> str:
    """Return, in a few words, why a requirement would be missed even with bounds as narrow as its
    estimate; empty if all would be met.
    """
    unlikely = (reason for need in held.values() if not need.is_likely for reason in need.why())
    return next((reason.short or reason.sentence for reason in unlikely), "")


def reasons(held: Requirements, *states: State) -> list[Reason]:
    """Return the reasons of all requirements in one of these states."""
    return [reason for need in held.values() if need.state in states for reason in need.why()]


def unsettled(held: Requirements) -> list[Bound]:
    """Return each bound that has not cleared its limit."""
    return [need.unsettled for need in held.values() if need.unsettled and not need.is_met]


def rounded_up(clusters: float) -> int:
    """Return a number of clusters rounded up, free of rounding errors.

    >>> rounded_up(30.0000000001), rounded_up(29.2)
    (30, 30)
    """
    return math.ceil(clusters - 1e-9)


@dataclass(frozen=True)
class ClusterCounts:
    """Number of clusters compared; their effective number, in clusters of equal size; and the
    effective number of those with a label of another category than the commonest (`minority`).
    """

    clusters: int
    effective: float
    minority: float

    def more_to_settle(self, rule: DecisionSettings, held: Requirements) -> int | None:
        """Return how many further clusters would settle these requirements, with a chance of 80%,
        and reach the minima of the rule; None if no realistic number would.
        """
        needed = rule.min_clusters
        if self.effective and rounded_up(self.effective) < needed:
            needed = rounded_up(self.clusters * needed / self.effective)
        if self.minority:
            needed = max(needed, math.ceil(self.clusters * rule.min_rarer / self.minority))
        return clusters_to_decide(self.clusters, unsettled(held), needed)


def clusters_for_width(
    clusters: int, low: float, high: float, wanted: float, at_most: float = REALISTIC
) -> int | None:
    """Number of further clusters that narrow an interval to half a width of `wanted`. None where
    there is no interval, or more than `at_most` times the present sample is needed.

    >>> clusters_for_width(100, 0.2, 0.6, 0.1), clusters_for_width(100, 0.58, 0.62, 0.05)
    (300, 0)
    """
    growth = ((high - low) / 2 / wanted) ** 2
    if not math.isfinite(growth) or growth - 1.0 > at_most:
        return None
    return math.ceil(max(clusters * (growth - 1.0) - 1e-9, 0))


_MOST = 100
"""Beyond this multiple of the pilot's clusters, "label more" is not a plan."""


@dataclass(frozen=True)
class Pilot:
    """A grader's difference from the humans' kappa, as estimated in a pilot. `of_clusters` is its
    variance over the pilot's `clusters`, `of_people` that over its `people`, NaN for fewer than
    three. `alpha` is the one-sided level of the next look.
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
        freedom as for the bound (`analysis.bootstrap.bounds.reach_over_people`).

        >>> pilot = Pilot("", "g", 0.0, 0.1, 0.0016, 100, 0.0004, 4, 0.025)
        >>> [round(pilot.chance(150, people), 2) for people in (None, 4, 8)]
        [0.86, 0.72, 0.8]
        """
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
