"""The login to the lead's pages: a link that works once, or name and password.

Agreement figures are not even loaded into the server before someone has logged in here.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from evenhand.annotate_app.drawn import show_complaint
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.logins.browser import present_browser
from evenhand.annotate_app.logins.entry import ask_for_password, offer
from evenhand.annotate_app.logins.lead_login import (
    LOGIN,
    hidden_page,
    present_place,
    require,
)
from evenhand.annotate_app.sites import visitor_address
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import LINK_PARAMETER, log_in, open_link
from evenhand.texts import written

_INSIDE = "in"
"""Value in the address in place of the link's token, once that was used."""
_COMPLAINT = "lead_complaint"


def is_asked_for() -> bool:
    """Return True if the address asks for the lead's pages."""
    return LINK_PARAMETER in st.query_params or bool(present_place())


def show_lead_entry(present: Callable[[], Study]) -> None:
    """The lead's pages for visitors who may see them, the login for everyone else; of the study as
    it is at present, whenever a page is drawn.
    """
    study = present()
    _use_link(study)
    if not LOGIN.known():
        _stay_at_address()  # before the browser may give its login back
    LOGIN.show(study)
    try:
        require(study, "lead", "expert")
    except InputError as error:
        _ask_for_login(study, str(error))
        return
    from evenhand.annotate_app.lead.pages import show_pages

    show_pages(present)


def _use_link(study: Study) -> None:
    token = st.query_params.get(LINK_PARAMETER, "")
    if token in ("", _INSIDE):
        return
    try:
        _admit(open_link(study.store, token))
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)
    if present_place():
        del st.query_params[LINK_PARAMETER]
    else:
        st.query_params[LINK_PARAMETER] = _INSIDE


def _ask_for_login(study: Study, complaint: str) -> None:
    if LOGIN.known():  # there was one, and it is not good any more
        st.session_state[_COMPLAINT] = complaint
        LOGIN.forget()
        st.rerun()
    with st.container(key="entry"):
        st.title(written("lead_door.title"), anchor=False)
        st.text(written("lead_door.text"))
        offer(study, "lead", ENGLISH)
        if entered := ask_for_password(ENGLISH):
            try:
                _admit(log_in(study.store, *entered, visitor_address(), present_browser()))
            except InputError as error:
                st.session_state[_COMPLAINT] = str(error)
            else:
                st.rerun()
        if complained := st.session_state.get(_COMPLAINT):
            show_complaint(complained)


def _stay_at_address() -> None:
    """Have the page that was asked for shown after the login. No other page is named here."""
    places, title = {"", present_place()}, written("lead_door.title")
    st.navigation([hidden_page(place, title, lambda: None) for place in places], position="hidden")


def _admit(login: str) -> None:
    LOGIN.keep(login)
    st.session_state.pop(_COMPLAINT, None)
