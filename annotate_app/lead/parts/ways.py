"""Links from one of the lead's pages to another, with what is to be chosen there."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.logins.lead_login import place_of
from evenhand.annotate_app.plain_text import plain


def link_to(title: str, said: str, **chosen: str) -> None:
    """A sentence or number that leads to the page with this title; `chosen` are the values that
    its fields take by their keys (`chosen_there`).
    """
    page = st.Page(lambda: None, title=title, url_path=place_of(title))
    st.page_link(page, label=plain(said), query_params=chosen)
