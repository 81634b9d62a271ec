"""The settings in study.toml: each with its explanation, its value, and, where it may be changed
now, a control.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from pydantic.fields import FieldInfo

from evenhand.annotate_app.lead.parts.controls import control, explained, named
from evenhand.annotate_app.lead.parts.editing import Editing, begin, offer, show_offer
from evenhand.annotate_app.lead.parts.tables import show_table
from evenhand.annotate_app.logins.lead_login import require
from evenhand.annotate_app.plain_text import block, show
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.changing import fixed_because, has_begun
from evenhand.study.settings.page import in_words, section_of, settings_in_force
from evenhand.study.settings.sections import Section, keys_of
from evenhand.study.settings.study_toml import FILE_NAME, StudyConfig, with_values
from evenhand.texts import written

_ALL = "all"
_PARTS = {
    "annotation": "Labelling",
    "session": "Entry and pace",
    "training": "Training",
    "attention": "Attention checks",
    "prolific": "Prolific",
    "pay": "Pay",
    "analysis": "Analysis",
    "decision": "Verdict",
    "quality": "Flags on raters",
    "sample": "Study and sample",
    _ALL: "All settings",
}
_ELSEWHERE = {
    "session.content_warning": "texts",
    "session.instructions": "texts",
    "training.file": "training",
    "attention.file": "training",
}
"""Settings that have a page of their own -> the sentence that names it."""


def show_settings(study: Study) -> None:
    require(study, "lead")
    st.text(written("lead.settings"))
    part = st.selectbox("Part", list(_PARTS), format_func=_PARTS.__getitem__, key="settings_part")
    if part == _ALL:
        _show_all(study)
        return
    editing = begin(study, f"settings-{part}")
    fields = StudyConfig.model_fields
    section = section_of(fields[part])
    present = getattr(editing.present.config, part)
    own = {"name": fields["name"]} if part == "sample" else {}
    begun = has_begun(study)
    with st.form(editing.key("form"), border=False):
        wanted = _switch(editing, fields[part], present)
        entered: dict[str, Any] = {}
        for name, field in own.items():
            entered[name] = _row(study, editing, "", name, field, editing.present.config, begun)
        for name, field in keys_of(section).items() if section else ():
            entered[f"{part}.{name}"] = _row(study, editing, part, name, field, present, begun)
        if part == "sample":
            for name in ("seed", "store", "synthetic"):
                _row(study, editing, "", name, fields[name], editing.present.config, begun)
        sent = st.form_submit_button("See what it does")
    if sent:
        offer(study, editing, lambda: _changed(editing, part, wanted, entered))
    show_offer(study, editing)


def _show_all(study: Study) -> None:
    import pandas as pd

    table = pd.DataFrame(settings_in_force(study.config), columns=["key", "value", "says"])
    show_table(table, "Settings", {"key": "Key", "value": "Set to", "says": "What it says"})


def _switch(editing: Editing, field: FieldInfo, present: Section | None) -> bool:
    """Whether a section that may be left out is wanted."""
    if field.is_required() or field.default is not None:
        return True
    return st.toggle("Use this part of a session", present is not None, key=editing.key("used"))


def _row(
    study: Study,
    editing: Editing,
    part: str,
    name: str,
    field: FieldInfo,
    section: Section | None,
    begun: bool,
) -> Any:
    """One setting: its control, or the reason why there is none, beside its explanation. Return
    what is entered; None where nothing can be.
    """
    place = f"{part}.{name}" if part else name
    usual = None if field.is_required() else field.get_default(call_default_factory=True)
    present = usual if section is None else getattr(section, name)
    left, right = st.columns([2, 3], gap="medium")
    reason = fixed_because(place, begun)
    if not reason and place in _ELSEWHERE:
        reason = written(f"change.elsewhere_{_ELSEWHERE[place]}")
    with right:
        st.html(explained(field.description or "", place))
    with left:
        if reason:
            value = str(present).partition("://")[0] if place == "store" else in_words(present)
            show(block(value, "fixed", named(name)))
            st.html(explained(reason.rstrip(".")))
            return None
        return control(editing.key(place), field, name, present, study)


def _changed(
    editing: Editing, part: str, wanted: bool, entered: Mapping[str, Any]
) -> dict[str, str]:
    """study.toml with what was entered; what is as it was stays as it is written."""
    config = editing.present.config
    section = getattr(config, part)
    if not wanted:
        if section is None:
            raise InputError(written("change.nothing"))
        return {FILE_NAME: with_values(editing.settings, {part: None})}
    changes: dict[str, dict[str, Any]] = {}
    for place, value in entered.items():
        above, _, name = place.rpartition(".")
        of = getattr(config, above) if above else config
        if value is not None and (of is None or value != _plain(getattr(of, name))):
            changes.setdefault(above, {})[name] = value
    return {FILE_NAME: with_values(editing.settings, changes)}


def _plain(value: Any) -> Any:
    """A value as a control gives it: tuples are lists."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
