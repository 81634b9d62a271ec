"""Probability quality: known values, scikit-learn as second implementation, degenerate input.

Calibration error: the authors' formula, no bias, degenerate input.
The reliability curve, by hand and against scikit-learn.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from evenhand.analysis import Scale, analyse, score_probabilities
from evenhand.analysis.thresholds.rows import (
    equal_mass_bins,
    isotonic_curve,
    recalibrated,
    reliability_curve,
    squared_calibration_error,
)
from evenhand.analysis.thresholds.sweep import folds
from tests.analysis.make import ratings_of, rows_of
from tests.known_values import known_values
from tests.peers import isotonic, metrics, model_selection

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def test_known_values():
    known = known_values("calibration_small")
    y = np.array(known["data"]["y"], dtype=float)
    p = np.array(known["data"]["p"])
    expected = known["expected"]
    assert np.mean((p - y) ** 2) == pytest.approx(expected["brier"], abs=1e-12)
    fitted = np.interp(p, *isotonic_curve(p, y))
    assert fitted == pytest.approx(expected["isotonic_fitted_in_data_order"], abs=1e-12)


def test_recalibration_is_that_of_scikit_learn(rng):
    """Fold by fold, ties and probabilities outside the fitted range among them."""
    p = rng.random(200).round(2)
    y = (rng.random(200) < p**2).astype(float)
    clusters = np.repeat(np.arange(50), 4)
    found = recalibrated(p, y, clusters)
    fold = folds(clusters)
    for each in range(10):
        test = fold == each
        theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p[~test], y[~test])
        assert found[test] == pytest.approx(theirs.predict(p[test]))
    assert model_selection.GroupKFold(10).get_n_splits() == fold.max() + 1


def _ratings(rng, p, **columns):
    people = np.where(rng.random(len(p)) < p**2, "y", "n")
    labels = dict.fromkeys(("ann", "ben", "cem"), people) | {"g": np.where(p >= 0.5, "y", "n")}
    return ratings_of(labels, positive={"g": p}).assign(**columns)


def test_rows_agree_with_scikit_learn(rng):
    p = rng.random(300)
    ratings = _ratings(rng, p, prob_method="logprobs")
    y = (ratings[ratings["rater_id"] == "ann"]["label"] == "y").to_numpy()
    results = analyse(ratings, None, [YES], resamples=300).results
    rows = results[results["rater_b"] == "g"].set_index(["statistic", "at"])
    brier = rows.loc[("brier", "")]
    assert brier["estimate"] == pytest.approx(metrics.brier_score_loss(y, p))
    assert "logprobs" in brier["note"]
    curve = rows.xs("reliability", level="statistic")
    stated = curve.index.astype(float).to_numpy()
    theirs = isotonic.IsotonicRegression().fit(p, y).predict(stated)
    assert curve["estimate"].to_numpy() == pytest.approx(theirs)
    band = rows.xs("reliability_probability", level="statistic")
    assert band["estimate"].to_numpy() == pytest.approx(stated)
    # Said p where it is p squared: between the ends the curve lies below what is calibrated.
    below = curve["estimate"].to_numpy() < band["low"].to_numpy()
    assert below[(stated > 0.3) & (stated < 0.7)].any()
    assert not (curve["estimate"].to_numpy() > band["high"].to_numpy()).any()
    steps = curve.groupby("estimate")["n_units"].first()
    assert steps.sum() == 300
    # A curve mends that, on pairs that it was not fitted on.
    assert rows.loc[("brier_recalibrated", ""), "high"] < brier["high"]
    plain = score_probabilities(p.tolist(), y.tolist())
    assert plain.brier == pytest.approx(brier["estimate"])
    assert plain.ece == pytest.approx(rows.loc[("ece", ""), "estimate"])
    assert plain.ece > 0
    after = rows.loc[("brier_recalibrated", ""), "estimate"]
    assert plain.brier_recalibrated == pytest.approx(after)


def test_people_who_say_one_thing_have_a_brier_score(rng):
    ratings = _ratings(rng, np.full(60, 0.75))
    ratings.loc[ratings["rater_kind"] == "human", "label"] = "y"
    rows = analyse(ratings, None, [YES], resamples=50).results.set_index("statistic")
    assert rows.loc["brier", "estimate"] == pytest.approx(0.0625)


@pytest.mark.slow
def test_several_ways_to_a_probability_are_never_pooled(rng):
    p = rng.random(80)
    ratings = _ratings(rng, p, prob_method="logprobs")
    drawn = ratings[ratings["rater_kind"] == "model"].assign(prob_method="draws", draw=1)
    both = pd.concat([ratings.assign(draw=0), drawn], ignore_index=True)
    found = analyse(both, None, [YES], resamples=50)
    graders = found.results[found.results["statistic"] == "brier"]["rater_b"].tolist()
    assert graders == ["g (draws)", "g (logprobs)"]
    said = "tone: g gave probabilities by draws and logprobs. These are analysed separately."
    assert said in found.notes


def test_a_draw_count_too_small_for_the_threshold_is_said(rng):
    p = rng.random(80)
    ratings = _ratings(rng, p)
    people = ratings[ratings["rater_kind"] == "human"].assign(draw=0, prob_method="")
    said = [(rng.random(5) < stated).astype(float) for stated in p]
    draws = pd.concat(
        ratings_of({"g": np.where(each, "y", "n")}, positive={"g": each}).assign(draw=k)
        for k, each in enumerate(np.transpose(said))
    ).assign(prob_method="draws")
    scale = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}), thresholds={"g": 0.1})
    ratings = pd.concat([people, draws], ignore_index=True)
    results = analyse(ratings, None, [scale], resamples=50).results
    notes = rows_of(results, "threshold_recommended")["note"]
    said = "5 draws resolve steps of 1/5: a threshold of 0.1 needs 10 draws"
    assert notes.str.contains(said, regex=False).all()


def _kumar_liang_ma(p, y, place):
    """Kumar, Liang & Ma (2019), section 4: mean of (share - probability)^2 - share (1 - share) /
    (n - 1) over the bins."""
    total = 0.0
    for each in np.unique(place):
        own, n = place == each, int((place == each).sum())
        share = y[own].mean()
        total += n * ((share - p[own].mean()) ** 2 - share * (1 - share) / (n - 1))
    return total / len(p)


def _drawn(rng, clusters, shift, subjects=1):
    """Probabilities, and verdicts as if they were off by `shift` logits; units of a cluster share
    a third of their luck."""
    p = rng.uniform(0.02, 0.98, (clusters, subjects))
    true = 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))
    own = rng.random((clusters, subjects))
    shared = rng.random((clusters, subjects)) < np.sqrt(1 / 3)
    luck = np.where(shared & (subjects > 1), rng.random((clusters, 1)), own)
    of = np.repeat(np.arange(clusters), subjects)
    return p.ravel(), (luck < true).astype(float).ravel(), of


def _root_mean_square(shift):
    p = np.linspace(0.02, 0.98, 10_001)
    return float(np.sqrt(np.mean((1 / (1 + np.exp(-np.log(p / (1 - p)) - shift)) - p) ** 2)))


def test_one_probability_a_bin_is_the_authors_formula(rng):
    p = rng.choice([0.1, 0.3, 0.6, 0.9], 200)
    y = (rng.random(200) < p**2).astype(float)
    found = squared_calibration_error(p, y, np.arange(200), bins=60)
    assert found == pytest.approx(_kumar_liang_ma(p, y, equal_mass_bins(p, 60)))


def test_units_of_a_cluster_that_go_together_are_one(rng):
    given = _drawn(rng, 60, 0.5)
    once = squared_calibration_error(*given, bins=5)
    thrice = squared_calibration_error(*(np.repeat(each, 3) for each in given), bins=5)
    assert thrice == pytest.approx(once)


@pytest.mark.parametrize(("shift", "subjects"), [(0.0, 1), (0.0, 4), (1.0, 1), (1.0, 4)])
def test_the_squared_error_is_unbiased(rng, shift, subjects):
    drawn = (_drawn(rng, 100, shift, subjects) for _ in range(150))
    squared = [squared_calibration_error(*each) for each in drawn]
    error = np.std(squared) / np.sqrt(150)
    # Bins take a little of the true distance away: shares and probabilities vary within them.
    assert np.mean(squared) == pytest.approx(_root_mean_square(shift) ** 2, abs=4 * error + 0.001)


def test_a_single_cluster_and_perfect_probabilities_have_no_error():
    one, sure = score_probabilities([0.3], [True]), [0.0, 1.0] * 20
    assert one.ece == 0.0
    assert np.isnan(one.brier_recalibrated)
    assert score_probabilities(sure, sure).ece == 0.0


def test_bins_hold_equally_many_units_and_ties_together(rng):
    assert np.bincount(equal_mass_bins(rng.random(100))).tolist() == [10] * 10
    assert np.bincount(equal_mass_bins(rng.random(30))).tolist() == [10] * 3
    p = rng.choice([0.0, 0.2, 0.4], 90)
    place = equal_mass_bins(p)
    assert [len(set(place[p == each])) for each in (0.0, 0.2, 0.4)] == [1, 1, 1]
    assert equal_mass_bins(np.array([0.5])).tolist() == [0]


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=40))
@trials(max_examples=60, deadline=None)
def test_the_curve_is_scikit_learns(pairs):
    p, y = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    theirs = isotonic.IsotonicRegression().fit(p, y).predict(p)
    assert np.interp(p, *isotonic_curve(p, y)) == pytest.approx(theirs, abs=1e-12)


def test_points_are_both_ends_of_every_step():
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    curve = reliability_curve(p, np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.arange(5))
    assert curve.stated.tolist() == [0.1, 0.2, 0.3, 0.4, 0.9]
    assert curve.share.tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert curve.step.tolist() == [0, 1, 1, 2, 2]
    assert curve.step_of_unit.tolist() == [0, 1, 1, 2, 2]


def _outside(rng, subjects, together, distort):
    """Share of the points that lie outside the band, over 40 studies of 60 clusters."""
    shares = []
    for _ in range(40):
        p = rng.uniform(0.05, 0.95, (60, subjects))
        luck = rng.random((60, 1 if together else subjects)) * np.ones((60, subjects))
        y = (luck < p**distort).astype(float)
        curve = reliability_curve(p.ravel(), y.ravel(), np.repeat(np.arange(60), subjects))
        shares.append(((curve.share < curve.low) | (curve.share > curve.high)).mean())
    return float(np.mean(shares))


@pytest.mark.slow
def test_the_band_holds_calibrated_graders_and_no_others(rng):
    assert _outside(rng, 1, together=False, distort=1.0) < 0.13
    assert _outside(rng, 1, together=False, distort=3.0) > 0.35
