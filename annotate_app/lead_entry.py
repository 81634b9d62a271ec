"""The door to the lead's pages: a link that works once, or name and password.

The login that either gives is kept in this browser window's session storage, so that a reload goes
on: it stands in no address, no log and no cookie, and another window has to log in for itself.
Agreement figures are not even loaded into the server before someone has come through here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app import strings
from evenhand.annotate_app.login_form import ask_for_password
from evenhand.annotate_app.writing import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import Role
from evenhand.study.access.lead import LINK_PARAMETER, Visitor, log_in, open_link, visitor

__all__ = ["forget_login", "is_asked_for", "require", "show_lead_entry"]

_INSIDE = "in"
"""What stands in the address instead of the link's token, once that was used."""
_LOGIN = "lead_login"
_COMPLAINT = "lead_complaint"
_LEAVING = "lead_leaving"
_KEEPER = "lead_keeper"

_keeper = component(
    "evenhand_login",
    html="<span hidden></span>",
    js=Path(__file__).with_name("login.js").read_text("utf-8"),
)


def is_asked_for() -> bool:
    """Whether the address asks for the lead's pages."""
    return LINK_PARAMETER in st.query_params


def show_lead_entry(study: Study) -> None:
    """The lead's pages for whom they are meant, the login for everyone else."""
    _use_link(study)
    _keep_login(study)
    try:
        require(study, "lead", "expert")
    except InputError as error:
        _ask_for_login(study, str(error))
        return
    from evenhand.annotate_app.lead.pages import show_pages

    show_pages(study)


def require(study: Study, *roles: Role) -> Visitor:
    """Who is there. Raises InputError unless their login is good, and for one of these roles.

    Every page asks, on every run: a login that is over, or an account that has ended, closes it.
    """
    found = visitor(study.store, st.session_state.get(_LOGIN, ""))
    if found.role not in roles:
        raise InputError(strings.LEAD_NOT_YOURS)
    return found


def forget_login() -> None:
    """Log out: the browser forgets the login, and so does this session."""
    st.session_state.pop(_LOGIN, None)
    st.session_state[_LEAVING] = True


def _use_link(study: Study) -> None:
    token = st.query_params.get(LINK_PARAMETER, "")
    if token in ("", _INSIDE):
        return
    try:
        _admit(open_link(study.store, token))
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)
    st.query_params[LINK_PARAMETER] = _INSIDE


def _keep_login(study: Study) -> None:
    """Have the browser keep the login of this session, or give back the one it has kept."""

    def take_back() -> None:
        kept = st.session_state[_KEEPER]["kept"]
        if isinstance(kept, str) and _LOGIN not in st.session_state:
            st.session_state[_LOGIN] = kept

    owner = f"{study.folder.resolve()}\n{study.config.name}"
    data = {
        "shelf": "evenhand-login-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
        "login": st.session_state.get(_LOGIN, ""),
        "forget": st.session_state.get(_LEAVING, False),
    }
    _keeper(key=_KEEPER, data=data, on_kept_change=take_back)


def _ask_for_login(study: Study, complaint: str) -> None:
    if _LOGIN in st.session_state:  # there was one, and it is not good any more
        st.session_state[_COMPLAINT] = complaint
        forget_login()
        st.rerun()
    with st.container(key="entry"):
        st.title(strings.LEAD_TITLE, anchor=False)
        st.text(strings.LEAD_TEXT)
        if entered := ask_for_password():
            try:
                _admit(log_in(study.store, *entered))
            except InputError as error:
                st.session_state[_COMPLAINT] = str(error)
            else:
                st.rerun()
        if complained := st.session_state.get(_COMPLAINT):
            show_complaint(complained)


def _admit(login: str) -> None:
    st.session_state[_LOGIN] = login
    st.session_state.pop(_LEAVING, None)
    st.session_state.pop(_COMPLAINT, None)
