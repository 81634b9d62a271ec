"""Probability quality: known values, scikit-learn as second implementation, degenerate input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GroupKFold

from evenhand.analysis import Scale, analyse, score_probabilities
from evenhand.analysis.thresholds.probabilities import brier_parts, isotonic_curve, recalibrated
from evenhand.analysis.thresholds.sweep import folds
from tests.known_values import known_values

PARTS = ("miscalibration", "discrimination", "uncertainty")
YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def test_known_values() -> None:
    known = known_values("calibration_small")
    y = np.array(known["data"]["y"], dtype=float)
    p = np.array(known["data"]["p"])
    expected = known["expected"]
    assert np.mean((p - y) ** 2) == pytest.approx(expected["brier"], abs=1e-12)
    parts = brier_parts(p, y)
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(
        expected["brier"], abs=1e-12
    )
    fitted = np.interp(p, *isotonic_curve(p, y))
    assert fitted == pytest.approx(expected["isotonic_fitted_in_data_order"], abs=1e-12)


def test_recalibration_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    """Fold by fold, ties and probabilities outside the fitted range among them."""
    p = rng.random(200).round(2)
    y = (rng.random(200) < p**2).astype(float)
    clusters = np.repeat(np.arange(50), 4)
    found = recalibrated(p, y, clusters)
    assert found is not None
    fold = folds(clusters)
    for each in range(10):
        test = fold == each
        theirs = IsotonicRegression(out_of_bounds="clip").fit(p[~test], y[~test])
        assert found[test] == pytest.approx(theirs.predict(p[test]))
    assert GroupKFold(10).get_n_splits() == fold.max() + 1


def _ratings(rng: np.random.Generator, p: np.ndarray, **columns: object) -> pd.DataFrame:
    rows = []
    for n, stated in enumerate(p):
        label = "y" if rng.random() < stated**2 else "n"
        unit = {"unit_id": f"u{n:03d}", "p_positive": np.nan}
        for who in ("ann", "ben", "cem"):
            rows.append(unit | {"rater_id": who, "rater_kind": "human", "label": label})
        grade = {"rater_id": "g", "rater_kind": "model", "label": "y" if stated >= 0.5 else "n"}
        rows.append(unit | grade | {"p_positive": stated} | columns)
    return pd.DataFrame(rows)


def test_rows_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    p = rng.random(300)
    ratings = _ratings(rng, p, prob_method="logprobs")
    y = (ratings[ratings["rater_id"] == "ann"]["label"] == "y").to_numpy()
    results = analyse(ratings, None, [YES], resamples=300).results
    rows = results[results["rater_b"] == "g"].set_index(["statistic", "at"])
    brier = rows.loc[("brier", "")]
    assert brier["estimate"] == pytest.approx(brier_score_loss(y, p))
    assert "logprobs" in brier["note"]
    curve = rows.xs("reliability", level="statistic")
    stated = curve.index.astype(float).to_numpy()
    theirs = IsotonicRegression().fit(p, y).predict(stated)
    assert curve["estimate"].to_numpy() == pytest.approx(theirs)
    band = rows.xs("reliability_probability", level="statistic")
    assert band["estimate"].to_numpy() == pytest.approx(stated)
    # Said p where it is p squared: between the ends the curve lies below what is calibrated.
    below = curve["estimate"].to_numpy() < band["low"].to_numpy()
    assert below[(stated > 0.3) & (stated < 0.7)].any()
    assert not (curve["estimate"].to_numpy() > band["high"].to_numpy()).any()
    steps = curve.groupby("estimate")["n_units"].first()
    assert steps.sum() == 300
    ece = rows.loc[("ece", "")]
    assert 0 < ece["low"] <= ece["estimate"] <= ece["high"]
    # A curve mends that, on pairs that it was not fitted on.
    assert rows.loc[("brier_recalibrated", ""), "high"] < brier["high"]
    plain = score_probabilities(p.tolist(), y.tolist())
    assert plain.brier == pytest.approx(brier["estimate"])
    assert plain.ece == pytest.approx(ece["estimate"])
    assert plain.ece_low == pytest.approx(ece["low"], abs=0.02)
    assert plain.ece_recalibrated < ece["low"]


def test_a_single_probability_is_a_single_point(rng: np.random.Generator) -> None:
    results = analyse(_ratings(rng, np.full(60, 0.75)), None, [YES], resamples=50).results
    curve = results[results["statistic"] == "reliability"]
    assert curve["at"].tolist() == ["0.75"]
    assert curve["n_units"].tolist() == [60]


def test_people_who_say_one_thing_have_a_brier_score(rng: np.random.Generator) -> None:
    ratings = _ratings(rng, np.full(60, 0.75))
    ratings.loc[ratings["rater_kind"] == "human", "label"] = "y"
    rows = analyse(ratings, None, [YES], resamples=50).results.set_index("statistic")
    assert rows.loc["brier", "estimate"] == pytest.approx(0.0625)


@pytest.mark.slow
def test_several_ways_to_a_probability_are_never_pooled(rng: np.random.Generator) -> None:
    p = rng.random(80)
    ratings = _ratings(rng, p, prob_method="logprobs")
    drawn = ratings[ratings["rater_kind"] == "model"].assign(prob_method="draws", draw=1)
    both = pd.concat([ratings.assign(draw=0), drawn], ignore_index=True)
    found = analyse(both, None, [YES], resamples=50)
    graders = found.results[found.results["statistic"] == "brier"]["rater_b"].tolist()
    assert graders == ["g (draws)", "g (logprobs)"]
    said = "tone: g gave probabilities by draws and logprobs. These are analysed separately."
    assert said in found.notes


def test_a_draw_count_too_small_for_the_threshold_is_said(rng: np.random.Generator) -> None:
    p = rng.random(80)
    ratings = _ratings(rng, p)
    people = ratings[ratings["rater_kind"] == "human"].assign(draw=0, prob_method="")
    draws = [
        {
            "unit_id": f"u{n:03d}",
            "rater_id": "g",
            "rater_kind": "model",
            "label": "y" if said else "n",
            "p_positive": float(said),
            "draw": k,
            "prob_method": "draws",
        }
        for n, stated in enumerate(p)
        for k, said in enumerate(rng.random(5) < stated)
    ]
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), thresholds={"g": 0.1})
    ratings = pd.concat([people, pd.DataFrame(draws)], ignore_index=True)
    results = analyse(ratings, None, [scale], resamples=50).results
    notes = results[results["statistic"] == "threshold_recommended"]["note"]
    said = "5 draws resolve steps of 1/5: a threshold of 0.1 needs 10 draws"
    assert notes.str.contains(said, regex=False).all()
