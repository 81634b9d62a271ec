"""Which grader to choose: all of a rubric's graders ranked by one rule, with what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.ceiling import CEILING
from analysis.coverage import COVERAGE
from analysis.encoding import BINARY, LabelMatrix
from analysis.resampling import Interval
from analysis.results import ResultRow, ResultRows
from analysis.verdicts import BIAS, JUDGEMENTS, Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PRICE", "Candidate", "add_price_rows", "rank_graders"]

PRICE = "price_per_1000_units"
"""US dollars."""


def add_price_rows(
    rows: ResultRows, labels: LabelMatrix, prices: Mapping[tuple[str, str], float]
) -> None:
    """`price_per_1000_units` of every grader whose price is known: rater_b is the grader."""
    for model in labels.models:
        name = labels.raters[model]
        price = prices.get((rows.rubric, name), math.nan)
        if math.isnan(price):
            continue
        numbers = (int(labels.asked[:, model].sum()), 0)
        rows.add(
            PRICE,
            Interval(price, np.nan, np.nan),
            numbers,
            rater_a="",
            rater_b=name,
            subset="all",
            note="US dollars, all attempts",
        )


@dataclass(frozen=True)
class Candidate:
    """One grader in a ranking: its verdict and the rows that it is ranked by.

    `best_buy`: no other grader of the rubric is as cheap and agrees as well (the Pareto front of
    the ceiling difference against price).
    """

    verdict: Verdict
    difference: ResultRow | None
    kappa: ResultRow | None
    coverage: ResultRow | None
    worst_bias: ResultRow | None
    price: ResultRow | None
    best_buy: bool = False

    @property
    def usd(self) -> float:
        """The price of 1,000 units; infinite where it is not known."""
        return self.price["estimate"] if self.price else math.inf

    @property
    def agreement(self) -> float:
        """Its ceiling difference; minus infinity where undefined."""
        value = self.difference["estimate"] if self.difference else math.nan
        return -math.inf if math.isnan(value) else value


def rank_graders(results: pd.DataFrame, verdicts: Iterable[Verdict]) -> dict[str, list[Candidate]]:
    """The graders of every rubric, the best choice first.

    Verdicts come first, in the order of `JUDGEMENTS`. Among graders that may stand in the cheapest
    leads, since all meet the rule; among the others the one that agrees with people best.
    """
    rows = _Rows(results)
    found: dict[str, list[Candidate]] = {}
    for verdict in verdicts:
        found.setdefault(verdict["rubric"], []).append(rows.candidate(verdict))
    return {rubric: _ranked(each) for rubric, each in found.items()}


def _ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    marked = [_marked(each, candidates) for each in candidates]
    return sorted(marked, key=_place)


def _place(candidate: Candidate) -> tuple[int, float, float, str]:
    judgement = candidate.verdict["verdict"]
    passes = judgement in ("may_stand_in", "may_stand_in_at_threshold")
    price = candidate.usd if passes else 0.0
    return JUDGEMENTS.index(judgement), price, -candidate.agreement, candidate.verdict["grader"]


def _marked(candidate: Candidate, among: Sequence[Candidate]) -> Candidate:
    from dataclasses import replace

    dominated = any(
        other.usd <= candidate.usd
        and other.agreement >= candidate.agreement
        and (other.usd, other.agreement) != (candidate.usd, candidate.agreement)
        for other in among
    )
    known = math.isfinite(candidate.usd) and math.isfinite(candidate.agreement)
    return replace(candidate, best_buy=known and not dominated)


class _Rows:
    """Results rows, looked up for a grader of a rubric."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._by_key: dict[tuple[str, ...], ResultRow] = {}
        self._biases: dict[tuple[str, str], list[ResultRow]] = {}
        for record in results.to_dict("records"):
            row: ResultRow = record  # type: ignore[assignment]
            key = (row["rubric"], row["statistic"], row["rater_a"], row["rater_b"], row["subset"])
            if row["at"] == "":
                self._by_key[key] = row
            if row["statistic"].startswith(BIAS):
                self._biases.setdefault((row["rubric"], row["rater_b"]), []).append(row)

    def candidate(self, verdict: Verdict) -> Candidate:
        rubric, grader = verdict["rubric"], verdict["grader"]
        deciding = {(key[1], key[4]) for key in verdict["evidence"]}
        subset = next((where for what, where in deciding if what == CEILING), "all")
        subset = "all" if (CEILING, "all") in deciding else subset
        ordinal = (rubric, "weighted_kappa_quadratic", "humans", grader, subset)
        plain = (rubric, "cohen_kappa", "humans", grader, subset)
        kappa = plain if subset.endswith(BINARY) or ordinal not in self._by_key else ordinal
        return Candidate(
            verdict=verdict,
            difference=self._by_key.get((rubric, CEILING, "humans", grader, subset)),
            kappa=self._by_key.get(kappa),
            coverage=self._by_key.get((rubric, COVERAGE, "", grader, "all")),
            worst_bias=self._worst_bias(rubric, grader),
            price=self._by_key.get((rubric, PRICE, "", grader, "all")),
        )

    def _worst_bias(self, rubric: str, grader: str) -> ResultRow | None:
        """The bias whose interval lies farthest from 0; None where none is clear of it."""
        clear = [
            (max(row["low"], -row["high"]), row)
            for row in self._biases.get((rubric, grader), [])
            if row["low"] > 0 or row["high"] < 0
        ]
        return max(clear, key=lambda each: each[0])[1] if clear else None
