"""The verdict board, for every rubric its cards, one for each grader; and rows of figures, such as
the funnel of participants. They read well on a phone.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.annotate_app.lead.parts.counting import latest
from evenhand.annotate_app.plain_text import heading, show
from evenhand.study import Study
from evenhand.study.session.times import funnel


@dataclass(frozen=True)
class BoardCard:
    """Content of a card: a verdict's code (for its colour), its words, grader, and reasons."""

    code: str
    words: str
    grader: str
    said: Sequence[str]
    sentence: str


def board(title: str, cards: Sequence[BoardCard]) -> str:
    """A rubric's cards under its title; all texts are escaped."""
    listed = f'<ul class="evenhand-board">{"".join(map(_card, cards))}</ul>'
    return f"<section>{heading(title, 3)}{listed}</section>"


def _card(card: BoardCard) -> str:
    said = "".join(f"<p>{html.escape(each)}</p>" for each in card.said)
    return (
        f'<li class="evenhand-card evenhand-{html.escape(card.code)}">'
        f'<p class="evenhand-verdict">{html.escape(card.words)}</p>'
        f'<p class="evenhand-grader">{html.escape(card.grader)}</p>{said}'
        f"<p>{html.escape(card.sentence)}</p></li>"
    )


def figures_row(figures: Sequence[tuple[str, str]], rows: str = "") -> str:
    """Numbers next to one another, each with what it counts, and leading to the page of `rows`."""
    way = "<dd>{}</dd>" if not rows else f'<dd><a href="{html.escape(rows)}">{{}}</a></dd>'
    cells = "".join(
        f"<div><dt>{html.escape(name)}</dt>{way.format(html.escape(number))}</div>"
        for name, number in figures
    )
    return f'<dl class="evenhand-figures">{cells}</dl>'


_STAGES = {
    "entered": "Entered",
    "consented": "Consented",
    "passed": "Passed all steps before the first unit",
    "working": "Working",
    "done": "Done",
    "left": "Left or sent away",
    "excluded": "Excluded",
}


def show_funnel(study: Study, rows: str = "") -> None:
    """Draw the number of participants at each step so far; the page of `rows` has them by name."""
    found = latest(study, funnel)
    show(figures_row([(_STAGES[stage], str(count)) for stage, count in found.items()], rows))
