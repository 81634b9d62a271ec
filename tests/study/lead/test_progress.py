"""Progress, its end and one rater beside the others, by hand on small studies."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from evenhand.study import Study, extend_sample, open_study
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.progress import (
    Forecast,
    confusions,
    data_version,
    forecast,
    rater_answers,
    rater_progress,
    rubric_progress,
    time_left,
)
from harness.studies import task_of, with_labels, work_through


@pytest.fixture
def study(make_study):
    """8 response units, two raters each: 16 places."""
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=2)


def test_before_anyone_has_labelled(study, make_study):
    (row,) = rubric_progress(study).to_dict("records")
    assert (row["units"], row["wanted"], row["done"], row["open"], row["free"]) == (8, 16, 0, 0, 16)
    assert math.isnan(row["hours_left"])
    assert rater_progress(study).empty
    assert "not known" in time_left(forecast(study))
    empty = forecast(make_study(pairs=4, responses=None, rubrics=["refusal"]))
    assert empty.wanted == 0
    assert time_left(empty).startswith("There is nothing to label yet")


def test_places_and_time_left(study):
    desk = AnnotationDesk(study)
    for rater, seconds in (("r1", 10.0), ("r1", 30.0), ("r2", 20.0)):
        work_through(desk, rater, 1, seconds)
    task_of(desk, "r1")  # one task is out
    (row,) = rubric_progress(study).to_dict("records")
    assert (row["done"], row["open"], row["free"]) == (3, 1, 12)
    assert row["median_seconds"] == 20
    assert row["hours_left"] == pytest.approx(13 * 20 / 3600)
    said = "5 minutes of work: 2 annotators in the last 24 hours. 13 of 16 labels are still needed."
    assert time_left(forecast(study)) == said
    raters = rater_progress(study).set_index("rater_id")
    assert raters.loc["r1", ["state", "answers", "open"]].tolist() == ["working", 2, 1]
    assert raters.loc["r2", ["state", "answers", "open"]].tolist() == ["away", 1, 0]
    assert raters.loc["r1", "hours"] == pytest.approx(40 / 3600)
    work_through(desk, "r2", 7, 20)  # all that there is
    assert rater_progress(study).set_index("rater_id").loc["r2", "state"] == "finished"


def test_an_excluded_rater_fills_no_place(study):
    desk = AnnotationDesk(study)
    work_through(desk, "r1", 1, 5)
    exclude(study.store, "r1", "too fast")
    (row,) = rubric_progress(study).to_dict("records")
    assert (row["done"], row["free"]) == (0, 16)
    assert rater_progress(study)["state"].tolist() == ["excluded"]


def test_the_version_tells_whether_anything_came_in(make_study):
    study = make_study(sample=3)
    seen = [data_version(study)]
    work_through(AnnotationDesk(study), "r1", 1, 1)
    seen.append(data_version(study))
    exclude(study.store, "r1", "a reason")
    seen.append(data_version(study))
    extend_sample(study, 1)
    with open_study(study.folder) as study:
        seen.append(data_version(study))
        assert data_version(study) == seen[-1]
    assert len(set(seen)) == 4


# The end of the labelling at the pace of the last hours


NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def eighty(make_study):
    """80 response units, one rater each: 80 places."""
    return make_study(pairs=40, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def label(eighty, hours_ago: list[float]) -> None:
    """One label of one person at each of these times before NOW."""
    at = [(NOW - timedelta(hours=each)).isoformat() for each in hours_ago]
    with_labels(eighty, {"r1": "1" * len(at)}, created_at=at)


def test_an_even_pace_ends_when_it_says(eighty):
    label(eighty, [hour + minute / 10 for hour in range(4) for minute in range(10)])
    found = forecast(eighty, NOW)
    assert (found.done, found.wanted, found.left, found.annotators) == (40, 80, 40, 1)
    # 40 left; 40 were given in the 3.9 hours since the first.
    assert found.until - NOW == pytest.approx(timedelta(hours=3.9), abs=timedelta(seconds=1))


@pytest.mark.parametrize(
    "hours_ago", [[], [0.1] * 30, [3.0] * 5, [30.0] * 30], ids=["none", "short", "few", "long ago"]
)
def test_without_a_pace_no_end_is_said(eighty, hours_ago):
    label(eighty, hours_ago) if hours_ago else None
    found = forecast(eighty, NOW)
    assert found.until is None
    assert (found.annotators > 0) == (bool(hours_ago) and min(hours_ago) < 24)


def test_the_work_and_its_end_in_words():
    soon = datetime.now(UTC) + timedelta(days=2)
    assert Forecast(1, 9, 42.3, 3, soon).end == f"3 annotators until {soon:%A %H}:00 UTC"
    said = "42 hours of work: 1 annotator until 1 May 2100. 1,999 of 2,000 labels are still needed."
    assert time_left(Forecast(1, 2000, 42.3, 1, datetime(2100, 5, 1, tzinfo=UTC))) == said
    assert time_left(Forecast(1, 9, 1.0, 2)).startswith(
        "60 minutes of work: 2 annotators in the last 24 hours."
    )
    assert time_left(Forecast(9, 9)) == "Every label has been given."


# One rater beside the others


GIVEN = {"ann": "115", "ben": "125", "cy": "225"}


@pytest.fixture
def three(make_study) -> Study:
    """Three people on three responses, an hour from unit to unit."""
    three = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    hours = [f"2026-03-02T{hour:02d}:30:00+00:00" for hour in (9, 10, 11)]
    return with_labels(three, GIVEN, seconds=10.0, created_at=hours)


def test_answers_stand_with_what_the_others_said(three):
    found = rater_answers(three, "ann")
    assert found["label"].tolist() == ["1", "1", "5"]
    assert found["others"].tolist() == ["1 2", "2 2", "5 5"]
    exclude(three.store, "cy", "too fast")
    assert rater_answers(three, "ann")["others"].tolist() == ["1", "2", "5"]


def test_each_shared_unit_counts_once_in_the_confusions(three):
    table = confusions(three, "ann")["refusal"]
    # Unit 1: ann 1, the others 1 and 2, a half each; unit 2: ann 1, both 2; unit 3: all 5.
    assert table.loc["1"].tolist() == [0.5, 1.5, 0.0, 0.0, 0.0]
    assert table.loc["5", "5"] == 1.0
    assert table.to_numpy().sum() == 3.0


def test_alone_there_is_nothing_to_compare(three):
    for other in ("ben", "cy"):
        exclude(three.store, other, "too fast")
    assert confusions(three, "ann") == {}
    assert rater_answers(three, "nobody").empty
