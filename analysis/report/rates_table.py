"""The table of graders' true positive and true negative rates, for the terminal and the report."""

from __future__ import annotations

from evenhand.analysis.people.majority_rates import CORRECTED, MAJORITY, REFERENCE
from evenhand.analysis.report.blocks import Table
from evenhand.analysis.report.figures import ALL_BINARY
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written


def rates_table(source: Source, rubric: str) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary verdict."""
    reference = source.analysis.decision.reference
    names = list(REFERENCE if reference else (*MAJORITY, *CORRECTED))
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
