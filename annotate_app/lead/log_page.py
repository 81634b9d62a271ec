"""The log of the leads' acts: who, what and when. Nothing here is ever changed or removed."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.lead.parts.tables import show_table, to_the_minute
from evenhand.annotate_app.logins.lead_login import require
from evenhand.study import Study
from evenhand.study.store.logs.decisions import acts
from evenhand.texts import written

_MOST = 500
_ACTS = (
    "act_account",
    "act_adjudication",
    "act_backup",
    "act_disagreement",
    "act_exclude",
    "act_export",
    "act_file",
    "act_flag_closed",
    "act_flag_reopened",
    "act_flag_withdrawn",
    "act_grades",
    "act_import",
    "act_invite",
    "act_link",
    "act_pause",
    "act_place",
    "act_readmit",
    "act_responses",
    "act_resume",
    "act_rewording",
    "act_sample",
    "act_settings",
    "act_store",
    "act_study",
    "act_threshold",
)
_TITLES = {
    "created_at": "When (UTC)",
    "done_by": "Who",
    "kind": "What",
    "about": "About",
    "detail": "In detail",
}


def show_log(study: Study) -> None:
    require(study, "lead")
    found = acts(study.store)
    if found.empty:
        st.text(written("lead.no_acts"))
        return
    shown = found.head(_MOST)
    shown = shown.assign(
        created_at=shown["created_at"].map(to_the_minute), kind=shown["kind"].map(_said)
    )
    st.text(written("lead.acts", shown=len(shown), count=len(found)))
    show_table(shown, "What leads did", _TITLES)


def _said(kind: str) -> str:
    (key,) = (each for each in _ACTS if each == f"act_{kind.replace(' ', '_')}")
    return written(f"lead.{key}")
