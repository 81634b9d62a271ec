"""A login that the browser keeps in one window's session storage: it is in no address, no log
and no cookie, goes on after a reload, and another window has to log in for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from evenhand.study import Study

_keeper = component(
    "evenhand_login",
    html="<span hidden></span>",
    js=Path(__file__).with_suffix(".js").read_text("utf-8"),
)


@dataclass(frozen=True)
class KeptLogin:
    """The login of one kind, "lead" or "label", as this session holds it."""

    kind: str

    def known(self) -> str:
        """The login of this session; empty where there is none."""
        login: str = st.session_state.get(f"{self.kind}_login", "")
        return login

    def keep(self, login: str) -> None:
        """Store the login of somebody who has just logged in."""
        st.session_state[f"{self.kind}_login"] = login
        st.session_state.pop(f"{self.kind}_leaving", None)

    def forget(self, also_at_provider: bool = False) -> None:
        """Forget the login, in the browser and in this session; a single sign-on ends with it at a
        logout, but not when a login has expired.
        """
        st.session_state.pop(f"{self.kind}_login", None)
        st.session_state[f"{self.kind}_leaving"] = True
        st.session_state[f"{self.kind}_leaving_provider"] = also_at_provider

    def is_leaving(self) -> bool:
        """Return True if the browser should forget the login that it keeps."""
        return bool(st.session_state.get(f"{self.kind}_leaving", False))

    def show(self, study: Study) -> None:
        """Have the browser keep the login of this session, or give back the one it has kept."""
        key = f"{self.kind}_keeper"

        def take_back() -> None:
            state = st.session_state.get(key)
            kept = state.get("kept") if isinstance(state, Mapping) else None
            if isinstance(kept, str) and not (self.known() or self.is_leaving()):
                self.keep(kept)

        def end_at_provider() -> None:
            """Log out at the provider last: it redirects away, and this page must forget the login
            first.
            """
            if self._leaves_provider():
                st.logout()

        owner = f"{self.kind}\n{study.folder.resolve()}\n{study.config.name}"
        data = {
            "name": "evenhand-login-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
            "login": self.known(),
            "forget": self.is_leaving(),
            "tell": self._leaves_provider(),
        }
        _keeper(
            key=key,
            data=data,
            on_kept_change=take_back,
            on_forgotten_change=end_at_provider,
        )

    def _leaves_provider(self) -> bool:
        wanted = self.is_leaving() and st.session_state.get(f"{self.kind}_leaving_provider")
        return bool(wanted and st.user.to_dict().get("is_logged_in"))
