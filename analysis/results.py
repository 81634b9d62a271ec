"""The one table that comes out of the analysis, built row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.notes import Note, Remarks, join_notes, text_of

if TYPE_CHECKING:
    import pandas as pd

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


class TableRow(TypedDict):
    """One row of the `results` table, as it is written and read back."""

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


class ResultRow(TableRow):
    """A row with its remarks, of which `note` is the text. Nothing is decided by a note."""

    remarks: Remarks


def key_of(row: TableRow) -> tuple[str, str, str, str, str, str]:
    """What a row is unique by: its `RESULTS_KEY`."""
    raters = row["rater_a"], row["rater_b"]
    return row["rubric"], row["statistic"], *raters, row["subset"], row["at"]


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
        note: Note = "",
    ) -> None:
        """Add a row; `counts` are (n_units, n_clusters)."""
        key = (self.rubric, statistic, rater_a, rater_b, subset, at)
        if key in self.rows:
            raise ValueError(f"two results rows share the key {key}")
        remarks = join_notes(interval.remarks, note)
        self.rows[key] = ResultRow(
            rubric=self.rubric,
            statistic=statistic,
            rater_a=rater_a,
            rater_b=rater_b,
            subset=subset,
            at=at,
            n_units=int(counts[0]),
            n_clusters=int(counts[1]),
            estimate=float(interval.estimate),
            low=float(interval.low),
            high=float(interval.high),
            note=text_of(remarks),
            remarks=remarks,
        )

    def get(
        self, statistic: str, rater_a: str, rater_b: str = "", subset: str = "all", at: str = ""
    ) -> ResultRow | None:
        """The row with this key, if there is one."""
        return self.rows.get((self.rubric, statistic, rater_a, rater_b, subset, at))


def results_table(rows: Iterable[TableRow]) -> pd.DataFrame:
    """Rows as the `results` table, without what is internal."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(RESULTS_COLUMNS))
    counts, numbers = ["n_units", "n_clusters"], ["estimate", "low", "high"]
    return frame.astype(dict.fromkeys(counts, "int64") | dict.fromkeys(numbers, "float64"))
