"""Places for participants from Prolific: taken once each, freed only as the study says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access.admission import enter
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import exclude
from evenhand.study.session.sessions import Sessions, participants_table

CODES = """
[prolific]
complete = "DONE1"
screened_out = "OUT2"
no_consent = "NO3"
places = {places}
{more}
"""
ASKS = """
[consent]
text = "May we?"
[[comprehension]]
question = "Which?"
options = ["this", "that"]
answer = "this"
"""
FULL = "all places in this study are taken"


def address(number: int, submission: int = 0) -> dict[str, str]:
    """What Prolific adds to the link of a participant."""
    ids = {"PROLIFIC_PID": number, "STUDY_ID": 7, "SESSION_ID": 100 * number + submission}
    return {name: f"{value:024x}" for name, value in ids.items()}


def codes(places: int, more: str = "") -> str:
    return CODES.format(places=places, more=more)


@pytest.mark.slow
def test_invented_participants_get_no_more_than_the_places(make_session) -> None:
    study = make_session(codes(3))
    raters = [enter(study, address(number)) for number in range(3)]
    for number in range(3, 40):
        with pytest.raises(InputError, match=FULL):
            enter(study, address(number))
    assert len(participants_table(study)) == 3
    # Who has a place keeps it, by the same submission or another.
    assert [enter(study, address(number)) for number in range(3)] == raters
    assert enter(study, address(0, submission=1)) == raters[0]


def test_without_a_number_everybody_gets_in(make_session) -> None:
    study = make_session(codes(0))
    assert len({enter(study, address(number)) for number in range(5)}) == 5


def decline(sessions: Sessions, rater: str) -> None:
    sessions.decide_consent(rater, agreed=False)


def fail(sessions: Sessions, rater: str) -> None:
    sessions.decide_consent(rater, agreed=True)
    for _ in range(2):
        sessions.answer_comprehension(rater, ["that"])
    assert sessions.next_step(rater).reason == "screened_out"


def stop(sessions: Sessions, rater: str) -> None:
    sessions.decide_consent(rater, agreed=True)
    AnnotationDesk(sessions.study).next_task(rater)
    exclude(sessions.study.store, rater, "too fast")


ENDS: dict[str, Callable[[Sessions, str], None]] = {
    "no_consent": decline,
    "screened_out": fail,
    "stopped": stop,
    **{
        reason: lambda sessions, rater, reason=reason: sessions.release(rater, reason)
        for reason in ("returned", "timed_out", "rejected")
    },
}


@pytest.mark.parametrize("end", ENDS)
def test_a_place_is_free_again_only_as_the_study_says(make_session, end: str) -> None:
    others = [other for other in ENDS if other != end]
    for more, freed in ((f"free_again = {[end]}", True), (f"free_again = {others}", False)):
        study = make_session(ASKS + codes(1, more))
        ENDS[end](Sessions(study), enter(study, address(1)))
        if freed:
            enter(study, address(2))
        with pytest.raises(InputError, match=FULL):
            enter(study, address(3))


def test_who_returns_after_their_place_was_taken_is_not_let_in_again(make_session) -> None:
    study = make_session(codes(1))
    rater = enter(study, address(1))
    Sessions(study).release(rater, "returned")
    enter(study, address(2))
    with pytest.raises(InputError, match=FULL):
        enter(study, address(1, submission=1))
    assert Sessions(study).next_step(rater).reason == "returned"


@pytest.mark.slow
@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)]
)
def test_of_newcomers_at_the_same_moment_one_gets_the_last_place(
    make_session, request: pytest.FixtureRequest, database: str
) -> None:
    many = 8
    url = {} if database == "sqlite" else {"store": request.getfixturevalue("new_postgresql")()}
    study = make_session(codes(2), **url)
    enter(study, address(1))
    at_once = threading.Barrier(many)

    def come(number: int) -> str:
        with open_study(study.folder) as own:  # a connection of one's own, as another process has
            at_once.wait()
            return _entered(own, number)

    with ThreadPoolExecutor(many) as pool:
        found = list(pool.map(come, range(2, 2 + many)))
    assert sum(bool(rater) for rater in found) == 1
    assert len(participants_table(study)) == 2


def _entered(study: Study, number: int) -> str:
    """The rater's code; "" where all places are taken."""
    try:
        return enter(study, address(number))
    except InputError as error:
        if FULL not in str(error):
            raise
        return ""
