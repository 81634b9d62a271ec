"""Anybody's text made safe for Markdown and for spreadsheets. (HTML is escaped by Jinja2.)"""

from __future__ import annotations

import re

__all__ = ["markdown", "spreadsheet"]

_MARKDOWN = re.compile(r"[\\`*_\[\]|~#]|(?<=:)//|^[-+=](?![\d.])|(?<=^\d)[.)](?=\s|$)")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_RISKY = tuple("=+-@\t\r\n'")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def markdown(text: str) -> str:
    """One line that Markdown shows as it is: no table cell, link, markup or heading comes of it.

    >>> print(markdown("a|b <b>*x*</b>"))
    a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;
    """
    line = "".join(_MARKUP.get(letter, letter) for letter in " ".join(text.split()))
    return _MARKDOWN.sub(lambda found: "\\" + found.group(), line)


def spreadsheet(text: str) -> str:
    """A cell that no spreadsheet runs as a formula; numbers stay as they are.

    A text that begins with = + - @, a tab or a line break gets an apostrophe before it, and so does
    one that begins with an apostrophe: taking one off always restores the text.

    >>> spreadsheet("=1+1"), spreadsheet("-0.5"), spreadsheet("'quoted"), spreadsheet("plain")
    ("'=1+1", '-0.5', "''quoted", 'plain')
    """
    return f"'{text}" if text.startswith(_RISKY) and not _NUMBER.fullmatch(text) else text
