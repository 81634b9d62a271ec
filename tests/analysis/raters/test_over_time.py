"""People's agreement as labels came in: the last cut is the report's figure, nothing is counted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, analyse
from evenhand.analysis.raters.pace import OVER_TIME_COLUMNS, agreement_over_time

SCALES = {"calm": Scale("calm", ("y", "n"))}


@pytest.fixture
def ratings() -> pd.DataFrame:
    """Two synthetic people, who agree by chance at first and wholly later."""
    rng = np.random.default_rng(5)
    first = rng.choice(["y", "n"], 120)
    second = np.where(np.arange(120) < 60, rng.choice(["y", "n"], 120), first)
    rows = [
        {
            "unit_id": f"u{n}",
            "rater_id": rater,
            "label": label,
            "created_at": f"2026-03-{1 + n // 24:02d}T{n % 24:02d}:00:00+00:00",
        }
        for n in range(120)
        for rater, label in (("ann", first[n]), ("ben", second[n]))
    ]
    return pd.DataFrame(rows).assign(rubric="calm", rater_kind="human")


def test_the_kappa_of_each_cut_is_that_of_the_labels_so_far(ratings):
    found = agreement_over_time(ratings, SCALES, cuts=4)
    assert tuple(found.columns) == OVER_TIME_COLUMNS
    assert found["labels"].tolist() == [60, 120, 180, 240]
    assert found["n_units"].tolist() == [30, 60, 90, 120]
    for end, kappa in zip(found["labels"], found["estimate"], strict=True):
        table = ratings.iloc[:end].pivot_table(
            index="unit_id", columns="rater_id", values="label", aggfunc="first"
        )
        assert kappa == pytest.approx(cohen_kappa_score(table["ann"], table["ben"]))
    assert (found["low"] <= found["estimate"]).all()
    assert found["estimate"].iloc[-1] > found["estimate"].iloc[1]


def test_the_last_cut_is_the_reports_figure(ratings):
    rows = analyse(ratings, None, SCALES).results
    (kappa,) = rows[
        (rows["statistic"] == "cohen_kappa") & (rows["rater_a"] == "humans") & (rows["at"] == "")
        & (rows["rater_b"] == "") & (rows["subset"] == "all")
    ]["estimate"]  # fmt: skip
    assert agreement_over_time(ratings, SCALES)["estimate"].iloc[-1] == pytest.approx(kappa)


def test_degenerate_labels(ratings):
    alone = ratings[ratings["rater_id"] == "ann"]
    assert agreement_over_time(alone, SCALES)["estimate"].isna().all()
    assert agreement_over_time(ratings, SCALES, excluded=["ben"])["n_units"].max() == 0
    same = ratings.assign(label="y")
    assert math.isnan(agreement_over_time(same, SCALES)["estimate"].iloc[-1])
    assert agreement_over_time(ratings.iloc[:0], SCALES).empty
    assert agreement_over_time(ratings.assign(created_at=""), SCALES).empty
    assert len(agreement_over_time(ratings.iloc[:2], SCALES)) == 2  # fewer labels than cuts
