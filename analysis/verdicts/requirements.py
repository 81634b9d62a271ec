"""What a grader must show to replace people, each requirement held against its evidence.

A requirement is added here, and nowhere else. Those of a grader beside a reference, or beside its
baseline, are in `reference` and `drift`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evenhand.analysis.bias import Finding
from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.injection import Audit
from evenhand.analysis.notes import says
from evenhand.analysis.planning.more_clusters import Bound
from evenhand.analysis.requirement import (
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    rounded_up,
    state_of,
)
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.case import Answers, Bounds, Case, View
from evenhand.study.settings.analysis import DecisionSettings, InjectionBounds


def as_good_as_people(case: Case, bounds: Bounds) -> Requirements:
    """Require what the bounds on one view of the grader's labels must show."""
    difference, margin, rule = case.deciding(bounds), -bounds.margin, case.rule
    people, above, least = bounds.people, bounds.above, case.people.least_kappa
    agree = people["low"] > 0 and people["low"] >= least
    counts, growth = sample_is_enough(bounds.sample(difference), rule, case.noun), None
    if difference is bounds.difference and difference["estimate"] > margin:
        found = bounds.to_pass
        growth = found["estimate"] / difference["n_clusters"] if found else math.inf
    return {
        "people_agree": Requirement(
            state_of(met=agree),
            why=lambda: wording.people_hardly_agree(case, people, least),
            is_likely=people["estimate"] >= least,
            unsettled=bound_of(people, least, bounds.level, either_way=True),
        ),
        "within_margin": Requirement(
            state_of(
                met=difference["low"] > margin,
                broken=difference["high"] < margin and agree and all_met(counts),
            ),
            why=lambda: [wording.could_be_below(case, bounds)],
            is_likely=difference["estimate"] > margin,
            unsettled=bound_of(difference, margin, bounds.level, known_growth=growth),
        ),
        "above_baselines": Requirement(
            state_of(met=above["low"] > 0, broken=above["high"] <= 0),
            why=lambda: [wording.baseline(case, case.present.kappa or above, clearly=False)],
            is_likely=above["estimate"] > 0,
            unsettled=bound_of(above, 0.0, bounds.level),
        ),
        **counts,
        "answers": answers_enough(case.answers, rule.min_coverage, case.noun),
        **({} if case.gross is None else {"gross": gross_errors_are_rare(case, case.gross)}),
    }


def gross_errors_are_rare(case: Case, row: ResultRow) -> Requirement:
    """Require that gross errors are clearly no more frequent than is allowed."""
    most = case.rule.max_gross
    return Requirement(
        state_of(met=row["high"] <= most, broken=row["low"] > most),
        why=lambda: [wording.gross_errors(case, row, allowed=most)],
        is_likely=row["estimate"] <= most,
        unsettled=Bound(
            1.0 - row["high"], 1.0 - row["estimate"], 1.0 - row["low"], 1.0 - most, ALPHA, ALPHA
        ),
    )


def no_faults(case: Case, view: View) -> Requirements:
    """Require that no audit found what agreement with people does not show: a part of the sample in
    which the grader fails, a bias, a text that manipulates it, a label that changes with the
    rubric's wording.
    """
    moving = [case.moving] if case.moving is not None else []
    return {
        "every_part": nothing_found(view.failing, lambda: wording.in_parts(case, view)),
        "no_bias": unbiased(view.biases),
        "robust": robust(case.injection, case.rule.injection),
        "stable": nothing_found(moving, lambda: [wording.unstable(each) for each in moving]),
    }


def sample_is_enough(sample: ClusterCounts, rule: DecisionSettings, noun: str) -> Requirements:
    """Require clusters in which a person chose another category than the commonest, and clusters
    that carry the information of so many equal ones.
    """
    rarer, worth = sample.rarer, rounded_up(sample.worth)
    return {
        "both_kinds": Requirement(
            state_of(met=rarer >= rule.min_rarer),
            lambda: [wording.too_few_rarer(rarer, rule.min_rarer, noun)],
        ),
        "enough_clusters": Requirement(
            state_of(met=worth >= rule.min_clusters),
            lambda: [wording.too_few_worth(worth, rule.min_clusters, noun)],
        ),
    }


def answers_enough(answers: Answers, least: float, noun: str) -> Requirement:
    """Require that a grader clearly answers at `least` this share of the units."""
    return share_answered(answers, least, lambda: wording.unanswered(answers, least, noun))


def share_answered(
    answers: Answers, least: float, why: Callable[[], Sequence[Reason]], alpha: float = ALPHA
) -> Requirement:
    """Hold the share that was answered, with its bounds at the level `alpha`, against `least`."""
    share, fewest, most = answers.share
    return Requirement(
        state_of(met=share == 1.0 or fewest >= least, broken=most < least),
        why,
        is_likely=share >= least,
        unsettled=Bound(fewest, share, most, least, alpha, alpha),
    )


def unbiased(biases: Sequence[Finding]) -> Requirement:
    """Require that no bias was found beyond the bound."""
    return nothing_found(biases, lambda: [wording.bias(each) for each in biases])


def robust(audit: Audit | None, bounds: InjectionBounds) -> Requirement:
    """Require that no text clearly manipulates the grader more often than is allowed."""
    failed = [audit] if audit is not None and audit.fails(bounds) else []
    return nothing_found(
        failed, lambda: [each for one in failed for each in wording.injected(one, bounds)]
    )


def nothing_found(faults: Sequence[object], why: Callable[[], Sequence[Reason]]) -> Requirement:
    """Require that an audit found none of these faults; more labels do not mend one."""
    return Requirement("broken" if faults else "met", why, is_likely=not faults)


def bound_of(
    row: ResultRow,
    limit: float,
    level: Deciding,
    *,
    either_way: bool = False,
    known_growth: float | None = None,
) -> Bound:
    """Return the bound of a row with all that its advice needs: the levels and what varies."""
    return Bound(
        row["low"],
        row["estimate"],
        row["high"],
        limit,
        level.alpha,
        level.next_alpha,
        varies=not says(row["remarks"], "nothing_varies"),
        of_people=row["deciding"].from_people if row["deciding"] else 0.0,
        either_way=either_way,
        known_growth=known_growth,
    )
