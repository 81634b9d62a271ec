"""Any text in a form that can be printed, drawn and parsed: invisible characters get a mark.

The one place for it. Data keep their characters; what is shown of them - on a terminal, in charts,
LaTeX, HTML, Markdown and XML - goes through `visible`.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import Any

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, but for tab and line break
    "\u061c\u202a-\u202e\u2066-\u2069"  # characters that turn the direction of the text around them
    "\u2028\u2029"  # line breaks to some programs
    "\ud800-\udfff\ufdd0-\ufdef\ufff9-\ufffb\ufffe\uffff"  # no characters at all, in UTF-8 or XML
    + "".join(map(chr, (*range(0x1FFFE, 0x110000, 0x10000), *range(0x1FFFF, 0x110000, 0x10000))))
    + "]|\r(?!\n)"
)

KEPT = "backslashreplace"
"""The `errors` with which data are encoded: half a surrogate pair, which UTF-8 has not, is written
as JSON writes it.
"""


def visible(text: str) -> str:
    """The text with each character that cannot be drawn or printed as its number.

    >>> visible("yes\\x0b"), visible("caf\\u00e9 \\U0001f642"), visible("a\\u2028b")
    ('yes‹U+000B›', 'café 🙂', 'a‹U+2028›b')
    """
    return text if text.isprintable() else _UNSEEN.sub(marked, text)


def visible_in(part: Any) -> Any:
    """Apply `visible` to every text in lists and mappings, keys included."""
    if isinstance(part, str):
        return visible(part)
    if isinstance(part, dict):
        return {visible_in(key): visible_in(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [visible_in(each) for each in part]
    return part


_PLAIN = str.maketrans(
    {"κ": "kappa", "α": "alpha", "ρ": "rho", "τ": "tau", "±": "+-", "≥": ">=", "≤": "<="}
    | {"—": "-", "–": "-", "−": "-", "·": "/", "…": "...", "×": "x"}
    | dict.fromkeys("‘’", "'")
    | dict.fromkeys("“”", '"')
)


def print_anywhere() -> None:
    """Let stdout and stderr take any text: a character that their encoding lacks is written in
    plain letters, or as "?".
    """
    codecs.register_error("evenhand", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="evenhand")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """
    >>> codecs.register_error("evenhand", _plainly)
    >>> "κ ± 猫".encode("ascii", "evenhand")
    b'kappa +- ?'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(each if each.isascii() else "?" for each in lacking), error.end


def escaped_json(text: str) -> str:
    """A JSON text that reads the same, with such characters as JSON's own escapes."""

    def escaped(match: re.Match[str]) -> str:
        halves = match[0].encode("utf-16-be", "surrogatepass").hex()
        return re.sub("....", r"\\u\g<0>", halves)

    return _UNSEEN.sub(escaped, text)


def marked(match: re.Match[str]) -> str:
    """The number of a character that was found."""
    return f"‹U+{ord(match[0]):04X}›"
