"""Numbers as they are shown, each bound to the results row it was read off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.notes import Code, Remark, Remarks, says
from evenhand.analysis.report.blocks import Cell
from evenhand.analysis.results import ResultRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH

ALL, ALL_BINARY = "all", "all" + BINARY

_FIRST_LINE = 2


class Key(NamedTuple):
    """What identifies a results row (`RESULTS_KEY`)."""

    rubric: str
    statistic: str
    rater_a: str
    rater_b: str = ""
    subset: str = ALL
    at: str = ""


@dataclass(frozen=True)
class Figure:
    """A results row, rounded for display.

    `line` is its row in results.csv as a spreadsheet counts; `bounds` are low, estimate, high as
    they are, NaN where undefined; `estimate` and `interval` are text, empty where there is no
    interval. `reason` is the remark on why the estimate is undefined, None where it is not;
    `remarks` are the row's others.
    """

    key: Key
    line: int
    n_units: int
    n_clusters: int
    bounds: tuple[float, float, float]
    estimate: str
    interval: str
    reason: Remark | None
    remarks: Remarks

    @property
    def statistic(self) -> str:
        return self.key.statistic

    @property
    def rater(self) -> str:
        return self.key.rater_a

    @property
    def grader(self) -> str:
        """The second rater, as of a figure that compares a grader with people."""
        return self.key.rater_b

    @property
    def raters(self) -> tuple[str, str]:
        return self.key.rater_a, self.key.rater_b

    @property
    def subset(self) -> str:
        return self.key.subset

    @property
    def at(self) -> str:
        return self.key.at

    @property
    def text(self) -> str:
        """The estimate, with its interval if it has one."""
        return f"{self.estimate} {self.interval}".strip()

    def says(self, code: Code) -> bool:
        """Return True if one of its remarks has this code."""
        return says(self.remarks, code)

    def without(self, code: Code) -> Figure:
        """Return it without the remarks of this code."""
        return replace(self, remarks=tuple(each for each in self.remarks if each.code != code))

    @property
    def cell(self) -> Cell:
        """Cell for a sentence: the estimate with its interval, or why it is undefined."""
        reason = self.reason.words if self.reason else ""
        return Cell(self.estimate, self.interval, reason, key=self.key, line=self.line)

    def datum(self, **more: object) -> dict[str, object]:
        """Return a datum for a chart: the unrounded bounds, None where undefined, and the results
        row.
        """
        low, estimate, high = (None if math.isnan(each) else each for each in self.bounds)
        found = {"estimate": estimate, "low": low, "high": high, "shown": self.estimate}
        return {**found, "row": self.line, **more}


def shown(value: float, statistic: str = "", limits: Iterable[float] = ()) -> str:
    """A number rounded for display: shares to three places, coefficients to two; a bound near one
    of the `limits` of a decision to as many as tell them apart.

    >>> shown(0.8482), shown(-0.004), shown(float("nan")), shown(0.0042, "prevalence")
    ('0.85', '0.00', '—', '0.004')
    >>> shown(0.021, "human_ceiling_difference"), shown(0.123456, "threshold")
    ('+0.02', '0.123')
    """
    if math.isnan(value):
        return DASH
    return entry_for(statistic).shown(value, limits)


class ResultsIndex:
    """The `results` table, looked up by key."""

    def __init__(self, rows: Sequence[ResultRow]) -> None:
        each = (_figure(row, line) for line, row in enumerate(rows, start=_FIRST_LINE))
        self._by_key: dict[tuple[str, ...], Figure] = {figure.key: figure for figure in each}
        self._families: dict[tuple[str, ...], dict[str, list[Figure]]] = {}
        for figure in self._by_key.values():
            subsets = self._families.setdefault(figure.key[:2], {})
            subsets.setdefault(figure.subset, []).append(figure)

    @property
    def rubrics(self) -> list[str]:
        """All rubrics, in the order of the table."""
        return list(dict.fromkeys(figure.key[0] for figure in self._by_key.values()))

    @property
    def statistics(self) -> list[str]:
        """All statistics, in the order of the table."""
        return list(dict.fromkeys(figure.statistic for figure in self._by_key.values()))

    def by_key(self, key: tuple[str, ...]) -> Figure | None:
        """The figure with this key."""
        return self._by_key.get(key)

    def by_subset(self, rubric: str, statistic: str) -> dict[str, list[Figure]]:
        """All figures of one statistic by subset, in the order of the table."""
        return self._families.get((rubric, statistic), {})


def _figure(row: ResultRow, line: int) -> Figure:
    key = Key(*key_of(row))
    estimate, low, high = row["estimate"], row["low"], row["high"]
    remarks, reason = row["remarks"], None
    if math.isnan(estimate):
        reason, remarks = (remarks or (Remark("undefined"),))[0], remarks[1:]
    no_interval = math.isnan(low) or math.isnan(high)
    limits = row["deciding"].limits if row["deciding"] else ()
    ends = (shown(each, key[1], limits) for each in (low, high))
    interval = "" if no_interval else f"[{', '.join(ends)}]"
    return Figure(
        key=key,
        line=line,
        n_units=row["n_units"],
        n_clusters=row["n_clusters"],
        bounds=(low, estimate, high),
        estimate=shown(estimate, key[1]),
        interval=interval,
        reason=reason,
        remarks=remarks,
    )


def lines_of(figures: Iterable[Figure | None]) -> str:
    """Return the rows of results.csv of figures, one after the other."""
    return ", ".join(str(figure.line) for figure in figures if figure)


def defined(figures: Iterable[Figure | None]) -> list[Figure]:
    """Return the figures that have an estimate, the largest first."""
    found = [figure for figure in figures if figure and not figure.reason]
    return sorted(found, key=lambda figure: -figure.bounds[1])
