"""One rater beside the others, by hand; and when labels came in."""

from __future__ import annotations

import math

import pytest

from evenhand.study import Study
from evenhand.study.desk.oversight import exclude
from evenhand.study.lead.progress import confusions, label_shares, labels_over_time, rater_answers
from harness.studies import with_labels

GIVEN = {"ann": "115", "ben": "125", "cy": "225"}


@pytest.fixture
def study(make_study) -> Study:
    """Three people on three responses, an hour from unit to unit."""
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    hours = [f"2026-03-02T{hour:02d}:30:00+00:00" for hour in (9, 10, 11)]
    return with_labels(study, GIVEN, seconds=10.0, created_at=hours)


def test_answers_stand_with_what_the_others_said(study):
    found = rater_answers(study, "ann")
    assert found["label"].tolist() == ["1", "1", "5"]
    assert found["others"].tolist() == ["1 2", "2 2", "5 5"]
    exclude(study.store, "cy", "too fast")
    assert rater_answers(study, "ann")["others"].tolist() == ["1", "2", "5"]


def test_each_shared_unit_counts_once_in_the_confusions(study):
    table = confusions(study, "ann")["refusal"]
    # Unit 1: ann 1, the others 1 and 2, a half each; unit 2: ann 1, both 2; unit 3: all 5.
    assert table.loc["1"].tolist() == [0.5, 1.5, 0.0, 0.0, 0.0]
    assert table.loc["5", "5"] == 1.0
    assert table.to_numpy().sum() == 3.0


def test_shares_are_those_of_the_same_units(study):
    found = label_shares(study, "ann").set_index("label")
    assert found.loc["1", "answers"] == 2
    assert found.loc["1", "share"] == pytest.approx(2 / 3)
    assert found.loc["1", "others_share"] == pytest.approx(1 / 6)


def test_alone_there_is_nothing_to_compare(study):
    for other in ("ben", "cy"):
        exclude(study.store, other, "too fast")
    assert confusions(study, "ann") == {}
    assert math.isnan(label_shares(study, "ann")["others_share"].iloc[0])
    assert rater_answers(study, "nobody").empty


def test_labels_by_the_hour_and_by_the_day(study):
    found, step = labels_over_time(study)
    assert step == "hour"
    assert found["labels"].tolist() == [3, 3, 3]
    assert found["start"].iloc[0] == "2026-03-02T09:00:00+00:00"
    with_labels(study, {"ann": "---1"}, created_at="2026-03-09T12:00:00Z")
    found, step = labels_over_time(study)
    assert step == "day"
    assert found["labels"].tolist() == [9, 1]


def test_no_labels_no_timeline(make_study):
    found, _ = labels_over_time(make_study(pairs=2, subjects=("s",)))
    assert found.empty
