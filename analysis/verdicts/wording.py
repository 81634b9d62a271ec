"""Verdicts in words: names of verdicts, figures, and the sentences that follow their reasons. All
sentences are in `evenhand/texts.toml`; the reason of a requirement is given where it is declared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, get_args

from evenhand.analysis.bootstrap.bounds import ALPHA, USUAL
from evenhand.analysis.injection import Audit
from evenhand.analysis.people.annotators import EXCHANGED, HIGHER, LOWER, REVERSED, Opposed
from evenhand.analysis.requirement import Reason
from evenhand.analysis.results import ResultRow, sample_of
from evenhand.analysis.statistics import (
    limit_shown,
    places_apart,
    share_apart,
    shown_apart,
    text_of,
)
from evenhand.analysis.verdicts.evidence import (
    Answers,
    Bounds,
    VerdictEvidence,
    ViewEvidence,
    margin_of,
    part_name,
)
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.texts import texts, written

MOST_PARTS = 3
"""Parts of the sample that a sentence names."""
Judgement = Literal[
    "can_replace",
    "can_replace_at_threshold",
    "agrees_with_reference",
    "only_with_correction",
    "inconclusive",
    "disagrees_with_reference",
    "do_not_use",
]
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
"""All verdicts, the best first."""
PASSES: tuple[Judgement, ...] = JUDGEMENTS[:3]
"""Verdicts that let a grader be used as it is."""


@dataclass(frozen=True)
class Title:
    """Names of a verdict: an icon and words on a card, fewer words in a table."""

    icon: str
    words: str
    short: str


TITLES: dict[Judgement, Title] = {
    code: Title(icon, written(f"title.{code}"), written(f"short_title.{code}"))
    for code, icon in zip(JUDGEMENTS, "✓✓✓±?✕✕", strict=True)
}
HoldsFor = Literal["", "labels", "binary"]


class NextStep(TypedDict):
    """The cheapest way on from "inconclusive": more `clusters`, more `people` on the same clusters,
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
    decide, and what a pass holds for if not for all: labels, or binary labels, which may be those
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
        """The cheapest way on from "inconclusive", where one is known."""
        if self.judgement != "inconclusive":
            return None
        return self.step or (NextStep(kind="clusters", number=self.more) if self.more else None)

    @property
    def text(self) -> str:
        """Verdict first, then every reason."""
        return " ".join([self.head, *(reason.sentence for reason in self.reasons)])

    @property
    def short(self) -> str:
        """The reasons that decided it, in a few words."""
        shorts = list(dict.fromkeys(reason.short for reason in self.reasons if reason.short))
        if self.judgement == "inconclusive":  # that it would fail is said with the cause
            fails = shorts[-1:] == [written("short.label_to_rule_out")]
            shorts = [*shorts[:-1][:1], shorts[-1]] if fails else shorts[-1:]
        return "; ".join(shorts[:2])


def further_reasons(case: VerdictEvidence, judgement: Judgement) -> list[Reason]:
    """Further reasons that a reader must know: the grader's faults, the units it leaves out, whose
    labels it repeats, and the parts of the sample in which this holds.
    """
    view = case.tuned if judgement == "can_replace_at_threshold" else case.present
    more = []
    if judgement in ("only_with_correction", "do_not_use"):
        more += _plain_mistake(case)
    more += _left_out(case)
    decisive = view.bounds if judgement in (*PASSES, "inconclusive") else None
    if decisive and (row := decisive.if_wrong) and not math.isnan(row["low"]):
        how = "holds" if decisive.passes_if_wrong else "fails"
        how = "inconclusive" if judgement == "inconclusive" else how
        text = written(f"because.if_wrong_{how}", figures=figures(case, decisive, row))
        more.append(Reason(text))
    if case.gross is not None and judgement in PASSES:
        more.append(gross_errors(case, case.gross))
    audit, bounds = case.injection, case.rule.injection
    if audit is not None and not audit.fails(bounds):
        more += injected(audit, bounds)
    if case.people.copied and case.people.number >= 2:
        more.append(Reason(written("because.copied_not_counted", whose=whose(case)), copied(case)))
    if case.identical_graders:
        more.append(because("twins", names=" and ".join(case.identical_graders)))
    if case.people.opposed and judgement != "inconclusive":
        more.append(opposed(case))
    if _has_interval(case):
        more += _parts_looked_at(view, names_failing=judgement == "do_not_use")
    return more


