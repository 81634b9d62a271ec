"""A change of the study on the lead's pages: entered in controls or uploaded, shown with what it
does, then saved.
"""

from __future__ import annotations

import hashlib
import html
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from evenhand.annotate_app.lead.drawing import named, show_table
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study import Study
from evenhand.study.access.accounts import Visitor
from evenhand.study.changing import (
    Contents,
    Difference,
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
    """The explanation of a setting, and its key, as HTML; `code` in backticks is drawn as such."""
    plain_text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.removeprefix("true "))
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(plain_text, quote=False))
    key = f"<small><code>{html.escape(place)}</code></small>"
    return f'<p class="evenhand-explained">{marked[:1].upper()}{marked[1:]}. {key}</p>'


def control(key: str, field: FieldInfo, name: str, present: Any, study: Study) -> Any:
    """Draw the control of a setting with its present value, under the key of a widget; return what
    is entered.
    """
    kind, label = field.annotation, named(name)
    choices: Sequence[str] = get_args(kind) if get_origin(kind) is Literal else ()
    if name in ("language", "languages"):
        choices = codes_english_first()
    elif name == "time_zone":
        choices = sorted(available_timezones())
    elif name == "rubrics":
        choices = list(study.rubrics)
    if kind is bool:
        return st.toggle(label, present, key=key)
    if kind in (int, float):
        return _number(key, field, label, present)
    if get_origin(kind) is dict:  # lists in lines, `NAME: one, another`
        text = "\n".join(f"{part}: {', '.join(values)}" for part, values in present.items())
        label += " (one a line, as NAME: first, second)"
        lines = listed(st.text_area(label, text, key=key, height=96), "\n")
        parts = (line.partition(":") for line in lines)
        return {part.strip(): listed(values) for part, _, values in parts}
    if get_origin(kind) is tuple:
        of = get_args(kind)[0]
        closed = get_args(of) if get_origin(of) is Literal else choices
        return st.multiselect(
            label,
            list(dict.fromkeys([*closed, *present])),
            list(present),
            key=key,
            accept_new_options=not closed,
            placeholder="None chosen" if closed else "Type one, then Enter",
        )
    if choices:
        choices = list(dict.fromkeys([*choices, present]))
        return st.selectbox(label, choices, choices.index(present), key=key)
    return st.text_input(label, present or "", key=key, autocomplete="off").strip()


def _number(key: str, field: FieldInfo, label: str, present: Any) -> int | float | None:
    bounds = {
        name: getattr(limit, name)
        for limit in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(limit, name)
    }
    if field.annotation is int:
        least = bounds["gt"] + 1 if "gt" in bounds else bounds.get("ge", -_INTEGERS)
        entered = st.number_input(
            label, int(least), int(bounds.get("le", _INTEGERS)), present, 1, key=key
        )
        return None if entered is None else int(entered)
    low, high, value = (
        None if number is None else float(number)
        for number in (bounds.get("ge"), bounds.get("le"), present)
    )
    step = 0.05 if high is not None and high <= 1 else 1.0
    return st.number_input(label, low, high, value, step, "%g", key=key)


def listed(text: str, between: str = ",") -> list[str]:
    """The parts of a list that is written with commas, or one a line."""
    return [part.strip() for part in text.split(between) if part.strip()]


_EDITING, _OFFER, _SAVE, _COMPLAINT = "editing", "offer", "save", "not_saved"
_LONGEST = 300
"""Characters of a text that the table of changes shows."""


@dataclass(frozen=True)
class Editing:
    """What somebody edits, and the study's files as they were when they began."""

    place: str
    present: Contents

    def text(self, name: str = FILE_NAME) -> str:
        """The text of one of the files; empty where it is not there."""
        return (self.present.files.get(name) or b"").decode("utf-8-sig")

    def key(self, name: str) -> str:
        """The key of a widget: it holds what was entered, until the files are read again."""
        contents = sorted((name, content or b"") for name, content in self.present.files.items())
        return f"{self.place}.{hashlib.sha256(repr(contents).encode()).hexdigest()[:12]}.{name}"


@dataclass(frozen=True)
class _Offer:
    place: str
    after: Contents
    differences: list[Difference]
    effects: list[str]


def begin(study: Study, place: str) -> Editing:
    """Return what is edited at this place of the pages, and say what came of the last change.

    Raises InputError where the study's files do not hold together as they are.
    """
    show_outcome(_SAVE)
    before = st.session_state.get(_EDITING)
    if isinstance(before, Editing) and before.place == place:
        begins = before.key("")  # while its widgets are on the page something may be entered
        if any(str(key).startswith(begins) for key in st.session_state):
            return before
    editing = Editing(place, contents_of(study, read_files(study)))
    st.session_state[_EDITING] = editing
    st.session_state.pop(_OFFER, None)
    return editing


