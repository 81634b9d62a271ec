"""The language of the page, of those that the study offers.

In this order: the reader's choice, in the link (`?lang=de`) or on the page, made now or earlier
(the browser remembers it for the study); the browser's setting; the study's usual language.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.languages import Language, fitting, names_offered, offered
from evenhand.study import Study

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
