"""Thresholds: the sweep against trying every one, its interval, what is recommended and held out.

The quality of probabilities, with scikit-learn as second implementation.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from evenhand.analysis import Scale, analyse, score_probabilities
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.scale import Tuning
from evenhand.analysis.thresholds import tuning as tune
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.make import ratings_of, rows_of
from tests.peers import isotonic, metrics, model_selection


def _objective(y, verdict, name):
    """The second implementation: scikit-learn."""
    if name == "kappa":
        return float(metrics.cohen_kappa_score(y, verdict, labels=[0, 1]))
    if name == "agreement":
        return float(np.mean(verdict == y))
    if name == "f1":
        return float(metrics.f1_score(y, verdict, zero_division=0))
    if name == "youden":
        return float(2 * metrics.balanced_accuracy_score(y, verdict) - 1)
    return 1 - abs(float(verdict.mean() - y.mean()))


@pytest.mark.slow
@pytest.mark.parametrize("name", tune.OBJECTIVES)
def test_sweep_is_exact_in_every_resample(rng, name):
    p = np.round(rng.random(40), 2)
    y = (rng.random(40) < p).astype(np.int8)
    clusters = np.repeat(np.arange(10), 4)
    resamples = Resamples(np.ones(10), 5, np.random.default_rng(4))
    found = tune.sweep(tune.Graded(p, y, clusters), resamples, 0.5)[name]
    for row, weight in enumerate(np.vstack(list(resamples.weighted_blocks()))):
        units = np.repeat(np.arange(40), weight[clusters])
        if len(np.unique(y[units])) < 2:
            continue
        cuts = sorted({*p, 0.5, 1.0})
        each = {at: _objective(y[units], (p[units] >= at).astype(int), name) for at in cuts}
        assert found.best_value[row] == pytest.approx(max(each.values()))
        assert each[found.threshold[row]] == pytest.approx(found.best_value[row])
        assert found.curve.values[row] == pytest.approx([each[at] for at in found.curve.thresholds])


def test_the_interval_holds_every_threshold_with_the_same_verdicts():
    """Nothing lies between .2 and .8, and no verdict there is ever wrong: all are as good."""
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 10), np.array([0, 0, 1, 1] * 10, dtype=np.int8)
    resamples = Resamples(np.ones(40), 200, np.random.default_rng(1))
    of_all = tune.sweep(tune.Graded(p, y, np.arange(40)), resamples, 0.5)["kappa"]
    found = tune.threshold_interval(of_all, resamples, 40)
    assert (found.low, found.high) == (0.2, 0.8)
    # With too few clusters there is none.
    resamples = Resamples(np.ones(4), 50, np.random.default_rng(1))
    of_four = tune.sweep(tune.Graded(p[:4], y[:4], np.arange(4)), resamples, 0.5)["kappa"]
    found = tune.threshold_interval(of_four, resamples, 4)
    assert np.isnan(found.low)
    assert found.note == "too_few_clusters"


def test_the_curve_is_bounded_and_holds_the_default_and_the_best(rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(np.int8)
    resamples = Resamples(np.ones(300), 20, np.random.default_rng(1))
    for found in tune.sweep(tune.Graded(p, y, np.arange(300)), resamples, 0.5).values():
        at = found.curve.thresholds
        assert tune.CURVE_POINTS <= len(at) <= tune.CURVE_POINTS + len(tune.OBJECTIVES) + 1
        assert (np.diff(at) > 0).all()
        assert {0.5, 1.0, found.threshold[0]} <= set(at.tolist())
        assert not found.curve.complete


def test_folds_are_those_of_scikit_learn(rng):
    """As even in size, whole in clusters, and ten of them."""
    clusters = rng.integers(0, 37, 300)
    own = tune.folds(clusters)
    parts = model_selection.GroupKFold(10).split(clusters, groups=clusters)
    assert sorted(np.bincount(own)) == sorted(len(test) for _, test in parts)
    assert all(len(set(own[clusters == cluster])) == 1 for cluster in set(clusters.tolist()))
    assert set(tune.folds(np.zeros(5, dtype=np.intp))) == {0}
    # A single cluster cannot be held out.
    one = tune.Graded(np.linspace(0, 1, 20), np.ones(20), np.zeros(20, dtype=np.intp))
    assert tune.held_out_thresholds(one, 0.5) == {}


def test_units_without_a_reference_are_judged_and_not_tuned_on(rng):
    p, clusters = rng.random(100), np.arange(100)
    reference = (p >= 0.3).astype(np.int8)
    reference[::5] = -1
    found = p >= tune.held_out_thresholds(tune.Graded(p, reference, clusters), 0.5)["kappa"]
    # A cut between the nearest probabilities on either side of .3 that have a reference.
    known = np.sort(p[reference >= 0])
    clear = (p < known[known < 0.3][-1]) | (p > known[known >= 0.3][:3].max())
    assert (found[clear] == (p >= 0.3)[clear]).all()


def _interval(low, high):
    return Interval((low + high) / 2, low, high)


BEATS_CHANCE, CHANCE = _interval(0.3, 0.5), _interval(-0.1, 0.1)


@pytest.mark.parametrize(
    ("threshold", "gain", "tuned_kappa", "default_kappa", "clusters", "kind"),
    [
        ((0.4, 0.6), (-0.1, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "default"),
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "tuned"),
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, CHANCE, 250, "tuned"),
        ((0.05, 0.2), (0.0, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "default"),
        ((0.05, 0.2), (0.01, 0.1), BEATS_CHANCE, BEATS_CHANCE, 29, "not_identifiable"),
        ((0.1, 0.7), (-0.1, 0.1), BEATS_CHANCE, BEATS_CHANCE, 250, "not_identifiable"),
        # A threshold that makes every verdict the same may match prevalence, not people.
        ((0.9, 1.0), (0.1, 0.2), CHANCE, CHANCE, 250, "not_identifiable"),
        ((0.9, 1.0), (0.1, 0.2), CHANCE, BEATS_CHANCE, 250, "default"),
    ],
)
def test_what_is_recommended(threshold, gain, tuned_kappa, default_kappa, clusters, kind):
    kappas = tuned_kappa, default_kappa
    found = tune.advise(_interval(*threshold), 0.5, _interval(*gain), *kappas, clusters)
    assert (found.kind, found.threshold == 0.5) == (kind, kind != "tuned")


def test_a_share_of_draws_resolves_so_much():
    """By listing the shares: some step lies between the threshold and the nearer end."""
    for threshold in (0.05, 0.1, 0.25, 0.3, 0.5, 0.8, 0.9):
        near = min(threshold, 1 - threshold) + 1e-9
        assert tune.draws_needed(threshold) == next(k for k in range(2, 100) if 1 / k <= near)


def test_a_threshold_tuned_on_noise_is_not_recommended(rng):
    p, reference = rng.random(100), (rng.random(100) < 0.5).astype(np.int8)
    resamples = Resamples(np.ones(100), 300, np.random.default_rng(1))
    graded = tune.Graded(p, reference, np.arange(100))
    found = tune.tuning_results(graded, resamples, 100, 0.5)["kappa"]
    assert found.gain.low < 0 < 0.05 < found.value
    assert found.advice.kind == "not_identifiable"
    assert found.advice.threshold == 0.5


YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


@pytest.fixture(scope="module")
def tuned():
    """A grader whose probabilities say yes from .1 up, one with hard labels, two annotators."""
    rng = np.random.default_rng(20)
    truth = rng.random(300) < 0.4
    p = np.where(truth, rng.uniform(0.1, 1.0, 300), rng.uniform(0.0, 0.12, 300))
    flips = rng.random((300, 2)).T < 0.1
    said = {"ann": truth != flips[0], "ben": truth != flips[1], "hard": truth, "prob": p >= 0.5}
    labels = {who: np.where(yes, "y", "n") for who, yes in said.items()}
    ratings = ratings_of(labels, ["hard", "prob"], {"prob": p})
    return ratings.assign(unit_id=ratings["unit_id"].str.replace("u00", "u"))


@pytest.fixture(scope="module")
def results(tuned):
    return analyse(tuned, None, [YES], resamples=300).results


@pytest.mark.slow
def test_threshold_rows(tuned, results):
    rows = rows_of(results, "threshold").set_index(["rater_a", "at"])
    assert set(rows.index) == {(who, at) for who in ("humans", "hard") for at in tune.OBJECTIVES}
    chosen = rows.loc[("hard", "kappa"), "estimate"]
    assert 0.1 <= chosen <= 0.13
    assert rows.loc[("hard", "kappa"), "low"] <= chosen <= rows.loc[("hard", "kappa"), "high"]
    tied = tuned[tuned["rater_kind"] == "human"].groupby("unit_id")["label"].nunique().gt(1).sum()
    assert f"{tied} tied items left out" in rows.loc[("humans", "kappa"), "note"]
    assert rows.loc[("humans", "kappa"), "n_units"] == 300 - tied
    at = rows_of(results, "cohen_kappa_at_threshold").set_index(["rater_a", "at"])
    labels = tuned.pivot(index="unit_id", columns="rater_id", values="label")
    p = tuned[tuned["rater_id"] == "prob"].set_index("unit_id")["p_positive"]
    for threshold in (0.5, chosen):
        expected = metrics.cohen_kappa_score(labels["hard"] == "y", p >= threshold)
        assert at.loc[("hard", repr(float(threshold))), "estimate"] == pytest.approx(expected)
    f1 = rows_of(results, "f1_at_threshold", "hard")
    best = rows.loc[("hard", "f1"), "estimate"]
    expected = [metrics.f1_score(labels["hard"] == "y", p >= at) for at in (0.5, best)]
    assert f1.set_index("at")["estimate"].loc[["0.5", repr(float(best))]].tolist() == expected


@pytest.mark.slow
def test_tuning_is_judged_held_out_and_recommended(tuned, results):
    """Against `hard` the right threshold is far from .5; any nine tenths of the data show it."""
    gain = rows_of(results, "threshold_held_out_gain").set_index(["rater_a", "at"])
    row = gain.loc[("hard", "kappa")]
    assert 0.2 < row["low"] < row["estimate"] < row["high"]
    assert row["note"] == "the tuned threshold wins on held-out items"
    rows = rows_of(results, "threshold_recommended").set_index(["rater_a", "at"])
    row = rows.loc[("hard", "kappa")]
    assert row["note"] == "tuned; wins on held-out items"
    assert 0.1 <= row["estimate"] <= 0.13
    assert row["low"] <= row["estimate"] <= row["high"] < 0.5
    results = analyse(tuned[tuned["unit_id"] < "u020"], None, [YES], resamples=300).results
    rows = rows_of(results, "threshold_recommended")
    assert rows["note"].str.startswith("not_identifiable; fewer than 30 clusters").all()
    assert (rows["estimate"] == 0.5).all()


@pytest.mark.slow
def test_the_ceiling_is_judged_with_thresholds_from_other_folds(tuned, results):
    """Near the difference at the tuned threshold on all units, far above that at the default."""
    ours = results[(results["rater_a"] == "humans") & (results["rater_b"] == "prob")]
    rows = ours.set_index(["statistic", "subset", "at"])
    held_out = rows.loc[("human_ceiling_difference_held_out", "all|binary", "kappa")]
    at_default = rows.loc[("human_ceiling_difference", "all|binary", "")]
    chosen = rows.loc[("threshold", "all|binary", "kappa"), "estimate"]
    own = replace(YES, thresholds={"prob": chosen})
    retuned = analyse(tuned, None, [own], resamples=300).results
    retuned = retuned[(retuned["rater_a"] == "humans") & (retuned["rater_b"] == "prob")]
    retuned = retuned.set_index(["statistic", "subset", "at"])
    in_sample = retuned.loc[("human_ceiling_difference", "all|binary", "")]
    assert at_default["estimate"] + 0.1 < held_out["estimate"]
    assert held_out["estimate"] == pytest.approx(in_sample["estimate"], abs=0.03)
    assert held_out["low"] < held_out["estimate"] < held_out["high"]
    kappa = rows.loc[("cohen_kappa_held_out", "all|binary", "kappa"), "estimate"]
    every = results.set_index(["statistic", "rater_a", "rater_b", "subset"])["estimate"]
    people = every.loc[("cohen_kappa", "humans", "", "all|binary")]
    assert kappa - people == pytest.approx(held_out["estimate"])


@pytest.mark.journey
def test_the_curve_passes_through_the_figures_at_the_thresholds(tuned):
    results = analyse(tuned, None, [YES], resamples=30).results
    curve = rows_of(results, "threshold_curve_kappa").set_index("at")
    assert set(curve["rater_a"]) == {"humans"}
    assert 10 < len(curve) <= 47
    at = rows_of(results, "cohen_kappa_at_threshold", "humans").set_index("at")
    for column in ("estimate", "low", "high"):
        assert curve.loc["0.5", column] == pytest.approx(at.loc["0.5", column])


PAIRS = tuple(f"p{n:02d}" for n in range(60))
TUNED_ON = frozenset(PAIRS[:40])


def tuned_scale(threshold=0.12, **about):
    """The grader `g` with a threshold tuned on 40 of 60 pairs."""
    tuning = {"clusters": TUNED_ON, "objective": "kappa", "reference": "humans", "instead_of": 0.5}
    return replace(YES, thresholds={"g": threshold}, tunings={"g": Tuning(**(tuning | about))})


@pytest.fixture
def tables(rng):
    """60 pairs of responses: two annotators, a grader whose best threshold is .1, a random one."""
    keys = [(f"{pair}|m|{side}", pair, "m", side, pair[-1]) for pair in PAIRS for side in "ab"]
    units = pd.DataFrame(keys, columns=["unit_id", "cluster_id", "subject", "side", "topic"])
    truth, n = rng.random(120) < 0.4, 120
    p = np.where(truth, rng.uniform(0.08, 1.0, n), rng.uniform(0.0, 0.12, n))
    said = {who: truth != (rng.random(n) < 0.1) for who in ("ann", "ben")}
    said |= {"g": p >= 0.5, "hard": rng.random(n) < 0.5}
    labels = {who: np.where(yes, "y", "n") for who, yes in said.items()}
    ratings = ratings_of(labels, ["g", "hard"], {"g": p})
    names = units["unit_id"].to_numpy()[ratings["unit_id"].str[1:].astype(int)]
    return ratings.assign(rubric="tone", unit_id=names), units


def matrix(tables, scale):
    ratings, units = tables
    return encode(combine_readings(validate_ratings(ratings), scale), scale, units)


def test_verdicts_are_held_out_where_the_threshold_was_tuned_and_only_there(tables):
    labels = matrix(tables, tuned_scale())
    judged = tune.with_held_out_thresholds(labels)
    g = labels.raters.index("g")
    seen = labels.pair < 40
    assert (judged.thresholds[~seen, g] == 0.12).all()
    assert (judged.thresholds[seen, g] != 0.12).any()
    assert (np.delete(judged.thresholds, g, 1) == np.delete(labels.thresholds, g, 1)).all()
    assert (judged.codes == labels.codes).all()
    # By hand: people's majority on the 40 pairs, each fold without its own.
    people = labels.verdicts[:, :2].sum(axis=1)
    majority = np.where(seen & (people != 1), people == 2, -1).astype(np.int8)
    graded = tune.Graded(labels.positive[:, g], majority, labels.clusters)
    by_hand = tune.held_out_thresholds(graded, 0.5)["kappa"]
    assert (judged.thresholds[seen, g] == by_hand[seen]).all()
    verdicts = (labels.positive[:, g] >= np.where(seen, by_hand, 0.12)).astype(int)
    assert (judged.verdicts[:, g] == verdicts).all()


def test_a_threshold_for_the_audit_of_biases_follows_the_sampling_weights():
    """Many units of which few were sampled say .2, few of which all were say .8."""
    p, cut = np.tile(np.linspace(0, 1, 21), 20), np.repeat([0.2, 0.8], 210)
    labels = {"ann": np.where(p >= cut, "y", "n"), "g": np.where(p >= 0.5, "y", "n")}
    ratings = ratings_of(labels, ["g"], {"g": p})
    names = ratings["unit_id"].drop_duplicates()
    weight = np.where(cut == 0.2, 50.0, 1.0)
    units = pd.DataFrame({"unit_id": names, "cluster_id": names, "sampling_weight": weight})
    weighted = encode(combine_readings(validate_ratings(ratings), YES), YES, units)
    (labels,) = tune.labels_tuned_on_others(weighted).values()
    assert (labels.thresholds[:, labels.raters.index("g")] < 0.3).all()


def test_no_label_has_a_say_in_the_verdict_on_its_own_pair(tables):
    before = tune.with_held_out_thresholds(matrix(tables, tuned_scale()))
    own = tune.folds(before.clusters) == tune.folds(before.clusters)[0]
    ratings, units = tables
    mine = {unit for unit, is_own in zip(sorted(units["unit_id"]), own, strict=True) if is_own}
    turn = ratings["unit_id"].isin(mine) & ratings["rater_kind"].eq("human")
    swapped = ratings["label"].map({"y": "n", "n": "y"})
    turned = ratings.assign(label=ratings["label"].where(~turn, swapped))
    after = tune.with_held_out_thresholds(matrix((turned, units), tuned_scale()))
    g = before.raters.index("g")
    assert (before.thresholds[own, g] == after.thresholds[own, g]).all()
    assert (before.thresholds[~own, g] != after.thresholds[~own, g]).any()


def test_labels_that_came_later_have_no_say_either(tables):
    """The pairs that a threshold was not tuned on are there to judge it, not to tune it anew."""
    ratings, units = tables
    later = ratings["unit_id"].str[:3].isin(PAIRS[40:]) & ratings["rater_kind"].eq("human")
    turned = ratings.assign(label=ratings["label"].where(~later, "y"))
    before, after = (
        tune.with_held_out_thresholds(matrix((each, units), tuned_scale()))
        for each in (ratings, turned)
    )
    assert (before.thresholds == after.thresholds).all()


def test_a_threshold_tuned_to_a_rater_is_held_out_to_that_rater(tables):
    to_people = tune.with_held_out_thresholds(matrix(tables, tuned_scale()))
    to_hard = tune.with_held_out_thresholds(matrix(tables, tuned_scale(reference="hard")))
    assert (to_people.thresholds != to_hard.thresholds).any()
    # Where that rater does not count any more, people's majority takes the place.
    ratings, units = tables
    gone = (ratings[ratings["rater_id"] != "hard"], units)
    left = tune.with_held_out_thresholds(matrix(gone, tuned_scale(reference="hard")))
    g = to_people.raters.index("g")
    assert (left.thresholds[:, left.raters.index("g")] == to_people.thresholds[:, g]).all()


def test_what_is_tuned_on_has_a_probability_and_a_label_of_the_reference(tables):
    ratings, units = tables
    silent = ratings["rater_id"].eq("g") & ratings["unit_id"].str.startswith("p03")
    nobody = ratings["rater_kind"].eq("human") & ratings["unit_id"].str.startswith("p05")
    tied = ratings["rater_id"].eq("ann") & ratings["unit_id"].str.startswith("p07")
    split = ratings["rater_id"].eq("ben") & ratings["unit_id"].str.startswith("p07")
    some = ratings.assign(label=ratings["label"].mask(tied, "y").mask(split, "n"))
    labels = matrix((some[~silent & ~nobody], units), YES)
    g = labels.raters.index("g")
    assert tune.clusters_labelled(labels, g, "humans") == set(PAIRS) - {"p03", "p05"}
    assert tune.clusters_labelled(labels, g, "hard") == set(PAIRS) - {"p03"}


def test_every_threshold_says_where_it_comes_from(tables):
    scales = (YES, replace(YES, thresholds={"g": 0.12}), tuned_scale())
    found = [each for scale in scales for each in tune.active_thresholds(matrix(tables, scale))]
    expected = [("default", 0.5), ("declared", 0.12), ("tuned", 0.12)]
    assert [(each.origin, each.threshold) for each in found] == expected
    tuned = "tuned on 40 pairs to match annotators by kappa"
    assert [each.provenance for each in found] == ["default", "declared", tuned]
    assert [each.note for each in found[:2]] == ["", ""]
    assert found[2].note == (
        "tone: The threshold of g (0.12) was tuned on 40 pairs to match annotators by kappa. Its "
        "verdicts on these clusters come from thresholds tuned on other clusters."
    )


@pytest.mark.slow
def test_verdicts_are_audited_before_a_threshold_is_written_as_after(tables):
    """So that writing it neither betters nor worsens the verdict that advised it."""
    ratings, units = tables
    hard_aside = ratings[ratings["rater_id"] != "hard"]
    seen = hard_aside.assign(
        # Easier where the topic is 0 to 4: a bias that is found at any threshold.
        p_positive=hard_aside["p_positive"] ** np.where(hard_aside["unit_id"].str[2] < "5", 0.2, 1)
    )
    usual = analyse(seen, units, [YES], resamples=100, slices=["topic"]).results
    written = tuned_scale(clusters=frozenset(PAIRS))
    after = analyse(seen, units, [written], resamples=100, slices=["topic"]).results
    audited = after[after["statistic"].str.startswith("bias_") & after["rater_b"].eq("g")]
    audited = audited[audited["statistic"].str.contains("side|slice")]
    place = ["statistic", "subset", "at"]
    before = usual[usual["statistic"].str.contains("_held_out") & usual["rater_b"].eq("g")]
    before = before.assign(statistic=before["statistic"].str.replace("_held_out", ""))
    joined = audited.merge(before, on=place, suffixes=("", "_before"))
    assert len(joined) == len(audited) >= 2 * 6
    for figure in ("estimate", "low", "high", "n_units"):
        earlier = joined[f"{figure}_before"]
        pd.testing.assert_series_equal(joined[figure], earlier, check_names=False)
    plain = usual[usual["statistic"].eq("bias_slice") & usual["rater_b"].eq("g")]
    own = before[before["statistic"].eq("bias_slice")]
    assert (plain["estimate"].to_numpy() != own["estimate"].to_numpy()).any()


def test_recalibration_is_that_of_scikit_learn(rng):
    """Fold by fold, ties and probabilities outside the fitted range among them."""
    p = rng.random(200).round(2)
    y = (rng.random(200) < p**2).astype(float)
    clusters = np.repeat(np.arange(50), 4)
    found = tune.recalibrated(tune.Graded(p, y, clusters))
    fold = tune.folds(clusters)
    for each in range(10):
        test = fold == each
        theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p[~test], y[~test])
        assert found[test] == pytest.approx(theirs.predict(p[test]))
    assert model_selection.GroupKFold(10).get_n_splits() == fold.max() + 1


def _ratings(rng, p, **columns):
    people = np.where(rng.random(len(p)) < p**2, "y", "n")
    labels = dict.fromkeys(("ann", "ben", "cem"), people) | {"g": np.where(p >= 0.5, "y", "n")}
    return ratings_of(labels, positive={"g": p}).assign(**columns)


@pytest.mark.journey
def test_rows_agree_with_scikit_learn(rng):
    p = rng.random(300)
    ratings = _ratings(rng, p, prob_method="logprobs")
    y = (ratings[ratings["rater_id"] == "ann"]["label"] == "y").to_numpy()
    results = analyse(ratings, None, [YES], resamples=100).results
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
    assert curve.groupby("estimate")["n_units"].first().sum() == 300
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
    ratings = _ratings(rng, rng.random(80), prob_method="logprobs")
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
    scale = replace(YES, thresholds={"g": 0.1})
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
    return p.ravel(), (luck < true).astype(float).ravel(), np.repeat(np.arange(clusters), subjects)


def test_one_probability_a_bin_is_the_authors_formula(rng):
    p = rng.choice([0.1, 0.3, 0.6, 0.9], 200)
    y = (rng.random(200) < p**2).astype(float)
    found = tune.squared_calibration_error(tune.Graded(p, y, np.arange(200)), bins=60)
    assert found == pytest.approx(_kumar_liang_ma(p, y, tune.equal_mass_bins(p, 60)))


def test_units_of_a_cluster_that_go_together_are_one(rng):
    once = tune.Graded(*_drawn(rng, 60, 0.5))
    thrice = once.on(np.repeat(np.arange(60), 3))
    once, thrice = (tune.squared_calibration_error(graded, bins=5) for graded in (once, thrice))
    assert thrice == pytest.approx(once)


@pytest.mark.parametrize(("shift", "subjects"), [(0.0, 1), (0.0, 4), (1.0, 1), (1.0, 4)])
def test_the_squared_error_is_unbiased(rng, shift, subjects):
    drawn = (_drawn(rng, 100, shift, subjects) for _ in range(150))
    squared = [tune.squared_calibration_error(tune.Graded(*each)) for each in drawn]
    error = np.std(squared) / np.sqrt(150)
    # Bins take a little of the true distance away: shares and probabilities vary within them.
    p = np.linspace(0.02, 0.98, 10_001)
    true = np.mean((1 / (1 + np.exp(-np.log(p / (1 - p)) - shift)) - p) ** 2)
    assert np.mean(squared) == pytest.approx(true, abs=4 * error + 0.001)


def test_a_single_cluster_and_perfect_probabilities_have_no_error():
    one, sure = score_probabilities([0.3], [True]), [0.0, 1.0] * 20
    assert one.ece == 0.0
    assert np.isnan(one.brier_recalibrated)
    assert score_probabilities(sure, sure).ece == 0.0


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=40))
@trials(max_examples=25, deadline=None)
def test_the_curve_is_scikit_learns(pairs):
    p, y = (np.array(each, dtype=float) for each in zip(*pairs, strict=True))
    theirs = isotonic.IsotonicRegression().fit(p, y).predict(p)
    assert np.interp(p, *tune.isotonic_curve(p, y)) == pytest.approx(theirs, abs=1e-12)


def _outside(rng, subjects, together, distort):
    """Share of the points that lie outside the band, over 40 studies of 60 clusters."""
    shares = []
    for _ in range(40):
        p = rng.uniform(0.05, 0.95, (60, subjects))
        luck = rng.random((60, 1 if together else subjects)) * np.ones((60, subjects))
        y = (luck < p**distort).astype(float)
        clusters = np.repeat(np.arange(60), subjects)
        curve = tune.reliability_curve(tune.Graded(p.ravel(), y.ravel(), clusters))
        shares.append(((curve.share < curve.low) | (curve.share > curve.high)).mean())
    return float(np.mean(shares))


@pytest.mark.slow
def test_the_band_holds_calibrated_graders_and_no_others(rng):
    assert _outside(rng, 1, together=False, distort=1.0) < 0.13
    assert _outside(rng, 1, together=False, distort=3.0) > 0.35
