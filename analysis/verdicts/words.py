"""Verdicts in words: what each is called, and sentences that state the numbers that carry it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.case import Case

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


def may_stand_in(case: Case) -> str:
    """It meets the rule."""
    rows = [row for row in (case.difference, case.kappa) if row is not None]
    return (
        f"{case.grader} may stand in for people{_place(case)}: "
        f"{difference(rows[0], case.noun)}, within the margin of {case.margin:g}; "
        f"{kappa(rows[1])}, above both baselines.{_binary_caveat(case)}"
    )


def at_threshold(case: Case, recommended: ResultRow) -> str:
    """Its binary verdicts meet the rule at another threshold."""
    apart = difference(case.held_out, case.noun) if case.held_out else ""
    return (
        f"{case.grader} may stand in for people{_place(case)} at threshold "
        f"{recommended['estimate']:.3g}, for the binary verdict: with thresholds chosen on other "
        f"units {apart}, within the margin of {case.margin:g}."
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
    """The ceiling difference in words."""
    apart = f"{abs(row['estimate']):.2f}"
    side = "above" if row["estimate"] > 0 else "below"
    away = f"{apart} {side if float(apart) else 'from'}"
    return (
        f"its kappa with people is {away} theirs with each other "
        f"(95% interval {_signed(row['low'])} to {_signed(row['high'])}; {_sample(row, noun)})"
    )


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
    people = "two people" if case.n_humans == 2 else f"{case.n_humans} people"
    return (
        f" Not known: whether this holds beside other people than these {people}, "
        "and in every part of the sample."
    )


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


def _binary_caveat(case: Case) -> str:
    """What a pass on the categories leaves open: a verdict at the threshold that falls short."""
    if case.binary is None or case.binary["low"] > -case.margin:
        return ""
    short = case.binary["high"] < -case.margin
    head = "Its binary verdicts may not" if short else "Of its binary verdicts this is not shown"
    return f" {head}: {difference(case.binary, case.noun)}."


def _place(case: Case) -> str:
    return f" on {case.rubric}" if case.rubric else ""


def _signed(number: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{number:z.2f}"


def _sample(row: ResultRow, noun: str) -> str:
    units = f"{row['n_units']} units"
    return units if noun == "unit" else f"{units} in {row['n_clusters']} {noun}s"
