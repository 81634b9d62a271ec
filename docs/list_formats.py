"""Lists the files that are read in the table of formats.md, from the readers and their sentences.

`python docs/list_formats.py` writes it anew between the page's markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evenhand.exchange.readers.reading import ITEM_READERS, READERS
from evenhand.texts import texts

PAGE = Path(__file__).with_name("formats.md")
TABLE = "A table, by its columns."
BEGIN, END = "<!-- readers: written from the code -->", "<!-- end of the readers -->"


def renewed(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = ["| format | how it is read |", "| --- | --- |", *_rows()]
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def _rows() -> Iterator[str]:
    for name, tool_format in ITEM_READERS.items():
        key = tool_format.key
        yield f"| `{name}` | {_taken(key if name in READERS else f'{key}_items')} |"


def _taken(key: str) -> str:
    """What a reader says first of how it reads a file, behind the name of the tool."""
    _, _, said = texts()[f"exchange.{key}"].partition(". ")
    return f"{said.partition('. ')[0].rstrip('.')}." if said else TABLE


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
