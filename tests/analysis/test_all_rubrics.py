"""The whole analysis: its table, its errors, what must not change it, and real labels."""

import krippendorff
import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import RESULTS_KEY, Scale, StudyFacts, analyse
from evenhand.analysis.labels.matrix import LabelMatrix
from tests.analysis.make import analyse_labels, noisy, ratings_of, row_of, rows_of
from tests.cases import refused
from tests.ratings_files import read_ratings

FIVE = ("1", "2", "3", "4", "5")
RATING = Scale("", FIVE, "ordinal", frozenset({"4", "5"}))
YES_NO, NUMBERS = Scale("", ("1", "2")), Scale("", ("1", "2", "3"), "interval", number=True)


@pytest.fixture
def mixed(rng):
    """Three people and two graders on 120 units, with gaps."""
    truth = rng.integers(0, 5, 120)
    labels = {name: noisy(rng, truth, 5, 0.6, missing=0.1) for name in ("ann", "ben", "cem")}
    labels |= {name: noisy(rng, truth, 5, 0.5) for name in ("g1", "g2")}
    return ratings_of(labels, ["g1", "g2"])


def _values(results):
    return results.set_index(list(RESULTS_KEY)).sort_index()


@pytest.mark.slow
def test_the_order_of_the_rows_does_not_matter_and_the_seed_only_to_intervals(mixed):
    shuffled = mixed.sample(frac=1, random_state=3)
    first, second = (analyse(m, None, [RATING], resamples=200) for m in (mixed, shuffled))
    pd.testing.assert_frame_equal(first.results, second.results)
    assert first.verdicts == second.verdicts
    other = analyse(mixed, None, [RATING], resamples=200, seed=1).results
    assert not np.allclose(first.results["low"], other["low"], equal_nan=True)
    assert np.allclose(first.results["estimate"], other["estimate"], equal_nan=True)


@pytest.mark.slow
def test_names_do_not_matter(mixed):
    """Raters renamed so that their order turns round: the same agreement, the same intervals."""
    names = {"ann": "z-ann", "ben": "y-ben", "cem": "x-cem"}
    renamed = mixed.assign(rater_id=mixed["rater_id"].replace(names))
    back = {new: old for old, new in names.items()}
    first = _values(analyse(mixed, None, [RATING], resamples=200).results)
    second = analyse(renamed, None, [RATING], resamples=200).results
    second = second.replace({"rater_a": back, "rater_b": back})
    humans = second["rater_a"].isin(names) & second["rater_b"].isin(names)
    second.loc[humans, ["rater_a", "rater_b"]] = second.loc[humans, ["rater_b", "rater_a"]].values
    second = _values(second)
    signed = ["bias_index", "confusion", "mean_difference"]
    directed = first.index.get_level_values("statistic").isin(signed)
    columns = ["estimate", "low", "high"]
    pd.testing.assert_frame_equal(first[~directed][columns], second[~directed][columns])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "every", "settings"),
    [(YES_NO, 2, {}), (YES_NO, 1, {"reference": "a"}), (NUMBERS, 5, {})],
)
def test_merging_equal_units_changes_no_estimate(rng, monkeypatch, scale, every, settings):
    q = len(scale.categories)
    truth = np.where(rng.random(400) < 0.2, 0, q - 1)
    ratings = ratings_of({k: noisy(rng, truth, q, 0.7) for k in "abcdeg"})
    is_shared = ratings["unit_id"].str[1:].astype(int) % every == 1  # at 1, none
    ratings = ratings[is_shared | ratings["rater_id"].isin(["a", "b", "g"])]
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique()})
    units["inclusion_probability"] = np.resize([0.3, 0.3, 0.6, 0.6], 400)
    merged = analyse(ratings, units, [scale], resamples=10, **settings).results
    monkeypatch.setattr(LabelMatrix, "_may_repeat", False)
    single = analyse(ratings, units, [scale], resamples=10, **settings).results
    columns = [*RESULTS_KEY, "n_units", "n_clusters", "estimate"]
    pd.testing.assert_frame_equal(merged[columns], single[columns])


