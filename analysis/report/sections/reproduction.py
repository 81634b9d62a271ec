"""Published figures: each beside the study's own, with what differs in design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING

from evenhand.analysis.agreement.stability import REWORDED, SPREAD, STABILITY
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Answer, Cell, Items, ReportSection, Row, Table
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.source import Source, pair_title, rater_title
from evenhand.analysis.report.table_draft import letters
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH, written

if TYPE_CHECKING:
    from evenhand.analysis.report.context import BesidePublished
    from evenhand.study.settings.published import PublishedFigure

_REPEATED = "repeat"
Beside = tuple["PublishedFigure", Figure | None]
"""A published figure and one of the study's own; None where it has none yet."""


def section(source: Source) -> ReportSection | None:
    """Build the section from every figure that the study declares; None where it declares none."""
    beside = source.context.beside
    if beside is None:
        return None
    found = list(published_beside(source))
    quoted = len(beside.published.figure)
    matched = len({id(each) for each, figure in found if figure and not isnan(figure.bounds[1])})
    answer = written("reproduction.answer", matched=matched, quoted=quoted)
    return ReportSection(
        "published-figures",
        written("reproduction.title"),
        (_table(source, found), Items(written("reproduction.differs"), tuple(beside.differences))),
        (Answer((answer,)),),
        about=(written("published.about"), beside.published.citation),
    )


def published_beside(source: Source) -> Iterator[Beside]:
    """Yield every published figure once for each of the study's own that is its like."""
    beside = source.context.beside
    for each in beside.published.figure if beside else ():
        for figure in _own(source, each) or [None]:
            yield each, figure


def published_rows(source: Source) -> list[Mapping[str, object]]:
    """Return a row for each published figure and figure of the study's own, as published.csv has
    them: numbers in the unit of results.csv, None where there are none.
    """
    beside = source.context.beside
    return [
        {
            "rubric": each.rubric,
            "statistic": each.statistic,
            "published_of": each.of,
            "published": each.value,
            "unit": each.unit,
            "published_number": each.in_ours,
            "rater_a": figure.raters[0] if figure else "",
            "rater_b": figure.raters[1] if figure else "",
            "statistic_here": figure.statistic if figure else "",
            "subset": figure.subset if figure else each.subset,
            "at": figure.at if figure else each.at,
            "n_units": figure.n_units if figure else None,
            "n_clusters": figure.n_clusters if figure else None,
            **dict(zip(("low", "estimate", "high"), _bounds(figure), strict=True)),
            "whose": _whose(each, figure) if figure else "",
            "note": _missing(figure, each, beside),
            "differs": each.differs,
            "source": beside.published.citation if beside else "",
        }
        for each, figure in published_beside(source)
    ]


def _table(source: Source, found: Sequence[Beside]) -> Table:
    beside = source.context.beside
    citation = beside.published.citation if beside else ""
    rows: list[Row] = []
    notes: dict[str, str] = {}
    heading, last = "", None
    for each, figure in found:
        unit = "share" if each.unit == "percent" else each.unit
        name = source.caption(each.rubric, f"{entry_for(each.statistic).name}, {unit}")
        if name != heading:
            rows.append(Row(heading := name))
        mark = notes.setdefault(each.differs, letters(len(notes))) if each.differs else ""
        printed = Cell() if each is last else Cell(each.beside_ours, marks=mark, published=citation)
        own = figure.cell if figure else Cell(DASH, aside=_missing(figure, each, beside))
        rows.append(Row(each.of, (printed, own, Cell(_whose(each, figure) if figure else ""))))
        last = each
    columns = ("published", "here", "whose")
    return Table(
        written("reproduction.caption"),
        written("reproduction.figure"),
        tuple(written(f"reproduction.{name}") for name in columns),
        tuple(rows),
        tuple((mark, text) for text, mark in notes.items()),
    )


def _own(source: Source, each: PublishedFigure) -> list[Figure | None]:
    """The study's own figures that are the like of a published one."""
    get, beside = source.figures.get, source.context.beside
    if beside is None:
        return []
    if each.between == "subjects":
        found = source.figures.everywhere(each.rubric, each.statistic)
        if _of_subject(each):
            return [f for f in found if (f.subset, f.at) == (each.subset, each.at)]
        # How far answers to one and the same prompt differ is another question.
        other = (REWORDED, _REPEATED)
        found = [f for f in found if f.at not in other and not f.subset.endswith(BINARY)]
        return [*([f for f in found if f.subset != ALL] or found)]
    raters: list[tuple[str, str]] = [("humans", "")]
    if each.between == "people and graders":
        raters = [("humans", grader) for grader in beside.graders]
    elif each.between == "graders":
        raters = list(combinations(sorted(beside.graders), 2))
    # On single responses the verdict of a pair is published: that of the mean of the two.
    of_pair = f"pair_{each.statistic}"
    known = source.figures.everywhere(each.rubric, of_pair)
    name = of_pair if any(f.subset == each.subset for f in known) else each.statistic
    figures: list[Figure | None] = []
    for who in raters:
        figures.append(get(each.rubric, name, *who, each.subset, each.at))
        if each.threshold:
            cut = f"{name}_at_threshold"
            figures.append(get(each.rubric, cut, *who, each.subset, repr(each.threshold)))
    return [figure for figure in figures if figure]


def _of_subject(each: PublishedFigure) -> bool:
    """Return True for a figure of the one subject that `at` names, such as its rate."""
    return each.between == "subjects" and each.statistic not in (STABILITY, SPREAD)


def _whose(each: PublishedFigure, figure: Figure) -> str:
    if figure.statistic in (STABILITY, SPREAD):
        subject = figure.subset.removeprefix("subject=")
        if figure.subset == ALL:
            subject = written("stability.all_subjects")
        return written(
            "reproduction.answers_of",
            subject=subject,
            column=figure.at,
            rater=rater_title(figure.raters[0]),
        )
    first, second = figure.raters
    whose = pair_title((first, second)) if second else rater_title(first)
    if _of_subject(each):
        return written("reproduction.of_subject", subject=figure.at, whose=whose)
    if figure.statistic.endswith("_at_threshold"):
        return written("reproduction.at_cut", whose=whose, cut=figure.at)
    return whose


def _bounds(figure: Figure | None) -> tuple[float | None, ...]:
    return figure.bounds if figure else (None, None, None)


def _missing(figure: Figure | None, each: PublishedFigure, beside: BesidePublished | None) -> str:
    """Say why there is no figure of the study's own; empty where there is one."""
    if figure is not None:
        return figure.reason.words if figure.reason else ""
    needed = {"graders": "two_graders", "subjects": "variants"}.get(each.between, "labels")
    if needed == "two_graders" and beside and len(beside.graders) > 1:
        needed = "not_computed"
    if _of_subject(each):
        return written("reproduction.no_subject", subject=each.at or each.of)
    return written(f"reproduction.{needed}")
