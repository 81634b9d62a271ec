"""Accounts with a password: list them, with their roles, create one, end one."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import (
    SHORTEST_PASSWORD,
    Role,
    accounts,
    disable_account,
    set_account,
)
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_ROLES = {"expert": "Expert: labels and adjudicates", "lead": "Lead: everything on these pages"}


def show_accounts(study: Study) -> None:
    who = require(study, "lead").name
    try:
        _set(study, who)
        _disable(study, who)
    except InputError as error:
        show_complaint(str(error))
    _show_known(study)


def _set(study: Study, who: str) -> None:
    st.header("Add an account, or change one", anchor=False)
    with st.form("account", border=False, clear_on_submit=True):
        name = st.text_input("Name", autocomplete="off")
        password = st.text_input(
            f"Password (at least {SHORTEST_PASSWORD} characters)",
            type="password",
            autocomplete="new-password",
        )
        role = st.selectbox("Role", get_args(Role), format_func=_ROLES.__getitem__)
        sent = st.form_submit_button("Save the account")
    if sent:
        set_account(study.store, name.strip(), password, role)
        note_act(study.store, "account", name.strip(), f"set: {role}", who)
        st.text(written("session.logs_in", name=name.strip(), role=role))


def _disable(study: Study, who: str) -> None:
    names = list(accounts(study.store))
    if not names:
        return
    st.header("End an account", anchor=False)
    with st.form("disable", border=False, clear_on_submit=True):
        name = st.selectbox("Account", names, index=None, placeholder="Choose an account")
        sent = st.form_submit_button("End it")
    if sent and name is not None:
        disable_account(study.store, name)
        note_act(study.store, "account", name, "ended", who)
        st.text(written("session.disabled", name=name))


def _show_known(study: Study) -> None:
    import pandas as pd

    known = accounts(study.store).values()
    st.header("Accounts", anchor=False)
    if not known:
        st.text(written("lead.no_accounts"))
        return
    rows = pd.DataFrame([{"name": each.name, "role": each.role} for each in known])
    show_table(rows, "Who can log in", {"name": "Name", "role": "Role"})
