"""Verdicts in words: what each is called, and sentences that state the numbers that carry it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.case import Bounds, Case

Judgement = Literal[
    "may_stand_in",
    "may_stand_in_at_threshold",
    "only_with_correction",
    "cannot_tell",
    "do_not_use",
]
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
"""All verdicts, the best first."""


@dataclass(frozen=True)
class Title:
    """What a verdict is called: an icon and words on a card, fewer words in a table."""

    icon: str
    words: str
    short: str


TITLES: dict[Judgement, Title] = {
    "may_stand_in": Title("✓", "May stand in", "may stand in"),
    "may_stand_in_at_threshold": Title("✓", "May stand in at another threshold", "at a threshold"),
    "only_with_correction": Title("±", "Only with correction", "only with correction"),
    "cannot_tell": Title("?", "Cannot tell", "cannot tell"),
    "do_not_use": Title("✕", "Do not use", "do not use"),
}


BOUNDS = "the sentences give the one-sided bounds that decide (at worst, at best)"
"""Told beside figures whose brackets hold 95% intervals."""


def may_stand_in(case: Case) -> str:
    """It meets the rule."""
    if case.bounds is None or case.kappa is None:
        raise ValueError("a grader that passes has been compared with people")
    bounds = case.bounds
    return (
        f"{case.grader} may stand in for {_whom(case)}{_place(case)}: "
        f"{difference(case.deciding(bounds), case.noun)}, within the margin of "
        f"{bounds.margin:.3g}; {kappa(case.kappa)}, above both baselines."
        f"{_binary_caveat(case, bounds)}"
    )


def at_threshold(case: Case, bounds: Bounds, advised: ResultRow) -> str:
    """Its binary verdicts meet the rule at another threshold."""
    return (
        f"{case.grader} may stand in for {_whom(case)}{_place(case)} at threshold "
        f"{advised['estimate']:.3g}, for the binary verdict: with thresholds chosen on other "
        f"units {difference(case.deciding(bounds), case.noun)}, within the margin of "
        f"{bounds.margin:.3g}."
    )


def open_at_threshold(case: Case, bounds: Bounds, more: int | None) -> list[str]:
    """It falls short as it is, but another threshold may yet do; and how many labels would tell."""
    row = case.deciding(bounds)
    short = "as it is it falls short, but with thresholds chosen on other units"
    text = f"{short} {difference(row, case.noun)}, and the margin is {bounds.margin:.3g}"
    return [text, *advice(row["n_clusters"], more, case.noun, undecided=True)]


def people_hardly_agree(people: ResultRow, least: float) -> str:
    """No grader can be judged beside people who hardly agree."""
    return (
        f"people hardly agree with each other (their mean kappa is {_signed(people['estimate'])}, "
        f"at worst {_signed(people['low'])}, and {least:g} is needed), so that no grader can be "
        "judged beside them: make the rubric or its instructions clearer before labelling more"
    )


def no_level(look: int) -> str:
    """No verdict is given at this look."""
    if look:
        return "the looks that were declared for this study are used up"
    return (
        "labels have come in since the last report, and every look at new labels spends part of "
        "the error that is allowed: make a report when you want a verdict"
    )


def too_few_rarer(rarer: float, least: int, noun: str) -> str:
    """Nearly all labels are of one category."""
    return (
        f"people chose another category than the most frequent one in only {rarer:.3g} {noun}s, "
        f"and {least} are needed"
    )


def only_with_correction(case: Case, against: Sequence[str]) -> str:
    """Informative, but not as a person is."""
    why = [*against, *_faults(case)]
    informative = f"{kappa(case.kappa)}, above both baselines" if case.kappa else ""
    return (
        f"Use {case.grader}{_place(case)} only with correction: {' and '.join(why)}. Its labels do "
        f"carry information ({informative}), so rates may be reported when corrected by the units "
        "that people labelled; single labels do not stand in for people's."
    )


def do_not_use(case: Case, against: Sequence[str]) -> str:
    """Clearly below the rule, and not informative."""
    return f"Do not use {case.grader} in place of people{_place(case)}: {' and '.join(against)}."


def cannot_tell(case: Case, reasons: Sequence[str]) -> str:
    """Neither shown; and what would help."""
    return (
        f"Whether {case.grader} may stand in for people{_place(case)} cannot be told: "
        f"{'; '.join([*reasons, *_faults(case)])}."
    )


def advice(clusters: int, more: int | None, noun: str, *, undecided: bool) -> list[str]:
    """How many more clusters would decide, if anything is undecided or they are too few."""
    if more is None:
        return [f"no realistic number of {noun}s would decide it if the estimate stays"]
    if more <= 0:
        return []
    nouns = noun if more == 1 else f"{noun}s"
    if undecided:
        return [f"label about {more} more {nouns} to decide, if the estimate stays"]
    return [f"{clusters} {noun}s are too few to recommend on; label {more} more {nouns}"]


def difference(row: ResultRow, noun: str) -> str:
    """The ceiling difference in words, with its bounds at the verdict's level."""
    ends = f"at worst {_signed(row['low'])}, at best {_signed(row['high'])}"
    return f"{_apart(row)} ({ends}; {_sample(row, noun)})"


