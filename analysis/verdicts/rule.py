"""When a grader may stand in for people: the rule, declared before the grades are read."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.errors import InputError


@dataclass(frozen=True)
class DecisionRule:
    """What a grader must meet, always by the bound of an interval, never by an estimate.

    `margin`: how far, in kappa, its agreement with people may lie below theirs with each other.
    `min_coverage`: the share of what it was asked that it must have scored. `min_clusters`: with
    fewer a bootstrap interval is too narrow to recommend anything on. `bias_bound`: no audited bias
    may lie wholly beyond it. `min_stability`: kappa from wording to wording of the rubric, below
    which a label moves with the wording. That it must beat both baselines is no option.
    `min_information`: one that falls short may be used with correction where the lower bound of its
    kappa with people is at least this share of people's own.

    >>> DecisionRule(margin=0.05).sentence
    'at most 0.05 kappa below people, better than both baselines, at least 98% scored, 30 clusters \
or more, no bias beyond 0.1, no label that moves with the wording (kappa below 0.8)'
    """

    margin: float = 0.1
    min_coverage: float = 0.98
    min_clusters: int = 30
    bias_bound: float = 0.1
    min_stability: float = 0.8
    min_information: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise InputError(f"the margin is {self.margin}; it must lie between 0 and 2")
        if not 0 <= self.min_coverage <= 1:
            raise InputError(f"the least coverage is {self.min_coverage}; it is a share, 0 to 1")
        if self.min_clusters < 5:
            raise InputError(f"the fewest clusters are {self.min_clusters}; it must be 5 or more")
        if self.bias_bound < 0:
            raise InputError(f"the bound of bias is {self.bias_bound}; it must not be negative")
        if not -1 <= self.min_stability <= 1:
            raise InputError(f"the least stability is {self.min_stability}; it is a kappa")
        if not 0 < self.min_information <= 1:
            raise InputError(f"the least information is {self.min_information}; it is a share")

    @property
    def sentence(self) -> str:
        """The rule in words."""
        return (
            f"at most {self.margin:g} kappa below people, better than both baselines, at least "
            f"{self.min_coverage:.0%} scored, {self.min_clusters} clusters or more, no bias beyond "
            f"{self.bias_bound:g}, no label that moves with the wording (kappa below "
            f"{self.min_stability:g})"
        )
