"""The steps before the labelling; places, quotas, times and pay; and kills."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.errors import InputError, Refused
from evenhand.reporting.exporting import exported_ratings
from evenhand.study import Study, access, open_study
from evenhand.study.desk import claims
from evenhand.study.desk.desk import AnnotationDesk, Answer, Flag
from evenhand.study.lead import disagreements
from evenhand.study.session import sessions as sitting
from evenhand.study.session.sessions import Sessions, amount_owed, costs, rater_of, session_times
from evenhand.study.settings.study_toml import PaySettings
from evenhand.study.store import schema
from evenhand.study.store.store import add_event, remarks_table
from harness.studies import ASKS, CODES, MORE_CODES, claim_of, label_all, submit, task_of
from tests.cases import refused

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
        assert submit(sessions.practice, rater, task, option) == "stored"
        step = sessions.next_step(rater)
        assert step.name == "feedback"
        sessions.record_feedback_read(rater, step)


def to_practice(sessions: Sessions, rater: str) -> None:
    sessions.record_welcome_read(rater)
    sessions.decide_consent(rater, agreed=True)
    sessions.answer_side(rater, "a")  # where it is asked
    sessions.record_rubric_read(rater, sessions.next_step(rater).rubric)


def events(sessions: Sessions) -> list[str]:
    query = sa.select(schema.session_events.c.kind).order_by(schema.session_events.c.event_id)
    return sessions.study.store.values(query)


def test_a_step_is_done_once_and_in_its_turn(sessions, make_session):
    without = Sessions(make_session())
    assert (without.next_step("r").name, events(without)) == ("labelling", [])
    for _ in range(2):
        without.complete("r")
    assert events(without) == ["completed"]
    sessions.answer_comprehension("r", RIGHT, 0)
    sessions.decide_consent("r", agreed=False)
    assert events(sessions) == []
    for _ in range(2):
        sessions.record_welcome_read("r")
    for _ in range(2):
        sessions.decide_consent("r", agreed=True)  # in another window, which is behind
    assert events(sessions) == ["welcome_read", "consent"]
    assert sessions.next_step("r").name == "rubric"
    for _ in range(2):  # a no counts after a yes in another window
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
        for _ in range(2):  # by a double click, or in a second window: one attempt
            sessions.answer_comprehension(rater, WRONG, 0)
            assert sessions.next_step(rater) == sitting.Step("comprehension", "", 1, {1})
    sessions.answer_comprehension("lucky", RIGHT, 1)
    assert sessions.next_step("lucky").name == "background"
    sessions.answer_comprehension("unlucky", WRONG, 1)
    sessions.answer_comprehension("unlucky", RIGHT, 2)  # a third time, in a window left open
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


def test_a_changed_practice_item_is_asked_anew_and_takes_back_no_pay(make_session):
    toml = '[training]\nfile = "training.toml"\nwalk_through = false\npass_mark = 1\nattempts = 1\n'
    study = make_session(toml + AMOUNTS, {"training.toml": PRACTICE}, pairs=1)
    sessions, former, file = Sessions(study), Sessions(study), study.folder / "training.toml"
    former.practice.stored_ids = {unit: unit for unit in former.practice.stored_ids}  # as in 0.2.0
    for rater, practised in (("done", sessions), ("busy", sessions), ("of 0.2.0", former)):
        practise(practised, rater, "4", "1")
        assert sessions.next_step(rater).name == "labelling"
    label(AnnotationDesk(study), "done")
    sessions.complete("done")
    for old, new in (('"1"', '"2"'), ("a man", "one")):  # the accepted answer; the text
        file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
        with open_study(study.folder) as changed:
            sessions = Sessions(changed)
            practise(sessions, "busy", "2")
            practise(sessions, "done", "1")
            states = session_times(changed, sessions).set_index("rater_id")["state"]
            assert (states["busy"], states["done"]) == ("labelling", "complete")
            assert sessions.next_step("done").reason == "screened_out"


def test_feedback_says_what_was_right_and_why(sessions):
    to_practice(sessions, "r")
    (task,) = sessions.practice.next_sheet("r").tasks
    for status in ("stored", "duplicate"):
        assert submit(sessions.practice, "r", task, "1", "1") == status
    assert submit(sessions.practice, "r", task, "5", "2", edit=True) == "already_labelled"
    feedback = sessions.practice.feedback("r", sessions.next_step("r"))
    names = [option.name for option in task.rubric.options]
    (told,) = map(vars, feedback.questions)
    assert [*told.values()] == [task.people.question, names[0], tuple(names[3:]), False]
    assert feedback.explanation == "It gives nothing of what was asked for."
    assert feedback.blocks[1].text == "I would rather not."
    assert sessions.practice.next_sheet("r") is None  # until it was read
    assert sessions.practice.progress("r") == (1, 2)
    assert submit(sessions.practice, "r", "y", "1", "x") == "unknown_task"
    assert sessions.study.ratings().empty  # practice is kept apart from labels
    assert AnnotationDesk(sessions.study).progress("r") == (0, 24)
    (row,) = sessions.study.store.rows(sa.select(schema.practice_labels))
    assert (row.unit_id.rpartition(":")[0], row.label, row.draw) == ("practice:declines", "1", 0)


def test_practice_on_a_screen_with_all_rubrics(make_session):
    toml = '[training]\nfile = "training.toml"\nwalk_through = false\npass_mark = 1\n'
    both = {"rubrics": ["hedging", "refusal"], "annotation": {"screen": "all"}}
    sessions = Sessions(make_session(toml, {"training.toml": PRACTICE}, **both))
    for right in ("4", "1"):
        sheet = sessions.practice.next_sheet("r")
        assert [task.rubric.name for task in sheet.tasks] == ["hedging", "refusal"]
        ids = [task.task_id for task in sheet.tasks]
        sent = [Answer(submit_id=each, task_id=each, option_key=right) for each in ids]
        sessions.practice.submit_all("r", sent)
        feedback = sessions.practice.feedback("r", sessions.next_step("r"))
        assert [told.is_right for told in feedback.questions] == [True]  # hedging has none
        sessions.record_feedback_read("r", sessions.next_step("r"))
    assert sessions.next_step("r").name == "labelling"


def test_background_answers_are_a_table_of_raters(sessions):
    given = {"a": {"political_leaning": "Moderate", "age_group": "25 to 34"}, "b": {}}
    for rater, answers in given.items():
        steps = [sessions.next_step(rater).name]
        for do in (
            lambda rater: sessions.record_welcome_read(rater),
            lambda rater: sessions.decide_consent(rater, agreed=True),
            lambda rater: sessions.record_rubric_read(rater, sessions.next_step(rater).rubric),
            lambda rater: practise(sessions, rater, "5", "1"),
            lambda rater: sessions.answer_comprehension(rater, RIGHT, 0),
            lambda rater, answers=answers: sessions.answer_background(rater, answers),
        ):
            do(rater)
            # As after a crash: another process knows it from the store alone.
            steps.append(Sessions(sessions.study).next_step(rater).name)
        sessions.answer_background(rater, {"political_leaning": "Liberal"})  # too late
        assert steps == [
            "welcome", "consent", "rubric", "practice", "comprehension", "background", "labelling",
        ]  # fmt: skip
    assert sitting.raters_table(sessions.study).to_dict("records") == [
        {"rater_id": "a", "political_leaning": "Moderate", "age_group": "25 to 34", "education": ""}
    ]
    assert not set(sessions.study.ratings().columns) & {"political_leaning"}
    assert len(sessions.study.store.rows(sa.select(schema.background_answers))) == 2


def test_what_the_documentation_shows_is_a_session(make_session):
    page = Path(__file__).parents[3] / "docs" / "people.md"
    blocks = re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    settings = [block for block in blocks if not block.startswith("[[unit]]")]
    (units,) = [block for block in blocks if block.startswith("[[unit]]")]
    first, sides, attention, crowd, _, pay = settings
    sides, crowd = sides[sides.index("[[background") :], crowd[crowd.index("[prolific]") :]
    toml = first + sides + attention + crowd + pay
    study = make_session(toml, {"training.toml": units, "attention.toml": units})
    assert Sessions(study).steps == [
        "welcome", "consent", "side", "rubric", "practice", "comprehension", "labelling",
    ]  # fmt: skip
    assert claims.AttentionChecks(study).questions.keys() == {("check:plain-refusal", "refusal")}
    assert study.config.prolific is not None
    assert study.config.pay is not None


def test_settings_that_do_not_hold_are_one_sentence(make_session):
    folder = make_session().folder
    sound = (folder / "study.toml").read_text("utf-8")
    asks = '[[comprehension]]\nquestion = "q"\n'
    for toml, sentence in (
        ('[consent]\ntext = " "', "consent.text is ' '; it must have at least 1 character"),
        ("[training]\npass_mark = 2", "training.pass_mark is 2; it must be less than or equal"),
        ('[session]\nentry = "closed"', "session.entry is 'closed'; it must be 'open', 'inv"),
        (asks + 'options = ["a", "b"]\nanswer = "c"', "is none of its"),
        (asks + 'options = ["a", "a"]\nanswer = "a"', "are the same"),
        (CODES.replace("DONE1", "C 1"), "prolific.complete"),
        (SIDES.replace("side", "rater_id"), "key"),
        (SIDES.replace("side", "label") + "quotas = [1, 1]", "cannot have the key 'label'"),
        (SIDES + "quotas = [1]", "side needs a quota of people for each option"),
        (SIDES + "quotas = [0, 0]", "side needs a quota of people for each option, not all 0"),
        (SIDES + "quotas = [-2, 1]", "quotas.0 is -2; it must be greater than or equal to 0"),
        (TWO + "quotas = [1, 1]", "two background questions have quotas; keep those of one"),
        ("[attention]\nevery = 5", "attention.file is missing; add it"),
        ('[consents]\ntext = "x"', "consents is no known key"),
    ):
        (folder / "study.toml").write_text(f"{sound}\n{toml}\n", "utf-8")
        assert sentence in refused("", open_study, folder)


def test_a_file_beside_study_toml_is_shown_to_its_readers(make_session):
    texts = '[session]\ninstructions = "Read both."\n[consent]\ntext = "We keep your answers."\n'
    folder = make_session(texts, annotation={"languages": ["de", "es"]}).folder
    (folder / "consent.de.md").write_text("Wir bewahren Ihre Antworten auf.\n", "utf-8")
    with open_study(folder) as study:
        sessions = Sessions(study)
        german, spanish = (sessions.texts.in_language("consent", code) for code in ("de", "es"))
        unwritten = sessions.texts.in_language("instructions", "de")
        # Whoever agreed in one language is not asked in another.
        for rater, language in (("ada", "de"), ("bo", "en")):
            sessions.record_welcome_read(rater, language)
            sessions.decide_consent(rater, agreed=True, language=language)
            assert sessions.next_step(rater).name == "labelling"
    assert (german.text, german.language) == ("Wir bewahren Ihre Antworten auf.", "de")
    assert (spanish.text, spanish.language) == ("We keep your answers.", "en")
    assert (unwritten.text, unwritten.language) == ("Read both.", "en")
    (folder / "consent.de.md").write_text("Wir geben Ihre Antworten weiter.", "utf-8")
    with open_study(folder) as study:  # only whoever agreed to the text that is gone
        asked = [Sessions(study).next_step(rater).name for rater in ("ada", "bo")]
        assert asked == ["consent", "labelling"]
    (folder / "consent.es.md").write_bytes(b"\xff\xfe\xff")
    not_text = pytest.raises(InputError, match=r"consent\.es\.md is not UTF-8")
    with open_study(folder) as study, not_text:
        Sessions(study)


ROOT = Path(__file__).resolve().parents[3]
PROLIFIC = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}
REASON = "because ' of; <b>it</b>"


def live(folder: str) -> None:
    """A session from the first page to an adjudicator's decision, with every way back in it."""
    with open_study(folder) as study:
        sessions, desk = Sessions(study), AnnotationDesk(study)
        to_practice(sessions, "ann")
        practise(sessions, "ann", "5", "1")
        sessions.answer_comprehension("ann", RIGHT, 0)
        sessions.answer_background("ann", {"age_group": "25 to 34"})
        (task,) = desk.next_sheet("ann").tasks
        sent = [
            Answer(submit_id="s1", task_id=task.task_id, option_key="1", rationale=REASON),
            Flag(submit_id="s2", task_id=task.task_id, reason="other", text=REASON),
            Answer(submit_id="s3", task_id=task.task_id, option_key="2", edit=True),
        ]
        assert desk.submit_all("ann", sent) == ["stored"] * 3
        unit = str(study.ratings()["unit_id"].iloc[0])
        sessions.release("ann", "returned")
        sessions.readmit("ann")
        claims.pause(study.store, REASON, "lead")
        claims.resume(study.store, "", "lead")
        claims.exclude(study.store, "ann", REASON, "lead")
        claims.readmit(study.store, "ann", REASON, "lead")
        claims.exclude(study.store, "ann", REASON, "lead")
        access.set_account(study.store, "ada", "correct horse battery", "expert")
        access.disable_account(study.store, "ada")
        (link,) = access.make_invites(study, [""], 1)
        access.admit(study, {"invite": link.token} | PROLIFIC)
        access.revoke_invites(study, "")
        disagreements.decide(study, "ada", unit, "refusal", "4", REASON)
        disagreements.decide(study, "ada", unit, "refusal", "5", REASON)
        about = {"rubric": "refusal", "unit_id": unit, "grader": "g", "note": REASON}
        disagreements.sort_disagreement(study, "lead", **about, kind="people_wrong")
        disagreements.sort_disagreement(study, "lead", **about, kind="rubric_unclear")


