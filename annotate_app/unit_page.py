"""The annotator's work: one unit after the other, each stored before the next one shows.

The answer lives in the browser, in the panel, until the server acknowledges it: a Streamlit rerun
is too slow, and too easily lost, to follow someone who works by keyboard.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from annotate_app.payload import Answer, page_data, read_answers
from study.annotation import AnnotationDesk

__all__ = ["show_units"]

_log = logging.getLogger(__name__)

_PANEL = "panel"
_RECEIPTS = "receipts"


def _asset(*names: str) -> str:
    folder = Path(__file__).with_name("panel")
    return "\n".join((folder / name).read_text("utf-8") for name in names)


_mount = component(
    "evenhand_panel",
    html=_asset("panel.html"),
    css=_asset("panel.css"),
    js=_asset("shelf.js", "view.js", "panel.js"),  # one module: the parts share its scope
)


def show_units(desk: AnnotationDesk, rater: str) -> None:
    """The rater's open unit in the panel, with receipts for the answers that the panel has sent.

    Not a fragment: a browser that finds its server started anew asks for the fragment of the old
    one, which the new one does not know, and the answer would never arrive.
    """

    def store_sent() -> None:
        _store(desk, rater, st.session_state[_PANEL]["submit"])

    receipts = st.session_state.get(_RECEIPTS, {})
    panel = _mount(key=_PANEL, data=page_data(desk, rater, receipts), on_submit_change=store_sent)
    # In the first run after a restart the callback was not known yet; what was sent is here.
    if any(answer.submit_id not in receipts for answer in read_answers(panel["submit"])):
        _store(desk, rater, panel["submit"])
        st.rerun()


def _store(desk: AnnotationDesk, rater: str, sent: Any) -> None:
    """Hand what the panel sent to the desk, and keep what became of each answer.

    The panel sends all that it has no receipt for, so the receipts of the last time are enough.
    """
    st.session_state[_RECEIPTS] = {
        answer.submit_id: _stored(desk, rater, answer) for answer in read_answers(sent)
    }


def _stored(desk: AnnotationDesk, rater: str, answer: Answer) -> str:
    try:
        return desk.submit(
            rater, answer.task_id, answer.submit_id, answer.option_key, answer.seconds
        ).status
    except Exception:
        # An exception would take the panel off the page, and with it the answer's way to the
        # store. So it is logged, the page says "not saved", and the panel sends the answer again.
        _log.exception("an answer could not be stored")
        return "failed"
