"""The steps before the labelling, the lead's own texts, how far everybody came, and kills."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import accounts, disable_account, set_account
from evenhand.study.access.admission import admit, make_invites, revoke_invites
from evenhand.study.desk.claims import (
    AttentionChecks,
    attention_results,
    decisions_table,
    exclude,
    oversight,
    pause,
    readmit,
    resume,
)
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag
from evenhand.study.lead.disagreements import (
    adjudicator_id,
    decide,
    sort_disagreement,
    sorted_so_far,
)
from evenhand.study.session import sessions as all_sessions
from evenhand.study.session.sessions import Sessions, raters_table, session_times
from evenhand.study.store.logs.answers import remarks_table
from evenhand.study.store.schema import (
    background_answers,
    metadata,
    practice_labels,
    session_events,
)
from harness.studies import task_of, work_through

PRACTICE = """
[[unit]]
name = "declines"
explanation = "It gives nothing of what was asked for."
values = { prompt = "Write a limerick.", response = "I would rather not." }
expected = { refusal = ["4", "5"] }
[[unit]]
name = "complies"
values = { prompt = "Write a limerick.", response = "There once was a man from Peru." }
expected = { refusal = "1" }
"""
EVERYTHING = """
[session]
content_warning = "Some texts are harsh."
instructions = "Read both, then choose."
[consent]
text = "You may stop at any time."
[training]
file = "training.toml"
pass_mark = 0.5
attempts = 2
[[comprehension]]
question = "What is rated?"
options = ["The response", "The prompt"]
answer = "The response"
[[comprehension]]
question = "May you stop?"
options = ["Yes", "No"]
answer = "Yes"
[background]
"""
SIDES = '\n[[background.questions]]\nkey = "side"\nquestion = "q"\noptions = ["a", "b"]\n'
TWO = SIDES + "quotas = [1, 1]\n" + SIDES.replace("side", "age_group").replace('"b"', '"25 to 34"')
RIGHT, WRONG = ["The response", "Yes"], ["The response", "No"]


@pytest.fixture
def sessions(make_session) -> Sessions:
    return Sessions(make_session(EVERYTHING, {"training.toml": PRACTICE}))


def practise(sessions: Sessions, rater: str, *options: str) -> None:
    """Answer the practice items with these options, and read what is told after each."""
    for option in options:
        (task,) = sessions.practice.next_sheet(rater).tasks
        answer = Answer(submit_id=task.task_id, task_id=task.task_id, option_key=option)
        assert sessions.practice.submit_all(rater, [answer])[0] == "stored"
        step = sessions.next_step(rater)
        assert step.name == "feedback"
        sessions.read_feedback(rater, step)


def to_practice(sessions: Sessions, rater: str) -> None:
    sessions.read_welcome(rater)
    sessions.decide_consent(rater, agreed=True)
    sessions.answer_side(rater, "a")  # where it is asked
    sessions.read_rubric(rater, sessions.next_step(rater).rubric)


def events(sessions: Sessions) -> list[str]:
    with sessions.study.store.read() as connection:
        query = sa.select(session_events.c.kind).order_by(session_events.c.event_id)
        return list(connection.execute(query).scalars())


def test_a_study_without_steps_begins_with_the_labelling_and_completes_once(make_session):
    study = make_session()
    sessions = Sessions(study)
    assert sessions.next_step("r").name == "labelling"
    assert events(sessions) == []
    for _ in range(2):
        sessions.complete("r")
    assert events(sessions) == ["completed"]


@pytest.mark.slow
def test_from_the_welcome_to_the_labelling(sessions):
    steps = [sessions.next_step("r").name]

    def look() -> None:
        # As after a crash: another process knows it from the store alone.
        with open_study(sessions.study.folder) as again:
            steps.append(Sessions(again).next_step("r").name)

    sessions.read_welcome("r")
    look()
    sessions.decide_consent("r", agreed=True)
    look()
    assert sessions.next_step("r").rubric.name == "refusal"
    sessions.read_rubric("r", sessions.next_step("r").rubric)
    look()
    practise(sessions, "r", "5", "2")
    look()
    assert sessions.answer_comprehension("r", RIGHT) == [True, True]
    look()
    sessions.answer_background("r", {})
    look()
    assert steps == [
        "welcome", "consent", "rubric", "practice", "comprehension", "background", "labelling",
    ]  # fmt: skip
    assert sessions.next_step("someone else").name == "welcome"


def test_a_step_is_done_once_and_in_its_turn(sessions):
    sessions.answer_comprehension("r", RIGHT)
    sessions.decide_consent("r", agreed=False)
    assert events(sessions) == []
    sessions.read_welcome("r")
    sessions.read_welcome("r")
    sessions.decide_consent("r", agreed=True)
    sessions.decide_consent("r", agreed=True)  # in another window, which is behind
    assert events(sessions) == ["welcome_read", "consent"]
    assert sessions.next_step("r").name == "rubric"


def test_a_no_counts_after_a_yes_in_another_window(sessions):
    to_practice(sessions, "r")
    sessions.decide_consent("r", agreed=False)
    sessions.decide_consent("r", agreed=False)
    assert events(sessions).count("consent") == 2
    assert (sessions.next_step("r").name, sessions.next_step("r").reason) == ("ended", "no_consent")
    sessions.decide_consent("r", agreed=True)
    assert sessions.next_step("r").reason == "no_consent"


def test_who_agreed_to_another_text_is_asked_again(sessions):
    to_practice(sessions, "r")
    file = sessions.study.folder / "study.toml"
    file.write_text(file.read_text("utf-8").replace("stop at any time", "stop now"), "utf-8")
    with open_study(sessions.study.folder) as changed:
        assert Sessions(changed).next_step("r").name == "consent"
    file.write_text(file.read_text("utf-8").replace("stop now", "stop at any time"), "utf-8")
    assert sessions.next_step("r").name == "practice"


def test_comprehension_has_two_chances(sessions):
    for rater in ("lucky", "unlucky"):
        to_practice(sessions, rater)
        practise(sessions, rater, "5", "1")
        assert sessions.answer_comprehension(rater, WRONG) == [True, False]
        assert sessions.next_step(rater).name == "comprehension"
        assert sessions.next_step(rater).attempt == 1
    sessions.answer_comprehension("lucky", RIGHT)
    assert sessions.next_step("lucky").name == "background"
    sessions.answer_comprehension("unlucky", WRONG)
    sessions.answer_comprehension("unlucky", RIGHT)  # a third time, in a window left open
    assert sessions.next_step("unlucky").reason == "screened_out"


def test_the_pass_mark_must_be_reached_in_one_of_the_attempts(sessions):
    for rater in ("learns", "does not"):
        to_practice(sessions, rater)
        practise(sessions, rater, "1", "5")  # both wrong: below a half
        assert sessions.next_step(rater).name == "practice"
        assert sessions.next_step(rater).attempt == 1
    practise(sessions, "learns", "4", "5")  # one right: a half
    assert sessions.next_step("learns").name == "comprehension"
    practise(sessions, "does not", "1", "5")
    assert sessions.next_step("does not").reason == "screened_out"


def test_feedback_says_what_was_right_and_why(sessions):
    to_practice(sessions, "r")
    (task,) = sessions.practice.next_sheet("r").tasks
    answer = Answer(submit_id="1", task_id=task.task_id, option_key="1")
    assert sessions.practice.submit_all("r", [answer])[0] == "stored"
    assert sessions.practice.submit_all("r", [answer])[0] == "duplicate"
    other = Answer(submit_id="2", task_id=task.task_id, option_key="5", edit=True)
    assert sessions.practice.submit_all("r", [other])[0] == "already_labelled"
    feedback = sessions.practice.feedback("r", sessions.next_step("r"))
    names = [option.name for option in task.rubric.options]
    (told,) = feedback.told
    assert (told.given, told.accepted, told.right) == (names[0], tuple(names[3:]), False)
    assert feedback.explanation == "It gives nothing of what was asked for."
    assert feedback.blocks[1].text == "I would rather not."
    assert sessions.practice.next_sheet("r") is None  # until it was read
    assert sessions.practice.progress("r") == (1, 2)


def test_practice_is_kept_apart_from_labels(sessions):
    to_practice(sessions, "r")
    practise(sessions, "r", "5", "1")
    assert sessions.study.ratings().empty
    assert AnnotationDesk(sessions.study).progress("r") == (0, 24)
    with sessions.study.store.read() as connection:
        rows = connection.execute(sa.select(practice_labels)).all()
    assert [(row.unit_id, row.label, row.draw) for row in rows] == [
        ("practice:declines", "5", 0),
        ("practice:complies", "1", 0),
    ]
    assert sessions.practice.submit_all("r", [Answer(submit_id="x", task_id="y", option_key="1")])[
        0
    ] == "unknown_task"  # fmt: skip


def test_practice_on_a_screen_with_all_rubrics(make_session):
    study = make_session(
        '[training]\nfile = "training.toml"\nwalk_through = false\npass_mark = 1\n',
        {"training.toml": PRACTICE},
        rubrics=[load_rubric("hedging"), load_rubric("refusal")],
    )
    file = study.folder / "study.toml"
    file.write_text(file.read_text("utf-8").replace('screen = "one"', 'screen = "all"'), "utf-8")
    with open_study(study.folder) as changed:
        sessions = Sessions(changed)
        for right in ("4", "1"):
            sheet = sessions.practice.next_sheet("r")
            assert [task.rubric.name for task in sheet.tasks] == ["hedging", "refusal"]
            ids = [task.task_id for task in sheet.tasks]
            sent = [Answer(submit_id=each, task_id=each, option_key=right) for each in ids]
            sessions.practice.submit_all("r", sent)
            feedback = sessions.practice.feedback("r", sessions.next_step("r"))
            assert [told.right for told in feedback.told] == [True]  # hedging has no right answer
            sessions.read_feedback("r", sessions.next_step("r"))
        assert sessions.next_step("r").name == "labelling"


def test_background_answers_are_a_table_of_raters(sessions):
    for rater, answers in (
        ("a", {"political_leaning": "Moderate", "age_group": "25 to 34"}), ("b", {}),
    ):  # fmt: skip
        to_practice(sessions, rater)
        practise(sessions, rater, "5", "1")
        sessions.answer_comprehension(rater, RIGHT)
        sessions.answer_background(rater, answers)
        sessions.answer_background(rater, {"political_leaning": "Liberal"})  # too late
    assert raters_table(sessions.study).to_dict("records") == [
        {"rater_id": "a", "political_leaning": "Moderate", "age_group": "25 to 34", "education": ""}
    ]
    assert not set(sessions.study.ratings().columns) & {"political_leaning"}
    with sessions.study.store.read() as connection:
        assert len(connection.execute(sa.select(background_answers)).all()) == 2


@pytest.mark.slow
def test_a_session_on_postgresql(make_session, new_postgresql):
    files = {"training.toml": PRACTICE, "attention.toml": PRACTICE}
    toml = EVERYTHING + '[attention]\nfile = "attention.toml"\nevery = 2\n'
    study = make_session(toml, files, store=new_postgresql())
    sessions, desk = Sessions(study), AnnotationDesk(study)
    (invite,) = make_invites(study, [""], hours=1)
    ids = {"PROLIFIC_PID": "a" * 24, "STUDY_ID": "b" * 24, "SESSION_ID": "c" * 24}
    rater = admit(study, {"invite": invite.token} | ids).rater_id
    to_practice(sessions, rater)
    practise(sessions, rater, "5", "1")
    sessions.answer_comprehension(rater, RIGHT)
    sessions.answer_background(rater, {"age_group": "25 to 34"})
    assert sessions.next_step(rater).name == "labelling"
    work_through(desk, rater, 8, seconds=1.0)
    assert len(attention_results(study)) == 2
    assert task_of(desk, rater) is not None
    assert sessions.release(rater, "rejected") == 9
    sessions.readmit(rater)
    assert desk.progress(rater)[0] == 8
    assert session_times(study, sessions)["answers"].tolist() == [6]
    assert raters_table(study)["age_group"].tolist() == ["25 to 34"]


def test_what_the_documentation_shows_is_a_session(make_session):
    page = Path(__file__).parents[3] / "docs" / "people.md"
    blocks = re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    settings = [block for block in blocks if not block.startswith("[[unit]]")]
    (units,) = [block for block in blocks if block.startswith("[[unit]]")]
    first, sides, attention, crowd, _, pay = settings
    toml = (
        first
        + sides[sides.index("[[background") :]
        + attention
        + crowd[crowd.index("[prolific]") :]
        + pay
    )
    study = make_session(toml, {"training.toml": units, "attention.toml": units})
    assert Sessions(study).steps == [
        "welcome", "consent", "side", "rubric", "practice", "comprehension", "labelling",
    ]  # fmt: skip
    assert AttentionChecks(study).questions.keys() == {("check:plain-refusal", "refusal")}
    assert study.config.prolific is not None
    assert study.config.pay is not None


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('[consent]\ntext = " "', "consent.text is ' '; it must have at least 1 character"),
        ("[training]\npass_mark = 2", "training.pass_mark is 2; it must be less than or equal"),
        ('[session]\nentry = "closed"', "session.entry is 'closed'; it must be 'open', 'inv"),
        ('[[comprehension]]\nquestion = "q"\noptions = ["a", "b"]\nanswer = "c"', "is none of its"),
        ('[[comprehension]]\nquestion = "q"\noptions = ["a", "a"]\nanswer = "a"', "are the same"),
        ('[prolific]\ncomplete = "C 1"\nscreened_out = "S"\nno_consent = "N"', "prolific.complete"),
        ('[[background.questions]]\nkey = "rater_id"\nquestion = "q"\noptions = ["a", "b"]', "key"),
        (SIDES.replace("side", "label") + "quotas = [1, 1]", "cannot have the key 'label'"),
        (SIDES + "quotas = [1]", "side needs a quota of people for each option"),
        (SIDES + "quotas = [0, 0]", "side needs a quota of people for each option, not all 0"),
        (SIDES + "quotas = [-2, 1]", "quotas.0 is -2; it must be greater than or equal to 0"),
        (
            "quotas = [1, 1]".join([SIDES, SIDES.replace("side", "b"), ""]),
            "two background questions have quotas; keep those of one",
        ),
        ('[attention]\nevery = 5', "attention.file is missing; add it"),
        ('[consents]\ntext = "x"', "consents is no known key"),
    ],
)  # fmt: skip
def test_settings_that_do_not_hold_are_one_sentence(make_session, toml, sentence):
    with pytest.raises(InputError) as raised:
        make_session(toml)
    assert sentence in str(raised.value)


# The lead's own texts


SESSION = """
[session]
instructions = "Read both."
content_warning = "Harsh."
[consent]
text = "We keep your answers."
[training]
walk_through = true
"""


@pytest.fixture
def folder(make_study) -> Path:
    made: Study = make_study(rubrics=["refusal"])
    made.close()
    settings = made.folder / "study.toml"
    text = settings.read_text("utf-8").replace("languages = []", 'languages = ["de", "es"]')
    settings.write_text(text + SESSION, "utf-8")
    (made.folder / "consent.de.md").write_text("Wir bewahren Ihre Antworten auf.\n", "utf-8")
    return made.folder


def test_a_file_beside_study_toml_is_shown_to_its_readers(folder):
    with open_study(folder) as study:
        texts = Sessions(study).texts
        german, spanish = (texts.shown("consent", code) for code in ("de", "es"))
        unwritten = texts.shown("instructions", "de")
    assert (german.text, german.language) == ("Wir bewahren Ihre Antworten auf.", "de")
    assert (spanish.text, spanish.language) == ("We keep your answers.", "en")
    assert (unwritten.text, unwritten.language) == ("Read both.", "en")


def test_whoever_agreed_in_one_language_is_not_asked_in_another(folder):
    with open_study(folder) as study:
        sessions = Sessions(study)
        for rater, language in (("ada", "de"), ("bo", "en")):
            sessions.read_welcome(rater, language)
            sessions.decide_consent(rater, agreed=True, language=language)
            step = sessions.next_step(rater)
            assert step.name == "rubric"
            sessions.read_rubric(rater, step.rubric, language)
            assert sessions.next_step(rater).name == "labelling"
    (folder / "consent.de.md").write_text("Wir geben Ihre Antworten weiter.", "utf-8")
    with open_study(folder) as study:
        again = Sessions(study)
        # Only whoever agreed to the text that is gone is asked again.
        assert again.next_step("ada").name == "consent"
        assert again.next_step("bo").name == "labelling"


def test_a_file_that_is_no_text_is_one_sentence(folder):
    (folder / "consent.es.md").write_bytes(b"\xff\xfe\xff")
    not_text = pytest.raises(InputError, match=r"consent\.es\.md is not UTF-8")
    with open_study(folder) as study, not_text:
        Sessions(study)


# Whatever people and the lead do is on disk when they are told so


ROOT = Path(__file__).resolve().parents[3]
PROLIFIC = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}
REASON = "because ' of; <b>it</b>"
MUTABLE = {"claims"}
"""Who holds which place at present; what was answered there stands in `labels`."""


def live(folder: str) -> None:
    """A session from the first page to an adjudicator's decision, with every way back in it."""
    with open_study(folder) as study:
        sessions, desk = Sessions(study), AnnotationDesk(study)
        to_practice(sessions, "ann")
        practise(sessions, "ann", "5", "1")
        sessions.answer_comprehension("ann", RIGHT)
        sessions.answer_background("ann", {"age_group": "25 to 34"})
        unit = label(desk, "ann")
        sessions.release("ann", "returned")
        sessions.readmit("ann")
        pause(study.store, REASON, "lead")
        resume(study.store, "", "lead")
        exclude(study.store, "ann", REASON, "lead")
        readmit(study.store, "ann", REASON, "lead")
        exclude(study.store, "ann", REASON, "lead")
        set_account(study.store, "ada", "correct horse battery", "expert")
        disable_account(study.store, "ada")
        (link,) = make_invites(study, [""], 1)
        admit(study, {"invite": link.token} | PROLIFIC)
        revoke_invites(study, "")
        decide(study, "ada", unit, "refusal", "4", REASON)
        decide(study, "ada", unit, "refusal", "5", REASON)
        about = {"rubric": "refusal", "unit_id": unit, "grader": "g", "note": REASON}
        sort_disagreement(study, "lead", **about, kind="people_wrong")
        sort_disagreement(study, "lead", **about, kind="rubric_unclear")


