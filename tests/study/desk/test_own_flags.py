"""A rater's own flags: shown on their unit, withdrawn by nobody else, and never deleted."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.desk.answers import Flag
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.own_flags import Withdrawal
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import flag_events, remarks


@pytest.fixture
def desk(make_study) -> AnnotationDesk:
    return AnnotationDesk(make_study(pairs=20, rubrics=["even-handedness"]))


def flag(desk: AnnotationDesk, rater: str = "r1", name: str = "f") -> str:
    """Flag the unit at hand; returns its task."""
    task = desk.next_task(rater).task_id
    sent = Flag(submit_id=name, task_id=task, reason="other", text="odd")
    assert desk.submit_all(rater, [sent])[0].status == "stored"
    return task


def take_back(desk: AnnotationDesk, rater: str, task: str, name: str = "f") -> str:
    word = Withdrawal(submit_id=f"w-{name}", task_id=task, flag_id=name)
    return desk.submit_all(rater, [word])[0].status


def test_a_flag_stands_on_its_unit_at_hand_and_when_looking_back(desk):
    task = flag(desk)
    (own,) = desk.next_sheet("r1").flags
    assert (own.flag_id, own.task_id, own.reason, own.text) == ("f", task, "other", "odd")
    desk.submit("r1", task, "s", "A")
    assert desk.next_sheet("r1").flags == ()
    assert desk.reopen("r1").flags == (own,)
    assert [row.flagged for row in desk.earlier("r1").rows] == [True]
    assert desk.next_sheet("r2").flags == ()


def test_it_is_withdrawn_once_and_both_rows_stay(desk):
    task = flag(desk)
    assert [take_back(desk, "r1", task) for _ in range(2)] == ["stored", "duplicate"]
    assert desk.next_sheet("r1").flags == ()
    with desk.study.store.read() as connection:
        assert len(connection.execute(sa.select(remarks)).all()) == 1
        (row,) = connection.execute(sa.select(flag_events)).all()
    assert (row.kind, row.done_by) == ("withdrawn", "r1")
    flag(desk, name="again")  # and may be raised anew
    assert [own.flag_id for own in desk.next_sheet("r1").flags] == ["again"]


def test_nobody_withdraws_what_is_not_theirs_or_not_there(desk):
    task = flag(desk)
    other = desk.next_task("r2").task_id
    assert take_back(desk, "r2", other) == "unknown_task"
    assert take_back(desk, "r2", task) == "unknown_task"
    assert take_back(desk, "r1", task, "none") == "unknown_task"
    desk.submit("r1", task, "s", "A")
    assert take_back(desk, "r1", desk.next_task("r1").task_id) == "unknown_task"  # another unit's
    assert len(desk.reopen("r1").flags) == 1


@pytest.mark.slow
def test_a_hidden_repeat_does_not_show_the_flag_on_its_first_showing(make_study):
    study = make_study(pairs=8, rubrics=["even-handedness"])
    change_config(study.folder, {"annotation": {"repeat_share": 0.5, "repeat_gap": 2}})
    with open_study(study.folder) as repeating:
        desk = AnnotationDesk(repeating)
        count = 0
        while sheet := desk.next_sheet("r1"):
            assert sheet.flags == ()
            flag(desk, name=f"f{count}")
            desk.submit("r1", sheet.tasks[0].task_id, f"s{count}", "A")
            count += 1
    assert count == 24
