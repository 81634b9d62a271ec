"""The annotator's work: one unit after the other, each stored before the next one shows.

The answer lives in the browser, in the panel, until the server acknowledges it: a Streamlit rerun
is too slow, and too easily lost, to follow someone who works by keyboard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.language_choice import choose
from evenhand.annotate_app.languages import ENGLISH, Language, Sentence
from evenhand.annotate_app.panel_files import fetching_code
from evenhand.annotate_app.payload import (
    Desk,
    Setting,
    View,
    lightened,
    page_data,
    read_known,
    read_look,
    read_sent,
)
from evenhand.annotate_app.unsent import word_left
from evenhand.errors import StoreAway
from evenhand.study.access.admission import Admission, Way
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.desk.pace import JUST_NOW, next_day
from evenhand.study.session.prolific import completion_url
from evenhand.study.session.sessions import Sessions

_log = logging.getLogger(__name__)

_PANEL = "panel"
_RECEIPTS = "receipts"
_VIEW = "view"
_KNOWN = "known"
_SHOWN = "shown"
_AWAY = "away"


_mount = component("evenhand_panel", js=fetching_code())


@dataclass(frozen=True)
class PanelShown:
    """The panel as a session saw it last."""

    desk: Desk
    rater: str
    log_out: Callable[[], None]
    data: dict[str, Any]

    def draw_again(self) -> None:
        """Draw the panel while the store is away: it keeps the rater's answers, sends them again,
        and shows that it waits.
        """
        receipts = st.session_state.get(_RECEIPTS, {})
        _draw_panel(
            self.desk, self.rater, self.log_out, self.data | {"receipts": receipts, "away": True}
        )


def take_panel() -> PanelShown | None:
    """The panel that this session's last run showed, if any."""
    shown: PanelShown | None = st.session_state.pop(_SHOWN, None)
    return shown


def check_store() -> None:
    """Re-raise a StoreAway from the callback, so that the page does not query the store again while
    the panel waits for an answer.
    """
    if error := st.session_state.pop(_AWAY, None):
        raise error


def show_units(
    desk: AnnotationDesk,
    sessions: Sessions,
    admission: Admission,
    reader: Language,
    log_out: Callable[[], None],
) -> None:
    """Show the rater's open unit, or the end when none is left, which a pause or the end of a day
    is not.
    """
    rater = admission.rater_id
    left = _show_panel(desk, rater, reader, lambda: setting_of(desk, admission, reader), log_out)
    if not left and not desk.ended(rater):
        sessions.complete(rater)


def setting_of(desk: AnnotationDesk, admission: Admission, reader: Language = ENGLISH) -> Setting:
    """The words and links for a rater at present. An excluded rater never gets the link of those
    who are done.
    """
    ended = desk.ended(admission.rater_id)
    words = _words_for(admission.way, reader)
    if ended:
        words |= _end(reader, ended)
    if ended == "day":
        again = next_day(desk.study.config.session, datetime.now(UTC) - JUST_NOW)
        return Setting(words=words, resumes=again.isoformat())
    if admission.way != "prolific" or ended == "paused":
        return Setting(words=words)
    if ended == "excluded":
        url = completion_url(desk.study, "stopped")
        words |= _end(reader, "stopped") if url else {}
        return Setting(words=words, finish=url, finish_idle=url)
    return Setting(
        words=words,
        finish=completion_url(desk.study, "complete"),
        finish_idle=completion_url(desk.study, "nothing_left"),
    )


def _words_for(way: Way, reader: Language) -> dict[str, Sentence]:
    """Return the panel's words that depend on the way of entry: only an account has a logout, and
    only a code can be changed.
    """
    match way:
        case "account":
            return {"change_rater": ""}
        case "prolific":
            return {"change_rater": "", "log_out": ""} | reader.part("panel_prolific")
        case "invite":
            return {"change_rater": "", "log_out": ""}
        case "open":
            return {"log_out": ""}


def _end(reader: Language, kind: str) -> dict[str, Sentence]:
    """The words of the last screen, whether or not there was work before it."""
    said = reader.part(f"panel_{kind}")
    return {f"{when}_{part}": said[part] for when in ("done", "nothing") for part in said}


