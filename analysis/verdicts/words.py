"""Verdicts in words: what each is called, and how its reasons are put together.

Reasons are in `analysis.verdicts.reasons`, all sentences in `evenhand/texts.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

from evenhand.analysis.notes import text_of
from evenhand.analysis.people.recoded import EXCHANGED, HIGHER, LOWER, REVERSED
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.case import Bounds, Case, margin_of
from evenhand.analysis.verdicts.reasons import (
    Reason,
    better_or_not,
    compared,
    faults,
    injected,
    leaves_out,
    listed,
    mean_kappa,
    of_binary_verdicts,
    repeated,
    why_unscored,
    with_unscored,
)
from evenhand.texts import written

ONE_CATEGORY = 0.95
"""Share of one category from which on a grader hardly tells units apart."""

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
    another `threshold` (shown by more clusters), or a clearer `rubric`, with how many where known.
    """

    kind: Literal["clusters", "people", "threshold", "rubric"]
    number: int


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


def may_stand_in(case: Case) -> Decision:
    """Decide that the grader may stand in for people: it meets the rule."""
    if case.bounds is None:
        raise ValueError("a grader that passes has been compared with people")
    fields = {"grader": case.grader, "whom": _whom(case), "place": place(case)}
    passes = better_or_not(case, case.bounds)
    if case.is_binary:
        head = written("verdict.may_stand_in_binary", **fields)
        short = Reason(passes.sentence, written("short.binary_only"))
        return Decision("may_stand_in", head, [short], holds_for="binary")
    head = written("verdict.may_stand_in", **fields)
    caveat = of_binary_verdicts(case, case.bounds)
    if caveat:  # the cell of a table has room for what does not hold
        passes = Reason(passes.sentence)
    return Decision("may_stand_in", head, [passes, *caveat], holds_for="labels" if caveat else "")


def at_threshold(case: Case, bounds: Bounds, advised: ResultRow) -> Decision:
    """Decide that the grader may stand in at another threshold, where its binary verdicts meet the
    rule.
    """
    threshold = advised["estimate"]
    head = written(
        "verdict.at_threshold",
        grader=case.grader,
        whom=_whom(case),
        place=place(case),
        threshold=threshold,
    )
    reason = Reason(
        written("because.tuned", noun=case.noun, figures=compared(case, bounds)),
        written("short.at_threshold", threshold=threshold),
    )
    return Decision(
        "may_stand_in_at_threshold", head, [reason], holds_for="binary", threshold=threshold
    )


def leaves_too_much_out(case: Case) -> Decision:
    """Decide that the grader clearly leaves out too many units to be used."""
    head = written("verdict.leaves_out", grader=case.grader, place=place(case))
    return Decision("do_not_use", head, leaves_out(case))


def only_with_correction(case: Case, against: Sequence[Reason]) -> Decision:
    """Decide that the grader is informative, but not as good as a person."""
    fields = {"grader": case.grader, "place": place(case)}
    if case.failing:
        parts = listed(case.failing)
        head = written("verdict.only_with_correction_outside", **fields, parts=parts)
    else:
        head = written("verdict.only_with_correction", **fields)
    reasons = [*against, *faults(case)]
    if case.kappa is not None:
        reasons.append(Reason(written("because.informative", figures=mean_kappa(case.kappa))))
    return Decision("only_with_correction", head, reasons)


def do_not_use(case: Case, against: Sequence[Reason]) -> Decision:
    """Decide that the grader is clearly below the rule, and not informative."""
    head = written("verdict.do_not_use", grader=case.grader, place=place(case))
    return Decision("do_not_use", head, against)


def cannot_tell(
    case: Case,
    reasons: Sequence[Reason],
    more: int = 0,
    *,
    promising: bool = False,
    step: NextStep | None = None,
) -> Decision:
    """Decide that neither is shown, with what would help."""
    head = written("verdict.cannot_tell", grader=case.grader, whom=_whom(case), place=place(case))
    found = [*faults(case), *reasons]
    return Decision("cannot_tell", head, found, more, promising=promising, step=step)


