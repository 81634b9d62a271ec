"""The login to the lead's pages as this session holds it: the visitor, and the way out.

Below the door (`annotate_app.lead_entry`) and the pages (`annotate_app.lead`), which both ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.util import calc_hash

from evenhand.annotate_app.logins.browser import KeptLogin, give_pass, take_pass
from evenhand.errors import InputError, StoreAway
from evenhand.study import Study
from evenhand.study.access.accounts import Role, Visitor, log_out, visitor
from evenhand.texts import written

LOGIN = KeptLogin("lead")
FIRST_PLACE = "overview"
PLACES = frozenset(
    (
        FIRST_PLACE,
        "progress",
        "agreement",
        "raters",
        "flags",
        "adjudication",
        "disagreements",
        "sessions",
        "accounts",
        "log",
        "settings",
        "texts",
        "rubrics",
        "training-and-checks",
        "new-study",
        "export",
    )
)
"""The pages' addresses: all that the address of the root can be followed by."""
LINKS = {calc_hash(place): place for place in PLACES}
"""The pages by the names that `st.navigation` gives them."""


def place_of(title: str) -> str:
    """Return the address of the page with this title, behind that of the root."""
    return title.lower().replace(" ", "-")


def present_place() -> str:
    """Return the page that the browser asks for, by its link or address; "" if it asks for none."""
    if (context := get_script_run_ctx()) is None:
        return ""
    by_address = urlsplit(context.context_info.url if context.context_info else "").path
    place = LINKS.get(context.page_script_hash, by_address.rpartition("/")[2])
    return place if place in PLACES else ""


def root_address() -> str:
    """Return the address at which raters begin, as the browser of this session has it."""
    before, _, place = (st.context.url or "").partition("?")[0].rpartition("/")
    return f"{before}/" if place in ("", *PLACES) else f"{before}/{place}/"


def hidden_page(place: str, title: str, show: Callable[[], None]) -> StreamlitPage:
    """A page that no list of pages names; that of "" is shown at every address without its own."""
    return st.Page(show, title=title, url_path=place, default=not place, visibility="hidden")


def leave(study: Study, login: str) -> None:
    """Log out: the login is no longer valid, here or anywhere."""
    log_out(study.store, login)
    LOGIN.forget(also_at_provider=True)
    take_pass()


def require(study: Study, *roles: Role) -> Visitor:
    """Return the visitor. Raises InputError unless their login is valid, and for one of these
    roles.

    Every page checks, on every run: an expired login, or an account that has ended, closes it.
    """
    try:
        found = visitor(study.store, LOGIN.known())
    except InputError:
        take_pass()
        raise
    if found.role == "lead":
        login = LOGIN.known()
        give_pass(lambda: _is_good(study, login))
    return _of_role(found, roles)


def visitor_of(study: Study, login: str, *roles: Role) -> Visitor:
    """As `require`, for a callback, without a call of Streamlit's."""
    return _of_role(visitor(study.store, login), roles)


def _of_role(found: Visitor, roles: tuple[Role, ...]) -> Visitor:
    if found.role not in roles:
        raise InputError(written("lead_door.not_yours"))
    return found


def _is_good(study: Study, login: str) -> bool:
    try:
        return visitor(study.store, login).role == "lead"
    except (InputError, StoreAway):
        return False
