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
from dataclasses import replace
from typing import Literal, TypedDict

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Code, says
from evenhand.analysis.people.majority_rates import Rate, rates_of
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRow, ResultRows, key_of
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.case import Bounds, Case, case_of
from evenhand.analysis.verdicts.evidence import part_of
from evenhand.analysis.verdicts.reference import judge_against_reference
from evenhand.analysis.verdicts.requirements import Name, requirements
from evenhand.analysis.verdicts.wording import Decision, HoldsFor, Judgement, NextStep, Reason
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
    graders = [labels.raters[model] for model in labels.models]
    if rule.reference:
        found = [_against(rows, labels, grader, rule, cluster_noun) for grader in graders]
    else:
        found = [_judge(case_of(rows, labels, grader, rule, cluster_noun)) for grader in graders]
    for verdict in found:
        verdict["rates"] = rates_of(rows, rule.reference or "humans", verdict["grader"])
    return found


def _against(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> Verdict:
    decision, evidence, kappa = judge_against_reference(rows, labels, grader, rule, noun)
    return Verdict(
        rubric=labels.scale.name,
        grader=grader,
        verdict=decision.judgement,
        sentence=decision.text,
        reason=decision.short,
        limits="",
        holds_for=decision.holds_for,
        threshold=decision.threshold,
        promising=decision.promising,
        kappas=_keys([kappa]),
        evidence=_keys(evidence),
        more_clusters=decision.more,
        next=decision.next,
        chance=None,
        failing_parts=[],
        rates={},
    )


def _judge(case: Case) -> Verdict:
    decision = _decide(case)
    also = wording.besides(case, decision.judgement)
    return Verdict(
        rubric=case.rubric,
        grader=case.grader,
        verdict=decision.judgement,
        sentence=replace(decision, reasons=[*decision.reasons, *also]).text,
        reason=_short(case, decision),
        limits=wording.limits(case),
        holds_for=decision.holds_for,
        threshold=decision.threshold,
        promising=decision.promising and not case.copied,
        kappas=_keys(_kappas(case, decision.judgement)),
        evidence=case.evidence,
        more_clusters=decision.more,
        next=decision.next,
        chance=_chance(case, decision),
        failing_parts=[part_of(row) for row in case.failing],
        rates={},
    )


def _chance(case: Case, decision: Decision) -> float | None:
    """Return the chance that the grader is within the margin, on the labels that the verdict is
    about.
    """
    bounds = case.bounds if decision.threshold is None else case.held_out
    chance = bounds.chance["estimate"] if bounds else math.nan
    return None if math.isnan(chance) else chance


def _short(case: Case, decision: Decision) -> str:
    """Return the deciding reasons in a few words; if the grader copies a person, say so."""
    if not case.copied:
        return decision.short
    copied = wording.copied(case)
    return f"{decision.short}; {copied}" if decision.judgement in wording.PASSES else copied


def _kappas(case: Case, judgement: Judgement) -> list[ResultRow | None]:
    """The keys of the grader's and people's kappas, where both are known."""
    at_threshold = judgement == "may_stand_in_at_threshold"
    bounds = case.held_out if at_threshold else case.bounds
    own = case.kappa_at_threshold if at_threshold else case.kappa
    return [own, bounds.people] if bounds and own else []


def _keys(rows: Iterable[ResultRow | None]) -> list[list[str]]:
    return [list(key_of(row)) for row in rows if row is not None]


def _decide(case: Case) -> Decision:
    reasons, more, step = _missing(case)
    against = _reasons_against(case)
    if case.shares_nothing:
        return wording.cannot_tell(case, [_plainly("no_shared_unit")])
    if case.share_scored[2] < case.rule.min_coverage:
        return wording.leaves_too_much_out(case)
    passes = not (reasons or against or case.has_faults or case.is_tuned)
    at = _at_threshold(case)
    at_passes = at is not None and not case.has_faults_at_threshold
    if case.copied and (passes or at_passes):
        return wording.cannot_tell(case, [wording.never_passes(case)])
    if passes:
        return wording.may_stand_in(case)
    if at is not None and at_passes:
        return wording.at_threshold(case, *at)
    if against and (held_out := _open_at_threshold(case)) and not case.has_faults_at_threshold:
        labels, promising = _more(case, [held_out]), _would_pass(case, held_out)
        reasons = _open_yet(case, held_out, labels)
        step = NextStep(kind="threshold", number=labels) if labels else None
        return wording.cannot_tell(case, reasons, labels or 0, promising=promising, step=step)
    # A grader that fails in a part does not pass, whatever more labels would show for the whole.
    falls_short = against or case.failing or (case.has_faults and not reasons)
    if falls_short and _is_informative(case):
        return wording.only_with_correction(case, against)
    if against:
        return wording.do_not_use(case, against)
    promising = case.bounds is not None and _promises(case, case.bounds)
    return wording.cannot_tell(case, reasons, more, promising=promising, step=step)


def _promises(case: Case, bounds: Bounds) -> bool:
    """Return True if more labels may let the grader pass: no fault was found, and its estimates
    would pass.
    """
    return not case.has_faults and _would_pass(case, bounds)


def _would_pass(case: Case, bounds: Bounds) -> bool:
    """Return True if the grader would meet the rule with bounds as narrow as its estimates."""
    return all(each.is_likely for each in requirements(case, bounds).values())


def _open_yet(case: Case, held_out: Bounds, more: int | None) -> list[Reason]:
    """Return reasons that another threshold may pass, and how many more labels would decide."""
    clusters = case.deciding(held_out)["n_clusters"]
    promising = _would_pass(case, held_out)
    advice = wording.advice(clusters, more, case.noun, undecided=True, promising=promising)
    return [wording.falls_short_untuned(case, held_out), *advice]


def _passes(case: Case, bounds: Bounds) -> bool:
    """Return True if the bounds meet every requirement."""
    return all(each.is_met for each in requirements(case, bounds).values())


def _is_below(case: Case, bounds: Bounds) -> bool:
    """Return True if the grader is clearly further below people than the margin."""
    held = requirements(case, bounds)
    enough: tuple[Name, ...] = ("people_agree", "both_kinds", "enough_clusters")
    return held["within_margin"].is_broken and all(held[name].is_met for name in enough)


def _at_threshold(case: Case) -> tuple[Bounds, ResultRow] | None:
    """The recommended threshold, if verdicts at it meet all of the rule."""
    bounds, threshold = case.held_out, case.in_force or case.advised
    if bounds is None or threshold is None or not case.advises("tuned") or _unfit(case):
        return None
    return (bounds, threshold) if _passes(case, bounds) else None


def _open_at_threshold(case: Case) -> Bounds | None:
    """The bounds at held-out thresholds, if a tuned one may still meet the rule."""
    bounds = case.held_out
    if bounds is None or not case.advises("tuned", "not_identifiable") or _unfit(case):
        return None
    is_useless = requirements(case, bounds)["above_baselines"].is_broken
    return None if _is_below(case, bounds) or is_useless else bounds


def _unfit(case: Case) -> bool:
    """Return True if there are too few people for the scope of the rule."""
    return case.n_humans < (3 if case.rule.scope == "like_these" else 2)


def _is_informative(case: Case) -> bool:
    """Return True if its labels carry enough information for rates to be corrected: clearly more
    than a baseline's, and a good part of what one person's labels tell about another's.
    """
    bounds, kappa = case.bounds, case.kappa
    if bounds is None or kappa is None or math.isnan(bounds.people["estimate"]):
        return False
    least = max(case.to_beat, case.rule.min_information * bounds.people["estimate"])
    return (
        kappa["n_clusters"] >= case.rule.min_clusters and bounds.above["low"] > least - case.to_beat
    )


def _reasons_against(case: Case) -> list[Reason]:
    bounds, kappa, found = case.bounds, case.kappa, []
    if bounds is not None and _is_below(case, bounds):
        found.append(wording.below(case, bounds))
    if kappa is not None:
        high = bounds.above["high"] if bounds else kappa["high"] - case.to_beat
        constant = says(kappa["remarks"], "constant_rater") and not math.isnan(case.to_beat)
        agree = bounds is None or requirements(case, bounds)["people_agree"].is_met
        if (high <= 0 and agree) or constant:
            found.append(wording.baseline(case, kappa, clearly=True))
    return found


def _missing(case: Case) -> tuple[list[Reason], int, NextStep | None]:
    """Reasons why the grader has not passed, the number of further clusters that would decide, and
    what else would.
    """
    bounds, kappa, rule = case.bounds, case.kappa, case.rule
    impossible = _impossible(case)
    if impossible or bounds is None or kappa is None:
        few = _too_few_shared(case) or ([impossible or _plainly("undefined_plainly")], 0)
        return *few, None
    difference, held = case.deciding(bounds), requirements(case, bounds)
    people = held["people_agree"]
    if not people.is_met and not people.is_likely:
        return [people.why()], 0, NextStep(kind="rubric", number=0)
    lacking = rule.min_clusters - difference["n_clusters"]
    if lacking > 0:  # said with the advice
        del held["enough_clusters"]
    missing = [each.why() for each in held.values() if not each.is_met]
    more = _more(case, [bounds] if missing else [])
    asked = None if more is not None else _more_people(case, bounds)
    undecided = bool(missing)
    if more is None and not asked and lacking > 0:  # so few do not tell how many it will take
        more, undecided = lacking, False
    missing += wording.advice(
        difference["n_clusters"],
        more,
        case.noun,
        undecided=undecided,
        promising=_promises(case, bounds),
        people=asked,
        look=bounds.level.look,
    )
    step = NextStep(kind="people", number=asked) if asked else None
    return missing, more or 0, step


def _too_few_shared(case: Case) -> tuple[list[Reason], int] | None:
    """Return advice and the number of clusters to add where people and grader share too few units
    for any figure; None where they share enough.
    """
    row = case.difference
    few: tuple[Code, ...] = ("too_few_shared_by_grader", "too_few_shared_by_humans")
    if case.n_humans < 2 or row is None or not any(says(row["remarks"], each) for each in few):
        return None
    clusters = row["n_clusters"]
    more = max(case.rule.min_clusters, MIN_SHARED_UNITS) - clusters
    if more <= 0:
        return None
    return wording.advice(clusters, more, case.noun, undecided=False), more


def _more(case: Case, undecided: Sequence[Bounds]) -> int | None:
    """Number of further clusters that would decide, with a chance of 80%; None if no realistic
    number would.
    """
    clusters, needed = 0, case.rule.min_clusters
    for bounds in undecided or ([case.bounds] if case.bounds else []):
        clusters = case.deciding(bounds)["n_clusters"]
        if worth := bounds.worth["estimate"]:
            needed = max(needed, math.ceil(clusters * case.rule.min_clusters / worth - 1e-9))
        if rarer := bounds.rarer["estimate"]:
            needed = max(needed, math.ceil(clusters * case.rule.min_rarer / rarer))
    asked = [each for bounds in undecided for each in _asked(case, bounds)]
    return clusters_to_decide(clusters, asked, needed)


def _asked(case: Case, bounds: Bounds) -> list[Bound]:
    """Return each bound that is not settled yet."""
    held = requirements(case, bounds).values()
    return [each.unsettled for each in held if each.unsettled and not each.is_met]


def _more_people(case: Case, bounds: Bounds) -> int | None:
    """Number of further people who would decide it on the present clusters, where more clusters
    would not; None if no realistic number would.
    """
    growths = [each.people_growth for each in _asked(case, bounds) if each.of_people > 0]
    if not growths or max(growths) > MOST_PEOPLE:
        return None
    return math.ceil(case.n_humans * (max(growths) - 1.0) - 1e-9)


def _impossible(case: Case) -> Reason | None:
    """Return the reason why no verdict is possible at all, if there is one."""
    bounds = case.bounds
    if case.n_humans == 0 and not case.copied:
        return _plainly("nobody")
    if case.difference is None or case.kappa is None:
        return _plainly("no_shared_unit")
    if case.n_humans < 2:
        return wording.one_person(case)
    if _unfit(case):
        return _plainly("two_people")
    if bounds is None and math.isnan(case.difference["estimate"]):
        return wording.undefined(case.difference)
    if math.isnan(case.to_beat):
        return _plainly("baselines_undefined")
    if bounds is None:
        return _plainly("undefined_plainly")
    if says(bounds.difference["remarks"], "no_level"):
        return wording.no_level(bounds.level.look)
    for row in (case.deciding(bounds), bounds.above):
        if math.isnan(row["low"]):
            return _plainly("no_interval")
    return None


_SHORT = {"baselines_undefined": "undefined", "undefined_plainly": "undefined"}


def _plainly(
    name: Literal[
        "nobody",
        "no_shared_unit",
        "two_people",
        "baselines_undefined",
        "undefined_plainly",
        "no_interval",
    ],
) -> Reason:
    """A reason without figures."""
    return Reason(written(f"because.{name}"), written(f"short.{_SHORT.get(name, name)}"))