def besides(case: Case, judgement: Judgement) -> list[Reason]:
    """Further reasons that a reader must know: the grader's faults, the units it leaves out, whose
    labels it repeats, and the parts of the sample in which this holds.
    """
    found = []
    if judgement in ("only_with_correction", "do_not_use"):
        found += _what_is_wrong(case)
    found += _left_out(case)
    if case.injection and not case.talked_round:
        found += injected(case.injection, case.rule.injection)
    found += repeated(case)
    if _has_interval(case):
        found += _parts_looked_at(case, judgement)
    return found


def limits(case: Case) -> str:
    """State what no interval here covers; empty where there is no interval."""
    if not _has_interval(case):
        return ""
    if case.rule.scope == "like_these":
        return "" if case.parts else written("limits.parts")
    people = "two" if case.n_humans == 2 else str(case.n_humans)
    return written("limits.people" if case.parts else "limits.people_and_parts", people=people)


def place(case: Case) -> str:
    """The rubric, within a sentence."""
    return f" on {case.rubric}" if case.rubric else ""


def _has_interval(case: Case) -> bool:
    row = case.difference
    return case.n_humans >= 2 and row is not None and row["low"] == row["low"]


def _whom(case: Case) -> str:
    """Name the people for whom the verdict holds: these, or people like these."""
    return written("whom.like_these" if case.rule.scope == "like_these" else "whom.these")


def _what_is_wrong(case: Case) -> list[Reason]:
    """Reason for a plain fault that can be mended, where the labels look like one."""
    if case.commonest is not None:
        own, people = (row["estimate"] for row in case.commonest)
        if own >= ONE_CATEGORY and people < ONE_CATEGORY - 0.1:
            category = case.commonest[0]["at"]
            return [
                Reason(written("because.one_category", category=category, own=own, people=people))
            ]
    best = next(iter(case.recoded), None)
    if case.bounds is None or best is None:
        return []
    kappa = best["estimate"]
    if not kappa >= case.bounds.people["estimate"] / 2:
        return []
    if best["at"] == EXCHANGED:
        text = written("because.exchanged", reading=text_of(best["remarks"]), kappa=kappa)
    else:
        name = {REVERSED: "reversed", LOWER: "lower", HIGHER: "higher"}[best["at"]]
        text = written(f"because.{name}", kappa=kappa)
    return [Reason(text)]


def _left_out(case: Case) -> list[Reason]:
    """Reasons on units that the grader left out, although it may pass."""
    share, _, most = case.share_scored
    if case.coverage is None or most < case.rule.min_coverage or f"{1 - share:.0%}" == "0%":
        return []
    if not case.scored_enough:  # the verdict says so already
        return with_unscored(case)
    text = written("because.left_out", missing=1 - share, why=why_unscored(case.coverage))
    return [Reason(text), *with_unscored(case)]


def _parts_looked_at(case: Case, judgement: Judgement) -> list[Reason]:
    """Reason listing the parts of the sample by result: within the margin, below, or open; empty
    where none was tested.
    """
    parts = case.parts_held_out if judgement == "may_stand_in_at_threshold" else case.parts
    names_failing = judgement == "do_not_use"  # else the verdict's own sentence does
    within = [row for row in parts if row["low"] > -margin_of(row)]
    failing = [row for row in parts if row["high"] < -margin_of(row)]
    open_yet = len(parts) - len(within) - len(failing)
    if not parts or not (within or open_yet or names_failing):
        return []
    if not (failing or open_yet):
        return [Reason(written("because.holds_in_each_part", parts=listed(within)))]
    found = [written("because.parts_within", parts=listed(within))] if within else []
    if failing and names_failing:
        found.append(written("because.parts_below", parts=listed(failing)))
    if open_yet:
        found.append(written("because.parts_open", open=open_yet, all=len(parts)))
    return [Reason(written("because.parts", found="; ".join(found)))]
