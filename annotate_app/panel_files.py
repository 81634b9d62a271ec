"""The panel's code, style and markup as one file, which a browser fetches once and keeps.

A component's inline code is sent with every unit; so its only inline code is the line that fetches
this file.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("panel")
_MARKUP = ("panel.html",)
_STYLE = (
    *("panel.css", "texts.css", "dialogs.css", "copying.css", "narrow.css"),
    *("pause.css", "earlier.css", "flags.css"),
)
# One module: the parts share its scope.
_CODE = (
    *("line.js", "kept.js", "drafts.js", "view.js", "numbers.js", "several.js", "controls.js"),
    *("turns.js", "markdown.js", "dialogs.js", "reading.js", "copying.js", "drawing.js"),
    *("differing.js", "ways.js", "finding.js", "keys.js", "flags.js", "looking.js"),
    *("earlier.js", "pause.js", "marks.js"),
    "panel.js",
)


@cache
def panel_module() -> str:
    """The module: `MARKUP` and `STYLE` as strings, then the code."""
    texts = {"MARKUP": _joined(_MARKUP), "STYLE": _joined(_STYLE)}
    lines = [f"const {name} = {json.dumps(text)};" for name, text in texts.items()]
    return "\n".join([*lines, _joined(_CODE)])


@cache
def panel_path() -> str:
    """Return the path of the module on the server, without the first slash: it changes with the
    module's content, so that a browser may keep the file for good.
    """
    return f"evenhand/panel.{hashlib.sha256(panel_module().encode()).hexdigest()[:16]}.js"


def fetching_code() -> str:
    """Return the component's inline code: it fetches the module, or reloads the page."""
    return _joined(("fetching.js",)).replace("PANEL_PATH", json.dumps(panel_path()))


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join((_FOLDER / name).read_text("utf-8") for name in names)
