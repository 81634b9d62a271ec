"""Charts of the lead's pages, in the look of the report's: the same frame, colours and drawings."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from evenhand.analysis.report.charts import Datum, Spec, in_scheme, svg_in_scheme
from evenhand.annotate_app.plain_text import show

if TYPE_CHECKING:
    import pandas as pd


def show_chart(spec: Spec) -> None:
    """Draw a chart in all of the width. Its `description` is what screen readers hear."""
    said = spec | {"config": spec["config"] | {"aria": True}}  # the report's pictures have an alt
    st.vega_lite_chart(spec=in_scheme(said, _scheme()), width="stretch", theme=None)


def show_drawn(charts: Sequence[Mapping[str, str]]) -> None:
    """Show pictures of the report (`svg`, `alt`, `caption`, `note`), as many beside another as
    fit.
    """
    figures = "".join(map(_figure, charts))
    show(f'<div class="evenhand-charts">{figures}</div>')


def records(frame: pd.DataFrame) -> list[Datum]:
    """The rows of a table as a chart's data; None where a number is not known."""
    known = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]


def _figure(chart: Mapping[str, str]) -> str:
    drawn = base64.b64encode(svg_in_scheme(chart["svg"], _scheme()).encode()).decode()
    caption, note, alt = (html.escape(chart[name]) for name in ("caption", "note", "alt"))
    return (
        f'<figure><img src="data:image/svg+xml;base64,{drawn}" alt="{alt}">'
        f"<figcaption>{caption}<small>{note}</small></figcaption></figure>"
    )


def _scheme() -> str:
    return st.context.theme.type or "light"
