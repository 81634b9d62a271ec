"""What graders did and cost, as rows beside the agreement that it bought."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows

if TYPE_CHECKING:
    import pandas as pd

USAGE = {
    "attempts": "grades_attempted",
    "labelled": "grades_scored",
    "unscored": "grades_unscored",
    "tokens_input": "tokens_input",
    "tokens_output": "tokens_output",
    "cost_usd": "cost_usd",
}
"""The columns of a usage table, and the statistics that they become."""


def add_usage_rows(rows: ResultRows, usage: pd.DataFrame | None) -> None:
    """A row for every grader and every column of `USAGE` that the table has.

    `usage` has a row for each `rater_id` and `rubric`. What is not known (the price of a model that
    nobody lists) is undefined, not 0. `n_units` counts the attempts.
    """
    if usage is None:
        return
    for record in usage[usage["rubric"] == rows.rubric].to_dict("records"):
        attempts = int(record["attempts"])
        for column, statistic in USAGE.items():
            if column not in record:
                continue
            value = float(record[column])
            rows.add(
                statistic,
                Interval.point(value, Remark("not_known") if np.isnan(value) else ""),
                (attempts, attempts),
                rater_a="",
                rater_b=str(record["rater_id"]),
                subset="all",
            )