def offer(study: Study, editing: Editing, make: Callable[[], dict[str, str]]) -> None:
    """Determine the effects of a change, to be shown and saved. `make` returns the new texts of the
    files that it changes, in the order in which they are to be written.
    """
    st.session_state.pop(_OFFER, None)
    st.session_state.pop(_COMPLAINT, None)
    try:
        texts = {name: text.encode() for name, text in make().items()}
        # What is written first comes first.
        after = contents_of(study, {**texts, **editing.present.files, **texts})
        changes = list(differences(editing.present, after))
        if not changes:
            raise InputError(written("change.nothing"))
        consequences = effects(study, editing.present, after)
        st.session_state[_OFFER] = _Offer(editing.place, after, changes, consequences)
    except InputError as error:
        st.session_state[_COMPLAINT] = str(error)


def show_offer(study: Study, editing: Editing) -> Contents:
    """Show the change that was entered: what is new, what that does, and the choice. Return the
    study's contents with it; without an offer, as they are.
    """
    if complaint := st.session_state.get(_COMPLAINT, ""):
        show_complaint(complaint)
    if late := changed_since(study, editing.present.files):
        if not complaint:
            show_complaint(written("change.meanwhile", files=" and ".join(late)))
        with st.container(border=True, key="newer"):
            now = contents_of(study, read_files(study))
            st.text(written("change.newer"))
            _show_differences(differences(editing.present, now), "What is new")
            st.text(written("change.again"))
            st.button("Begin again from the newer text", on_click=_begin_again)
        return editing.present
    offered = st.session_state.get(_OFFER)
    if not isinstance(offered, _Offer) or offered.place != editing.place:
        return editing.present
    with st.container(border=True, key="offer"):
        st.header(written("change.title"), anchor=False)
        _show_differences(offered.differences, "What changes")
        for sentence in offered.effects:
            st.text(sentence)
        yes, no, _ = st.columns([1, 1, 2])
        saving = lead_callback(study, _SAVE, _save, editing, offered)
        yes.button("Save", type="primary", on_click=saving, width="stretch")
        no.button("Do not save", on_click=_begin_again, width="stretch")
    return offered.after


def _show_differences(changes: Iterable[Difference], caption: str) -> None:
    rows = [
        (change.place, *(_cut(text) for text in (change.now, change.then))) for change in changes
    ]
    columns = {"place": "What", "now": "Before", "then": "After"}
    show_table(pd.DataFrame(rows, columns=list(columns)), caption, columns)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _begin_again() -> None:
    for name in (_EDITING, _OFFER, _COMPLAINT):
        st.session_state.pop(name, None)


def _save(study: Study, who: Visitor, editing: Editing, offered: _Offer) -> Callable[[], None]:
    try:
        saved = save(study, editing.present.files, offered.after.files, who.name)
    except InputError as error:
        return partial(_refuse, str(error))
    return partial(_show_saved, ", ".join(dict.fromkeys(change.place for change in saved)))


def _show_saved(places: str) -> None:
    _begin_again()
    st.success(plain(written("change.saved", places=places)))


def _refuse(complaint: str) -> None:
    st.session_state[_COMPLAINT] = complaint
    st.session_state.pop(_OFFER, None)


# What raters see, drawn on the lead's pages with the raters' own style.

_STYLE = Path(__file__).parents[1] / "session_pages.css"


def as_raters_see(drawn: str) -> None:
    """Show HTML that was made here as it is on the pages around the work."""
    st.html(_STYLE)
    with st.container(border=True, key="preview"):
        show('<p class="evenhand-label">As annotators see it</p>')
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
    """The files in a temporary folder, each under the name it is given here: what the sender called
    it never becomes a path.

    Raises InputError where one is too large or of no known kind.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-upload-") as home:
        paths: dict[str, Path | None] = dict.fromkeys(files)
        for name, file in files.items():
            if file is None:
                continue
            if file.size > MOST_MB * 1_000_000:
                raise InputError(
                    f"the file of {name} is larger than {MOST_MB} MB; use the command line for it"
                )
            suffix = Path(file.name).suffix.lower()
            if suffix.removeprefix(".") not in kinds:
                raise InputError(
                    f"the file of {name} is of no known kind; upload one of {', '.join(kinds)}"
                )
            paths[name] = path = Path(home) / f"{name}{suffix}"
            path.write_bytes(file.getbuffer())
        yield paths
