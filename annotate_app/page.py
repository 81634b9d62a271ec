"""The page from the top: open the study, find out who is annotating, show the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from annotate_app import strings
from annotate_app.entry import ask_for_rater, current_rater, show_complaint
from annotate_app.unit_page import show_units
from rubrics.errors import InputError
from study import open_study
from study.annotation import AnnotationDesk

__all__ = ["show_page"]

_HERE = Path(__file__).parent


def show_page(arguments: Sequence[str]) -> None:
    """Draw the page of the study whose folder the command line names."""
    # An icon of our own: Streamlit's named icons are fetched from another host.
    icon = str(_HERE / "panel" / "icon.svg")
    st.set_page_config(page_title=strings.PAGE_TITLE, page_icon=icon, layout="wide")
    st.html(_HERE / "page.css")
    try:
        if not arguments:
            raise InputError(strings.NO_STUDY)
        desk = _desk(arguments[0])
        rater = current_rater(desk)
        if rater is None:
            ask_for_rater(desk)
        else:
            show_units(desk, rater)
    except InputError as error:
        show_complaint(str(error))


@st.cache_resource(show_spinner=False)
def _desk(folder: str) -> AnnotationDesk:
    """One study, and with it one database connection, for all sessions of this process."""
    return AnnotationDesk(open_study(folder))
