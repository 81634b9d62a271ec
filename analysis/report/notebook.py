"""An analysis as one cell of a notebook shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import Card, Cards, Chart
from evenhand.analysis.report.charts.forest import forest
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.files import rendered
from evenhand.analysis.report.sections import verdict_cards
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.terminal_panel import TextTable, render_table_text
from evenhand.analysis.verdicts.judge import limits_of
from evenhand.analysis.verdicts.ranking import recommendations

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis


def render_notebook(analysis: Analysis, context: ReportContext) -> str:
    """HTML: the verdicts with the notes needed to read them, the panel, and one figure of graders
    compared with people. It has its own colours for light and dark, holds no script, and loads
    nothing from elsewhere.
    """
    source = Source.of(analysis, context)
    return rendered(
        "notebook.html.j2",
        name=context.name,
        answers=[each.sentence for each in recommendations(source.ranking)],
        notes=(*limits_of(analysis.verdicts), *source.notes),
        cards=_cards(source),
        several=len(source.figures.rubrics) > 1,
        tables=render_table_text(analysis, context),
        chart=_figure(source),
    )


def render_lines(lines: Iterable[str | TextTable]) -> str:
    """HTML: sentences and tables in order, in the colours of `render_notebook`."""
    return rendered("lines.html.j2", lines=list(lines))


def _cards(source: Source) -> list[Card]:
    blocks = verdict_cards.section(source).blocks
    return [card for block in blocks if isinstance(block, Cards) for card in block.cards]


def _figure(source: Source) -> Chart | None:
    """The first rubric's forest plot, of the rubrics that have one."""
    drawn = (chart for rubric in source.figures.rubrics for chart in forest(source, rubric))
    first = next(drawn, None)
    return first and replace(first, caption=source.marked(first.caption))
