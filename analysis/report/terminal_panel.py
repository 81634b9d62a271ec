"""The compact panel that a terminal shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import Cell, Table
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.rates_table import confusion_table, rates_table
from evenhand.analysis.report.source import GROUPS, READINGS, Source, pair_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

TextTable = tuple[str, list[str], list[list[str]]]


def render_table_text(analysis: Analysis, context: ReportContext) -> list[TextTable]:
    """(title, columns, rows) for each rubric and reading: groups, pairs of raters, graders with
    people, baselines; then graders' rates against the majority, and the counts behind them. Cells
    are text, the first column names the raters. Verdicts are sentences of their own
    (`analysis.verdicts.judge`). Undefined cells hold a dash, and the title gives the reason.
    """
    source = Source.of(analysis, context)
    found: list[TextTable] = []
    for rubric in source.figures.rubrics:
        first, *others = (_panel(source, rubric, subset) for subset in READINGS)
        found += first
        for panel in others:
            # With two options the binary verdict is the label: once is enough.
            if [table[1:] for table in panel] != [table[1:] for table in first]:
                found += panel
        beside = [*rates_table(source, rubric), *confusion_table(source, rubric)]
        found += [_as_text(_marked(source, table)) for table in beside]
    return found


def _panel(source: Source, rubric: str, subset: str) -> list[TextTable]:
    kappa = source.kappa(rubric, subset)
    alpha = source.alphas(rubric, subset)[0]
    statistics = ["observed_agreement", kappa, alpha, "icc_a1", CEILING]
    draft = TableDraft(
        source.marked(source.caption(rubric, READINGS[subset])),
        "Who",
        [entry_for(name).label for name in statistics],
        asides=True,
    )
    graders = source.graders(rubric, subset)
    who = [((name, ""), GROUPS[name]) for name in source.groups(rubric, subset) if name != "all"]
    pairs = source.pairs(rubric, source.usual(rubric, subset), subset)
    pairs += [("humans", name) for name in (*graders, *BASELINES)]
    who += [(pair, pair_title(pair)) for pair in pairs]
    for raters, title in who:
        draft.add(title, source.row(rubric, statistics, raters, subset))
    return [_as_text(table) for table in draft.finish()]


def _marked(source: Source, table: Table) -> Table:
    return replace(table, caption=source.marked(table.caption))


def _as_text(table: Table) -> TextTable:
    rows = [
        [row.heading, row.cells[0].text, *(_short(cell) for cell in row.cells[1:])]
        for row in table.rows
    ]
    return _title(table), [table.stub, *table.columns], rows


def _title(table: Table) -> str:
    """The caption, with the reasons for undefined cells: they have no room in a cell."""
    cells = [cell for row in table.rows for cell in row.cells[1:] if cell.text == DASH]
    reasons = "; ".join(dict.fromkeys(cell.reason for cell in cells))
    if not reasons:
        return table.caption
    return written("naming.undefined", title=table.caption, dash=DASH, reasons=reasons)


def _short(cell: Cell) -> str:
    return f"{cell.text} {cell.interval}".strip()
