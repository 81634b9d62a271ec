"""The study's own texts for its raters, with a preview drawn as raters see it."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app.drawn import drawn_text
from evenhand.annotate_app.languages import Language, language
from evenhand.annotate_app.lead.parts.editing import Editing, begin, offer, show_offer
from evenhand.annotate_app.lead.parts.preview import as_raters_see
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import heading
from evenhand.study import Study
from evenhand.study.settings.study_toml import FILE_NAME, Changes, with_values
from evenhand.texts import written

_TEXTS = {
    "consent": "Consent",
    "instructions": "Instructions on the first page",
    "content_warning": "Content warning on the first page",
}


def show_texts(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.texts"))
    languages = [study.config.annotation.language, *study.config.annotation.languages]
    which, of_language = st.columns(2)
    name = which.selectbox("Text", list(_TEXTS), format_func=_TEXTS.__getitem__, key="text")
    code = languages[0]
    if len(languages) > 1:
        code = of_language.selectbox(
            "Language", languages, format_func=lambda each: language(each).name, key="text_in"
        )
    own = code == languages[0]
    editing = begin(study, f"text-{name}-{code}")
    present = _present(editing, name) if own else editing.text(f"{name}.{code}.md").strip()
    left, right = st.columns(2, gap="large")
    with left, st.form(editing.key("form"), border=False):
        text = st.text_area(
            f"{_TEXTS[name]} ({written('lead.texts_form')})",
            present,
            height=360,
            key=editing.key("text"),
        )
        sent = st.form_submit_button("See what it does")
    with right:
        as_raters_see(_drawn(name, text, language(code)))
    if sent:
        offer(study, editing, lambda: _changed(editing, name, "" if own else code, text.strip()))
    show_offer(study, editing)


def _present(editing: Editing, name: str) -> str:
    config = editing.present.config
    if name == "consent":
        return config.consent.text if config.consent else ""
    return str(getattr(config.session, name))


def _drawn(name: str, text: str, reader: Language) -> str:
    """The text as on the raters' page."""
    if name == "consent":
        return heading(reader.say("session.consent_title"), 1) + drawn_text(text, lang=reader.code)
    title = heading(reader.say("session.welcome_title"), 1)
    if name == "content_warning":
        return title + drawn_text(text, "warning", reader.say("session.warning"), reader.code)
    return title + drawn_text(text, lang=reader.code)


def _changed(editing: Editing, name: str, code: str, text: str) -> dict[str, str]:
    """The file with the new text: study.toml, or of another language one of its own. Without a
    text a study does not ask for consent.
    """
    if code:
        return {f"{name}.{code}.md": f"{text}\n"}
    new: Changes = {"session": {name: text}}
    if name == "consent":
        new = {"consent": {"text": text} if text else None}
    return {FILE_NAME: with_values(editing.settings, new)}
