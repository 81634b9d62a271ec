"""Requirements that a grader must meet to replace people, each held against its evidence.

A requirement is added here, and nowhere else. Those of a grader against a reference, or against its
baseline, are in `reference` and `drift`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.injection import Audit
from evenhand.analysis.notes import says
from evenhand.analysis.requirement import (
    Bound,
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    rounded_up,
    state_of,
)
from evenhand.analysis.results import ResultRow
from evenhand.analysis.statistics import shown_apart
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.evidence import Answers, Bounds, VerdictEvidence, View
from evenhand.analysis.verdicts.wording import because
from evenhand.study.settings.analysis import DecisionSettings, InjectionBounds
from evenhand.texts import written


def as_good_as_people(case: VerdictEvidence, bounds: Bounds) -> Requirements:
    """Require what the bounds on one view of the grader's labels must show."""
    difference, margin, rule = case.deciding(bounds), -bounds.margin, case.rule
    people, above, least = bounds.people, bounds.above_baseline, case.people.least_kappa
    agree = people["low"] > 0 and people["low"] >= least
    counts, growth = sample_is_enough(bounds.sample(difference), rule, case.noun), None
    if difference is bounds.difference and difference["estimate"] > margin:
        needed = bounds.clusters_to_pass
        growth = needed["estimate"] / difference["n_clusters"] if needed else math.inf

    def hardly_agree() -> list[Reason]:
        name = "people_may_not_agree" if people["estimate"] >= least else "people_hardly_agree"
        kappa, low = (shown_apart(people[end], [least]) for end in ("estimate", "low"))
        why = [because(name, kappa=kappa, low=low, least=least)]
        for within, across in zip(case.people.sides[::2], case.people.sides[1::2], strict=True):
            apart = {"within": within["estimate"], "across": across["estimate"]}
            column = within["at"].rpartition("=")[0]
            why.append(because("sides_differ", column=column, **apart))
        # A clearer rubric does not help where some of them label the other way round, or by side.
        by_side = any(row["estimate"] >= least for row in case.people.sides[::2])
        if name == "people_hardly_agree" and not case.people.opposed and not by_side:
            why.append(because("clearer_rubric"))
        return why

    def could_be_below() -> list[Reason]:
        fields = {
            "figures": wording.compared(case, bounds),
            "chance": wording.percent(bounds.chance["estimate"]),
            "apart": shown_apart(-difference["low"], [bounds.margin]),
        }
        return [because("could_be_below", **fields)]

    return {
        "people_agree": Requirement(
            state_of(met=agree),
            why=hardly_agree,
            is_likely=people["estimate"] >= least,
            unsettled=bound_of(people, least, bounds.level, either_way=True),
        ),
        "within_margin": Requirement(
            state_of(
                met=difference["low"] > margin,
                broken=difference["high"] < margin and agree and all_met(counts),
            ),
            why=could_be_below,
            is_likely=difference["estimate"] > margin,
            unsettled=bound_of(difference, margin, bounds.level, known_growth=growth),
        ),
        "above_baselines": Requirement(
            state_of(met=above["low"] > 0, broken=above["high"] <= 0),
            why=lambda: [baseline(case, case.present.kappa or above, "not_above_baseline")],
            is_likely=above["estimate"] > 0,
            unsettled=bound_of(above, 0.0, bounds.level),
        ),
        **counts,
        "answers": answers_enough(case.answers, rule.min_coverage, case.noun),
        **({} if case.gross is None else {"gross": gross_errors_are_rare(case, case.gross)}),
    }


def baseline(
    case: VerdictEvidence,
    kappa: ResultRow,
    name: Literal["not_above_baseline", "no_better_than_baseline"],
) -> Reason:
    """Reason that the grader is not clearly better than a baseline, or no better."""
    figures = wording.mean_kappa(kappa, case.noun)
    return because(name, to_beat=case.best_baseline_kappa, figures=figures)


def gross_errors_are_rare(case: VerdictEvidence, row: ResultRow) -> Requirement:
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


def no_faults(case: VerdictEvidence, view: View) -> Requirements:
    """Require that no audit found what agreement with people does not show: a part of the sample in
    which the grader fails, a bias, a text that manipulates it, a label that changes with the
    rubric's wording.
    """
    unstable = case.wording_unstable

    def moves() -> list[Reason]:
        if unstable is None:
            return []
        interval = wording.interval_of(unstable["low"], unstable["high"])
        return [because("wording", kappa=unstable["estimate"], interval=interval)]

    return {
        "every_part": nothing_found(view.failing, lambda: wording.in_parts(case, view)),
        "no_bias": unbiased(view),
        "robust": robust(case.injection, case.rule.injection),
        "stable": nothing_found(unstable, moves),
    }


def sample_is_enough(sample: ClusterCounts, rule: DecisionSettings, noun: str) -> Requirements:
    """Require clusters in which a person chose another category than the commonest, and clusters
    that carry the information of so many equal ones.
    """
    minority, effective = sample.minority, rounded_up(sample.effective)
    few = {"rarer": minority, "least": rule.min_rarer, "noun": noun}
    unequal = {"worth": effective, "least": rule.min_clusters, "noun": noun}
    return {
        "both_kinds": Requirement(
            state_of(met=minority >= rule.min_rarer), lambda: [because("too_few_rarer", **few)]
        ),
        "enough_clusters": Requirement(
            state_of(met=effective >= rule.min_clusters),
            lambda: [because("too_few_worth", **unequal)],
        ),
    }


def answers_enough(
    answers: Answers,
    least: float,
    noun: str,
    room: Literal["because", "drift"] = "because",
    alpha: float = ALPHA,
) -> Requirement:
    """Require that a grader clearly answers at `least` this share of the units, whose bounds are at
    the level `alpha`; the sentences are those of a `room` of the texts.
    """
    share, fewest, most = answers.share
    return Requirement(
        state_of(met=share == 1.0 or fewest >= least, broken=most < least),
        why=lambda: wording.unanswered(answers, least, noun, room),
        is_likely=share >= least,
        unsettled=Bound(fewest, share, most, least, alpha, alpha),
    )


def unbiased(view: View) -> Requirement:
    """Require that no bias was found beyond the bound."""
    return nothing_found(
        view.biases,
        lambda: [
            replace(because("bias", fault=e.fault), short=written("short.bias", fault=e.short))
            for e in view.biases
        ],
    )


def robust(audit: Audit | None, bounds: InjectionBounds) -> Requirement:
    """Require that no text clearly manipulates the grader more often than is allowed."""
    failed = audit if audit is not None and audit.fails(bounds) else None
    return nothing_found(failed, lambda: wording.injected(failed, bounds) if failed else [])


def nothing_found(fault: object, why: Callable[[], Sequence[Reason]]) -> Requirement:
    """Require that an audit found no `fault` (None, or none in a list); more labels remove none."""
    return Requirement("broken" if fault else "met", why, is_likely=not fault)


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
