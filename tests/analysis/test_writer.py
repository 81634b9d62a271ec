"""Rows as they are written: whose, on what, with which counts and interval."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.results import RESULTS_COLUMNS, RESULTS_KEY, ResultRow, ResultRows, key_of
from evenhand.analysis.writer import Writer

CLUSTERS = np.array([0, 0, 1, 2, 3, 4, 5])
"""Seven units in six clusters."""


@pytest.fixture
def out(rng: np.random.Generator) -> Writer:
    return Writer(ResultRows("tone"), Resamples(np.ones(6), 200, rng), CLUSTERS, "topic=tax")


def only(out: Writer) -> ResultRow:
    (row,) = out.rows.rows.values()
    return row


def test_a_share_counts_the_part_within_the_whole(out):
    part = np.array([1, 1, 0, 0, 1, 1, 1], dtype=bool)
    whole = np.array([1, 1, 1, 1, 0, 0, 0], dtype=bool)
    assert out.share(part, whole)[0] == 2 / 4
    assert np.isnan(out.share(part, np.zeros(7, dtype=bool))).all()


def test_sums_take_columns_and_tables_of_units(out):
    sums = out.sums(np.arange(7), np.ones((7, 2)))
    assert sums.shape == (201, 3)
    assert sums[0].tolist() == [21, 7, 7]


def test_a_row_has_the_counts_of_its_units_and_the_interval_on_their_clusters(out):
    units = np.array([1, 1, 1, 1, 1, 1, 0], dtype=bool)
    values = out.share(np.arange(7) < 3, units)
    found = out.add("x", values, units, a="humans", b="g", at="y", note="beside")
    row = only(out)
    key = ("tone", "x", "humans", "g", "topic=tax", "y")
    assert (
        tuple(row[name] for name in ("rubric", "statistic", "rater_a", "rater_b", "subset", "at"))
        == key
    )
    assert (row["n_units"], row["n_clusters"], row["note"]) == (6, 5, "beside")
    assert (row["estimate"], row["low"], row["high"]) == (found.estimate, found.low, found.high)
    assert found == out.resamples.interval(values, 5)
    assert found.low < 0.5 < found.high


def test_counts_may_be_given_instead_of_units(out):
    out.add_interval("x", Interval(0.5, 0.4, 0.6), (12, 3))
    row = only(out)
    assert (row["n_units"], row["n_clusters"], row["low"]) == (12, 3, 0.4)


def test_what_is_undefined_says_why(out):
    everything = np.ones(7, dtype=bool)
    out.add("x", np.full(201, np.nan), everything, reason="no_labels")
    out.on("all").add_value("y", np.nan, everything, reason="not_testable")
    assert [row["note"] for row in out.rows.rows.values()] == ["no_labels", "not_testable"]
    assert [row["subset"] for row in out.rows.rows.values()] == ["topic=tax", "all"]


def test_a_value_has_no_interval_and_no_reason_where_it_is_known(out):
    out.add_value("x", 0.25, np.ones(7, dtype=bool), reason="not_testable")
    row = only(out)
    assert (row["estimate"], row["note"]) == (0.25, "")
    assert np.isnan([row["low"], row["high"]]).all()


def test_the_key_of_a_row_is_its_key_columns():
    row = {name: name for name in RESULTS_COLUMNS}
    assert key_of(row) == RESULTS_KEY  # type: ignore[arg-type]
