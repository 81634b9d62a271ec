"""The verdicts, and what has to be known before they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Items,
    Overview,
    Paragraph,
    ReportSection,
)
from evenhand.analysis.report.figures import ALL_BINARY, Figure
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import Source, rater_title
from evenhand.analysis.verdicts.case import deciding_keys
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.words import TITLES
from evenhand.texts import written


def section(source: Source) -> ReportSection:
    """One card for each rubric and grader."""
    blocks: list[Block] = []
    if source.analysis.verdicts:
        cards = tuple(_card(source, each) for each in source.analysis.verdicts)
        blocks += [_overview(source, cards), Cards(cards)]
    else:
        blocks.append(Paragraph("No verdict: there are no model graders here to judge."))
    if source.notes:
        blocks.append(Items("Before you read on", source.notes))
    return ReportSection("verdicts", "Verdicts", tuple(blocks))


def _overview(source: Source, cards: tuple[Card, ...]) -> Overview:
    rubrics = dict.fromkeys(card.rubric for card in cards)
    graders = dict.fromkeys(card.grader for card in cards)
    by_place = {(card.grader, card.rubric): card for card in cards}
    return Overview(
        "Number: the grader's kappa with people minus people's kappa with each other, with its "
        f"95% interval; below 0 the grader agrees less; {written('verdict.bounds')}",
        tuple(rubrics),
        tuple((name, tuple(by_place.get((name, each)) for each in rubrics)) for name in graders),
    )


def _card(source: Source, verdict: Verdict) -> Card:
    title = TITLES[verdict["verdict"]]
    figures = [source.figures.by_key(tuple(key)) for key in verdict["evidence"]]
    key, _ = deciding_keys(verdict["verdict"], verdict["evidence"])
    difference = source.figures.by_key(key) if key else None
    return Card(
        verdict=verdict["verdict"],
        word=title.words,
        icon=title.icon,
        rubric=source.context.title_of(verdict["rubric"]),
        grader=verdict["grader"],
        sentence=verdict["sentence"],
        difference=_deciding(difference, figures, source) if difference else None,
        evidence=tuple(_evidence(figure) for figure in figures if figure is not None),
    )


def _deciding(difference: Figure, evidence: Sequence[Figure | None], source: Source) -> Cell:
    """The difference that decides, and whether a pass holds for the labels only."""
    least = -source.analysis.settings.margin
    falls_short = any(
        each.bounds[0] <= least
        for each in evidence
        if each and (each.statistic, each.subset) == (CEILING, ALL_BINARY)
    )
    cell = _cell(difference)
    if difference.subset != ALL_BINARY and difference.bounds[0] > least and falls_short:
        return replace(cell, aside="labels only, not binary verdicts")
    return cell


def _evidence(figure: Figure) -> tuple[str, Cell]:
    other = rater_title(figure.raters[1])
    parts = [other] if other.startswith("Baseline") else []
    parts.append(entry_for(figure.statistic).label)
    if figure.subset == ALL_BINARY:
        parts.append("binary verdict")
    return ", ".join(parts), _cell(figure)


def _cell(figure: Figure) -> Cell:
    aside = figure.reason.words if figure.reason else ""
    return Cell(figure.estimate, figure.interval, aside, key=figure.key, line=figure.line)
