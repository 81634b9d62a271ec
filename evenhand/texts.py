"""Texts of the report, the terminal and the lead's pages.

The sentences are in `texts.toml`, by section and name; `written` fills in their `{fields}`. Errors
in a user's input are worded where they are raised, and the annotators' texts are in `annotate_app`.
Data keep their characters; wherever they are displayed, `visible` marks invisible ones, so that the
text can be printed, drawn and parsed: on a terminal, in charts, LaTeX, HTML, Markdown and XML.
"""

import io
import math
import re
import string
import sys
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

DASH = "—"  # the sign for a number that is not known, in sentences and tables


@cache
def table_of(package: str, file: str) -> dict[str, Any]:
    """Return the content of a TOML file in a package."""
    return tomllib.loads(files(package).joinpath(file).read_text("utf-8"))


@cache
def texts() -> dict[str, str]:
    """Return all sentences by key, `section.name`."""
    tables = table_of("evenhand", "texts.toml").items()
    return {f"{section}.{name}": text for section, table in tables for name, text in table.items()}


def written(key: str, /, **fields: object) -> str:
    """Return the sentence of a key with its fields filled in. Raises KeyError if one is missing.

    Fields are formatted as their placeholders say, and braces in them are kept; None and numbers
    that are not finite are a dash.

    >>> written("recommend.use_at", grader="openai:gpt-5", rubric="hedging", threshold=0.1312)
    'Use openai:gpt-5 for hedging at threshold 0.131, for the binary label.'
    """
    return _Formatter().vformat(texts()[key], (), fields)


class _Formatter(string.Formatter):
    """A formatter that writes None and numbers that are not finite as a dash."""

    def format_field(self, value: object, format_spec: str) -> str:
        is_unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
        return DASH if is_unknown else format(value, format_spec)


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1.

    >>> number_of(1, "item"), number_of(1250, "pair")
    ('1 item', '1,250 pairs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_pieces(key: str, /, **fields: object) -> list[object]:
    """Return the sentence of a key as a list of its texts and, between them, its fields' values. A
    field that is a list contributes its members.

    >>> in_pieces("report.threshold_kept", threshold=0.5, graders=["a", ", ", "b"])[:6]
    ['Keep ', 0.5, ' for ', 'a', ', ', 'b']
    """
    pieces: list[object] = []
    for text, name, _, _ in string.Formatter().parse(texts()[key]):
        pieces += [text] if text else []
        if name is not None:
            value = fields[name]
            pieces += value if isinstance(value, list) else [value]
    return pieces


# ---- invisible characters ------------------------------------------------------------------------

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, but for tab and line break
    "\u061c\u202a-\u202e\u2066-\u2069"  # characters that change the direction of text
    "\u2028\u2029"  # line breaks to some programs
    "\ud800-\udfff\ufdd0-\ufdef\ufff9-\ufffb\ufffe\uffff"  # not valid in UTF-8 or XML
    # U+1FFFE, U+1FFFF, U+2FFFE and so on: the last two of each plane, which are no characters
    + "".join(map(chr, (*range(0x1FFFE, 0x110000, 0x10000), *range(0x1FFFF, 0x110000, 0x10000))))
    + "]|\r(?!\n)"
)

ESCAPED = "backslashreplace"  # `errors` of `encode`: lone surrogates of data are written as in JSON


def visible(text: str) -> str:
    """Return a text with each character that cannot be drawn or printed as its number.

    >>> visible("yes\\x0b"), visible("caf\\u00e9 \\U0001f642"), visible("a\\u2028b")
    ('yes‹U+000B›', 'café 🙂', 'a‹U+2028›b')
    """
    return text if text.isprintable() else _INVISIBLE.sub(mark_of, text)


def mark_of(match: re.Match[str]) -> str:
    """Return the mark for an invisible character, such as ‹U+000B›."""
    return f"‹U+{ord(match[0]):04X}›"


def visible_in(value: Any) -> Any:
    """Return a value with `visible` applied to every text in lists and mappings, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_in(key): visible_in(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [visible_in(member) for member in value]
    return value


def print_anywhere() -> None:
    """Make stdout and stderr print "?" for characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def escaped_json(text: str) -> str:
    """Return an equivalent JSON text with invisible characters as escapes, such as \\u202e."""

    def escaped(match: re.Match[str]) -> str:
        digits = match[0].encode("utf-16-be", "surrogatepass").hex()  # four for each UTF-16 unit
        return re.sub("....", r"\\u\g<0>", digits)

    return _INVISIBLE.sub(escaped, text)


def readable_name(key: str) -> str:
    """Return a column's or a setting's name as users read it.

    >>> readable_name("raters_per_unit")
    'Annotators per item'
    """
    words = {"rater": "annotator", "raters": "annotators", "unit": "item", "units": "items"}
    return " ".join(words.get(word, word) for word in key.split("_")).capitalize()
