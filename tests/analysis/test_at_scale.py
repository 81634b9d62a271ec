"""What patterns tell is what the ratings themselves tell."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import analyse
from evenhand.analysis.all_rubrics import analyse_reduced
from evenhand.analysis.labels import encoding
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import RESULTS_KEY, key_of
from evenhand.study.tables.ratings import split_ratings
from harness.many_ratings import CATEGORIES, RATERS, many_ratings
from tests.cases import refused

SCALE = Scale("", CATEGORIES, "ordinal", frozenset({"3"}))
NEED_RATINGS = {"disagreement", "rater_agreement"}


def reduced(frame, kinds=RATERS):
    ratings, units = split_ratings(frame, "ratings")
    clusters = units.set_index("unit_id")["cluster_id"] if "cluster_id" in units else None
    return encoding.reduce_ratings(ratings, clusters, SCALE, encoding.by_kind(kinds))


def both(frame):
    ratings, units = split_ratings(frame, "ratings")
    kinds = dict(zip(ratings["rater_id"], ratings["rater_kind"], strict=True))
    whole = analyse(ratings, units if "cluster_id" in units else None, [SCALE], resamples=60)
    return whole, analyse_reduced({"": reduced(frame, kinds)}, {"": SCALE}, resamples=60)


def assert_same(rows, expected):
    for key, row in rows.items():
        assert row["note"] == expected[key]["note"], key
        for name in ("n_units", "n_clusters", "estimate", "low", "high"):
            same = pytest.approx(expected[key][name], rel=1e-9, abs=1e-12, nan_ok=True)
            assert row[name] == same, (key, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "per_cluster", "more"),
    [
        # So many like items that the analysis of the ratings folds them, too: it draws the same.
        (1800, 1, {}),
        (600, 3, {"g3": "model", "ed": "adjudicator"}),
    ],
)
def test_every_row_and_verdict_is_that_of_the_ratings(units, per_cluster, more):
    whole, found = both(many_ratings(units, per_cluster, {**RATERS, **more}))
    expected = {key_of(row): row for row in whole.rows}
    rows = {key_of(row): row for row in found.rows}
    assert rows.keys() <= expected.keys()
    assert {key[1] for key in expected.keys() - rows.keys()} == NEED_RATINGS
    assert_same(rows, expected)
    # Sums in another order may differ in the last digit, as the processor has it.
    written = [json.dumps(each.verdicts) for each in (found, whole)]
    nearly = [json.loads(text, parse_float=lambda x: round(float(x), 9)) for text in written]
    assert (nearly[0], len(found.verdicts)) == (nearly[1], 2 + ("g3" in more))
    assert whole.results[list(RESULTS_KEY)].drop_duplicates().shape[0] == len(expected)


@pytest.mark.slow
def test_many_clusters_are_resampled_by_their_patterns_and_nothing_else_changes(monkeypatch):
    frame = many_ratings(6000, 3, {"ann": "human", "ben": "human", "g1": "model"})
    ids = frame["unit_id"].factorize()[0]
    frame["topic"], frame["subject"] = np.where(ids % 2, "a", "b"), np.where(ids % 3, "s", "t")
    ratings, units = split_ratings(frame, "ratings")
    found = []
    for many in (10**6, 100):
        monkeypatch.setattr("evenhand.analysis.labels.matrix.FEWEST_CLUSTERS_FOR_PATTERNS", many)
        found.append(analyse(ratings, units, [SCALE], resamples=60, slices=["topic"]))
    whole, patterns = ({key_of(row): row for row in each.rows} for each in found)
    assert patterns.keys() == whole.keys()
    assert {"subject_score", "slice_difference", "bias_slice"} <= {key[1] for key in whole}
    assert_same(patterns, whole)
    assert found[0].verdicts == found[1].verdicts
    assert repr(whole) != repr(patterns)  # in the last digits, so that patterns were resampled


@pytest.mark.slow
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


def contents(table):
    names = None if table.clusters is None else table.clusters.to_pylist()
    return (names, table.patterns.tolist(), table.cells.toarray().tolist(), table.reasons)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    units=st.integers(1, 40),
    per_cluster=st.integers(1, 4),
    parts=st.lists(st.integers(0, 4), min_size=40, max_size=40),
    order=st.randoms(use_true_random=False),
    as_tree=st.booleans(),
)
def test_any_parts_and_any_order_of_rows_give_the_same_table(
    units, per_cluster, parts, order, as_tree
):
    frame = many_ratings(units, per_cluster)
    places = list(range(len(frame)))
    order.shuffle(places)
    shuffled = frame.iloc[places].reset_index(drop=True)
    part = np.array(parts)[shuffled["unit_id"].str[1:].astype(int)]
    tables = [reduced(shuffled[part == each]) for each in np.unique(part)]
    order.shuffle(tables)
    while as_tree and len(tables) > 2:
        tables = [encoding.merged(tables[:2]), *tables[2:]]
    assert contents(encoding.merged(tables)) == contents(reduced(frame))


def test_units_are_counted_by_pattern_and_cluster():
    rows = [("u1", "c2", "1"), ("u2", "c1", "1"), ("u3", "c2", "1"), ("u4", "c2", "3")]
    frame = pd.DataFrame(rows, columns=["unit_id", "cluster_id", "label"])
    table = reduced(frame.assign(rater_id="ann", rater_kind="human"))
    assert table.clusters.to_pylist() == ["c1", "c2"]
    assert (table.cells.toarray().tolist(), table.n_units) == ([[1, 0], [2, 1]], 4)
    assert not table.is_unclustered
    matrix = encoding.pattern_matrix(table, SCALE)
    assert matrix.codes[:, 0].tolist() == [0, 2]
    assert matrix.verdicts[:, 0].tolist() == [0, 1]
    # A cluster of its own for each unit is none.
    assert reduced(many_ratings(9).assign(cluster_id=lambda each: each["unit_id"])).is_unclustered


def test_more_labels_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr("evenhand.analysis.labels.encoding.MAX_CELLS", 10)
    refused("do not fit; keep the ratings of fewer raters", reduced, many_ratings(9))


def test_hashes_of_names_are_the_same_on_every_machine():
    keys = encoding.name_keys(pa.array(["c1", "c2"], pa.large_string()))
    assert keys.tolist() == [2680680849849350385, 3104419751219791606]
