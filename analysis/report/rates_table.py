"""Graders' binary verdicts beside people's: true positive and true negative rates, for the terminal
and the report, and the counts behind them.
"""

from __future__ import annotations

from evenhand.analysis.people.comparison import MAJORITY, REFERENCE
from evenhand.analysis.report.blocks import Cell, Row, Table
from evenhand.analysis.report.figures import ALL_BINARY, Figure
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

_CONFUSION = ("true_positive", "false_negative", "false_positive", "true_negative")


def rates_table(source: Source, rubric: str) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary verdict."""
    reference = source.analysis.decision.reference
    names = list(REFERENCE if reference else MAJORITY)
    whom = reference or written("ceiling.majority")
    draft = TableDraft(
        source.caption(rubric, written("ceiling.rates", whom=whom)),
        "Who",
        [entry_for(name).label for name in names],
        asides=True,
    )
    beside = reference or "humans"
    of_grader = source.figures.select(rubric, names[0], ALL_BINARY)
    for grader in [figure.raters[1] for figure in of_grader]:
        draft.add(grader, source.row(rubric, names, (beside, grader), ALL_BINARY))
    return draft.finish()


def confusion_table(source: Source, rubric: str) -> list[Table]:
    """Tabulate how many units people's majority, or the reference, and each grader affirm: a
    confusion matrix in a row. Nothing where there is no binary verdict, or units are weighted, so
    that a rate is no ratio of counts.
    """
    reference = source.analysis.decision.reference
    affirmed, other = REFERENCE if reference else MAJORITY
    if source.figures.select(rubric, "effective_clusters"):
        return []
    rows = []
    for positive in source.figures.select(rubric, affirmed, ALL_BINARY):
        negative = source.figures.get(rubric, other, *positive.raters, ALL_BINARY)
        if negative is not None:
            hit, missed = _counts(positive)
            spared, wrong = _counts(negative)
            cells = (Cell(str(each)) for each in (hit, missed, wrong, spared))
            rows.append(Row(positive.raters[1], tuple(cells)))
    whom = reference or written("ceiling.most")
    caption = source.caption(rubric, written("ceiling.confusion", whom=whom))
    columns = tuple(written(f"ceiling.{each}") for each in _CONFUSION)
    return [Table(caption, "Who", columns, tuple(rows))] if rows else []


def _counts(rate: Figure) -> tuple[int, int]:
    """Return how many of a rate's units the grader labels as most people do, and how many not."""
    _, share, _ = rate.bounds
    alike = round(share * rate.n_units) if rate.n_units else 0
    return alike, rate.n_units - alike
