"""Sessions of a crowd: places, times and pay, and what a study costs."""

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.admission import admit, make_invites
from evenhand.study.desk.claims import STOPPED_BY, attention_results, exclude
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.sessions import (
    Costs,
    Sessions,
    completion_url,
    costs,
    rater_of,
    released_submissions,
    session_times,
    study_url,
)
from evenhand.study.settings.study_toml import PaySettings
from evenhand.study.store.logs.answers import add_event
from evenhand.study.store.schema import session_events
from harness.studies import ASKS, CODES, MORE_CODES, claim_of, label_all, task_of


def enter(study: Study, participant: str, session: str = "") -> str:
    (link,) = make_invites(study, [""], hours=1)
    names = (participant, "s", session or f"s-{participant}")
    ids = zip(("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"), map(prolific_id, names), strict=True)
    return admit(study, {"invite": link.token, **dict(ids)}).rater_id


def prolific_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def label(desk: AnnotationDesk, rater: str, most: int = 1000) -> list[str]:
    """Label so many units; returns their ids in order."""
    return [claim_of(desk.study, task).unit_id for task in label_all(desk, rater, "1", most)]


def test_what_was_returned_is_dealt_to_others_and_its_labels_stay(make_session):
    study = make_session(raters_per_unit=1)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    first = enter(study, "p1")
    done = label(desk, first, 5)
    assert task_of(desk, first) is not None  # one is open
    second = enter(study, "p2")
    assert desk.progress(second) == (0, 24 - 6)
    assert sessions.release(first, "returned") == 1
    assert sessions.release(first, "returned") == 0
    assert sessions.next_step(first).reason == "returned"
    others = label(desk, second)
    assert len(others) == 24 - 5
    assert not set(done) & set(others)
    assert study.ratings().groupby("rater_id").size().to_dict() == {first: 5, second: 19}


def test_what_was_rejected_is_labelled_by_others_as_well(make_session):
    study = make_session(raters_per_unit=1)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    first, second = enter(study, "p1"), enter(study, "p2")
    done = label(desk, first, 5)
    assert sessions.release(first, "rejected") == 5
    assert set(done) < set(label(desk, second))
    assert len(study.ratings()) == 24 + 5
    # A rejection that is taken back gives the rater their answers again.
    sessions.readmit(first)
    assert sessions.next_step(first).name == "labelling"
    assert desk.progress(first) == (5, 5)
    assert task_of(desk, first) is None


def test_a_check_that_was_given_back_unanswered_comes_again(make_session):
    values = '{ prompt = "Write.", response = "No." }'
    check = f'[[unit]]\nname = "c"\nexpected = {{ refusal = "5" }}\nvalues = {values}\n'
    study = make_session('[attention]\nfile = "checks.toml"\nevery = 2\n', {"checks.toml": check})
    desk, sessions = AnnotationDesk(study), Sessions(study)
    rater = enter(study, "p1")
    label(desk, rater, 2)
    shown = desk.next_sheet(rater)
    sessions.release(rater, "returned")
    enter(study, "p1", "second")
    assert desk.next_sheet(rater) == shown
    label(desk, rater)
    assert len(attention_results(study)) == 1
    assert desk.progress(rater) == (25, 25)


def export(
    path: Path, rows: list[str], header: str = "Submission id,Participant id,Status"
) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


def test_prolifics_export_says_whose_places_are_free(make_session, tmp_path):
    study = make_session()
    raters = {name: enter(study, name) for name in ("p1", "p2", "p3", "p4", "p5")}
    Sessions(study).release(raters["p5"], "returned")
    enter(study, "p5", "second")
    said = (
        ("s-p1", "p1", "RETURNED"),
        ("s-p2", "p2", "TIMED-OUT"),
        ("s-p3", "p3", "Rejected"),
        ("s-p4", "p4", "AWAITING REVIEW"),
        ("s-p5", "p5", "RETURNED"),  # the first of two submissions
        ("second", "p5", "ACTIVE"),
        ("s-p9", "p9", "RETURNED"),  # never came here
    )
    rows = [f"{prolific_id(own)},{prolific_id(who)},{status}" for own, who, status in said]
    path = export(tmp_path / "export.csv", rows)
    assert released_submissions(study, path) == {
        raters["p1"]: "returned",
        raters["p2"]: "timed_out",
        raters["p3"]: "rejected",
    }


