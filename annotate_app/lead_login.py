"""The login to the lead's pages as this session holds it: who it is, and the way out.

Below the door (`annotate_app.lead_entry`) and the pages (`annotate_app.lead`), which both ask here.
"""

from __future__ import annotations

import streamlit as st

from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import Role
from evenhand.study.access.lead_login import Visitor, visitor
from evenhand.texts import written

_LOGIN = "lead_login"
_LEAVING = "lead_leaving"


def known_login() -> str:
    """The login of this session; empty where there is none."""
    login: str = st.session_state.get(_LOGIN, "")
    return login


def keep_login(login: str) -> None:
    """Somebody has come in."""
    st.session_state[_LOGIN] = login
    st.session_state.pop(_LEAVING, None)


def forget_login() -> None:
    """Log out: the browser forgets the login, and so does this session."""
    st.session_state.pop(_LOGIN, None)
    st.session_state[_LEAVING] = True


def is_leaving() -> bool:
    """Whether the browser is to forget the login that it keeps."""
    return bool(st.session_state.get(_LEAVING, False))


def require(study: Study, *roles: Role) -> Visitor:
    """Who is there. Raises InputError unless their login is good, and for one of these roles.

    Every page asks, on every run: a login that is over, or an account that has ended, closes it.
    """
    found = visitor(study.store, known_login())
    if found.role not in roles:
        raise InputError(written("lead_door.not_yours"))
    return found


def admitted(study: Study, *roles: Role) -> Visitor | None:
    """As `require`, for a callback, which runs before the page asks: None where that will refuse.

    An act stands in a callback so that it is never lost: what a run reads is gone where another
    event interrupts the run before, and no event comes before the callbacks.
    """
    try:
        return require(study, *roles)
    except InputError:
        return None
