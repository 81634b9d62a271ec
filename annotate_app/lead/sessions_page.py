"""What the lead does to the running session: pause it, let it go on, enlarge its sample."""

from __future__ import annotations

import streamlit as st

from annotate_app.lead_entry import require
from annotate_app.writing import show_complaint
from rubrics.errors import InputError
from study import Study, extend_sample, open_study
from study.oversight import oversight, pause, resume

__all__ = ["show_sessions"]


def show_sessions(study: Study) -> None:
    who = require(study, "lead")
    _pause(study, who.name)
    _extend(study)


def _pause(study: Study, name: str) -> None:
    st.header("Pause", anchor=False)
    if oversight(study.store).paused:
        st.text("The study is paused: nobody is given a further unit.")
        st.button("Go on", type="primary", on_click=resume, args=(study.store, "", name))
    else:
        st.text("While a study is paused nobody is given a unit; answers on their way are taken.")
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
