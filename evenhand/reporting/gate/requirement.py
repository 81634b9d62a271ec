"""The rule of `gate`: comma-separated conditions, of which `verdict` may be one."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evenhand.analysis.requirement import State, state_of
from evenhand.analysis.statistics import shown_apart
from evenhand.errors import InputError
from evenhand.study.tables.ratings import LONG_PLACEBO, PLACEBO
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_CLAUSE = re.compile(
    r"(?P<statistic>[a-z][a-z0-9_]*)"
    r"(?:@(?P<at>[^\s<>=|]+?))?"
    r"(?P<binary>\|binary)?"
    r"(?:\.(?P<part>estimate|low|high))?"
    r"\s*(?P<operator>>=|<=|==|>|<)"
    r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)
_WORST: tuple[State, ...] = ("broken", "open", "met")
_GROUPS = ("", "humans", "models", "all")
VERDICT = "verdict"
"""The condition that the grader can replace a human rater, or agrees with the reference."""
_SHORT = ("tpr", "tnr")
"""Short names of statistics in a rule; `kappa` is the one that the report shows."""


@dataclass(frozen=True)
class Clause:
    """A condition: a part of a statistic's row (at a category or threshold) and a bound."""

    statistic: str
    at: str
    binary: bool
    part: str
    operator: str
    number: float

    def __str__(self) -> str:
        """As it is written in a rule."""
        at, binary = f"@{self.at}" if self.at else "", "|binary" if self.binary else ""
        return f"{self.statistic}{at}{binary}.{self.part} {self.operator} {self.number:g}"

    def holds(self, value: float) -> bool:
        """Return True if a value meets the condition; an undefined one never does."""
        return not math.isnan(value) and _OPERATORS[self.operator](value, self.number)


@dataclass(frozen=True)
class Rule:
    """A rule for `gate`: the `verdict`, conditions, or both."""

    verdict: bool
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class CheckedClause:
    """A clause with the value that it was held against; `note` says why there is none. `worst_of`
    counts the attacks among which this one is furthest from meeting it, and `statistic` is the full
    name of one that the clause calls by a short one.
    """

    clause: Clause
    value: float
    note: str
    worst_of: int = 0
    statistic: str = ""

    @property
    def state(self) -> State:
        """Met if the clause holds, open if there is no value to hold it against, else broken."""
        holds = self.clause.holds(self.value)
        return state_of(met=holds, broken=not math.isnan(self.value))

    @property
    def slack(self) -> float:
        """The margin by which the clause holds; negative if it does not."""
        above = self.value - self.clause.number
        sign = {">": 1, ">=": 1, "<": -1, "<=": -1}.get(self.clause.operator)
        return -abs(above) if sign is None else sign * above

    @property
    def sentence(self) -> str:
        """The clause and its value."""
        one = self.clause
        at = f" at {one.at}" if one.at else ""
        if self.statistic not in ("", one.statistic):
            at = f" ({self.statistic}){at}"
        if self.worst_of:
            at += " " + written("gate.worst_of", attacks=self.worst_of)
        reading = ", binary verdict" if one.binary else ""
        shown = f"{self.value:.6g}"
        if float(shown) == one.number != self.value:  # on the other side of it, however little
            shown = shown_apart(self.value, [one.number], places=6)
        if self.state == "open":
            shown = written("gate.undefined", why=self.note)
        return written(
            "gate.outcome",
            what=f"{one.statistic}{at}{reading}",
            part=one.part,
            value=shown,
            operator=one.operator,
            number=one.number,
        )


def parse_rule(text: str) -> Rule:
    """A rule as it is written. Raises InputError naming the condition that is not valid.

    >>> rule = parse_rule("verdict, coverage >= 0.98, kappa|binary.low > 0.5")
    >>> rule.verdict, [str(clause) for clause in rule.clauses]
    (True, ['coverage.estimate >= 0.98', 'kappa|binary.low > 0.5'])
    """
    parts = [part.strip() for part in text.split(",")]
    return Rule(VERDICT in parts, tuple(_clause(part) for part in parts if part != VERDICT))


def _clause(text: str) -> Clause:
    found = _CLAUSE.fullmatch(text)
    if not found:
        raise InputError(
            f"--require: {text!r} is not a valid condition; write verdict, or "
            "STATISTIC[.estimate|.low|.high] OP NUMBER, as in 'verdict, coverage >= 0.98'"
        )
    return Clause(
        found["statistic"],
        found["at"] or "",
        bool(found["binary"]),
        found["part"] or "estimate",
        found["operator"],
        float(found["number"]),
    )


