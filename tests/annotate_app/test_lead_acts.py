"""Acts on the lead's pages: only by who may, never lost, and on the unit that was looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from evenhand.study import open_study
from evenhand.study.access.accounts import disable_account, set_account
from evenhand.study.desk.answers import Flag
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.oversight import oversight
from evenhand.study.desk.own_flags import Withdrawal
from evenhand.study.lead.disagreements import sorted_so_far
from harness.studies import task_of

PASSWORD = "correct horse battery"
UNIT = "p0001|secret-subject"


@pytest.fixture
def folder(make_study) -> Path:
    folder = make_study(2)
    with open_study(folder) as study:
        set_account(study.store, "ada", PASSWORD, "lead")
    return folder


def acted(folder: Path, act: str) -> AppTest:
    """A part of the lead's pages, for ada; with `cut` in the session, a run ends before it."""

    def script(folder: str, act: str, password: str) -> None:
        import streamlit as st

        from evenhand.analysis.people.disagreements import GraderDisagreement
        from evenhand.annotate_app import lead_entry
        from evenhand.annotate_app.lead import disagreements_page, flags_page, sessions_page
        from evenhand.study import open_study
        from evenhand.study.access.lead_login import log_in

        if st.session_state.get("cut"):
            st.stop()  # as Streamlit does when another event comes
        with open_study(folder) as study:
            if "in" not in st.session_state:
                lead_entry._admit(log_in(study.store, "ada", password))
                st.session_state["in"] = True
            if act == "pause":
                sessions_page.show_sessions(study)
            elif act == "flags":
                flags_page.show_flags(study)
            else:
                found = [
                    GraderDisagreement("shorter", "model", f"p{n:04d}|secret-subject", "L", {}, 1.0)
                    for n in (1, 2)
                ]
                abouts = [(each.rubric, each.unit_id, each.grader) for each in found]
                place = st.session_state.setdefault("place", disagreements_page._Place(abouts[0]))
                queue = disagreements_page._Queue(found, {}, abouts.index(place.at))
                disagreements_page._sort(study, queue, place)

    arguments = (str(folder), act, PASSWORD)
    return AppTest.from_function(script, args=arguments, default_timeout=60).run()


def button(app: AppTest, label: str):
    (found,) = [each for each in app.button if each.label == label]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ended", [False, True])
def test_who_has_ended_pauses_nothing(folder, ended):
    app = acted(folder, "pause")
    with open_study(folder) as study:
        set_account(study.store, "bea", PASSWORD, "lead")
        if ended:
            disable_account(study.store, "ada")
        button(app, "Pause the study").click().run()
        assert oversight(study.store).paused is not ended
    assert len(app.exception) == ended


@pytest.mark.slow
def test_a_flag_on_a_rubric_that_is_gone_does_not_block_the_others(folder):
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        desk.register("ann")
        task = task_of(desk, "ann")
        desk.submit_all(
            "ann",
            [
                Flag(submit_id=each, task_id=task.task_id, reason=each)
                for each in ("harmful", "other")
            ],
        )
        with study.store.write() as connection:
            connection.exec_driver_sql("UPDATE remarks SET rubric='gone' WHERE reason='harmful'")
    app = acted(folder, "flags")
    assert not app.exception
    assert [each.label for each in app.button].count("Mark as dealt with") == 2
    assert "no rubric" in "".join(each.proto.body for each in app.get("html"))


@pytest.mark.slow
def test_a_flag_that_was_withdrawn_is_shown_as_such(folder):
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "bea").task_id
        desk.submit_all("bea", [Flag(submit_id="odd", task_id=task, reason="other")])
        desk.submit_all("bea", [Withdrawal(submit_id="w", task_id=task, flag_id="odd")])
    app = acted(folder, "flags")
    said = [each.value for each in app.text]
    assert any(each.startswith("Withdrawn by bea on ") for each in said)
    assert "1 withdrawn by the annotators who raised them." in said
    assert not {each.label for each in app.button} & {"Open it again", "Mark as dealt with"}


@pytest.mark.slow
def test_what_was_sorted_is_kept_where_the_run_is_cut_short(folder):
    app = acted(folder, "sort")
    app.text_area[0].set_value("read twice")
    button(app, "Grader wrong").click()
    app.session_state["cut"] = True
    app.run()
    with open_study(folder) as study:
        (kept,) = sorted_so_far(study)
    assert (kept.unit_id, kept.kind, kept.note) == (UNIT, "grader_wrong", "read twice")
    assert kept.done_by == "ada"


@pytest.mark.slow
def test_of_two_keys_at_once_one_counts_and_the_other_is_told(folder):
    app = acted(folder, "sort")
    button(app, "Grader wrong").click()
    button(app, "People wrong").click()
    app.run()
    assert "nothing was stored" in "".join(each.proto.body for each in app.get("html"))
    with open_study(folder) as study:
        (kept,) = sorted_so_far(study)
    assert kept.unit_id == UNIT
    app.run()
    assert not app.get("html")
