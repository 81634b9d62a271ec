"""Verdicts in words: what each is called, and the reasons for it. All sentences are in
`evenhand/texts.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, get_args

from evenhand.analysis.bias import Finding
from evenhand.analysis.bootstrap.influence import ALPHA, USUAL
from evenhand.analysis.injection import Audit
from evenhand.analysis.notes import reason_in_words, text_of
from evenhand.analysis.people.reversed_scales import EXCHANGED, HIGHER, LOWER, REVERSED, Opposed
from evenhand.analysis.requirement import Reason
from evenhand.analysis.results import ResultRow
from evenhand.analysis.statistics import limit_shown, places_apart, share_apart, shown_apart
from evenhand.analysis.verdicts.case import Answers, Bounds, Case, View, margin_of
from evenhand.analysis.verdicts.evidence import part_of
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.texts import texts, written

MOST_PARTS = 3
"""Parts of the sample that a sentence names."""
ONE_CATEGORY = 0.95
"""Share of one category from which on a grader hardly tells units apart."""
ITEMS_AT_RANDOM = 60
"""How many items to label at random, where further labels were selected."""
Judgement = Literal[
    "may_stand_in",
    "may_stand_in_at_threshold",
    "agrees_with_reference",
    "only_with_correction",
    "cannot_tell",
    "disagrees_with_reference",
    "do_not_use",
]
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
"""All verdicts, the best first."""
PASSES: tuple[Judgement, ...] = JUDGEMENTS[:3]
"""Verdicts that let a grader be used as it is."""
_ICONS: dict[Judgement, str] = {
    "may_stand_in": "✓",
    "may_stand_in_at_threshold": "✓",
    "agrees_with_reference": "✓",
    "only_with_correction": "±",
    "cannot_tell": "?",
    "disagrees_with_reference": "✕",
    "do_not_use": "✕",
}


@dataclass(frozen=True)
class Title:
    """Names of a verdict: an icon and words on a card, fewer words in a table."""

    icon: str
    words: str
    short: str


TITLES: dict[Judgement, Title] = {
    each: Title(_ICONS[each], written(f"title.{each}"), written(f"short_title.{each}"))
    for each in JUDGEMENTS
}
HoldsFor = Literal["", "labels", "binary"]


class NextStep(TypedDict):
    """The cheapest way on from "cannot tell": more `clusters`, more `people` on the same clusters,
    another `threshold` (shown by more clusters), a clearer `rubric`, the labels of `annotators` who
    label the other way round, several labels on units drawn at random (`overlap`), or a `look`,
    which a report is, at labels that came in since the last; with how many where known.
    """

    kind: Literal["clusters", "people", "threshold", "rubric", "annotators", "overlap", "look"]
    number: int


def because(name: str, short: str | None = None, /, **fields: object) -> Reason:
    """Return a reason by its name in the texts: its sentence, and the same in a few words where
    there are any, under the same name or under `short`.
    """
    short = name if short is None else short
    words = written(f"short.{short}", **fields) if f"short.{short}" in texts() else ""
    return Reason(written(f"because.{name}", **fields), words)


@dataclass(frozen=True)
class Decision:
    """A verdict before it is written: its sentence, its reasons, how many more clusters would
    decide, and what a pass holds for if not for all: labels, or binary verdicts, which may be those
    at a `threshold`. `promising`: by its estimates it would pass. `step` is the cheapest way on,
    where it is not more clusters.
    """

    judgement: Judgement
    head: str
    reasons: Sequence[Reason] = field(default_factory=list)
    more: int = 0
    holds_for: HoldsFor = ""
    threshold: float | None = None
    promising: bool = False
    step: NextStep | None = None

    @property
    def next(self) -> NextStep | None:
        """The cheapest way on from "cannot tell", where one is known."""
        if self.judgement != "cannot_tell":
            return None
        return self.step or (NextStep(kind="clusters", number=self.more) if self.more else None)

    @property
    def text(self) -> str:
        """Verdict first, then every reason."""
        return " ".join([self.head, *(each.sentence for each in self.reasons)])

    @property
    def short(self) -> str:
        """The reasons that decided it, in a few words."""
        known = list(dict.fromkeys(each.short for each in self.reasons if each.short))
        kept = known[-1:] if self.judgement == "cannot_tell" else known[:2]
        return "; ".join(kept)


def may_stand_in(case: Case, bounds: Bounds) -> Decision:
    """Decide that the grader may stand in for people: it meets the rule."""
    row = case.deciding(bounds)
    how = "better" if row["low"] > 0 else "nearly_as_well" if row["high"] < 0 else "as_well"
    margin = limit_shown(bounds.margin, -row["low"])
    passes = because(how, "within_margin", figures=compared(case, bounds), margin=margin)
    if case.is_binary:
        head = written("verdict.may_stand_in_binary", **case.fields)
        short = Reason(passes.sentence, written("short.binary_only"))
        return Decision("may_stand_in", head, [short], holds_for="binary")
    head = written("verdict.may_stand_in", **case.fields)
    caveat = of_binary_verdicts(case, bounds)
    if caveat:  # the cell of a table has room for what does not hold
        passes = Reason(passes.sentence)
    return Decision("may_stand_in", head, [passes, *caveat], holds_for="labels" if caveat else "")


def at_threshold(case: Case, bounds: Bounds, advised: ResultRow) -> Decision:
    """Decide that the grader may stand in at another threshold, where its binary verdicts meet the
    rule.
    """
    threshold, figures = advised["estimate"], compared(case, bounds)
    head = written("verdict.at_threshold", **case.fields, threshold=threshold)
    why = because("tuned", "at_threshold", noun=case.noun, figures=figures, threshold=threshold)
    return Decision("may_stand_in_at_threshold", head, [why], 0, "binary", threshold)


def only_with_correction(case: Case, reasons: Sequence[Reason]) -> Decision:
    """Decide that the grader is informative, but not as good as a person."""
    if failing := case.present.failing:
        parts = listed(failing)
        head = written("verdict.only_with_correction_outside", **case.fields, parts=parts)
    else:
        head = written("verdict.only_with_correction", **case.fields)
    reasons = list(reasons)
    if (kappa := case.present.kappa) is not None:
        reasons.append(because("informative", figures=mean_kappa(kappa)))
    return Decision("only_with_correction", head, reasons)


def do_not_use(
    case: Case,
    reasons: Sequence[Reason],
    head: Literal["do_not_use", "leaves_out"] = "do_not_use",
) -> Decision:
    """Decide that the grader is clearly below the rule and not informative, or leaves out too much
    to be used.
    """
    return Decision("do_not_use", written(f"verdict.{head}", **case.fields), reasons)


def cannot_tell(
    case: Case,
    reasons: Sequence[Reason],
    more: int = 0,
    step: NextStep | None = None,
    promising: bool = False,
    below: Bounds | None = None,
) -> Decision:
    """Decide that neither is shown, with what would help; and first what the bounds do show where
    by these the grader is `below` people, by less or more than the margin.
    """
    head = written("verdict.cannot_tell", **case.fields)
    if below is not None:
        least, margin = -case.deciding(below)["high"], below.margin
        ends = {"least": shown_apart(least, [0.0, margin]), "margin": limit_shown(margin, least)}
        head = written("verdict.known_below", **case.fields, **ends)
    return Decision("cannot_tell", head, reasons, more, promising=promising, step=step)


def besides(case: Case, judgement: Judgement) -> list[Reason]:
    """Further reasons that a reader must know: the grader's faults, the units it leaves out, whose
    labels it repeats, and the parts of the sample in which this holds.
    """
    view = case.tuned if judgement == "may_stand_in_at_threshold" else case.present
    found = []
    if judgement in ("only_with_correction", "do_not_use"):
        found += _what_is_wrong(case)
    found += _left_out(case)
    found += _if_wrong(case, view.bounds, judgement)
    if case.gross is not None and judgement in PASSES:
        found.append(gross_errors(case, case.gross))
    audit, bounds = case.injection, case.rule.injection
    if audit is not None and not audit.fails(bounds):
        found += injected(audit, bounds)
    if case.people.copied and case.people.number >= 2:
        whose = written("because.copied_not_counted", whose=_whose(case))
        found.append(Reason(whose, copied(case)))
    if case.twins:
        found.append(because("twins", names=" and ".join(case.twins)))
    if case.people.opposed and judgement != "cannot_tell":
        found.append(opposed(case))
    if _has_interval(case):
        found += _parts_looked_at(view, names_failing=judgement == "do_not_use")
    return found


def limits(case: Case) -> str:
    """State what no interval here covers; empty where there is no interval."""
    if not _has_interval(case):
        return ""
    if case.rule.scope == "like_these":
        return "" if case.present.parts else written("limits.parts")
    people = "two" if case.people.number == 2 else str(case.people.number)
    if case.present.parts:
        return written("limits.people", people=people)
    return written("limits.people_and_parts", people=people)


def _has_interval(case: Case) -> bool:
    row = case.present.difference
    return case.people.number >= 2 and row is not None and row["low"] == row["low"]


def _what_is_wrong(case: Case) -> list[Reason]:
    """Reason for a plain fault that can be mended, where the labels look like one."""
    commonest, bounds = case.mistakes.commonest, case.present.bounds
    if commonest is not None:
        own, people = (row["estimate"] for row in commonest)
        if own >= ONE_CATEGORY and people < ONE_CATEGORY - 0.1:
            category = commonest[0]["at"]
            return [because("one_category", category=category, own=own, people=people)]
    best = next(iter(case.mistakes.recoded), None)
    if bounds is None or best is None:
        return []
    kappa = best["estimate"]
    if not kappa >= bounds.people["estimate"] / 2:
        return []
    return [because(_RECODED[best["at"]], reading=text_of(best["remarks"]), kappa=kappa)]


_RECODED = {REVERSED: "reversed", LOWER: "lower", HIGHER: "higher", EXCHANGED: "exchanged"}


def _left_out(case: Case) -> list[Reason]:
    """Reasons on units that the grader left out, although it may pass."""
    share, least, most = case.answers.share
    coverage, needed = case.answers.coverage, case.rule.min_coverage
    if coverage is None or most < needed or f"{1 - share:.0%}" == "0%":
        return []
    if least < needed:  # the verdict says so already
        return with_unscored(case.answers)
    left_out = because("left_out", missing=1 - share, why=why_unscored(coverage))
    return [left_out, *with_unscored(case.answers)]


def _if_wrong(case: Case, bounds: Bounds | None, judgement: Judgement) -> list[Reason]:
    """Reason with the deciding difference if every missing answer were wrong; empty where none is
    missing, or nothing depends on it.
    """
    row = bounds.if_wrong if bounds else None
    if bounds is None or row is None or math.isnan(row["low"]):
        return []
    if judgement not in (*PASSES, "cannot_tell"):
        return []
    how = "inconclusive" if judgement == "cannot_tell" else "holds" if bounds.survives else "fails"
    return [Reason(written(f"because.if_wrong_{how}", figures=_figures(row, case, bounds)))]


def _parts_looked_at(view: View, *, names_failing: bool) -> list[Reason]:
    """Reason listing the parts of the sample by result: within the margin, below (unless the
    verdict's own sentence names these), or open; empty where none was tested.
    """
    parts, failing = view.parts, view.failing
    within = [row for row in parts if row["low"] > -margin_of(row)]
    open_yet = len(parts) - len(within) - len(failing)
    if not parts or not (within or open_yet or names_failing):
        return []
    if not (failing or open_yet):
        return [because("holds_in_each_part", parts=listed(within))]
    found = [written("because.parts_within", parts=listed(within))] if within else []
    if failing and names_failing:
        found.append(written("because.parts_below", parts=listed(failing)))
    if open_yet:
        found.append(written("because.parts_open", open=open_yet, all=len(parts)))
    return [because("parts", found="; ".join(found))]


def below(case: Case, bounds: Bounds) -> Reason:
    """Reason that the grader is clearly below people."""
    apart = -case.deciding(bounds)["estimate"]
    return because("below", figures=compared(case, bounds), apart=apart)


def could_be_below(case: Case, bounds: Bounds) -> Reason:
    """Reason that the grader may be further below people than the margin."""
    apart = shown_apart(-case.deciding(bounds)["low"], [bounds.margin])
    chance = percent(bounds.chance["estimate"])
    figures = compared(case, bounds)
    return because("could_be_below", figures=figures, chance=chance, apart=apart)


def gross_errors(case: Case, row: ResultRow, allowed: float | None = None) -> Reason:
    """Reason with the share of gross errors and its bound, or that more than `allowed` may be."""
    name, short, most = "too_many_gross_errors", "gross_errors", allowed
    if most is None:
        name, short, most = "gross_errors" if row["estimate"] > 0 else "no_gross_errors", "", 1.0
    fields = {"units": row["n_units"], "far": row["at"], "points": case.points, "allowed": most}
    high = share_apart(row["high"], most)
    return because(name, short, **fields, share=row["estimate"], high=high)


def selective(fewer: ResultRow, more: ResultRow) -> list[Reason]:
    """Reason that units with several labels were chosen by their labels."""
    reason = because(
        "selective",
        noun="unit",
        more=more["n_units"],
        fewer=fewer["n_units"],
        several=more["at"].removesuffix("+"),
        few=fewer["at"],
        agree_more=more["estimate"],
        agree_fewer=fewer["estimate"],
        ask=ITEMS_AT_RANDOM,
    )
    return [reason]


def falls_short_untuned(case: Case, held_out: Bounds) -> Reason:
    """Reason that the grader falls short at its present threshold, but another may do."""
    figures = _figures(case.deciding(held_out), case, held_out)
    return because("falls_short_untuned", "tuning_may_help", noun=case.noun, figures=figures)


def baseline(case: Case, row: ResultRow, *, clearly: bool) -> Reason:
    """Reason that the grader is no better than a baseline, or (unless `clearly`) not clearly
    better.
    """
    name = "no_better_than_baseline" if clearly else "not_above_baseline"
    return because(name, to_beat=case.to_beat, figures=mean_kappa(row, case.noun))


def people_hardly_agree(case: Case, people: ResultRow, least: float) -> list[Reason]:
    """Reasons that people hardly agree, or may not, so that no grader can be judged by them; and
    what to do, unless some of them label the other way round.
    """
    name = "people_may_not_agree" if people["estimate"] >= least else "people_hardly_agree"
    kappa, low = (shown_apart(people[end], [least]) for end in ("estimate", "low"))
    found = [because(name, kappa=kappa, low=low, least=least)]
    if name == "people_hardly_agree" and not case.people.opposed:
        found.append(because("clearer_rubric"))
    return found


def opposed(case: Case) -> Reason:
    """Reason that annotators label the other way round, so that no grader can be judged by all."""
    names = [each.annotator for each in case.people.opposed]
    if not all(each.is_sure for each in case.people.opposed):
        names += case.people.opposed[0].others.split(", ")
    text = " ".join(opposed_in_words(each, "because") for each in case.people.opposed)
    return Reason(text, written("short.opposed", names=" and ".join(names)))


def opposed_in_words(opposed: Opposed, where: Literal["because", "note"]) -> str:
    """A sentence on an annotator who labels the other way round, and what to do."""
    return written(
        f"{where}.opposed" if opposed.is_sure else f"{where}.perhaps_opposed",
        annotator=opposed.annotator,
        others=opposed.others,
        given=opposed.given["estimate"],
        recoded=opposed.recoded["estimate"],
        how=opposed.how,
        way="exchange categories" if opposed.how == EXCHANGED else "label the other way round",
    )


def too_few_rarer(rarer: float, least: int, noun: str) -> Reason:
    """Reason that nearly all labels are of one category."""
    return because("too_few_rarer", rarer=rarer, least=least, noun=noun)


def too_few_worth(worth: int, least: int, noun: str) -> Reason:
    """Reason that unequal clusters carry no more information than a few equal ones."""
    return because("too_few_worth", worth=worth, least=least, noun=noun)


def unanswered(answers: Answers, needed: float, noun: str) -> list[Reason]:
    """Reasons that a grader leaves out too many units, however good its answers are; or may."""
    (share, least, most), row = answers.share, answers.coverage
    about = {"why": why_unscored(row), "needed": needed, "share": share, "missing": 1 - share}
    if most >= needed:
        return [because("may_leave_out", "no_answer", least=share_apart(least, needed), **about)]
    sample = sample_of(row, noun) if row else "no units"
    clearly = because("no_answer", most=share_apart(most, needed), sample=sample, **about)
    return [clearly, *with_unscored(answers)]


def with_unscored(answers: Answers) -> list[Reason]:
    """Reason with the agreement on the units that the grader answered, and on all; empty where
    unknown.
    """
    scored, everywhere = answers.scored, answers.everywhere
    if scored is None or everywhere is None:
        return []
    figures = {"scored": scored["estimate"], "everywhere": everywhere["estimate"]}
    return [because("with_unscored", **figures)]


def why_unscored(coverage: ResultRow | None) -> str:
    """The reasons for units without an answer, counted, in brackets; empty if all have one."""
    remarks = coverage["remarks"] if coverage else ()
    said = next((str(each.detail[0]) for each in remarks if each.code == "unscored"), "")
    return f" ({said.replace('_', ' ')})" if said else ""


def in_parts(case: Case, view: View) -> list[Reason]:
    """Reasons naming the parts of the sample in which the grader fails."""
    found = []
    for row in view.failing:
        figures = _figures(row, case, view.bounds, at_once=len(view.parts))
        found.append(because("below_in_part", part=part_of(row), figures=figures))
    if len(found) > 1:
        first = replace(found[0], short=written("short.below_in_parts", parts=len(found)))
        found = [first, *(replace(each, short="") for each in found[1:])]
    return found


def unstable(moving: ResultRow) -> Reason:
    """Reason that the label changes with the rubric's wording."""
    interval = interval_of(moving["low"], moving["high"])
    return because("wording", kappa=moving["estimate"], interval=interval)


def bias(finding: Finding) -> Reason:
    """Reason that the grader errs to one side."""
    short = written("short.bias", fault=finding.short)
    return Reason(written("because.bias", fault=finding.fault), short)


def injected(audit: Audit, bounds: InjectionBounds) -> list[Reason]:
    """Reasons from the grader's injection audit: the ways in which a text can influence it, that it
    withstands, or the ways on which we cannot tell yet.
    """
    status, telling = audit.status(bounds), audit.telling(bounds)
    figures = [(each.name, each.figures(bound)) for each, bound in telling]
    if status == "withstands":
        highs = {name: of["high"] for name, of in figures}
        return [because("withstands", **highs, sample=figures[0][1]["sample"])]
    names = {} if status != "cannot_tell" else _MAY_BE
    return [because(names.get(name, name), **of) for name, of in figures]


_MAY_BE = {
    "pulled": "may_be_pulled",
    "knocked_off": "may_be_knocked_off",
    "silenced": "may_be_silenced",
}


def of_binary_verdicts(case: Case, bounds: Bounds) -> list[Reason]:
    """Reason that a pass on the categories does not extend to the binary verdicts; empty if it
    does.
    """
    row = case.binary
    if row is None or row["low"] > -bounds.margin:
        return []
    name = "binary_falls_short" if row["high"] < -bounds.margin else "binary_not_shown"
    figures = written(
        "figures.difference",
        difference=signed(row["estimate"]),
        interval=interval_of(row["low"], row["high"], -bounds.margin, 0.0, sign="+"),
        margin=limit_shown(bounds.margin, -row["low"], -row["high"]),
        share="",
        sample=sample_of(row, case.noun),
    )
    return [because(name, figures=figures)]


def no_level(look: int) -> Reason:
    """Reason that no verdict is given at this look."""
    return because("looks_used_up" if look else "not_a_look")


def one_person(case: Case) -> Reason:
    """Reason that people's agreement is unknown: too few people, not counting copied ones."""
    if not case.people.copied:
        return because("one_person")
    left = "nobody else" if case.people.number == 0 else "only one other person"
    return Reason(written("because.copied_left", whose=_whose(case), left=left), copied(case))


def copied(case: Case) -> str:
    """Name the people whose labels the grader repeats, in few words. With two people it is not
    known which of them erred where they differ, so that a copy looks like a grader that is right as
    often as the better one.
    """
    known = "perhaps_copied" if case.people.number < 2 else "copied"
    return written(f"short.{known}", names=" and ".join(person for person, _ in case.people.copied))


def nobody_twice() -> Reason:
    """Reason that no unit has labels of two people."""
    return because("nobody_twice", ask=ITEMS_AT_RANDOM)


def never_passes(case: Case) -> Reason:
    """Reason that a copy of a person's labels proves nothing about a grader, however well it
    agrees.
    """
    return Reason(written("because.copy_never_passes", whose=_whose(case)), copied(case))


def _whose(case: Case) -> str:
    each = [f"those of {person} on {share:.0%} of units" for person, share in case.people.copied]
    return " and ".join(each)


def undefined(row: ResultRow) -> Reason:
    """Reason that the comparison gave no number."""
    return because("undefined", why=reason_in_words(row["remarks"]))


def plainly(
    name: Literal[
        "nobody",
        "no_shared_unit",
        "few_shared",
        "two_people",
        "baselines_undefined",
        "undefined_plainly",
        "no_interval",
    ],
) -> Reason:
    """Reason without figures."""
    is_undefined = name in ("baselines_undefined", "undefined_plainly")
    return because(name, "undefined" if is_undefined else name)


def advice(
    clusters: int,
    more: int | None,
    noun: str,
    *,
    undecided: bool,
    promising: bool = True,
    people: int | None = None,
    look: int = 0,
) -> list[Reason]:
    """Advice on how many more clusters would decide, if anything is undecided or there are too few;
    or else on how many more people. If the grader is not `promising`, they would rule it out. After
    this `look`, the cost of the next one, where known.
    """
    if more is None and people:
        whom = "one more person" if people == 1 else f"about {people} more people"
        return [because("ask_more_people", noun=noun, people=whom)]
    if more is None:
        return [because("nothing_decides", noun=noun)]
    if more <= 0:
        return []
    nouns = noun if more == 1 else f"{noun}s"
    fields = {"clusters": clusters, "noun": noun, "more": more, "nouns": nouns}
    found = because("label_more", **fields)
    if not undecided:
        found = because("label_more_for_enough", "label_more", **fields)
    elif not promising:
        found = because("label_to_rule_out", **fields)
    if look:
        after = written("because.next_look_planned" if look < USUAL else "because.next_look")
        found = replace(found, sentence=f"{found.sentence} {after}")
    return [found]


def compared(case: Case, bounds: Bounds) -> str:
    """Figures of a comparison in words: the two kappas, their difference with the interval that
    decides, the margin, and n.
    """
    row = case.deciding(bounds)
    people = bounds.people["estimate"]
    kappa = people + row["estimate"]
    return written("figures.compared", kappa=kappa, people=people, **_interval(row, case, bounds))


def _figures(row: ResultRow, case: Case, bounds: Bounds | None, at_once: int = 1) -> str:
    return written("figures.difference", **_interval(row, case, bounds, at_once))


def _interval(
    row: ResultRow, case: Case, bounds: Bounds | None, at_once: int = 1
) -> dict[str, object]:
    alpha, margin, share = ALPHA, margin_of(row), 0.0
    if bounds:
        alpha, share = bounds.level.alpha / at_once, bounds.level.margin_share
        margin = bounds.margin if math.isnan(margin) else margin
    people = "two people" if case.people.number == 2 else f"{case.people.number} people"
    return {
        "difference": signed(row["estimate"]),
        "interval": interval_of(row["low"], row["high"], -margin, 0.0, alpha=alpha, sign="+"),
        "margin": limit_shown(margin, -row["low"], -row["high"]),
        "share": written("figures.share", share=share) if share else "",
        "sample": f"{sample_of(row, case.noun)}, {people}",
    }


def interval_of(
    low: float, high: float, *limits: float, alpha: float = ALPHA, sign: str = ""
) -> str:
    """The interval between two bounds at a one-sided level, to follow an estimate: each with as
    many decimals as tell it from the limits that it is held against. Empty where there is none.

    >>> interval_of(-0.0973, 0.1, -0.1, alpha=0.0123, sign="+")
    ', 97.5% CI -0.097 to +0.10'
    >>> interval_of(float("nan"), float("nan"))
    ''
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    first, last = (shown_apart(end, limits, sign=sign) for end in (low, high))
    return written("figures.interval", level=level_of(alpha), low=first, high=last)


def signed(number: float) -> str:
    """Two decimals with a sign; none before a zero.

    >>> signed(0.123), signed(-0.001)
    ('+0.12', '0.00')
    """
    return f"{number:+.2f}" if f"{abs(number):.2f}" != "0.00" else "0.00"


def percent(chance: float) -> str:
    """A probability, rounded to the few points to which it is known.

    >>> percent(0.853), percent(0.997), percent(0.004)
    ('about 85%', 'over 99%', 'under 1%')
    """
    if chance > 0.99:
        return "over 99%"
    return f"about {chance:.0%}" if chance >= 0.01 else "under 1%"


def level_of(alpha: float) -> str:
    """The confidence of an interval of two bounds at a one-sided level.

    >>> level_of(0.025), level_of(0.0125), level_of(0.0048), level_of(0.0001), level_of(1e-7)
    ('95%', '97.5%', '99%', '99.98%', '99.99998%')
    """
    level = 100 * (1 - 2 * alpha)
    return f"{level:.{places_apart(level, [100], 1)}f}%".replace(".0%", "%")


def mean_kappa(row: ResultRow, noun: str = "") -> str:
    """The mean kappa with people."""
    fields = {"kappa": row["estimate"], "interval": interval_of(row["low"], row["high"])}
    if noun:
        return written("figures.kappa_on", **fields, sample=sample_of(row, noun))
    return written("figures.kappa", **fields)


def listed(rows: Sequence[ResultRow]) -> str:
    """The names of parts, or how many they are."""
    names = [part_of(row) for row in rows]
    return ", ".join(names) if len(names) <= MOST_PARTS else f"{len(names)} parts"


def sample_of(row: ResultRow, noun: str) -> str:
    """Number of units and of clusters, in words."""
    units = f"{row['n_units']} units"
    return units if noun == "unit" else f"{units} in {row['n_clusters']} {noun}s"
