"""The compact panel that a terminal shows, and the tables of rates that the report has, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.comparison import MAJORITY, REFERENCE
from evenhand.analysis.report.blocks import Cell, Row, Table
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    ReportContext,
    RubricFigures,
    Source,
    pair_title,
)
from evenhand.analysis.results import BASELINES
from evenhand.texts import DASH, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

TextTable = tuple[str, list[str], list[list[str]]]
_CONFUSION = ("true_positive", "false_negative", "false_positive", "true_negative")


def render_table_text(analysis: Analysis, context: ReportContext) -> list[TextTable]:
    """(title, columns, rows) for each rubric and reading: groups, pairs of raters, graders with
    people, baselines; then graders' rates against the majority, and the counts behind them. Cells
    are text, the first column names the raters. Verdicts are sentences of their own
    (`analysis.verdicts.judge`). Undefined cells hold a dash, and the title gives the reason.
    """
    source = Source.of(analysis, context)
    found: list[Table] = []
    for figures in source.rubrics:
        first, *others = (_panel(figures, subset) for subset in READINGS)
        found += first
        for panel in others:
            # With two options the binary verdict is the label: once is enough.
            if [_as_text(table)[1:] for table in panel] != [_as_text(table)[1:] for table in first]:
                found += panel
        found += [*rates_table(figures), *confusion_table(figures)]
    return [_as_text(replace(each, caption=source.marked(each.caption))) for each in found]


def _panel(figures: RubricFigures, subset: str) -> list[Table]:
    kappa, alpha = figures.kappa(subset), figures.alphas(subset)[0]
    statistics = ["observed_agreement", kappa, alpha, "icc_a1", CEILING]
    who = [(GROUPS[name], (name, "")) for name in figures.groups(subset) if name != "all"]
    pairs = figures.pairs(figures.usual(subset), subset)
    pairs += [("humans", name) for name in (*figures.graders(subset), *BASELINES)]
    who += [(pair_title(pair), pair) for pair in pairs]
    return figures.panel(READINGS[subset], "Who", statistics, who, subset, asides=True)


def rates_table(figures: RubricFigures) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary verdict."""
    reference = figures.analysis.decision.reference
    names = list(REFERENCE if reference else MAJORITY)
    graders = (figure.grader for figure in figures.select(names[0], ALL_BINARY))
    who = [(grader, (reference or "humans", grader)) for grader in graders]
    what = written("ceiling.rates", whom=reference or written("ceiling.majority"))
    return figures.panel(what, "Who", names, who, ALL_BINARY, asides=True)


def confusion_table(figures: RubricFigures) -> list[Table]:
    """Tabulate how many units people's majority, or the reference, and each grader affirm: a
    confusion matrix in a row. Nothing where there is no binary verdict, or units are weighted, so
    that a rate is no ratio of counts.
    """
    reference = figures.analysis.decision.reference
    affirmed, other = REFERENCE if reference else MAJORITY
    if figures.select("effective_clusters"):
        return []
    rows = []
    for positive in figures.select(affirmed, ALL_BINARY):
        if negative := figures.by_key(positive.key._replace(statistic=other)):
            # How many units the grader labels as most people do, and how many not.
            hit, spared = (
                round(each.bounds[1] * each.n_units) if each.n_units else 0
                for each in (positive, negative)
            )
            missed, wrong = positive.n_units - hit, negative.n_units - spared
            cells = (Cell(str(each)) for each in (hit, missed, wrong, spared))
            rows.append(Row(positive.grader, tuple(cells)))
    caption = written("ceiling.confusion", whom=reference or written("ceiling.most"))
    columns = tuple(written(f"ceiling.{each}") for each in _CONFUSION)
    return [Table(figures.caption(caption), "Who", columns, tuple(rows))] if rows else []


def _as_text(table: Table) -> TextTable:
    """The table with the reasons for undefined cells in its title: they have no room in a cell."""
    cells = [cell for row in table.rows for cell in row.cells[1:] if cell.text == DASH]
    title, reasons = table.caption, "; ".join(dict.fromkeys(cell.reason for cell in cells))
    if reasons:
        title = written("naming.undefined", title=title, dash=DASH, reasons=reasons)
    rows = [
        [
            row.heading,
            row.cells[0].text,
            *(f"{cell.text} {cell.interval}".strip() for cell in row.cells[1:]),
        ]
        for row in table.rows
    ]
    return title, [table.stub, *table.columns], rows
