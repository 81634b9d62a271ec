"""One question about annotators has quotas: it is asked before the first item, and whoever comes
once their side is full gets no place.
"""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.reporting.exporting import exported_ratings
from evenhand.study import open_study
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.refused import Refused
from evenhand.study.session.sessions import Sessions, raters_table, session_times
from evenhand.study.settings.study_toml import read_config
from harness.studies import CODES, label_all
from tests.study.session.test_crowd import enter

QUESTION = '[[background.questions]]\nkey = "side"\nquestion = "Which side?"\n'
QUOTAS = '[consent]\ntext = "Yes?"\n' + QUESTION + 'options = ["Left", "Right", "Neither"]\n'
QUOTAS += "quotas = [2, 1, 0]\n"


def come(sessions: Sessions, rater: str, side: str) -> tuple[str, str]:
    """Agree, and say which side; the step and the reason that follow."""
    sessions.decide_consent(rater, agreed=True)
    assert sessions.next_step(rater).name == "side"
    sessions.answer_side(rater, side)
    step = sessions.next_step(rater)
    return step.name, step.reason


FULL, IN = ("ended", "side_full"), ("labelling", "")


def test_each_side_has_as_many_people_as_its_quota(make_session, any_database):
    study = make_session(QUOTAS + CODES + "[pay]\ncomplete = 6\ncurrency = 'GBP'\n", **any_database)
    sessions = Sessions(study)
    assert sessions.steps == ["consent", "side", "labelling"]
    with pytest.raises(InputError, match="'Up' is none of the answers"):
        come(sessions, "ann", "Up")
    wanted = {"ann": "Left", "ben": "Right", "cy": "Left", "dan": "Left", "eve": "Right"}
    came = {rater: come(sessions, rater, side) for rater, side in wanted.items()}
    came["flo"] = come(sessions, "flo", "Neither")
    assert came == dict.fromkeys(("ann", "ben", "cy"), IN) | dict.fromkeys(
        ("dan", "eve", "flo"), FULL
    )
    assert sessions.sides() == {"Left": (2, 2), "Right": (1, 1), "Neither": (0, 0)}
    sessions.answer_side("ann", "Right")  # in another window: too late
    sessions.answer_side("dan", "Left")
    assert dict(raters_table(study).to_numpy().tolist()) == {
        "ann": "Left",
        "ben": "Right",
        "cy": "Left",
    }
    times = session_times(study, sessions).set_index("rater_id")
    assert times.loc["dan", ["state", "owed"]].tolist() == ["side_full", 0.0]
    # The answer is there for the analysis of the file that is exported too.
    desk = AnnotationDesk(study)
    for rater in ("ann", "ben"):
        label_all(desk, rater, "1", 2)
    sides = exported_ratings(study).groupby("rater_id")["side"].unique()
    assert {rater: list(side) for rater, side in sides.items()} == {
        "ann": ["Left"],
        "ben": ["Right"],
    }
    # Who was excluded, or gave the place back, has left it to another.
    exclude(study.store, "ben", "too fast", "lead")
    sessions.release("cy", "returned")
    assert come(sessions, "gus", "Right") == come(sessions, "hal", "Left") == IN
    assert come(sessions, "ian", "Right") == FULL


def test_a_crowds_place_is_free_again_and_no_one_returns_to_a_full_side(make_session):
    study = make_session(QUOTAS + CODES + "places = 2\n")
    sessions = Sessions(study)
    first, second = enter(study, "p1"), enter(study, "p2")
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
    assert sessions[0].sides()["Right"] == (1, 1)


def arrive(folder: str, kind: str) -> None:
    """Come as one rater after the other, until killed; say who was told that they have a place."""
    with open_study(Path(folder)) as study:
        sessions = Sessions(study)
        for number in range(1000):
            if come(sessions, f"{kind}{number}", "Left") == IN:
                print(f"{kind}{number}", flush=True)


@pytest.mark.slow
def test_a_place_is_kept_and_not_given_twice_over_kills(make_session):
    folder = make_session(QUOTAS.replace("[2, 1, 0]", "[40, 1, 1]")).folder
    comes = "import sys; from tests.study.session.test_quotas import arrive; arrive(*sys.argv[1:])"
    told = []
    for kill in "abc":
        commands = ([sys.executable, "-c", comes, str(folder), kill + each] for each in "12")
        both = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
        lines = [both[0].stdout.readline() for _ in range(5)]
        time.sleep(0.05)
        for process in both:
            process.send_signal(signal.SIGKILL)
        told += [*lines, *both[0].stdout, *both[1].stdout]
        assert [process.wait() for process in both] == [-signal.SIGKILL] * 2
    with open_study(folder) as study:
        kept = set(raters_table(study)["rater_id"])
        assert {line.strip() for line in told} <= kept
        assert len(told) >= 15
        sessions = Sessions(study)
        for number in range(50):
            come(sessions, f"last{number}", "Left")
        assert sessions.sides()["Left"] == (40, 40)


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        (QUOTAS.replace(", 0]", "]"), "side needs a quota of people for each option"),
        (QUOTAS.replace("[2, 1, 0]", "[0, 0, 0]"), "not all 0"),
        (QUOTAS.replace('"side"', '"label"'), "cannot have the key 'label'"),
        (QUOTAS + QUESTION.replace("side", "b") + 'options = ["x", "y"]\nquotas = [1, 1]\n', "two"),
        (QUOTAS.replace("[2", "[-2"), "quotas.0 is -2; it must be greater than or equal to 0"),
    ],
)
def test_quotas_that_cannot_be(make_session, toml, sentence):
    folder = make_session().folder
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(toml)
    with pytest.raises(InputError, match=sentence):
        read_config(folder)
