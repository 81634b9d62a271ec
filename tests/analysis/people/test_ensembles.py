"""Ensembles of graders: their labels by hand, and the comparison against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score
from sklearn.model_selection import PredefinedSplit

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bootstrap.folds import folds
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.ensembles import with_ensembles
from evenhand.errors import InputError

THREE = Scale("", ("1", "2", "3"))
YES = Scale("", ("y", "n"), affirmative=frozenset({"y"}))
MAJORITY, MEAN = "ensemble:majority", "ensemble:mean_probability"


def rows_of(results: pd.DataFrame, ensemble: str, subset: str = "all") -> pd.DataFrame:
    found = results[(results["rater_b"] == ensemble) & (results["subset"] == subset)]
    return found.set_index(["statistic", "at"])


def test_a_majority_by_hand(make_matrix: Callable[..., LabelMatrix]) -> None:
    """A tie is no label, a single vote neither; two votes of two are enough."""
    labels = make_matrix(
        {"h": "111111", "g1": "1213--", "g2": "1232-2", "g3": "22-1-2"}, THREE, ["g1", "g2", "g3"]
    )
    extended, (found,) = with_ensembles(labels, labels.on_categories())
    #                            1,1,2  2,2,2  1,3  3,2,1  none  2,2
    assert found.codes.tolist() == [0, 1, -1, -1, -1, 1]
    assert found.tied.tolist() == [False, False, True, True, False, False]
    assert extended.raters[-1] == MAJORITY
    assert extended.members("model") == labels.on_categories().members("model")


def test_a_mean_probability_by_hand() -> None:
    """A hard label counts 1 or 0; the mean is held against the threshold from above."""
    given = {"g1": [0.9, 0.2, 0.4, 0.1], "g2": [0.2, 0.3, 0.6, 0.8]}
    hard = ["n", "y", "n", "y"]
    rows = [
        {"unit_id": f"u{n}", "rater_id": name, "rater_kind": "model", "label": "", "p_positive": p}
        for name, each in given.items()
        for n, p in enumerate(each)
    ]
    for name, kind in (("g3", "model"), ("h", "human")):
        rows += [
            {"unit_id": f"u{n}", "rater_id": name, "rater_kind": kind, "label": label}
            for n, label in enumerate(hard)
        ]
    from evenhand.analysis.labels.combine import combine_readings
    from evenhand.analysis.labels.encoding import encode
    from evenhand.study.tables.ratings import validate_ratings

    labels = encode(combine_readings(validate_ratings(pd.DataFrame(rows)), YES), YES)
    _, found = with_ensembles(labels, labels.on_verdicts())
    means = [(0.9 + 0.2 + 0) / 3, (0.2 + 0.3 + 1) / 3, (0.4 + 0.6 + 0) / 3, (0.1 + 0.8 + 1) / 3]
    assert [each.name for each in found] == [MAJORITY, MEAN]
    # Code 0 is affirmative; .5 reaches the threshold of .5.
    assert found[1].codes.tolist() == [int(mean < 0.5 - 1e-12) for mean in means] == [1, 0, 1, 0]


@pytest.fixture
def several(make_ratings: Callable, noisy: Callable, rng: np.random.Generator) -> pd.DataFrame:
    """Three people and three graders, each as good as the other but independent, on 300 units."""
    truth = rng.integers(0, 3, 300)
    labels = {name: noisy(rng, truth, 3, 0.8) for name in ("ann", "ben", "cem")}
    labels |= {name: noisy(rng, truth, 3, 0.6) for name in ("g1", "g2", "g3")}
    return make_ratings(labels, ["g1", "g2", "g3"])


@pytest.mark.slow
def test_the_comparison_again_with_scikit_learn(several: pd.DataFrame) -> None:
    """In clusters of two units, which fall into a fold together."""
    units = several[["unit_id"]].drop_duplicates().sort_values("unit_id")
    units["cluster_id"] = [f"p{n // 2:03d}" for n in range(len(units))]
    results = analyse(several, units, [THREE], resamples=200).results
    wide = several.pivot(index="unit_id", columns="rater_id", values="label").astype(int)
    people, graders = ["ann", "ben", "cem"], ["g1", "g2", "g3"]

    def most(raters: list[str]) -> pd.Series:
        modes = wide[raters].mode(axis=1)
        return modes[0].where(modes.notna().sum(axis=1) == 1)

    wide["people"], wide["ensemble"] = most(people), most(graders)
    judged = wide[wide["ensemble"].notna() & wide["people"].notna()]
    fold = folds(np.flatnonzero(most(people).notna() & most(graders).notna()) // 2)
    best = pd.Series(index=judged.index, dtype=float)
    for train, test in PredefinedSplit(fold).split():
        seen = judged.iloc[train]
        kappas = [cohen_kappa_score(seen["people"], seen[name]) for name in graders]
        best.iloc[test] = judged[graders[int(np.argmax(kappas))]].iloc[test]
    scores = {
        "ensemble_agreement": accuracy_score,
        "ensemble_kappa": cohen_kappa_score,
        "ensemble_balanced_accuracy": balanced_accuracy_score,
    }
    found = rows_of(results, MAJORITY)
    for statistic, score in scores.items():
        single = np.mean([score(judged["people"], judged[name]) for name in graders])
        expected = {
            "average_single": single,
            "best_single": score(judged["people"], best),
            "ensemble": score(judged["people"], judged["ensemble"]),
        }
        expected["ensemble-best_single"] = expected["ensemble"] - expected["best_single"]
        estimates = found.loc[statistic, "estimate"].to_dict()
        assert estimates == pytest.approx(expected), statistic
    mean = np.mean([cohen_kappa_score(judged[name], judged["ensemble"]) for name in people])
    assert found.loc[("ensemble_mean_kappa", "ensemble"), "estimate"] == pytest.approx(mean)
    assert set(found.loc["ensemble_agreement", "n_units"]) == {len(judged)}


def test_independent_graders_are_better_together(several: pd.DataFrame) -> None:
    results = analyse(several, None, [THREE], resamples=400).results
    found = rows_of(results, MAJORITY)
    for statistic in ("ensemble_agreement", "ensemble_kappa", "ensemble_balanced_accuracy"):
        assert found.loc[(statistic, "ensemble-best_single"), "low"] > 0
        order = [found.loc[(statistic, at), "estimate"] for at in ("average_single", "ensemble")]
        assert order[0] < order[1]


def test_the_best_single_grader_is_not_chosen_on_what_it_is_judged_on(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    """Of 15 graders that guess, the best in the sample looks good, and held out it does not."""
    truth = rng.integers(0, 2, 150)
    labels = {"ann": [str(code + 1) for code in truth]}
    graders = {f"g{k:02d}": noisy(rng, truth, 2, 0.0) for k in range(15)}
    ratings = make_ratings(labels | graders, list(graders))
    results = analyse(ratings, None, [Scale("", ("1", "2"))], resamples=100).results
    in_sample = max(cohen_kappa_score(labels["ann"], each) for each in graders.values())
    held_out = rows_of(results, MAJORITY).loc[("ensemble_kappa", "best_single"), "estimate"]
    assert in_sample > 0.1
    assert held_out < in_sample - 0.05


@pytest.mark.slow
def test_an_ensemble_is_judged_like_a_grader_and_is_none(several: pd.DataFrame) -> None:
    found = analyse(several, None, [THREE], resamples=100)
    results = found.results
    rows = rows_of(results, MAJORITY)
    ceiling = rows.loc[("human_ceiling_difference", "")]
    single = results[results["statistic"] == "human_ceiling_difference"].set_index("rater_b")
    assert ceiling["estimate"] > single.loc[["g1", "g2", "g3"], "estimate"].max()
    assert {"observed_agreement", "cohen_kappa"} <= set(rows.index.get_level_values("statistic"))
    assert {each["grader"] for each in found.verdicts} == {"g1", "g2", "g3"}
    alone = analyse(
        several[several["rater_id"] != "g3"], None, [THREE], resamples=100, ensembles=[["g1", "g2"]]
    ).results
    groups = alone[(alone["rater_a"] == "models") & (alone["statistic"] == "observed_agreement")]
    pair = alone[(alone["rater_a"] == "g1") & (alone["rater_b"] == "g2")]
    pair = pair[pair["statistic"] == "observed_agreement"]
    assert groups["estimate"].tolist() == pytest.approx(pair["estimate"].tolist())


def test_ensembles_that_are_asked_for(several: pd.DataFrame) -> None:
    asked = [["g1", "g2"], ["g3", "g2"], ["g2", "g1"]]
    results = analyse(several, None, [THREE], resamples=50, ensembles=asked).results
    named = {rater for rater in results["rater_b"] if rater.startswith("ensemble:")}
    assert named == {"ensemble:majority(g1, g2)", "ensemble:majority(g2, g3)"}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["g1", "ann"], "names 'ann', which is no grader here; there are: g1, g2, g3"),
        (["g1", "g1"], "at least two graders"),
        ([], "at least two graders"),
    ],
)
def test_an_ensemble_of_nobody_is_refused(
    several: pd.DataFrame, asked: list[str], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        analyse(several, None, [THREE], resamples=50, ensembles=[asked])


def test_a_grader_may_not_go_by_the_name_of_an_ensemble(several: pd.DataFrame) -> None:
    several["rater_id"] = several["rater_id"].replace("g1", MAJORITY)
    with pytest.raises(InputError, match="has the name of an ensemble; rename it"):
        analyse(several, None, [THREE], resamples=50)


def test_too_little_for_an_ensemble(several: pd.DataFrame) -> None:
    """One grader is no ensemble, and graders without people have nobody to be set beside."""
    for left in (["ann", "ben", "g1"], ["g1", "g2"]):
        ratings = several[several["rater_id"].isin(left)]
        results = analyse(ratings, None, [THREE], resamples=50).results
        assert not results["rater_b"].str.startswith("ensemble:").any()


def test_clusters_too_few_to_choose_on(make_matrix: Callable, make_ratings: Callable) -> None:
    ratings = make_ratings({"ann": "1122", "g1": "1121", "g2": "1122"}, ["g1", "g2"])
    ratings["cluster_id"] = "p1"
    units = ratings[["unit_id", "cluster_id"]].drop_duplicates()
    results = analyse(ratings.drop(columns="cluster_id"), units, [THREE], resamples=50).results
    row = rows_of(results, MAJORITY).loc[("ensemble_kappa", "best_single")]
    assert np.isnan(row["estimate"])
    assert "too few clusters to choose on" in row["note"]
