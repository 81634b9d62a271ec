"""The annotator's work: one unit after the other, each stored before the next one shows."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import streamlit as st

from annotate_app.panel import mount_panel
from annotate_app.payload import Answer, page_data, read_answers
from rubrics.errors import InputError
from study.annotation import AnnotationDesk

__all__ = ["show_units"]

_log = logging.getLogger(__name__)

_PANEL = "panel"
_RECEIPTS = "receipts"
_RECEIPTS_KEPT = 50  # a browser has one answer on its way, rarely a few more from before a crash


@st.fragment
def show_units(desk: AnnotationDesk, rater: str) -> None:
    """The rater's open unit in the panel, with receipts for the answers that the panel has sent."""
    receipts: dict[str, str] = st.session_state.setdefault(_RECEIPTS, {})

    def store_sent() -> None:
        _store(desk, rater, read_answers(st.session_state[_PANEL]["submit"]), receipts)

    mount_panel(
        key=_PANEL,
        data=page_data(desk, rater, receipts),
        on_submit_change=store_sent,
    )


def _store(
    desk: AnnotationDesk, rater: str, answers: Iterable[Answer], receipts: dict[str, str]
) -> None:
    """Hand the answers to the desk and note what became of each, by its submit id."""
    for answer in answers:
        receipts[answer.submit_id] = _stored(desk, rater, answer)
    for submit_id in list(receipts)[:-_RECEIPTS_KEPT]:
        del receipts[submit_id]


def _stored(desk: AnnotationDesk, rater: str, answer: Answer) -> str:
    try:
        receipt = desk.submit(
            rater, answer.task_id, answer.submit_id, answer.option_key, answer.seconds
        )
    except InputError:
        return "refused"
    except Exception:
        # An exception would take the panel off the page, and with it the answer's way to the
        # store. So it is logged, the page says "not saved", and the panel sends the answer again.
        _log.exception("an answer could not be stored")
        return "failed"
    return receipt.status
