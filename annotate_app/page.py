"""The page from the top: open the study, identify the rater, show the work; or await the store.

Streamlit runs this file for every page view; `app.py` sets up the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from evenhand.annotate_app.entry import (
    arrive,
    ask_about_new_code,
    ask_for_entry,
    current_rater,
    is_lead_asked_for,
    keep_login,
    show_lead_entry,
)
from evenhand.annotate_app.html_texts import block, heading, in_every_language, show, show_complaint
from evenhand.annotate_app.languages import ENGLISH, Language
from evenhand.annotate_app.rater_pages import (
    keep_language,
    present_language,
    show_step,
    show_units,
    take_panel,
    tell_unsent,
)
from evenhand.annotate_app.sites import Desks, Site, present_site, served
from evenhand.errors import InputError, StoreAway
from evenhand.texts import written


def show_page(site: Site) -> None:
    """Draw the page of this study."""
    # An icon of our own: Streamlit's named icons are fetched from another host.
    icon = str(Path(__file__).with_name("panel") / "icon.svg")
    st.set_page_config(page_title=ENGLISH.say("page.title"), page_icon=icon, layout="wide")
    panel = take_panel()
    try:
        desks = served(site).desks()
        study = desks.desk.study
        arrive(study)
        if is_lead_asked_for():
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


# While the store is away: the panel stays if there is one, else our own words are shown, and all
# goes on by itself. Streamlit would show an exception box, which stays until a reload.

_AGAIN_AFTER = 3.0

_log = logging.getLogger(__name__)


def wait_for_store(error: StoreAway, panel: Callable[[], None] | None) -> None:
    """Draw the page until the store is back: the panel if there was one."""
    _log.warning("%s", error)
    if panel is not None:
        panel()
    else:
        with st.container(key="entry"):
            show(*_words())
    _come_back()


def on_script_error(error: Exception) -> bool:
    """Handle a store that is away in a part of the page that runs by itself: a click, or a table
    that is redrawn every few seconds. Return False for every other error, which Streamlit handles.
    """
    if not isinstance(error, StoreAway):
        return False
    context = get_script_run_ctx()
    if context is not None and context.fragment_ids_this_run:
        _log.warning("%s", error)
        show(*_words())
        _come_back()
    else:
        wait_for_store(error, take_panel())
    return True


def _words() -> tuple[str, str]:
    if is_lead_asked_for():
        title, text = written("lead_door.away_title"), written("lead_door.away_text")
        return heading(title, 1), block(text)
    return in_every_language("page.away_title", "h1"), in_every_language("page.waiting_text")


def _come_back() -> None:
    """Have the whole page drawn again in some seconds."""
    began = time.monotonic()

    @st.fragment(run_every=_AGAIN_AFTER)
    def again() -> None:
        if time.monotonic() - began > _AGAIN_AFTER / 2:  # not as part of the present run
            st.rerun()

    again()


if __name__ == "__main__" and (site := present_site()) is not None:
    show_page(site)
