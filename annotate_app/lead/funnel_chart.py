"""How many people have come how far, as a row of numbers."""

from __future__ import annotations

import time

import streamlit as st

from evenhand.annotate_app.lead.board import figures_row
from evenhand.annotate_app.plain_text import show
from evenhand.study import Study
from evenhand.study.lead.progress import data_version
from evenhand.study.session.funnel import Funnel, funnel
from evenhand.study.session.sessions import Sessions

_WORDS = {
    "entered": "Entered",
    "consented": "Consented",
    "passed": "Passed all steps before the first unit",
    "working": "Working",
    "done": "Done",
    "left": "Left or sent away",
    "excluded": "Excluded",
}


def show_funnel(study: Study) -> None:
    """Everybody's way so far; counted anew once a minute, or when labels have come in."""
    minute = int(time.time() // 60)
    found = _counted(study, str(study.folder), data_version(study), minute)
    show(figures_row([(_WORDS[stage], str(count)) for stage, count in found.stages]))


@st.cache_data(max_entries=4, show_spinner=False)
def _counted(_study: Study, folder: str, version: str, minute: int) -> Funnel:
    return funnel(_study, Sessions(_study))
