"""While the store is away: the panel stays if there is one, else our own words are shown, and all
goes on by itself. Streamlit would show an exception box, which stays until a reload.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from evenhand.annotate_app.lead_entry import is_asked_for
from evenhand.annotate_app.plain_text import block, heading, said, show
from evenhand.annotate_app.unit_page import take_panel
from evenhand.errors import StoreAway
from evenhand.texts import written

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
    if is_asked_for():
        title, text = written("lead_door.away_title"), written("lead_door.away_text")
        return heading(title, 1), block(text)
    return said("page.away_title", "h1"), said("page.waiting_text")


def _come_back() -> None:
    """Have the whole page drawn again in some seconds."""
    began = time.monotonic()

    @st.fragment(run_every=_AGAIN_AFTER)
    def again() -> None:
        if time.monotonic() - began > _AGAIN_AFTER / 2:  # not as part of the present run
            st.rerun()

    again()
