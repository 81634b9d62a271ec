"""Name and password, asked for alike of experts who label and of who leads the study."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app import strings


def ask_for_password() -> tuple[str, str] | None:
    """The name and the password that were sent just now; None where none were."""
    with st.form("login-form", border=False):
        name = st.text_input(strings.LOGIN_NAME, autocomplete="username")
        password = st.text_input(
            strings.LOGIN_PASSWORD, type="password", autocomplete="current-password"
        )
        sent = st.form_submit_button(strings.LOGIN_BUTTON, type="primary", width="stretch")
    return (name.strip(), password) if sent else None
