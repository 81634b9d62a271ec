"""Direction: which side of the pairs is favoured, by people and by graders, for every subject."""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.source import (
    Layers,
    RubricFigures,
    Source,
    crossed,
    labels,
    listed,
    rater_title,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.texts import in_pieces, written

_NET = "direction_net"
_APART = ("subject", "group")
"""Columns whose values have tables of their own."""


def section(source: Source) -> ReportSection | None:
    """Annotators and graders: on everything, for every subject, for every group; None where no
    option favours a side and no unit is one side of a pair.
    """

    def layers_of(figures: RubricFigures) -> Layers:
        net = figures.everywhere(_NET)
        return Layers(
            answers=_answer(net),
            folded=[
                *_sentences(net),
                *_by_rater(figures, net, "subject", _value),
                *_parts(figures, net),
            ],
            appendix=_by_rater(figures, net, "group", _sides),
        )

    every = (net for figures in source.rubrics for net in figures.everywhere(_NET))
    unnamed = any(figure.at == "side a>side b" for figure in every)
    about = [written("direction.about"), *([written("direction.side_a")] if unnamed else [])]
    return source.section("direction", written("direction.title"), layers_of, about=about)


def _answer(net: list[Figure]) -> list[list[object]]:
    """The subjects on which a side is favoured, by people where they labelled, else by the first
    grader; or the widest.
    """
    known = [figure for figure in net if figure.interval]
    raters = [figure.raters[0] for figure in known]
    rater = "humans" if "humans" in raters else next(iter(raters), "")
    by_rater = [figure for figure in known if figure.raters[0] == rater]
    own = [figure for figure in by_rater if _part(figure)[0] == "subject"] or by_rater
    if not own:
        return [in_pieces("report.direction_unknown")] if net else []
    apart = [figure for figure in own if not figure.bounds[0] <= 0 <= figure.bounds[2]]
    who = rater_title(rater)
    if not apart:
        widest = max(own, key=lambda figure: max(-figure.bounds[0], figure.bounds[2]))
        place = _value(widest) or written("direction.everywhere")
        even = "direction_even" if rater == "humans" else "direction_even_by_one"
        return [in_pieces(f"report.{even}", who=who, place=place, net=widest)]
    favoured = [
        in_pieces(
            "direction.on",
            favoured=_favoured_first(each)[0],
            place=_value(each) or written("direction.everywhere"),
            net=each,
        )
        for each in apart
    ]
    favours = "direction" if rater == "humans" else "direction_by_one"
    return [in_pieces(f"report.{favours}", who=who, favoured=listed(favoured))]


def _favoured_first(figure: Figure) -> tuple[str, str]:
    first, _, second = figure.at.partition(">")
    return (first, second) if figure.bounds[1] > 0 else (second, first)


def _sentences(net: list[Figure]) -> list[Block]:
    """Return a sentence for every subject by people's labels, or by graders' where people labelled
    none.
    """
    own = [figure for figure in net if _part(figure)[0] == "subject"]
    people = [figure for figure in own if figure.raters[0] == "humans"]
    said = tuple(_sentence(figure) for figure in people or own)
    return [Items(written("direction.what"), said)] if said else []


def _sentence(figure: Figure) -> str:
    low, _, high = figure.bounds
    who = {"rater": rater_title(figure.raters[0]), "subject": _value(figure)}
    net = f"{figure.estimate} {figure.interval}".strip()
    figures = written("direction.figures", net=net, units=figure.n_units, line=figure.line)
    if math.isnan(low):
        return written("direction.open", **who, figures=figures)
    if low <= 0 <= high:
        return written("direction.even", **who, most=max(-low, high), figures=figures)
    favoured, other = _favoured_first(figure)
    return written(
        "direction.affirms" if figure.subset.endswith(BINARY) else "direction.favours",
        **who, favoured=favoured, other=other, figures=figures,
    )  # fmt: skip


def _by_rater(
    figures: RubricFigures, net: list[Figure], column: str, title: Callable[[Figure], str]
) -> list[Table]:
    """A row for every subject or group, a column for every rater."""
    own = [figure for figure in net if _part(figure)[0] == column]
    raters = list(dict.fromkeys(figure.raters[0] for figure in own))
    latest = {figure.subset: figure for figure in own}
    by_part = crossed(own, lambda each: each.subset, lambda each: each.raters[0], raters)
    rows: list[FigureRow] = [(_sides(own[0]), None)] if column == "subject" and own else []
    rows += [(title(latest[subset]), row) for subset, row in by_part.items()]
    what = written("direction.by_column", column=column)
    return figures.table(what, column.title(), list(map(rater_title, raters)), rows)


def _parts(figures: RubricFigures, net: list[Figure]) -> list[Table]:
    """Net direction of every rater, on everything and on the parts without a table of their own."""
    own = [figure for figure in net if _part(figure)[0] not in _APART]
    rows: list[FigureRow] = []
    for part in {figure.subset: figure for figure in own}.values():
        rows.append((_sides(part, *_part(part)), None))
        same = (figure for figure in own if figure.subset == part.subset)
        rows += [(rater_title(figure.raters[0]), [figure]) for figure in same]
    return figures.table(written("direction.by_rater"), "Rater", labels([_NET]), rows)


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
