"""Decide whether a grader can replace annotators, and rank the graders of a rubric.

Verdicts are based on bounds of intervals, never on an estimate:

- *can replace*: the grader meets the rule (`study.settings.analysis`) as it is.
- *can replace at threshold t*: binary labels meet it, at a threshold confirmed on held-out items.
- *only with correction*: the grader falls short of human agreement, is biased, changes with the
  wording, or fails in a part of the sample, but its labels are clearly informative: rates can be
  corrected with a sample that people labelled; single labels are not reliable.
- *do not use*: its labels are not clearly informative, or too many units have none.
- *inconclusive*: all other cases, with the cheapest step to a decision.

Verdicts against one rater who counts as correct, a *reference*, are made in `requirements`.

`judge_graders` gives verdicts, `rank_graders` ranks graders with their prices, `recommendations`
name the grader to use, or what to label first. A *look* is an interim analysis of a study.

A verdict follows from requirements (`requirement.Requirement`). Each is *met* if its bound clears a
limit, *broken* if the other bound lies beyond it, else *open*; and it is *likely* if the estimate
clears the limit. `agreement` are those of `as_good_as_people`, by name: "people_agree" (with one
another), "within_margin", "above_baselines", "enough_clusters", "enough_minority" (clusters with a
minority label), "answers" and, on an ordered scale, "gross" (errors).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, TypedDict

from scipy.special import stdtrit

from evenhand.analysis import requirement
from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS, MIN_SHARED_UNITS
from evenhand.analysis.bias.audit import audited, audited_grader, status_of
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.annotators import ANNOTATOR_KAPPA
from evenhand.analysis.people.comparison import CEILING, Rate, rates_of
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.requirement import MAX_PILOT_GROWTH, Pilot, Reason, Requirements
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows, TableRow, key_of, sample_of
from evenhand.analysis.statistics import limit_shown, reason_in_words, says, shown_apart
from evenhand.analysis.thresholds.tuning import CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.analysis.verdicts import evidence, wording
from evenhand.analysis.verdicts import requirements as verdict_requirements
from evenhand.analysis.verdicts.evidence import Bounds, VerdictEvidence
from evenhand.analysis.verdicts.requirements import without_level
from evenhand.analysis.verdicts.wording import PASSES, Decision, Judgement, NextStep, because
from evenhand.lazy import pd
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

Key = tuple[str, ...]  # that identifies a row (`RESULTS_KEY`)
_STATISTIC, _RATER_B = 1, 3  # positions in a key
MOST_PEOPLE = 5  # largest multiple of the present number of annotators that is advised
ITEMS_AT_RANDOM = 60  # items to label at random where selected items were given further labels
_NOT_BY_NUMBER = ("rubric", "annotators", "overlap")  # steps that no number of clusters replaces


class Verdict(TypedDict):
    """A verdict on one grader. Keys of rows have the values of `RESULTS_KEY`."""

    rubric: str
    grader: str
    verdict: Judgement
    sentence: str  # with all reasons
    reason: str  # the deciding reasons in a few words
    limits: str  # what no interval covers
    holds_for: wording.HoldsFor  # "labels" or "binary" if a pass holds for these only, else ""
    threshold: float | None  # at which a pass holds
    promising: bool  # inconclusive, but a pass by the estimates
    kappas: list[list[str]]  # keys of grader-human and human-human kappa that decide, if known
    evidence: list[list[str]]  # keys of the rows that the verdict is based on
    more_clusters: int  # number of further clusters that would decide, 0 if they are not advised
    next: NextStep | None  # the cheapest step to a decision
    chance: float | None  # that the grader is within the margin; None if nothing was compared
    failing_parts: list[str]  # parts of the sample in which the grader is clearly below people
    rates: dict[str, Rate]  # true positive and negative rate of the binary label, if there is one


def limits_of(verdicts: Iterable[Verdict]) -> list[str]:
    """List what the intervals of these verdicts do not cover, each limit once."""
    return list(dict.fromkeys(verdict["limits"] for verdict in verdicts if verdict["limits"]))


def judge_graders(
    rows: ResultRows, labels: LabelMatrix, *, rule: DecisionSettings, cluster_noun: str
) -> list[Verdict]:
    """Return a verdict for each grader of a rubric, from the evidence on it in `rows`."""
    verdicts = []
    for grader in (labels.raters[model] for model in labels.models):
        case = evidence.evidence_on(rows, labels, grader, rule, cluster_noun)
        if rule.reference:
            decision, keys, kappas = verdict_requirements.judge_against_reference(rows, case)
            verdict = _verdict(case, decision, keys, kappas)
        else:
            verdict = judge(case)
        verdict["rates"] = rates_of(rows, rule.reference or "humans", grader)
        verdicts.append(verdict)
    return verdicts


def pilots(
    rows: ResultRows, labels: LabelMatrix, verdicts: Iterable[Verdict], rule: DecisionSettings
) -> list[Pilot]:
    """Return a pilot for planning for every grader with bounds: the variances of its difference
    from people, on the labels that its verdict is based on, and what the verdict requires. The
    variance between clusters follows from the interval, half the width of which is a quantile of t
    times the standard error.
    """
    pilots_of_graders = []
    for verdict in verdicts:
        case = evidence.evidence_on(rows, labels, verdict["grader"], rule, noun="")
        step = verdict["next"]["kind"] if verdict["next"] else ""
        is_at_threshold = verdict["threshold"] is not None or step == "threshold"
        bounds = (case.tuned if is_at_threshold else case.present).bounds
        if bounds is None or not bounds.difference["high"] > bounds.difference["low"]:
            continue
        row, clusters = bounds.difference, bounds.difference["n_clusters"]
        quantile = float(stdtrit(clusters - 1, 1.0 - bounds.deciding.alpha))
        cluster_variance = ((row["high"] - row["low"]) / 2 / quantile) ** 2
        over_people = bounds.like_these["deciding"] if bounds.like_these else None
        people = over_people or Deciding(from_people=math.nan)
        share = people.from_people  # of people's variance in the sum of both; NaN if unknown
        needs = verdict_requirements.as_good_as_people(case, bounds)
        within_margin, is_decided = needs["within_margin"], verdict["verdict"] != "inconclusive"
        by_scope: dict[str, int | None] = {}
        if is_decided:
            by_scope["these"] = clusters
            if case.is_for_people_like_these or within_margin.state == "open":  # another reason
                by_scope["like_these"] = clusters
        elif not (step in _NOT_BY_NUMBER or within_margin.is_broken or requirement.all_met(needs)):
            for scope in ("these", rule.scope):
                about = replace(case, rule=rule.model_copy(update={"scope": scope}))
                needs = verdict_requirements.as_good_as_people(about, bounds)
                more = bounds.sample(row).more_to_settle(rule, needs, MAX_PILOT_GROWTH - 1)
                by_scope[scope] = None if more is None else clusters + more
        pilots_of_graders.append(Pilot(
            rubric=case.rubric, grader=case.grader, difference=row["estimate"],
            margin=bounds.margin, cluster_variance=cluster_variance, clusters=clusters,
            people_variance=cluster_variance * share / (1.0 - share), people=people.people,
            alpha=bounds.deciding.next_alpha, these=by_scope.get("these"),
            like_these=by_scope.get("like_these"),
            stopped_by="" if by_scope else verdict["sentence"],
        ))  # fmt: skip
    return pilots_of_graders


def _verdict(
    case: VerdictEvidence, decision: Decision, keys: list[list[str]], kappas: Sequence[ResultRow]
) -> Verdict:
    """Return a decision as a verdict; `keys` are those of the rows that it is based on."""
    return Verdict(
        rubric=case.rubric, grader=case.grader, verdict=decision.judgement,
        sentence=decision.text, reason=decision.short, limits="", holds_for=decision.holds_for,
        threshold=decision.threshold, promising=decision.promising,
        kappas=evidence.keys_of(*kappas), evidence=keys, more_clusters=decision.more,
        next=decision.next, chance=None, failing_parts=[], rates={},
    )  # fmt: skip


def judge(case: VerdictEvidence) -> Verdict:
    """Return the verdict on a grader compared with people, without its rates."""
    decision = _decide(case)
    reasons = [*decision.reasons, *wording.further_reasons(case, decision.judgement)]
    view = case.present if decision.threshold is None else case.tuned  # the labels that decided
    kappas = [view.kappa, view.bounds.people_kappa] if view.bounds and view.kappa else []
    chance = view.bounds.chance["estimate"] if view.bounds else math.nan
    reason, passes = decision.short, decision.judgement in PASSES
    if passes and view.bounds and not view.bounds.passes_if_missing_wrong:
        reason = f"{reason}; {written('short.if_wrong_fails')}"
    if case.people.copied:  # a grader that repeats a person's labels never passes
        reason = wording.copied_in_words(case)
    return {
        **_verdict(case, decision, case.keys, kappas),
        "sentence": replace(decision, reasons=reasons).text,
        "reason": reason, "limits": wording.limits(case),
        "promising": decision.promising and not case.people.copied,
        "chance": None if math.isnan(chance) else chance,
        "failing_parts": [evidence.part_name(row) for row in case.present.failing],
    }  # fmt: skip


def _decide(case: VerdictEvidence) -> Decision:
    """Decide on a grader compared with people, in the order of the figure in docs/concepts.md.

    The labels as they are (`present`) are judged by three lists of reasons: `against`, that the
    grader clearly is not as good as people; `faults`, from audits (a bias, a part in which it
    fails, ...); and `if_inconclusive.reasons`, why it is not shown to be as good as people. With
    none of them the grader passes. Else it may pass `at_threshold`, on its binary labels at a
    threshold tuned on other clusters.
    """
    present, bounds, people = case.present, case.present.bounds, case.people
    answers = verdict_requirements.answers_enough(case.answers, case.rule.min_coverage, case.noun)
    agreement = verdict_requirements.as_good_as_people(case, bounds) if bounds else {}
    audits = verdict_requirements.no_faults(case, present)
    probable_fault = requirement.likely_fault({**audits, **agreement})  # audits' come first
    faults = requirement.reasons(audits, "broken")
    against = _reasons_against(case, agreement)
    if_inconclusive = _if_inconclusive(case, agreement, probable_fault)
    agreement_shown = not if_inconclusive.reasons
    n_shared = present.difference["n_units"] if present.difference else 0

    if people.number > 0 and case.answers.share.estimate > 0 and not n_shared:
        return _inconclusive(case, [*faults, because("no_shared_unit")])
    if answers.is_broken:
        return Decision("do_not_use", written("verdict.leaves_out", **case.fields), answers.why())
    if case.selective is not None:  # who labelled what depended on labels: biased
        ask = _random_overlap(case)
        return _inconclusive(case, [*faults, _selective(*case.selective, ask)], step=ask)
    # If the labels depend on a tuned threshold in use, they can pass at this threshold only, by
    # figures on clusters that it was not tuned on.
    passes = agreement_shown and not (against or faults or case.tuned.present_is_tuned)
    at_threshold = _at_threshold(case)  # a pass, inconclusive, or None
    passes_at_threshold = at_threshold is not None and at_threshold.judgement in PASSES
    relabel = NextStep(kind="annotators", number=len(people.opposed))  # who reverse the scale
    if people.opposed and (passes or passes_at_threshold):
        return _inconclusive(case, [*faults, wording.opposed_reason(case)], step=relabel)
    if people.copied and (passes or passes_at_threshold):
        text = written("because.copy_never_passes", whose=wording.copied_shares(case))
        return _inconclusive(case, [*faults, Reason(text, wording.copied_in_words(case))])
    if passes and bounds is not None:
        return _pass(case, bounds)
    if at_threshold is not None and passes_at_threshold:
        return at_threshold
    if at_threshold is not None and against:  # inconclusive: labels at a threshold may still pass
        return replace(at_threshold, reasons=[*faults, *at_threshold.reasons])

    # A grader that fails in a part does not pass, even if more labels would show that it agrees on
    # the whole. Other faults decide only once agreement is shown; until then the verdict is
    # inconclusive, with the faults first among its reasons.
    falls_short = bool(against or present.failing) or (bool(faults) and agreement_shown)
    if falls_short and _is_informative(case):
        return _only_with_correction(case, [*against, *faults])
    if against:  # not informative, and clearly worse than people
        return Decision("do_not_use", written("verdict.do_not_use", **case.fields), against)
    reasons, promising = [*faults, *if_inconclusive.reasons], bool(agreement) and not probable_fault
    decision = replace(if_inconclusive, reasons=reasons, promising=promising)
    if people.opposed:
        reasons = [*reasons, wording.opposed_reason(case)]
        decision = replace(decision, reasons=reasons, step=relabel)
    return _with_shortfall(case, bounds, agreement, decision) if bounds else decision


def _with_shortfall(
    case: VerdictEvidence, bounds: Bounds, agreement: Requirements, inconclusive: Decision
) -> Decision:
    """Return the decision with another first sentence if by the bounds the grader is below human
    agreement on a sample that is large enough, but perhaps by less than the margin.
    """
    least_shortfall, margin = -case.deciding_difference(bounds)["high"], bounds.margin
    may_be_within = agreement["within_margin"].state == "open"
    if not (_is_large(agreement) and may_be_within and 0 < least_shortfall <= margin):
        return inconclusive
    least, limit = shown_apart(least_shortfall, [0.0, margin]), limit_shown(margin, least_shortfall)
    head = written("verdict.known_below", **case.fields, least=least, margin=limit)
    return replace(inconclusive, head=head)


def _is_large(agreement: Requirements) -> bool:
    """Return True if the sample is large enough, with enough clusters that have minority labels."""
    return agreement["enough_clusters"].is_met and agreement["enough_minority"].is_met


def _inconclusive(
    case: VerdictEvidence,
    reasons: Sequence[Reason] = (),
    more: int = 0,
    step: NextStep | None = None,
    promising: bool = False,
) -> Decision:
    """Decide that neither a pass nor a failure is shown. `more` clusters or a `step` would help."""
    head = written("verdict.inconclusive", **case.fields)
    return Decision("inconclusive", head, reasons, more, promising=promising, step=step)


def _pass(case: VerdictEvidence, bounds: Bounds) -> Decision:
    """Decide that the grader can replace annotators, as it meets the rule."""
    row = case.deciding_difference(bounds)
    name = "better" if row["low"] > 0 else "nearly_as_well" if row["high"] < 0 else "as_well"
    figures = wording.comparison_in_words(case, bounds)
    margin = limit_shown(bounds.margin, -row["low"])
    reason = because(name, "within_margin", figures=figures, margin=margin)
    if case.is_binary_only:
        head = written("verdict.can_replace_binary", **case.fields)
        short = Reason(reason.sentence, written("short.binary_only"))
        return Decision("can_replace", head, [short], holds_for="binary")
    head, binary = written("verdict.can_replace", **case.fields), case.binary
    if binary is None or binary["low"] > -bounds.margin:
        return Decision("can_replace", head, [reason])
    # The pass does not extend to the binary labels, which is the short reason in a table's cell.
    falls_short = binary["high"] < -bounds.margin
    figures = written(
        "figures.difference", difference=wording.signed(binary["estimate"]),
        interval=wording.interval_of(binary["low"], binary["high"], -bounds.margin, 0.0, sign="+"),
        share="", margin=limit_shown(bounds.margin, -binary["low"], -binary["high"]),
        sample=sample_of(binary, case.noun),
    )  # fmt: skip
    caveat = because("binary_falls_short" if falls_short else "binary_not_shown", figures=figures)
    return Decision("can_replace", head, [Reason(reason.sentence), caveat], holds_for="labels")


def _only_with_correction(case: VerdictEvidence, reasons: Sequence[Reason]) -> Decision:
    """Decide that the grader is informative, but not as good as a person."""
    head = written("verdict.only_with_correction", **case.fields)
    if failing := case.present.failing:
        parts = wording.list_parts(failing)
        head = written("verdict.only_with_correction_outside", **case.fields, parts=parts)
    if (kappa := case.present.kappa) is not None:
        reasons = [*reasons, because("informative", figures=wording.mean_kappa(kappa))]
    return Decision("only_with_correction", head, reasons)


def _random_overlap(case: VerdictEvidence) -> NextStep:
    """Return the step to have items drawn at random labelled, at most those that there are."""
    coverage = case.answers.coverage
    units = coverage["n_units"] if coverage is not None else ITEMS_AT_RANDOM
    return NextStep(kind="overlap", number=min(ITEMS_AT_RANDOM, units))


def _selective(on_few: ResultRow, on_more: ResultRow, ask: NextStep) -> Reason:
    """Return the reason that units got more labels because of their labels, from the agreement on
    units with few labels and with more; `ask` is the step that would decide.
    """
    return because(
        "selective", noun="item", ask=ask["number"], fewer=on_few["n_units"], few=on_few["at"],
        agree_fewer=on_few["estimate"], more=on_more["n_units"],
        several=on_more["at"].removesuffix("+"), agree_more=on_more["estimate"],
    )  # fmt: skip


def _if_inconclusive(case: VerdictEvidence, agreement: Requirements, fault: str) -> Decision:
    """Return the decision that it is inconclusive, with the reasons why agreement as good as
    people's is not shown (none if it is), the number of further clusters that would decide, and the
    cheapest other step. `fault` is what `requirement.likely_fault` returns.
    """
    bounds = case.present.bounds
    if case.people.number >= 2 and not case.people.share_units:
        ask = _random_overlap(case)
        return _inconclusive(case, [because("nobody_twice", ask=ask["number"])], step=ask)
    impossible = _impossible(case)
    if impossible or bounds is None or case.present.kappa is None:
        impossible = impossible or because("undefined_plainly", "undefined")
        return _too_few_shared(case) or _inconclusive(case, [impossible])
    if bounds.has_no_level:  # no part of the error rate is left for this look
        return _too_few_shared(case) or without_level(_inconclusive(case), bounds.deciding)
    people_agree = agreement["people_agree"]
    if not people_agree.is_met and not people_agree.is_likely:
        return _inconclusive(case, people_agree.why(), step=NextStep(kind="rubric", number=0))
    if requirement.all_met(agreement):
        return _inconclusive(case)
    return _label_more(case, bounds, agreement, fault)


def _label_more(case: VerdictEvidence, bounds: Bounds, needs: Requirements, fault: str) -> Decision:
    """Advise further clusters with which all `needs` may be met; where clusters would not do,
    further people on the present clusters, who reduce the variance that is between people
    (`Bound.from_people`). `fault` is as in `_if_inconclusive`.
    """
    rule, sample = case.rule, bounds.sample(case.deciding_difference(bounds))
    n_lacking = rule.min_clusters - sample.clusters
    other_needs = dict(needs)
    if n_lacking > 0:  # the advice says so: it is no further reason
        del other_needs["enough_clusters"]
    reasons = requirement.reasons(other_needs, "open", "broken")
    undecided = bool(reasons)  # False if the advice is only to reach the least number of clusters
    more, more_people = sample.more_to_settle(rule, other_needs), None
    if more is None:  # over ten times as many (`MAX_GROWTH`): perhaps a few more people would do
        unsettled = requirement.unsettled(other_needs)
        growths = [bound.people_growth for bound in unsettled if bound.from_people > 0]
        if growths and max(growths) <= MOST_PEOPLE:
            more_people = requirement.rounded_up(case.people.number * (max(growths) - 1.0))
        if not more_people and n_lacking > 0:  # the sample is too small for other advice
            more, undecided = n_lacking, False
    advice = wording.advice(
        sample.clusters, more, case.noun, undecided=undecided, fault=fault, more_people=more_people,
        look=0 if rule.looks else bounds.deciding.look,  # declared ones are all at one level
    )  # fmt: skip
    step = NextStep(kind="people", number=more_people) if more_people else None
    return _inconclusive(case, [*reasons, *advice], more or 0, step)


def _too_few_shared(case: VerdictEvidence) -> Decision | None:
    """Advise more labels if people and grader share too few units for any figure; else None."""
    row = case.present.difference
    if case.people.number < 2 or row is None:
        return None
    remarks, clusters = row["remarks"], row["n_clusters"]
    codes = "too_few_shared_by_grader", "too_few_shared_by_humans"
    more = max(case.rule.min_clusters, MIN_SHARED_UNITS) - clusters
    if more <= 0 or not any(says(remarks, code) for code in codes):
        return None
    return _inconclusive(case, wording.advice(clusters, more, case.noun, undecided=False), more)


def _at_threshold(case: VerdictEvidence) -> Decision | None:
    """Decide for the recommended threshold if binary labels at thresholds tuned on other clusters
    meet all requirements; decide that it is inconclusive if they may meet them; else return None.
    """
    tuned, bounds = case.tuned, case.tuned.bounds
    # Tuning advises "tuned" (its threshold), "default" (keep the present one, so that nothing is to
    # be decided here) or "not_identifiable" (no threshold is clearly best; more labels may tell).
    if bounds is None or case.has_too_few_people or not tuned.advises("tuned", "not_identifiable"):
        return None
    if bounds.has_no_level:
        return without_level(_inconclusive(case), bounds.deciding)
    agreement = verdict_requirements.as_good_as_people(case, bounds)
    is_broken = agreement["within_margin"].is_broken or agreement["above_baselines"].is_broken
    if is_broken or not requirement.all_met(verdict_requirements.no_faults(case, tuned)):
        return None
    if requirement.all_met(agreement) and tuned.threshold is not None and tuned.advises("tuned"):
        threshold, figures = tuned.threshold["estimate"], wording.comparison_in_words(case, bounds)
        why = because("tuned", "at_threshold", noun=case.noun, figures=figures, threshold=threshold)
        head = written("verdict.at_threshold", **case.fields, threshold=threshold)
        return Decision(
            "can_replace_at_threshold", head, [why], holds_for="binary", threshold=threshold
        )
    row = case.deciding_difference(bounds)
    sample, fault = bounds.sample(row), requirement.likely_fault(agreement)
    more = sample.more_to_settle(case.rule, agreement)
    figures = wording.difference_in_words(case, bounds, row)
    why = because("falls_short_untuned", "tuning_may_help", noun=case.noun, figures=figures)
    advice = wording.advice(sample.clusters, more, case.noun, undecided=True, fault=fault)
    step = NextStep(kind="threshold", number=more) if more else None
    return _inconclusive(case, [why, *advice], more or 0, step, promising=not fault)


def _is_informative(case: VerdictEvidence) -> bool:
    """Return True if the labels are informative enough for rates to be corrected: kappa is clearly
    above the baselines', and above a share (`min_information`) of human-human kappa.
    """
    bounds, kappa = case.present.bounds, case.present.kappa
    if bounds is None or kappa is None or math.isnan(bounds.people_kappa["estimate"]):
        return False
    best_baseline = case.best_baseline_kappa
    required = max(best_baseline, case.rule.min_information * bounds.people_kappa["estimate"])
    has_enough_clusters = kappa["n_clusters"] >= case.rule.min_clusters
    # The bound is that of kappa - best_baseline: kappa > required, with this taken off both sides.
    return has_enough_clusters and bounds.above_baseline["low"] > required - best_baseline


def _reasons_against(case: VerdictEvidence, agreement: Requirements) -> list[Reason]:
    """Return reasons why the grader clearly is not as good as people."""
    bounds, kappa, against = case.present.bounds, case.present.kappa, []
    if bounds is not None and agreement["within_margin"].is_broken:
        figures = wording.comparison_in_words(case, bounds)
        apart = -case.deciding_difference(bounds)["estimate"]
        against.append(because("below", figures=figures, apart=apart))
    scored, rule, best_baseline = case.answers.scored, case.rule, case.best_baseline_kappa
    # On a few units, or where people rarely choose another category, a good grader may give one
    # label only, as a baseline does: this counts against it on a large sample only.
    is_large = bool(agreement) and _is_large(agreement)
    if not agreement and scored is not None:
        # Without bounds the number of clusters with a minority label is unknown. A grader with one
        # label only errs where people gave another: its errors count, 1 - agreement with people.
        n_clusters = scored["n_clusters"]
        n_wrong = (1.0 - scored["estimate"]) * n_clusters
        is_large = n_clusters >= rule.min_clusters and n_wrong >= rule.min_rarer
    if kappa is not None and is_large:
        high = bounds.above_baseline["high"] if bounds else kappa["high"] - best_baseline
        is_constant = says(kappa["remarks"], "constant_rater") and not math.isnan(best_baseline)
        people_agree = bounds is None or agreement["people_agree"].is_met
        if (high <= 0 and people_agree) or is_constant:
            figures = wording.mean_kappa(kappa, case.noun)
            reason = because("no_better_than_baseline", to_beat=best_baseline, figures=figures)
            against.append(reason)
    return against


def _impossible(case: VerdictEvidence) -> Reason | None:
    """Return the reason why no verdict is possible, None if there is none."""
    bounds, difference, people = case.present.bounds, case.present.difference, case.people
    if people.number == 0 and not people.copied:
        return because("nobody")
    if difference is None or case.present.kappa is None:
        return because("no_shared_unit")
    if people.number < 2:
        if not people.copied:
            return because("one_person")
        others = "nobody else" if people.number == 0 else "only one other annotator"
        text = written("because.copied_left", whose=wording.copied_shares(case), left=others)
        return Reason(text, wording.copied_in_words(case))  # human agreement is unknown
    if case.has_too_few_people:
        return because("two_people")
    if bounds is None and math.isnan(difference["estimate"]):
        return because("undefined", why=reason_in_words(difference["remarks"]))
    if math.isnan(case.best_baseline_kappa):
        return because("baselines_undefined", "undefined")
    if bounds is None:
        return because("undefined_plainly", "undefined")
    if bounds.has_no_level:
        return None  # another look may have one
    lows = case.deciding_difference(bounds)["low"], bounds.above_baseline["low"]
    return because("no_interval") if any(math.isnan(low) for low in lows) else None


@dataclass(frozen=True)
class Candidate:
    """A grader in a ranking: its verdict and the rows that it is ranked by."""

    verdict: Verdict
    difference: TableRow | None
    kappa: TableRow | None
    coverage: TableRow | None
    worst_bias: TableRow | None
    price: TableRow | None
    best_buy: bool = False  # Pareto-optimal: no other of the rubric is as cheap and agrees as well

    @property
    def people_differ_more(self) -> bool:
        """True if the grader does not pass, but clearly agrees with people more than they do with
        one another, and no annotator who reverses labels explains this.
        """
        passes = self.verdict["verdict"] not in ("inconclusive", "do_not_use")
        if passes or not self.difference or not self.difference["low"] > 0:
            return False
        return ANNOTATOR_KAPPA not in [key[_STATISTIC] for key in self.verdict["evidence"]]

    @property
    def usd(self) -> float:
        """The price of 1,000 units; infinite where it is not known."""
        return self.price["estimate"] if self.price else math.inf

    @property
    def agreement(self) -> float:
        """Ceiling difference of the grader; minus infinity where undefined."""
        value = self.difference["estimate"] if self.difference else math.nan
        return -math.inf if math.isnan(value) else value


def rank_graders(
    results: pd.DataFrame | Sequence[TableRow], verdicts: Iterable[Verdict]
) -> dict[str, list[Candidate]]:
    """Rank the graders of every rubric, the best choice first. `results` are the rows of an
    analysis, or a table of them, which may be read from results.csv.

    Graders are ranked by verdict, in the order of `JUDGEMENTS`; a verdict for categories or for
    binary labels only ranks below one that holds for both. Among graders that pass, the cheapest
    ranks first, as all meet the rule; among others, the one with the largest ceiling difference.
    """
    rows: Any = results if isinstance(results, Sequence) else results.to_dict("records")
    by_key: dict[tuple[str, ...], TableRow] = {key_of(row): row for row in rows}
    biased = [row for row, p in audited(rows) if status_of(row, p) == "found"]
    ranking: dict[str, list[Candidate]] = {}
    for verdict in verdicts:
        rubric, grader = verdict["rubric"], verdict["grader"]
        keys = deciding_keys(verdict["verdict"], verdict["evidence"])
        difference, kappa = (by_key[key] if key else None for key in keys)
        biases = [row for row in biased if (row["rubric"], audited_grader(row)) == (rubric, grader)]
        candidate = Candidate(
            verdict=verdict, difference=difference, kappa=kappa,
            coverage=by_key.get((rubric, COVERAGE, "", grader, "all", "")),
            worst_bias=max(biases, key=lambda row: abs(row["estimate"]), default=None),
            price=by_key.get((rubric, PRICE, "", grader, "all", "")),
        )  # fmt: skip
        ranking.setdefault(rubric, []).append(candidate)
    for candidates in ranking.values():
        points = [(other.usd, other.agreement) for other in candidates]
        for n, (usd, agreement) in enumerate(points):
            as_good = {other for other in points if other[0] <= usd and other[1] >= agreement}
            is_known = math.isfinite(usd) and math.isfinite(agreement)
            best_buy = is_known and as_good == {(usd, agreement)}  # none but itself and its equals
            candidates[n] = replace(candidates[n], best_buy=best_buy)
        candidates.sort(key=_rank_key)
    return ranking


def best_first(ranking: Mapping[str, Sequence[Candidate]]) -> list[str]:
    """Return all graders by their mean rank over the rubrics of a ranking."""
    ranks: dict[str, list[int]] = {}
    for candidates in ranking.values():
        for rank, candidate in enumerate(candidates):
            ranks.setdefault(candidate.verdict["grader"], []).append(rank)
    return sorted(ranks, key=lambda grader: mean(ranks[grader]))


def _rank_key(candidate: Candidate) -> tuple[int, bool, float, float, str]:
    """Return the sort key of `rank_graders`."""
    verdict = candidate.verdict
    order = wording.JUDGEMENTS.index(verdict["verdict"])
    price = candidate.usd if verdict["verdict"] in PASSES else 0.0
    return order, verdict["holds_for"] != "", price, -candidate.agreement, verdict["grader"]


def deciding_keys(verdict: str, all_keys: Sequence[Sequence[str]]) -> tuple[Key | None, Key | None]:
    """Find the keys of the ceiling difference and of the kappa that decided a verdict, among
    `all_keys` of its evidence. Keys on the labels as they are come first (`VerdictEvidence.keys`),
    and last those on held-out clusters, which decide a verdict at a threshold.
    """
    keys = [tuple(key) for key in all_keys if key[_RATER_B] not in BASELINES]  # only the grader's
    position = -1 if verdict == "can_replace_at_threshold" else 0

    def deciding_key(*statistics: str) -> Key | None:
        candidates = [key for key in keys if key[_STATISTIC] in statistics]
        return candidates[position] if candidates else None

    kappas = *DECIDING_KAPPAS, KAPPA_HELD_OUT, verdict_requirements.REFERENCE_KAPPA
    return deciding_key(CEILING, CEILING_HELD_OUT), deciding_key(*kappas)


@dataclass(frozen=True)
class Recommendation:
    """Recommendation for one rubric; `head` is the part of the `sentence` on the first grader."""

    rubric: str
    sentence: str
    head: str


def recommendations(ranking: Mapping[str, Sequence[Candidate]]) -> list[Recommendation]:
    """Return a recommendation for each rubric with graders, from `rank_graders`."""
    return [recommend(candidates, rubric) for rubric, candidates in ranking.items()]


def recommend(candidates: Sequence[Candidate], rubric: str) -> Recommendation:
    """Recommend the first of a rubric's ranked graders if it passes. If none does, name the
    cheapest way to a decision, and the grader that may be used with correction until then.
    """
    name = rubric or written("recommend.nameless")
    best, *others = candidates
    if best.verdict["verdict"] in PASSES:
        head = _use(best, others, name)
        in_full, in_part = list[str](), list[str]()
        for verdict in (other.verdict for other in others if other.verdict["verdict"] in PASSES):
            is_limited = verdict["threshold"] is not None or verdict["holds_for"]
            (in_part if is_limited else in_full).append(_with_condition(verdict))
        also = written("recommend.also", graders=" and ".join(in_full)) if in_full else ""
        partly = written("recommend.also_in_part", graders=" and ".join(in_part)) if in_part else ""
        return Recommendation(rubric, " ".join(filter(None, (head, also, partly))), head)
    sentence = _not_yet(candidates, name)
    if any(candidate.people_differ_more for candidate in candidates):
        sentence = f"{sentence} {written('recommend.people_differ_more', rubric=name)}"
    return Recommendation(rubric, sentence, sentence)


def _use(best: Candidate, others: Sequence[Candidate], rubric: str) -> str:
    """Return the sentence that recommends the best grader, which passes."""
    verdict, threshold = best.verdict, best.verdict["threshold"]
    agrees = verdict["verdict"] == "agrees_with_reference"
    # Because of its price it ranks above a grader that agrees better with people.
    is_cheaper = math.isfinite(best.usd) and any(
        other.usd > best.usd and other.agreement > best.agreement
        for other in others
        if other.verdict["verdict"] == verdict["verdict"]
        and other.verdict["holds_for"] == verdict["holds_for"]
    )
    if threshold is not None:
        name = "agrees_at" if agrees else "use_at"
    elif agrees:
        name = "agrees"
    elif verdict["holds_for"]:
        name = "use_labels" if verdict["holds_for"] == "labels" else "use_binary"
    else:
        name = "use_cheapest" if is_cheaper else "use"
    fields = {"grader": verdict["grader"], "rubric": rubric, "threshold": threshold}
    return written(f"recommend.{name}", **fields)


def _with_condition(verdict: Verdict) -> str:
    """Return the name of a grader that passes, with the condition under which it passes."""
    grader = verdict["grader"]
    if verdict["threshold"] is not None:
        return written("recommend.also_at", grader=grader, threshold=verdict["threshold"])
    if not verdict["holds_for"]:
        return grader
    name = "also_labels" if verdict["holds_for"] == "labels" else "also_binary"
    return written(f"recommend.{name}", grader=grader)


def _not_yet(candidates: Sequence[Candidate], rubric: str) -> str:
    """Return the sentence on a rubric on which no grader passes."""

    def grader_and_reason(verdict: Verdict) -> dict[str, str]:
        return {"grader": verdict["grader"], "reason": verdict["reason"], "rubric": rubric}

    verdicts = [candidate.verdict for candidate in candidates]
    best, promising = verdicts[0], [verdict for verdict in verdicts if verdict["promising"]]
    decidable = [verdict for verdict in promising if verdict["more_clusters"] > 0]
    is_correctable = best["verdict"] == "only_with_correction"
    if decidable:
        cheapest = min(decidable, key=lambda verdict: verdict["more_clusters"])
        label_more = written("recommend.label_more", **grader_and_reason(cheapest))
        until_then = written("recommend.until_then", **grader_and_reason(best))
        return f"{label_more} {until_then}" if is_correctable else label_more
    if is_correctable:
        return written("recommend.correction", **grader_and_reason(best))
    if best["verdict"] != "inconclusive":
        return written("recommend.nobody", **grader_and_reason(best))
    return written("recommend.not_yet", **grader_and_reason(next(iter(promising), best)))
