"""One maker of live figures for each study of this process, and a page's wish for them."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from evenhand.annotate_app.lead.live import Figures, LiveFigures
from evenhand.annotate_app.writing import show_complaint
from evenhand.study import Study
from evenhand.study.lead.progress import data_version

__all__ = ["latest_figures"]


def latest_figures(study: Study) -> Figures | None:
    """The latest figures; newer ones are on their way where something has come in since.

    Says what there is to say of their age; None while there are none.
    """
    live = _live(str(study.folder.resolve()))
    version = data_version(study)
    live.wanted(version)
    found = live.latest
    if found is None:
        st.text("Counting; the figures stand here as soon as they are there.")
        return None
    if found.complaint:
        show_complaint(found.complaint)
        return None
    current = found.version == version
    st.text("With every label so far." if current else "New labels have come in; counting again.")
    return found


@st.cache_resource(show_spinner=False)
def _live(folder: str) -> LiveFigures:
    return LiveFigures(Path(folder))
