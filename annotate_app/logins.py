"""Logins: the identity of a browser, the login that one of its windows keeps, and the visitor of
the lead's pages.

A browser is known by a cookie that scripts cannot read, and that no address, log or referrer holds.
Permissions of a Streamlit session depend on that cookie: the session's id is seen in addresses.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from starlette.types import Scope
from streamlit.components.v2 import component
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.util import calc_hash

from evenhand.annotate_app.sites import STUDY, base_path, headers_of, is_secure
from evenhand.errors import InputError, StoreAway
from evenhand.study import Study
from evenhand.study.access import Role, Visitor, log_out, visitor
from evenhand.texts import written

HEADER = b"x-evenhand-browser"
"""Header that tells Streamlit the browser (`trustedUserHeaders`); one from a client is dropped."""
_SUBPROTOCOLS = b"sec-websocket-protocol"
_COOKIE_NAME = "evenhand_session"
_COOKIE_VALUE = re.compile(r"[\w-]{43}", re.ASCII)  # as `secrets.token_urlsafe(32)` makes them
_DIGITS = 32  # hexadecimal, of a browser's digest


def browser_of(scope: Scope) -> str:
    """Return a digest of the browser's cookie, which tells browsers apart; "" if there is none."""
    for header in headers_of(scope, b"cookie"):
        with suppress(CookieError):
            cookie = SimpleCookie(header).get(_cookie_name(scope))
            if cookie is not None and _COOKIE_VALUE.fullmatch(cookie.value):
                return hashlib.sha256(cookie.value.encode()).hexdigest()[:_DIGITS]
    return ""


def new_cookie(scope: Scope) -> bytes:
    """Return the value of the header that gives a browser its cookie, until it is closed."""
    secure = "; Secure" if is_secure(scope) else ""
    cookie = f"{_cookie_name(scope)}={secrets.token_urlsafe(32)}"
    return f"{cookie}; Path=/; HttpOnly; SameSite=Lax{secure}".encode()


def bound_to_browser(scope: Scope) -> Scope:
    """Return the connection of a page with its browser's digest in `HEADER` and its study's path in
    `STUDY`, so that Streamlit continues a session only where it began. A browser without our cookie
    continues none: of the header "subprotocol, token, session", the session is removed.
    """
    browser = browser_of(scope)
    headers = []
    for name, value in scope["headers"]:
        if name == _SUBPROTOCOLS and not browser:
            headers.append((name, b",".join(value.split(b",")[:2])))
        elif name not in (HEADER, STUDY):
            headers.append((name, value))
    headers += [(HEADER, browser.encode()), (STUDY, base_path(scope).encode())]
    return {**scope, "headers": headers}


def present_browser() -> str:
    """Return the digest of the browser in whose session a page is being drawn."""
    return str(st.user.to_dict().get("browser", ""))


def _cookie_name(scope: Scope) -> str:
    """Return the name of the cookie, one for each study of an address. With the prefix `__Host-`,
    no page of a neighbouring host can set it (RFC 6265bis, 4.1.3.2).
    """
    name = _COOKIE_NAME + base_path(scope).replace("/", "_")
    return f"__Host-{name}" if is_secure(scope) else name


# Passes: a lead's permission to upload files, and to download those that a page offers, in the
# browser in which they are logged in, for as long as the login is valid.

_MOST_PASSES = 200


@dataclass(frozen=True)
class _Pass:
    browser: str  # the digest of its cookie
    is_valid: Callable[[], bool]  # asks the store whether the login is still valid


_passes: dict[str, _Pass] = {}  # by session of this process, the latest last


def give_pass(is_valid: Callable[[], bool]) -> None:
    """Permit uploads and downloads in this session while `is_valid()`, which asks the store."""
    if session := _present_session():
        _passes.pop(session, None)  # so that its new pass is the latest
        _passes[session] = _Pass(present_browser(), is_valid)
        while len(_passes) > _MOST_PASSES:
            _passes.pop(next(iter(_passes)))


def revoke_pass() -> None:
    """Revoke this session's permission to upload and download."""
    _passes.pop(_present_session(), None)


def may_upload(session: str, browser: str) -> bool:
    """Return True if this browser may send the session a file, as the store confirms."""
    session_pass = _passes.get(session)
    return bool(session_pass and session_pass.browser == browser and session_pass.is_valid())


def may_download(browser: str) -> bool:
    """Return True if this browser may fetch what a lead's page offers, as the store confirms."""
    passes = [*_passes.values()]  # another thread may add one while the store is asked
    return bool(browser) and any(p.browser == browser and p.is_valid() for p in passes)


def _present_session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


# A login is kept in the session storage of one window: it is in no address, log or cookie and
# survives a reload; another window has to log in by itself.

