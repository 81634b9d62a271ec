"""Requirements: bounds that are compared with limits, the reasons in words, and the number of
further clusters or humans that would decide them.

Verdicts, audits and drifts consist of requirements (`Requirement`). The number of further clusters
is computed from the present intervals (`Bound`, `clusters_to_decide`), the number of humans and
clusters of the next study from the variances in a pilot (`Pilot`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import nctdtr, ndtr, ndtri, stdtrit

from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.study.settings.analysis import DecisionSettings

MAX_GROWTH = 10
"""Most further clusters for each present one that "label more" advises."""
POWER = 0.8
"""Probability that the advised number of further clusters decides the question."""


def rounded_up(clusters: float) -> int:
    """Return a number of clusters rounded up, without floating-point errors.

    >>> rounded_up(30.0000000001), rounded_up(29.2)
    (30, 30)
    """
    return math.ceil(clusters - 1e-9)


@dataclass(frozen=True)
class Bound:
    """An estimate with its one-sided bounds `low` and `high`, and the `limit` that one of them has
    to clear. `alpha` is the level of these bounds, `next_alpha` that at the next interim analysis.
    """

    low: float
    estimate: float
    high: float
    limit: float
    alpha: float = ALPHA
    next_alpha: float = ALPHA
    varies: bool = True
    """False if the data do not vary: the bounds then allow for unobserved clusters, and their width
    falls in proportion to the number of clusters."""
    from_people: float = 0.0
    """Share of the variance that is between humans, which further clusters do not reduce."""
    either_way: bool = False
    """True if both a pass and a failure need this limit cleared, such as that of people's kappa."""
    known_growth: float | None = None
    """Factor by which the sample must grow, if it was computed elsewhere."""

    @property
    def growth(self) -> float:
        """Factor by which the sample must grow for a bound to clear the limit in 80% of studies, if
        the present estimate is true. The standard error falls with the root of the number of
        clusters, until the distance in standard errors is enough for level and power.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1).growth, 2)
        8.17
        """
        if self.known_growth is not None:
            return self.known_growth
        if self.varies or not self._is_decidable:  # if not decidable, the factor is inf
            return self._factor(reducible=1.0 - self.from_people, fixed=self.from_people)
        # The width of bounds without variation falls in proportion to the number of clusters.
        return max(self._half_width / self._distance, 1.0) if self._distance > 0 else math.inf

    @property
    def people_growth(self) -> float:
        """Factor by which the number of humans must grow instead, on the present clusters.

        >>> round(Bound(0.0, 0.2, 0.4, 0.1, from_people=0.9).people_growth, 2)
        40.26
        >>> Bound(0.0, 0.2, 0.4, 0.1, from_people=0.8).people_growth
        inf
        """
        return self._factor(reducible=self.from_people, fixed=1.0 - self.from_people)

    @property
    def _distance(self) -> float:
        """Distance of the estimate above the limit, negative below it."""
        return self.estimate - self.limit

    @property
    def _half_width(self) -> float:
        """Distance of the estimate from its bound on the limit's side."""
        return self.estimate - self.low if self._distance > 0 else self.high - self.estimate

    @property
    def _is_decidable(self) -> bool:
        """True if a larger sample can decide."""
        return self._half_width > 0 and self.next_alpha > 0 and self._distance != 0

    def _factor(self, reducible: float, fixed: float) -> float:
        """Return the factor by which the `reducible` share of variance must fall; `fixed` stays."""
        if not self._is_decidable:
            return math.inf
        # Distance of the estimate from the limit in standard errors: now, and required.
        distance = abs(self._distance) / self._half_width * -float(ndtri(self.alpha))
        required = float(ndtri(POWER)) - float(ndtri(self.next_alpha))
        remaining = (distance / required) ** 2 - fixed
        return max(reducible / remaining, 1.0) if remaining > 0 else math.inf


def level_for_power(alpha: float) -> float:
    """Return the level at which the bound of an average estimate just clears a limit, if the bounds
    at `alpha` clear it in 80% of studies.

    >>> round(level_for_power(0.025), 4)
    0.0025
    """
    return float(ndtr(ndtri(alpha) - ndtri(POWER)))


def clusters_to_decide(
    clusters: int, undecided: Sequence[Bound], at_least: int, at_most: float = MAX_GROWTH
) -> int | None:
    """Return the number of further clusters that decide whether all limits are cleared; None if it
    is more than `at_most` times the present number.

    A pass needs all limits to be cleared. If an estimate lies on the wrong side of its limit, one
    such bound is enough to fail; those needed `either_way` must be cleared as well. The sample
    needs `at_least` clusters in any case.

    >>> clusters_to_decide(100, [Bound(0.0, 0.3, 0.6, 0.1)], 30)
    360
    """
    passing = [bound.growth for bound in undecided if bound.estimate > bound.limit]
    failing = [bound.growth for bound in undecided if bound.estimate <= bound.limit]
    either_way = [bound.growth for bound in undecided if bound.either_way]
    to_pass_or_fail = min(failing) if failing else max(passing, default=1.0)
    growth = max(to_pass_or_fail, *either_way, 1.0)
    if growth - 1.0 > at_most:
        return None
    return max(rounded_up(clusters * (growth - 1.0)), at_least - clusters, 0)


State = Literal["met", "open", "broken"]


@dataclass(frozen=True)
class Reason:
    """Reason for a verdict: a `sentence` with its figures, and a `short` form of a few words."""

    sentence: str
    short: str = ""