@pytest.mark.slow
def test_what_was_done_is_there_after_a_kill(make_session, database):
    folder = make_session(EVERYTHING + TWO, {"training.toml": PRACTICE}, **database).folder
    dies = "import os, sys\nfrom tests.study.session.test_sessions import live\n"
    dies += "live(sys.argv[1])\nos.kill(os.getpid(), 9)\n"
    killed = subprocess.run([sys.executable, "-c", dies, str(folder)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL, os.strerror(abs(killed.returncode))
    with open_study(folder) as study:
        assert Sessions(study).next_step("ann").name == "labelling"
        assert sitting.raters_table(study).to_numpy().tolist() == [["ann", "a", "25 to 34"]]
        assert claims.oversight(study.store).exclusions["ann"].reason == REASON
        kinds = ["pause", "resume", "exclude", "readmit", "exclude"]
        assert claims.decisions_table(study.store)["kind"].tolist() == kinds
        assert (access.accounts(study.store), len(sitting.participants_table(study))) == ({}, 1)
        assert remarks_table(study.store)["text"].tolist() == [REASON] * 4
        (said,) = disagreements.sorted_cases(study)
        assert (said.kind, said.note) == ("rubric_unclear", REASON)
        ratings = study.ratings().set_index("rater_id")["label"]
        assert ratings.to_dict() == {"ann": "2", disagreements.adjudicator_id("ada"): "5"}


@pytest.mark.slow
def test_nothing_is_written_over_or_deleted(make_session):
    folder = make_session(EVERYTHING + TWO, {"training.toml": PRACTICE}).folder
    sent: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        sent.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        live(str(folder))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    filled = {name for each in sent for name in re.findall(r"^INSERT INTO (\w+)", each)}
    told_of = {"labels", "practice_labels", "remarks", "session_events", "lead_events"}
    told_of |= {"sorted_disagreements"}
    assert told_of <= filled <= schema.metadata.tables.keys()
    changed = r"(?i)^\s*(?:UPDATE|DELETE FROM|REPLACE INTO|INSERT INTO(?=.*DO UPDATE))\s+(\w+)"
    # Who holds which place at present; what was answered there stands in `labels`.
    assert {name for each in sent for name in re.findall(changed, each, re.DOTALL)} == {"claims"}


def enter(study: Study, participant: str, session: str = "") -> str:
    (link,) = access.make_invites(study, [""], hours=1)
    names = (participant, "s", session or f"s-{participant}")
    ids = zip(("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"), map(prolific_id, names), strict=True)
    return access.admit(study, {"invite": link.token, **dict(ids)}).rater_id


def prolific_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def label(desk: AnnotationDesk, rater: str, most: int = 1000) -> list[str]:
    """Label so many units; returns their ids in order."""
    return [claim_of(desk.study, task).unit_id for task in label_all(desk, rater, "1", most)]


def test_what_was_returned_is_dealt_to_others_and_its_labels_stay(make_session):
    study = make_session(pairs=3, raters_per_unit=1)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    first = enter(study, "p1")
    done = label(desk, first, 5)
    assert task_of(desk, first) is not None  # one is open
    second = enter(study, "p2")
    assert desk.progress(second) == (0, 12 - 6)
    assert [sessions.release(first, "returned") for _ in range(2)] == [1, 0]
    assert sessions.next_step(first).reason == "returned"
    others = label(desk, second)
    assert len(others) == 12 - 5
    assert not set(done) & set(others)
    assert study.ratings().groupby("rater_id").size().to_dict() == {first: 5, second: 7}


@pytest.mark.journey
def test_what_was_rejected_is_labelled_by_others_as_well(make_session):
    study = make_session(pairs=3, raters_per_unit=1)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    first, second = enter(study, "p1"), enter(study, "p2")
    done, late = label(desk, first, 5), task_of(desk, first)
    assert sessions.release(first, "rejected") == 6
    assert submit(desk, first, late, "2") == "stored"
    assert {*done, claim_of(study, late).unit_id} < set(label(desk, second))
    assert len(study.ratings()) == 12 + 6
    # A rejection that is taken back gives the rater their answers again.
    sessions.readmit(first)
    assert (sessions.next_step(first).name, desk.progress(first)) == ("labelling", (6, 6))
    assert task_of(desk, first) is None
    listed = [claim_of(study, row.task).unit_id for row in desk.earlier(first).rows]
    assert listed[:0:-1] == done  # in the order in which they were given


def test_a_check_that_was_given_back_unanswered_comes_again(make_session):
    values = '{ prompt = "Write.", response = "No." }'
    check = f'[[unit]]\nname = "c"\nexpected = {{ refusal = "5" }}\nvalues = {values}\n'
    attention = '[attention]\nfile = "checks.toml"\nevery = 2\n'
    study = make_session(attention, {"checks.toml": check}, pairs=1)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    rater = enter(study, "p1")
    label(desk, rater, 2)
    shown = desk.next_sheet(rater)
    sessions.release(rater, "returned")
    enter(study, "p1", "second")
    assert desk.next_sheet(rater) == shown
    label(desk, rater)
    assert (len(claims.attention_results(study)), desk.progress(rater)) == (1, (5, 5))


def test_prolifics_export_says_whose_places_are_free(make_session, tmp_path):
    study = make_session()
    raters = {name: enter(study, name) for name in ("p1", "p2", "p3", "p4", "p5")}
    assert rater_of(study, prolific_id("p1")) == rater_of(study, raters["p1"]) == raters["p1"]
    refused("nobody called 'p7' has taken part", rater_of, study, "p7")
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
    path = tmp_path / "export.csv"
    path.write_text("\n".join(["Submission id,Participant id,Status", *rows]), "utf-8")
    ended = {raters["p1"]: "returned", raters["p2"]: "timed_out", raters["p3"]: "rejected"}
    assert sitting.released_submissions(study, path) == ended
    late, sessions = raters["p2"], Sessions(study)
    sessions.release(late, ended.pop(late))
    sessions.readmit(late)  # which stays when the same list comes again
    assert sitting.released_submissions(study, path) == ended
    path.write_text(path.read_text("utf-8").replace("TIMED-OUT", "RETURNED"), "utf-8")
    assert sitting.released_submissions(study, path) == ended | {late: "returned"}
    for text, sentence in (
        ("Participant,Status\np1,RETURNED", "has no column 'Participant id'"),
        ("Participant id,State\np1,RETURNED", "has no column 'Status'"),
        ("Participant id,Status\np1,", "row 2: Status is empty"),
    ):
        path.write_text(text)
        refused(sentence, sitting.released_submissions, study, path)


@pytest.mark.parametrize(
    ("toml", "codes"),
    [
        ("", {"complete": ""}),
        (CODES, {"complete": "DONE1", "screened_out": "OUT2", "no_consent": "NO3"}),
        (CODES, {"stopped": "", "nothing_left": "DONE1", "returned": ""}),
        (MORE_CODES, {"stopped": "STOP4", "nothing_left": "NONE5"}),
        (MORE_CODES + 'returned = "BACK6"\n', {"returned": "BACK6"}),
    ],
)
def test_links_back_from_each_end(make_session, toml, codes):
    address, study = "https://app.prolific.com/submissions/complete?cc=", make_session(toml)
    expected = {end: code and address + code for end, code in codes.items()}
    assert {end: sitting.completion_url(study, end) for end in codes} == expected
    assert sitting.study_url("https://x.example/", "t.o-k") == (
        "https://x.example/?invite=t.o-k&PROLIFIC_PID={{%PROLIFIC_PID%}}"
        "&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )


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
        sessions.answer_comprehension(rater, ["this"], 0)
    for attempt in range(2):
        sessions.answer_comprehension("failed", ["that"], attempt)
    for rater in ends:
        label(desk, rater, 2 if rater == "stopped" else 3)
    for rater in ("done", "late", "idle"):
        sessions.complete(rater)
    claims.exclude(study.store, "stopped", "too fast", claims.STOPPED_BY)
    claims.exclude(study.store, "excluded", "too fast", "chair")
    claims.exclude(study.store, "late", "found out afterwards", "chair")
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
    why = "Stopped by a rule of the study: full pay, as study.toml says."
    assert (full["owed"], full["why"]) == (6.0, why)
    ten = make_session(ASKS + AMOUNTS, annotation={"units_per_rater": 10})
    assert everyone(ten)["stopped"]["owed"] == 1.2  # 2 of 10
    bare = everyone(make_session(ASKS))["stopped"]  # the table says why, without an amount
    assert bare["owed"] != bare["owed"]
    assert bare["why"] == "Stopped by a rule of the study: pay for 2 of 3 items."
    study = make_session(AMOUNTS)  # what a share is waits until someone has finished
    label(AnnotationDesk(study), "first", 2)
    claims.exclude(study.store, "first", "too fast", claims.STOPPED_BY)
    (row,) = session_times(study, Sessions(study)).to_dict("records")
    assert row["owed"] != row["owed"]
    assert "decide what share that is" in row["why"]


def test_what_is_owed_follows_from_how_a_part_ended():
    pay = PaySettings(complete=6, currency="GBP", screened_out=0.5, nothing_left=0.25)
    share, full = (pay.model_copy(update={"stopped": how}) for how in ("share", "full"))
    amounts = {"complete": 6.0, "screened_out": 0.5, "side_full": 0.5, "nothing_left": 0.25}
    amounts |= dict.fromkeys(("no_consent", "returned", "rejected", "labelling"), 0.0)
    amounts |= {"excluded": None, "timed_out": None}
    for state, amount in amounts.items():
        assert amount_owed(state, 2, 3, pay)[0] == amount
        assert amount_owed(state, 2, 3, None) == (None, amount_owed(state, 2, 3, pay)[1])
    for units, whole, terms, amount in (
        (2, 3, share, 4.0), (4, 3, share, 6.0), (2, 0, share, None), (2, 3, None, None),
        (2, 0, full, 6.0),
    ):  # fmt: skip
        assert amount_owed("stopped", units, whole, terms)[0] == amount


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
    study = make_session(AMOUNTS, pairs=2)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    assert (costs(study), costs(make_session())) == (sitting.Costs("GBP", 0.0), sitting.Costs())
    label_all(desk, "r", "1", 1, seconds=40.0)
    label(desk, "r", 2)
    (row,) = session_times(study, sessions).to_dict("records")
    assert (row["state"], row["units"], row["answers"]) == ("labelling", 3, 3)
    assert 40.0 <= row["active_seconds"] < 60.0
    label(desk, "r")
    sessions.complete("r")
    assert session_times(study, sessions)["state"].tolist() == ["complete"]
    assert (len(study.store.rows(sa.select(schema.session_events))), costs(study).owed) == (1, 6.0)


def test_a_moment_without_items_is_no_end_and_labels_without_times_count(make_session):
    study = make_session(AMOUNTS)
    desk, sessions = AnnotationDesk(study), Sessions(study)
    for ends, goes_on in (("nothing_left", "labelling"), ("complete", "complete")):
        for _ in range(2):
            sessions.complete("r")
        assert session_times(study, sessions)["state"].tolist() == [ends]
        label(desk, "r", 1)
        assert session_times(study, sessions)["state"].tolist() == [goes_on]
    assert events(sessions) == ["completed"] * 2
    with study.store.write() as connection:  # as versions before 0.3.0 imported them
        connection.execute(sa.update(schema.labels).values(created_at="3 May, noon", rater_id="s"))
    (_, row) = session_times(study, sessions).to_dict("records")
    assert [row[name] for name in ("state", "start", "end", "answers")] == ["labelling", "", "", 2]


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
    refused("'Up' is none of the answers", come, sessions, "ann", "Up")
    people = {"ann": "Left", "ben": "Right", "cy": "Left"}
    assert [come(sessions, *each) for each in people.items()] == [IN] * 3
    late = {"dan": "Left", "eve": "Right", "flo": "Neither"}
    assert [come(sessions, *each) for each in late.items()] == [FULL] * 3
    assert sessions.sides() == {"Left": (2, 2), "Right": (1, 1), "Neither": (0, 0)}
    for rater, other in (("ann", "Right"), ("dan", "Left")):
        sessions.answer_side(rater, other)  # in another window: too late
    assert dict(sitting.raters_table(study).to_numpy().tolist()) == people
    times = session_times(study, sessions).set_index("rater_id")
    assert times.loc["dan", ["state", "owed"]].tolist() == ["side_full", 0.0]
    assert times.loc["cy", "state"] == "labelling"  # who has chosen a side, and no more
    for rater in ("ann", "ben"):
        label_all(desk, rater, "1", 2)
    sides = exported_ratings(study)[["rater_id", "side"]].drop_duplicates().to_numpy().tolist()
    assert sides == [["ann", "Left"], ["ben", "Right"]]
    # Who was excluded, or gave the place back, has left it to another.
    claims.exclude(study.store, "ben", "too fast", "lead")
    sessions.release("cy", "returned")
    assert come(sessions, "gus", "Right") == come(sessions, "hal", "Left") == IN
    assert come(sessions, "ian", "Right") == FULL


@pytest.mark.parametrize("answers", [[], ["that", "that"]])  # no consent, or screened out
def test_who_is_let_in_after_a_change_has_a_place_unless_it_is_taken(make_session, answers):
    study = make_session(ASKS + QUOTAS + CODES + "places = 1\n")
    sessions, ann = Sessions(study), enter(study, "p1")
    sessions.decide_consent(ann, agreed=bool(answers))
    for attempt, answer in enumerate(answers):
        sessions.answer_side(ann, "Right")
        sessions.answer_comprehension(ann, [answer], attempt)
    ended, file = sessions.next_step(ann), study.folder / "study.toml"
    file.write_text(file.read_text("utf-8").replace("May we", "May I").replace("Which?", "Who?"))
    with open_study(study.folder) as changed:
        sessions = Sessions(changed)
        bob = enter(changed, "p2")
        assert (sessions.next_step(ann).reason, ended.name) == (ended.reason, "ended")
        sessions.release(bob, "returned")
        sessions.decide_consent(ann, agreed=True)
        sessions.answer_side(ann, "Right")
        sessions.answer_comprehension(ann, ["this"], 0)
        assert (sessions.next_step(ann).name, sessions.sides()["Right"]) == ("labelling", (1, 1))
        refused("all places in this study are taken", enter, changed, "p3")


def test_a_crowds_place_is_free_again_and_no_one_returns_to_a_full_side(make_session):
    study = make_session(QUOTAS + CODES + "places = 2\n")
    sessions, first, second = Sessions(study), enter(study, "p1"), enter(study, "p2")
    assert (come(sessions, first, "Right"), come(sessions, second, "Right")) == (IN, FULL)
    third = enter(study, "p3")  # in the place of the second
    assert come(sessions, third, "Left") == IN
    sessions.release(first, "returned")
    assert come(sessions, enter(study, "p4"), "Right") == IN
    sessions.release(third, "returned")
    with pytest.raises(Refused):  # there is a place, but none on this side
        enter(study, "p1", "again")
    assert enter(study, "p3", "again") == third


@pytest.mark.slow
def test_of_many_at_once_only_one_gets_the_last_place(make_session, database):
    study = make_session(QUOTAS, **database)
    sessions = [Sessions(study) for _ in range(8)]
    with ThreadPoolExecutor(8) as at_once:
        came = [*at_once.map(lambda n: come(sessions[n], f"r{n}", "Right"), range(8))]
    assert sorted(came) == sorted([IN, *[FULL] * 7])
