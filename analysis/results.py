"""The one table that comes out of the analysis, built row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from evenhand.analysis.bootstrap.resamples import Interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "RESULTS_COLUMNS",
    "RESULTS_KEY",
    "ResultRow",
    "ResultRows",
    "from_to",
    "join_notes",
    "key_of",
]

RESULTS_COLUMNS = (
    "rubric",
    "statistic",
    "rater_a",
    "rater_b",
    "subset",
    "at",
    "n_units",
    "n_clusters",
    "estimate",
    "low",
    "high",
    "note",
)
RESULTS_KEY = RESULTS_COLUMNS[:6]
"""What a row is unique by."""


class ResultRow(TypedDict):
    """One row of `results`."""

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


def key_of(row: ResultRow) -> tuple[str, str, str, str, str, str]:
    """What a row is unique by: its `RESULTS_KEY`."""
    raters = row["rater_a"], row["rater_b"]
    return row["rubric"], row["statistic"], *raters, row["subset"], row["at"]


def join_notes(*notes: str) -> str:
    """Notes in one cell, empty ones left out.

    >>> join_notes("constant_rater", "", "mean over 3 pairs")
    'constant_rater; mean over 3 pairs'
    """
    return "; ".join(note for note in notes if note)


def from_to(first: str, second: str) -> str:
    """The `at` of a cell of a confusion matrix; categories that hold ">" are quoted.

    >>> from_to("yes", "no"), from_to("p>0", "other")
    ('yes>no', "'p>0'>other")
    """
    return ">".join(repr(each) if ">" in each else each for each in (first, second))


@dataclass
class ResultRows:
    """The rows of one rubric, found again by their key."""

    rubric: str
    rows: dict[tuple[str, ...], ResultRow] = field(default_factory=dict)

    def add(
        self,
        statistic: str,
        interval: Interval,
        counts: tuple[int, int],
        *,
        rater_a: str,
        rater_b: str = "",
        subset: str,
        at: str = "",
        note: str = "",
    ) -> None:
        """Add a row; `counts` are (n_units, n_clusters)."""
        key = (self.rubric, statistic, rater_a, rater_b, subset, at)
        if key in self.rows:
            raise ValueError(f"two results rows share the key {key}")
        self.rows[key] = ResultRow(
            rubric=self.rubric,
            statistic=statistic,
            rater_a=rater_a,
            rater_b=rater_b,
            subset=subset,
            at=at,
            n_units=counts[0],
            n_clusters=counts[1],
            estimate=interval.estimate,
            low=interval.low,
            high=interval.high,
            note=join_notes(interval.note, note),
        )

    def get(
        self, statistic: str, rater_a: str, rater_b: str = "", subset: str = "all", at: str = ""
    ) -> ResultRow | None:
        """The row with this key, if there is one."""
        return self.rows.get((self.rubric, statistic, rater_a, rater_b, subset, at))

    @staticmethod
    def frame(parts: Iterable[ResultRows]) -> pd.DataFrame:
        """All rows as the `results` table."""
        import pandas as pd

        rows = [row for part in parts for row in part.rows.values()]
        frame = pd.DataFrame(rows, columns=list(RESULTS_COLUMNS))
        counts, numbers = ["n_units", "n_clusters"], ["estimate", "low", "high"]
        return frame.astype(dict.fromkeys(counts, "int64") | dict.fromkeys(numbers, "float64"))
