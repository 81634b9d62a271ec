"""Progress: places done, given out and free, by hand on a small study."""

from __future__ import annotations

import math

import pytest

from evenhand.study import extend_sample, open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import exclude
from evenhand.study.lead.progress import data_version, rater_progress, rubric_progress, time_left
from harness.studies import task_of, work_through


@pytest.fixture
def study(make_study):
    """8 response units, two raters each: 16 places."""
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=2)


def test_before_anyone_has_labelled(study):
    (row,) = rubric_progress(study).to_dict("records")
    assert (row["units"], row["wanted"], row["done"], row["open"], row["free"]) == (8, 16, 0, 0, 16)
    assert math.isnan(row["hours_left"])
    assert rater_progress(study).empty
    assert "not known" in time_left(rubric_progress(study))


def test_an_empty_study_has_no_place_to_fill(make_study):
    study = make_study(pairs=4, responses=None, rubrics=["refusal"])
    assert rubric_progress(study)["wanted"].tolist() == [0]
    assert time_left(rubric_progress(study)).startswith("There is nothing to label yet")


def test_places_and_time_left(study):
    desk = AnnotationDesk(study)
    for rater, seconds in (("r1", 10.0), ("r1", 30.0), ("r2", 20.0)):
        work_through(desk, rater, 1, seconds)
    task_of(desk, "r1")  # one task is out
    (row,) = rubric_progress(study).to_dict("records")
    assert (row["done"], row["open"], row["free"]) == (3, 1, 12)
    assert row["median_seconds"] == 20
    assert row["hours_left"] == pytest.approx(13 * 20 / 3600)
    said = "13 of 16 labels are still needed. Minutes of work at the pace so far: about 5."
    assert time_left(rubric_progress(study)) == said
    raters = rater_progress(study).set_index("rater_id")
    assert raters.loc["r1", ["state", "answers", "open"]].tolist() == ["working", 2, 1]
    assert raters.loc["r2", ["state", "answers", "open"]].tolist() == ["away", 1, 0]
    assert raters.loc["r1", "hours"] == pytest.approx(40 / 3600)


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
