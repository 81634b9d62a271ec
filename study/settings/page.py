"""The settings of a study as people read them."""

from __future__ import annotations

from typing import get_args

from pydantic.fields import FieldInfo

from evenhand.study.settings.sections import Section, keys_of
from evenhand.study.settings.study_toml import StudyConfig


def settings_in_force(config: StudyConfig) -> list[tuple[str, str, str]]:
    """Return every setting of a study as plain text: its key, its value, and its meaning. The
    store's address is left out, as it may hold a password.

    A section that study.toml does not have, or that may occur several times, is one row.
    """
    rows = []
    for name, field in StudyConfig.model_fields.items():
        value, section = getattr(config, name), section_of(field)
        if section is None:
            shown = value.partition("://")[0] if name == "store" else value
            rows.append((name, in_words(shown), _plain(field)))
        elif isinstance(value, Section):
            rows += [
                (f"[{name}] {key}", in_words(getattr(value, key)), _plain(each))
                for key, each in keys_of(section).items()
            ]
        else:
            rows.append((f"[{name}]", f"{len(value)} of them" if value else "none", ""))
    return rows


def _plain(field: FieldInfo) -> str:
    return (field.description or "").replace("`", "")


def in_words(value: object) -> str:
    """A value as a person reads it.

    >>> in_words(("a", "b")), in_words(()), in_words(0.5), in_words({"x": 0.1})
    ('a, b', 'none', '0.5', 'x = 0.1')
    """
    if value in ((), {}, "", None):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{key} = {in_words(each)}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def section_of(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, one or several of it, or None where it is a plain key."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None
