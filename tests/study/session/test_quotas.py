"""One question about annotators has quotas: it is asked before the first item, and whoever comes
once their side is full gets no place.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from evenhand.errors import InputError
from evenhand.reporting.exporting import exported_ratings
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.refused import Refused
from evenhand.study.session.sessions import Sessions, raters_table, session_times
from harness.studies import CODES, label_all
from tests.study.session.test_crowd import enter

QUOTAS = '\n[[background.questions]]\nkey = "side"\nquestion = "Which side?"\n'
QUOTAS += 'options = ["Left", "Right", "Neither"]\nquotas = [2, 1, 0]\n'
FULL, IN = ("ended", "side_full"), ("labelling", "")


def come(sessions: Sessions, rater: str, side: str) -> tuple[str, str]:
    """Say which side; the step and the reason that follow."""
    assert sessions.next_step(rater).name == "side"
    sessions.answer_side(rater, side)
    step = sessions.next_step(rater)
    return step.name, step.reason


def test_each_side_has_as_many_people_as_its_quota(make_session, any_database):
    study = make_session(QUOTAS + "[pay]\ncomplete = 6\ncurrency = 'GBP'\n", **any_database)
    sessions, desk = Sessions(study), AnnotationDesk(study)
    assert sessions.steps == ["side", "labelling"]
    with pytest.raises(InputError, match="'Up' is none of the answers"):
        come(sessions, "ann", "Up")
    people = {"ann": "Left", "ben": "Right", "cy": "Left"}
    assert [come(sessions, *each) for each in people.items()] == [IN] * 3
    late = {"dan": "Left", "eve": "Right", "flo": "Neither"}
    assert [come(sessions, *each) for each in late.items()] == [FULL] * 3
    assert sessions.sides() == {"Left": (2, 2), "Right": (1, 1), "Neither": (0, 0)}
    for rater, other in (("ann", "Right"), ("dan", "Left")):
        sessions.answer_side(rater, other)  # in another window: too late
    assert dict(raters_table(study).to_numpy().tolist()) == people
    times = session_times(study, sessions).set_index("rater_id")
    assert times.loc["dan", ["state", "owed"]].tolist() == ["side_full", 0.0]
    for rater in ("ann", "ben"):
        label_all(desk, rater, "1", 2)
    sides = exported_ratings(study)[["rater_id", "side"]].drop_duplicates().to_numpy().tolist()
    assert sides == [["ann", "Left"], ["ben", "Right"]]
    # Who was excluded, or gave the place back, has left it to another.
    exclude(study.store, "ben", "too fast", "lead")
    sessions.release("cy", "returned")
    assert come(sessions, "gus", "Right") == come(sessions, "hal", "Left") == IN
    assert come(sessions, "ian", "Right") == FULL


def test_a_crowds_place_is_free_again_and_no_one_returns_to_a_full_side(make_session):
    study = make_session(QUOTAS + CODES + "places = 2\n")
    sessions, first, second = Sessions(study), enter(study, "p1"), enter(study, "p2")
    with pytest.raises(Refused):
        enter(study, "p3")
    assert (come(sessions, first, "Right"), come(sessions, second, "Right")) == (IN, FULL)
    third = enter(study, "p3")  # in the place of the second
    assert come(sessions, third, "Left") == IN
    sessions.release(first, "returned")
    assert come(sessions, enter(study, "p4"), "Right") == IN
    sessions.release(third, "returned")
    with pytest.raises(Refused):  # there is a place, but none on this side
        enter(study, "p1", "again")
    assert enter(study, "p3", "again") == third
    assert sessions.next_step(third).name == "labelling"


@pytest.mark.slow
def test_of_many_at_once_only_one_gets_the_last_place(make_session, database):
    study = make_session(QUOTAS, **database)
    sessions = [Sessions(study) for _ in range(8)]
    with ThreadPoolExecutor(8) as at_once:
        came = [*at_once.map(lambda n: come(sessions[n], f"r{n}", "Right"), range(8))]
    assert sorted(came) == sorted([IN, *[FULL] * 7])