def _apart(row: ResultRow) -> str:
    """How far the grader's kappa with people lies from theirs."""
    apart = f"{abs(row['estimate']):.2f}"
    side = "above" if row["estimate"] > 0 else "below"
    away = f"{apart} {side if float(apart) else 'from'}"
    return f"its kappa with people is {away} theirs with each other"


def kappa(row: ResultRow, noun: str = "") -> str:
    """The mean kappa with people in words."""
    sample = f"; {_sample(row, noun)}" if noun else ""
    return (
        f"its mean kappa with people is {_signed(row['estimate'])} "
        f"(95% interval {_signed(row['low'])} to {_signed(row['high'])}{sample})"
    )


def not_known(case: Case) -> str:
    """What no interval here covers; nothing where there is no interval."""
    if case.n_humans < 2 or case.difference is None or math.isnan(case.difference["low"]):
        return ""
    if case.rule.scope == "like_these":
        return " This may not hold in every part of the sample."
    wider = case.bounds.like_these if case.bounds else None
    others = ""
    if wider is not None:
        others = f" (for people like them the difference is at worst {_signed(wider['low'])})"
    return (
        f" This may not hold for people other than these {_number(case)}{others}, nor in every "
        "part of the sample."
    )


def _whom(case: Case) -> str:
    """For whom the verdict speaks."""
    like = "people like these" if case.rule.scope == "like_these" else "these"
    return f"{like} {_number(case)}"


def _number(case: Case) -> str:
    return "two people" if case.n_humans == 2 else f"{case.n_humans} people"


def _faults(case: Case) -> list[str]:
    """Biases, and a label that moves with the wording, each with its interval."""
    found = [each.fault for each in case.biases]
    if case.moving is not None:
        found.append(
            f"its label moves with the rubric's wording (kappa {_signed(case.moving['estimate'])} "
            f"from one wording to another, 95% interval {_signed(case.moving['low'])} to "
            f"{_signed(case.moving['high'])})"
        )
    return found


def _binary_caveat(case: Case, bounds: Bounds) -> str:
    """What a pass on the categories leaves open: a verdict at the threshold that falls short."""
    if case.binary is None or case.binary["low"] > -bounds.margin:
        return ""
    short = case.binary["high"] < -bounds.margin
    head = "Its binary verdicts may not" if short else "Of its binary verdicts this is not shown"
    row = case.binary
    ends = f"95% interval {_signed(row['low'])} to {_signed(row['high'])}"
    return f" {head}: {_apart(row)} ({ends}; {_sample(row, case.noun)})."


def _place(case: Case) -> str:
    return f" on {case.rubric}" if case.rubric else ""


def _signed(number: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{number:z.2f}"


def _sample(row: ResultRow, noun: str) -> str:
    units = f"{row['n_units']} units"
    return units if noun == "unit" else f"{units} in {row['n_clusters']} {noun}s"
