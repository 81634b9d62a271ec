"""The page from the top: open the study, find out who is annotating, show the work."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from annotate_app import strings
from annotate_app.entry import ask_for_rater, current_rater
from annotate_app.unit_page import show_units
from rubrics.errors import InputError
from study import open_study
from study.annotation import AnnotationDesk

__all__ = ["show_page"]

_STYLE = Path(__file__).with_name("page.css")


def show_page(arguments: Sequence[str]) -> None:
    """Draw the page of the study whose folder the command line names."""
    st.set_page_config(page_title=strings.PAGE_TITLE, page_icon=":material/rule:", layout="wide")
    st.html(_STYLE)
    try:
        if not arguments:
            raise InputError(strings.NO_STUDY)
        desk = _desk(arguments[0])
    except InputError as error:
        st.html(f'<p class="evenhand-stop" role="alert">{html.escape(str(error))}</p>')
        return
    rater = current_rater(desk)
    if rater is None:
        ask_for_rater(desk)
    else:
        show_units(desk, rater)


@st.cache_resource(show_spinner=False)
def _desk(folder: str) -> AnnotationDesk:
    """One study, and with it one database connection, for all sessions of this process."""
    return AnnotationDesk(open_study(folder))
