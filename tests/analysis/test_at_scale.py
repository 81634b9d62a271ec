"""What patterns tell is what the ratings themselves tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import analyse
from evenhand.analysis.all_rubrics import Analysis, analyse_reduced
from evenhand.analysis.labels.reduced import by_kind, reduce_ratings
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import RESULTS_KEY, key_of
from evenhand.study.tables.ratings import split_ratings
from harness.many_ratings import CATEGORIES, RATERS, many_ratings

pytestmark = pytest.mark.slow

SCALE = Scale("", CATEGORIES, "ordinal", frozenset({"3"}))
NEED_RATINGS = {"disagreement", "rater_agreement"}


def both(frame: pd.DataFrame, scale: Scale = SCALE, **changes: object) -> tuple[Analysis, Analysis]:
    ratings, units = split_ratings(frame, "ratings")
    clustered = "cluster_id" in units
    clusters = units.set_index("unit_id")["cluster_id"] if clustered else None
    kinds = dict(zip(ratings["rater_id"], ratings["rater_kind"], strict=True))
    table = reduce_ratings(ratings, clusters, scale, by_kind(kinds))
    changes = {"resamples": 60, **changes}
    whole = analyse(ratings, units if clustered else None, [scale], **changes)
    return whole, analyse_reduced({"": table}, {"": scale}, **changes)


@pytest.mark.parametrize(
    ("units", "per_cluster", "more", "interval"),
    [
        # So many like units that the analysis of the ratings folds them, too: it draws the same.
        (1800, 1, {}, "percentile"),
        (600, 3, {"g3": "model", "ed": "adjudicator"}, "percentile"),
        (300, 2, {}, "bca"),
    ],
)
def test_every_row_and_verdict_is_that_of_the_ratings(units, per_cluster, more, interval):
    whole, found = both(many_ratings(units, per_cluster, {**RATERS, **more}), interval=interval)
    expected = {key_of(row): row for row in whole.rows}
    rows = {key_of(row): row for row in found.rows}
    assert rows.keys() <= expected.keys()
    assert {key[1] for key in expected.keys() - rows.keys()} == NEED_RATINGS
    for key, row in rows.items():
        assert row["note"] == expected[key]["note"], key
        for name in ("n_units", "n_clusters", "estimate", "low", "high"):
            same = pytest.approx(expected[key][name], rel=1e-9, abs=1e-12, nan_ok=True)
            assert row[name] == same, (key, name)
    assert found.verdicts == whole.verdicts
    assert len(found.verdicts) == 2 + ("g3" in more)
    assert whole.results[list(RESULTS_KEY)].drop_duplicates().shape[0] == len(expected)


def test_many_clusters_are_resampled_by_their_patterns_and_nothing_else_changes(monkeypatch):
    three = {"ann": "human", "ben": "human", "g1": "model"}
    frame = many_ratings(6000, 3, three)
    ids = frame["unit_id"].factorize()[0]
    frame["topic"], frame["subject"] = np.where(ids % 2, "a", "b"), np.where(ids % 3, "s", "t")
    ratings, units = split_ratings(frame, "ratings")
    found = []
    for many in (10**6, 100):
        monkeypatch.setattr("evenhand.analysis.labels.matrix.MANY_CLUSTERS", many)
        found.append(
            analyse(ratings, units, [SCALE], resamples=60, slices=["topic"], interval="bca")
        )
    whole, patterns = ({key_of(row): row for row in each.rows} for each in found)
    assert patterns.keys() == whole.keys()
    assert {"subject_score", "slice_difference", "bias_slice"} <= {key[1] for key in whole}
    for key, row in patterns.items():
        assert row["note"] == whole[key]["note"], key
        for name in ("n_units", "n_clusters", "estimate", "low", "high"):
            same = pytest.approx(whole[key][name], rel=1e-9, abs=1e-12, nan_ok=True)
            assert row[name] == same, (key, name)
    assert found[0].verdicts == found[1].verdicts
    assert repr(whole) != repr(patterns)  # in the last digits, so that patterns were resampled


def test_a_reference_is_one_persons_labels():
    whole, found = both(many_ratings(600, 2), reference="ann")
    assert found.verdicts == whole.verdicts
    assert found.verdicts[0]["verdict"] in ("disagrees_with_reference", "agrees_with_reference")


def test_people_who_are_alike_are_named():
    frame = many_ratings(60, 1)
    first, second = sorted(frame.loc[frame["rater_kind"] == "human", "rater_id"].unique())[:2]
    other = frame[frame["rater_id"] == first].assign(rater_id=second)
    alike = pd.concat([frame[frame["rater_id"] != second], other], ignore_index=True)
    whole, found = both(alike)
    assert found.notes == whole.notes
    assert found.notes[0].startswith(f"{first} and {second} gave the same label on every unit")


def test_probabilities_count_by_their_verdicts():
    frame = many_ratings(600, 2)
    chance = np.random.default_rng(3).random(len(frame)).round(3).astype(str)
    frame["p_positive"] = np.where(frame["rater_id"] == "g2", chance, "")
    whole, found = both(frame)
    expected = {key_of(row): row for row in whole.rows}
    kappas = [row for row in found.rows if row["subset"] == "all|binary"]
    kappas = [row for row in kappas if row["statistic"] == "cohen_kappa"]
    assert kappas
    for row in kappas:
        assert row["estimate"] == pytest.approx(expected[key_of(row)]["estimate"], nan_ok=True)
    assert not [row for row in found.rows if "threshold" in row["statistic"]]


def test_groups_of_clusters_have_intervals_as_wide_as_the_clusters_own(monkeypatch):
    monkeypatch.setattr("evenhand.analysis.bootstrap.patterns.GROUPS", 400)
    frame = many_ratings(6000, 2)
    ratings, units = split_ratings(frame, "ratings")
    clusters = units.set_index("unit_id")["cluster_id"]
    table = reduce_ratings(ratings, clusters, SCALE, by_kind(RATERS))
    whole, groups = (
        analyse_reduced({"": table}, {"": SCALE}, resamples=400, many=many).results
        for many in (10**6, 100)
    )
    others = whole["statistic"].ne("best_grader_difference")
    estimates = [each[others]["estimate"].to_numpy() for each in (whole, groups)]
    assert np.allclose(*estimates, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert (whole["n_clusters"] == groups["n_clusters"]).all()
    noted = groups["note"].str.contains("400 random groups of the 3,000 clusters")
    resampled = groups["statistic"].str.contains("kappa|alpha|observed|gwet") & noted
    width = (whole["high"] - whole["low"])[resampled]
    ratio = ((groups["high"] - groups["low"])[resampled] / width).dropna()
    assert len(ratio) > 100
    assert 0.9 < ratio.mean() < 1.1  # 400 groups: 3.5%, 400 resamples each: 3.5%
    assert not whole["note"].str.contains("random groups").any()
