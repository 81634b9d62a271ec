"""A change of the study on the lead's pages: entered, shown with what it does, then saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.plain_text import plain, show_complaint
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.lead_login import Visitor
from evenhand.study.changing import (
    Contents,
    Difference,
    Files,
    changed_since,
    contents_of,
    differences,
    effects,
    read_files,
    save,
)
from evenhand.study.settings.study_toml import FILE_NAME
from evenhand.texts import written

_EDITING, _OFFER, _SAVE, _COMPLAINT = "editing", "offer", "save", "not_saved"
_LONGEST = 300
"""Characters of a text that the table of changes shows."""


@dataclass(frozen=True)
class Editing:
    """What somebody edits, and the study's files as they were when they began."""

    place: str
    present: Contents

    @property
    def files(self) -> Files:
        return self.present.files

    @property
    def settings(self) -> str:
        """The text of study.toml."""
        return self.text(FILE_NAME)

    def text(self, name: str) -> str:
        """The text of one of the files; empty where it is not there."""
        return (self.files.get(name) or b"").decode("utf-8-sig")

    def key(self, name: str) -> str:
        """The key of a widget: it holds what was entered, until the files are read anew."""
        contents = sorted((name, content or b"") for name, content in self.files.items())
        return f"{self.place}.{hashlib.sha256(repr(contents).encode()).hexdigest()[:12]}.{name}"


@dataclass(frozen=True)
class _Offer:
    place: str
    after: Contents
    found: list[Difference]
    effects: list[str]


def begin(study: Study, place: str) -> Editing:
    """Return what is edited at this place of the pages, and say what came of the last change.

    Raises InputError where the study's files do not hold together as they are.
    """
    show_outcome(_SAVE)
    found = st.session_state.get(_EDITING)
    if not (isinstance(found, Editing) and found.place == place and _is_open(found)):
        found = Editing(place, contents_of(study, read_files(study)))
        st.session_state[_EDITING] = found
        st.session_state.pop(_OFFER, None)
    return found


def _is_open(editing: Editing) -> bool:
    """Return True if its widgets are on the page, so that something may have been entered."""
    return any(str(key).startswith(editing.key("")) for key in st.session_state)


def offer(study: Study, editing: Editing, make: Callable[[], dict[str, str]]) -> None:
    """Work out what a change does. `make` returns the new texts of the files that it changes, in
    the order in which they are to be written.
    """
    st.session_state.pop(_OFFER, None)
    st.session_state.pop(_COMPLAINT, None)
    try:
        texts = {name: text.encode() for name, text in make().items()}
        # What is written first comes first.
        after = contents_of(study, {**texts, **editing.files, **texts})
        found = list(differences(editing.present, after))
        if not found:
            raise InputError(written("change.nothing"))
        told = effects(study, editing.present, after)
        st.session_state[_OFFER] = _Offer(editing.place, after, found, told)
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)


def show_offer(study: Study, editing: Editing) -> Contents:
    """Show the change that was entered: what is new, what that does, and the choice. Return what
    the study would be with it, or is.
    """
    if complaint := st.session_state.get(_COMPLAINT, ""):
        show_complaint(complaint)
    if late := changed_since(study, editing.files):
        _show_newer(study, editing, late)
        return editing.present
    offered = st.session_state.get(_OFFER)
    if not isinstance(offered, _Offer) or offered.place != editing.place:
        return editing.present
    with st.container(border=True, key="offer"):
        st.header(written("change.title"), anchor=False)
        _show_differences(offered.found, "What changes")
        for sentence in offered.effects:
            st.text(sentence)
        yes, no, _ = st.columns([1, 1, 2])
        saving = lead_callback(study, _SAVE, _save, editing, offered)
        yes.button("Save", type="primary", on_click=saving, width="stretch")
        no.button("Do not save", on_click=_begin_again, width="stretch")
    return offered.after


def _show_newer(study: Study, editing: Editing, late: list[str]) -> None:
    if not st.session_state.get(_COMPLAINT):
        show_complaint(written("change.meanwhile", files=" and ".join(late)))
    with st.container(border=True, key="newer"):
        now = contents_of(study, read_files(study))
        st.text(written("change.newer"))
        _show_differences(list(differences(editing.present, now)), "What is new")
        st.text(written("change.again"))
        st.button("Begin again from the newer text", on_click=_begin_again)


def _show_differences(found: list[Difference], caption: str) -> None:
    import pandas as pd

    rows = [{"place": each.place, "now": _cut(each.now), "then": _cut(each.then)} for each in found]
    titles = {"place": "What", "now": "Before", "then": "After"}
    show_table(pd.DataFrame(rows, columns=list(titles)), caption, titles)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _begin_again() -> None:
    for name in (_EDITING, _OFFER, _COMPLAINT):
        st.session_state.pop(name, None)


def _save(study: Study, who: Visitor, editing: Editing, offered: _Offer) -> Callable[[], None]:
    try:
        found = save(study, editing.files, offered.after.files, who.name)
    except InputError as error:
        return partial(_refuse, str(error))
    return partial(_say_saved, ", ".join(dict.fromkeys(each.place for each in found)))


def _say_saved(places: str) -> None:
    _begin_again()
    st.success(plain(written("change.saved", places=places)))


def _refuse(complaint: str) -> None:
    st.session_state[_COMPLAINT] = complaint
    st.session_state.pop(_OFFER, None)
