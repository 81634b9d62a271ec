"""The table of docs/study-settings.md, written from the settings' classes.

`python -m evenhand.study.settings.page docs/study-settings.md` puts it between the page's marks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args, get_origin

from pydantic.fields import FieldInfo

from evenhand.study.settings.sections import Section, keys_of
from evenhand.study.settings.study_toml import StudyConfig

BEGIN, END = "<!-- settings: written from the code -->", "<!-- end of the settings -->"


def settings_table() -> str:
    """Every key of study.toml in its order, what it says, and what is usual, as Markdown."""
    lines = ["| key | says | usual |", "| --- | --- | --- |"]
    for name, field in StudyConfig.model_fields.items():
        section = _section_of(field)
        if section is None:
            lines.append(_line("", name, field))
        else:
            heading = f"[[{name}]]" if get_origin(field.annotation) is tuple else f"[{name}]"
            lines += [_line(heading, key, each) for key, each in keys_of(section).items()]
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{settings_table()}\n\n{END}{after}"


def _line(heading: str, key: str, field: FieldInfo) -> str:
    """A key within its section, or as a table of its own; what it says, and what is usual."""
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


def _section_of(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, one or several of it, or None where it is a plain key."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page_with_table(path.read_text("utf-8")), "utf-8")
