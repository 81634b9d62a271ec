"""A control for each setting, by its class: a switch, a number, a choice, a text, a list."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin
from zoneinfo import available_timezones

import streamlit as st
from pydantic.fields import FieldInfo

from evenhand.annotate_app.languages import codes_english_first
from evenhand.study import Study

_INTEGERS = 2**31 - 1


def named(key: str) -> str:
    """A setting's name as people read it.

    >>> named("raters_per_unit")
    'Raters per unit'
    """
    return key.replace("_", " ").capitalize()


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
