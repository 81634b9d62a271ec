"""Methods and provenance: the origin of the labels, and each statistic explained."""

from __future__ import annotations

from evenhand.analysis.report.blocks import (
    Answer,
    Block,
    Definitions,
    Paragraph,
    Part,
    ReportSection,
)
from evenhand.analysis.report.sections.methods_text import methods_text
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for, statistics
from evenhand.analysis.usage import COST
from evenhand.texts import written


def section(source: Source) -> ReportSection:
    """Provenance, conventions and the glossary of the statistics in use."""
    facts = [(name, _value(value)) for name, value in source.context.facts.items()]
    for each in source.analysis.thresholds:
        title = source.context.title_of(each.rubric)
        whose = written("methods.threshold_of", grader=each.grader, rubric=title)
        facts.append((whose, f"{each.threshold:g} ({each.provenance})"))
    origin: Block = Paragraph(written("methods.unknown"))
    if facts:
        origin = Definitions(written("methods.provenance"), tuple(facts))
    parts: dict[str, list[Block]] = {
        written("methods.paragraph"): [methods_text(source)],
        written("methods.provenance"): [origin, *_usage(source)],
    }
    statistics = written("methods.statistics")
    terms = Definitions(statistics, _statistics(source))
    holm = source.analysis.decision.across_rubrics == "holm"
    about = [
        written("methods.intervals"),
        written("methods.verdicts", rule=source.analysis.rule),
        written("methods.level_holm" if holm else "methods.level"),
        written("methods.chance"),
    ]
    return ReportSection(
        "methods",
        written("methods.title"),
        answers=(Answer((written("report.methods"),)),),
        parts=tuple(Part(title, "", folded=tuple(blocks)) for title, blocks in parts.items()),
        about=(*about, written("methods.files")),
        appendix=(Part(statistics, "", folded=(terms,)),),
    )


def _usage(source: Source) -> list[Block]:
    """Tabulate what graders cost, with their attempts."""
    draft = TableDraft(
        written("methods.usage"),
        "Grader",
        [entry_for(COST).label],
        count=written("methods.attempts"),
    )
    for rubric in source.figures.rubrics:
        draft.group(source.context.title_of(rubric))
        for figure in source.figures.select(rubric, COST):
            draft.add(figure.raters[1], [figure])
    return [*draft.finish()]


def _statistics(source: Source) -> tuple[tuple[str, str], ...]:
    used = source.figures.statistics
    variants = (name for name in used if name not in statistics())
    named = [*(name for name in statistics() if name in used), *variants]
    return tuple(
        (f"{entry.name} ({entry.label})", _sourced(entry.meaning, entry.source))
        for entry in map(entry_for, named)
        if entry.meaning
    )


def _sourced(meaning: str, source: str) -> str:
    return f"{meaning}. {source}." if source else f"{meaning}."


def _value(value: str | int | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
