"""The form for name and password, the same for experts who label and for leads."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.languages import Language


def ask_for_password(reader: Language) -> tuple[str, str] | None:
    """The name and the password that were sent just now; None where none were."""
    with st.form("login-form", border=False):
        name = st.text_input(reader.say("login.name"), autocomplete="username")
        password = st.text_input(
            reader.say("login.password"), type="password", autocomplete="current-password"
        )
        sent = st.form_submit_button(reader.say("login.button"), type="primary", width="stretch")
    return (name.strip(), password) if sent else None
