"""The lead pauses, excludes and readmits: at once, in every process, and nothing is deleted."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import (
    decisions_table,
    exclude,
    oversight,
    pause,
    readmit,
    resume,
)
from harness.studies import submit, task_of, work_through


@pytest.fixture
def study(make_study):
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def test_a_pause_stops_the_handing_out_and_not_the_taking_in(study):
    desk, other = AnnotationDesk(study), AnnotationDesk(study)
    task = task_of(desk, "r1")
    with open_study(study.folder) as elsewhere:  # as another process has it
        pause(elsewhere.store, "night", "ann")
    assert (desk.next_sheet("r1"), other.next_sheet("r2")) == (None, None)
    assert desk.ended("r1") == "paused"
    assert submit(desk, "r1", task, task.rubric.categories[0]) == "stored"
    resume(study.store)
    assert desk.ended("r1") == ""
    assert desk.next_sheet("r1") is not None


def test_deciding_what_is_decided_adds_nothing(study):
    resume(study.store)
    pause(study.store)
    pause(study.store)
    assert decisions_table(study.store)["kind"].tolist() == ["pause"]


def test_an_excluded_raters_places_go_to_others_and_the_labels_stay(study):
    desk = AnnotationDesk(study)
    assert work_through(desk, "careless", 5) == 5  # of 8 units
    assert desk.next_sheet("slow") is not None  # who holds a task, and has answered none
    assert work_through(desk, "r1") == 2
    exclude(study.store, "careless", "answered without reading", "ann")
    assert desk.ended("careless") == "excluded"
    assert desk.next_sheet("careless") is None
    assert work_through(desk, "r1") == 5
    exclude(study.store, "slow", "never answered")
    assert work_through(desk, "r1") == 1
    assert study.ratings()["rater_id"].value_counts().to_dict() == {"r1": 8, "careless": 5}
    assert desk.progress("r2") == (0, 0)


def test_a_readmitted_raters_places_are_filled_again(study):
    desk = AnnotationDesk(study)
    work_through(desk, "r1", 5)
    exclude(study.store, "r1", "looked careless")
    assert desk.progress("r2") == (0, 8)
    readmit(study.store, "r1", "was not")
    assert desk.progress("r2") == (0, 3)
    assert work_through(desk, "r1") == 3
    kinds = decisions_table(study.store)[["kind", "rater_id", "reason"]].to_numpy().tolist()
    assert kinds == [["exclude", "r1", "looked careless"], ["readmit", "r1", "was not"]]


def test_what_cannot_be_decided_is_one_sentence(study):
    work_through(AnnotationDesk(study), "r1", 1)
    with pytest.raises(InputError, match="needs a reason"):
        exclude(study.store, "r1", "  ")
    with pytest.raises(InputError, match="no person 'nobody'"):
        exclude(study.store, "nobody", "never came")
    with pytest.raises(InputError, match="'r1' is not excluded"):
        readmit(study.store, "r1", "why not")
    exclude(study.store, "r1", "left")
    with pytest.raises(InputError, match="say why"):
        readmit(study.store, "r1", "")
    assert oversight(study.store).exclusions["r1"].reason == "left"
