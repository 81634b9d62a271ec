"""Flags raised by people, with the unit in question, and the lead's response."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.lead.parts.tables import to_the_minute
from evenhand.annotate_app.lead.parts.unit_texts import unit_blocks
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import block, heading, show, show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.lead_login import Visitor
from evenhand.study.lead.flags import RaisedFlag, raised_flags, reopen_flag, settle_flag
from evenhand.texts import written

_REASONS = {
    "harmful": "Harmful content",
    "personal_data": "Personal data",
    "broken_text": "Broken text",
    "unclear_rubric": "The rubric is unclear",
    "other": "Something else",
}
_MOST = 20
"""Flags on the page; the next ones follow once these are dealt with."""


def show_flags(study: Study) -> None:
    require(study, "lead")
    flags = raised_flags(study)
    if not flags:
        st.text(written("lead.no_flags"))
        return
    left = sum(flag.is_open for flag in flags)
    withdrawn = sum(flag.withdrawn for flag in flags)
    st.text(written("lead.flags_open", open=left, closed=len(flags) - left - withdrawn))
    if withdrawn:
        st.text(written("lead.flags_withdrawn", count=withdrawn))
    kinds = [reason for reason in _REASONS if any(flag.reason == reason for flag in flags)]
    chosen = st.selectbox(
        "Reason",
        ["", *kinds],
        format_func=lambda reason: _REASONS.get(reason, "All"),
        key="flags",
        bind="query-params",
    )
    shown = [flag for flag in flags if chosen in ("", flag.reason)]
    for flag in shown[:_MOST]:
        with st.container(border=True):
            _show_flag(study, flag)


def _show_flag(study: Study, flag: RaisedFlag) -> None:
    at = to_the_minute(flag.created_at)
    show(heading(_REASONS.get(flag.reason, flag.reason), 3))
    st.text(written("lead.flag_raised", rater=flag.rater_id, rubric=flag.rubric, at=at))
    if flag.text:
        show(block(flag.text, "quote", "What they wrote"))
    with st.expander("The unit"):
        st.text(flag.unit_id)
        try:
            show(unit_blocks(study, flag.unit_id, flag.rubric))
        except InputError as error:  # no such rubric any more; the flag can still be dealt with
            show_complaint(str(error))
    place = f"flag-{flag.number}"
    if flag.is_open:
        _ask_what_was_done(study, flag, place)
    elif flag.withdrawn:
        at = to_the_minute(flag.done_at)
        st.text(written("lead.flag_withdrawn", rater=flag.rater_id, at=at))
    else:
        at = to_the_minute(flag.done_at)
        st.text(written("lead.flag_settled", by=flag.done_by, at=at, answer=flag.answer))
        reopening = lead_callback(study, place, _reopen, flag.number)
        st.button("Open it again", key=f"reopen-{flag.number}", on_click=reopening)
    show_outcome(place)


def _ask_what_was_done(study: Study, flag: RaisedFlag, place: str) -> None:
    with st.form(place, border=False):
        st.text_input(
            "What was done about it (leads see it)", autocomplete="off", key=f"{place}.answer"
        )
        st.text_input(
            "An answer to whoever raised it (optional)", autocomplete="off", key=f"{place}.told"
        )
        settling = lead_callback(study, place, _settle, flag.number)
        st.form_submit_button("Mark as dealt with", on_click=settling)


def _settle(study: Study, who: Visitor, number: int, *, answer: str, told: str) -> None:
    settle_flag(study, number, answer, who.name, told)


def _reopen(study: Study, who: Visitor, number: int) -> None:
    reopen_flag(study, number, who.name)
