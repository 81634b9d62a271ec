"""Accounts with a password: list them, with their roles, create one, end one."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.logins.lead_login import require
from evenhand.study import Study
from evenhand.study.access.accounts import (
    SHORTEST_PASSWORD,
    Role,
    accounts,
    disable_account,
    set_account,
)
from evenhand.study.access.lead_login import Visitor
from evenhand.study.store.logs.decisions import note_act
from evenhand.texts import written

_ROLES = {"expert": "Expert: labels and adjudicates", "lead": "Lead: everything on these pages"}


def show_accounts(study: Study) -> None:
    require(study, "lead")
    _ask_for_account(study)
    _ask_for_end(study)
    _show_known(study)


def _ask_for_account(study: Study) -> None:
    st.header("Add an account, or change one", anchor=False)
    with st.form("account", border=False, clear_on_submit=True):
        st.text_input("Name", autocomplete="off", key="account.name")
        st.text_input(
            f"Password (at least {SHORTEST_PASSWORD} characters)",
            type="password",
            autocomplete="new-password",
            key="account.password",
        )
        roles = get_args(Role)
        st.selectbox("Role", roles, format_func=_ROLES.__getitem__, key="account.role")
        st.form_submit_button("Save the account", on_click=lead_callback(study, "account", _set))
    show_outcome("account")


def _set(study: Study, who: Visitor, *, name: str, password: str, role: Role) -> str:
    name = name.strip()
    set_account(study.store, name, password, role)
    note_act(study.store, "account", name, f"set: {role}", who.name)
    return written("session.logs_in", name=name, role=role)


def _ask_for_end(study: Study) -> None:
    names = list(accounts(study.store))
    if names:
        st.header("End an account", anchor=False)
        with st.form("disable", border=False, clear_on_submit=True):
            st.selectbox(
                "Account", names, index=None, placeholder="Choose an account", key="disable.name"
            )
            st.form_submit_button("End it", on_click=lead_callback(study, "disable", _disable))
    show_outcome("disable")


def _disable(study: Study, who: Visitor, *, name: str | None) -> str | None:
    if name is None:
        return None
    disable_account(study.store, name)
    note_act(study.store, "account", name, "ended", who.name)
    return written("session.disabled", name=name)


def _show_known(study: Study) -> None:
    import pandas as pd

    known = accounts(study.store).values()
    st.header("Accounts", anchor=False)
    if not known:
        st.text(written("lead.no_accounts"))
        return
    rows = pd.DataFrame([{"name": each.name, "role": each.role} for each in known])
    show_table(rows, "Who can log in", {"name": "Name", "role": "Role"})
