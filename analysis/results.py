"""Rows of the results table (`ResultRow`), and the class that collects them (`ResultRows`)."""

import math
import re
from ast import literal_eval
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from evenhand.analysis.bootstrap.intervals import Chance, Deciding, Interval, widened
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY, Coded
from evenhand.analysis.statistics import Note, Remark, Remarks, entry_for, join_notes, says, text_of
from evenhand.analysis.types import DataFrame
from evenhand.lazy import pd

BASELINES = ("baseline:constant", "baseline:random")
"""Names of the baselines, raters whose labels do not depend on the unit."""
FEW_MINORITY = 10
"""With fewer clusters that have a minority label, intervals of coefficients get a remark."""


class TableRow(TypedDict):
    """Row of the `results` table, as in results.csv."""

    rubric: str
    statistic: str
    rater_a: str
    rater_b: str
    subset: str
    at: str
    n_units: int
    n_clusters: int
    estimate: float
    low: float
    high: float
    note: str


RESULTS_COLUMNS = tuple(TableRow.__annotations__)
RESULTS_KEY = RESULTS_COLUMNS[:6]  # from rubric to at
"""Columns that identify a row."""


class ResultRow(TableRow):
    """Row of the table with its remarks, whose text is `note`, and the values that verdicts use
    (`deciding`), None if they do not use the row.
    """

    remarks: Remarks
    deciding: Deciding | None


def key_of(row: TableRow) -> tuple[str, str, str, str, str, str]:
    """Return the values of the columns `RESULTS_KEY`, which identify a row."""
    return row["rubric"], row["statistic"], row["rater_a"], row["rater_b"], row["subset"], row["at"]


def sample_of(row: Mapping[str, object], noun: str = "cluster") -> str:
    """Return the size of a row's sample in words; `noun` names a cluster. A sample whose clusters
    are single units has one number. Units are called items, or rows where items are the clusters.

    >>> sample_of({"n_units": 400, "n_clusters": 100}, "item")
    '400 rows in 100 items'
    >>> sample_of({"n_units": 250, "n_clusters": 250}, "pair")
    '250 pairs'
    """
    units, clusters = row["n_units"], row["n_clusters"]
    if units == clusters:
        return f"{units} {'pair' if noun == 'pair' else 'item'}s"
    return f"{units} {'row' if noun == 'item' else 'item'}s in {clusters} {noun}s"


def from_to(first: str, second: str) -> str:
    """Return the `at` of two names, "FIRST>SECOND"; a name with ">" is quoted.

    >>> from_to("yes", "no"), from_to("p>0", "other")
    ('yes>no', "'p>0'>other")
    """
    return ">".join(repr(name) if ">" in name else name for name in (first, second))


