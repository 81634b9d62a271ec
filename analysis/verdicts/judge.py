"""May a grader stand in for people? Decided from bounds of intervals, never from an estimate.

- *may stand in*: it meets the rule (`study.settings.analysis`) as it is.
- *may stand in at threshold t*: its binary verdicts do, with a threshold that won on units which it
  was not chosen on.
- *only with correction*: it falls short of people, errs to one side, moves with the wording, or
  fails in a part of the sample, but carries clear information: rates may be corrected by a sample
  that people labelled, single labels may not be trusted.
- *do not use*: it is clearly below people, or no better than a baseline, and carries no clear
  information; or it leaves too many units without an answer.
- *cannot tell*: none of these; with what would help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Code, says
from evenhand.analysis.people.comparison import Rate, rates_of
from evenhand.analysis.requirement import (
    Reason,
    Requirements,
    all_met,
    likely_met,
    reasons,
    rounded_up,
    unsettled,
)
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.case import Bounds, Case, case_of, keys_of
from evenhand.analysis.verdicts.evidence import part_of
from evenhand.analysis.verdicts.reference import judge_against_reference
from evenhand.analysis.verdicts.requirements import answers_enough, as_good_as_people, no_faults
from evenhand.analysis.verdicts.wording import Decision, HoldsFor, Judgement, NextStep
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

MOST_PEOPLE = 5
"""Largest multiple of the present number of people for which "ask more" is advised."""


class Verdict(TypedDict):
    """A verdict on one grader; `evidence` holds the keys (RESULTS_KEY) of the rows it rests on.

    `sentence` has all its reasons, `reason` in a few words those that decided it; `limits` names
    what no interval covers; `holds_for` is "labels" or "binary" where a pass holds for these only
    ("" for all), and `threshold` the one at which it holds. `promising`: undecided, but by its
    estimates it passes. `kappas` are the keys of the grader's kappa with people and of people's
    with one another, on the labels that decided it; empty where unknown. `more_clusters` is how
    many more clusters would decide it, 0 where that is no advice, and `next` is the cheapest way
    on; `chance` is the chance that the grader is within the margin, None where nothing was
    compared; `failing_parts` are the parts of the sample in which the grader is clearly below
    people. `rates` are its true positive and true negative rate on the binary verdict
    (`people.majority_rates`), empty where there is none.
    """

    rubric: str
    grader: str
    verdict: Judgement
    sentence: str
    reason: str
    limits: str
    holds_for: HoldsFor
    threshold: float | None
    promising: bool
    kappas: list[list[str]]
    evidence: list[list[str]]
    more_clusters: int
    next: NextStep | None
    chance: float | None
    failing_parts: list[str]
    rates: dict[str, Rate]


def limits_of(verdicts: Iterable[Verdict]) -> list[str]:
    """List what the intervals of these verdicts do not cover, each limit once."""
    return list(dict.fromkeys(each["limits"] for each in verdicts if each["limits"]))


def judge_graders(
    rows: ResultRows, labels: LabelMatrix, *, rule: DecisionSettings, cluster_noun: str
) -> list[Verdict]:
    """Return a verdict for each grader of a rubric, read off its results rows."""
    found = []
    for grader in (labels.raters[model] for model in labels.models):
        given = rows, labels, grader, rule, cluster_noun
        if rule.reference:
            verdict = _verdict(labels.scale.name, grader, *judge_against_reference(*given))
        else:
            verdict = _judge(case_of(*given))
        verdict["rates"] = rates_of(rows, rule.reference or "humans", grader)
        found.append(verdict)
    return found


def _verdict(
    rubric: str,
    grader: str,
    decision: Decision,
    evidence: list[list[str]],
    kappas: Sequence[ResultRow],
) -> Verdict:
    """Write down a decision, with the rows that it rests on."""
    return Verdict(
        rubric=rubric,
        grader=grader,
        verdict=decision.judgement,
        sentence=decision.text,
        reason=decision.short,
        limits="",
        holds_for=decision.holds_for,
        threshold=decision.threshold,
        promising=decision.promising,
        kappas=keys_of(kappas),
        evidence=evidence,
        more_clusters=decision.more,
        next=decision.next,
        chance=None,
        failing_parts=[],
        rates={},
    )


def _judge(case: Case) -> Verdict:
    decision = _decide(case)
    also = wording.besides(case, decision.judgement)
    view = case.present if decision.threshold is None else case.tuned
    kappas = [view.kappa, view.bounds.people] if view.bounds and view.kappa else []
    chance = view.bounds.chance["estimate"] if view.bounds else math.nan
    short, passes = [decision.short], decision.judgement in wording.PASSES
    if case.people.copied:
        short = [decision.short, wording.copied(case)] if passes else [wording.copied(case)]
    if passes and view.bounds is not None and not view.bounds.survives:
        short.append(written("short.if_wrong_fails"))
    return {
        **_verdict(case.rubric, case.grader, decision, case.evidence, kappas),
        "sentence": replace(decision, reasons=[*decision.reasons, *also]).text,
        "reason": "; ".join(short),
        "limits": wording.limits(case),
        "promising": decision.promising and not case.people.copied,
        "chance": None if math.isnan(chance) else chance,
        "failing_parts": [part_of(row) for row in case.present.failing],
    }


def _decide(case: Case) -> Decision:
    """Decide, in the order of the picture in docs/concepts.md."""
    present, tuned, bounds = case.present, case.tuned, case.present.bounds
    answers = answers_enough(case.answers, case.rule.min_coverage, case.noun)
    held, no_fault = as_good_as_people(case, bounds) if bounds else {}, no_faults(case, present)
    promising = bool(held) and likely_met({**held, **no_fault})
    faults = reasons(no_fault, "broken")
    missing, against = _missing(case, held, promising), _against(case, held)
    relabel = NextStep(kind="annotators", number=len(case.people.opposed))
    if case.shares_nothing:
        return wording.cannot_tell(case, [*faults, wording.plainly("no_shared_unit")])
    if answers.is_broken:
        return wording.do_not_use(case, answers.why(), "leaves_out")
    if case.selective is not None:
        at_random = NextStep(kind="overlap", number=wording.ITEMS_AT_RANDOM)
        chosen = wording.selective(*case.selective)
        return wording.cannot_tell(case, [*faults, *chosen], step=at_random)
    passes = not (missing.reasons or against or faults or tuned.is_compared)
    at_threshold = _passing_at_threshold(case)
    if case.people.opposed and (passes or at_threshold):
        return wording.cannot_tell(case, [*faults, wording.opposed(case)], step=relabel)
    if case.people.copied and (passes or at_threshold):
        return wording.cannot_tell(case, [*faults, wording.never_passes(case)])
    if passes and bounds is not None:
        return wording.may_stand_in(case, bounds)
    if at_threshold is not None:
        return wording.at_threshold(case, *at_threshold)
    if against and (untuned := _open_at_threshold(case)):
        return wording.cannot_tell(
            case, [*faults, *untuned.reasons], untuned.more, untuned.step, untuned.promising
        )
    # A grader that fails in a part does not pass, whatever more labels would show for the whole.
    falls_short = against or present.failing or (faults and not missing.reasons)
    if falls_short and _is_informative(case):
        return wording.only_with_correction(case, [*against, *faults])
    if against:
        return wording.do_not_use(case, against)
    told, step, below = [*faults, *missing.reasons], missing.step, None
    if case.people.opposed:
        told, step = [*told, wording.opposed(case)], relabel
    if bounds and held["both_kinds"].is_met and held["enough_clusters"].is_met:
        within, high = held["within_margin"].state, case.deciding(bounds)["high"]
        below = bounds if within == "open" and -bounds.margin <= high < 0 else None
    return wording.cannot_tell(case, told, missing.more, step, promising, below)


@dataclass(frozen=True)
class _Missing:
    """What a grader lacks for a pass: reasons with advice, the number of further clusters that
    would decide, and the cheapest other step. `promising`: it would pass by its estimates.
    """

    reasons: Sequence[Reason] = ()
    more: int = 0
    step: NextStep | None = None
    promising: bool = False


def _missing(case: Case, known: Requirements, promising: bool) -> _Missing:
    """Return why the grader has not passed as it is; nothing where it meets every requirement.

    It is `promising` if it would meet every requirement with bounds as narrow as its estimates.
    """
    bounds, rule = case.present.bounds, case.rule
    if case.people.number >= 2 and not case.people.meet:
        at_random = NextStep(kind="overlap", number=wording.ITEMS_AT_RANDOM)
        return _Missing([wording.nobody_twice()], step=at_random)
    impossible = _impossible(case)
    if impossible or bounds is None or case.present.kappa is None:
        few = _too_few_shared(case)
        return few or _Missing([impossible or wording.plainly("undefined_plainly")])
    if _has_no_level(bounds):
        return _too_few_shared(case) or _without_level(bounds)
    held = dict(known)
    people = held["people_agree"]
    if not people.is_met and not people.is_likely:
        return _Missing(people.why(), step=NextStep(kind="rubric", number=0))
    if all_met(held):
        return _Missing()
    sample = bounds.sample(case.deciding(bounds))
    lacking = rule.min_clusters - sample.clusters
    if lacking > 0:  # said with the advice
        del held["enough_clusters"]
    missing = reasons(held, "open", "broken")
    more = sample.more_to_settle(rule, held)
    # Further people may decide it on the present clusters, where more clusters would not.
    growths = [each.people_growth for each in unsettled(held) if each.of_people > 0]
    people_asked = None
    if more is None and growths and max(growths) <= MOST_PEOPLE:
        people_asked = rounded_up(case.people.number * (max(growths) - 1.0))
    undecided = bool(missing)
    if more is None and not people_asked and lacking > 0:  # too few to tell how many it will take
        more, undecided = lacking, False
    advice = wording.advice(
        sample.clusters,
        more,
        case.noun,
        undecided=undecided,
        promising=promising,
        people=people_asked,
        look=bounds.level.look,
    )
    step = NextStep(kind="people", number=people_asked) if people_asked else None
    return _Missing([*missing, *advice], more or 0, step)


def _without_level(bounds: Bounds) -> _Missing:
    """What is lacking where no verdict is given at this look."""
    step = None if bounds.level.look else NextStep(kind="look", number=0)
    return _Missing([wording.no_level(bounds.level.look)], step=step)


def _too_few_shared(case: Case) -> _Missing | None:
    """Return advice where people and grader share too few units for any figure; None where they
    share enough.
    """
    row = case.present.difference
    few: tuple[Code, ...] = ("too_few_shared_by_grader", "too_few_shared_by_humans")
    if case.people.number < 2 or row is None or not any(says(row["remarks"], each) for each in few):
        return None
    clusters = row["n_clusters"]
    more = max(case.rule.min_clusters, MIN_SHARED_UNITS) - clusters
    if more <= 0:
        return None
    return _Missing(wording.advice(clusters, more, case.noun, undecided=False), more)


def _passing_at_threshold(case: Case) -> tuple[Bounds, ResultRow] | None:
    """The recommended threshold, if verdicts at it meet all requirements."""
    tuned, bounds = case.tuned, case.tuned.bounds
    if bounds is None or tuned.threshold is None or not tuned.advises("tuned") or _unfit(case):
        return None
    held = {**as_good_as_people(case, bounds), **no_faults(case, tuned)}
    return (bounds, tuned.threshold) if all_met(held) else None


def _open_at_threshold(case: Case) -> _Missing | None:
    """What verdicts at held-out thresholds lack, if a tuned one may still meet the rule."""
    tuned, bounds = case.tuned, case.tuned.bounds
    if bounds is None or not tuned.advises("tuned", "not_identifiable") or _unfit(case):
        return None
    if _has_no_level(bounds):
        return _without_level(bounds)
    held = as_good_as_people(case, bounds)
    if held["within_margin"].is_broken or held["above_baselines"].is_broken:
        return None
    if not all_met(no_faults(case, tuned)):
        return None
    sample, promising = bounds.sample(case.deciding(bounds)), likely_met(held)
    more = sample.more_to_settle(case.rule, held)
    advice = wording.advice(sample.clusters, more, case.noun, undecided=True, promising=promising)
    step = NextStep(kind="threshold", number=more) if more else None
    why = [wording.falls_short_untuned(case, bounds), *advice]
    return _Missing(why, more or 0, step, promising)


def _unfit(case: Case) -> bool:
    """Return True if there are too few people for the scope of the rule."""
    return case.people.number < (3 if case.rule.scope == "like_these" else 2)


def _is_informative(case: Case) -> bool:
    """Return True if its labels carry enough information for rates to be corrected: clearly more
    than a baseline's, and a good part of what one person's labels tell about another's.
    """
    bounds, kappa = case.present.bounds, case.present.kappa
    if bounds is None or kappa is None or math.isnan(bounds.people["estimate"]):
        return False
    least = max(case.to_beat, case.rule.min_information * bounds.people["estimate"])
    return (
        kappa["n_clusters"] >= case.rule.min_clusters and bounds.above["low"] > least - case.to_beat
    )


def _against(case: Case, held: Requirements) -> list[Reason]:
    """Reasons that the grader clearly is not as good as people."""
    bounds, kappa, found = case.present.bounds, case.present.kappa, []
    if bounds is not None and held["within_margin"].is_broken:
        found.append(wording.below(case, bounds))
    scored, rule = case.answers.scored, case.rule
    # On a few units, or where people hardly ever choose another category, a good grader gives one
    # label, too.
    if held:
        is_large = held["enough_clusters"].is_met and held["both_kinds"].is_met
    else:
        clusters = scored["n_clusters"] if scored else 0
        wrong = (1.0 - scored["estimate"]) * clusters if scored else 0.0
        is_large = clusters >= rule.min_clusters and wrong >= rule.min_rarer
    if kappa is not None and is_large:
        high = bounds.above["high"] if bounds else kappa["high"] - case.to_beat
        constant = says(kappa["remarks"], "constant_rater") and not math.isnan(case.to_beat)
        agree = bounds is None or held["people_agree"].is_met
        if (high <= 0 and agree) or constant:
            found.append(wording.baseline(case, kappa, clearly=True))
    return found


def _impossible(case: Case) -> Reason | None:
    """Return the reason why no verdict is possible at all, if there is one."""
    bounds, difference = case.present.bounds, case.present.difference
    if case.people.number == 0 and not case.people.copied:
        return wording.plainly("nobody")
    if difference is None or case.present.kappa is None:
        return wording.plainly("no_shared_unit")
    if case.people.number < 2:
        return wording.one_person(case)
    if _unfit(case):
        return wording.plainly("two_people")
    if bounds is None and math.isnan(difference["estimate"]):
        return wording.undefined(difference)
    if math.isnan(case.to_beat):
        return wording.plainly("baselines_undefined")
    if bounds is None:
        return wording.plainly("undefined_plainly")
    if _has_no_level(bounds):
        return None  # another look may have one
    for row in (case.deciding(bounds), bounds.above):
        if math.isnan(row["low"]):
            return wording.plainly("no_interval")
    return None


def _has_no_level(bounds: Bounds) -> bool:
    """Return True if nothing of the error allowed is left for this look, or it is none."""
    return says(bounds.difference["remarks"], "no_level")
