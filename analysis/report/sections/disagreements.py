"""Disagreements worth reading: the units where graders and people differ most, and what the lead
made of them. All are listed on a page of their own (`analysis.report.disagreements_page`)."""

from __future__ import annotations

from dataclasses import replace

from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.report.blocks import (
    Cell,
    Link,
    ReportSection,
    Table,
    UnitsToRead,
    UnitToRead,
)
from evenhand.analysis.report.disagreements_page import (
    PAGE,
    has_page,
    kind_title,
    side_by_side,
    widest_first,
)
from evenhand.analysis.report.sections.wording import listed
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_SHOWN = 3
"""Units of each rubric. The text says so too."""


def section(source: Source) -> ReportSection | None:
    """A handful of units for each rubric, folded, and the number of disagreements sorted as each
    kind.
    """

    def layers_of(rubric: str) -> Layers:
        own = [each for each in source.analysis.disagreements if each.rubric == rubric]
        units = tuple(_unit(source, each) for each in _widest(source, rubric))
        to_read = [UnitsToRead(written("disagreement.widest"), units)] if units else []
        graders = listed([[each] for each in source.by_agreement(rubric, _graders(own))])
        said = in_pieces("report.disagreements", graders=graders) if own else []
        return Layers(answers=[said] if said else [], folded=[*to_read, *_sums(source, rubric)])

    told = has_page(source.analysis.disagreements, source.context)
    about = [] if told else [written("disagreement.no_texts")]
    found = source.section(
        "disagreements",
        written("disagreement.title"),
        layers_of,
        about=[written("disagreement.about"), *about],
        otherwise=written("disagreement.none"),
    )
    if found is None or not told:
        return found
    link = Link(written("disagreement.link"), PAGE)
    return replace(found, blocks=(link, *found.blocks))


def _widest(source: Source, rubric: str) -> list[GraderDisagreement]:
    """The widest on different units; among equals by the grader that agrees best with people."""
    own = [each for each in source.analysis.disagreements if each.rubric == rubric and each.key]
    place = {grader: at for at, grader in enumerate(source.by_agreement(rubric, _graders(own)))}
    own.sort(key=lambda each: place[each.grader])
    units: dict[str, GraderDisagreement] = {}
    for each in widest_first(own):
        units.setdefault(each.unit_id, each)
    return list(units.values())[:_SHOWN]


def _graders(found: list[GraderDisagreement]) -> list[str]:
    return list(dict.fromkeys(each.grader for each in found))


def _sums(source: Source, rubric: str) -> list[Table]:
    """Count each grader's disagreements by the kind that the lead sorted them into."""
    figures = source.figures.select(rubric, "disagreement_sorted")
    kinds = sorted({figure.at for figure in figures})
    draft = TableDraft(
        source.caption(rubric, written("disagreement.sums")),
        "Grader",
        [kind_title(kind) for kind in kinds],
        count=written("disagreement.sorted_units"),
    )
    by_place = {(figure.raters[1], figure.at): figure for figure in figures}
    for grader in source.by_agreement(rubric, {figure.raters[1] for figure in figures}):
        draft.add(grader, [by_place.get((grader, kind)) for kind in kinds])
    return draft.finish()


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
        columns=side_by_side(source.context.texts.get(unit, {})),
        figures=tuple(_figures(source, found)),
    )


def _figures(source: Source, found: GraderDisagreement) -> list[tuple[str, Cell]]:
    figure = source.figures.by_key(found.key) if found.key else None
    if figure is None:
        return []
    cell = Cell(figure.estimate, key=figure.key, line=figure.line)
    return [(entry_for(figure.statistic).label, cell)]
