"""Disagreements worth reading: the units where a grader and people differ most."""

from __future__ import annotations

from itertools import groupby

from evenhand.analysis.people.disagreements import MOST_LISTED, Disagreement
from evenhand.analysis.report.blocks import Block, Case, Cases, Cell, Paragraph, Section
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source

__all__ = ["section"]


def section(source: Source) -> Section:
    """At most a handful for each rubric and grader; the texts fold away."""

    def cases(rubric: str) -> list[Block]:
        own = [each for each in source.analysis.disagreements if each.rubric == rubric]
        return [
            Cases(grader, tuple(_case(source, each) for each in of_grader))
            for grader, of_grader in groupby(own, key=lambda each: each.grader)
        ]

    blocks = source.per_rubric(cases)
    if blocks:
        about = (
            f"At most {MOST_LISTED} units for each grader: those where its label lies furthest "
            "from people's while people agree with each other. They show what to ask of the "
            "rubric, the grader or the people; they are picked for being extreme and say nothing "
            "of how often it happens."
        )
        if not source.context.texts:
            about += " The texts are not in the file that was read; the unit ids say where to look."
        blocks.insert(0, Paragraph(about))
    else:
        blocks = [Paragraph("None: no grader labelled a unit unlike people.")]
    return Section("disagreements", "Disagreements worth reading", tuple(blocks))


def _case(source: Source, found: Disagreement) -> Case:
    unit = (found.rubric, found.unit_id)
    said = source.context.remarks.get(unit, {})
    names = source.context.label_names.get(found.rubric, {})
    people = [
        (rater, label, names.get(label, ""), said.get(rater, ""))
        for rater, label in sorted(found.people.items())
    ]
    return Case(
        unit=found.unit_id,
        grader=found.grader,
        label=found.label,
        name=names.get(found.label, ""),
        people=tuple(people),
        texts=tuple(source.context.texts.get(unit, {}).items()),
        figures=tuple(_figures(source, found)),
        synthetic=source.context.synthetic,
    )


def _figures(source: Source, found: Disagreement) -> list[tuple[str, Cell]]:
    out = []
    for key in (found.key, found.probability_key):
        figure = source.figures.by_key(key) if key else None
        if figure is not None:
            cell = Cell(figure.estimate, key=figure.key, line=figure.line)
            out.append((entry_for(figure.statistic).label, cell))
    return out
