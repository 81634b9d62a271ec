"""The choice of a grader: all of them ranked by one rule, with prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import pandas as pd

from evenhand.analysis import Analysis, Verdict, rank_graders
from evenhand.analysis.people.comparison import Rate
from evenhand.analysis.report.source import shown
from evenhand.analysis.results import TableRow
from evenhand.analysis.verdicts.judge import limits_of
from evenhand.analysis.verdicts.ranking import Candidate, recommendations
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.reporting.panel import Columns, Line, Shown, table_of
from evenhand.texts import written

_FIGURES: tuple[Literal["estimate"], Literal["low"], Literal["high"]] = ("estimate", "low", "high")


@dataclass(frozen=True, repr=False)
class Selection(Shown):
    """The graders of each rubric, the best choice first; of a `study`, with the way to extend its
    sample. `said` lists how the labels were read.
    """

    analysis: Analysis
    said: Sequence[str] = ()
    study: Path | None = None

    @cached_property
    def _ranking(self) -> dict[str, list[Candidate]]:
        return rank_graders(self.results, self.analysis.verdicts)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on how the labels were read."""
        return self.said

    @property
    def results(self) -> pd.DataFrame:
        """All figures of the analysis, defined in docs/statistics.md."""
        return self.analysis.results

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts in the order of the ranking, rubric by rubric."""
        return [each.verdict for ranked in self._ranking.values() for each in ranked]

    @property
    def recommendations(self) -> list[str]:
        """A sentence for each rubric: which grader to use, or what to do first."""
        return [each.sentence for each in recommendations(self._ranking)]

    @property
    def table(self) -> pd.DataFrame:
        """The ranking: a row for each rubric and grader, with the figures that it is ranked by.
        `usd` is the price of 1,000 units; NaN is a figure that is not known.
        """
        return pd.DataFrame([_record(each) for ranked in self._ranking.values() for each in ranked])

    @property
    def lines(self) -> list[Line]:
        """A table for each rubric, the recommendations, the verdicts, and how to read them."""
        if not self._ranking:
            return [written("select.no_graders")]
        lines = [table_of(_COLUMNS, ranked, rubric) for rubric, ranked in self._ranking.items()]
        lines += self.recommendations
        for verdict in self.verdicts:
            lines.append(verdict["sentence"])
            if verdict["more_clusters"] and self.study is not None:
                lines.append(f"  evenhand extend {self.study} --pairs {verdict['more_clusters']}")
        return [
            *lines,
            *limits_of(self.analysis.verdicts),
            f"{written('select.brackets')} {written('verdict.bounds')}",
            written("select.rule", rule=self.analysis.rule),
            written("select.order"),
        ]


def _record(candidate: Candidate) -> dict[str, object]:
    verdict, nan = candidate.verdict, float("nan")
    record: dict[str, object] = {
        "rubric": verdict["rubric"],
        "grader": verdict["grader"],
        "verdict": verdict["verdict"],
    }
    for called, row in (("difference", candidate.difference), ("kappa", candidate.kappa)):
        record[called] = row["estimate"] if row else nan
        record[f"{called}_low"] = row["low"] if row else nan
        record[f"{called}_high"] = row["high"] if row else nan
    for called, row in (("coverage", candidate.coverage), ("usd", candidate.price)):
        record[called] = row["estimate"] if row else nan
    return {**record, "front": candidate.best_buy, "sentence": verdict["sentence"]}


def _with_interval(row: TableRow | None) -> str:
    """A figure rounded as everywhere else.

    >>> row = {"statistic": "human_ceiling_difference", "estimate": -0.001, "low": -0.03}
    >>> _with_interval(row | {"high": 0.021})
    '+0.00 [-0.03, +0.02]'
    """
    if row is None or row["estimate"] != row["estimate"]:
        return "-"
    estimate, low, high = (shown(row[name], row["statistic"]) for name in _FIGURES)
    return f"{estimate} [{low}, {high}]" if row["low"] == row["low"] else estimate


def _rate(rate: Rate | None) -> str:
    """A rate against the majority, or the reference.

    >>> _rate({"estimate": 0.9, "low": 0.804, "high": 0.95, "n": 60}), _rate(None)
    ('0.90 [0.80, 0.95]', '-')
    """
    if rate is None or rate["estimate"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    return f"{rate['estimate']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"


def _fault(candidate: Candidate) -> str:
    """A part of the sample in which it fails, or else the largest bias that was found."""
    row, parts = candidate.worst_bias, candidate.verdict["failing_parts"]
    if parts:
        more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
        return f"fails in {parts[0]}{more}"
    if row is None:
        return "none found"
    name = row["statistic"].removeprefix("bias_").replace("_", " ")
    return f"{name} {shown(row['estimate'], row['statistic'])}"


_COLUMNS: Columns = {
    "grader": lambda each: each.verdict["grader"],
    "verdict": lambda each: TITLES[each.verdict["verdict"]].short,
    "minus annotators' kappa": lambda each: _with_interval(each.difference),
    "kappa": lambda each: _with_interval(each.kappa),
    "TPR": lambda each: _rate(each.verdict["rates"].get("tpr")),
    "TNR": lambda each: _rate(each.verdict["rates"].get("tnr")),
    "coverage": lambda each: f"{each.coverage['estimate']:.1%}" if each.coverage else "-",
    "worst fault": _fault,
    "USD/1,000": lambda each: f"{each.price['estimate']:.2f}" if each.price else "-",
    "front": lambda each: "*" if each.best_buy else "",
}
