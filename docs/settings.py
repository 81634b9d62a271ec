"""The table of study-settings.md, written from the settings' classes.

`python -m docs.settings` puts it between the page's marks.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_origin

from pydantic.fields import FieldInfo

from evenhand.study.settings.sections import keys_of, section_of
from evenhand.study.settings.study_toml import StudyConfig

PAGE = Path(__file__).with_name("study-settings.md")
BEGIN, END = "<!-- settings: written from the code -->", "<!-- end of the settings -->"


def settings_table() -> str:
    """Return a Markdown table of every key of study.toml, its meaning and its default."""
    lines = ["| key | says | default |", "| --- | --- | --- |"]
    for name, field in StudyConfig.model_fields.items():
        section = section_of(field)
        if section is None:
            lines.append(_line("", name, field))
        else:
            heading = f"{name}.NAME." if get_origin(field.annotation) is dict else f"{name}."
            lines += [_line(heading, key, each) for key, each in keys_of(section).items()]
    return "\n".join(lines)


def renewed(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{settings_table()}\n\n{END}{after}"


def _line(heading: str, key: str, field: FieldInfo) -> str:
    """Return a row of the table: a key or table of a section, its meaning and its default."""
    table = get_origin(field.annotation) is dict and not heading
    place = f"[{key}]" if table else f"{heading}{key}"
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    example = f": {extra['example']}" if "example" in extra else ""
    return f"| `{place}` | {field.description}{example} | {extra.get('usual') or _usual(field)} |"


def _usual(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value in ((), {}, "", None):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{value}`"
    return ", ".join(f"`{each}`" for each in value) if isinstance(value, tuple) else f"{value:g}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
