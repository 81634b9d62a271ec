"""The running session: invitations, pause, and the size of its sample."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.lead.places import show_places
from evenhand.annotate_app.logins.lead_login import admitted, require
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
from evenhand.study.session.prolific import study_url
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
            "Rater codes, parted by commas; leave it empty for new ones", autocomplete="off"
        )
        count = st.number_input("How many new ones", 1, _MOST_INVITES, 1)
        hours = st.number_input("Good for so many hours", 1, int(LONGEST_HOURS), 168)
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
    base = f"{(st.context.url or '').partition('?')[0].rstrip('/')}/"
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
    sampled, total = len(study.store.sample()), len(study.store.pairs())
    st.text(written("lead.sampled", sampled=sampled, total=total))
    if sampled == total:
        return
    with st.form("extend", border=False):
        more = st.number_input("More pairs", 1, total - sampled, min(20, total - sampled))
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
