"""Whatever people and the lead do is on disk when they are told so, and is never written over."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.access.accounts import accounts, disable_account, set_account
from evenhand.study.access.admission import admit, make_invites, revoke_invites
from evenhand.study.desk.answers import Answer, Flag
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import (
    decisions_table,
    exclude,
    oversight,
    pause,
    readmit,
    resume,
)
from evenhand.study.lead.adjudication import adjudicator_id, decide
from evenhand.study.lead.disagreements import sort_disagreement, sorted_so_far
from evenhand.study.session.sessions import Sessions, participants_table
from evenhand.study.session.times import raters_table
from evenhand.study.store.logs.answers import remarks_table
from evenhand.study.store.schema import metadata
from tests.study.session.test_sessions import EVERYTHING, PRACTICE, RIGHT, practise, to_practice

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
    assert [receipt.status for receipt in desk.submit_all(rater, sent)] == ["stored"] * 3
    ratings = desk.study.ratings()
    return str(ratings.loc[ratings["rater_id"] == rater, "unit_id"].iloc[0])


@pytest.mark.slow
def test_what_was_done_is_there_after_a_kill(make_session) -> None:
    folder = make_session(EVERYTHING, {"training.toml": PRACTICE}).folder
    dies = (
        "import os, signal, sys\n"
        "from tests.study.session.test_durability import live\n"
        "live(sys.argv[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", dies, str(folder)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL, os.strerror(abs(killed.returncode))
    with open_study(folder) as study:
        assert Sessions(study).next_step("ann").name == "labelling"
        assert raters_table(study)["age_group"].tolist() == ["25 to 34"]
        assert oversight(study.store).exclusions["ann"].reason == REASON
        kinds = ["pause", "resume", "exclude", "readmit", "exclude"]
        assert decisions_table(study.store)["kind"].tolist() == kinds
        assert accounts(study.store) == {}
        assert len(participants_table(study)) == 1
        assert remarks_table(study.store)["text"].tolist() == [REASON] * 4
        (said,) = sorted_so_far(study)
        assert (said.kind, said.note) == ("rubric_unclear", REASON)
        ratings = study.ratings().set_index("rater_id")["label"]
        assert ratings.to_dict() == {"ann": "2", adjudicator_id("ada"): "5"}


@pytest.mark.slow
def test_nothing_is_written_over_or_deleted(make_session) -> None:
    folder = make_session(EVERYTHING, {"training.toml": PRACTICE}).folder
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
