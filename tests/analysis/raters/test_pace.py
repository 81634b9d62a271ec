"""Raters' agreement and pace: known values, and a second implementation.

People's agreement as labels came in: the last cut is the report's figure, nothing is counted.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from evenhand.analysis import Scale, analyse
from evenhand.analysis.raters.pace import (
    IDLE_SECONDS,
    OVER_TIME_COLUMNS,
    agreement_over_time,
    median_interval,
)
from tests.analysis.make import row_of

SCALE = Scale("", ("x", "y"))


def session(labels: dict[str, str], seconds: dict[str, list[float]] | None = None) -> pd.DataFrame:
    """Labels by rater, one letter a unit, given in the order of the units a second apart."""
    rows = []
    for rater, given in labels.items():
        for n, label in enumerate(given):
            row = {"unit_id": f"u{n:03}", "rater_id": rater, "rater_kind": "human", "label": label}
            row["created_at"] = f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00"
            row["seconds"] = (seconds or {}).get(rater, [10.0] * len(given))[n]  # type: ignore[assignment]
            rows.append(row)
    return pd.DataFrame(rows)


def found(ratings: pd.DataFrame, units: pd.DataFrame | None = None) -> pd.DataFrame:
    results = analyse(ratings, units, [SCALE], resamples=20).results
    return results.set_index(["statistic", "rater_a", "at"])


def test_agreement_with_the_others():
    """ann and ben agree on all of the first 20 units and on half of the last 20."""
    rows = found(session({"ann": "x" * 40, "ben": "x" * 20 + "xy" * 10}))

    whole = rows.loc[("rater_agreement", "ann", "")]
    assert whole["estimate"] == pytest.approx(0.75)
    reach = 1.96 * np.sqrt(0.75 * 0.25 / 40 * 40 / 39)
    assert whole["low"] == pytest.approx(0.75 - reach, abs=1e-4)


def test_clusters_widen_the_interval():
    """Units that repeat each other four times know a quarter."""
    rng = np.random.default_rng(4)
    alike = np.repeat(rng.random(60) < 0.7, 4)
    ratings = session({"ann": "x" * 240, "ben": "".join("yx"[int(each)] for each in alike)})
    units = pd.DataFrame({"unit_id": sorted(set(ratings["unit_id"]))})
    wide = found(ratings, units.assign(cluster_id=[f"c{n // 4}" for n in range(240)]))
    narrow = found(ratings, units)
    at = ("rater_agreement", "ann", "")

    def width(rows: pd.DataFrame) -> float:
        return float(rows.loc[at, "high"] - rows.loc[at, "low"])

    assert width(wide) / width(narrow) == pytest.approx(2, rel=0.05)


def test_time_per_label_leaves_pauses_out_and_counts_them():
    times = [*range(1, 30), IDLE_SECONDS + 1]
    rows = found(session({"ann": "x" * 30, "ben": "x" * 30}, {"ann": times}))
    row = rows.loc[("rater_seconds_median", "ann", "")]

    assert row["estimate"] == 15
    assert row["note"] == "left out, over 900 s: 1"


def test_the_median_is_scipys():
    values = np.random.default_rng(2).exponential(30, 101)
    own = median_interval(values)
    scipy = stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)

    assert own.estimate == np.median(values)
    assert (own.low, own.high) == pytest.approx((scipy.low, scipy.high))


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 6.0, 7.0, 8.0, 9.0]])
def test_few_times_have_no_interval(values):
    own = median_interval(np.array(values))

    assert np.isnan(own.low)
    assert own.note


def test_without_times_there_is_agreement_only():
    ratings = session({"ann": "x" * 40, "ben": "x" * 40}).drop(columns=["seconds", "created_at"])
    statistics = {name for name, *_ in found(ratings).index}

    assert "rater_agreement" in statistics
    assert not {name for name in statistics if name.startswith("rater_") and "agr" not in name}


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
    kappa = row_of(rows, "cohen_kappa", "humans", "", at="", subset="all")["estimate"]
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
