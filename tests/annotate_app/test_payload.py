"""What travels between server and panel."""

from __future__ import annotations

import json

import pytest

from annotate_app.payload import Answer, page_data, read_answers
from study import open_study
from study.annotation import AnnotationDesk

GOOD = {"submit_id": "s1", "task_id": "t1", "option_key": "L", "seconds": 3.5}


def test_answers_are_read():
    assert read_answers({"answers": [GOOD]}) == [Answer("s1", "t1", "L", 3.5)]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "text",
        [],
        {},
        {"answers": None},
        {"answers": [None, "x", {}]},
        {"answers": [GOOD | {"task_id": ""}]},
        {"answers": [GOOD | {"submit_id": 7}]},
        {"answers": [GOOD | {"option_key": "x" * 129}]},
        {"answers": [GOOD | {"seconds": "soon"}]},
        {"answers": [GOOD | {"seconds": float("nan")}]},
    ],
)
def test_what_is_no_answer_is_left_out(sent):
    assert read_answers(sent) == []


def test_seconds_stay_within_a_day():
    seconds = [
        answer.seconds
        for value in (-5, 1e9)
        for answer in read_answers({"answers": [GOOD | {"seconds": value}]})
    ]
    assert seconds == [0.0, 86400.0]


def test_the_panel_gets_what_it_shows_and_no_more(make_study):
    with open_study(make_study(2)) as study:
        desk = AnnotationDesk(study)
        data = json.loads(json.dumps(page_data(desk, "r1", {"s1": "stored"})))
        assert data.keys() == {
            "shelf", "rater", "synthetic", "words", "progress", "receipts", "task"
        }  # fmt: skip
        assert data["task"].keys() == {
            "id", "title", "question", "instructions", "options", "blocks"
        }  # fmt: skip
        assert {key for option in data["task"]["options"] for key in option} == {
            "key", "name", "description", "examples"
        }  # fmt: skip
        assert data["receipts"] == {"s1": "stored"}
        assert data["progress"] == {"done": 0, "total": 2}
        assert page_data(desk, "r2", {})["shelf"] != data["shelf"]


def test_the_end_has_no_task(make_study):
    with open_study(make_study(1)) as study:
        desk = AnnotationDesk(study)
        task = desk.next_task("r1")
        desk.submit("r1", task.task_id, "s1", "C", 1.0)
        data = page_data(desk, "r1", {})
    assert data["task"] is None
    assert data["progress"] == {"done": 1, "total": 1}
