"""The table of docs/study-settings.md, written from the settings' classes.

`python -m evenhand.study.settings.page docs/study-settings.md` puts it between the page's marks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from evenhand.study.settings.sections import Section, keys_of
from evenhand.study.settings.study_toml import StudyConfig

BEGIN, END = "<!-- settings: written from the code -->", "<!-- end of the settings -->"

_HEADINGS: dict[Any, str] = {tuple: "[[{}]]", dict: '[{}."NAME"]'}
"""Headings of sections that may occur several times."""


def settings_table() -> str:
    """Return a Markdown table of every key of study.toml, its meaning and its default."""
    lines = ["| key | says | default |", "| --- | --- | --- |"]
    for name, field in StudyConfig.model_fields.items():
        section = section_of(field)
        if section is None:
            lines.append(_line("", name, field))
        else:
            heading = _HEADINGS.get(get_origin(field.annotation), "[{}]").format(name)
            lines += [_line(heading, key, each) for key, each in keys_of(section).items()]
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{settings_table()}\n\n{END}{after}"


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


def _line(heading: str, key: str, field: FieldInfo) -> str:
    """Return a row of the table: a key or table of a section, its meaning and its default."""
    place = f"{heading} {key}".strip()
    if get_origin(field.annotation) is dict:
        place = f"[{heading.strip('[]')}.{key}]" if heading else f"[{key}]"
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    example = f": {extra['example']}" if "example" in extra else ""
    return f"| `{place}` | {field.description}{example} | {extra.get('usual') or _usual(field)} |"


def _usual(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value in ((), {}, "", None):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{value}`"
    return ", ".join(f"`{each}`" for each in value) if isinstance(value, tuple) else f"{value:g}"


def section_of(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, one or several of it, or None where it is a plain key."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page_with_table(path.read_text("utf-8")), "utf-8")
