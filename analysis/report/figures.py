"""Numbers as they are shown, each bound to the results row it was read off."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.notes import Code, Remark, Remarks, says
from evenhand.analysis.report.blocks import Cell
from evenhand.analysis.results import ResultRow, TableRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

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

    `grader` is the second rater, as of a figure that compares a grader with people. `line` is its
    row in results.csv as a spreadsheet counts; `bounds` are low, estimate, high as they are, NaN
    where undefined; `estimate` and `interval` are text, empty where there is no interval. `reason`
    is the remark on why the estimate is undefined, None where it is not; `remarks` are the row's
    others.
    """

    rubric: str
    statistic: str
    rater: str
    grader: str
    subset: str
    at: str
    line: int
    n_units: int
    n_clusters: int
    bounds: tuple[float, float, float]
    estimate: str
    interval: str
    reason: Remark | None
    remarks: Remarks

    @cached_property
    def key(self) -> Key:
        return Key(self.rubric, self.statistic, *self.raters, self.subset, self.at)

    @property
    def raters(self) -> tuple[str, str]:
        return self.rater, self.grader

    @property
    def is_binary(self) -> bool:
        """Return True if it is on the binary verdict."""
        return self.subset.endswith(BINARY)

    @property
    def part(self) -> str:
        """The part of the sample that it is on, as "column=value"; "all" for everything."""
        return self.subset.removesuffix(BINARY)

    @property
    def column(self) -> str:
        return self.part.partition("=")[0]

    @property
    def value(self) -> str:
        return self.part.partition("=")[2]

    @property
    def sides(self) -> tuple[str, str]:
        """What it goes from and to, such as two sides of pairs, ("a", "b") at "a>b"."""
        first, _, second = self.at.partition(">")
        return first, second

    @property
    def is_clear(self) -> bool:
        """Return True if its interval leaves out zero."""
        return not self.bounds[0] <= 0 <= self.bounds[2]

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
        figures = [_figure(row, line) for line, row in enumerate(rows, start=_FIRST_LINE)]
        self._by_key: dict[tuple[str, ...], Figure] = {each.key: each for each in figures}
        families = grouped(self._by_key.values(), lambda each: each.key[:2])
        self._families = {
            name: grouped(family, lambda each: each.subset) for name, family in families.items()
        }

    @property
    def rubrics(self) -> list[str]:
        """All rubrics, in the order of the table."""
        return list(dict.fromkeys(figure.rubric for figure in self._by_key.values()))

    @property
    def statistics(self) -> list[str]:
        """All statistics, in the order of the table."""
        return list(dict.fromkeys(figure.statistic for figure in self._by_key.values()))

    def by_key(self, key: tuple[str, ...]) -> Figure | None:
        """The figure with this key."""
        return self._by_key.get(key)

    def of_row(self, row: TableRow) -> Figure:
        """The figure of one of the rows."""
        return self._by_key[key_of(row)]

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
        *key,
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


def grouped(things: Iterable[T], by: Callable[[T], K]) -> dict[K, list[T]]:
    """Return things by what they have in common, in the order in which they come.

    >>> grouped(["ab", "c", "de"], len)
    {2: ['ab', 'de'], 1: ['c']}
    """
    groups: dict[K, list[T]] = {}
    for thing in things:
        groups.setdefault(by(thing), []).append(thing)
    return groups
