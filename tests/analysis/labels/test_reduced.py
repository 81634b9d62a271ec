"""Reduced tables: the same for any parts and any order of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.labels.reduced import (
    Reduced,
    by_kind,
    merged,
    name_keys,
    pattern_matrix,
    reduce_ratings,
)
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.study.tables.ratings import split_ratings
from harness.many_ratings import CATEGORIES, RATERS, many_ratings

SCALE = Scale("", CATEGORIES, "ordinal", frozenset({"3"}))


def reduced(frame: pd.DataFrame) -> Reduced:
    ratings, units = split_ratings(frame, "ratings")
    clusters = units.set_index("unit_id")["cluster_id"] if "cluster_id" in units else None
    return reduce_ratings(ratings, clusters, SCALE, by_kind(RATERS))


def contents(table: Reduced) -> tuple[object, ...]:
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
        tables = [merged(tables[:2]), *tables[2:]]
    assert contents(merged(tables)) == contents(reduced(frame))


def test_units_are_counted_by_pattern_and_cluster():
    rows = [("u1", "c2", "1"), ("u2", "c1", "1"), ("u3", "c2", "1"), ("u4", "c2", "3")]
    frame = pd.DataFrame(rows, columns=["unit_id", "cluster_id", "label"])
    table = reduced(frame.assign(rater_id="ann", rater_kind="human"))
    assert table.clusters.to_pylist() == ["c1", "c2"]
    assert table.cells.toarray().tolist() == [[1, 0], [2, 1]]
    assert table.n_units == 4
    assert not table.is_unclustered
    matrix = pattern_matrix(table, SCALE)
    assert matrix.codes[:, 0].tolist() == [0, 2]
    assert matrix.verdicts[:, 0].tolist() == [0, 1]


def test_a_cluster_of_its_own_for_each_unit_is_none():
    frame = many_ratings(9).assign(cluster_id=lambda table: table["unit_id"])
    assert reduced(frame).is_unclustered


def test_probabilities_are_kept_as_the_verdicts_that_they_give():
    rows = [("u1", "0.4", "3"), ("u2", "0.6", "1"), ("u3", "", "3")]
    frame = pd.DataFrame(rows, columns=["unit_id", "p_positive", "label"])
    table = reduced(frame.assign(rater_id="g1", rater_kind="model"))
    matrix = pattern_matrix(table, SCALE)
    at = list(RATERS).index("g1")
    said = [CATEGORIES[code] for code in matrix.codes[:, at]]
    verdicts = zip(said, matrix.verdicts[:, at].tolist(), strict=True)
    assert sorted(verdicts) == [("1", 1), ("3", 0), ("3", 1)]
    assert np.isnan(matrix.positive).all()


def test_more_labels_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr("evenhand.analysis.labels.reduced.MAX_CELLS", 10)
    with pytest.raises(InputError, match="do not fit; keep the ratings of fewer raters"):
        reduced(many_ratings(9))


def test_hashes_of_names_are_the_same_on_every_machine():
    import pyarrow as pa

    keys = name_keys(pa.array(["c1", "c2"], pa.large_string()))
    assert keys.tolist() == [2680680849849350385, 3104419751219791606]
