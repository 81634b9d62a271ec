"""Practice units, attention checks, and the questions before the work: one after the other."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from evenhand.annotate_app.drawn import drawn_blocks, drawn_text
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.lead.parts.controls import listed, named
from evenhand.annotate_app.lead.parts.editing import Editing, begin, offer, show_offer
from evenhand.annotate_app.lead.parts.preview import as_raters_see
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import plain
from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES
from evenhand.study import Study
from evenhand.study.settings.study_toml import FILE_NAME, with_entry, with_values
from evenhand.texts import written

_NEW = "A new one"


@dataclass(frozen=True)
class _List:
    """A list of the study that is edited entry by entry: the section whose file it is in ("" for
    study.toml), its place there, and the key that tells entries apart.
    """

    title: str
    one: str
    section: str
    place: str
    name: str


_LISTS = {
    "practice": _List("Practice units", "practice unit", "training", "unit", "name"),
    "checks": _List("Attention checks", "attention check", "attention", "unit", "name"),
    "comprehension": _List("Comprehension questions", "question", "", "comprehension", "question"),
    "background": _List("Background questions", "question", "", "background.questions", "key"),
}


def show_training(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.training"))
    kind = st.segmented_control(
        "Kind",
        list(_LISTS),
        default="practice",
        format_func=lambda each: _LISTS[each].title,
        required=True,
        key="training_kind",
    )
    own = _LISTS[kind or "practice"]
    editing = begin(study, f"training-{kind}")
    file = _file(editing, own)
    entries = _entries(editing, own, file)
    if entries:
        said = "entries" if _is_on(editing, own) else "entries_off"
        st.text(written(f"lead.{said}", count=len(entries), file=file))
    else:
        st.text(written("lead.no_entries"))
    names = [str(entry.get(own.name, "")) for entry in entries]
    at = st.selectbox(
        f"Which {own.one}",
        range(len(names) + 1),
        format_func=lambda place: names[place] if place < len(names) else _NEW,
        key=editing.key("at"),
    )
    entry = entries[at] if at < len(entries) else {}
    of_units = own.place == "unit"
    form, shown = st.columns(2, gap="large")
    with form, st.form(editing.key(f"form.{at}"), border=False):
        key = lambda name: editing.key(f"{at}.{name}")  # noqa: E731
        entered = (
            _unit(study, entry, key, explains=own.section == "training")
            if of_units
            else _question(own, entry, key)
        )
        keep, take_out, _ = st.columns([1, 1, 1])
        sent = keep.form_submit_button("See what it does", width="stretch")
        removes = bool(entry) and take_out.form_submit_button("Take it out", width="stretch")
    if sent or removes:
        new = None if removes else entered
        offer(study, editing, lambda: _changed(editing, own, file, at, new))
    show_offer(study, editing)
    if of_units:
        with shown:
            as_raters_see(_drawn(study, entered))


def _file(editing: Editing, own: _List) -> str:
    if not own.section:
        return FILE_NAME
    section = getattr(editing.present.config, own.section)
    return (section.file if section else "") or f"{own.section}.toml"


def _is_on(editing: Editing, own: _List) -> bool:
    """Return True if raters meet what the file holds; it may lie there while its part is off."""
    section = own.section and getattr(editing.present.config, own.section)
    return not own.section or bool(section and section.file)


def _entries(editing: Editing, own: _List, file: str) -> list[dict[str, Any]]:
    """The entries as the file has them; none where a study takes the usual questions."""
    return _listed(editing.text(file), own.place)


def _listed(text: str, place: str) -> list[dict[str, Any]]:
    content: Any = tomllib.loads(text)
    for part in place.split("."):
        content = content.get(part, {})
    return list(content)


def _unit(
    study: Study, entry: dict[str, Any], key: Callable[[str], str], *, explains: bool
) -> dict[str, Any]:
    """Draw the fields of a unit with a known answer; return what is entered."""
    rubrics = study.labelled_rubrics()
    name = st.text_input("Name", entry.get("name", ""), key=key("name"), autocomplete="off")
    found: dict[str, Any] = {"name": name.strip()}
    values = {}
    for variable in dict.fromkeys(name for rubric in rubrics for name in rubric.variables):
        present = entry.get("values", {}).get(variable, "")
        label = TEXT_VARIABLES.get(variable, named(variable))
        values[variable] = st.text_area(label, present, key=key(f"values.{variable}"), height=110)
    found["values"] = {variable: text for variable, text in values.items() if text}
    expected = {
        rubric.name: _right(rubric, entry.get("expected", {}).get(rubric.name, []), key)
        for rubric in rubrics
    }
    found["expected"] = {name: keys for name, keys in expected.items() if keys}
    if explains:
        text = st.text_area(
            f"Explanation, shown with the right answer ({written('lead.texts_form')})",
            entry.get("explanation", ""),
            key=key("explanation"),
            height=110,
        )
        found["explanation"] = text.strip() or None
    elif "explanation" in entry:
        found["explanation"] = entry["explanation"]
    return found


def _right(rubric: Rubric, present: str | list[str], key: Callable[[str], str]) -> list[str]:
    """Draw the right answers on a rubric; return those chosen."""
    keys = [present] if isinstance(present, str) else list(present)
    label, at = f"Right on {plain(rubric.title)}", key(f"expected.{rubric.name}")
    if rubric.number:
        return listed(st.text_input(label, ", ".join(keys), key=at, autocomplete="off"))
    names = {option.key: f"{option.key}: {option.name}" for option in rubric.options}
    known = list(dict.fromkeys([*names, *keys]))
    return st.multiselect(
        label, known, keys, format_func=lambda each: names.get(each, each), key=at,
        placeholder="Not asked, or any answer will do",
    )  # fmt: skip


def _question(own: _List, entry: dict[str, Any], key: Callable[[str], str]) -> dict[str, Any]:
    """Draw the fields of a question before the work; return what is entered."""
    found: dict[str, Any] = {}
    if own.name == "key":
        column = st.text_input(
            "Column in the table of raters", entry.get("key", ""), key=key("key")
        )
        found["key"] = column.strip()
    found["question"] = st.text_input("Question", entry.get("question", ""), key=key("question"))
    options = st.text_area(
        "Answers, one a line", "\n".join(entry.get("options", ())), key=key("options"), height=130
    )
    found["options"] = [line.strip() for line in options.splitlines() if line.strip()]
    if own.name == "question":
        found["answer"] = st.text_input(
            "The right answer", entry.get("answer", ""), key=key("answer"), autocomplete="off"
        ).strip()
        explanation = st.text_area(
            "Explanation, shown after a wrong answer",
            entry.get("explanation", ""),
            key=key("explanation"),
            height=96,
        )
        found["explanation"] = explanation.strip() or None
    return found


def _drawn(study: Study, unit: dict[str, Any]) -> str:
    """The texts of a unit as raters see them, and what they are told."""
    blocks: dict[str, Any] = {}
    for rubric in study.labelled_rubrics():
        values = {name: unit["values"].get(name, "") for name in rubric.variables}
        blocks |= {block.variable: block for block in rubric.for_people(values).blocks}
    shown: Sequence[Any] = [block for block in blocks.values() if block.text]
    explanation = unit.get("explanation") or ""
    said = drawn_text(explanation) if explanation else ""
    return said + drawn_blocks(shown, ENGLISH, study.config.annotation.display)


def _changed(
    editing: Editing, own: _List, file: str, at: int, entry: dict[str, Any] | None
) -> dict[str, str]:
    """The file with the entry; the first one turns its part on, and the last one turns it off."""
    text = editing.text(file)
    if own.place == "unit" and entry is not None and not entry["expected"]:
        raise InputError(written("lead.no_right_answer"))
    if own.place == "background.questions" and editing.present.config.background is None:
        text = with_values(text, {"background": {}})
    text = with_entry(text, own.place, at, entry)
    if own.place == "background.questions" and not _listed(text, own.place):
        text = with_values(text, {"background": None})  # without a list the usual ones are asked
    if not own.section:
        return {file: text}
    settings = editing.settings
    if tomllib.loads(text).get(own.place):
        # The units first: as long as no setting names their file, they change nothing.
        return {file: text, FILE_NAME: with_values(settings, {own.section: {"file": file}})}
    without = None if own.section == "attention" else {"file": None}
    return {FILE_NAME: with_values(settings, {own.section: without}), file: text}
