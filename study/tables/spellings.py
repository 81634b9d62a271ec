"""Spellings of names and labels: folded where nobody sees a difference, compared where an eye does.

What is folded is the same text to a reader: another composition of its letters, invisible
characters, spaces around it or doubled, a whole number written as 2.0. What looks alike differs by
case, punctuation, typographic marks, underscores or leading zeros: one who meant the same may have
written either, so it is asked about.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_SPACES = re.compile("[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_PLAIN = re.compile(r"[!-~]+(?: [!-~]+)*")
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u2033\u00ab\u00bb", '"')
)
_BETWEEN = re.compile(r"(?<=\w)[\s_-]+(?=\w)|_")
_AT_THE_ENDS = " \t\"'()[].,;:!"
_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")


def folded(text: str) -> str:
    """Return the one spelling of texts that nobody can tell apart: in composed form (NFC), without
    format characters, variation selectors and outer spaces, with single inner spaces, and whole
    numbers without `.0`.

    >>> [folded(text) for text in ("yes\\u200b", " very  good", "si\\u0301", "2.0", "v2.0")]
    ['yes', 'very good', 'sí', '2', 'v2.0']
    """
    if not _PLAIN.fullmatch(text):
        composed = unicodedata.normalize("NFC", text)
        seen = "".join(letter for letter in composed if not _is_unseen(letter))
        text = _SPACES.sub(" ", seen).strip(" ")
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _is_unseen(letter: str) -> bool:
    return (
        unicodedata.category(letter) == "Cf"
        or "\ufe00" <= letter <= "\ufe0f"
        or "\U000e0100" <= letter <= "\U000e01ef"
    )


def fold(column: pd.Series) -> pd.Series:
    """Return a column of texts, folded; the column itself where nothing changes."""
    meant = {text: folded(text) for text in column.unique() if folded(text) != text}
    return column.replace(meant) if meant else column


def look(text: str) -> str:
    """Return what stays of a text when case, typographic marks, HTML entities, punctuation at its
    ends, underscores and hyphens between words, and leading zeros are set aside; the text itself
    where nothing does.

    >>> [look(text) for text in ("Off-topic.", "off\\u2010topic", "off_topic", "Q&amp;A", "007")]
    ['off topic', 'off topic', 'off topic', 'q&a', '7']
    >>> [look(text) for text in ("A-", "-1", "1.10", "+", "?")]
    ['a-', '-1', '1.10', '+', '?']
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text).translate(_MARKS)).casefold()
    bare = _BETWEEN.sub(" ", plain).strip(_AT_THE_ENDS)
    return _LEADING_ZEROS.sub("", bare) or text


def lookalikes(texts: Iterable[str]) -> list[list[str]]:
    """Return the groups of two or more different texts that look alike, in the order given."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        groups.setdefault(look(text), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def spelled_out(text: str) -> str:
    """Return a text in quotation marks, with the numbers of characters that are not on every
    keyboard, so that two spellings can be told apart.

    >>> spelled_out("off\\u2010topic"), spelled_out("ok ")
    ("'off‐topic' (with U+2010)", "'ok '")
    """
    letters = dict.fromkeys(letter for letter in text if letter in _UNUSUAL)
    numbers = ", ".join(f"U+{ord(letter):04X}" for letter in letters)
    return f"{text!r} (with {numbers})" if numbers else repr(text)


_UNUSUAL = frozenset(map(chr, _MARKS)) - {"`"}


def commonest(group: Iterable[str], counts: Mapping[str, int]) -> str:
    """Return the spelling of a group that occurs most often, the first by name of several."""
    return max(sorted(group), key=lambda text: counts.get(text, 0))
