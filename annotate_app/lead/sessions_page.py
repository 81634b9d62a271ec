"""The running session: invitations, pause, and the size of its sample."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.lead.parts.uploads import MOST_MB, written_down
from evenhand.annotate_app.logins.lead_login import admitted, require, root_address
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.access.admission import (
    LONGEST_HOURS,
    Invite,
    invites_table,
    make_invites,
    revoke_invites,
)
from evenhand.study.access.participants import new_code
from evenhand.study.desk.oversight import oversight, pause, resume
from evenhand.study.prompts.pairs import prompts_noun
from evenhand.study.session.prolific import rater_of, released_submissions, study_url
from evenhand.study.session.sessions import RELEASE_REASONS, Sessions
from evenhand.study.session.times import session_times
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_MOST_INVITES = 200
_ANYONE = "anyone from Prolific"


def show_sessions(study: Study) -> None:
    who = require(study, "lead").name
    _invite(study, who)
    _revoke(study, who)
    show_places(study, who)
    _pause(study)
    _extend(study, who)


def _invite(study: Study, who: str) -> None:
    st.header("Invites", anchor=False)
    st.text(written("lead.invites"))
    with st.form("invite", border=False):
        codes = st.text_input(
            "Rater codes, separated by commas; leave it empty for new ones", autocomplete="off"
        )
        count = st.number_input("How many new ones", 1, _MOST_INVITES, 1)
        hours = st.number_input("Valid for so many hours", 1, int(LONGEST_HOURS), 168)
        links = st.form_submit_button("Make links")
        address = study.config.prolific is not None and st.form_submit_button(
            "Make the address for Prolific"
        )
    if not (links or address):
        return
    named = [code.strip() for code in codes.split(",") if code.strip()]
    raters = [""] if address else named or [new_code() for _ in range(count)]
    try:
        made = make_invites(study, raters, hours)
    except InputError as error:
        show_complaint(str(error))
    else:
        note_act(study.store, "invite", "", f"made: {len(made)}", who)
        _show_links(made)
        if address and not (study.config.prolific and study.config.prolific.signed_for):
            st.text(written("lead.prolific_known_id"))


def _revoke(study: Study, who: str) -> None:
    made = invites_table(study)
    if made.empty:
        st.text(written("lead.no_invites"))
        return
    raters = made["rater_id"].tolist()
    titles = {"who": "For", "open": "Links", "revoked": "Revoked", "last_made": "Last made (UTC)"}
    shown = made.assign(
        who=made["rater_id"].replace("", _ANYONE), last_made=made["last_made"].map(to_the_minute)
    )
    show_table(shown, "Links that were made", titles)
    with st.form("revoke", border=False):
        rater = st.selectbox(
            "Revoke the links of",
            raters,
            index=None,
            format_func=lambda name: name or _ANYONE,
            placeholder="Choose whose",
        )
        sent = st.form_submit_button("Revoke")
    if sent and rater is not None:
        revoked = revoke_invites(study, rater)
        note_act(study.store, "invite", rater, f"revoked: {revoked}", who)
        st.text(written("lead.revoked", count=revoked))


def _show_links(made: list[Invite]) -> None:
    base = root_address()
    st.text(written("lead.links_once"))
    lines = (
        f"{each.rater_id} {base}?invite={each.token}"
        if each.rater_id
        else study_url(base, each.token)
        for each in made
    )
    st.code("\n".join(lines), language=None, wrap_lines=True)


def _pause(study: Study) -> None:
    st.header("Pause", anchor=False)
    if oversight(study.store).paused:
        st.text(written("lead.paused"))
        st.button("Go on", type="primary", on_click=_turn, args=(study, resume))
    else:
        st.text(written("lead.pausing"))
        st.button("Pause the study", on_click=_turn, args=(study, pause))


def _turn(study: Study, act: Callable[..., None]) -> None:
    if who := admitted(study, "lead"):
        act(study.store, "", who.name)


def _extend(study: Study, who: str) -> None:
    st.header("Sample", anchor=False)
    pairs = study.store.pairs()
    sampled, total, noun = len(study.store.sample()), len(pairs), prompts_noun(pairs)
    st.text(written("lead.sampled", sampled=sampled, total=total, noun=noun))
    if sampled == total:
        return
    with st.form("extend", border=False):
        more = st.number_input(f"More {noun}", 1, total - sampled, min(20, total - sampled))
        sent = st.form_submit_button("Enlarge the sample")
    if sent:
        try:
            with open_study(study.folder) as present:  # its settings may be newer than ours
                extend_sample(present, int(more))
        except InputError as error:
            show_complaint(str(error))
        else:
            note_act(study.store, "sample", "", f"pairs: {sampled + int(more)}", who)
            st.rerun()


# Participants' places: given back, taken up again, and what is owed


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
