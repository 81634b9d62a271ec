"""Participants and their progress; places given back, one by one or by Prolific's list."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.lead.parts.uploads import MOST_MB, written_down
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.session.prolific import rater_of, released_submissions
from evenhand.study.session.sessions import RELEASE_REASONS, Sessions
from evenhand.study.session.times import session_times
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_READMIT = "readmit"
_ACTS = {
    "returned": "Returned: give the place back",
    "timed_out": "Timed out: give the place back",
    "rejected": "Rejected: give back the answered places too",
    _READMIT: "Let them go on after all",
}


def show_places(study: Study, who: str) -> None:
    """The part of the page on people's places. The caller has checked the visitor's login."""
    st.header("Places", anchor=False)
    sessions = Sessions(study)
    _show_times(study, sessions)
    st.text(written("lead.places"))
    with st.form("places", border=False, clear_on_submit=True):
        name = st.text_input("Rater code or participant id", autocomplete="off")
        act = st.selectbox("What happened", list(_ACTS), format_func=_ACTS.__getitem__)
        done = st.form_submit_button("Change the place")
    try:
        if done:
            _say(study, who, {rater_of(study, name.strip()): act}, sessions)
        if study.config.prolific is not None:
            _take_submissions(study, who, sessions)
    except InputError as error:
        show_complaint(str(error))


def _take_submissions(study: Study, who: str, sessions: Sessions) -> None:
    with st.form("submissions", border=False, clear_on_submit=True):
        file = st.file_uploader(
            written("lead.submissions"), ["csv"], max_upload_size=MOST_MB, key="submissions_file"
        )
        sent = st.form_submit_button("Take in the list")
    if sent and file is not None:
        with written_down(submissions=file) as paths:
            path = paths["submissions"]
            reasons = released_submissions(study, path) if path is not None else {}
        if not reasons:
            st.text(written("lead.submissions_none"))
        _say(study, who, reasons, sessions)


def _say(study: Study, who: str, acts: dict[str, str], sessions: Sessions) -> None:
    """Carry out the act chosen for each rater, and show the result."""
    for rater, act in acts.items():
        if act in RELEASE_REASONS:
            count = sessions.release(rater, act)
            st.text(written("lead.freed", rater=rater, count=count))
        else:
            sessions.readmit(rater)
            st.text(written("session.readmitted", rater=rater))
        note_act(study.store, "place", rater, act, who)


def _show_times(study: Study, sessions: Sessions) -> None:
    times = session_times(study, sessions)
    if times.empty:
        st.text(written("session.nobody"))
        return
    times = times.assign(minutes=times["active_seconds"] / 60, end=times["end"].map(to_the_minute))
    titles = {
        "rater_id": "Rater",
        "state": "State",
        "units": "Units",
        "minutes": "Active minutes",
        "end": "Last seen (UTC)",
        "owed": "Owed",
        "why": "Why",
    }
    with st.expander("Who took part"):
        show_table(times, "Who took part", titles, {"minutes": ".1f", "owed": ".2f"})
