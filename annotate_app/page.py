"""The script that Streamlit runs for every page view: it opens the study, identifies the visitor
and draws their page (an annotator's items in the panel, a component), or waits for the store.
"""

import logging
import time
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from evenhand.annotate_app import entry, rater_pages
from evenhand.annotate_app.html_texts import block, heading, in_every_language, show, show_complaint
from evenhand.annotate_app.languages import ENGLISH, Language
from evenhand.annotate_app.sites import Desks, Site, present_site, served
from evenhand.errors import InputError, StoreAway
from evenhand.texts import written


def show_page(site: Site) -> None:
    """Draw the visitor's page: an annotator's next step, or a page of the lead's."""
    # A file, as Streamlit fetches the icons that it names from another host.
    icon = str(Path(__file__).with_name("panel") / "icon.svg")
    st.set_page_config(page_title=ENGLISH.say("page.title"), page_icon=icon, layout="wide")
    panel = rater_pages.pop_panel()  # what the last run drew
    try:
        desks = served(site).desks()
        study = desks.desk.study
        entry.arrive(study)
        if entry.is_lead_asked_for():
            entry.show_lead_entry(lambda: served(site).desks().desk.study)  # its files may change
        else:
            language = rater_pages.present_language(study)
            st.set_page_config(page_title=language.say("page.title"))
            _show_work(desks, language)
    except InputError as error:
        show_complaint(str(error))
    except StoreAway as error:
        wait_for_store(error, panel)
        st.stop()  # at the end of a run Streamlit would forget the fields that were not drawn


def _show_work(desks: Desks, language: Language) -> None:
    """Draw an annotator's next step: entry, a page of the session, or the panel with an item."""
    desk, sessions = desks.desk, desks.sessions  # of the items; of the steps before and after them
    admission, complaint = None, ""
    try:
        admission = entry.current_rater(desk)
    except InputError as error:
        complaint = language.complaint(error)
    entry.keep_login(desk.study, admission)
    step = sessions.next_step(admission.rater_id) if admission and not admission.is_new else None
    if admission and step and step.name in ("labelling", "practice"):
        rater_pages.show_items(desks, admission, language, practice=step.name == "practice")
        rater_pages.keep_language(desk.study, language, in_panel=True)
        return
    rater_pages.keep_language(desk.study, language, in_panel=False)
    if admission is None:
        rater_pages.show_unsent(desk, language)
        entry.ask_for_entry(desk, language, complaint)
    elif step is None:
        entry.confirm_new_code(desk, admission, language)
    else:
        rater_pages.show_unsent(desk, language, admission.rater_id, is_over=step.name == "ended")
        rater_pages.show_step(sessions, admission, step, language)


# ---- while the store does not answer ------------------------------------------------------------
# The panel stays if there is one, else a text is drawn, until the store is back. Streamlit alone
# would show an error box until the page is reloaded.

_RETRY_SECONDS = 3.0

_log = logging.getLogger(__name__)


def wait_for_store(error: StoreAway, panel: rater_pages.DrawnPanel | None) -> None:
    """Draw the panel, if the page had one, or a text, until the store answers again."""
    _log.warning("%s", error)
    if panel is not None:
        panel.draw()
    else:
        with st.container(key="entry"):
            show(*_waiting_texts())
    _redraw_later()


def on_script_error(error: Exception) -> bool:
    """Handle a store that does not answer after a click, or while a part of the page is redrawn.
    Return False for every other error, which Streamlit handles.
    """
    if not isinstance(error, StoreAway):
        return False
    context = get_script_run_ctx()
    if context is not None and context.fragment_ids_this_run:
        _log.warning("%s", error)
        show(*_waiting_texts())
        _redraw_later()
    else:
        wait_for_store(error, rater_pages.pop_panel())
    return True


def _waiting_texts() -> tuple[str, str]:
    """Return the heading and the text of the page that waits, as HTML."""
    if entry.is_lead_asked_for():
        title, text = written("lead_door.away_title"), written("lead_door.away_text")
        return heading(title, 1), block(text)
    return in_every_language("page.away_title", "h1"), in_every_language("page.waiting_text")


def _redraw_later() -> None:
    """Draw the whole page again after `_RETRY_SECONDS`."""
    started_at = time.monotonic()

    @st.fragment(run_every=_RETRY_SECONDS)
    def redraw() -> None:
        if time.monotonic() - started_at > _RETRY_SECONDS / 2:  # not within the present run
            st.rerun()

    redraw()


if __name__ == "__main__" and (site := present_site()) is not None:
    show_page(site)
