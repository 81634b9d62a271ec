"""Counting distinct rows of labels, against numpy's sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.analysis.bootstrap.patterns import count_patterns, distinct_rows


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 60), columns=st.integers(1, 9))
def test_distinct_rows_are_those_that_sorting_finds(seed: int, rows: int, columns: int) -> None:
    table = np.random.default_rng(seed).integers(-1, 3, (rows, columns))
    kept, times = distinct_rows(list(table.T))
    expected, counts = np.unique(table, axis=0, return_counts=True)
    found = dict(zip(map(tuple, table[kept]), times, strict=True))
    assert found == dict(zip(map(tuple, expected), counts, strict=True))


def test_rows_that_fit_no_single_number_are_still_told_apart() -> None:
    table = np.random.default_rng(0).integers(-1, 9, (300, 40))
    table[150:] = table[:150]
    kept, times = distinct_rows(list(table.T))
    assert len(kept) == 150
    assert (times == 2).all()


@pytest.mark.parametrize(("raters", "q"), [(3, 5), (5, 5), (9, 8), (124, 10)])
def test_count_patterns_are_the_counts_of_the_units(raters: int, q: int) -> None:
    codes = np.random.default_rng(1).integers(-1, q, (400, raters)).astype(np.int8)
    counts, times = count_patterns(codes, q)
    each = np.stack([(codes == code).sum(axis=1) for code in range(q)], axis=1)
    expected, frequency = np.unique(each, axis=0, return_counts=True)
    found = dict(zip(map(tuple, counts.astype(int)), times, strict=True))
    assert found == dict(zip(map(tuple, expected), frequency, strict=True))
