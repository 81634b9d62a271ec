"""Examples in docstrings, as blocks of code on the site's page of the Python API.

Griffe calls it (`extensions` in mkdocs.yml); it knows an example only under a heading "Examples".
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^>>>.*\n(?:(?!>>>)\S.*\n|\.\.\..*\n)*)+", re.MULTILINE)


class DoctestBlocks(griffe.Extension):
    """Puts every run of `>>>` lines, with what they print, into a block."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = in_blocks(obj.docstring.value)


def in_blocks(text: str) -> str:
    """The text with each run of examples as a block of its own."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}```\n", f"{text}\n").rstrip("\n")
