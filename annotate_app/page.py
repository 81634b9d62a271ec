"""The page from the top: open the study, find out who is annotating, show the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from evenhand.annotate_app import strings
from evenhand.annotate_app.entry import ask_for_entry, current_rater, keep_login, log_out
from evenhand.annotate_app.lead_entry import is_asked_for, show_lead_entry
from evenhand.annotate_app.plain_text import block, show, show_complaint
from evenhand.annotate_app.session_pages import show_step
from evenhand.annotate_app.unit_page import show_practice, show_units
from evenhand.annotate_app.watch import start_watch
from evenhand.errors import InputError
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.sessions import Sessions

_HERE = Path(__file__).parent


def show_page(arguments: Sequence[str]) -> None:
    """Draw the page of the study whose folder the command line names."""
    # An icon of our own: Streamlit's named icons are fetched from another host.
    icon = str(_HERE / "panel" / "icon.svg")
    st.set_page_config(page_title=strings.PAGE_TITLE, page_icon=icon, layout="wide")
    st.html(_HERE / "page.css")
    show(block(strings.NO_ANSWER, "offline"))
    try:
        if not arguments:
            raise InputError(strings.NO_STUDY)
        desk, sessions = _desks(arguments[0])
        if is_asked_for():
            show_lead_entry(desk.study)
        else:
            _show_work(desk, sessions)
    except InputError as error:
        show_complaint(str(error))


def _show_work(desk: AnnotationDesk, sessions: Sessions) -> None:
    """What whoever is here has to do next."""
    try:
        admission = current_rater(desk)
    except InputError as error:
        keep_login(desk.study)
        ask_for_entry(desk, str(error))
        return
    keep_login(desk.study, admission)
    if admission is None:
        ask_for_entry(desk)
        return
    step = sessions.next_step(admission.rater_id)
    if step.name == "labelling":
        show_units(desk, sessions, admission, lambda: log_out(desk.study))
    elif step.name == "practice":
        show_practice(sessions, admission, lambda: log_out(desk.study))
    else:
        show_step(sessions, admission, step)


@st.cache_resource(show_spinner=False)
def _desks(folder: str) -> tuple[AnnotationDesk, Sessions]:
    """One study, and with it one database connection, for all sessions of this process."""
    study = open_study(folder)
    start_watch(study)
    return AnnotationDesk(study), Sessions(study)
