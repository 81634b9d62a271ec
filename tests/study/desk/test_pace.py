"""What raters are told of how far they are: a total that stays, minutes that are their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from evenhand.rubrics import load_rubric
from evenhand.study import Study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.pace import Worked, as_people_say, is_enough, minutes_left, next_day, pace
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.session import SessionSettings
from evenhand.study.store.schema import told_totals
from harness.studies import label_all, submit, task_of, work_through


@pytest.fixture
def shared(make_session) -> Study:
    """24 answers, each wanted once: whoever labels one takes it from the others."""
    return make_session(raters_per_unit=1)


def test_the_total_stays_when_others_label_and_when_they_leave(shared):
    desk, sessions = AnnotationDesk(shared), Sessions(shared)
    assert desk.next_sheet("r1").total == 24
    work_through(desk, "r2", 6)
    desk.next_sheet("r2")
    work_through(desk, "r1", 2)
    assert (desk.next_sheet("r1").done, desk.next_sheet("r1").total) == (2, 24)
    assert desk.progress("r1") == (2, 24)
    assert AnnotationDesk(shared).progress("r1") == (2, 24)  # in another process as well
    sessions.release("r2", "rejected")
    assert desk.next_sheet("r1").total == 24
    # What is left for r1 runs out where others took it: then the total is what r1 gave.
    sessions.readmit("r2")
    work_through(desk, "r2", 5)
    given = 2 + work_through(desk, "r1")
    assert given < 24
    assert desk.progress("r1") == (given, given)


def test_what_others_leave_comes_as_more_once_the_total_is_reached(shared):
    desk, sessions = AnnotationDesk(shared), Sessions(shared)
    work_through(desk, "r2", 20)
    assert desk.next_sheet("r1").total == 4
    sessions.release("r2", "rejected")
    totals = []
    while (sheet := desk.next_sheet("r1")) and len(totals) < 6:
        totals.append(sheet.total)
        work_through(desk, "r1", 1)
    assert totals == [4, 4, 4, 4, 24, 24]


def test_each_total_is_noted_once(shared):
    desk = AnnotationDesk(shared)
    for _ in range(3):
        desk.next_sheet("r1")
        work_through(desk, "r1", 1)
    with shared.store.read() as connection:
        assert [row.total for row in connection.execute(sa.select(told_totals))] == [24]


def test_minutes_rest_on_the_recent_answers_and_come_once_there_are_five():
    quick, slow = Worked("", 6.0), Worked("", 60.0)
    assert minutes_left([quick] * 4, 100) is None
    assert minutes_left([Worked("", 0.0)] * 9, 100) is None  # imported, without times
    assert minutes_left([quick] * 5, 100) == 10
    assert minutes_left([quick] * 6 + [Worked("", 7200.0)] * 3, 100) == 10  # three breaks
    assert minutes_left([slow] * 50 + [quick] * 30, 100) == 10


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(0, 1), (1.4, 1), (9.4, 9), (9.9, 10), (12.4, 10), (34.2, 35), (59, 60), (84, 80), (119, 120),
     (149, 120), (151, 180)],
)  # fmt: skip
def test_minutes_are_no_finer_than_the_estimate(minutes, said):
    assert as_people_say(minutes) == said


def test_blocks_are_counted_in_answers():
    at = [(pace([], done, 95, 10).block, pace([], done, 95, 10).blocks) for done in (0, 9, 10, 94)]
    assert at == [(1, 10), (1, 10), (2, 10), (10, 10)]


def test_a_sheet_says_the_block_and_the_minutes(make_session):
    study = make_session(rubrics=[load_rubric("refusal"), load_rubric("even-handedness")])
    desk = AnnotationDesk(study)
    assert desk.next_sheet("r1").pace.minutes is None
    work_through(desk, "r1", 6, seconds=60.0)
    sheet = desk.next_sheet("r1")
    assert (sheet.total, sheet.pace.blocks, sheet.pace.minutes) == (36, 1, 30)
    desk._design().block_size = 6
    assert desk.next_sheet("r1").pace.block == 2


# A day's end


@pytest.mark.parametrize(
    ("settings", "answers", "seconds", "enough"),
    [
        ({}, 900, 900.0, False),
        ({"answers_per_day": 3}, 2, 1.0, False),
        ({"answers_per_day": 3}, 3, 1.0, True),
        ({"minutes_per_day": 2}, 5, 23.0, False),
        ({"minutes_per_day": 2}, 5, 24.0, True),
        ({"minutes_per_day": 11, "idle_minutes": 5}, 2, 3600.0, False),  # left in view
    ],
)
def test_enough_for_a_day(settings, answers, seconds, enough):
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    worked = [Worked("2026-05-04T08:00:00.000+00:00", seconds)] * answers
    assert is_enough(SessionSettings(**settings), worked, now) is enough


def test_a_day_begins_at_midnight_where_the_study_says():
    worked = [Worked("2026-05-03T22:30:00.000+00:00", 9.0)]  # half past midnight in Berlin
    now = datetime(2026, 5, 4, 1, tzinfo=UTC)
    here = SessionSettings(answers_per_day=1)
    there = SessionSettings(answers_per_day=1, time_zone="Europe/Berlin")
    assert not is_enough(here, worked, now)
    assert is_enough(there, worked, now)
    assert not is_enough(there, worked, now + timedelta(days=1))
    assert next_day(there, now).isoformat() == "2026-05-05T00:00:00+02:00"


@pytest.mark.parametrize("name", ["Nowhere/Town", "../etc", "Europe", ""])
def test_no_time_zone_of_this_name(name):
    with pytest.raises(ValueError, match="is no time zone"):
        SessionSettings(time_zone=name)


def test_a_day_ends_after_the_unit_at_hand_and_only_where_more_is_left(make_session):
    desk = AnnotationDesk(make_session("[session]\nanswers_per_day = 3\n"))
    held = task_of(desk, "r1")
    assert work_through(desk, "r1") == 3
    assert (desk.next_sheet("r1"), desk.ended("r1")) == (None, "day")
    assert desk.progress("r1") == (3, 24)
    assert desk.reopen("r1") is not None  # what was given can be looked at, and changed
    assert submit(desk, "r1", held, "2", "late") == "already_labelled"
    assert desk.ended("r2") == ""
    # An answer changed while another unit is at hand: that unit is finished.
    (first,) = label_all(desk, "r2", "1", 1)
    open_one = task_of(desk, "r2")
    for n in range(4):
        submit(desk, "r2", first, "2", f"e{n}", edit=True)
    assert task_of(desk, "r2").task_id == open_one.task_id
    submit(desk, "r2", open_one, "1")
    assert desk.ended("r2") == "day"


def test_who_is_done_is_done_whatever_the_day(make_session):
    study = make_session("[session]\nanswers_per_day = 24\n")
    desk = AnnotationDesk(study)
    assert work_through(desk, "r1") == 24
    assert (desk.next_sheet("r1"), desk.ended("r1")) == (None, "")