@pytest.mark.parametrize(
    ("header", "row", "sentence"),
    [
        ("Participant,Status", "p1,RETURNED", "has no column 'Participant id'"),
        ("Participant id,State", "p1,RETURNED", "has no column 'Status'"),
        ("Participant id,Status", "p1,", "row 2: Status is empty"),
    ],
)
def test_a_file_that_is_no_such_export(make_session, tmp_path, header, row, sentence):
    with pytest.raises(InputError, match=sentence):
        released_submissions(make_session(), export(tmp_path / "e.csv", [row], header))


def test_a_rater_is_found_by_either_name(make_session):
    study = make_session()
    rater = enter(study, "p1")
    assert rater_of(study, prolific_id("p1")) == rater_of(study, rater) == rater
    with pytest.raises(InputError, match="nobody called 'p2' has taken part"):
        rater_of(study, "p2")


def test_the_link_to_prolific():
    assert study_url("https://x.example/", "t.o-k") == (
        "https://x.example/?invite=t.o-k&PROLIFIC_PID={{%PROLIFIC_PID%}}"
        "&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )


@pytest.mark.parametrize(
    ("toml", "codes"),
    [
        ("", {"complete": ""}),
        (
            CODES,
            {"complete": "DONE1", "screened_out": "OUT2", "no_consent": "NO3", "stopped": ""}
            | {"nothing_left": "DONE1", "returned": ""},
        ),
        (
            MORE_CODES + 'returned = "BACK6"\n',
            {"returned": "BACK6", "stopped": "STOP4", "nothing_left": "NONE5"},
        ),
    ],
)
def test_links_back_from_each_end(make_session, toml, codes):
    address, study = "https://app.prolific.com/submissions/complete?cc=", make_session(toml)
    expected = {end: code and address + code for end, code in codes.items()}
    assert {end: completion_url(study, end) for end in codes} == expected


AMOUNTS = '\n[pay]\ncomplete = 6.0\ncurrency = "GBP"\nscreened_out = 0.5\n'
AMOUNTS += 'nothing_left = 0.25\nstopped = "share"\n'


def everyone(study: Study) -> dict[str, dict[str, object]]:
    """Somebody at every end, with their row of the table of times."""
    desk, sessions = AnnotationDesk(study), Sessions(study)
    ends = ("done", "late", "stopped", "excluded", "returned", "timed_out", "rejected", "open")
    for rater in (*ends, "idle", "failed"):
        sessions.decide_consent(rater, agreed=True)
    sessions.decide_consent("declined", agreed=False)
    for rater in (*ends, "idle"):
        sessions.answer_comprehension(rater, ["this"])
    for _ in range(2):
        sessions.answer_comprehension("failed", ["that"])
    for rater in ends:
        label(desk, rater, 2 if rater == "stopped" else 3)
    for rater in ("done", "late", "idle"):
        sessions.complete(rater)
    exclude(study.store, "stopped", "too fast", STOPPED_BY)
    exclude(study.store, "excluded", "too fast", "chair")
    exclude(study.store, "late", "found out afterwards", "chair")
    for reason in ("returned", "timed_out", "rejected"):
        sessions.release(reason, reason)
    return session_times(study, sessions).set_index("rater_id").to_dict("index")


@pytest.mark.slow
def test_times_say_how_each_part_ended_and_what_is_owed_for_it(make_session):
    found = everyone(make_session(ASKS + AMOUNTS, raters_per_unit=20))
    paid = {name: (row["state"], row["owed"]) for name, row in found.items()}
    assert {name: row["why"].partition(":")[0] for name, row in found.items()} == {
        "done": "Complete", "late": "Complete", "idle": "No item was left",
        "failed": "Screened out", "declined": "No consent", "returned": "Returned the place",
        "timed_out": "Out of time", "rejected": "Rejected", "open": "Still at work",
        "stopped": "Stopped by a rule of the study",
        "excluded": "Excluded by the lead before the end",
    }  # fmt: skip
    assert all(row["currency"] == "GBP" for row in found.values())
    assert [paid.pop(name)[0] for name in ("excluded", "timed_out")] == ["excluded", "timed_out"]
    assert all(found[name]["owed"] != found[name]["owed"] for name in ("excluded", "timed_out"))
    whole, third = ("complete", 6.0), ("stopped", 4.0)  # 2 units of the median finisher's 3
    assert paid == {
        "done": whole, "late": whole, "stopped": third, "idle": ("nothing_left", 0.25),
        "failed": ("screened_out", 0.5), "declined": ("no_consent", 0.0),
        "returned": ("returned", 0.0), "rejected": ("rejected", 0.0), "open": ("labelling", 0.0),
    }  # fmt: skip


@pytest.mark.slow
def test_who_is_stopped_is_paid_as_the_study_says(make_session):
    full = everyone(make_session(ASKS + AMOUNTS.replace("share", "full")))["stopped"]
    assert full["owed"] == 6.0
    assert full["why"] == "Stopped by a rule of the study: full pay, as study.toml says."
    ten = make_session(ASKS + AMOUNTS, annotation={"units_per_rater": 10})
    assert everyone(ten)["stopped"]["owed"] == 1.2  # 2 of 10
    bare = everyone(make_session(ASKS))["stopped"]  # the table says why, without an amount
    assert bare["owed"] != bare["owed"]
    assert bare["why"] == "Stopped by a rule of the study: pay for 2 of 3 items."


def test_what_a_share_is_waits_until_someone_has_finished(make_session):
    study = make_session(AMOUNTS)
    label(AnnotationDesk(study), "first", 2)
    exclude(study.store, "first", "too fast", STOPPED_BY)
    (row,) = session_times(study, Sessions(study)).to_dict("records")
    assert row["owed"] != row["owed"]
    assert "decide what share that is" in row["why"]


def test_times_leave_idle_time_out(make_session, monkeypatch):
    study = make_session("[session]\nidle_minutes = 2\n")
    clock = iter(f"2026-03-01T10:{minute:02d}:00.000+00:00" for minute in (0, 1, 2, 30, 31))
    now = "evenhand.study.store.database.utc_now"
    monkeypatch.setattr(now, lambda: next(clock))
    with study.store.write() as connection:
        for _ in range(5):
            add_event(connection, "r", "entered", way="open")
    with study.store.write() as connection:
        monkeypatch.setattr(now, lambda: "2026-03-02T00:00:00.000+00:00")
        add_event(connection, "r", "released", reason="returned")  # not the rater's doing
    (row,) = session_times(study, Sessions(study)).to_dict("records")
    begun, ended = (f"2026-03-01T10:{minute}:00+00:00" for minute in ("00", "31"))
    active = 60 + 60 + 120 + 60  # 28 minutes of pause count as 2
    why = "Returned the place: nothing is owed."
    none = pytest.approx(float("nan"), nan_ok=True)
    assert [*row.values()] == ["r", "returned", begun, ended, active, 0, 0, none, "", why]


def test_times_count_what_was_labelled_and_the_first_answers_own_time(make_session):
    study = make_session()
    desk, sessions = AnnotationDesk(study), Sessions(study)
    label_all(desk, "r", "1", 1, seconds=40.0)
    label(desk, "r", 2)
    (row,) = session_times(study, sessions).to_dict("records")
    assert (row["state"], row["units"], row["answers"]) == ("labelling", 3, 3)
    assert 40.0 <= row["active_seconds"] < 60.0
    label(desk, "r")
    sessions.complete("r")
    assert session_times(study, sessions)["state"].tolist() == ["complete"]
    with study.store.read() as connection:
        assert len(connection.execute(sa.select(session_events)).all()) == 1


# Costs


@pytest.fixture
def study(make_study):
    """80 response units, one rater each."""
    return make_study(pairs=40, subjects=("s",), rubrics=["refusal"], raters_per_unit=1)


def test_what_is_owed_and_was_spent(study):
    assert costs(study) == Costs()
    pay = PaySettings(complete=6.0, currency="GBP")
    study.config = study.config.model_copy(update={"pay": pay})
    assert costs(study) == Costs("GBP", 0.0)
    label(AnnotationDesk(study), "r")
    Sessions(study).complete("r")
    assert costs(study).owed == 6.0
