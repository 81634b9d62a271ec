"""Usage and cost of graders, as rows of the results."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import DataFrame

COST, MODELS = "cost_usd", "models_answered"
PRICE = "price_per_1000_units"
"""US dollars."""


def add_usage_rows(rows: ResultRows, usage: DataFrame | None) -> None:
    """Add what every grader cost, if the table says so, and the number of models that answered for
    it, where any is known.

    `usage` has a row for each `rater_id` and `rubric`. An unknown cost (of a model without a list
    price) is undefined, not 0. `n_units` counts the attempts.
    """
    if usage is None:
        return
    for record in usage[usage["rubric"] == rows.rubric].to_dict("records"):
        attempts, who = int(record["attempts"]), str(record["rater_id"])
        counts, about = (attempts, attempts), {"rater_a": "", "rater_b": who, "subset": "all"}
        if COST in record:
            value = float(record[COST])
            found = Interval.point(value, Remark("not_known") if np.isnan(value) else "")
            rows.add(COST, found, counts, **about)
        if models := json.loads(record.get("models") or "{}"):
            rows.add(MODELS, Interval.point(len(models)), counts, **about)


def add_price_rows(
    rows: ResultRows, labels: LabelMatrix, prices: Mapping[tuple[str, str], float]
) -> None:
    """Add `price_per_1000_units` of every grader whose price is known: rater_b is the grader."""
    for model in labels.models:
        name, asked = labels.raters[model], int(labels.asked[:, model].sum())
        price = prices.get((rows.rubric, name), np.nan)
        if not np.isnan(price):
            found = Interval.point(price, "US dollars, all attempts")
            rows.add(PRICE, found, (asked, 0), rater_a="", rater_b=name, subset="all")
