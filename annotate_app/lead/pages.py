"""The frame around the lead's pages: the study's name, the page that is open, the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from evenhand.annotate_app.lead.accounts_page import show_accounts
from evenhand.annotate_app.lead.adjudication_page import leave_adjudication, show_adjudication
from evenhand.annotate_app.lead.agreement_page import show_agreement
from evenhand.annotate_app.lead.disagreements_page import show_disagreements
from evenhand.annotate_app.lead.export_page import show_export
from evenhand.annotate_app.lead.flags_page import show_flags
from evenhand.annotate_app.lead.log_page import show_log
from evenhand.annotate_app.lead.new_study_page import show_new_study
from evenhand.annotate_app.lead.overview_page import show_overview
from evenhand.annotate_app.lead.parts.counting import stand_by
from evenhand.annotate_app.lead.progress_page import show_progress
from evenhand.annotate_app.lead.raters_page import show_raters
from evenhand.annotate_app.lead.rubrics_page import show_rubrics
from evenhand.annotate_app.lead.sessions_page import show_sessions
from evenhand.annotate_app.lead.settings_page import show_settings
from evenhand.annotate_app.lead.texts_page import show_texts
from evenhand.annotate_app.lead.training_page import show_training
from evenhand.annotate_app.logins.lead_login import WAITED, leave, require
from evenhand.annotate_app.plain_text import show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import Role


@dataclass(frozen=True)
class _Page:
    title: str
    show: Callable[[Study], None]
    roles: tuple[Role, ...] = ("lead",)


PAGES = (
    _Page("Overview", show_overview),
    _Page("Progress", show_progress),
    _Page("Agreement", show_agreement),
    _Page("Raters", show_raters),
    _Page("Flags", show_flags),
    _Page("Adjudication", show_adjudication, ("lead", "expert")),
    _Page("Disagreements", show_disagreements),
    _Page("Sessions", show_sessions),
    _Page("Accounts", show_accounts),
    _Page("Log", show_log),
    _Page("Settings", show_settings),
    _Page("Texts", show_texts),
    _Page("Rubrics", show_rubrics),
    _Page("Training and checks", show_training),
    _Page("New study", show_new_study),
    _Page("Export", show_export),
)


def show_pages(study: Study) -> None:
    """The page that is open, among those for the visitor's role."""
    who = require(study, "lead", "expert")
    stand_by()
    simulated = ". Synthetic: responses or ratings in it are simulated"
    synthetic = simulated if study.config.synthetic else ""
    open_to = {page.title: page for page in PAGES if who.role in page.roles}
    st.html(Path(__file__).with_name("lead.css"))
    with st.container(key="lead"):
        title, way_out = st.columns([5, 1], vertical_alignment="center")
        with title:
            st.title("Leading the study", anchor=False)
            st.text(f"{study.config.name}, as {who.name}{synthetic}")
        way_out.button("Log out", on_click=_log_out, args=(study,), width="stretch")
        # Repeated after a wait for the store: the browser does not know which page was open.
        first = next(iter(open_to))
        if "lead_page" not in st.session_state or st.session_state.pop(WAITED, False):
            st.session_state["lead_page"] = st.session_state.get("lead_page", first)
        chosen = st.segmented_control("Page", list(open_to), key="lead_page", required=True)
        # Emptied first: the page before would stay until this one is drawn.
        with st.empty().container():
            try:
                open_to[chosen or first].show(study)
            except InputError as error:
                show_complaint(str(error))


def _log_out(study: Study) -> None:
    leave_adjudication(study)
    leave(study)
