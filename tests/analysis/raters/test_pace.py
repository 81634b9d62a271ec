"""Raters' agreement and pace: known values, and a second implementation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.analysis import Scale, analyse
from evenhand.analysis.raters.pace import IDLE_SECONDS, median_interval

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


def test_agreement_with_the_others() -> None:
    """ann and ben agree on all of the first 20 units and on half of the last 20."""
    rows = found(session({"ann": "x" * 40, "ben": "x" * 20 + "xy" * 10}))

    whole = rows.loc[("rater_agreement", "ann", "")]
    assert whole["estimate"] == pytest.approx(0.75)
    reach = 1.96 * np.sqrt(0.75 * 0.25 / 40 * 40 / 39)
    assert whole["low"] == pytest.approx(0.75 - reach, abs=1e-4)


def test_clusters_widen_the_interval() -> None:
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


def test_time_per_label_leaves_pauses_out_and_counts_them() -> None:
    times = [*range(1, 30), IDLE_SECONDS + 1]
    rows = found(session({"ann": "x" * 30, "ben": "x" * 30}, {"ann": times}))
    row = rows.loc[("rater_seconds_median", "ann", "")]

    assert row["estimate"] == 15
    assert row["note"] == "left out, over 900 s: 1"


def test_the_median_is_scipys() -> None:
    values = np.random.default_rng(2).exponential(30, 101)
    own = median_interval(values)
    scipy = stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)

    assert own.estimate == np.median(values)
    assert (own.low, own.high) == pytest.approx((scipy.low, scipy.high))


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 6.0, 7.0, 8.0, 9.0]])
def test_few_times_have_no_interval(values: list[float]) -> None:
    own = median_interval(np.array(values))

    assert np.isnan(own.low)
    assert own.note


def test_without_times_there_is_agreement_only() -> None:
    ratings = session({"ann": "x" * 40, "ben": "x" * 40}).drop(columns=["seconds", "created_at"])
    statistics = {name for name, *_ in found(ratings).index}

    assert "rater_agreement" in statistics
    assert not {name for name in statistics if name.startswith("rater_") and "agr" not in name}
