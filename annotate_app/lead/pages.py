"""The frame around the lead's pages: the way to each, what the study is called, the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.html_texts import show, show_complaint
from evenhand.annotate_app.lead.adjudication_page import (
    show_adjudication,
    show_disagreements,
    show_items,
)
from evenhand.annotate_app.lead.new_study_page import show_new_study
from evenhand.annotate_app.lead.overview_page import (
    show_agreement,
    show_overview,
    show_progress,
)
from evenhand.annotate_app.lead.parts import PageLink, stand_by
from evenhand.annotate_app.lead.raters_page import (
    show_accounts,
    show_export,
    show_flags,
    show_log,
    show_raters,
    show_sessions,
)
from evenhand.annotate_app.lead.settings_page import (
    show_rubrics,
    show_settings,
    show_texts,
    show_training,
)
from evenhand.annotate_app.logins import (
    FIRST_PLACE,
    LOGIN,
    hidden_page,
    leave,
    place_of,
    present_place,
    require,
)
from evenhand.annotate_app.payload import app_files, typesetter
from evenhand.annotate_app.sites import present_site, sites
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import LINK_PARAMETER, Role
from evenhand.study.settings.study_toml import START
from evenhand.texts import written

_marker = component(
    "evenhand_marker",
    html="<span hidden></span>",
    js=f"const TYPESETTER = new URL('{typesetter()[0]}', document.baseURI);\n"
    + app_files("panel/formulas.js", "lead/marker.js"),
)
"""Marks the page's entry among those beside it, and that above it; typesets formulas."""


@dataclass(frozen=True)
class _Page:
    title: str
    draw: Callable[[Study], None]
    group: str
    roles: tuple[Role, ...] = ("lead",)
    is_listed: bool = True
    """False for a page that is reached from the others of its group."""

    def show(self, study: Study) -> None:
        """Draw the page. Raises InputError unless the visitor has one of its roles."""
        require(study, *self.roles)
        self.draw(study)


PAGES = (
    _Page("Overview", show_overview, "Results"),
    _Page("Agreement", show_agreement, "Results"),
    _Page("Items", show_items, "Results"),
    _Page("Export", show_export, "Results"),
    _Page("Annotators", show_raters, "People"),
    _Page("Progress", show_progress, "People"),
    _Page("Sessions", show_sessions, "People"),
    _Page("Flags", show_flags, "Quality"),
    _Page("Adjudication", show_adjudication, "Quality", ("lead", "expert")),
    _Page("Disagreements", show_disagreements, "Quality"),
    _Page("Settings", show_settings, "Set-up"),
    _Page("Texts", show_texts, "Set-up", is_listed=False),
    _Page("Rubrics", show_rubrics, "Set-up", is_listed=False),
    _Page("Training and checks", show_training, "Set-up", is_listed=False),
    _Page("Accounts", show_accounts, "Set-up", is_listed=False),
    _Page("Log", show_log, "Set-up", is_listed=False),
    _Page("New study", show_new_study, "Set-up", is_listed=False),
)


def show_pages(present: Callable[[], Study]) -> None:
    """Draw the page that the address names, among those for the visitor's role."""
    study = present()
    who = require(study, "lead", "expert")
    stand_by()
    pages = PAGES[-1:] if study.folder.name == START else PAGES
    permitted = [page for page in pages if who.role in page.roles]
    listed = [
        st.Page(
            _shown(present, page),
            title=page.title,
            url_path=place_of(page.title),
            visibility="visible" if page.is_listed else "hidden",
        )
        for page in permitted
    ]
    # The root is the raters' address; there, and at a page of another role, the first is shown.
    first, others = permitted[0], {"", present_place()} - {page.url_path for page in listed}
    hidden = [hidden_page(place, first.title, _shown(present, first)) for place in others]
    # Flat, as a screen reader finds no list in Streamlit's own groups; the style names them.
    chosen = st.navigation([*listed, *hidden], expanded=True)
    st.set_page_config(page_title=f"{chosen.title}: {study.config.name}")
    if not chosen.url_path:
        for page in listed:  # the browser has not yet heard what the page at its address is called
            if page.url_path == present_place():
                st.switch_page(page)
        st.query_params[LINK_PARAMETER] = "in"
    st.html(Path(__file__).with_name("lead.css"))
    name = study.config.name.replace(START, "A new study")
    about = "\nSynthetic study: responses or ratings are simulated" * study.config.synthetic
    with st.sidebar.container(key="lead-study"):
        st.text("Leading the study")
        st.text(f"{name}, as {who.name}{about}")
        st.button("Log out", on_click=leave, args=(study, LOGIN.held()), width="stretch")
    beside = (site.folder.name for site in sites() if site != present_site())
    studies = [name for name in beside if name != START]
    if who.role == "lead" and studies:  # the others at this address, each with its own login
        heading = written("several.others")
        links = [f'<li><a href="../{name}/{FIRST_PLACE}">{name}</a></li>' for name in studies]
        with st.sidebar.container(key="lead-other-studies"):
            show(f'<nav aria-label="{heading}"><p>{heading}</p><ul>{"".join(links)}</ul></nav>')
    with st.container(key="lead"):
        chosen.run()


def _shown(present: Callable[[], Study], page: _Page) -> Callable[[], None]:
    # A fragment: what happens in it waits for what happened before, and never ends a run.
    @st.fragment
    def show() -> None:
        study = present()
        try:
            require(study, *page.roles)
        except InputError:
            st.rerun()  # to the login
        st.title(page.title, anchor=False)
        beside = [each for each in PAGES if each.group == page.group]
        if not all(each.is_listed for each in beside) and study.folder.name != START:
            with st.container(horizontal=True, key="beside"):
                for each in beside:
                    PageLink(each.title, each.title).show()
        shown, above = place_of(page.title), place_of(next(each.title for each in beside))
        _marker(key="marker", data={"page": shown, "above": "" if page.is_listed else above})
        try:
            page.draw(study)
        except InputError as error:
            show_complaint(str(error))

    return show
