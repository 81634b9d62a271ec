"""What raters see, drawn on the lead's pages with the raters' own style."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from evenhand.annotate_app.plain_text import show

_STYLE = Path(__file__).parents[2] / "session_pages.css"


def as_raters_see(drawn: str) -> None:
    """Show HTML that was made here as it is on the pages around the work."""
    st.html(_STYLE)
    with st.container(border=True, key="preview"):
        show('<p class="evenhand-label">As raters see it</p>')
        with st.container(key="step"):
            show(drawn)
