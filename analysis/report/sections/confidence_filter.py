"""Confidence filter: coverage and agreement where only a grader's confident labels count."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.analysis.notes import Remark
from evenhand.analysis.report.blocks import Block, Items, ReportSection, traced
from evenhand.analysis.report.figures import Figure, ResultsIndex, shown
from evenhand.analysis.report.sections.wording import listed, sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds import routing
from evenhand.analysis.thresholds.routing import AGREEMENT, COVERAGE
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

_CURVE = [COVERAGE, AGREEMENT]


def section(source: Source) -> ReportSection | None:
    """Build the section on graders with a confidence: the declared cut, a promise, all cuts."""
    return source.section(
        "confidence-filter",
        written("confidence.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=[
                *_cuts(source, rubric),
                *_promises(source, rubric),
                *_every_cut(source, rubric),
            ],
        ),
        about=[written("confidence.about")],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The cuts that keep a promise, and the graders for which none does."""
    said, without = [], []
    for cut in source.figures.everywhere(rubric, routing.CUT):
        share, agreement, *_ = [*_beside(source.figures, cut), None, None]
        if share and agreement:
            said.append(
                in_pieces(
                    "report.cut", grader=cut.raters[1], cut=cut, share=share, agreement=agreement
                )
            )
        else:
            without.append([cut.raters[1]])
    if without:
        said.append(in_pieces("report.cut_none", graders=listed(without)))
    return [sentences(*said)] if said else []


def render_routing_text(analysis: Analysis) -> list[str]:
    """A sentence or two on every grader with a confidence, on the labels to trust."""
    figures = ResultsIndex(analysis.rows)
    return [
        written(
            "confidence.routing_on" if rubric else "confidence.routing",
            grader=figure.raters[1], rubric=rubric, said=text,
        )
        for rubric in figures.rubrics
        for figure, text in _routes(figures, rubric)
    ]  # fmt: skip


def _promises(source: Source, rubric: str) -> list[Block]:
    said = tuple(
        traced(written("naming.about", whom=cut.raters[1], what=text), _lines(source.figures, cut))
        for cut, text in _routes(source.figures, rubric)
    )
    title = source.caption(rubric, written("confidence.what"))
    return [Items(title, said)] if said else []


def _lines(figures: ResultsIndex, cut: Figure) -> str:
    return ", ".join(str(each.line) for each in (cut, *_beside(figures, cut)))


def _beside(figures: ResultsIndex, cut: Figure) -> list[Figure]:
    """Return share and agreement of the labels above the cut; empty without a cut."""
    rubric, _, *place = cut.key
    names = (routing.SHARE, routing.ROUTED_AGREEMENT)
    found = (figures.by_key((rubric, name, *place)) for name in names)
    return [each for each in found if each]


def _routes(figures: ResultsIndex, rubric: str) -> Iterator[tuple[Figure, str]]:
    """Yield every grader's promised cut with its explanation."""
    for cut in figures.everywhere(rubric, routing.CUT):
        target = f"{100 * float(cut.at):g}%"
        if beside := _beside(figures, cut):
            yield cut, _route(cut, target, *beside)
        elif cut.reason and cut.reason.code != "no_level":
            yield cut, _no_route(cut.reason, target)


def _no_route(reason: Remark, target: str) -> str:
    if reason.code == "unequal_chances":
        return written("confidence.unequal", target=target)
    units, *more = reason.detail
    if not more:
        return written("confidence.out_of_reach", target=target, units=units)
    return written("confidence.label_more", target=target, units=units, more=more[0])


def _route(cut: Figure, target: str, share: Figure, agreement: Figure) -> str:
    below = 1.0 - cut.bounds[1]
    places = max(3, math.ceil(-math.log10(below))) if below > 0 else 3  # 0.99996 is not 1
    return written(
        "confidence.trust",
        cut=f"{cut.bounds[1]:.{places}f}", certainty=1 - routing.ERROR, target=target,
        agreement=agreement.bounds[1], share=share.bounds[1],
    )  # fmt: skip


def _cuts(source: Source, rubric: str) -> list[Block]:
    """Tabulate each grader at the declared cut."""
    declared = [
        figure
        for figure in source.figures.everywhere(rubric, COVERAGE)
        if figure.says("declared_cut")
    ]
    if not declared:
        return []
    cut = shown(float(declared[0].at), routing.CUT)
    draft = TableDraft(
        source.caption(rubric, written("confidence.caption")),
        "Grader",
        [
            written("confidence.kept_at", cut=cut),
            written("confidence.agreement_at", cut=cut),
        ],
    )
    for figure in declared:
        row = source.row(rubric, _CURVE, figure.raters, figure.subset, figure.at)
        draft.add(figure.raters[1], row)
    return [*draft.finish()]


def _every_cut(source: Source, rubric: str) -> list[Block]:
    """Coverage against agreement as the cut rises."""
    draft = TableDraft(
        source.caption(rubric, written("confidence.curve")),
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
                draft.add(shown(float(figure.at), routing.CUT), row)
    return [*draft.finish()]
