"""Who is annotating: the rater code, asked for once and kept in the page's address."""

from __future__ import annotations

import html

import streamlit as st

from annotate_app import strings
from rubrics.errors import InputError
from study.annotation import AnnotationDesk

__all__ = ["ask_for_rater", "current_rater", "show_complaint"]

_PARAMETER = "rater"
_REGISTERED = "registered_rater"


def current_rater(desk: AnnotationDesk) -> str | None:
    """The rater that the address names, so that a reload goes on; None if there is no good one."""
    code = st.query_params.get(_PARAMETER, "").strip()
    if not code or (code != st.session_state.get(_REGISTERED) and _register(desk, code)):
        return None
    return code


def ask_for_rater(desk: AnnotationDesk) -> None:
    """The form that asks for the code; a good one starts the work."""
    from_address = st.query_params.get(_PARAMETER, "").strip()
    with st.container(key="entry"):
        st.title(strings.ENTRY_TITLE, anchor=False)
        st.text(strings.ENTRY_TEXT)
        with st.form("entry-form", border=False):
            entered = st.text_input(strings.ENTRY_LABEL, value=from_address, autocomplete="off")
            sent = st.form_submit_button(strings.ENTRY_BUTTON, type="primary", width="stretch")
        code = entered.strip() if sent else from_address
        if not sent and not from_address:
            return
        complaint = _register(desk, code) if code else strings.ENTRY_EMPTY
        if complaint:
            show_complaint(complaint)
        else:
            st.query_params[_PARAMETER] = code
            st.rerun()


def show_complaint(complaint: str) -> None:
    """What is wrong, as plain text: Streamlit's own error box would read it as Markdown."""
    sentence = complaint[:1].upper() + complaint[1:].rstrip(".") + "."
    st.html(f'<p class="evenhand-complaint" role="alert">{html.escape(sentence)}</p>')


def _register(desk: AnnotationDesk, code: str) -> str:
    """Register the code for this session; what is wrong with it, or nothing."""
    try:
        desk.register(code)
    except InputError as error:
        return str(error)
    st.session_state[_REGISTERED] = code
    return ""