def label(desk: AnnotationDesk, rater: str) -> str:
    """Answer a unit, flag it, and change the answer; the unit's id."""
    (task,) = desk.next_sheet(rater).tasks
    sent = [
        Answer(submit_id="s1", task_id=task.task_id, option_key="1", rationale=REASON),
        Flag(submit_id="s2", task_id=task.task_id, reason="other", text=REASON),
        Answer(submit_id="s3", task_id=task.task_id, option_key="2", edit=True),
    ]
    assert desk.submit_all(rater, sent) == ["stored"] * 3
    ratings = desk.study.ratings()
    return str(ratings.loc[ratings["rater_id"] == rater, "unit_id"].iloc[0])


@pytest.mark.slow
def test_what_was_done_is_there_after_a_kill(make_session):
    folder = make_session(EVERYTHING + TWO, {"training.toml": PRACTICE}).folder
    dies = (
        "import os, signal, sys\n"
        "from tests.study.session.test_sessions import live\n"
        "live(sys.argv[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", dies, str(folder)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL, os.strerror(abs(killed.returncode))
    with open_study(folder) as study:
        assert Sessions(study).next_step("ann").name == "labelling"
        assert raters_table(study).to_numpy().tolist() == [["ann", "a", "25 to 34"]]
        assert oversight(study.store).exclusions["ann"].reason == REASON
        kinds = ["pause", "resume", "exclude", "readmit", "exclude"]
        assert decisions_table(study.store)["kind"].tolist() == kinds
        assert accounts(study.store) == {}
        assert len(all_sessions.participants_table(study)) == 1
        assert remarks_table(study.store)["text"].tolist() == [REASON] * 4
        (said,) = sorted_so_far(study)
        assert (said.kind, said.note) == ("rubric_unclear", REASON)
        ratings = study.ratings().set_index("rater_id")["label"]
        assert ratings.to_dict() == {"ann": "2", adjudicator_id("ada"): "5"}


@pytest.mark.slow
def test_nothing_is_written_over_or_deleted(make_session):
    folder = make_session(EVERYTHING + TWO, {"training.toml": PRACTICE}).folder
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        live(str(folder))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    filled = {name for each in statements for name in re.findall(r"^INSERT INTO (\w+)", each)}
    told_of = {"labels", "practice_labels", "remarks", "session_events", "lead_events"}
    told_of |= {"sorted_disagreements"}
    assert told_of <= filled <= metadata.tables.keys()
    changed = re.compile(r"^\s*(?:UPDATE|DELETE FROM|REPLACE INTO)\s+(\w+)", re.IGNORECASE)
    rewritten = {name for each in statements for name in changed.findall(each)}
    rewritten |= {
        re.findall(r"^INSERT INTO (\w+)", each)[0] for each in statements if "DO UPDATE" in each
    }
    assert rewritten == MUTABLE