def limits(case: VerdictEvidence) -> str:
    """State what no interval here covers; empty where there is no interval."""
    covers_people, covers_parts = case.rule.scope == "like_these", bool(case.present.parts)
    if not _has_interval(case) or (covers_people and covers_parts):
        return ""
    if covers_people:
        return written("limits.parts")
    people = "two" if case.people.number == 2 else str(case.people.number)
    return written("limits.people" if covers_parts else "limits.people_and_parts", people=people)


_RECODED = {REVERSED: "reversed", LOWER: "lower", HIGHER: "higher", EXCHANGED: "exchanged"}
_MAY_BE = {
    "pulled": "may_be_pulled",
    "knocked_off": "may_be_knocked_off",
    "silenced": "may_be_silenced",
}


def _has_interval(case: VerdictEvidence) -> bool:
    row = case.present.difference
    return case.people.number >= 2 and row is not None and row["low"] == row["low"]


def _plain_mistake(case: VerdictEvidence) -> list[Reason]:
    """Reason for a plain fault that can be fixed, where the labels look like one."""
    bounds, best = case.present.bounds, next(iter(case.recoded), None)
    if bounds is None or best is None or not best["estimate"] >= bounds.people["estimate"] / 2:
        return []
    fields = {"reading": text_of(best["remarks"]), "kappa": best["estimate"]}
    return [because(_RECODED[best["at"]], **fields)]


def _left_out(case: VerdictEvidence) -> list[Reason]:
    """Reasons on units that the grader left out, although it may pass."""
    share, least, _ = case.answers.share
    coverage, needed = case.answers.coverage, case.rule.min_coverage
    # Below what is needed, the verdict says so already.
    if coverage is None or least < needed or f"{1 - share:.0%}" == "0%":
        return []
    return [because("left_out", missing=1 - share, why=why_unscored(coverage))]


def _parts_looked_at(view: ViewEvidence, *, names_failing: bool) -> list[Reason]:
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
    lists = [written("because.parts_within", parts=listed(within))] if within else []
    if failing and names_failing:
        lists.append(written("because.parts_below", parts=listed(failing)))
    if open_yet:
        lists.append(written("because.parts_open", open=open_yet, all=len(parts)))
    return [because("parts", found="; ".join(lists))]


def gross_errors(case: VerdictEvidence, row: ResultRow, allowed: float | None = None) -> Reason:
    """Reason with the share of gross errors and its bound, or that more than `allowed` may be."""
    name, short, most = "too_many_gross_errors", "gross_errors", allowed
    if most is None:
        name, short, most = "gross_errors" if row["estimate"] > 0 else "no_gross_errors", "", 1.0
    fields = {"units": row["n_units"], "far": row["at"], "points": case.points, "allowed": most}
    high = share_apart(row["high"], most)
    return because(name, short, **fields, share=row["estimate"], high=high)


def opposed(case: VerdictEvidence) -> Reason:
    """Reason that annotators label the other way round, so that no grader can be judged by all."""
    names = [person.annotator for person in case.people.opposed]
    if not all(person.is_sure for person in case.people.opposed):
        names += case.people.opposed[0].others.split(", ")
    text = " ".join(opposed_in_words(person, "because") for person in case.people.opposed)
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


def unanswered(
    answers: Answers, needed: float, noun: str, room: Literal["because", "drift"] = "because"
) -> list[Reason]:
    """Reasons that a grader leaves out too many units, however good its answers are; or may."""
    (share, least, most), row = answers.share, answers.coverage
    name = "may_leave_out" if most >= needed else "no_answer"
    fields = {
        "share": share,
        "missing": 1 - share,
        "least": share_apart(least, needed),
        "most": share_apart(most, needed),
        "needed": needed,
        "sample": sample_of(row, noun) if row else "no items",
        "why": why_unscored(row),
    }
    return [Reason(written(f"{room}.{name}", **fields), written("short.no_answer", **fields))]


def why_unscored(coverage: ResultRow | None) -> str:
    """The reasons for units without an answer, counted, in brackets; empty if all have one."""
    remarks = coverage["remarks"] if coverage else ()
    counted = next((str(remark.detail[0]) for remark in remarks if remark.code == "unscored"), "")
    return f" ({counted.replace('_', ' ')})" if counted else ""


