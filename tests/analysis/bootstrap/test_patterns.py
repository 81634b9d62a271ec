"""Counting distinct rows of labels, against numpy's sorting.

Patterns counted in clusters give what the units themselves give.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from evenhand.analysis.bootstrap import patterns
from evenhand.analysis.bootstrap.patterns import (
    PatternResamples,
    count_patterns,
    distinct_rows,
    resamples_of_patterns,
)
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 60), columns=st.integers(1, 9))
def test_distinct_rows_are_those_that_sorting_finds(seed, rows, columns):
    table = np.random.default_rng(seed).integers(-1, 3, (rows, columns))
    kept, times = distinct_rows(list(table.T))
    expected, counts = np.unique(table, axis=0, return_counts=True)
    found = dict(zip(map(tuple, table[kept]), times, strict=True))
    assert found == dict(zip(map(tuple, expected), counts, strict=True))


def test_rows_that_fit_no_single_number_are_still_told_apart():
    table = np.random.default_rng(0).integers(-1, 9, (300, 40))
    table[150:] = table[:150]
    kept, times = distinct_rows(list(table.T))
    assert len(kept) == 150
    assert (times == 2).all()


@pytest.mark.parametrize(("raters", "q"), [(3, 5), (5, 5), (9, 8), (124, 10)])
def test_count_patterns_are_the_counts_of_the_units(raters, q):
    codes = np.random.default_rng(1).integers(-1, q, (400, raters)).astype(np.int8)
    counts, times = count_patterns(codes, q)
    each = np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1)
    expected, frequency = np.unique(each, axis=0, return_counts=True)
    found = dict(zip(map(tuple, counts.astype(int)), times, strict=True))
    assert found == dict(zip(map(tuple, expected), frequency, strict=True))


CLUSTERS, UNITS, PATTERNS = 60, 400, 7


@pytest.fixture(params=["percentile", "bca"])
def both(request: pytest.FixtureRequest) -> tuple[Resamples, PatternResamples, np.ndarray, ...]:
    """Resamples of units in clusters, those of their patterns, and each unit's pattern, cluster."""
    rng = np.random.default_rng(4)
    cluster, pattern = rng.integers(0, CLUSTERS, UNITS), rng.integers(0, PATTERNS, UNITS)
    cells = csr_array((np.ones(UNITS, np.int64), (cluster, pattern)), shape=(CLUSTERS, PATTERNS))
    drawn = Bootstrap(300, 5, request.param).draw(np.ones(CLUSTERS))
    return drawn, PatternResamples(cells, cells, drawn), pattern, cluster


def test_sums_of_patterns_are_those_of_units(both):
    drawn, of_patterns, pattern, cluster = both
    feature = np.arange(PATTERNS) ** 2
    expected = drawn.sums(cluster, feature[pattern])
    assert np.array_equal(of_patterns.sums(np.arange(PATTERNS), feature), expected)
    assert len(of_patterns) == len(drawn) == len(expected)


def test_more_patterns_than_can_be_kept_give_the_same(both, monkeypatch):
    drawn, of_patterns, *_ = both
    feature = np.arange(PATTERNS)[:, None] * [1, 3]
    monkeypatch.setattr(patterns, "_KEEP_BYTES", 0)
    redrawn = PatternResamples(of_patterns._cells, of_patterns._members, drawn)
    assert redrawn._kept is None
    assert np.array_equal(redrawn.totals(feature), of_patterns.totals(feature))


def test_units_and_clusters_are_counted(both):
    drawn, of_patterns, pattern, cluster = both
    for chosen in ([2], [0, 5], []):
        wanted = np.isin(np.arange(PATTERNS), chosen)
        counted = of_patterns.count(np.arange(PATTERNS), wanted)
        assert counted == drawn.count(cluster, wanted[pattern])
        assert of_patterns.mass_of(np.arange(PATTERNS), wanted) == counted[1]


def test_each_cluster_has_its_sums(both):
    drawn, of_patterns, pattern, cluster = both
    feature = np.arange(PATTERNS)[:, None]
    sums = drawn.cluster_sums(cluster, feature[pattern])
    assert np.array_equal(of_patterns.each_cluster(feature), drawn.each_cluster(sums))


def test_the_jackknife_leaves_out_clusters(both):
    drawn, of_patterns, pattern, cluster = both
    labelled = pattern < 3
    feature = np.ones(PATTERNS)
    expected = drawn.left_out(cluster[labelled]).sums(cluster, feature[pattern])
    found = of_patterns.left_out(np.arange(3)).sums(np.arange(PATTERNS), feature)
    # In both no row leaves the same cluster out twice; clusters that count as none have no row.
    assert sorted(found[:, 0]) == sorted(expected[:, 0])


def test_many_clusters_are_resampled_in_groups_and_the_note_says_so(monkeypatch):
    """A share's standard error is known: the spread of groups must give it."""
    monkeypatch.setattr(patterns, "GROUPS", 500)
    rng = np.random.default_rng(1)
    n, size = 20_000, 3
    lean = np.repeat(rng.random(n), size)  # units of a cluster are alike
    affirmed = (rng.random(n * size) < lean).astype(np.int64)
    cells = csr_array((np.ones(n * size, np.int64), (np.repeat(np.arange(n), size), affirmed)))
    keys = np.arange(n, dtype=np.uint64)
    groups = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 2, many=n - 1)
    assert groups.is_pooled
    drawn = groups.totals(np.array([[0], [1]]))[:, 0] / groups.totals(np.ones((2, 1)))[:, 0]
    truth = affirmed.reshape(n, size).mean(axis=1).std(ddof=1) / np.sqrt(n)
    assert drawn[1:].std() == pytest.approx(truth, rel=0.1)  # 500 groups: 3.2%, 1,000 draws: 2.2%
    found = groups.interval(drawn, n)
    assert found.note == "interval from 500 random groups of the 20,000 clusters"
    again = resamples_of_patterns(cells, keys, Bootstrap(1000, 2).draw, 3, many=n - 1)
    assert (again._members != groups._members).nnz  # another seed, other groups


def test_as_many_clusters_as_are_resampled_one_by_one():
    cells = csr_array(np.eye(5, dtype=np.int64))
    keys = np.arange(5, dtype=np.uint64)
    each = resamples_of_patterns(cells, keys, Bootstrap(10).draw, 0, many=5)
    assert not each.is_pooled
    assert "groups" not in each.interval(np.linspace(0.0, 1.0, 11), 5).note