def show_practice(
    _desk: AnnotationDesk,
    sessions: Sessions,
    admission: Admission,
    reader: Language,
    log_out: Callable[[], None],
) -> None:
    """The practice unit whose turn it is, on the same panel."""
    setting = Setting(practice=True, words=_words_for(admission.way, reader))
    _show_panel(sessions.practice, admission.rater_id, reader, lambda: setting, log_out)


def _show_panel(
    desk: Desk,
    rater: str,
    reader: Language,
    setting_now: Callable[[], Setting],
    log_out: Callable[[], None],
) -> bool:
    """The rater's open unit in the panel, with receipts for the answers that the panel has sent;
    False where none is left.
    """
    receipts = st.session_state.get(_RECEIPTS, {})
    view = st.session_state.get(_VIEW, View())
    data = page_data(desk, rater, receipts, view, setting_now, reader)
    if not data["practice"]:
        data["here"] = word_left(desk.study)
    _draw_panel(desk, rater, log_out, data)
    return data["sheet"] is not None


def _draw_panel(desk: Desk, rater: str, log_out: Callable[[], None], data: dict[str, Any]) -> None:
    """Put the panel on the page, and take in what it sends.

    Not a fragment: a browser whose server was restarted asks for the fragment of the old one, which
    the new one does not know, and the answer would never arrive.
    """

    def store_sent() -> None:
        _store(desk, rater, _heard("submit"))

    def look() -> None:
        try:
            _look(desk, rater, _heard("look"))
        except StoreAway as error:  # the panel asks again
            st.session_state[_AWAY] = error

    def choose_language() -> None:
        sent = _heard("language")
        choose(sent.get("code") if isinstance(sent, Mapping) else None, desk.study)

    st.session_state[_SHOWN] = PanelShown(desk, rater, log_out, data)
    panel = _mount(
        key=_PANEL,
        data=lightened(data, st.session_state.pop(_KNOWN, frozenset())),
        on_submit_change=store_sent,
        on_look_change=look,
        on_language_change=choose_language,
        on_log_out_change=log_out,
    )
    # In the first run after a restart the callback was not known yet; what was sent is here.
    if any(each.submit_id not in data["receipts"] for each in read_sent(panel["submit"])):
        _store(desk, rater, panel["submit"])
        st.rerun()


def _heard(event: str) -> Any:
    """Return the data of a panel event, None if there is none; it is not yet validated, as a
    browser may send anything. The parts that the browser lists as kept count for the run that this
    begins.
    """
    state = st.session_state.get(_PANEL)
    sent = state.get(event) if isinstance(state, Mapping) else None
    st.session_state[_KNOWN] = read_known(sent)
    return sent


def _store(desk: Desk, rater: str, sent: Any) -> None:
    """Hand what the panel sent to the desk, and keep the result for each answer.

    The panel sends all answers without a receipt, so the latest receipts are enough.
    """
    read = read_sent(sent)
    try:
        statuses = [receipt.status for receipt in desk.submit_all(rater, read)]
    except StoreAway as error:
        statuses = ["failed"] * len(read)
        st.session_state[_AWAY] = error
    except Exception:
        # An exception would take the panel off the page, and with it the answer's way to the
        # store. So it is logged, the page says "not saved", and the panel sends the answer again.
        _log.exception("answers could not be stored")
        statuses = ["failed"] * len(read)
    st.session_state[_RECEIPTS] = {
        each.submit_id: status for each, status in zip(read, statuses, strict=True)
    }
    if any(isinstance(each, Answer) for each in read) and "failed" not in statuses:
        st.session_state[_VIEW] = View()


def _look(desk: Desk, rater: str, sent: Any) -> None:
    """Turn to an earlier unit, back to the present one, or list the earlier ones."""
    wish = read_look(sent)
    if wish is None:
        return
    present = st.session_state.get(_VIEW, View())
    if wish.wish == "list":
        view = View(present.task_id, wish.nonce, True, wish.search, wish.start)
    elif wish.wish == "task" and (sheet := desk.reopen(rater, wish.task_id)):
        view = View(sheet.tasks[0].task_id, wish.nonce)
    else:
        view = View(nonce=wish.nonce)
    st.session_state[_VIEW] = view
