"""A change of the study on the lead's pages: entered in controls or uploaded, shown with what it
does, then saved.
"""

from __future__ import annotations

import hashlib
import html
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from zoneinfo import available_timezones

import streamlit as st
from pydantic.fields import FieldInfo
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evenhand.annotate_app.acts import lead_callback, show_outcome
from evenhand.annotate_app.drawn import plain, show, show_complaint
from evenhand.annotate_app.languages import codes_english_first
from evenhand.annotate_app.lead.parts.drawing import named, show_table
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study import Study
from evenhand.study.access.accounts import Visitor
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

# A control for each setting, by its class: a switch, a number, a choice, a text, a list.

_INTEGERS = 2**31 - 1


def explained(text: str, place: str) -> str:
    """What a setting says, and its key, as HTML; `code` in backticks is drawn as such."""
    said = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.removeprefix("true "))
    said = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(said, quote=False))
    begun = f"{said[:1].upper()}{said[1:]}."
    key = f"<code>{html.escape(place)}</code>"
    return f'<p class="evenhand-explained">{begun} <small>{key}</small></p>'


def control(key: str, field: FieldInfo, name: str, present: Any, study: Study) -> Any:
    """Draw the control of a setting with its present value, under the key of a widget; return what
    is entered.
    """
    kind, label = field.annotation, named(name)
    choices = get_args(kind) if get_origin(kind) is Literal else _choices(name, study)
    if kind is bool:
        return st.toggle(label, present, key=key)
    if kind in (int, float):
        return _number(key, field, label, present)
    if get_origin(kind) is dict:
        return _lines(key, label, present)
    if get_origin(kind) is tuple:
        of = get_args(kind)[0]
        closed = get_args(of) if get_origin(of) is Literal else choices
        known = list(dict.fromkeys([*closed, *present]))
        new = not closed
        placeholder = "Type one, then Enter" if new else "None chosen"
        return st.multiselect(
            label, known, list(present), key=key, accept_new_options=new, placeholder=placeholder
        )
    if choices:
        known = list(dict.fromkeys([*choices, present]))
        return st.selectbox(label, known, known.index(present), key=key)
    return st.text_input(label, present or "", key=key, autocomplete="off").strip()


def _choices(name: str, study: Study) -> Sequence[str]:
    """What may be chosen for a setting whose class takes any text."""
    if name in ("language", "languages"):
        return codes_english_first()
    if name == "time_zone":
        return sorted(available_timezones())
    if name == "rubrics":
        return list(study.rubrics)
    return ()


def _number(key: str, field: FieldInfo, label: str, present: Any) -> int | float | None:
    whole = field.annotation is int
    low = high = None
    for each in field.metadata:
        low = getattr(each, "ge", low)
        high = getattr(each, "le", high)
        low = getattr(each, "gt", 0) + 1 if whole and hasattr(each, "gt") else low
    if whole:
        most = int(high) if high is not None else _INTEGERS
        least = int(low) if low is not None else -_INTEGERS
        entered = st.number_input(label, least, most, present, 1, key=key)
        return entered if entered is None else int(entered)
    least_share = None if low is None else float(low)
    most_share = None if high is None else float(high)
    step = 0.05 if high is not None and high <= 1 else 1.0
    value = None if present is None else float(present)
    return st.number_input(label, least_share, most_share, value, step, "%g", key=key)


def _lines(key: str, label: str, present: Any) -> Any:
    """Lists in lines, `NAME: one, another`."""
    lines = [f"{name}: {', '.join(each)}" for name, each in present.items()]
    form = "one a line, as NAME: first, second"
    text = st.text_area(f"{label} ({form})", "\n".join(lines), key=key, height=96)
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(":")
        found[name.strip()] = listed(rest)
    return found


def listed(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


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
    rows = [{"place": each.place, "now": _cut(each.now), "then": _cut(each.then)} for each in found]
    columns = {"place": "What", "now": "Before", "then": "After"}
    show_table(pd.DataFrame(rows, columns=list(columns)), caption, columns)


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


# What raters see, drawn on the lead's pages with the raters' own style.

_STYLE = Path(__file__).parents[2] / "session_pages.css"


def as_raters_see(drawn: str) -> None:
    """Show HTML that was made here as it is on the pages around the work."""
    st.html(_STYLE)
    with st.container(border=True, key="preview"):
        show('<p class="evenhand-label">As raters see it</p>')
        with st.container(key="step"):
            show(drawn)


# Files that a lead uploads: never larger than declared, kept only as long as they are read.

MOST_MB = 50
TABLES = ["csv", "jsonl"]
OF_TOOLS = [*TABLES, "tsv", "json", "xlsx", "parquet", "arrow", "eval", "zip"]


@contextmanager
def written_down(
    kinds: Sequence[str] = TABLES, /, **files: UploadedFile | None
) -> Iterator[dict[str, Path | None]]:
    """The files in a folder of their own that is gone afterwards, each under the name it is given
    here: what the sender called it never becomes a path.

    Raises InputError where one is too large or of no known kind.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-upload-") as home:
        yield {name: _saved(Path(home), name, file, kinds) for name, file in files.items()}


def _saved(home: Path, name: str, file: UploadedFile | None, kinds: Sequence[str]) -> Path | None:
    if file is None:
        return None
    if file.size > MOST_MB * 1_000_000:
        raise InputError(
            f"the file of {name} is larger than {MOST_MB} MB; use the command line for it"
        )
    suffix = Path(file.name).suffix.lower()
    if suffix.removeprefix(".") not in kinds:
        raise InputError(
            f"the file of {name} is of no known kind; upload one of {', '.join(kinds)}"
        )
    path = home / f"{name}{suffix}"
    path.write_bytes(file.getbuffer())
    return path