def test_adjudicators_are_compared_but_never_count_as_people():
    ratings = ratings_of({"ann": "12" * 20, "chair": "12" * 20, "g": "1122" * 10})
    ratings.loc[ratings["rater_id"] == "chair", "rater_kind"] = "adjudicator"
    found = analyse(ratings, None, [Scale("", ("1", "2"))], resamples=50)
    assert len(rows_of(found, "observed_agreement", "chair", "g")) == 1
    assert row_of(found, "observed_agreement", "all", "")["estimate"] == 0.5  # of ann and g
    assert "Only one annotator labelled" in found.verdicts[0]["sentence"]


def test_versions_of_a_rubric_are_never_pooled():
    ratings = ratings_of({"ann": "12" * 20, "ben": "22" + "12" * 19})
    ratings["rubric_hash"] = ["aaa"] * 70 + ["bbb"] * 10
    scale = Scale("tone", ("1", "2"))
    refused(r"'tone'.*aaa \(70 ratings\), bbb \(10 ratings\)", analyse, ratings, None, [scale])
    facts = StudyFacts(rubric_hashes={"tone": {"aaa"}})
    found = analyse(ratings, None, [scale], resamples=50, facts=facts)
    (note,) = found.notes
    assert note == "tone: 10 ratings given under another version of the rubric (bbb) are set aside."
    row = found.results[found.results["statistic"] == "observed_agreement"].iloc[0]
    assert row["n_units"] == 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "9"}, "row 7: the label '9' of rater 'ann'"),
        ({"unit_id": "u00000"}, "row 7: rater 'ann' has already rated item 'u00000' in row 2"),
        ({"rater_id": "g"}, "g"),
        ({"p_positive": 1.2}, "row 7: p_positive is '1.2'"),
        ({"rubric": "other"}, "row 7: no scale is declared for the rubric 'other'"),
    ],
)
def test_bad_rows_are_named(change, message):
    ratings = ratings_of({"ann": "121212", "g": "121212"})
    ratings = ratings.assign(p_positive=np.nan, rubric="tone")
    for column, value in change.items():
        ratings.loc[5, column] = value
    refused(message, analyse, ratings, None, [Scale("tone", ("1", "2")), Scale("else", ("1", "2"))])


def test_units_must_know_every_rated_unit_and_the_cluster():
    ratings = ratings_of({"ann": "12", "ben": "12"})
    units = pd.DataFrame({"unit_id": ["u00000"], "cluster_id": ["c"]})
    for table, asked, says in (
        (units, {}, "no row for item 'u00001'"),
        (units, {"cluster": "stance"}, "no column 'stance' to cluster by"),
        (None, {"cluster": "stance"}, "needs a units table"),
    ):
        refused(says, analyse, ratings, table, [YES_NO], **asked)


@pytest.mark.parametrize("ben", ["yynnyy-", "-------"])
def test_a_report_can_be_made_while_labels_are_still_coming_in(ben):
    """Fleiss' kappa counts single labels (Gwet 2014), statsmodels does not: nothing is compared."""
    scale = Scale("", ("y", "n"), affirmative=frozenset("y"))
    found = analyse_labels({"ann": "ynnnyyy", "ben": ben}, scale, verify=True)
    assert found.verification is not None


def test_where_all_units_have_two_labels_fleiss_kappa_is_compared():
    both = ({"ann": "ynnnyyy", "ben": ben} for ben in ("yynnyyn", "yynnyy-"))
    whole, partial = (analyse_labels(own, Scale("", ("y", "n")), verify=True) for own in both)
    assert whole.verification.compared > partial.verification.compared


@pytest.mark.slow
def test_newsroom(shared_data):
    """1,680 units, three raters, ordinal: alpha as the krippendorff package gives it."""
    ratings, units = read_ratings(shared_data / "real" / "newsroom.csv")
    rows = analyse(ratings, units, [RATING], resamples=200).results
    table = ratings.pivot(index="unit_id", columns="rater_id", values="label").astype(float)
    asked = {"level_of_measurement": "ordinal", "value_domain": range(1, 6)}
    theirs = krippendorff.alpha(reliability_data=table.T.to_numpy(), **asked)
    humans = rows[(rows["rater_a"] == "humans") & (rows["subset"] == "all") & (rows["at"] == "")]
    humans = humans.set_index("statistic")
    assert humans.loc["krippendorff_alpha_ordinal", "estimate"] == pytest.approx(theirs)
    assert (humans["n_clusters"] == 420).all()
