"""The annotator's work: one unit after the other, each stored before the next one shows.

Streamlit draws the panel once. From then on the panel sends answers, and gets what comes next, by
messages of its own: see `routes`. Its language, and what waits unsent, are told on other pages too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.entry import logging_out, ticket_of
from evenhand.annotate_app.languages import (
    ENGLISH,
    Language,
    Sentence,
    fitting,
    names_offered,
    offered,
)
from evenhand.annotate_app.payload import (
    Look,
    Setting,
    drafts_name,
    fetching_code,
    lightened,
    page_data,
)
from evenhand.annotate_app.sites import Desks
from evenhand.study import Study
from evenhand.study.access.admission import Admission, Way
from evenhand.study.desk.desk import JUST_NOW, AnnotationDesk, Desk, next_day
from evenhand.study.prompts.sampling import digest
from evenhand.study.session.sessions import completion_url

# The language of the page, of those that the study offers. In this order: the reader's choice, in
# the link (`?lang=de`) or on the page, made now or earlier (the browser remembers it for the
# study); the browser's setting; the study's usual language.

PARAMETER = "lang"
_CHOSEN = "language"
_KEEPER = "language_keeper"
_HERE = Path(__file__).parent

_keeper = component(
    "evenhand_language",
    html="<label hidden><span></span> <select></select></label>",
    css=(_HERE / "language.css").read_text("utf-8"),
    js=(_HERE / "language.js").read_text("utf-8"),
)


def present_language(study: Study) -> Language:
    """Return the language of the page. Raises InputError for a language that is not offered."""
    among = offered(study.config.annotation)
    # Taken out of the address, which then names only the rater again.
    if (asked := st.query_params.pop(PARAMETER, None)) is not None:
        choose(asked, study)
    return fitting([st.session_state.get(_CHOSEN), st.context.locale], among)


def choose(code: Any, study: Study) -> None:
    """Take a choice that came from the browser, if it is one of those offered."""
    if isinstance(code, str) and code in offered(study.config.annotation):
        st.session_state[_CHOSEN] = code


def keep_language(study: Study, reader: Language, *, offered_here: bool) -> None:
    """Tell the browser the page's language, and have it store the choice or give it back.

    `offered_here`: the choice is on this page, since no panel has it.
    """

    def take() -> None:
        choose(st.session_state[_KEEPER]["chosen"], study)

    owner = f"{study.folder.resolve()}\n{study.config.name}"
    data = {
        "name": "evenhand-language-" + hashlib.sha256(owner.encode()).hexdigest()[:16],
        "chosen": st.session_state.get(_CHOSEN, ""),
        "shown": reader.code,
        "dir": reader.dir,
        "label": reader.say("panel.language"),
        "offered": names_offered(study.config.annotation),
        "here": offered_here,
    }
    with st.container(key="language"):
        _keeper(key=_KEEPER, data=data, on_chosen_change=take)


_PANEL = "panel"
_SHOWN = "shown"
_NONE: Mapping[str, str] = {}

_mount = component("evenhand_panel", js=fetching_code())


def take_panel() -> Callable[[], None] | None:
    """Return what draws the panel that this session's last run showed, if any, as it was: while the
    store is away, it keeps the rater's answers, sends them again, and shows that it waits.
    """
    shown: Callable[[], None] | None = st.session_state.pop(_SHOWN, None)
    return shown


def show_units(desks: Desks, admission: Admission, reader: Language, *, practice: bool) -> None:
    """Show the rater's unit in the panel, of the practice or of the labelling."""
    study = desks.desk.study
    data = panel_data(desks, admission, reader, practice=practice)
    shown = {
        "ticket": ticket_of(study, admission),
        "here": None if practice else word_left(study),
        "panel": lightened(data, frozenset()),
    }
    _draw_panel(study, shown)


def panel_data(
    desks: Desks,
    admission: Admission,
    reader: Language,
    *,
    practice: bool,
    receipts: Mapping[str, str] = _NONE,
    look: Look | None = None,
) -> dict[str, Any]:
    """Return the panel's data: the rater's open unit, the one to look at, or the end when none is
    left, which a pause or the end of a day is not.
    """
    rater, desk = admission.rater_id, desks.desk

    def setting_now() -> Setting:
        if practice:
            return Setting(practice=True, words=_words_for(admission.way, reader))
        return setting_of(desk, admission, reader)

    shown: Desk = desks.sessions.practice if practice else desk
    data = page_data(shown, rater, receipts, look, setting_now, reader)
    if not practice and data["sheet"] is None and not desk.ended(rater):
        desks.sessions.complete(rater)
    return data | {"drawn": desks.drawn}


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


def _draw_panel(study: Study, data: Mapping[str, Any]) -> None:
    """Put the panel on the page. What it does not send by itself comes here: another language, a
    logout, and the wish for the page of the next step.
    """
    st.session_state[_SHOWN] = partial(_draw_panel, study, data)

    def choose_language() -> None:
        state = st.session_state.get(_PANEL)
        sent = state.get("language") if isinstance(state, Mapping) else None
        choose(sent.get("code") if isinstance(sent, Mapping) else None, study)

    _mount(
        key=_PANEL,
        data=data,
        on_language_change=choose_language,
        on_log_out_change=logging_out(study),
        on_page_change=lambda: None,
    )


# Answers that wait unsent in the browser, told on the pages that have no panel to send them.

_KEY = "unsent"
_HEARD = "unsent heard"
_MOST = 200
_teller = component(
    "evenhand_unsent",
    html='<p class="unsent" role="alert" hidden><span></span> <button type="button"></button></p>',
    css=(_HERE / "unsent.css").read_text("utf-8"),
    js="\n".join(
        (_HERE / name).read_text("utf-8")
        for name in ("panel/drafts.js", "panel/view.js", "unsent.js")
    ),
)


def word_left(study: Study) -> dict[str, Any]:
    """Return the name under which the panel leaves word of what waits, for whoever comes back by
    the same address, and is not admitted.
    """
    address = sorted(st.query_params.to_dict().items())
    name = digest(study.blinding_key, "unsent", repr(address))[:16]
    return {"name": f"evenhand-unsent-{name}", "byLink": bool(address)}


def tell_unsent(
    desk: AnnotationDesk, reader: Language, rater: str | None = None, over: bool = False
) -> None:
    """Have the browser say which answers of this rater did not arrive, until it is read; without a
    rater, those of whoever was at the panel by this address. `over`: they cannot be sent later.

    Nothing is deleted but what is stored: a rater may be let in again.
    """
    heard = st.session_state.get(_HEARD, {}).get(rater, {})
    words, kind = reader.part("panel"), "over" if over else "kept"
    told = _teller(
        key=_KEY,
        data={
            "here": word_left(desk.study),
            "place": drafts_name(desk, rater) if rater else "",
            "heard": heard,
            "kind": kind,
            "words": {name: words[name] for name in ("lost", "noted")}
            | {"why": reader.part("unsent")[kind]},
        },
        on_waiting_change=lambda: None,
    )
    asked = told["waiting"]
    if rater and isinstance(asked, list):
        ids = [each for each in asked[:_MOST] if isinstance(each, str)]
        if not heard.keys() >= {*ids}:
            stored = desk.arrived(rater, ids)
            st.session_state[_HEARD] = {rater: {each: each in stored for each in ids}}
            st.rerun()