_keeper = component(
    "evenhand_login",
    html="<span hidden></span>",
    js=Path(__file__).with_name("kept_login.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class KeptLogin:
    """The login of one kind as this session holds it: "lead", or "label" for annotators."""

    kind: str

    def held(self) -> str:
        """Return the login of this session; "" if there is none."""
        return str(st.session_state.get(f"{self.kind}_login", ""))

    def keep(self, login: str) -> None:
        """Hold the login of somebody who has just logged in."""
        st.session_state[f"{self.kind}_login"] = login
        st.session_state.pop(f"{self.kind}_leaving", None)

    def forget(self, also_at_provider: bool = False) -> None:
        """Forget the login, in the browser and in this session. A logout also ends the single
        sign-on (`also_at_provider`), the end of an expired login does not.
        """
        st.session_state.pop(f"{self.kind}_login", None)
        st.session_state[f"{self.kind}_leaving"] = True
        st.session_state[f"{self.kind}_leaving_provider"] = also_at_provider

    def is_leaving(self) -> bool:
        """Return True if the browser should forget the login that it keeps."""
        return bool(st.session_state.get(f"{self.kind}_leaving", False))

    def show(self, study: Study) -> None:
        """Draw the component by which the browser keeps this session's login, or gives it back."""
        key = f"{self.kind}_keeper"

        def take_kept() -> None:
            state = st.session_state.get(key)
            kept = state.get("kept") if isinstance(state, Mapping) else None
            if isinstance(kept, str) and not (self.held() or self.is_leaving()):
                self.keep(kept)

        def end_at_provider() -> None:
            """Log out at the provider once the login is forgotten, since it redirects away."""
            if self._leaves_provider():
                st.logout()

        owner = f"{self.kind}\n{study.folder.resolve()}\n{study.config.name}"
        data = {
            "name": "evenhand-login-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
            "login": self.held(),
            "forget": self.is_leaving(),
            "tell": self._leaves_provider(),  # report that the login is forgotten
        }
        _keeper(key=key, data=data, on_kept_change=take_kept, on_forgotten_change=end_at_provider)

    def _leaves_provider(self) -> bool:
        """Return True if this logout should end the single sign-on at its provider, too."""
        ends_it = self.is_leaving() and st.session_state.get(f"{self.kind}_leaving_provider")
        return bool(ends_it and st.user.to_dict().get("is_logged_in"))


# The visitor of the lead's pages, which `entry.py` opens, and the addresses of these pages.

LOGIN = KeptLogin("lead")
FIRST_PLACE = "overview"
PLACES = frozenset((
    FIRST_PLACE, "progress", "agreement", "annotators", "flags", "adjudication", "disagreements",
    "items", "recruitment", "accounts", "log", "settings", "texts", "rubrics", "new-study",
    "training-and-checks", "export",
))  # fmt: skip
"""Places: the last part of the address of each page."""
_PLACE_BY_HASH = {calc_hash(place): place for place in PLACES}  # by Streamlit's hash of a page


def place_of(title: str) -> str:
    """Return the place of the page with this title: "log" for "Log"."""
    return title.lower().replace(" ", "-")


def present_place() -> str:
    """Return the place that the browser asks for, by link or address; "" if it asks for none."""
    if (context := get_script_run_ctx()) is None:
        return ""
    by_address = urlsplit(context.context_info.url if context.context_info else "").path
    place = _PLACE_BY_HASH.get(context.page_script_hash, by_address.rpartition("/")[2])
    return place if place in PLACES else ""


def root_address() -> str:
    """Return the address at which raters begin, as the browser of this session has it."""
    parent, _, last = (st.context.url or "").partition("?")[0].rpartition("/")
    return f"{parent}/" if last in ("", *PLACES) else f"{parent}/{last}/"


def hidden_page(place: str, title: str, show: Callable[[], None]) -> StreamlitPage:
    """Return a page that no list shows; the one at "" is for addresses that name no other page."""
    return st.Page(show, title=title, url_path=place, default=not place, visibility="hidden")


def leave(study: Study, login: str) -> None:
    """Log out: end the login everywhere, with its pass and its single sign-on."""
    log_out(study.store, login)
    LOGIN.forget(also_at_provider=True)
    revoke_pass()


def require(study: Study, *roles: Role) -> Visitor:
    """Return the visitor whose login this session holds, and give a lead a pass for files. Raises
    InputError unless the login is valid and its role is one of these.

    Every page checks this on every run, so that an expired login or an ended account closes it.
    """
    login = LOGIN.held()

    def is_still_lead() -> bool:
        with suppress(InputError, StoreAway):
            return visitor(study.store, login).role == "lead"
        return False

    try:
        admitted = visitor_of(study, login, *roles)
    except InputError:
        revoke_pass()
        raise
    if admitted.role == "lead":
        give_pass(is_still_lead)
    return admitted


def visitor_of(study: Study, login: str, *roles: Role) -> Visitor:
    """Return the visitor with this login as `require` does, without a call of Streamlit's."""
    admitted = visitor(study.store, login)
    if admitted.role not in roles:
        raise InputError(written("lead_door.not_yours"))
    return admitted
