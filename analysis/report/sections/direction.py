"""Direction: which side of the pairs is favoured, by people and by graders, for every subject."""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.sections.wording import listed
from evenhand.analysis.report.source import Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_NET = "direction_net"
_APART = ("subject", "group")
"""Columns whose values have tables of their own."""


def section(source: Source) -> ReportSection | None:
    """Annotators and graders: on everything, for every subject, for every group; None where no
    option favours a side and no unit is one side of a pair.
    """

    def layers_of(rubric: str) -> Layers:
        figures = _net(source, rubric)
        return Layers(
            answers=_answer(figures),
            folded=[
                *_sentences(figures),
                *_by_rater(source, rubric, figures, "subject", _value),
                *_parts(source, rubric, figures),
            ],
            appendix=_by_rater(source, rubric, figures, "group", _sides),
        )

    every = [f for rubric in source.figures.rubrics for f in _net(source, rubric)]
    unnamed = any(figure.at == "side a>side b" for figure in every)
    about = [written("direction.about"), *([written("direction.side_a")] if unnamed else [])]
    return source.section("direction", written("direction.title"), layers_of, about=about)


def _net(source: Source, rubric: str) -> list[Figure]:
    return source.figures.everywhere(rubric, _NET)


def _answer(figures: list[Figure]) -> list[list[object]]:
    """The subjects on which a side is favoured, by people where they labelled, else by the first
    grader; or the widest.
    """
    known = [figure for figure in figures if figure.interval]
    raters = [figure.raters[0] for figure in known]
    rater = "humans" if "humans" in raters else next(iter(raters), "")
    by_rater = [figure for figure in known if figure.raters[0] == rater]
    own = [figure for figure in by_rater if _part(figure)[0] == "subject"] or by_rater
    if not own:
        return [in_pieces("report.direction_unknown")] if figures else []
    apart = [figure for figure in own if not figure.bounds[0] <= 0 <= figure.bounds[2]]
    who = rater_title(own[0].raters[0])
    if not apart:
        widest = max(own, key=lambda figure: max(-figure.bounds[0], figure.bounds[2]))
        place = _value(widest) or written("direction.everywhere")
        even = "direction_even" if rater == "humans" else "direction_even_by_one"
        return [in_pieces(f"report.{even}", who=who, place=place, net=widest)]
    favoured = [
        in_pieces(
            "direction.on",
            favoured=_favoured(each),
            place=_value(each) or written("direction.everywhere"),
            net=each,
        )
        for each in apart
    ]
    favours = "direction" if rater == "humans" else "direction_by_one"
    return [in_pieces(f"report.{favours}", who=who, favoured=listed(favoured))]


def _favoured(figure: Figure) -> str:
    first, _, second = figure.at.partition(">")
    return first if figure.bounds[1] > 0 else second


def _sentences(figures: list[Figure]) -> list[Block]:
    """Return a sentence for every subject by people's labels, or by graders' where people labelled
    none.
    """
    own = [figure for figure in figures if _part(figure)[0] == "subject"]
    people = [figure for figure in own if figure.raters[0] == "humans"]
    said = tuple(_sentence(figure) for figure in people or own)
    return [Items(written("direction.what"), said)] if said else []


def _sentence(figure: Figure) -> str:
    low, estimate, high = figure.bounds
    first, _, second = figure.at.partition(">")
    who = {"rater": rater_title(figure.raters[0]), "subject": _value(figure)}
    net = f"{figure.estimate} {figure.interval}".strip()
    units, line = figure.n_units, figure.line
    figures = written("direction.figures", net=net, units=units, line=line)
    if math.isnan(low):
        return written("direction.open", **who, figures=figures)
    if low <= 0 <= high:
        return written("direction.even", **who, most=max(-low, high), figures=figures)
    favoured, other = (first, second) if estimate > 0 else (second, first)
    return written(
        "direction.affirms" if figure.subset.endswith(BINARY) else "direction.favours",
        **who, favoured=favoured, other=other, figures=figures,
    )  # fmt: skip


def _by_rater(
    source: Source,
    rubric: str,
    figures: list[Figure],
    column: str,
    title: Callable[[Figure], str],
) -> list[Table]:
    """A row for every subject or group, a column for every rater."""
    own = [figure for figure in figures if _part(figure)[0] == column]
    raters = list(dict.fromkeys(figure.raters[0] for figure in own))
    draft = TableDraft(
        source.caption(rubric, written("direction.by_column", column=column)),
        column.title(),
        [rater_title(name) for name in raters],
    )
    if column == "subject" and own:
        draft.group(_sides(own[0]))
    by_place = {(figure.subset, figure.raters[0]): figure for figure in own}
    for first in {figure.subset: figure for figure in own}.values():
        draft.add(title(first), [by_place.get((first.subset, rater)) for rater in raters])
    return draft.finish()


def _parts(source: Source, rubric: str, figures: list[Figure]) -> list[Table]:
    """Net direction of every rater, on everything and on the parts without a table of their own."""
    draft = TableDraft(
        source.caption(rubric, written("direction.by_rater")),
        "Rater",
        [entry_for(_NET).label],
    )
    own = [figure for figure in figures if _part(figure)[0] not in _APART]
    for first in {figure.subset: figure for figure in own}.values():
        column, value = _part(first)
        draft.group(_sides(first, column, value))
        for figure in own:
            if figure.subset == first.subset:
                draft.add(rater_title(figure.raters[0]), [figure])
    return draft.finish()


def _part(figure: Figure) -> tuple[str, str]:
    """Column and value of what a figure is on; ("all", "") for everything."""
    column, _, value = figure.subset.removesuffix(BINARY).partition("=")
    return column, value


def _value(figure: Figure) -> str:
    return _part(figure)[1]


def _sides(figure: Figure, column: str = "", value: str = "") -> str:
    """The two sides of a figure in words, and the part of the sample, if it has a value."""
    first, _, second = figure.at.partition(">")
    return written(
        "direction.sides_where" if value else "direction.sides",
        first=first, second=second, column=column, value=value,
    )  # fmt: skip
