"""Results table of the analysis, built row by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from evenhand.analysis.bootstrap.intervals import Chance, Deciding, Interval, widened
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY, Coded
from evenhand.analysis.statistics import Note, Remark, Remarks, entry_for, join_notes, says, text_of
from evenhand.analysis.types import DataFrame

BASELINES = ("baseline:constant", "baseline:random")
"""Names of the baselines, raters whose labels do not depend on the unit."""
FEW_RARER = 10
"""Clusters of the rarer kind below which resampled coefficients are doubted."""


class TableRow(TypedDict):
    """Row of the `results` table, as it is written and read back."""

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
RESULTS_KEY = RESULTS_COLUMNS[:6]
"""Columns that identify a row."""


class ResultRow(TableRow):
    """Row with its remarks, whose text is `note`. No decision rests on a note, but on `deciding`,
    None for a row that decides nothing.
    """

    remarks: Remarks
    deciding: Deciding | None


def key_of(row: TableRow) -> tuple[str, str, str, str, str, str]:
    """Return the key that identifies a row: its `RESULTS_KEY`."""
    raters = row["rater_a"], row["rater_b"]
    return row["rubric"], row["statistic"], *raters, row["subset"], row["at"]


def sample_of(row: Mapping[str, object], noun: str = "cluster") -> str:
    """Return the size of a row's sample in words: one number where all clusters are single items.

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
    """Return the `at` of a cell of a confusion matrix; categories that hold ">" are quoted.

    >>> from_to("yes", "no"), from_to("p>0", "other")
    ('yes>no', "'p>0'>other")
    """
    return ">".join(repr(name) if ">" in name else name for name in (first, second))


@dataclass
class ResultRows:
    """Rows of one rubric, by their key.

    No row has an interval without width, except for statistics that are constant by construction:
    `chance`, by view of the labels, "" or "|binary", limits how far
    coefficients may fall, and `rarer` counts the clusters in which a human chose another category
    than the commonest.
    """

    rubric: str
    rows: dict[tuple[str, ...], ResultRow] = field(default_factory=dict)
    chance: dict[str, Chance] = field(default_factory=dict)
    rarer: dict[str, int] = field(default_factory=dict)
    heaviest: float = 1.0
    """Largest weight of a cluster: widened intervals count each cluster as 1 / this."""
    compared: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    """What verdicts rest on (`analysis.verdicts.evidence`), by grader, subset and `at`."""

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
        """Add a row, `counts` (n_units, n_clusters), and return its interval as stored. A figure
        on a scale from 0 to 1 is moved `onto` one that begins at a value and has a span.
        """
        deciding = interval.deciding
        key = (self.rubric, statistic, rater_a, rater_b, subset, at)
        if key in self.rows:
            raise ValueError(f"two results rows share the key {key}")
        # The kappa of a baseline, or of a rater who only uses one category, is always 0.
        alone = rater_b in BASELINES or says(join_notes(note), "constant_rater")
        kind = entry_for(statistic).kind
        if not (alone and kind == "coefficient"):
            chance = self.chance.get(BINARY if subset.endswith(BINARY) else "")
            apart = 0.0 if chance is None else chance.disagreement(statistic)
            clusters = int(counts[1] / self.heaviest)  # as if all had the largest weight
            interval = widened(interval, clusters, kind, apart)
            # Where resamples have too few labels of the rarer kind to be trusted (see
            # benchmarks/results/coverage-small.md). Verdicts check this themselves.
            rarer = self.rarer.get(subset.removeprefix("all"), FEW_RARER)
            of_chance = kind in ("coefficient", "difference")
            decides = deciding is not None and not math.isnan(deciding.alpha)
            if rarer < FEW_RARER and of_chance and not decides and not math.isnan(interval.low):
                few = Remark("few_rarer", (rarer,))
                interval = replace(interval, remarks=(*interval.remarks, few))
        start, span = onto
        ends = (start + span * value for value in (interval.estimate, interval.low, interval.high))
        estimate, low, high = ends
        interval = replace(interval, estimate=estimate, low=low, high=high)
        remarks = join_notes(interval.remarks, deciding.remarks if deciding else "", note)
        self.rows[key] = ResultRow(
            rubric=self.rubric, statistic=statistic, rater_a=rater_a, rater_b=rater_b,
            subset=subset, at=at, n_units=int(counts[0]), n_clusters=int(counts[1]),
            estimate=float(interval.estimate), low=float(interval.low), high=float(interval.high),
            note=text_of(remarks), remarks=remarks, deciding=deciding,
        )  # fmt: skip
        return interval

    def added(self, *row: Any, **about: Any) -> ResultRow:
        """Add a row as `add` does, and return it."""
        self.add(*row, **about)
        return next(reversed(self.rows.values()))

    def know_chance(self, coded: Coded, resamples: Resamples) -> None:
        """Record the frequencies of the categories in one view of the labels."""
        held, times = coded.labelled.copy(), resamples.mass[coded.clusters][:, None]
        # Of humans only, if there are any: a grader's threshold must not change chance agreement.
        if people := coded.members("human"):
            held[:, [at for at in range(held.shape[1]) if at not in people]] = False
        weights = np.broadcast_to(times, held.shape)[held]
        counts = np.bincount(coded.codes[held], weights, minlength=coded.q)
        if counts.any():
            of = BINARY if coded.is_binary else ""
            values = coded.values if coded.is_number else ()
            ordered = None if coded.level == "nominal" else coded.ordered
            self.chance[of] = Chance(counts / counts.sum(), ordered, values)
            other = held & (coded.codes != counts.argmax())
            self.rarer[of] = resamples.mass_of(coded.clusters, other.any(axis=1))

    def get(
        self, statistic: str, rater_a: str, rater_b: str = "", subset: str = "all", at: str = ""
    ) -> ResultRow | None:
        """Return the row with this key, or None."""
        return self.rows.get((self.rubric, statistic, rater_a, rater_b, subset, at))


def results_table(rows: Iterable[TableRow]) -> DataFrame:
    """Return rows as the `results` table, without internal fields."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(RESULTS_COLUMNS))
    counts, numbers = ["n_units", "n_clusters"], ["estimate", "low", "high"]
    return frame.astype(dict.fromkeys(counts, "int64") | dict.fromkeys(numbers, "float64"))
