"""The words of the study's own rubrics, and what a change of them does to labels given so far."""

from __future__ import annotations

import tomllib
from typing import Any

import streamlit as st

from evenhand.annotate_app.drawn import drawn_rubric
from evenhand.annotate_app.languages import ENGLISH, codes_english_first, language
from evenhand.annotate_app.lead.parts.editing import Editing, begin, offer, show_offer
from evenhand.annotate_app.lead.parts.preview import as_raters_see
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import plain
from evenhand.rubrics import Rubric
from evenhand.study import Study
from evenhand.study.changing import labels_under
from evenhand.study.settings.study_toml import FILE_NAME, with_entry, with_values
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

_MEANINGS = ("differs", "same")


def show_rubrics(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.rubrics"))
    which, of_language = st.columns(2)
    name = which.selectbox("Rubric", list(study.rubrics), key="rubric_name")
    versions = list(study.rubrics[name].versions)
    code = versions[0]
    if len(versions) > 1:
        code = of_language.selectbox(
            "Language", versions, format_func=_language_name, key="rubric_in"
        )
    editing = begin(study, f"rubric-{name}-{code}")
    rubric = editing.present.rubrics[name].in_language(code)
    own = code == versions[0]
    told = labels_under(study, editing.present.rubrics[name])
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        words, options = _fields(editing, rubric)
        meaning = "differs"
        if own and told:
            meaning = st.radio(
                "What is new about it",
                _MEANINGS,
                format_func=lambda each: written(f"change.{each}"),
                key=editing.key("meaning"),
            )
        sent = st.form_submit_button("See what it does")
    if sent:
        at = "" if own else f"translations.{code}"
        same = meaning == "same"
        offer(study, editing, lambda: _changed(editing, rubric, at, words, options, same))
    after = show_offer(study, editing).rubrics[name].in_language(code)
    with right:
        reader = language(code) if code in codes_english_first() else ENGLISH
        as_raters_see(drawn_rubric(after, reader))


def _language_name(code: str) -> str:
    return language(code).name if code in codes_english_first() else code


def _fields(editing: Editing, rubric: Rubric) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Draw the fields of a rubric's words; return what is entered, and that of each option."""
    key = editing.key
    words = {
        "title": st.text_input("Title", rubric.title, key=key("title"), autocomplete="off"),
        "question": st.text_input(
            "Question", rubric.question, key=key("question"), autocomplete="off"
        ),
        "instructions": st.text_area(
            f"Guidelines ({written('lead.texts_form')})",
            rubric.instructions,
            height=220,
            key=key("instructions"),
        ),
    }
    options = []
    for option in () if rubric.number else rubric.options:
        with st.expander(f"Option {option.key}: {plain(option.name)}"):
            of = f"Option {option.key}"
            name = st.text_input(f"{of}, name", option.name, key=key(f"{option.key}.name"))
            said = st.text_area(
                f"{of}, description", option.description, key=key(f"{option.key}.said"), height=96
            )
            examples = st.text_area(
                f"{of}, examples, one a line",
                "\n".join(option.examples),
                key=key(f"{option.key}.examples"),
                height=96,
            )
        lines = [line.strip() for line in examples.splitlines() if line.strip()]
        options.append({"name": name.strip(), "description": said.strip(), "examples": lines})
    return {name: text.strip() for name, text in words.items()}, options


def _changed(
    editing: Editing,
    rubric: Rubric,
    at: str,
    words: dict[str, str],
    options: list[dict[str, Any]],
    same: bool,
) -> dict[str, str]:
    """The rubric's file with the new words of one language, and with `same` the settings, in which
    its older text means the same.
    """
    file = f"{RUBRICS_FOLDER}/{rubric.name}.toml"
    text = editing.text(file)
    new = {name: each for name, each in words.items() if each != getattr(rubric, name)}
    text = with_values(text, {at: new})
    content: Any = tomllib.loads(text)
    for part in filter(None, at.split(".")):
        content = content[part]
    place = f"{at}.options" if at else "options"
    for number, (option, entered) in enumerate(zip(rubric.options, options, strict=False)):
        present = {**option.model_dump(include=set(entered)), "examples": list(option.examples)}
        changed = {name: each for name, each in entered.items() if each != present[name]}
        if changed:
            text = with_entry(text, place, number, {**content["options"][number], **changed})
    before = editing.present.rubrics[rubric.name]
    known = editing.present.config.same_text.get(rubric.name, ())
    if not same and known and not at:
        # What meant the same as the text before does not mean the same as this one.
        settings = with_values(editing.settings, {"same_text": {rubric.name: None}})
        return {FILE_NAME: settings, file: text}
    if not same:
        return {file: text}
    older = list(dict.fromkeys([*known, before.hash]))
    # The settings first: as long as the old text is there, they change nothing.
    return {
        FILE_NAME: with_values(editing.settings, {"same_text": {rubric.name: older}}),
        file: text,
    }