# A name as `from_to` writes it: quoted, or without ">".
_NAME = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^>]+)"""


def names_in(at: str) -> tuple[str, str]:
    """Return the two names that `from_to` joined; ("NAME", "") for a single one.

    >>> names_in(from_to("18-65", ">65")), names_in(">65")
    (('18-65', '>65'), ('>65', ''))
    """
    if not (pair := re.fullmatch(f"{_NAME}>{_NAME}", at, re.DOTALL)):
        return at, ""
    first, second = (literal_eval(name) if ">" in name else name for name in pair.groups())
    return first, second


@dataclass
class ResultRows:
    """Rows of one rubric, by their key.

    Intervals without width are widened (`intervals.widened`), except for statistics that are
    constant by construction. `chance` and `minority_clusters` are by view of the labels, "" or
    "|binary": the frequencies of the categories, which limit the width for coefficients, and the
    number of clusters in which a human chose another category than the most frequent one.
    """

    rubric: str
    rows: dict[tuple[str, ...], ResultRow] = field(default_factory=dict)
    chance: dict[str, Chance] = field(default_factory=dict)
    minority_clusters: dict[str, int] = field(default_factory=dict)
    heaviest: float = 1.0
    """Largest weight of a cluster: n clusters count as n / heaviest in widened intervals."""
    evidence: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    """Evidence for verdicts (`analysis.verdicts.evidence`), by grader, subset and `at`."""

    def add(
        self,
        statistic: str,
        interval: Interval,
        counts: tuple[int, int],
        onto: tuple[float, float] = (0.0, 1.0),
        /,
        *,
        rater_a: str,
        rater_b: str = "",
        subset: str,
        at: str = "",
        note: Note = "",
    ) -> Interval:
        """Add a row, and return its interval as stored. `counts` are (n_units, n_clusters). The
        scale 0 to 1 of the interval is mapped `onto` the scale with this start and span. Raises
        ValueError if there is a row with the same key.
        """
        deciding = interval.deciding
        key = (self.rubric, statistic, rater_a, rater_b, subset, at)
        if key in self.rows:
            raise ValueError(f"two results rows share the key {key}")
        # The kappa of a baseline, or of a rater with a single category, is always 0.
        is_constant = rater_b in BASELINES or says(join_notes(note), "constant_rater")
        if not (is_constant and entry_for(statistic).kind == "coefficient"):
            interval = self._widened(statistic, interval, subset, counts[1])
        start, span = onto
        values = (interval.estimate, interval.low, interval.high)
        estimate, low, high = (start + span * value for value in values)
        interval = replace(interval, estimate=estimate, low=low, high=high)
        remarks = join_notes(interval.remarks, deciding.remarks if deciding else "", note)
        self.rows[key] = ResultRow(
            rubric=self.rubric, statistic=statistic, rater_a=rater_a, rater_b=rater_b,
            subset=subset, at=at, n_units=int(counts[0]), n_clusters=int(counts[1]),
            estimate=float(interval.estimate), low=float(interval.low), high=float(interval.high),
            note=text_of(remarks), remarks=remarks, deciding=deciding,
        )  # fmt: skip
        return interval

    def _widened(self, statistic: str, interval: Interval, subset: str, clusters: int) -> Interval:
        """Return a row's interval, widened if it has no width; few minority labels add a remark."""
        kind, deciding = entry_for(statistic).kind, interval.deciding
        chance = self.chance.get(BINARY if subset.endswith(BINARY) else "")
        disagreement = 0.0 if chance is None else chance.disagreement(statistic)
        n_effective = int(clusters / self.heaviest)  # as if all had the largest weight
        interval = widened(interval, n_effective, kind, disagreement)
        # With few minority labels, bootstrap intervals are not reliable (benchmarks/results/
        # coverage-small.md). Their number is known for "all" (key "") and "all|binary" ("|binary").
        minority = self.minority_clusters.get(subset.removeprefix("all"), FEW_MINORITY)
        is_coefficient = kind in ("coefficient", "difference")
        # Verdicts check the number themselves where their rows have a level; `alpha` is NaN in rows
        # that only have a limit, such as the margin in a part of the sample.
        decides = deciding is not None and not math.isnan(deciding.alpha)
        has_bounds = not math.isnan(interval.low)
        if minority < FEW_MINORITY and is_coefficient and not decides and has_bounds:
            remark = Remark("few_rarer", (minority,))
            interval = replace(interval, remarks=(*interval.remarks, remark))
        return interval

    def added(self, *row: Any, **about: Any) -> ResultRow:
        """Add a row with the arguments of `add`, and return it."""
        self.add(*row, **about)
        return next(reversed(self.rows.values()))

    def record_chance(self, coded: Coded, resamples: Resamples) -> None:
        """Record the frequencies of the categories in one view of the labels."""
        included, weight = coded.labelled.copy(), resamples.mass[coded.clusters][:, None]
        # From humans only, if there are any: a grader's threshold must not change these.
        if coded.members("human"):
            included[:, [kind != "human" for kind in coded.kinds]] = False
        weights = np.broadcast_to(weight, included.shape)[included]
        counts = np.bincount(coded.codes[included], weights, minlength=coded.q)
        if counts.any():
            view = BINARY if coded.is_binary else ""
            values = coded.values if coded.is_number else ()
            ordered = None if coded.level == "nominal" else coded.ordered
            self.chance[view] = Chance(counts / counts.sum(), ordered, values)
            has_minority = (included & (coded.codes != counts.argmax())).any(axis=1)
            self.minority_clusters[view] = resamples.mass_with(coded.clusters, has_minority)

    def get(
        self, statistic: str, rater_a: str, rater_b: str = "", subset: str = "all", at: str = ""
    ) -> ResultRow | None:
        """Return the row with this key, or None."""
        return self.rows.get((self.rubric, statistic, rater_a, rater_b, subset, at))


def results_table(rows: Iterable[TableRow]) -> DataFrame:
    """Return rows as the `results` table, without internal fields."""
    frame = pd.DataFrame(list(rows), columns=list(RESULTS_COLUMNS))
    counts, numbers = ["n_units", "n_clusters"], ["estimate", "low", "high"]
    return frame.astype(dict.fromkeys(counts, "int64") | dict.fromkeys(numbers, "float64"))
