"""May a grader stand in for people? Decided from bounds of intervals, never from an estimate.

- *may stand in*: it meets the rule (`study.settings.analysis`) as it stands.
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
from collections.abc import Iterator, Sequence
from typing import TypedDict

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Code, reason_in_words, says
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRow, ResultRows, key_of
from evenhand.analysis.verdicts import words
from evenhand.analysis.verdicts.case import Bounds, Case, case_of, share_of_people
from evenhand.analysis.verdicts.judge_reference import judge_against_reference
from evenhand.analysis.verdicts.parts import part_of
from evenhand.analysis.verdicts.words import Judgement
from evenhand.study.settings.analysis import DecisionSettings

MOST_PEOPLE = 5
"""Beyond so many times the present people, "ask more" is no advice."""


class Verdict(TypedDict):
    """A verdict on one grader; `evidence` holds the keys (RESULTS_KEY) of the rows it rests on.

    `more_clusters` says how many more clusters would decide it, 0 where that is no advice;
    `failing_parts` are those of the sample in which the grader is clearly below people.
    """

    rubric: str
    grader: str
    verdict: Judgement
    sentence: str
    evidence: list[list[str]]
    more_clusters: int
    failing_parts: list[str]


def judge_graders(
    rows: ResultRows, labels: LabelMatrix, *, rule: DecisionSettings, cluster_noun: str
) -> list[Verdict]:
    """One verdict per grader of a rubric, read off its results rows."""
    if rule.reference:
        return [_against(rows, labels, labels.raters[m], rule, cluster_noun) for m in labels.models]
    return [
        _judge(case_of(rows, labels, labels.raters[model], rule, cluster_noun))
        for model in labels.models
    ]


def _against(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> Verdict:
    judgement, sentence, evidence, more = judge_against_reference(rows, labels, grader, rule, noun)
    return Verdict(
        rubric=labels.scale.name,
        grader=grader,
        verdict=judgement,
        sentence=sentence,
        evidence=[list(key_of(row)) for row in evidence],
        more_clusters=more,
        failing_parts=[],
    )


def _judge(case: Case) -> Verdict:
    judgement, sentence, more = _decide(case)
    return Verdict(
        rubric=case.rubric,
        grader=case.grader,
        verdict=judgement,
        sentence=sentence + words.besides(case, judgement),
        evidence=case.evidence,
        more_clusters=more,
        failing_parts=[part_of(row) for row in case.failing],
    )


def _decide(case: Case) -> tuple[Judgement, str, int]:
    reasons, more = _missing(case)
    against = _reasons_against(case)
    if case.share_scored[2] < case.rule.min_coverage:
        return "do_not_use", words.leaves_out(case), 0
    if not (reasons or against or case.has_faults or case.is_tuned):
        return "may_stand_in", words.may_stand_in(case), 0
    if (at := _at_threshold(case)) and not case.has_faults_at_threshold:
        return "may_stand_in_at_threshold", words.at_threshold(case, *at), 0
    if against and (held_out := _open_at_threshold(case)) and not case.has_faults_at_threshold:
        labels = _more(case, [held_out])
        open_yet = words.open_at_threshold(case, held_out, labels)
        return "cannot_tell", words.cannot_tell(case, open_yet), labels or 0
    # Whoever fails in a part does not pass, whatever more labels would say of the whole.
    falls_short = against or case.failing or (case.has_faults and not reasons)
    if falls_short and _is_informative(case):
        return "only_with_correction", words.only_with_correction(case, against), 0
    if against:
        return "do_not_use", words.do_not_use(case, against), 0
    return "cannot_tell", words.cannot_tell(case, reasons), more


def _passes(case: Case, bounds: Bounds) -> bool:
    """Whether the bounds meet the rule: not below the margin, above the baselines, beside people
    who agree, on clusters enough of both kinds.
    """
    difference, rule = case.deciding(bounds), case.rule
    return (
        difference["low"] > -bounds.margin
        and bounds.above["low"] > 0
        and _people_agree(case, bounds)
        and bounds.rarer["estimate"] >= rule.min_rarer
        and difference["n_clusters"] >= rule.min_clusters
    )


def _people_agree(case: Case, bounds: Bounds) -> bool:
    """Whether people clearly agree so far that a grader can be judged beside them at all."""
    return bounds.people["low"] >= case.rule.min_people_kappa


def _is_below(case: Case, bounds: Bounds) -> bool:
    """Whether the grader is clearly further below people than the margin."""
    difference, rule = case.deciding(bounds), case.rule
    enough = bounds.rarer["estimate"] >= rule.min_rarer and _people_agree(case, bounds)
    many = difference["n_clusters"] >= rule.min_clusters
    return enough and many and difference["high"] < -bounds.margin


def _at_threshold(case: Case) -> tuple[Bounds, ResultRow] | None:
    """The recommended threshold, where verdicts at it meet all of the rule."""
    bounds, threshold = case.held_out, case.in_force or case.advised
    if bounds is None or threshold is None or not case.advises("tuned") or _unfit(case):
        return None
    passes = _passes(case, bounds) and case.scored_enough
    return (bounds, threshold) if passes else None


def _open_at_threshold(case: Case) -> Bounds | None:
    """The bounds at held-out thresholds, where a tuned one may yet meet the rule."""
    bounds = case.held_out
    if bounds is None or not case.advises("tuned", "not_identifiable") or _unfit(case):
        return None
    return None if _is_below(case, bounds) or bounds.above["high"] <= 0 else bounds


def _unfit(case: Case) -> bool:
    """Whether there are too few people for the scope."""
    return case.n_humans < (3 if case.rule.scope == "like_these" else 2)


def _is_informative(case: Case) -> bool:
    """Whether its labels say enough for rates to be corrected: clearly more than a baseline's, and
    a good part of what one person's labels say of another's.
    """
    bounds, kappa = case.bounds, case.kappa
    if bounds is None or kappa is None or math.isnan(bounds.people["estimate"]):
        return False
    least = max(case.to_beat, case.rule.min_information * bounds.people["estimate"])
    return (
        kappa["n_clusters"] >= case.rule.min_clusters and bounds.above["low"] > least - case.to_beat
    )


def _reasons_against(case: Case) -> list[str]:
    bounds, kappa, reasons = case.bounds, case.kappa, []
    if bounds is not None and _is_below(case, bounds):
        text = words.difference(case.deciding(bounds), case.noun)
        reasons.append(f"{text}, below the margin of {bounds.margin:.3g}")
    if kappa is not None:
        high = bounds.above["high"] if bounds else kappa["high"] - case.to_beat
        constant = says(kappa["remarks"], "constant_rater") and not math.isnan(case.to_beat)
        agree = bounds is None or _people_agree(case, bounds)
        if (high <= 0 and agree) or constant:
            text = words.kappa(kappa, case.noun)
            reasons.append(f"{text}, no better than a baseline ({case.to_beat:.2f})")
    return reasons


def _missing(case: Case) -> tuple[list[str], int]:
    """Why the grader has not passed, in plain words, and how many more clusters would decide."""
    bounds, kappa, rule = case.bounds, case.kappa, case.rule
    impossible = _impossible(case)
    if impossible or bounds is None or kappa is None:
        return _too_few_shared(case) or ([impossible], 0)
    missing = []
    if not _people_agree(case, bounds):
        missing.append(words.people_hardly_agree(bounds.people, rule.min_people_kappa))
        if bounds.people["estimate"] < rule.min_people_kappa:
            return missing, 0
    difference = case.deciding(bounds)
    if difference["low"] <= -bounds.margin:
        text = words.difference(difference, case.noun)
        missing.append(f"{text}, and the margin is {bounds.margin:.3g}")
    if bounds.above["low"] <= 0:
        missing.append(f"{words.kappa(kappa)}, not clearly above a baseline ({case.to_beat:.2f})")
    if (rarer := bounds.rarer["estimate"]) < rule.min_rarer:
        missing.append(words.too_few_rarer(rarer, rule.min_rarer, case.noun))
    if not case.scored_enough:
        missing.append(words.may_leave_out(case))
    more = _more(case, [bounds] if missing else [])
    people = None if more is not None else _more_people(case, bounds)
    undecided = bool(missing)
    missing += words.advice(
        difference["n_clusters"], more, case.noun, undecided=undecided, people=people
    )
    return missing, more or 0


def _too_few_shared(case: Case) -> tuple[list[str], int] | None:
    """What to say where people and grader share too few units for any figure."""
    row = case.difference
    few: tuple[Code, ...] = ("too_few_shared_by_grader", "too_few_shared_by_humans")
    if case.n_humans < 2 or row is None or not any(says(row["remarks"], each) for each in few):
        return None
    clusters = row["n_clusters"]
    more = max(case.rule.min_clusters, MIN_SHARED_UNITS) - clusters
    if more <= 0:
        return None
    return words.advice(clusters, more, case.noun, undecided=False), more


def _more(case: Case, undecided: Sequence[Bounds]) -> int | None:
    """How many more clusters would decide, with a chance of 80%; None where no realistic number."""
    clusters, needed = 0, case.rule.min_clusters
    for bounds in undecided or ([case.bounds] if case.bounds else []):
        clusters = case.deciding(bounds)["n_clusters"]
        if rarer := bounds.rarer["estimate"]:
            needed = max(needed, math.ceil(clusters * case.rule.min_rarer / rarer))
    asked = [each for bounds in undecided for each in _asked(case, bounds)]
    return clusters_to_decide(clusters, asked, needed)


def _asked(case: Case, bounds: Bounds) -> Iterator[Bound]:
    """What is not decided yet."""
    for row, bound in (
        (case.deciding(bounds), -bounds.margin),
        (bounds.above, 0.0),
        (bounds.people, case.rule.min_people_kappa),
    ):
        if not row["low"] > bound:
            ends = (row["low"], row["estimate"], row["high"])
            varies = not says(row["remarks"], "nothing_varies")
            of_people = share_of_people(row)
            levels = bounds.alpha, bounds.next_alpha
            yield Bound(*ends, bound, *levels, varies, of_people, row is bounds.people)
    if not case.scored_enough:
        share, least, most = case.share_scored
        yield Bound(least, share, most, case.rule.min_coverage)


def _more_people(case: Case, bounds: Bounds) -> int | None:
    """How many more people would decide it on the clusters that there are, where clusters do not;
    None where no realistic number does.
    """
    growths = [each.people_growth for each in _asked(case, bounds) if each.of_people > 0]
    if not growths or max(growths) > MOST_PEOPLE:
        return None
    return math.ceil(case.n_humans * (max(growths) - 1.0) - 1e-9)


def _impossible(case: Case) -> str:
    """Why nothing can be said at all, if so."""
    bounds = case.bounds
    if case.n_humans == 0 and not case.copied:
        return "no person has labelled"
    if case.difference is None or case.kappa is None:
        return "it labelled no unit that a person labelled"
    if case.n_humans < 2:
        return words.too_few_people(case)
    if _unfit(case):
        return "only two people labelled, and a verdict for people like them needs three"
    if math.isnan(case.difference["estimate"]):
        why = reason_in_words(case.difference["remarks"])
        return f"the comparison with people is undefined ({why})"
    if math.isnan(case.to_beat):
        return "the baselines are undefined, because people used one category only"
    if bounds is None:
        return "the comparison with people is undefined"
    if says(bounds.difference["remarks"], "no_level"):
        return words.no_level(bounds.look)
    for row in (case.deciding(bounds), bounds.above):
        if math.isnan(row["low"]):
            return "there is no interval (leaving out one cluster leaves nothing to compare)"
    return ""