def check_clauses(
    clauses: Sequence[Clause], results: pd.DataFrame, rubric: str, grader: str, kappa: str
) -> list[CheckedClause]:
    """Check every clause against the grader's rows: with people where there are such, else its own.

    A statistic that is given for the binary verdict only is found there. Raises InputError where
    the rubric has no such grader, no binary verdict, or the grader no such statistic.
    """
    rows = results[results["rubric"] == rubric]
    raters = set(rows.loc[rows["statistic"] == "coverage", "rater_b"]) - set(_GROUPS)
    if grader not in raters:
        raise InputError(
            f"there is no grader {grader!r} here; the raters are {', '.join(sorted(raters))}"
        )
    return [_outcome(clause, rows, grader, kappa) for clause in clauses]


def _outcome(clause: Clause, rows: pd.DataFrame, grader: str, kappa: str) -> CheckedClause:
    statistic = _full_name(clause, rows, kappa)
    if statistic != clause.statistic:
        full = _outcome(replace(clause, statistic=statistic), rows, grader, kappa)
        return replace(full, clause=clause, statistic=statistic)
    of = rows[rows["statistic"] == clause.statistic]
    if clause.statistic.startswith("injection_"):
        _check_audited(clause.statistic, of, grader)
    if of.empty:
        raise InputError(
            f"--require: there is no statistic {clause.statistic!r} here; results.csv has "
            + ", ".join(sorted(set(rows["statistic"])))
        )
    beside = of["rater_a"].isin(["humans", ""]) | of["statistic"].str.endswith("_reference")
    own = of[
        (beside & (of["rater_b"] == grader)) | ((of["rater_a"] == grader) & (of["rater_b"] == ""))
    ]
    subsets = ["all|binary"] if clause.binary else ["all", "all|binary"]
    for subset in subsets:
        found = own[(own["subset"] == subset) & (own["at"] == clause.at)]
        if not found.empty:
            row = found.sort_values("rater_a", ascending=False).iloc[0]  # with people first
            return CheckedClause(clause, float(row[clause.part]), str(row["note"]) or "no interval")
    if not clause.at and (every := _by_attack(clause, own)):
        worst = min(every, key=lambda each: (_WORST.index(each.state), each.slack))
        return replace(worst, worst_of=len(every))
    if clause.binary and not (rows["subset"] == "all|binary").any():
        raise InputError(
            f"--require: there is no {clause.statistic}|binary here, as no labels count as yes; "
            "declare them with --affirmative, or in the rubric"
        )
    where = " on the binary verdict" if clause.binary else ""
    what = f"--require: {grader!r} has no {clause.statistic}{where} here"
    places = sorted(set(own.loc[own["subset"].isin(subsets), "at"]) - {""})
    if places:
        what += f"; it is given at {', '.join(places[:8])}: write {clause.statistic}@{places[0]}"
    raise InputError(what)


def _full_name(clause: Clause, rows: pd.DataFrame, kappa: str) -> str:
    """The statistic that a clause is about; `kappa` is the one that the report shows where the
    rubric's categories are in an order, and rates are against the reference if one is declared.
    """
    if clause.statistic in _SHORT:
        beside = f"{clause.statistic}_reference"
        return beside if (rows["statistic"] == beside).any() else f"{clause.statistic}_majority"
    if clause.statistic != "kappa":
        return clause.statistic
    weighted = (rows["statistic"] == kappa) & (rows["subset"] == "all")
    return kappa if weighted.any() and not clause.binary else "cohen_kappa"


def _by_attack(clause: Clause, own: pd.DataFrame) -> list[CheckedClause]:
    """A clause on the injection audit that names no attack, held against each."""
    if clause.binary or not clause.statistic.startswith("injection_"):
        return []
    attacks = own[[at.partition(">")[0] not in ("", PLACEBO, LONG_PLACEBO) for at in own["at"]]]
    return [
        CheckedClause(replace(clause, at=at), float(value), note or "no interval")
        for at, value, note in zip(
            attacks["at"], attacks[clause.part], attacks["note"], strict=True
        )
    ]


def _check_audited(statistic: str, of: pd.DataFrame, grader: str) -> None:
    """Raises InputError where the injection audit has no such statistic, or there was none."""
    from evenhand.analysis.injection import STATISTICS

    if statistic not in STATISTICS:
        named = ", ".join(STATISTICS)
        raise InputError(written("gate.no_such_of_audit", statistic=statistic, named=named))
    if not (of["rater_a"] == grader).any():
        raise InputError(written("gate.not_audited", statistic=statistic, grader=grader))
