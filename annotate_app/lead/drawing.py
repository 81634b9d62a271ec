"""Parts of the lead's pages: tables that screen readers can read, too, in which every cell is only
text; charts; the verdict board; a unit as people read it.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from urllib.parse import quote

import streamlit as st

from evenhand.analysis.report.charts import Datum, Spec, in_scheme, svg_in_scheme
from evenhand.annotate_app.drawn import (
    beside_each_other,
    block,
    drawn_block,
    drawn_blocks,
    heading,
    marked_block,
    show,
)
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.lead.live_figures import latest
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics.rendering import PeopleText, TextBlock
from evenhand.study import Study
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.session.sessions import funnel
from evenhand.study.tables.ratings import Mark, pieces
from evenhand.texts import DASH

_TO_THE_MINUTE = "minute"
_HEADINGS = {
    "rater_id": "Rater",
    "unit_id": "Unit",
    "check_id": "Check",
    "created_at": "When (UTC)",
    "withdrawn_at": "Withdrawn (UTC)",
    "last_made": "Last made (UTC)",
    "last_answer": "Last answer (UTC)",
    "until": "Labels until (UTC)",
    "end": "Last seen (UTC)",
    "done_by": "By",
    "others": "The others",
    "others_share": "Others on the same items",
    "pace": "Of the others' time",
    "run": "Longest run (usual)",
    "kappa": "Kappa with the others",
    "lean": "Leaning",
    "checks": "Attention checks",
    "low": "From",
    "high": "To",
    "n_units": "Items",
    "n_clusters": "Clusters",
    "minutes": "Active minutes",
    "open": "Given out",
    "tokens_input": "Tokens read",
    "tokens_output": "Tokens written",
    "cost_usd": "Cost (USD)",
}
"""Headings of columns; any other is headed by its name."""
_FORMATS = {
    **dict.fromkeys(("seconds", "median_seconds", "idle_minutes"), ".0f"),
    **dict.fromkeys(("tokens_input", "tokens_output"), ".0f"),
    **dict.fromkeys(("pace", "share", "others_share"), ".0%"),
    **dict.fromkeys(("hours", "hours_left", "minutes"), ".1f"),
    **dict.fromkeys(("estimate", "low", "high", "owed", "cost_usd"), ".2f"),
    "drift": "+z.2f",
    **dict.fromkeys(
        ("created_at", "withdrawn_at", "last_made", "last_answer", "until", "end"), _TO_THE_MINUTE
    ),
}
"""Format specifications of numbers, and of moments, by their columns."""


def show_table(
    frame: pd.DataFrame,
    caption: str,
    columns: str | Mapping[str, str],
    *,
    headings: Mapping[str, str] | None = None,
    number: str = "",
    folded: bool = False,
    ways: Mapping[str, Callable[[str], str]] | None = None,
) -> None:
    """Draw a table of some columns, given as a text of their names or as a mapping from name to
    heading; a number that is not known is a dash.

    `headings` are this table's own; `number` is the format of numbers in columns given by a
    mapping. A table that repeats a chart above it in numbers is `folded`. `ways` make the address
    of a cell's rows from its value.
    """
    formats: Mapping[str, str] = {}
    ways, title = ways or {}, html.escape(caption)
    if isinstance(columns, str):
        titles, formats = _HEADINGS | dict(headings or {}), _FORMATS
        columns = {name: titles.get(name) or named(name) for name in columns.split()}
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns.values())
    rows = [
        "".join(_cell(row[at], formats.get(at, number), ways.get(at)) for at in columns)
        for row in frame.to_dict("records")
    ]
    with st.expander(caption) if folded else nullcontext():
        st.html(
            f'<div class="evenhand-scroll" role="region" tabindex="0" aria-label="{title}">'
            f'<table class="evenhand-table"><caption>{title}</caption>'
            f"<thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table></div>"
        )


def named(key: str) -> str:
    """A column's or a setting's name as people read it.

    >>> named("raters_per_unit")
    'Raters per unit'
    """
    return key.replace("_", " ").capitalize()


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
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return f'<td class="number">{DASH}</td>'
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    plain = to_the_minute(str(value)) if spec == _TO_THE_MINUTE else str(value)
    text = html.escape(format(value, spec) if is_number else plain)
    if way is not None:
        text = f'<a href="{html.escape(way(str(value)))}">{text}</a>'
    return f'<td class="number">{text}</td>' if is_number else f"<td>{text}</td>"


# Charts of the lead's pages, in the look of the report's: the same frame, colours and drawings.


def show_chart(spec: Spec) -> None:
    """Draw a chart in all of the width. Its `description` is what screen readers hear."""
    spoken = spec | {"config": spec["config"] | {"aria": True}}  # the report's pictures have an alt
    st.vega_lite_chart(spec=in_scheme(spoken, _scheme()), width="stretch", theme=None)


def show_drawn(charts: Sequence[Mapping[str, str]]) -> None:
    """Show pictures of the report (`svg`, `alt`, `caption`, `note`), as many in a row as fit."""
    figures = []
    for chart in charts:
        drawn = base64.b64encode(svg_in_scheme(chart["svg"], _scheme()).encode()).decode()
        caption, note, alt = (html.escape(chart[name]) for name in ("caption", "note", "alt"))
        figures.append(
            f'<figure><img src="data:image/svg+xml;base64,{drawn}" alt="{alt}">'
            f"<figcaption>{caption}<small>{note}</small></figcaption></figure>"
        )
    show(f'<div class="evenhand-charts">{"".join(figures)}</div>')


def records(frame: pd.DataFrame) -> list[Datum]:
    """The rows of a table as a chart's data; None where a number is not known."""
    known = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]


