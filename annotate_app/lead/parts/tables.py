"""Tables that screen readers can read, too, and in which every cell is only text."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

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
) -> None:
    """A table of some columns under the headings given; a number that is not known is a dash.

    `formats` are format specifications by column, such as ".2f". A table that says in numbers what
    a chart above it shows is `folded`.
    """
    if folded:
        with st.expander(caption):
            show_table(frame, caption, columns, formats)
        return
    formats = formats or {}
    title = html.escape(caption)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns.values())
    body = "".join(
        f"<tr>{''.join(_cell(row[name], formats.get(name, '')) for name in columns)}</tr>"
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


def _cell(value: object, spec: str) -> str:
    unknown = value is None or (isinstance(value, float) and not math.isfinite(value))
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = DASH if unknown else html.escape(format(value, spec) if number else str(value))
    return f'<td class="number">{text}</td>' if unknown or number else f"<td>{text}</td>"
