"""The running session: who is invited, whether it is paused, how large its sample is."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.lead_login import require
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.access.admission import LONGEST_HOURS, Invite, make_invites, new_code
from evenhand.study.desk.oversight import oversight, pause, resume
from evenhand.study.session.prolific import study_url

_MOST_INVITES = 200


def show_sessions(study: Study) -> None:
    who = require(study, "lead")
    _invite(study)
    _pause(study, who.name)
    _extend(study)


def _invite(study: Study) -> None:
    st.header("Invites", anchor=False)
    st.text("Each link admits one rater, under a code of their own, until it expires.")
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
        _show_links(made)


def _show_links(made: list[Invite]) -> None:
    base = f"{(st.context.url or '').partition('?')[0].rstrip('/')}/"
    st.text("Copy them now: a link is not shown again.")
    lines = (
        f"{each.rater_id} {base}?invite={each.token}"
        if each.rater_id
        else study_url(base, each.token)
        for each in made
    )
    st.code("\n".join(lines), language=None, wrap_lines=True)


def _pause(study: Study, name: str) -> None:
    st.header("Pause", anchor=False)
    if oversight(study.store).paused:
        st.text("The study is paused: nobody is given a further unit.")
        st.button("Go on", type="primary", on_click=resume, args=(study.store, "", name))
    else:
        st.text("While a study is paused, nobody gets a new unit; answers already begun are saved.")
        st.button("Pause the study", on_click=pause, args=(study.store, "", name))


def _extend(study: Study) -> None:
    st.header("Sample", anchor=False)
    sampled, total = len(study.store.sample()), len(study.store.pairs())
    st.text(f"{sampled} of {total} pairs are sampled.")
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
            st.rerun()