def _scheme() -> str:
    return st.context.theme.type or "light"


# The verdict board, for every rubric its cards, one for each grader; and rows of figures, such as
# the funnel of participants. They read well on a phone.


@dataclass(frozen=True)
class BoardCard:
    """Content of a card: a verdict's code (for its colour), its words, grader, and reasons."""

    code: str
    words: str
    grader: str
    reasons: Sequence[str]
    sentence: str


def board(title: str, cards: Sequence[BoardCard]) -> str:
    """A rubric's cards under its title; all texts are escaped."""
    listed = "".join(
        f'<li class="evenhand-card evenhand-{html.escape(card.code)}">'
        f'<p class="evenhand-verdict">{html.escape(card.words)}</p>'
        f'<p class="evenhand-grader">{html.escape(card.grader)}</p>'
        + "".join(f"<p>{html.escape(text)}</p>" for text in (*card.reasons, card.sentence))
        + "</li>"
        for card in cards
    )
    return f'<section>{heading(title, 3)}<ul class="evenhand-board">{listed}</ul></section>'


def figures_row(figures: Sequence[tuple[str, str]], rows: str = "") -> str:
    """Numbers in a row, each with what it counts and a link to the page of `rows`, if given."""
    way = "<dd>{}</dd>" if not rows else f'<dd><a href="{html.escape(rows)}">{{}}</a></dd>'
    cells = "".join(
        f"<div><dt>{html.escape(name)}</dt>{way.format(html.escape(number))}</div>"
        for name, number in figures
    )
    return f'<dl class="evenhand-figures">{cells}</dl>'


_STAGES = {
    "entered": "Entered",
    "consented": "Consented",
    "passed": "Passed all steps before the first item",
    "working": "Working",
    "done": "Done",
    "left": "Left or sent away",
    "excluded": "Excluded",
}


def show_funnel(study: Study, rows: str = "") -> None:
    """Draw the number of participants at each step so far; the page of `rows` has them by name."""
    stages = latest(study, funnel).items()
    show(figures_row([(_STAGES[stage], str(count)) for stage, count in stages], rows))


# A unit as people read it: its texts under their labels, drawn as on the raters' page.


def people_text(study: Study, unit_id: str, rubric_name: str) -> PeopleText:
    """The rubric and the unit in its own order."""
    rubric = study.rubrics[rubric_name]
    return rubric.for_people(study.values(rubric, unit_id))


def marked_blocks(
    study: Study,
    texts: Sequence[TextBlock],
    marks: Sequence[tuple[str, Mark]],
    note: Callable[[Sequence[str]], str],
) -> str:
    """The texts of a unit in its own order, side by side; where people marked words, the text as it
    was written, with the marks. `note` words the note on the raters who marked some words, at least
    one.
    """

    def shown(text: TextBlock) -> str:
        marked = [(who, mark) for who, mark in marks if mark.text == text.variable]
        if not marked:
            return drawn_block(text, ENGLISH, study.config.annotation.display)
        parts = pieces(text.text, marked)
        return marked_block([(part, note(who) if who else "") for part, who in parts], text.label)

    return beside_each_other([(text.side, shown(text)) for text in texts])


def unit_blocks(study: Study, unit_id: str, rubric_name: str) -> str:
    """The unit's texts, for `drawn.show`.

    Raises InputError where the study has no such rubric any more.
    """
    if rubric_name not in study.rubrics:
        raise InputError(f"the study has no rubric {rubric_name!r} any more")
    if has_known_answer(unit_id):
        return block("A practice item or an attention check; its texts stand in the study's file.")
    texts = people_text(study, unit_id, rubric_name).blocks
    return drawn_blocks(texts, ENGLISH, study.config.annotation.display)
