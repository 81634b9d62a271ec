"""Tables that screen readers can read, too, and in which every cell is only text."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

import streamlit as st

from evenhand.texts import DASH

if TYPE_CHECKING:
    import pandas as pd


def show_table(
    frame: pd.DataFrame,
    caption: str,
    columns: Mapping[str, str],
    formats: Mapping[str, str] | None = None,
    *,
    folded: bool = False,
    ways: Mapping[str, Callable[[str], str]] | None = None,
) -> None:
    """A table of some columns under the headings given; a number that is not known is a dash.

    `formats` are format specifications by column, such as ".2f". A table that says in numbers what
    a chart above it shows is `folded`. `ways` make the address of a cell's rows from its value.
    """
    if folded:
        with st.expander(caption):
            show_table(frame, caption, columns, formats, ways=ways)
        return
    formats, ways = formats or {}, ways or {}
    title = html.escape(caption)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns.values())
    body = "".join(
        f"<tr>{''.join(_cell(row[at], formats.get(at, ''), ways.get(at)) for at in columns)}</tr>"
        for row in frame.to_dict("records")
    )
    st.html(
        f'<div class="evenhand-scroll" role="region" tabindex="0" aria-label="{title}">'
        f'<table class="evenhand-table"><caption>{title}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def to_the_minute(stamp: str) -> str:
    """A time from the store, for people to read.

    >>> to_the_minute("2026-03-02T09:00:59.123+00:00")
    '2026-03-02 09:00'
    """
    return stamp[:16].replace("T", " ")


def rater_page(rater: str) -> str:
    """Return the address of the page on one rater, from any of the lead's pages.

    >>> rater_page("a&b")
    'raters?one_rater=a%26b'
    """
    return f"raters?one_rater={quote(rater, safe='')}"


def _cell(value: object, spec: str, way: Callable[[str], str] | None) -> str:
    unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = DASH if unknown else html.escape(format(value, spec) if number else str(value))
    if way is not None and not unknown:
        text = f'<a href="{html.escape(way(str(value)))}">{text}</a>'
    return f'<td class="number">{text}</td>' if unknown or number else f"<td>{text}</td>"