@dataclass(frozen=True)
class Requirement:
    """Outcome of one requirement.

    The state is *met* if the bound clears the limit, *broken* if the other bound lies beyond it,
    and *open* otherwise. `why` returns the reasons why the requirement is not met. `is_likely` is
    True if the estimate clears the limit. `unsettled` is the bound that may clear its limit with
    more labels or people; None for a count, which more labels raise in any case.
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
        """True if the other bound lies beyond the limit."""
        return self.state == "broken"


Requirements = Mapping[str, Requirement]
"""Requirements by name, in the order in which reasons are given."""


def state_of(*, met: bool, broken: bool = False) -> State:
    """Return "met", else "broken", else "open"."""
    return "met" if met else "broken" if broken else "open"


def all_met(needs: Requirements) -> bool:
    """Return True if every requirement is met."""
    return all(need.is_met for need in needs.values())


def likely_fault(needs: Requirements) -> str:
    """Return the reason of the first requirement whose estimate misses the limit; "" if none."""
    faults = (reason for need in needs.values() if not need.is_likely for reason in need.why())
    return next((reason.short or reason.sentence for reason in faults), "")


def reasons(needs: Requirements, *states: State) -> list[Reason]:
    """Return the reasons of all requirements in one of these states."""
    return [reason for need in needs.values() if need.state in states for reason in need.why()]


def unsettled(needs: Requirements) -> list[Bound]:
    """Return the bounds that have not cleared their limits."""
    return [need.unsettled for need in needs.values() if need.unsettled and not need.is_met]


@dataclass(frozen=True)
class ClusterCounts:
    """Number of `clusters` compared; their `effective` number, in clusters of equal size; and the
    effective number of those with a label of another category than the commonest (`minority`).
    """

    clusters: int
    effective: float
    minority: float

    def more_to_settle(
        self, rule: DecisionSettings, requirements: Requirements, at_most: float = MAX_GROWTH
    ) -> int | None:
        """Return the number of further clusters that decide these requirements with a probability
        of 80%, and reach the minima of the rule; None if it is more than `at_most` times as many.
        """
        needed = rule.min_clusters
        if self.effective and rounded_up(self.effective) < needed:
            # As many as give the effective number if its ratio to `clusters` stays the same.
            needed = rounded_up(self.clusters * needed / self.effective)
        if self.minority:
            needed = max(needed, math.ceil(self.clusters * rule.min_rarer / self.minority))
        return clusters_to_decide(self.clusters, unsettled(requirements), needed, at_most)


def clusters_for_width(clusters: int, low: float, high: float, half_width: float) -> int | None:
    """Return the number of further clusters with which half the interval is `half_width`; None if
    there is no interval, or more than `MAX_GROWTH` times the present sample is needed.

    >>> clusters_for_width(100, 0.2, 0.6, 0.1), clusters_for_width(100, 0.58, 0.62, 0.05)
    (300, 0)
    """
    growth = ((high - low) / 2 / half_width) ** 2
    if not math.isfinite(growth) or growth - 1.0 > MAX_GROWTH:
        return None
    return max(rounded_up(clusters * (growth - 1.0)), 0)


MAX_PILOT_GROWTH = 100
"""Largest multiple of the pilot's clusters that is planned."""


@dataclass(frozen=True)
class Pilot:
    """A grader's difference from the humans' kappa, as estimated in a pilot, and its variances over
    the pilot's `clusters` and over its `people` (NaN for fewer than three). `alpha` is the
    one-sided level of the next interim analysis. The verdict is decided by the number of clusters
    `these` for the same humans, and by `like_these` for as many like them, if it is about these.
    Both are None if no number decides it, because of what the verdict says: `stopped_by`.
    """

    rubric: str
    grader: str
    difference: float
    margin: float
    cluster_variance: float
    clusters: int
    people_variance: float
    people: int
    alpha: float
    these: int | None = None
    like_these: int | None = None
    stopped_by: str = ""

    def chance(self, clusters: int, people: int) -> float:
        """Return the probability that these numbers of clusters and of humans decide on the
        difference for humans like these, if the estimate is true.

        It is the power of a t test on both variances, which fall with the numbers of clusters and
        humans; degrees of freedom as for the bound (`bounds.reach_over_people`).

        >>> sample = {"cluster_variance": 0.0016, "clusters": 100, "people": 4, "alpha": 0.025}
        >>> pilot = Pilot("", "", difference=0.0, margin=0.1, people_variance=0.0004, **sample)
        >>> [round(pilot.chance(150, people), 2) for people in (4, 8)]
        [0.72, 0.8]
        """
        cluster_variance = self.cluster_variance * self.clusters / clusters
        people_variance = self.people_variance * self.people / people
        variance = cluster_variance + people_variance
        if not variance > 0 or not self.alpha > 0:
            return 0.0
        squares = cluster_variance**2 / (clusters - 1) + people_variance**2 / (people - 1)
        df = variance**2 / squares  # Welch-Satterthwaite
        noncentrality = abs(self.difference + self.margin) / math.sqrt(variance)  # from -margin
        return float(1.0 - nctdtr(df, noncentrality, stdtrit(df, 1.0 - self.alpha)))

    def clusters_to_decide(self, people: int) -> int | None:
        """Return the smallest number of clusters, with the pilot's, with which the verdict on
        `people` humans like these is decided with a probability of 80%; None above 100 times the
        pilot's. Those that decide it for the same humans are needed in any case.
        """
        enough = [self.like_these] if self.like_these else []
        if self.these is None or (enough and people == self.people):
            return self.like_these
        low, high = self.these - 1, self.these  # too few, and enough, after doubling
        while self.chance(high, people) < POWER:
            low, high = high, 2 * high
            if high > MAX_PILOT_GROWTH * self.clusters:
                return self.like_these
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance(middle, people) >= POWER else (middle, high)
        return min([high, *enough])
