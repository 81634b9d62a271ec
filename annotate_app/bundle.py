"""Streamlit's modules as one file, for browsers that would fetch seventy files six at a time.

The browser takes the file apart again: each module stays one, under the address of its own file, so
that what Streamlit fetches later shares them. Made from the Streamlit that is installed; where its
files have another form than the one expected, there is no bundle, and a browser fetches the files.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

_LOADER = Path(__file__).with_name("bundle.js")
_SCRIPTS = files("streamlit") / "static" / "static" / "js"
_FILE = r"[\w.-]+\.js"
_STATIC = re.compile(
    rf'(?<![\w$.])(import(?:[\w$*{{}},\s]+?from)?|export[\w$*{{}},\s]+?from)"\./({_FILE})"'
)
_DYNAMIC = re.compile(rf"(?<![\w$.])import\(`\./({_FILE})`\)")
_RELATIVE = re.compile(r"""(?:\bfrom|(?<![\w$.])import\(?)\s*["'`]\.{1,2}/""")
_COMPONENT = re.compile(r"BidiComponent\.")
_OWN_ADDRESS = "import.meta.url"
_BASE = "evenhand:static/"
_PROBE = "evenhand:probe"


def modules_of(page: str) -> list[str]:
    """The names of the modules with which Streamlit's page begins, its entry first, and of those
    that draw a component, which a browser would ask for only once it is told to.
    """
    waiting = re.findall(rf'"\./static/js/({_FILE})"', page)
    with suppress(OSError):
        waiting += [each.name for each in _SCRIPTS.iterdir() if _COMPONENT.match(each.name)]
    found: list[str] = []
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting += [other for _, other in _STATIC.findall(_text(name))]
    return found


@cache
def bundle(page: str, *later: str) -> str:
    """The script that stands for all modules of a page of Streamlit's; "" where there can be none.
    `later` are the paths of modules that the page needs after them.
    """
    entry = re.search(rf'<script type="module"[^>]* src="\./static/js/({_FILE})"', page)
    parts = {name: _with_addresses(name) for name in modules_of(page)}
    if entry is None or not all(parts.values()):
        return ""
    settings = {
        "BASE": _BASE,
        "PROBE": _PROBE,
        "ENTRY": entry[1],
        "LATER": later,
        "PARTS": parts,
    }
    lines = [f"const {name} = {json.dumps(value)};" for name, value in settings.items()]
    return "\n".join(["{", *lines, _LOADER.read_text("utf-8"), "}"])


def _with_addresses(name: str) -> str:
    """A module that names itself and others by whole addresses; "" where one is not understood."""
    text = _text(name)
    if _BASE in text:
        return ""
    text = _STATIC.sub(rf'\1"{_BASE}\2"', text)
    text = _DYNAMIC.sub(rf"import(`{_BASE}\1`)", text)
    text = text.replace(_OWN_ADDRESS, f"`{_BASE}{name}`")
    return "" if _RELATIVE.search(text) else text


def _text(name: str) -> str:
    """A module; "" where Streamlit has it in another place."""
    try:
        return (_SCRIPTS / name).read_text("utf-8")
    except OSError:
        return ""
