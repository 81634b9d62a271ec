"""Confidence filter: how much is left, and how good, where only a grader's sure labels count?"""

from __future__ import annotations

from evenhand.analysis.report.blocks import Block, ReportSection
from evenhand.analysis.report.charts.confidence import coverage_curves
from evenhand.analysis.report.figures import shown
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.thresholds.confidence import AGREEMENT, CHOSEN, COVERAGE, HELD_OUT

_CURVE = [COVERAGE, AGREEMENT]
_CHOICE = [CHOSEN, COVERAGE + HELD_OUT, AGREEMENT + HELD_OUT]
_ABOUT = (
    "Labels that a grader is not sure of are left to people, the others count. A higher cut keeps "
    "less and should agree more; where agreement does not rise with the cut, the grader's "
    "confidence says nothing. The chosen cut looks better on the units it was chosen on than "
    "elsewhere, so read its held-out figures."
)


def section(source: Source) -> ReportSection | None:
    """Every grader with a confidence: the declared cut, the chosen one, and the curve."""
    return source.section(
        "confidence-filter",
        "Confidence filter",
        lambda rubric: [*_cuts(source, rubric), *_curve(source, rubric)],
        about=[_ABOUT],
    )


def _cuts(source: Source, rubric: str) -> list[Block]:
    """One row per grader: at the declared cut, and the cut that was chosen."""
    declared = [
        figure
        for figure in source.figures.everywhere(rubric, COVERAGE)
        if figure.says("declared_cut")
    ]
    if not declared:
        return []
    cut = shown(float(declared[0].at), CHOSEN)
    draft = TableDraft(
        source.caption(rubric, "labels kept at the declared and at the chosen confidence"),
        "Grader",
        [
            f"Kept at {cut}",
            f"Agreement at {cut}",
            *(entry_for(name).label for name in _CHOICE),
        ],
    )
    for figure in declared:
        chosen = next(
            each
            for each in source.figures.select(rubric, CHOSEN, figure.subset)
            if each.raters == figure.raters
        )
        draft.add(
            figure.raters[1],
            [
                *source.row(rubric, _CURVE, figure.raters, figure.subset, figure.at),
                *source.row(rubric, _CHOICE, figure.raters, figure.subset, chosen.at),
            ],
        )
    return [*draft.finish()]


def _curve(source: Source, rubric: str) -> list[Block]:
    """Coverage against agreement as the cut rises."""
    draft = TableDraft(
        source.caption(rubric, "what each cut keeps, and how far that agrees with people"),
        "Cut",
        [entry_for(name).label for name in _CURVE],
        count="",
    )
    figures = source.figures.everywhere(rubric, COVERAGE)
    for raters in dict.fromkeys(figure.raters for figure in figures):
        draft.group(raters[1])
        for figure in figures:
            if figure.raters == raters:
                row = source.row(rubric, _CURVE, raters, figure.subset, figure.at)
                draft.add(shown(float(figure.at), CHOSEN), row)
    return [*coverage_curves(source, rubric, tuple(draft.finish()))]
