"""Disagreements worth reading: the units where a grader and people differ most."""

from __future__ import annotations

from itertools import groupby

from evenhand.analysis.people.disagreements import MOST_LISTED, GraderDisagreement
from evenhand.analysis.report.blocks import (
    Cell,
    ReportSection,
    UnitsToRead,
    UnitToRead,
)
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.sections.wording import listed
from evenhand.analysis.report.source import Layers, Source
from evenhand.texts import in_pieces

_ABOUT = (
    f"At most {MOST_LISTED} units for each grader: those where its label lies furthest from "
    "people's while people agree with each other. They show what to ask of the rubric, the grader "
    "or the people; they are picked for being extreme and say nothing of how often it happens."
)
_NO_TEXTS = " The texts are not in the file that was read; the unit ids say where to look."


def section(source: Source) -> ReportSection | None:
    """At most a handful for each rubric and grader; the texts fold away."""

    def layers_of(rubric: str) -> Layers:
        own = [each for each in source.analysis.disagreements if each.rubric == rubric]
        units = [
            UnitsToRead(grader, tuple(_unit(source, each) for each in of_grader))
            for grader, of_grader in groupby(own, key=lambda each: each.grader)
        ]
        graders = listed([[each.title] for each in units])
        said = in_pieces("report.disagreements", graders=graders) if units else []
        return Layers(answers=[said] if units else [], folded=units)

    return source.section(
        "disagreements",
        "Disagreements worth reading",
        layers_of,
        about=[_ABOUT if source.context.texts else _ABOUT + _NO_TEXTS],
        otherwise="None: no grader labelled a unit unlike people.",
    )


def _unit(source: Source, found: GraderDisagreement) -> UnitToRead:
    unit = (found.rubric, found.unit_id)
    said = source.context.remarks.get(unit, {})
    names = source.context.label_names.get(found.rubric, {})
    people = [
        (rater, label, names.get(label, ""), said.get(rater, ""))
        for rater, label in sorted(found.people.items())
    ]
    return UnitToRead(
        unit=found.unit_id,
        grader=found.grader,
        label=found.label,
        name=names.get(found.label, ""),
        people=tuple(people),
        texts=tuple(source.context.texts.get(unit, {}).items()),
        figures=tuple(_figures(source, found)),
        synthetic=source.context.synthetic,
    )


def _figures(source: Source, found: GraderDisagreement) -> list[tuple[str, Cell]]:
    out = []
    for key in (found.key, found.probability_key):
        figure = source.figures.by_key(key) if key else None
        if figure is not None:
            cell = Cell(figure.estimate, key=figure.key, line=figure.line)
            out.append((entry_for(figure.statistic).label, cell))
    return out
