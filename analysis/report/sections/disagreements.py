"""Disagreements worth reading: the units where graders and people differ most, and what the lead
made of them; and a page of all of them, unit by unit, which can be searched and filtered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.report.blocks import (
    DisagreedUnit,
    GivenLabel,
    Paragraph,
    Part,
    ReportSection,
    Texts,
    UnitsToRead,
)
from evenhand.analysis.report.figures import grouped
from evenhand.analysis.report.source import ReportContext, RubricFigures, Source, listed
from evenhand.analysis.statistics import entry_for
from evenhand.study.tables.ratings import pieces
from evenhand.texts import in_pieces, written

_SHOWN = 3
"""Units of each rubric. The text says so too."""
PAGE = "disagreements.html"
NOT_SORTED = ""
KINDS = ("grader_wrong", "people_wrong", "rubric_unclear")
"""Kinds that the lead may sort a disagreement as."""


def with_page(source: Source, section: ReportSection) -> ReportSection:
    """Add a link to the page of all disagreements, where there is one."""
    if not has_page(source.analysis.disagreements, source.context):
        return section
    link = Paragraph(written("disagreement.link"), PAGE)
    return replace(section, blocks=(link, *section.blocks))


def layers(figures: RubricFigures) -> Part:
    """A handful of units, folded, and the number of disagreements that the lead sorted as each
    kind.
    """
    every = figures.analysis.disagreements
    own = [each for each in every if each.rubric == figures.rubric]
    units = []
    for each in _widest(figures, own):
        size = figures.by_key(each.key) if each.key else None
        cell = size and (entry_for(size.statistic).label, replace(size.cell, interval="", aside=""))
        units.append((_unit([each], figures.context), (cell,) if cell else ()))
    to_read = [UnitsToRead(written("disagreement.widest"), tuple(units))] if units else []
    graders = figures.by_agreement(dict.fromkeys(each.grader for each in own))
    named = listed([[grader] for grader in graders])
    found = figures.select("disagreement_sorted")
    by_grader = {figure.grader: figure for figure in found}
    kinds = sorted({figure.at for figure in found})
    sums = figures.table(
        "disagreement.sums",
        [(grader, by_grader[grader]) for grader in figures.by_agreement(by_grader)],
        [(kind_title(kind), {"at": kind}) for kind in kinds],
    )
    no_texts = [] if has_page(every, figures.context) else [written("disagreement.no_texts")]
    return Part(
        answers=[in_pieces("report.disagreements", graders=named)] if own else [],
        folded=[*to_read, *sums],
        about=no_texts,
    )


def _widest(figures: RubricFigures, own: list[GraderDisagreement]) -> list[GraderDisagreement]:
    """The widest on different units; among equals by the grader that agrees best with people."""
    known = [each for each in own if each.key]
    order = figures.by_agreement(dict.fromkeys(each.grader for each in known))
    known.sort(key=lambda each: order.index(each.grader))
    by_unit = grouped(widest_first(known), lambda each: each.unit_id)
    return [same[0] for same in by_unit.values()][:_SHOWN]


# The page


@dataclass(frozen=True)
class DisagreementsPage:
    """The units, the widest disagreement of each rubric first, and what they can be filtered by."""

    units: Sequence[DisagreedUnit]
    rubrics: Sequence[tuple[str, str]]
    graders: Sequence[str]
    parts: Mapping[str, Sequence[str]]
    kinds: Sequence[tuple[str, str]]


def has_page(found: Sequence[GraderDisagreement], context: ReportContext) -> bool:
    """Return True if there is a disagreement whose texts are known."""
    return any((each.rubric, each.unit_id) in context.texts for each in found)


def page_of(found: Sequence[GraderDisagreement], context: ReportContext) -> DisagreementsPage:
    """All disagreements, those on one unit together."""
    by_unit = grouped(widest_first(found), lambda each: (each.rubric, each.unit_id))
    rubrics = list(dict.fromkeys(each.rubric for each in found))
    units = [
        _unit(own, context)
        for rubric in rubrics
        for key, own in by_unit.items()
        if key[0] == rubric
    ]
    parts: dict[str, set[str]] = {}
    for column, value in (part for each in found for part in each.parts.items()):
        parts.setdefault(column, set()).add(value)
    titles = {each.kind: each.sorted for unit in units for each in unit.graders if each.kind}
    not_sorted = [(NOT_SORTED, written("disagreement.not_sorted"))] if titles else []
    return DisagreementsPage(
        units=units,
        rubrics=[(rubric, context.title_of(rubric)) for rubric in rubrics],
        graders=sorted({each.grader for each in found}),
        parts={name: sorted(values) for name, values in parts.items() if len(values) > 1},
        kinds=[*sorted(titles.items()), *not_sorted],
    )


def widest_first(found: Iterable[GraderDisagreement]) -> list[GraderDisagreement]:
    """Sort disagreements: units that two people or more labelled first, then by size, then by
    number of people.
    """
    return sorted(found, key=lambda each: (len(each.people) < 2, -each.size, -len(each.people)))


def _unit(found: Sequence[GraderDisagreement], context: ReportContext) -> DisagreedUnit:
    """A unit with all that is known of it, from the disagreements on it."""
    first = found[0]
    key = (first.rubric, first.unit_id)
    names = context.label_names.get(first.rubric, {})
    reasons = context.remarks.get(key, {})

    def of_grader(each: GraderDisagreement) -> GivenLabel:
        about = (*key, each.grader)
        kind, note = context.sorted.get(about, (NOT_SORTED, ""))
        return GivenLabel(
            each.grader,
            each.label,
            names.get(each.label, ""),
            replies=context.replies.get(about, ()),
            kind=kind,
            sorted=kind_title(kind) if kind else "",
            note=note,
        )

    return DisagreedUnit(
        rubric=first.rubric,
        title=context.title_of(first.rubric),
        unit=first.unit_id,
        parts=tuple(first.parts.items()),
        people=[
            GivenLabel(rater, label, names.get(label, ""), reasons.get(rater, ""))
            for rater, label in sorted(first.people.items())
        ],
        graders=[of_grader(each) for each in found],
        columns=side_by_side(context.texts.get(key, {})),
        marked=_marked(context, key),
    )


def _marked(
    context: ReportContext, key: tuple[str, str]
) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The texts that people marked words in, each in pieces with who marked it, under its name."""
    marks = context.marks.get(key, ())
    texts = context.texts.get(key, {})
    names = {name.lower().replace(" ", "_"): name for name in texts}
    return {
        names[variable]: pieces(texts[names[variable]], [m for m in marks if m[1].text == variable])
        for variable in sorted({mark.text for _, mark in marks})
        if variable in names
    }


def side_by_side(texts: Mapping[str, str]) -> tuple[Texts, ...]:
    """A unit's texts under their names: those of a pair's sides in a column each, then others.

    >>> side_by_side({"Prompt a": "For?", "Prompt b": "Against?", "Topic": "Tax"})
    ((('Prompt a', 'For?'),), (('Prompt b', 'Against?'),), (('Topic', 'Tax'),))
    """
    columns: dict[str, list[tuple[str, str]]] = {"a": [], "b": [], "": []}
    for name, text in texts.items():
        side = name.rpartition(" ")[2]
        columns[side if side in columns else ""].append((name, text))
    return tuple(tuple(column) for column in columns.values() if column)


def kind_title(kind: str) -> str:
    """Return the title of a kind that disagreements are sorted into.

    >>> kind_title("rubric_unclear")
    'Rubric unclear'
    """
    return written(f"disagreement.kind_{kind}")
