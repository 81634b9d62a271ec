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
from evenhand.annotate_app.plain_text import show
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.changing import fixed_because, has_begun
from evenhand.study.settings.page import in_words, section_of, settings_in_force
from evenhand.study.settings.sections import keys_of
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
_BESIDE = {"sample": ("name", "seed", "store", "synthetic")}
"""Settings outside any section -> the part that they are shown with."""
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
    part = st.segmented_control(
        "Part of the settings",
        list(_PARTS),
        default="annotation",
        format_func=_PARTS.__getitem__,
        required=True,
        key="settings_part",
    )
    if part is None or part == _ALL:
        _show_all(study)
        return
    editing = begin(study, f"settings-{part}")
    fields = _fields(editing.present.config, part)
    begun = has_begun(study)
    stays = {place: reason for place in fields if (reason := _why_it_stays(place, begun))}
    with st.form(editing.key("form"), border=False):
        wanted = _switch(editing, part)
        entered = {
            place: _row(study, editing, place, *of)
            for place, of in fields.items()
            if place not in stays
        }
        sent = st.form_submit_button("See what it does")
    if sent:
        offer(study, editing, lambda: _changed(editing, part, wanted, entered))
    show_offer(study, editing)
    _show_fixed(fields, stays)


def _fields(config: StudyConfig, part: str) -> dict[str, tuple[FieldInfo, Any]]:
    """The settings of a part by their keys, each with its value: that in force, or the usual one
    where the study leaves the section out.
    """
    fields = StudyConfig.model_fields
    section, of = section_of(fields[part]), getattr(config, part)
    own = {name: (fields[name], getattr(config, name)) for name in _BESIDE.get(part, ())}
    for name, field in keys_of(section).items() if section else ():
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        own[f"{part}.{name}"] = (field, usual if of is None else getattr(of, name))
    return own


def _why_it_stays(place: str, begun: bool) -> str:
    """Why there is no control for a setting; "" where there is one."""
    if place in _ELSEWHERE:
        return written(f"change.elsewhere_{_ELSEWHERE[place]}")
    return fixed_because(place, begun)


def _show_fixed(fields: Mapping[str, tuple[FieldInfo, Any]], stays: Mapping[str, str]) -> None:
    """The settings without a control, with the reasons."""
    import pandas as pd

    if not stays:
        return
    rows = [
        {
            "name": named(place.rpartition(".")[2]),
            "value": in_words(_without_address(place, fields[place][1])),
            "why": reason.replace("`", ""),
        }
        for place, reason in stays.items()
    ]
    titles = {"name": "Setting", "value": "Set to", "why": "Why it stays"}
    show_table(pd.DataFrame(rows), written("change.fixed"), titles)


def _without_address(place: str, value: Any) -> Any:
    """A setting's value; of the store's address, which may hold a password, its kind alone."""
    return str(value).partition("://")[0] if place == "store" else value


def _show_all(study: Study) -> None:
    import pandas as pd

    table = pd.DataFrame(settings_in_force(study.config), columns=["key", "value", "says"])
    show_table(table, "Settings", {"key": "Key", "value": "Set to", "says": "What it says"})


def _switch(editing: Editing, part: str) -> bool:
    """Draw the switch of a section that may be left out; return whether it is wanted."""
    if StudyConfig.model_fields[part].default is not None or part == "sample":
        return True
    used = getattr(editing.present.config, part) is not None
    return st.toggle("Use this part in the study", used, key=editing.key("used"))


def _row(study: Study, editing: Editing, place: str, field: FieldInfo, present: Any) -> Any:
    """Draw a setting's control beside its explanation; return what is entered."""
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with left:
        name = place.rpartition(".")[2]
        entered = control(editing.key(place), field, name, present, study)
    with right:
        show(explained(field.description or "", place))
    return entered


def _changed(
    editing: Editing, part: str, wanted: bool, entered: Mapping[str, Any]
) -> dict[str, str]:
    """study.toml with what was entered; what is as it was stays as it is written."""
    config = editing.present.config
    section = getattr(config, part)
    if not wanted:
        if section is None:
            raise InputError(written("change.not_used"))
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
