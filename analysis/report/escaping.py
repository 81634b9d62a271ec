"""Text from users made safe for Markdown. (HTML is escaped by Jinja2.)"""

from __future__ import annotations

import re

from evenhand.visible import visible

_MARKDOWN = re.compile(r"[\\`*_\[\]|~#]|(?<=:)//|^[-+=](?![\d.])|(?<=^\d)[.)](?=\s|$)")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown(text: str) -> str:
    """Return the text as one line that Markdown shows literally: no table cell, link, markup or
    heading.

    >>> print(markdown("a|b <b>*x*</b>"))
    a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;
    """
    line = "".join(_MARKUP.get(letter, letter) for letter in " ".join(visible(text).split()))
    return _MARKDOWN.sub(lambda found: "\\" + found.group(), line)
