"""Login by an organisation's provider, through Streamlit's own `st.login`.

Each of the app's two entries is a provider to Streamlit, with the same settings: it sends everybody
back to its front page, and the provider's name is all that it keeps of the page they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from evenhand.annotate_app.languages import Language
from evenhand.annotate_app.logins.browser import KeptLogin
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access.lead_login import (
    LINK_PARAMETER,
    LOGIN_MINUTES,
    client_secret,
    cookie_secret,
    sign_on,
)
from evenhand.study.settings.study_toml import read_config

Door = Literal["lead", "label"]

_LOOKED = "single_sign_on_looked"
_REFUSED = "single_sign_on_refused"


def app_secrets(arguments: Sequence[str]) -> dict[str, Any]:
    """Return Streamlit's settings for the study's provider, as a secrets.toml would hold them;
    there is no such file. Empty where the study has no provider, or one that cannot work, which the
    page reports.
    """
    try:
        if not arguments or (settings := read_config(Path(arguments[0])).oidc) is None:
            return {}
        provider = {
            "client_id": settings.client_id,
            "client_secret": client_secret(settings),
            "server_metadata_url": settings.server_metadata_url,
            "client_kwargs": {"scope": "openid email"},
        }
        with open_study(arguments[0]) as study:
            shared = {
                "redirect_uri": f"{settings.address}/oauth2callback",
                "cookie_secret": cookie_secret(study.store),
            }
    except InputError:
        return {}
    return {"auth": {**shared, "lead": provider, "label": provider}}


def offer(study: Study, door: Door, reader: Language) -> None:
    """The button, where the study has a provider, and the reason if a visitor was refused through
    it.
    """
    if (settings := study.config.oidc) is None:
        return
    said = settings.label or reader.say("login.single_sign_on")
    if st.button(said, width="stretch", key="single-sign-on"):
        st.session_state.pop(_REFUSED, None)
        try:
            client_secret(settings)
        except InputError as error:
            show_complaint(str(error))
        else:
            st.login(door)
    if refused := st.session_state.get(_REFUSED):
        show_complaint(reader.complaint(refused))


def arrive(study: Study) -> None:
    """Admit a visitor who comes back from the provider, and show the entry that they used.

    Checked once in a session, since its cookie is read only as the session begins.
    """
    if study.config.oidc is None or st.session_state.get(_LOOKED):
        return
    st.session_state[_LOOKED] = True
    word = st.user.to_dict()
    door = word.get("provider")
    if word.get("is_logged_in") is not True or door not in ("lead", "label"):
        return
    minutes = LOGIN_MINUTES if door == "lead" else study.config.session.login_hours * 60
    try:
        login = sign_on(study, word, minutes)
    except InputError as error:
        st.session_state[_REFUSED] = error
    else:
        if login is None:
            return
        KeptLogin(door).keep(login)
    if door == "lead":
        st.query_params[LINK_PARAMETER] = "in"
