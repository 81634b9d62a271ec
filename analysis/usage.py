"""Usage and cost of graders, as rows of the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows

if TYPE_CHECKING:
    import pandas as pd

USAGE = {
    "attempts": "grades_attempted",
    "labelled": "grades_scored",
    "unscored": "grades_unscored",
    "low_mass": "grades_low_mass",
    "without_probabilities": "grades_without_probabilities",
    "tokens_input": "tokens_input",
    "tokens_output": "tokens_output",
    "cost_usd": "cost_usd",
}
"""Columns of a usage table, and the statistics made from them."""
MODELS = "models_answered"
PRICE = "price_per_1000_units"
"""US dollars."""


def add_usage_rows(rows: ResultRows, usage: pd.DataFrame | None) -> None:
    """Add a row for every grader and every column of `USAGE` that the table has, and one for the
    number of models that answered for it, where any is known.

    `usage` has a row for each `rater_id` and `rubric`. Unknown values (the price of a model without
    a list price) are undefined, not 0. `n_units` counts the attempts.
    """
    if usage is None:
        return
    for record in usage[usage["rubric"] == rows.rubric].to_dict("records"):
        attempts, who = int(record["attempts"]), str(record["rater_id"])
        for column, statistic in USAGE.items():
            if column in record:
                value = float(record[column])
                found = Interval.point(value, Remark("not_known") if np.isnan(value) else "")
                counts = attempts, attempts
                rows.add(statistic, found, counts, rater_a="", rater_b=who, subset="all")
        if models := json.loads(record.get("models") or "{}"):
            found, counts = Interval.point(len(models)), (attempts, attempts)
            rows.add(MODELS, found, counts, rater_a="", rater_b=who, subset="all")


def add_price_rows(
    rows: ResultRows, labels: LabelMatrix, prices: Mapping[tuple[str, str], float]
) -> None:
    """Add `price_per_1000_units` of every grader whose price is known: rater_b is the grader."""
    for model in labels.models:
        name, asked = labels.raters[model], int(labels.asked[:, model].sum())
        price, note = prices.get((rows.rubric, name), np.nan), "US dollars, all attempts"
        if not np.isnan(price):
            found = Interval.point(price)
            rows.add(PRICE, found, (asked, 0), rater_a="", rater_b=name, subset="all", note=note)
