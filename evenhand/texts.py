"""Texts that people read in a report, on a terminal and on the lead's pages: all sentences in one
file.

The sentences are in `texts.toml`, by room and name; `written` fills in their `{fields}`. Errors in
a user's input are worded where they are found, and what an annotator reads is in `annotate_app`.
"""

from __future__ import annotations

import math
import string
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

DASH = "—"
"""The sign for a number that is not known, in sentences and tables."""


@cache
def table_of(package: str, file: str) -> dict[str, Any]:
    """Return what a TOML file declares that comes with a package."""
    return tomllib.loads(files(package).joinpath(file).read_text("utf-8"))


@cache
def texts() -> dict[str, str]:
    """All sentences by `room.name`."""
    rooms = table_of("evenhand", "texts.toml").items()
    return {f"{room}.{name}": text for room, sentences in rooms for name, text in sentences.items()}


def written(key: str, /, **fields: object) -> str:
    """The sentence of a key with its fields filled in; KeyError where either is not there.

    A field is put in as it is, braces and all, and formatted as its place says; a number that is
    none, such as NaN, is a dash.

    >>> written("recommend.use_at", grader="openai:gpt-5", rubric="hedging", threshold=0.1312)
    'Use openai:gpt-5 for hedging at threshold 0.131, for the binary label.'
    """
    return _FORMATTER.vformat(texts()[key], (), fields)


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where there is not just one.

    >>> number_of(1, "item"), number_of(1250, "pair")
    ('1 item', '1,250 pairs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Formatter(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
        return DASH if unknown else format(value, format_spec)


_FORMATTER = _Formatter()


def in_pieces(key: str, /, **fields: object) -> list[object]:
    """The sentence of a key as `written` has it, in pieces: its text, and by turns its fields as
    they are. A field that is a list brings pieces of its own.

    >>> in_pieces("report.threshold_kept", threshold=0.5, graders=["a", ", ", "b"])[:6]
    ['Keep ', 0.5, ' for ', 'a', ', ', 'b']
    """
    out: list[object] = []
    for text, name, _, _ in string.Formatter().parse(texts()[key]):
        out += [text] if text else []
        if name is not None:
            given = fields[name]
            out += given if isinstance(given, list) else [given]
    return out
