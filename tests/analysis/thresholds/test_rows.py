"""The rows of tuned thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from evenhand.analysis import Scale, analyse
from evenhand.analysis.thresholds.sweep import OBJECTIVES

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


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


@pytest.mark.slow
def test_threshold_rows(tuned: pd.DataFrame) -> None:
    results = analyse(tuned, None, [YES], resamples=300).results
    rows = results[results["statistic"] == "threshold"].set_index(["rater_a", "at"])
    assert set(rows.index) == {(who, at) for who in ("humans", "hard") for at in OBJECTIVES}
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
    f1 = results[(results["statistic"] == "f1_at_threshold") & (results["rater_a"] == "hard")]
    best = rows.loc[("hard", "f1"), "estimate"]
    expected = [f1_score(labels["hard"] == "y", p >= at) for at in (0.5, best)]
    assert f1.set_index("at")["estimate"].loc[["0.5", repr(float(best))]].tolist() == expected


@pytest.mark.slow
def test_tuning_is_judged_held_out(tuned: pd.DataFrame) -> None:
    """Against `hard` the right threshold is far from .5; any nine tenths of the data show it."""
    results = analyse(tuned, None, [YES], resamples=300).results
    gain = results[results["statistic"] == "threshold_held_out_gain"].set_index(["rater_a", "at"])
    row = gain.loc[("hard", "kappa")]
    assert 0.2 < row["low"] < row["estimate"] < row["high"]
    assert row["note"] == "the tuned threshold wins held out"


@pytest.mark.slow
def test_the_graders_own_threshold_is_used_for_its_verdicts(tuned: pd.DataFrame) -> None:
    own = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), thresholds={"prob": 0.11})
    agreement = []
    for scale in (YES, own):
        rows = analyse(tuned, None, [scale], resamples=50).results.set_index(
            ["statistic", "rater_a", "rater_b", "subset"]
        )
        agreement.append(rows.loc[("cohen_kappa", "hard", "prob", "all|binary"), "estimate"])
    assert agreement[1] > agreement[0] + 0.2


@pytest.mark.slow
def test_a_reference_without_variation_has_no_threshold(tuned: pd.DataFrame) -> None:
    tuned.loc[tuned["rater_id"] == "hard", "label"] = "y"
    results = analyse(tuned, None, [YES], resamples=50).results
    rows = results[(results["statistic"] == "threshold") & (results["rater_a"] == "hard")]
    assert rows["estimate"].isna().all()
    assert (rows["note"] == "no_variation").all()


@pytest.mark.slow
def test_the_recommendation_stands_in_a_row(tuned: pd.DataFrame) -> None:
    results = analyse(tuned, None, [YES], resamples=300).results
    rows = results[results["statistic"] == "threshold_recommended"].set_index(["rater_a", "at"])
    row = rows.loc[("hard", "kappa")]
    assert row["note"] == "tuned; wins held out"
    assert 0.1 <= row["estimate"] <= 0.13
    assert row["low"] <= row["estimate"] <= row["high"] < 0.5
    few = tuned[tuned["unit_id"] < "u020"]
    results = analyse(few, None, [YES], resamples=300).results
    rows = results[results["statistic"] == "threshold_recommended"]
    assert rows["note"].str.startswith("not_identifiable; fewer than 30 clusters").all()
    assert (rows["estimate"] == 0.5).all()


@pytest.mark.slow
def test_the_ceiling_is_judged_with_thresholds_from_other_folds(tuned: pd.DataFrame) -> None:
    """Near the difference at the tuned threshold on all units, far above that at the default."""
    results = analyse(tuned, None, [YES], resamples=300).results
    ours = results[(results["rater_a"] == "humans") & (results["rater_b"] == "prob")]
    rows = ours.set_index(["statistic", "subset", "at"])
    held_out = rows.loc[("human_ceiling_difference_held_out", "all|binary", "kappa")]
    at_default = rows.loc[("human_ceiling_difference", "all|binary", "")]
    chosen = rows.loc[("threshold", "all|binary", "kappa"), "estimate"]
    own = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), thresholds={"prob": chosen})
    retuned = analyse(tuned, None, [own], resamples=300).results
    retuned = retuned[(retuned["rater_a"] == "humans") & (retuned["rater_b"] == "prob")]
    in_sample = retuned.set_index(["statistic", "subset", "at"]).loc[
        ("human_ceiling_difference", "all|binary", "")
    ]
    assert at_default["estimate"] + 0.1 < held_out["estimate"]
    assert held_out["estimate"] == pytest.approx(in_sample["estimate"], abs=0.03)
    assert held_out["low"] < held_out["estimate"] < held_out["high"]
    kappa = rows.loc[("cohen_kappa_held_out", "all|binary", "kappa"), "estimate"]
    people = results.set_index(["statistic", "rater_a", "rater_b", "subset"]).loc[
        ("cohen_kappa", "humans", "", "all|binary"), "estimate"
    ]
    assert kappa - people == pytest.approx(held_out["estimate"])


def test_the_curve_passes_through_the_figures_at_the_thresholds(tuned: pd.DataFrame) -> None:
    results = analyse(tuned, None, [YES], resamples=100).results
    curve = results[results["statistic"] == "threshold_curve_kappa"].set_index("at")
    assert set(curve["rater_a"]) == {"humans"}
    assert 10 < len(curve) <= 47
    at = results[
        (results["statistic"] == "cohen_kappa_at_threshold") & (results["rater_a"] == "humans")
    ].set_index("at")
    for column in ("estimate", "low", "high"):
        assert curve.loc["0.5", column] == pytest.approx(at.loc["0.5", column])


def test_one_person_is_a_reference_and_named(tuned: pd.DataFrame) -> None:
    results = analyse(tuned[tuned["rater_id"] != "ben"], None, [YES], resamples=50).results
    rows = results[(results["statistic"] == "threshold") & (results["rater_a"] == "humans")]
    assert (rows["n_units"] == 300).all()
    assert rows["note"].str.contains("against the one person, ann").all()
