"""The page from the top: open the study, identify the rater, show the work."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from evenhand.annotate_app.language_choice import keep_language, present_language
from evenhand.annotate_app.languages import ENGLISH, Language
from evenhand.annotate_app.lead_entry import is_asked_for, show_lead_entry
from evenhand.annotate_app.logins.entry import (
    ask_about_new_code,
    ask_for_entry,
    current_rater,
    keep_login,
)
from evenhand.annotate_app.logins.single_sign_on import arrive
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.annotate_app.served_study import Desks, served
from evenhand.annotate_app.session_pages import show_step
from evenhand.annotate_app.sites import Site
from evenhand.annotate_app.unit_page import show_units, take_panel
from evenhand.annotate_app.unsent import tell_unsent
from evenhand.annotate_app.waiting import wait_for_store
from evenhand.errors import InputError, StoreAway

_HERE = Path(__file__).parent


def show_page(site: Site) -> None:
    """Draw the page of this study."""
    # An icon of our own: Streamlit's named icons are fetched from another host.
    icon = str(_HERE / "panel" / "icon.svg")
    st.set_page_config(page_title=ENGLISH.say("page.title"), page_icon=icon, layout="wide")
    panel = take_panel()
    try:
        desks = served(site).desks()
        study = desks.desk.study
        arrive(study)
        if is_asked_for():
            show_lead_entry(lambda: served(site).desks().desk.study)
        else:
            reader = present_language(study)
            st.set_page_config(page_title=reader.say("page.title"))
            _show_work(desks, reader)
    except InputError as error:
        show_complaint(str(error))
    except StoreAway as error:
        wait_for_store(error, panel)
        st.stop()  # before Streamlit forgets what was chosen on the page that is not there


def _show_work(desks: Desks, reader: Language) -> None:
    """Show the rater's next step: entry, a page of the session, or the panel."""
    desk, sessions = desks.desk, desks.sessions
    admission, complaint = None, ""
    try:
        admission = current_rater(desk)
    except InputError as error:
        complaint = reader.complaint(error)
    keep_login(desk.study, admission)
    if admission is not None and admission.is_new:
        keep_language(desk.study, reader, offered_here=True)
        ask_about_new_code(desk, admission, reader)
        return
    step = sessions.next_step(admission.rater_id) if admission else None
    if admission is None or step is None:
        keep_language(desk.study, reader, offered_here=True)
        tell_unsent(desk, reader)
        ask_for_entry(desk, reader, complaint)
    elif step.name in ("labelling", "practice"):
        show_units(desks, admission, reader, practice=step.name == "practice")
        keep_language(desk.study, reader, offered_here=False)  # the panel has the choice
    else:
        keep_language(desk.study, reader, offered_here=True)
        tell_unsent(desk, reader, admission.rater_id, over=step.name == "ended")
        show_step(sessions, admission, step, reader)
