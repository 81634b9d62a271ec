"""Figures that others published, each beside the study's own, with what differs in design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING

from evenhand.analysis.agreement.groups import REWORDED, SPREAD, STABILITY
from evenhand.analysis.bias.audit import family_of
from evenhand.analysis.report import blocks
from evenhand.analysis.report.blocks import Cell, ReportSection, Row, Table
from evenhand.analysis.report.source import (
    ALL,
    Figure,
    Source,
    footnote_mark,
    pair_title,
    rater_title,
)
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH, written

if TYPE_CHECKING:
    from evenhand.analysis.report.source import BesidePublished
    from evenhand.study.settings.analysis import PublishedFigure

_REPEATED = "repeat"
Paired = tuple["PublishedFigure", Figure | None]
"""A published figure and one of the study's own; None where it has none yet."""


def section(source: Source) -> ReportSection | None:
    """Build the section from every figure that the study declares; None where it declares none."""
    if (declared := source.context.beside) is None:
        return None
    pairs = list(_paired(source, declared))
    matched = len(
        {id(quoted) for quoted, figure in pairs if figure and not isnan(figure.bounds[1])}
    )
    answer = written("reproduction.answer", matched=matched, quoted=len(declared.published.figure))
    differs = blocks.Items(written("reproduction.differs"), tuple(declared.differences))
    about = (written("published.about"), declared.published.citation)
    title = written("reproduction.title")
    if not pairs:  # of a design without figures
        return ReportSection("published-figures", title, (differs,), about=about)
    shown, answers = (_table(source, declared, pairs), differs), (blocks.Answer((answer,)),)
    return ReportSection("published-figures", title, shown, answers, about=about)


def _paired(source: Source, declared: BesidePublished) -> Iterator[Paired]:
    """Yield every published figure once for each of the study's own that is its like."""
    for quoted in declared.published.figure:
        figures: Sequence[Figure | None] = _own(source, declared, quoted) or [None]
        yield from ((quoted, figure) for figure in figures)


def published_rows(source: Source, declared: BesidePublished) -> list[Mapping[str, object]]:
    """Return a row for each published figure and figure of the study's own, as published.csv has
    them: numbers in the unit of results.csv, None where there are none.
    """
    names, unknown = ("low", "estimate", "high"), (None, None, None)
    return [
        {
            "rubric": quoted.rubric,
            "statistic": quoted.statistic,
            "published_of": quoted.of,
            "published": quoted.value,
            "unit": quoted.unit,
            "published_number": quoted.in_ours,
            "rater_a": figure.rater if figure else "",
            "rater_b": figure.grader if figure else "",
            "statistic_here": figure.statistic if figure else "",
            "subset": figure.subset if figure else quoted.subset,
            "at": figure.at if figure else quoted.at,
            "n_units": figure.n_units if figure else None,
            "n_clusters": figure.n_clusters if figure else None,
            **dict(zip(names, figure.bounds if figure else unknown, strict=True)),
            "whose": _whose(quoted, figure) if figure else "",
            "note": _missing(source, figure, quoted, declared),
            "differs": quoted.differs,
            "source": declared.published.citation,
        }
        for quoted, figure in _paired(source, declared)
    ]


def _table(source: Source, declared: BesidePublished, pairs: Sequence[Paired]) -> Table:
    citation = declared.published.citation
    rows: list[Row] = []
    notes: dict[str, str] = {}
    heading, last = "", None
    for quoted, figure in pairs:
        unit = "share" if quoted.unit == "percent" else quoted.unit
        name = source.on(quoted.rubric).caption(f"{entry_for(quoted.statistic).name}, {unit}")
        if name != heading:
            rows.append(Row(heading := name))
        mark = notes.setdefault(quoted.differs, footnote_mark(len(notes))) if quoted.differs else ""
        printed = (
            Cell() if quoted is last else Cell(quoted.beside_ours, marks=mark, published=citation)
        )
        cell = (
            figure.cell if figure else Cell(DASH, aside=_missing(source, figure, quoted, declared))
        )
        rows.append(Row(quoted.of, (printed, cell, Cell(_whose(quoted, figure) if figure else ""))))
        last = quoted
    heads = (written(f"reproduction.{name}") for name in ("published", "here", "whose"))
    caption, stub = written("reproduction.caption"), written("reproduction.figure")
    footnotes = tuple((mark, text) for text, mark in notes.items())
    return Table(caption, stub, tuple(heads), tuple(rows), footnotes)


