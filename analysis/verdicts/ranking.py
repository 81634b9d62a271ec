"""Ranking of a rubric's graders by one rule, with their prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evenhand.analysis.bias.findings import audited, audited_grader, status_of
from evenhand.analysis.people.coverage import COVERAGE
from evenhand.analysis.results import TableRow, key_of
from evenhand.analysis.usage import PRICE
from evenhand.analysis.verdicts.case import deciding_keys
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.words import JUDGEMENTS, PASSES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Candidate:
    """A grader in a ranking: its verdict and the rows that it is ranked by.

    `best_buy`: no other grader of the rubric is as cheap and agrees as well (the Pareto front of
    the ceiling difference against price).
    """

    verdict: Verdict
    difference: TableRow | None
    kappa: TableRow | None
    coverage: TableRow | None
    worst_bias: TableRow | None
    price: TableRow | None
    best_buy: bool = False

    @property
    def usd(self) -> float:
        """The price of 1,000 units; infinite where it is not known."""
        return self.price["estimate"] if self.price else math.inf

    @property
    def agreement(self) -> float:
        """Ceiling difference of the grader; minus infinity where undefined."""
        value = self.difference["estimate"] if self.difference else math.nan
        return -math.inf if math.isnan(value) else value


def rank_graders(results: pd.DataFrame, verdicts: Iterable[Verdict]) -> dict[str, list[Candidate]]:
    """The graders of every rubric, the best choice first; `results` may be read from results.csv.

    Verdicts come first, in the order of `JUDGEMENTS`; those that hold for labels or for binary
    verdicts only come after those that hold for both. Among graders that pass the cheapest leads,
    since all meet the rule; among the others the one that agrees with people best.
    """
    rows = _Rows(results)
    found: dict[str, list[Candidate]] = {}
    for verdict in verdicts:
        found.setdefault(verdict["rubric"], []).append(rows.candidate(verdict))
    return {rubric: _ranked(each) for rubric, each in found.items()}


def _ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    marked = [_marked(each, candidates) for each in candidates]
    return sorted(marked, key=_place)


def _place(candidate: Candidate) -> tuple[int, bool, float, float, str]:
    verdict = candidate.verdict
    place = JUDGEMENTS.index(verdict["verdict"])
    price = candidate.usd if verdict["verdict"] in PASSES else 0.0
    return place, verdict["holds_for"] != "", price, -candidate.agreement, verdict["grader"]


def _marked(candidate: Candidate, among: Sequence[Candidate]) -> Candidate:
    dominated = any(
        other.usd <= candidate.usd
        and other.agreement >= candidate.agreement
        and (other.usd, other.agreement) != (candidate.usd, candidate.agreement)
        for other in among
    )
    known = math.isfinite(candidate.usd) and math.isfinite(candidate.agreement)
    return replace(candidate, best_buy=known and not dominated)


class _Rows:
    """Results rows, looked up for a verdict."""

    def __init__(self, results: pd.DataFrame) -> None:
        records: list[TableRow] = results.to_dict("records")  # type: ignore[assignment]
        self._by_key: dict[tuple[str, ...], TableRow] = {key_of(row): row for row in records}
        self._shifts = [row for row, p in audited(records) if status_of(row, p) == "found"]

    def candidate(self, verdict: Verdict) -> Candidate:
        """The verdict with the rows that it rests on, the worst bias and the price."""
        rubric, grader = verdict["rubric"], verdict["grader"]
        difference, kappa = (
            self._by_key[key] if key else None
            for key in deciding_keys(verdict["verdict"], verdict["evidence"])
        )
        shifts = [
            row for row in self._shifts if (row["rubric"], audited_grader(row)) == (rubric, grader)
        ]
        return Candidate(
            verdict=verdict,
            difference=difference,
            kappa=kappa,
            coverage=self._by_key.get((rubric, COVERAGE, "", grader, "all", "")),
            worst_bias=max(shifts, key=lambda row: abs(row["estimate"]), default=None),
            price=self._by_key.get((rubric, PRICE, "", grader, "all", "")),
        )