def in_parts(case: VerdictEvidence, view: ViewEvidence) -> list[Reason]:
    """Reasons naming the parts of the sample in which the grader fails."""
    reasons = []
    for row in view.failing:
        of_part = figures(case, view.bounds, row, at_once=len(view.parts))
        reasons.append(because("below_in_part", part=part_name(row), figures=of_part))
    if len(reasons) > 1:
        first = replace(reasons[0], short=written("short.below_in_parts", parts=len(reasons)))
        reasons = [first, *(replace(reason, short="") for reason in reasons[1:])]
    return reasons


def injected(audit: Audit, bounds: InjectionBounds) -> list[Reason]:
    """Reasons from the grader's injection audit: the ways in which a text can influence it, that it
    withstands, or the ways on which we cannot tell yet.
    """
    status = audit.status(bounds)
    of = [(outcome.name, outcome.figures(bound)) for outcome, bound in audit.telling(bounds)]
    if status == "withstands":
        highs = {name: figures_of["high"] for name, figures_of in of}
        return [because("withstands", **highs, sample=of[0][1]["sample"])]
    names = _MAY_BE if status == "inconclusive" else {}
    return [because(names.get(name, name), **figures_of) for name, figures_of in of]


def copied(case: VerdictEvidence) -> str:
    """Name the people whose labels the grader repeats, in few words. With two people it is not
    known which of them erred where they differ, so that a copy looks like a grader that is right as
    often as the better one.
    """
    name = "perhaps_copied" if case.people.number < 2 else "copied"
    return written(f"short.{name}", names=" and ".join(person for person, _ in case.people.copied))


def whose(case: VerdictEvidence) -> str:
    """Whose labels the grader repeats, each person with the share of units, in words."""
    shares = [f"those of {person} on {share:.0%} of items" for person, share in case.people.copied]
    return " and ".join(shares)


def advice(
    clusters: int,
    more: int | None,
    noun: str,
    *,
    undecided: bool,
    fails: str = "",
    people: int | None = None,
    look: int = 0,
) -> list[Reason]:
    """Advice on how many more clusters would decide, if anything is undecided or there are too few;
    or else on how many more people. If the grader probably `fails`, for the cause that is given,
    they would rule it out. After this `look`, the cost of the next one, where known.
    """
    if more is None and people:
        annotators = "one more annotator" if people == 1 else f"about {people} more annotators"
        return [because("ask_more_people", noun=noun, people=annotators)]
    if more is None:
        return [because("nothing_decides", noun=noun)]
    if more <= 0:
        return []
    nouns = noun if more == 1 else f"{noun}s"
    name = short = "label_to_rule_out" if fails and undecided else "label_more"
    if not undecided:
        name = "label_more_for_enough"
    reason = because(name, short, clusters=clusters, noun=noun, more=more, nouns=nouns, why=fails)
    if look:
        after = written("because.next_look_planned" if look < USUAL else "because.next_look")
        reason = replace(reason, sentence=f"{reason.sentence} {after}")
    return [reason]


def compared(case: VerdictEvidence, bounds: Bounds) -> str:
    """Figures of a comparison in words: the two kappas, and what `figures` gives."""
    row, people = case.deciding_difference(bounds), bounds.people["estimate"]
    return figures(case, bounds, row, kappa=people + row["estimate"], people=people)


def figures(
    case: VerdictEvidence, bounds: Bounds | None, row: ResultRow, at_once: int = 1, **kappas: float
) -> str:
    """Figures of a difference in words: the interval that decides, which holds for so many
    `at_once`, the margin, and n.
    """
    alpha, margin, share = ALPHA, margin_of(row), 0.0
    if bounds:
        alpha, share = bounds.level.alpha / at_once, bounds.level.margin_share
        margin = bounds.margin if math.isnan(margin) else margin
    people = "two annotators" if case.people.number == 2 else f"{case.people.number} annotators"
    return written(
        "figures.compared" if kappas else "figures.difference",
        **kappas,
        difference=signed(row["estimate"]),
        interval=interval_of(row["low"], row["high"], -margin, 0.0, alpha=alpha, sign="+"),
        margin=limit_shown(margin, -row["low"], -row["high"]),
        share=written("figures.share", share=share) if share else "",
        sample=f"{sample_of(row, case.noun)}, {people}",
    )


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
    names = [part_name(row) for row in rows]
    return ", ".join(names) if len(names) <= MOST_PARTS else f"{len(names)} parts"
