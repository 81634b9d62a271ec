"""Answers that wait unsent in the browser, told on the pages that have no panel to send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from evenhand.annotate_app.languages import Language
from evenhand.annotate_app.payload import drafts_name
from evenhand.study import Study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.seeding import digest

_KEY = "unsent"
_HEARD = "unsent heard"
_MOST = 200
_HERE = Path(__file__).parent
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
