"""Verdicts in words: what each is called, and sentences that state the numbers that carry it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evenhand.analysis.notes import text_of
from evenhand.analysis.people.recoded import EXCHANGED, HIGHER, LOWER, REVERSED
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.case import Bounds, Case, margin_of
from evenhand.analysis.verdicts.parts import part_of

ONE_CATEGORY = 0.95
"""A grader that gives one category so often hardly tells units apart."""
MOST_PARTS = 3
"""Parts of the sample that a sentence names."""

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


@dataclass(frozen=True)
class Title:
    """What a verdict is called: an icon and words on a card, fewer words in a table."""

    icon: str
    words: str
    short: str


TITLES: dict[Judgement, Title] = {
    "may_stand_in": Title("✓", "May stand in", "may stand in"),
    "may_stand_in_at_threshold": Title("✓", "May stand in at another threshold", "at a threshold"),
    "agrees_with_reference": Title("✓", "Agrees with the reference", "agrees"),
    "only_with_correction": Title("±", "Only with correction", "only with correction"),
    "cannot_tell": Title("?", "Cannot tell", "cannot tell"),
    "disagrees_with_reference": Title("✕", "Disagrees with the reference", "disagrees"),
    "do_not_use": Title("✕", "Do not use", "do not use"),
}


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
    """No grader can be judged beside people who hardly agree, or may do so."""
    kappas = f"their mean kappa is {people['estimate']:z.3f}, at worst {people['low']:z.3f}"
    if people["estimate"] >= least:
        return f"it is not clear that people agree with each other ({kappas}; {least:g} is needed)"
    return (
        f"people hardly agree with each other ({kappas}, and {least:g} is needed), so that no "
        "grader can be judged beside them: make the rubric or its instructions clearer before "
        "labelling more"
    )


def too_few_people(case: Case) -> str:
    """How well people agree is not known."""
    if case.copied:
        left = "nobody else" if case.n_humans == 0 else "only one other person"
        return f"{copied(case)}, and {left} labelled, so there are no people to judge it beside"
    return (
        "only one person labelled, so how well people agree with each other is not known; to judge "
        "it against that person alone, declare the person as the reference (`--reference`)"
    )


def leaves_out(case: Case) -> str:
    """It clearly gives no answer too often, whatever its answers are worth."""
    share, _, most = case.share_scored
    sample = _sample(case.coverage, case.noun) if case.coverage else "no units"
    why = why_unscored(case.coverage)
    return (
        f"Do not use {case.grader} in place of people{_place(case)} as it is: no answer on "
        f"{1 - share:.0%} of {sample} ({why}at best it answers {most:.1%}, and "
        f"{case.rule.min_coverage:.0%} is needed).{_with_unscored(case)}"
    )


def may_leave_out(case: Case) -> str:
    """It is not clear that it answers often enough."""
    share, least, _ = case.share_scored
    return (
        f"it answered {share:.1%} of what was put to it ({why_unscored(case.coverage)}at worst "
        f"{least:.1%}), and {case.rule.min_coverage:.0%} is needed"
    )


def why_unscored(coverage: ResultRow | None) -> str:
    """The reasons for units without an answer, counted, and a semicolon; nothing where all have."""
    remarks = coverage["remarks"] if coverage else ()
    said = next((str(each.detail[0]) for each in remarks if each.code == "unscored"), "")
    return f"{said.replace('_', ' ')}; " if said else ""


def _with_unscored(case: Case) -> str:
    """What agreement is on the units that it answered, and on all; nothing where not known."""
    if case.agreement is None:
        return ""
    scored, everywhere = (row["estimate"] for row in case.agreement)
    return (
        f" It agrees with people on {scored:.0%} of units that it answered, and on "
        f"{everywhere:.0%} where no answer counts as a disagreement."
    )


def copied(case: Case) -> str:
    """Its labels are somebody else's."""
    each = [f"those of {person} on {share:.0%} of units" for person, share in case.copied]
    return f"its labels are {' and '.join(each)}"


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
    except_in = f", and not for {_listed(case.failing)}" if case.failing else ""
    informative = f"{kappa(case.kappa)}, above both baselines" if case.kappa else ""
    return (
        f"Use {case.grader}{_place(case)} only with correction{except_in}: {' and '.join(why)}. "
        f"Its labels do "
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


def advice(
    clusters: int, more: int | None, noun: str, *, undecided: bool, people: int | None = None
) -> list[str]:
    """How many more clusters would decide, if anything is undecided or they are too few; or else
    how many more people.
    """
    if more is None and people:
        whom = "one more person" if people == 1 else f"about {people} more people"
        return [
            f"no number of {noun}s would decide it, as people differ: have {whom} label the same "
            f"{noun}s, if the estimate stays"
        ]
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


def besides(case: Case, judgement: Judgement) -> str:
    """What else a reader must know: what is wrong with it, what it leaves out, whose labels it
    repeats, and what no interval here covers.
    """
    wrong = _what_is_wrong(case) if judgement in ("only_with_correction", "do_not_use") else ""
    each = (wrong, _left_out(case), _repeated(case), *_limits(case, judgement))
    return "".join(f" {sentence}" for sentence in each if sentence)


def _what_is_wrong(case: Case) -> str:
    """A plain fault that can be mended, if it looks like one."""
    if case.commonest is not None:
        own, of_people = (row["estimate"] for row in case.commonest)
        if own >= ONE_CATEGORY and of_people < ONE_CATEGORY - 0.1:
            category = case.commonest[0]["at"]
            return (
                f"It answers {category} on {own:.0%} of units, where people do on {of_people:.0%}."
            )
    if case.failing and (good := [row for row in case.parts if row["low"] > -margin_of(row)]):
        return f"It is as good as people for {_listed(good)} only."
    people = case.bounds.people["estimate"] if case.bounds else math.nan
    best = next(iter(case.recoded), None)
    if best is None or not best["estimate"] >= people / 2:
        return ""
    looks = {
        REVERSED: "It looks inverted: with its labels reversed",
        LOWER: "It looks one category too high: with each label one lower",
        HIGHER: "It looks one category too low: with each label one higher",
        EXCHANGED: f"It seems to exchange categories: read {text_of(best['remarks'])}",
    }[best["at"]]
    return f"{looks}, its mean kappa with people would be {_signed(best['estimate'])}."


def _left_out(case: Case) -> str:
    """A grader that passes may still leave some units without an answer."""
    share, _, most = case.share_scored
    if case.coverage is None or most < case.rule.min_coverage or f"{1 - share:.0%}" == "0%":
        return ""
    why = why_unscored(case.coverage).removesuffix("; ")
    return f"It gave no answer on {1 - share:.0%} of units ({why}).{_with_unscored(case)}"


def _repeated(case: Case) -> str:
    parts = []
    if case.copied and case.n_humans >= 2:
        names = " and ".join(person for person, _ in case.copied)
        parts.append(f"{copied(case)}; {names} is left out of the people that it is set beside")
    if case.twins:
        parts.append(f"its labels are those of {' and '.join(case.twins)}, every one")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if parts else ""


def _limits(case: Case, judgement: Judgement) -> list[str]:
    """What no interval here covers; nothing where there is no interval."""
    if case.n_humans < 2 or case.difference is None or math.isnan(case.difference["low"]):
        return []
    at_threshold = judgement == "may_stand_in_at_threshold"
    looked_at = case.parts_held_out if at_threshold else case.parts
    parts = _parts_looked_at(looked_at, names_failing=judgement == "do_not_use")
    everywhere = "" if case.parts else ", nor in every part of the sample"
    if case.rule.scope == "like_these":
        return [parts if case.parts else "This may not hold in every part of the sample."]
    wider = case.bounds.like_these if case.bounds else None
    others = ""
    if wider is not None and wider["low"] > -1.0:
        others = f" (for people like them the difference is at worst {_signed(wider['low'])})"
    other_people = (
        f"This may not hold for people other than these {_number(case)}{others}{everywhere}."
    )
    return [parts, other_people]


def _parts_looked_at(parts: Sequence[ResultRow], *, names_failing: bool) -> str:
    """In which parts of the sample it is within the margin; nothing where none was looked at.

    `names_failing` unless the verdict's own sentence does.
    """
    within = [row for row in parts if row["low"] > -margin_of(row)]
    failing = [row for row in parts if row["high"] < -margin_of(row)]
    open_yet = len(parts) - len(within) - len(failing)
    if not parts or not (within or open_yet or names_failing):
        return ""
    if not (failing or open_yet):
        return f"This holds in each part looked at ({_listed(within)})."
    found = [f"within the margin in {_listed(within)}"] if within else []
    if failing and names_failing:
        found.append(f"clearly below people in {_listed(failing)}")
    if open_yet:
        found.append(f"too few labels to tell in {open_yet} of {len(parts)}")
    return f"Of the parts looked at: {'; '.join(found)}."


def _listed(rows: Sequence[ResultRow]) -> str:
    """The names of parts, or how many they are."""
    names = [part_of(row) for row in rows]
    return ", ".join(names) if len(names) <= MOST_PARTS else f"{len(names)} parts"


def _whom(case: Case) -> str:
    """For whom the verdict speaks."""
    like = "people like these" if case.rule.scope == "like_these" else "these"
    return f"{like} {_number(case)}"


def _number(case: Case) -> str:
    return "two people" if case.n_humans == 2 else f"{case.n_humans} people"


def _faults(case: Case) -> list[str]:
    """Biases, and a label that moves with the wording, each with its interval."""
    found = [
        f"where {part_of(row)} {difference(row, case.noun)}, below the margin of "
        f"{margin_of(row):.3g}"
        for row in case.failing
    ]
    found += [each.fault for each in case.biases]
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
