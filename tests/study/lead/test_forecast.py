"""The end of the labelling at the pace of the last hours, by hand on a small study."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import forecast
from evenhand.study.tables.ratings import validate_ratings

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def study(make_study):
    """80 response units, one rater each: 80 places."""
    return make_study(pairs=40, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def label(study, hours_ago: list[float]) -> None:
    """One label of one person at each of these times before NOW."""
    units = list(study.units_by_kind("all")["response"])
    frame = pd.DataFrame(
        {
            "unit_id": units[: len(hours_ago)],
            "rubric": "refusal",
            "rater_id": "r1",
            "rater_kind": "human",
            "label": "1",
            "created_at": [(NOW - timedelta(hours=each)).isoformat() for each in hours_ago],
        }
    )
    import_ratings(study, validate_ratings(frame, "test"), "test")


def test_an_even_pace_ends_when_it_says(study):
    label(study, [hour + minute / 10 for hour in range(4) for minute in range(10)])
    found = forecast(study, NOW)
    assert (found.done, found.wanted, found.left, found.hours, found.recent) == (40, 80, 40, 4, 40)
    assert found.at == NOW + timedelta(hours=4)  # 40 left at 10 an hour
    # Each hour had 10, so the error is Poisson's: 2 * sqrt(10 / 4) of the 10 an hour.
    error = 2 * (10 / 4) ** 0.5
    assert found.earliest == NOW + timedelta(hours=40 / (10 + error))
    assert found.latest == NOW + timedelta(hours=40 / (10 - error))


def test_a_pace_hardly_above_its_error_has_no_latest_end(study):
    """(31, 0, 31) labels an hour: their standard error is half the pace to the last digit."""
    label(study, [0.5] * 31 + [2.5] * 31)
    found = forecast(study, NOW)
    assert (found.hours, found.recent) == (3, 62)
    assert found.at is not None
    assert found.latest is None


def test_labels_in_one_burst_have_no_latest_end(study):
    label(study, [23.5 + n / 100 for n in range(40)])
    found = forecast(study, NOW)
    assert found.earliest is not None
    assert found.at is not None
    assert found.earliest < found.at
    assert found.latest is None


@pytest.mark.parametrize(
    "hours_ago", [[], [0.1] * 30, [3.0] * 5, [30.0] * 30], ids=["none", "short", "few", "long ago"]
)
def test_without_a_pace_nothing_is_said(study, hours_ago):
    label(study, hours_ago) if hours_ago else None
    found = forecast(study, NOW)
    assert (found.at, found.earliest, found.latest) == (None, None, None)
    assert (found.hours > 0) == (bool(hours_ago) and min(hours_ago) < 24)