def _own(source: Source, declared: BesidePublished, each: PublishedFigure) -> list[Figure]:
    """The study's own figures that are the like of a published one."""
    figures = source.on(each.rubric)
    if each.between == "subjects":
        rows = figures.select_all(each.statistic)
        if _of_subject(each):
            return [f for f in rows if (f.subset, f.at) == (each.subset, each.at)]
        # How far answers to one and the same prompt differ is another question.
        rows = [f for f in rows if f.at not in (REWORDED, _REPEATED) and not f.is_binary]
        return [f for f in rows if f.subset != ALL] or rows
    raters: list[tuple[str, str]] = [("humans", "")]
    if each.between == "people and graders":
        raters = [("humans", grader) for grader in declared.graders]
    elif each.between == "graders":
        raters = _meant(source, declared, each)
    # On single responses the verdict of a pair is published: that of the mean of the two.
    of_pair = f"pair_{each.statistic}"
    of_pairs = each.subset in figures.by_subset(of_pair)
    name, cut = of_pair if of_pairs else each.statistic, each.threshold
    looked = [(name, each.at), *([(f"{name}_at_threshold", repr(cut))] if cut else [])]
    found_of = (figures.get(s, *who, each.subset, at) for who in raters for s, at in looked)
    return [figure for figure in found_of if figure]


def _meant(
    source: Source, declared: BesidePublished, each: PublishedFigure
) -> list[tuple[str, str]]:
    """The pairs of own graders that are of the families of those published, where it names some."""
    families, wanted = source.analysis.settings.families, sorted(each.graders)
    return [
        pair
        for pair in combinations(sorted(declared.graders), 2)
        if wanted in ([], sorted(family_of(grader, families) for grader in pair))
    ]


def _of_subject(each: PublishedFigure) -> bool:
    """Return True for a figure of the one subject that `at` names, such as its rate."""
    return each.between == "subjects" and each.statistic not in (STABILITY, SPREAD)


def _whose(each: PublishedFigure, figure: Figure) -> str:
    """Name the raters of the study's own figure, and the subject or the cut that it is on."""
    rater, subject = rater_title(figure.rater), figure.subset.removeprefix("subject=")
    if figure.statistic in (STABILITY, SPREAD):
        subject = written("stability.all_subjects") if figure.subset == ALL else subject
        return written("reproduction.answers_of", subject=subject, column=figure.at, rater=rater)
    whose = pair_title(figure.raters) if figure.grader else rater
    if _of_subject(each):
        return written("reproduction.of_subject", subject=figure.at, whose=whose)
    if figure.statistic.endswith("_at_threshold"):
        return written("reproduction.at_cut", whose=whose, cut=figure.at)
    return whose


def _missing(
    source: Source, figure: Figure | None, each: PublishedFigure, declared: BesidePublished
) -> str:
    """Say why there is no figure of the study's own; empty where there is one."""
    if figure is not None:
        return figure.reason.words if figure.reason else ""
    needed = {"graders": "two_graders", "subjects": "variants"}.get(each.between, "labels")
    if needed == "two_graders" and len(declared.graders) > 1:
        needed = "not_computed" if _meant(source, declared, each) else "not_run"
    if _of_subject(each):
        return written("reproduction.no_subject", subject=each.at or each.of)
    return written(f"reproduction.{needed}")
