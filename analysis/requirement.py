"""A requirement: a bound held against its limit, what is said of it, and what would settle it.

Verdicts, the faults that audits find, and the conditions of a gate are requirements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.study.settings.analysis import DecisionSettings

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
    *open* otherwise. `why` gives what is said where it is not met. `is_likely` is True if the
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
    return all(each.is_met for each in held.values())


def likely_met(held: Requirements) -> bool:
    """Return True if every requirement would be met with bounds as narrow as its estimate."""
    return all(each.is_likely for each in held.values())


def reasons(held: Requirements, *states: State) -> list[Reason]:
    """Return the reasons of all requirements in one of these states."""
    return [reason for each in held.values() if each.state in states for reason in each.why()]


def unsettled(held: Requirements) -> list[Bound]:
    """Return each bound that has not cleared its limit."""
    return [each.unsettled for each in held.values() if each.unsettled and not each.is_met]


def rounded_up(worth: float) -> int:
    """Return a number of clusters rounded up, free of rounding errors.

    >>> rounded_up(30.0000000001), rounded_up(29.2)
    (30, 30)
    """
    return math.ceil(worth - 1e-9)


@dataclass(frozen=True)
class ClusterCounts:
    """How many clusters were compared; their effective number, in clusters of equal size (`worth`);
    and the effective number of those with a label of another category than the commonest (`rarer`).
    """

    clusters: int
    worth: float
    rarer: float

    def needed(self, rule: DecisionSettings) -> int:
        """Return how many clusters like these reach the minima of the rule."""
        needed = rule.min_clusters
        if self.worth and rounded_up(self.worth) < needed:
            needed = rounded_up(self.clusters * needed / self.worth)
        if self.rarer:
            needed = max(needed, math.ceil(self.clusters * rule.min_rarer / self.rarer))
        return needed

    def more_to_settle(self, rule: DecisionSettings, held: Requirements) -> int | None:
        """Return how many further clusters would settle these requirements, with a chance of 80%;
        None if no realistic number would.
        """
        return clusters_to_decide(self.clusters, unsettled(held), self.needed(rule))
