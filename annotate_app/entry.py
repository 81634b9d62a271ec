"""Who is annotating: let in by what the address says, or by a login that the browser keeps."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app import strings
from evenhand.annotate_app.kept_login import KeptLogin
from evenhand.annotate_app.login_form import ask_for_password
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.annotate_app.visitor_address import visitor_address
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import accounts, sign_in, sign_out
from evenhand.study.access.admission import Admission, admit
from evenhand.study.desk.desk import AnnotationDesk

_ADMITTED = "admitted"
_LOGIN = KeptLogin("label")


def current_rater(desk: AnnotationDesk) -> Admission | None:
    """Whom the address lets in, so that a reload goes on; None where it names nobody.

    Looked at on every run: a link that is revoked and a login that is over end here. Raises
    InputError where it names somebody who is not let in.
    """
    address = st.query_params.to_dict()
    known: Admission | None = st.session_state.get(_ADMITTED)
    login = _LOGIN.known()
    if known and known.way == "open" and known.address == address and not login:
        return known  # a code does not run out
    try:
        admission = admit(desk.study, address, login)
    except InputError:
        if login:
            _LOGIN.forget()
        raise
    if admission is None:
        return None
    if known is None or known.rater_id != admission.rater_id:
        desk.register(admission.rater_id)
    st.session_state[_ADMITTED] = admission
    if address != admission.address:
        st.query_params.from_dict(admission.address)
    return admission


def keep_login(study: Study, admission: Admission | None = None) -> None:
    """The login of whoever has an account stays in this window, and is asked for after a reload."""
    if _LOGIN.known() or _LOGIN.is_leaving() or (admission is None and _has_experts(study)):
        _LOGIN.show(study)


def log_out(study: Study) -> None:
    """End the login, here and on the server."""
    sign_out(study.store, _LOGIN.known())
    _LOGIN.forget()
    st.session_state.pop(_ADMITTED, None)


def ask_for_entry(desk: AnnotationDesk, complaint: str = "") -> None:
    """The ways in that this study has, under what was wrong with the one that was tried."""
    entry = desk.study.config.session.entry
    with st.container(key="entry"):
        st.title(strings.ENTRY_TITLE, anchor=False)
        if complaint:
            show_complaint(complaint)
        if entry == "open":
            _ask_for_code(desk)
        elif entry == "invite" and not complaint:
            st.text(strings.ENTRY_INVITE)
        if entry == "account" or _has_experts(desk.study):
            _ask_for_login(desk, entry == "account")


def _ask_for_code(desk: AnnotationDesk) -> None:
    st.text(strings.ENTRY_TEXT)
    with st.form("entry-form", border=False):
        from_address = st.query_params.get("rater", "").strip()
        code = st.text_input(strings.ENTRY_LABEL, value=from_address, autocomplete="off")
        sent = st.form_submit_button(strings.ENTRY_BUTTON, type="primary", width="stretch")
    if not sent:
        return
    address = {"rater": code.strip()}
    try:
        if admit(desk.study, address) is None:
            raise InputError(strings.ENTRY_EMPTY)
        desk.register(address["rater"])
    except InputError as error:
        show_complaint(str(error))
    else:
        _go_on(address)


def _ask_for_login(desk: AnnotationDesk, only: bool) -> None:
    with st.expander(strings.LOGIN_TITLE, expanded=only):
        entered = ask_for_password()
    if entered is None:
        return
    minutes = desk.study.config.session.login_hours * 60
    address = visitor_address(desk.study)
    try:
        _LOGIN.keep(sign_in(desk.study.store, *entered, minutes, address))
    except InputError as error:
        show_complaint(str(error))
    else:
        _go_on({})


def _has_experts(study: Study) -> bool:
    return any(each.role == "expert" for each in accounts(study.store).values())


def _go_on(address: dict[str, str]) -> None:
    st.query_params.from_dict(address)
    st.rerun()
