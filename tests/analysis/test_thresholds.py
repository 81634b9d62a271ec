"""The threshold sweep against trying every threshold, resample by resample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from analysis import Scale, analyse
from analysis.resampling import Resamples
from analysis.thresholds import held_out_gain, sweep

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def _brute_force(p: np.ndarray, y: np.ndarray, default: float, measure: str) -> tuple[float, float]:
    best = (-np.inf, np.inf, 0.0)
    for threshold in sorted({*p, default, 1.0}):
        verdict = (p >= threshold).astype(int)
        value = (
            np.mean(verdict == y)
            if measure == "agreement"
            else cohen_kappa_score(y, verdict, labels=[0, 1])
        )
        rank = (round(float(value), 12), -abs(threshold - default), threshold)
        best = max(best, (rank[0], rank[1], rank[2])) if best[0] != -np.inf else rank
    return best[2], best[0]


@pytest.mark.parametrize("measure", ["kappa", "agreement"])
def test_sweep_is_exact_in_every_resample(rng: np.random.Generator, measure: str) -> None:
    p = np.round(rng.random(40), 2)
    y = (rng.random(40) < p).astype(np.int8)
    clusters = np.repeat(np.arange(10), 4)
    resamples = Resamples(np.ones(10), 20, np.random.default_rng(4))
    found = sweep(p, y, clusters, resamples, 0.5)[measure]
    for row, weight in enumerate(np.vstack(list(resamples.blocks()))):
        units = np.repeat(np.arange(40), weight[clusters])
        if len(np.unique(y[units])) < 2:
            continue
        _, value = _brute_force(p[units], y[units], 0.5, measure)
        assert found.tuned[row] == pytest.approx(value)
        verdict = (p[units] >= found.threshold[row]).astype(int)
        reached = (
            np.mean(verdict == y[units])
            if measure == "agreement"
            else cohen_kappa_score(y[units], verdict)
        )
        assert reached == pytest.approx(value)


def test_the_default_is_kept_where_it_is_as_good_as_any() -> None:
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 5), np.array([0, 0, 1, 1] * 5, dtype=np.int8)
    resamples = Resamples(np.ones(20), 50, np.random.default_rng(1))
    found = sweep(p, y, np.arange(20), resamples, 0.5)["kappa"]
    assert found.threshold[0] == 0.5
    assert found.tuned[0] == 1.0


@pytest.fixture
def tuned(rng: np.random.Generator) -> pd.DataFrame:
    """A grader whose probabilities say yes from .1 up, two people, a grader with hard labels."""
    truth = rng.random(300) < 0.4
    p = np.where(truth, rng.uniform(0.1, 1.0, 300), rng.uniform(0.0, 0.12, 300))
    rows = []
    for n, yes in enumerate(truth):
        for who in ("ann", "ben"):
            flip = rng.random() < 0.1
            rows.append((f"u{n:03d}", who, "human", "y" if yes != flip else "n", np.nan))
        rows.append((f"u{n:03d}", "hard", "model", "y" if yes else "n", np.nan))
        rows.append((f"u{n:03d}", "prob", "model", "y" if p[n] >= 0.5 else "n", p[n]))
    columns = ["unit_id", "rater_id", "rater_kind", "label", "p_positive"]
    return pd.DataFrame(rows, columns=columns)


def test_threshold_rows(tuned: pd.DataFrame) -> None:
    results = analyse(tuned, None, [YES], resamples=300).results
    rows = results[results["statistic"] == "threshold"].set_index(["rater_a", "at"])
    assert set(rows.index) == {
        ("humans", "kappa"),
        ("humans", "agreement"),
        ("hard", "kappa"),
        ("hard", "agreement"),
    }
    chosen = rows.loc[("hard", "kappa"), "estimate"]
    assert 0.1 <= chosen <= 0.13
    assert rows.loc[("hard", "kappa"), "low"] <= chosen <= rows.loc[("hard", "kappa"), "high"]
    tied = tuned[tuned["rater_kind"] == "human"].groupby("unit_id")["label"].nunique().gt(1).sum()
    assert f"{tied} tied units left out" in rows.loc[("humans", "kappa"), "note"]
    assert rows.loc[("humans", "kappa"), "n_units"] == 300 - tied

    at = results[results["statistic"] == "cohen_kappa_at_threshold"].set_index(["rater_a", "at"])
    labels = tuned.pivot(index="unit_id", columns="rater_id", values="label")
    p = tuned[tuned["rater_id"] == "prob"].set_index("unit_id")["p_positive"]
    for threshold in (0.5, chosen):
        expected = cohen_kappa_score(labels["hard"] == "y", p >= threshold)
        assert at.loc[("hard", repr(float(threshold))), "estimate"] == pytest.approx(expected)
    corrected = results[results["statistic"] == "cohen_kappa_at_threshold_corrected"]
    corrected = corrected.set_index("rater_a")["estimate"]
    assert corrected["hard"] < at.loc[("hard", repr(float(chosen))), "estimate"]


def test_tuning_is_judged_held_out(tuned: pd.DataFrame) -> None:
    """Against `hard` the right threshold is far from .5; any nine tenths of the data show it."""
    results = analyse(tuned, None, [YES], resamples=300).results
    gain = results[results["statistic"] == "threshold_held_out_gain"].set_index(["rater_a", "at"])
    row = gain.loc[("hard", "kappa")]
    assert 0.2 < row["low"] < row["estimate"] < row["high"]
    assert row["note"] == "the tuned threshold wins held out"


def test_a_threshold_tuned_on_noise_does_not_win_held_out(rng: np.random.Generator) -> None:
    p, affirmed = rng.random(100), rng.random(100) < 0.5
    clusters = np.arange(100)
    resamples = Resamples(np.ones(100), 300, np.random.default_rng(1))
    in_sample = sweep(p, affirmed.astype(np.int8), clusters, resamples, 0.5)["kappa"]
    gain = held_out_gain(p, affirmed, clusters, resamples, 0.5)["kappa"]
    assert in_sample.tuned[0] > 0.05
    assert in_sample.optimism > 0.05
    assert np.quantile(gain[1:], 0.025) < 0


def test_the_graders_own_threshold_is_used_for_its_verdicts(tuned: pd.DataFrame) -> None:
    own = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), thresholds={"prob": 0.11})
    agreement = []
    for scale in (YES, own):
        rows = analyse(tuned, None, [scale], resamples=50).results.set_index(
            ["statistic", "rater_a", "rater_b", "subset"]
        )
        agreement.append(rows.loc[("cohen_kappa", "hard", "prob", "all|binary"), "estimate"])
    assert agreement[1] > agreement[0] + 0.2


def test_a_reference_without_variation_has_no_threshold(tuned: pd.DataFrame) -> None:
    tuned.loc[tuned["rater_id"] == "hard", "label"] = "y"
    results = analyse(tuned, None, [YES], resamples=50).results
    rows = results[(results["statistic"] == "threshold") & (results["rater_a"] == "hard")]
    assert rows["estimate"].isna().all()
    assert (rows["note"] == "no_variation").all()
