"""The requirements that a grader must meet to replace people: the bound, its limit, what is said
where it is not met, and what would settle it.

A requirement is added here, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evenhand.analysis.notes import says
from evenhand.analysis.planning.more_clusters import Bound
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.case import Bounds, Case
from evenhand.analysis.verdicts.wording import Reason

Name = Literal[
    "people_agree",
    "within_margin",
    "above_baselines",
    "both_kinds",
    "enough_clusters",
    "answers",
]


@dataclass(frozen=True)
class Requirement:
    """One requirement, held against the labels.

    `is_met` where the bound clears the limit, `is_broken` where the other bound lies beyond it, and
    `is_likely` where the estimate does as well. `why` gives the reason where it is not met, and
    `unsettled` is the bound that more labels, or people, may bring to clear its limit; None where
    it is a count, which more labels raise in any case.
    """

    is_met: bool
    is_likely: bool
    why: Callable[[], Reason]
    is_broken: bool = False
    unsettled: Bound | None = None


def requirements(case: Case, bounds: Bounds) -> dict[Name, Requirement]:
    """Hold a grader's bounds on one label view against all requirements, in the order in which
    reasons are said.
    """
    difference, rule, margin = case.deciding(bounds), case.rule, -bounds.margin
    people, above, least = bounds.people, bounds.above, case.least_people_kappa
    rarer = bounds.rarer["estimate"]
    share, fewest, most = case.share_scored
    return {
        "people_agree": Requirement(
            is_met=people["low"] > 0 and people["low"] >= least,
            is_likely=people["estimate"] >= least,
            why=lambda: wording.people_hardly_agree(people, least),
            unsettled=_unsettled(people, least, bounds, either_way=True),
        ),
        "within_margin": Requirement(
            is_met=difference["low"] > margin,
            is_broken=difference["high"] < margin,
            is_likely=difference["estimate"] > margin,
            why=lambda: wording.could_be_below(case, bounds),
            unsettled=_unsettled(difference, margin, bounds),
        ),
        "above_baselines": Requirement(
            is_met=above["low"] > 0,
            is_broken=above["high"] <= 0,
            is_likely=above["estimate"] > 0,
            why=lambda: wording.baseline(case, case.kappa or above, clearly=False),
            unsettled=_unsettled(above, 0.0, bounds),
        ),
        "both_kinds": Requirement(
            is_met=rarer >= rule.min_rarer,
            is_likely=True,
            why=lambda: wording.too_few_rarer(rarer, rule.min_rarer, case.noun),
        ),
        "enough_clusters": Requirement(
            is_met=bounds.clusters >= rule.min_clusters,
            is_likely=True,
            why=lambda: wording.too_few_worth(bounds.clusters, rule.min_clusters, case.noun),
        ),
        "answers": Requirement(
            is_met=case.scored_enough,
            is_likely=share >= rule.min_coverage,
            why=lambda: wording.may_leave_out(case),
            unsettled=Bound(fewest, share, most, rule.min_coverage),
        ),
    }


def _unsettled(row: ResultRow, limit: float, bounds: Bounds, *, either_way: bool = False) -> Bound:
    """Return a bound with all that its advice needs: the levels, what varies, and the sample that
    is known to clear it.
    """
    growth = None
    if row is bounds.difference and row["estimate"] > limit:
        found = bounds.to_pass
        growth = found["estimate"] / row["n_clusters"] if found is not None else math.inf
    return Bound(
        row["low"],
        row["estimate"],
        row["high"],
        limit,
        bounds.level.alpha,
        bounds.level.next_alpha,
        varies=not says(row["remarks"], "nothing_varies"),
        of_people=row["deciding"].from_people if row["deciding"] else 0.0,
        either_way=either_way,
        known_growth=growth,
    )
