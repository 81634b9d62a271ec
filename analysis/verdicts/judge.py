"""Can a grader replace annotators? Decided from bounds of intervals, never from an estimate.

- *can replace*: it meets the rule (`study.settings.analysis`) as it is.
- *can replace at threshold t*: its binary labels do, with a threshold that won on units which it
  was not chosen on.
- *only with correction*: it falls short of people, errs to one side, moves with the wording, or
  fails in a part of the sample, but carries clear information: rates may be corrected by a sample
  that people labelled, single labels may not be trusted.
- *do not use*: it is clearly below people, or no better than a baseline, and carries no clear
  information; or it leaves too many units without an answer.
- *inconclusive*: none of these; with what would help.

Then a rubric's graders are ranked by one rule, with their prices, and it is said what to do about
the rubric: which grader to use, or what to label first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS, MIN_SHARED_UNITS
from evenhand.analysis.bias.audit import audited, audited_grader, status_of
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.annotators import ANNOTATOR_KAPPA
from evenhand.analysis.people.comparison import CEILING, Rate, rates_of
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.requirement import (
    Reason,
    Requirements,
    all_met,
    likely_fault,
    reasons,
    rounded_up,
    unsettled,
)
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows, TableRow, key_of, sample_of
from evenhand.analysis.statistics import limit_shown, reason_in_words, says, shown_apart
from evenhand.analysis.thresholds.tuning import CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.evidence import (
    AT_THRESHOLD,
    Bounds,
    VerdictEvidence,
    evidence_on,
    keys_of,
    part_of,
)
from evenhand.analysis.verdicts.requirements import KAPPA as REFERENCE_KAPPA
from evenhand.analysis.verdicts.requirements import (
    answers_enough,
    as_good_as_people,
    baseline,
    judge_against_reference,
    no_faults,
)
from evenhand.analysis.verdicts.wording import (
    JUDGEMENTS,
    PASSES,
    Decision,
    HoldsFor,
    Judgement,
    NextStep,
    because,
)
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

MOST_PEOPLE = 5
"""Largest multiple of the present number of people for which "ask more" is advised."""
ITEMS_AT_RANDOM = 60
"""How many items to label at random, where further labels were selected."""


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
    people. `rates` are its true positive and true negative rate on the binary label
    (`people.comparison.rates_of`), empty where there is none.
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
    return list(dict.fromkeys(verdict["limits"] for verdict in verdicts if verdict["limits"]))


def judge_graders(
    rows: ResultRows, labels: LabelMatrix, *, rule: DecisionSettings, cluster_noun: str
) -> list[Verdict]:
    """Return a verdict for each grader of a rubric, from what it was compared on (`rows.compared`)
    and its other rows.
    """
    verdicts = []
    for grader in (labels.raters[model] for model in labels.models):
        evidence = evidence_on(rows, labels, grader, rule, cluster_noun)
        if rule.reference:
            verdict = _verdict(evidence, *judge_against_reference(rows, evidence))
        else:
            verdict = judge(evidence)
        verdict["rates"] = rates_of(rows, rule.reference or "humans", grader)
        verdicts.append(verdict)
    return verdicts


def _verdict(
    case: VerdictEvidence,
    decision: Decision,
    evidence: list[list[str]],
    kappas: Sequence[ResultRow | None],
) -> Verdict:
    """Write down a decision, with the keys of the rows that it rests on."""
    return Verdict(
        rubric=case.rubric,
        grader=case.grader,
        verdict=decision.judgement,
        sentence=decision.text,
        reason=decision.short,
        limits="",
        holds_for=decision.holds_for,
        threshold=decision.threshold,
        promising=decision.promising,
        kappas=keys_of(*kappas),
        evidence=evidence,
        more_clusters=decision.more,
        next=decision.next,
        chance=None,
        failing_parts=[],
        rates={},
    )


def judge(case: VerdictEvidence) -> Verdict:
    """Return the verdict on a grader compared with people, without its rates."""
    decision = _decide(case)
    also = wording.further_reasons(case, decision.judgement)
    view = case.present if decision.threshold is None else case.tuned
    kappas = [view.kappa, view.bounds.people] if view.bounds and view.kappa else []
    chance = view.bounds.chance["estimate"] if view.bounds else math.nan
    short, passes = [decision.short], decision.judgement in wording.PASSES
    if case.people.copied:
        short = [decision.short, wording.copied(case)] if passes else [wording.copied(case)]
    if passes and view.bounds is not None and not view.bounds.survives:
        short.append(written("short.if_wrong_fails"))
    return {
        **_verdict(case, decision, case.keys, kappas),
        "sentence": replace(decision, reasons=[*decision.reasons, *also]).text,
        "reason": "; ".join(short),
        "limits": wording.limits(case),
        "promising": decision.promising and not case.people.copied,
        "chance": None if math.isnan(chance) else chance,
        "failing_parts": [part_of(row) for row in case.present.failing],
    }


def _decide(case: VerdictEvidence) -> Decision:
    """Decide, in the order of the picture in docs/concepts.md."""
    present, bounds = case.present, case.present.bounds
    answers = answers_enough(case.answers, case.rule.min_coverage, case.noun)
    held, no_fault = as_good_as_people(case, bounds) if bounds else {}, no_faults(case, present)
    fails = likely_fault({**no_fault, **held})
    promising = bool(held) and not fails
    faults = reasons(no_fault, "broken")
    missing, against = _missing(case, held, fails), _against(case, held)
    shared = present.difference and present.difference["n_units"]
    if case.people.number > 0 and case.answers.share[0] > 0 and not shared:
        return _inconclusive(case, [*faults, because("no_shared_unit")])
    if answers.is_broken:
        return Decision("do_not_use", written("verdict.leaves_out", **case.fields), answers.why())
    if case.selective is not None:
        return _inconclusive(case, [*faults, _selective(*case.selective)], step=_AT_RANDOM)
    passes = not (missing.reasons or against or faults or case.tuned.is_compared)
    tuned = _at_threshold(case)
    passes_tuned = tuned is not None and tuned.judgement in wording.PASSES
    relabel = NextStep(kind="annotators", number=len(case.people.opposed))
    if case.people.opposed and (passes or passes_tuned):
        return _inconclusive(case, [*faults, wording.opposed(case)], step=relabel)
    if case.people.copied and (passes or passes_tuned):
        never = written("because.copy_never_passes", whose=wording.whose(case))
        return _inconclusive(case, [*faults, Reason(never, wording.copied(case))])
    if passes and bounds is not None:
        return _pass(case, bounds)
    if tuned is not None and passes_tuned:
        return tuned
    if tuned is not None and against:
        return replace(tuned, reasons=[*faults, *tuned.reasons])
    # A grader that fails in a part does not pass, whatever more labels would show for the whole.
    falls_short = against or present.failing or (faults and not missing.reasons)
    if falls_short and _is_informative(case):
        return _only_with_correction(case, [*against, *faults])
    if against:
        return Decision("do_not_use", written("verdict.do_not_use", **case.fields), against)
    missing = replace(missing, reasons=[*faults, *missing.reasons], promising=promising)
    if case.people.opposed:
        missing = replace(missing, reasons=[*missing.reasons, wording.opposed(case)], step=relabel)
    if bounds and held["both_kinds"].is_met and held["enough_clusters"].is_met:
        # By the bounds it is below people, by less or more than the margin.
        least, margin = -case.deciding(bounds)["high"], bounds.margin
        if held["within_margin"].state == "open" and 0 < least <= margin:
            ends = {
                "least": shown_apart(least, [0.0, margin]),
                "margin": limit_shown(margin, least),
            }
            return replace(missing, head=written("verdict.known_below", **case.fields, **ends))
    return missing


_AT_RANDOM = NextStep(kind="overlap", number=ITEMS_AT_RANDOM)


def _inconclusive(
    case: VerdictEvidence,
    reasons: Sequence[Reason] = (),
    more: int = 0,
    step: NextStep | None = None,
    promising: bool = False,
) -> Decision:
    """Decide that neither is shown, with what would help."""
    head = written("verdict.inconclusive", **case.fields)
    return Decision("inconclusive", head, reasons, more, promising=promising, step=step)


def _pass(case: VerdictEvidence, bounds: Bounds) -> Decision:
    """Decide that the grader can replace annotators: it meets the rule."""
    row = case.deciding(bounds)
    how = "better" if row["low"] > 0 else "nearly_as_well" if row["high"] < 0 else "as_well"
    margin = limit_shown(bounds.margin, -row["low"])
    passes = because(how, "within_margin", figures=wording.compared(case, bounds), margin=margin)
    if case.is_binary:
        head = written("verdict.can_replace_binary", **case.fields)
        short = Reason(passes.sentence, written("short.binary_only"))
        return Decision("can_replace", head, [short], holds_for="binary")
    head = written("verdict.can_replace", **case.fields)
    binary = case.binary
    if binary is None or binary["low"] > -bounds.margin:
        return Decision("can_replace", head, [passes])
    # It does not extend to the binary labels; the cell of a table has room for what does not.
    falls_short = binary["high"] < -bounds.margin
    figures = written(
        "figures.difference",
        difference=wording.signed(binary["estimate"]),
        interval=wording.interval_of(binary["low"], binary["high"], -bounds.margin, 0.0, sign="+"),
        margin=limit_shown(bounds.margin, -binary["low"], -binary["high"]),
        share="",
        sample=sample_of(binary, case.noun),
    )
    caveat = because("binary_falls_short" if falls_short else "binary_not_shown", figures=figures)
    return Decision("can_replace", head, [Reason(passes.sentence), caveat], holds_for="labels")


def _only_with_correction(case: VerdictEvidence, reasons: Sequence[Reason]) -> Decision:
    """Decide that the grader is informative, but not as good as a person."""
    head = written("verdict.only_with_correction", **case.fields)
    if failing := case.present.failing:
        parts = wording.listed(failing)
        head = written("verdict.only_with_correction_outside", **case.fields, parts=parts)
    if (kappa := case.present.kappa) is not None:
        reasons = [*reasons, because("informative", figures=wording.mean_kappa(kappa))]
    return Decision("only_with_correction", head, reasons)


def _selective(fewer: ResultRow, more: ResultRow) -> Reason:
    """Reason that units with several labels were chosen by their labels."""
    return because(
        "selective",
        noun="item",
        more=more["n_units"],
        fewer=fewer["n_units"],
        several=more["at"].removesuffix("+"),
        few=fewer["at"],
        agree_more=more["estimate"],
        agree_fewer=fewer["estimate"],
        ask=ITEMS_AT_RANDOM,
    )


def _missing(case: VerdictEvidence, required: Requirements, fails: str) -> Decision:
    """Decide that it is inconclusive, with why the grader has not passed as it is, how many further
    clusters would decide, and the cheapest other step; without reasons where it meets every
    requirement.

    `fails` is why it would not meet every requirement with bounds as narrow as its estimates.
    """
    bounds, rule = case.present.bounds, case.rule
    if case.people.number >= 2 and not case.people.meet:
        reason = because("nobody_twice", ask=ITEMS_AT_RANDOM)
        return _inconclusive(case, [reason], step=_AT_RANDOM)
    impossible = _impossible(case)
    if impossible or bounds is None or case.present.kappa is None:
        few = _too_few_shared(case)
        return few or _inconclusive(case, [impossible or because(*_UNDEFINED)])
    if bounds.has_no_level:
        return _too_few_shared(case) or _without_level(case, bounds)
    held = dict(required)
    people = held["people_agree"]
    if not people.is_met and not people.is_likely:
        return _inconclusive(case, people.why(), step=NextStep(kind="rubric", number=0))
    if all_met(held):
        return _inconclusive(case)
    sample = bounds.sample(case.deciding(bounds))
    lacking = rule.min_clusters - sample.clusters
    if lacking > 0:  # the advice has it
        del held["enough_clusters"]
    missing = reasons(held, "open", "broken")
    more = sample.more_to_settle(rule, held)
    # Further people may decide it on the present clusters, where more clusters would not.
    growths = [bound.people_growth for bound in unsettled(held) if bound.of_people > 0]
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
        fails=fails,
        people=people_asked,
        look=bounds.level.look,
    )
    step = NextStep(kind="people", number=people_asked) if people_asked else None
    return _inconclusive(case, [*missing, *advice], more or 0, step)


_UNDEFINED = "undefined_plainly", "undefined"


def _without_level(case: VerdictEvidence, bounds: Bounds) -> Decision:
    if bounds.level.look:
        return _inconclusive(case, [because("looks_used_up")])
    return _inconclusive(case, [because("not_a_look")], step=NextStep(kind="look", number=0))


def _too_few_shared(case: VerdictEvidence) -> Decision | None:
    """Return advice where people and grader share too few units for any figure; None where they
    share enough.
    """
    row = case.present.difference
    if case.people.number < 2 or row is None:
        return None
    remarks, clusters = row["remarks"], row["n_clusters"]
    few = says(remarks, "too_few_shared_by_grader") or says(remarks, "too_few_shared_by_humans")
    more = max(case.rule.min_clusters, MIN_SHARED_UNITS) - clusters
    if not few or more <= 0:
        return None
    return _inconclusive(case, wording.advice(clusters, more, case.noun, undecided=False), more)


def _at_threshold(case: VerdictEvidence) -> Decision | None:
    """Decide for the recommended threshold, if verdicts at thresholds that were tuned on other
    clusters meet all requirements; or that we cannot tell, with what they lack, if a tuned one may
    still meet the rule.
    """
    tuned, bounds = case.tuned, case.tuned.bounds
    if bounds is None or case.is_unfit or not tuned.advises("tuned", "not_identifiable"):
        return None
    if bounds.has_no_level:
        return _without_level(case, bounds)
    held, no_fault = as_good_as_people(case, bounds), no_faults(case, tuned)
    broken = held["within_margin"].is_broken or held["above_baselines"].is_broken
    if broken or not all_met(no_fault):
        return None
    if all_met(held) and tuned.threshold is not None and tuned.advises("tuned"):
        threshold, figures = tuned.threshold["estimate"], wording.compared(case, bounds)
        why = because("tuned", "at_threshold", noun=case.noun, figures=figures, threshold=threshold)
        head = written("verdict.at_threshold", **case.fields, threshold=threshold)
        return Decision("can_replace_at_threshold", head, [why], 0, "binary", threshold)
    sample, fails = bounds.sample(case.deciding(bounds)), likely_fault(held)
    more = sample.more_to_settle(case.rule, held)
    figures = wording.figures(case, bounds, case.deciding(bounds))
    why = because("falls_short_untuned", "tuning_may_help", noun=case.noun, figures=figures)
    advice = wording.advice(sample.clusters, more, case.noun, undecided=True, fails=fails)
    step = NextStep(kind="threshold", number=more) if more else None
    return _inconclusive(case, [why, *advice], more or 0, step, not fails)


def _is_informative(case: VerdictEvidence) -> bool:
    """Return True if its labels carry enough information for rates to be corrected: clearly more
    than a baseline's, and a good part of what one person's labels tell about another's.
    """
    bounds, kappa = case.present.bounds, case.present.kappa
    if bounds is None or kappa is None or math.isnan(bounds.people["estimate"]):
        return False
    to_beat = case.best_baseline_kappa
    least = max(to_beat, case.rule.min_information * bounds.people["estimate"])
    enough = kappa["n_clusters"] >= case.rule.min_clusters
    return enough and bounds.above_baseline["low"] > least - to_beat


def _against(case: VerdictEvidence, held: Requirements) -> list[Reason]:
    """Reasons that the grader clearly is not as good as people."""
    bounds, kappa, against = case.present.bounds, case.present.kappa, []
    if bounds is not None and held["within_margin"].is_broken:
        apart = -case.deciding(bounds)["estimate"]
        against.append(because("below", figures=wording.compared(case, bounds), apart=apart))
    scored, rule, to_beat = case.answers.scored, case.rule, case.best_baseline_kappa
    # On a few units, or where people hardly ever choose another category, a good grader gives one
    # label, too.
    if held:
        is_large = held["enough_clusters"].is_met and held["both_kinds"].is_met
    else:
        clusters = scored["n_clusters"] if scored else 0
        wrong = (1.0 - scored["estimate"]) * clusters if scored else 0.0
        is_large = clusters >= rule.min_clusters and wrong >= rule.min_rarer
    if kappa is not None and is_large:
        high = bounds.above_baseline["high"] if bounds else kappa["high"] - to_beat
        constant = says(kappa["remarks"], "constant_rater") and not math.isnan(to_beat)
        agree = bounds is None or held["people_agree"].is_met
        if (high <= 0 and agree) or constant:
            against.append(baseline(case, kappa, "no_better_than_baseline"))
    return against


def _impossible(case: VerdictEvidence) -> Reason | None:
    """Return the reason why no verdict is possible at all, if there is one."""
    bounds, difference, people = case.present.bounds, case.present.difference, case.people
    if people.number == 0 and not people.copied:
        return because("nobody")
    if difference is None or case.present.kappa is None:
        return because("no_shared_unit")
    if people.number < 2:
        if not people.copied:
            return because("one_person")
        left = "nobody else" if people.number == 0 else "only one other annotator"
        text = written("because.copied_left", whose=wording.whose(case), left=left)
        return Reason(text, wording.copied(case))  # how well the others agree is unknown
    if case.is_unfit:
        return because("two_people")
    if bounds is None and math.isnan(difference["estimate"]):
        return because("undefined", why=reason_in_words(difference["remarks"]))
    if math.isnan(case.best_baseline_kappa):
        return because("baselines_undefined", "undefined")
    if bounds is None:
        return because(*_UNDEFINED)
    if bounds.has_no_level:
        return None  # another look may have one
    if any(math.isnan(row["low"]) for row in (case.deciding(bounds), bounds.above_baseline)):
        return because("no_interval")
    return None


Limit = Literal["", "people_differ_more", "people_hardly_agree"]


@dataclass(frozen=True)
class Candidate:
    """A grader in a ranking: its verdict and the rows that it is ranked by. `best_buy`: no other
    grader of the rubric is as cheap and agrees as well (the Pareto front of the ceiling difference
    against price).
    """

    verdict: Verdict
    difference: TableRow | None
    kappa: TableRow | None
    coverage: TableRow | None
    worst_bias: TableRow | None
    price: TableRow | None
    best_buy: bool = False

    @property
    def limit(self) -> Limit:
        """Limit that people set to a grader that does not pass: they agree with one another
        clearly less than it agrees with them, or hardly at all; "" where they set none.
        """
        if self.verdict["verdict"] not in ("inconclusive", "do_not_use"):
            return ""
        if self.difference and self.difference["low"] > 0:
            evidence = self.verdict["evidence"]
            turned = any(key[1] == ANNOTATOR_KAPPA for key in evidence)
            return "" if turned else "people_differ_more"  # the rubric is not to blame
        step = self.verdict["next"]
        return "people_hardly_agree" if step and step["kind"] == "rubric" else ""

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
    """The graders of every rubric, the best choice first; `results` are the rows of an analysis, or
    a table of them, which may be read from results.csv.

    Verdicts come first, in the order of `JUDGEMENTS`; those that hold for labels or for binary
    verdicts only come after those that hold for both. Among graders that pass the cheapest leads,
    since all meet the rule; among the others the one that agrees with people best.
    """
    rows: Any = results if isinstance(results, Sequence) else results.to_dict("records")
    by_key: dict[tuple[str, ...], TableRow] = {key_of(row): row for row in rows}
    shifts = [row for row, p in audited(rows) if status_of(row, p) == "found"]
    ranking: dict[str, list[Candidate]] = {}
    for verdict in verdicts:
        rubric, grader = verdict["rubric"], verdict["grader"]
        difference, kappa = (
            by_key[key] if key else None
            for key in deciding_keys(verdict["verdict"], verdict["evidence"])
        )
        biases = [row for row in shifts if (row["rubric"], audited_grader(row)) == (rubric, grader)]
        candidate = Candidate(
            verdict=verdict,
            difference=difference,
            kappa=kappa,
            coverage=by_key.get((rubric, COVERAGE, "", grader, "all", "")),
            worst_bias=max(biases, key=lambda row: abs(row["estimate"]), default=None),
            price=by_key.get((rubric, PRICE, "", grader, "all", "")),
        )
        ranking.setdefault(rubric, []).append(candidate)
    for among in ranking.values():
        places = [(other.usd, other.agreement) for other in among]
        for at, (usd, agreement) in enumerate(places):
            as_good = {place for place in places if place[0] <= usd and place[1] >= agreement}
            is_known = math.isfinite(usd) and math.isfinite(agreement)
            best_buy = is_known and as_good == {(usd, agreement)}
            among[at] = replace(among[at], best_buy=best_buy)
        among.sort(key=_place)
    return ranking


def best_first(ranking: Mapping[str, Sequence[Candidate]]) -> list[str]:
    """Return all graders by their mean place over the rubrics of a ranking."""
    places: dict[str, list[int]] = {}
    for ranked in ranking.values():
        for place, each in enumerate(ranked):
            places.setdefault(each.verdict["grader"], []).append(place)
    return sorted(places, key=lambda grader: mean(places[grader]))


def _place(candidate: Candidate) -> tuple[int, bool, float, float, str]:
    verdict = candidate.verdict
    place = JUDGEMENTS.index(verdict["verdict"])
    price = candidate.usd if verdict["verdict"] in PASSES else 0.0
    return place, verdict["holds_for"] != "", price, -candidate.agreement, verdict["grader"]


Key = tuple[str, ...]
"""Unique key of a row, as `RESULTS_KEY`."""


def deciding_keys(
    judgement: str, evidence: Sequence[Sequence[str]]
) -> tuple[Key | None, Key | None]:
    """Find the keys of the ceiling difference and of the kappa that decided a verdict, in its
    evidence. Rows on the categories come first; a verdict at a threshold rests on the last.
    """

    def key(*statistics: str) -> Key | None:
        keys = [tuple(entry) for entry in evidence if entry[3] not in BASELINES]
        decisive = [entry for entry in keys if entry[1] in statistics]
        return decisive[-1 if judgement == AT_THRESHOLD else 0] if decisive else None

    return (key(CEILING, CEILING_HELD_OUT), key(*DECIDING_KAPPAS, KAPPA_HELD_OUT, REFERENCE_KAPPA))


@dataclass(frozen=True)
class Recommendation:
    """`sentence` about one rubric, and `head`, its part that does not speak of other graders."""

    rubric: str
    sentence: str
    head: str


def recommendations(ranking: Mapping[str, Sequence[Candidate]]) -> list[Recommendation]:
    """Return a recommendation for each rubric with graders, from `rank_graders`."""
    return [recommend(candidates, rubric) for rubric, candidates in ranking.items()]


def recommend(candidates: Sequence[Candidate], rubric: str) -> Recommendation:
    """Recommend a grader for a rubric from its ranked graders. The first that passes is
    recommended. If none does, the sentence names the cheapest way to a decision, and the graders
    that may be used with correction until then.
    """
    called = rubric or written("recommend.nameless")
    best, *others = candidates
    if best.verdict["verdict"] in PASSES:
        head = sentence = _use(best, others, called)
        names = [_with_condition(other) for other in others if other.verdict["verdict"] in PASSES]
        if names:
            sentence = f"{head} {written('recommend.also', graders=' and '.join(names))}"
        return Recommendation(rubric, sentence, head)
    sentence = _not_yet(candidates, called)
    if any(candidate.limit == "people_differ_more" for candidate in candidates):
        sentence = f"{sentence} {written('recommend.people_differ_more', rubric=called)}"
    return Recommendation(rubric, sentence, sentence)


def _use(best: Candidate, others: Sequence[Candidate], rubric: str) -> str:
    verdict, at = best.verdict, best.verdict["threshold"]
    agrees = verdict["verdict"] == "agrees_with_reference"
    # Price ranks it before another grader that agrees with people better.
    is_cheaper = math.isfinite(best.usd) and any(
        other.usd > best.usd and other.agreement > best.agreement
        for other in others
        if other.verdict["verdict"] == verdict["verdict"]
        and other.verdict["holds_for"] == verdict["holds_for"]
    )
    if at is not None:
        name = "agrees_at" if agrees else "use_at"
    elif agrees:
        name = "agrees"
    elif verdict["holds_for"]:
        name = "use_labels" if verdict["holds_for"] == "labels" else "use_binary"
    else:
        name = "use_cheapest" if is_cheaper else "use"
    return written(f"recommend.{name}", grader=verdict["grader"], rubric=rubric, threshold=at)


def _with_condition(candidate: Candidate) -> str:
    verdict, grader = candidate.verdict, candidate.verdict["grader"]
    if verdict["threshold"] is not None:
        return written("recommend.also_at", grader=grader, threshold=verdict["threshold"])
    if not verdict["holds_for"]:
        return grader
    name = "also_labels" if verdict["holds_for"] == "labels" else "also_binary"
    return written(f"recommend.{name}", grader=grader)


def _not_yet(candidates: Sequence[Candidate], rubric: str) -> str:
    best = candidates[0]
    fields = {"grader": best.verdict["grader"], "reason": best.verdict["reason"]}
    hopes = [c for c in candidates if c.verdict["promising"] and c.verdict["more_clusters"] > 0]
    corrected = best.verdict["verdict"] == "only_with_correction"
    if hopes:
        cheapest = min(hopes, key=lambda each: each.verdict["more_clusters"]).verdict
        hope = {"grader": cheapest["grader"], "reason": cheapest["reason"]}
        first = written("recommend.label_more", rubric=rubric, **hope)
        return f"{first} {written('recommend.until_then', **fields)}" if corrected else first
    if corrected:
        return written("recommend.correction", rubric=rubric, **fields)
    if best.verdict["verdict"] != "inconclusive":
        return written("recommend.nobody", rubric=rubric, **fields)
    likeliest = next((c.verdict for c in candidates if c.verdict["promising"]), best.verdict)
    fields = {"grader": likeliest["grader"], "reason": likeliest["reason"]}
    return written("recommend.not_yet", rubric=rubric, **fields)
