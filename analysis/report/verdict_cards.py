"""The verdicts, and what has to be known before they are read."""

from __future__ import annotations

from analysis.report.blocks import Block, Card, Cards, Cell, Items, Paragraph, Section
from analysis.report.figures import ALL_BINARY, Figure
from analysis.report.glossary import entry_for
from analysis.report.source import Source, rater_title
from analysis.verdicts import Verdict

__all__ = ["WORDS", "notes_of", "section"]

WORDS = {
    "may_stand_in": ("✓", "May stand in"),
    "may_stand_in_at_threshold": ("✓", "May stand in at another threshold"),
    "only_with_correction": ("±", "Only with correction"),
    "do_not_use": ("✕", "Do not use"),
    "cannot_tell": ("?", "Cannot tell"),
}


def section(source: Source) -> Section:
    """One card for each rubric and grader."""
    blocks: list[Block] = []
    if source.analysis.verdicts:
        blocks.append(Cards(tuple(_card(source, each) for each in source.analysis.verdicts)))
    else:
        blocks.append(Paragraph("No verdict: there are no model graders here to judge."))
    if notes := notes_of(source):
        blocks.append(Items("Before you read on", notes))
    return Section("verdicts", "Verdicts", tuple(blocks))


def notes_of(source: Source) -> tuple[str, ...]:
    """Warnings of the study and of the analysis."""
    return tuple(dict.fromkeys([*source.context.notes, *source.analysis.notes]))


def _card(source: Source, verdict: Verdict) -> Card:
    icon, word = WORDS[verdict["verdict"]]
    figures = (source.figures.by_key(key) for key in verdict["evidence"])
    return Card(
        verdict=verdict["verdict"],
        word=word,
        icon=icon,
        rubric=source.context.title_of(verdict["rubric"]),
        grader=verdict["grader"],
        sentence=verdict["sentence"],
        evidence=tuple(_evidence(figure) for figure in figures if figure is not None),
    )


def _evidence(figure: Figure) -> tuple[str, Cell]:
    other = rater_title(figure.raters[1])
    parts = [other] if other.startswith("Baseline") else []
    parts.append(entry_for(figure.statistic).label)
    if figure.subset == ALL_BINARY:
        parts.append("binary verdict")
    cell = Cell(figure.estimate, figure.interval, figure.reason, key=figure.key, line=figure.line)
    return ", ".join(parts), cell
