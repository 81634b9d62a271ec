"""Methods and provenance: the origin of the labels, each statistic explained, and the paragraphs to
paste into a paper.
"""

from __future__ import annotations

from evenhand.analysis.raters import COST
from evenhand.analysis.report import blocks
from evenhand.analysis.report.paper import paragraphs
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.tables import FigureRow, TableSpec, make_table
from evenhand.analysis.statistics import entry_for, statistics
from evenhand.texts import written


def section(source: Source) -> blocks.ReportSection:
    """Provenance, conventions and the glossary of the statistics in use."""
    facts = [
        (name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in source.context.facts.items()
    ]
    for each in source.analysis.thresholds:
        title = source.context.title_of(each.rubric)
        whose = written("methods.threshold_of", grader=each.grader, rubric=title)
        facts.append((whose, f"{each.threshold:g} ({each.provenance})"))
    origin: blocks.Block = blocks.Paragraph(written("methods.unknown"))
    if facts:
        origin = blocks.Definitions(written("methods.provenance"), tuple(facts))
    parts = (
        blocks.Part(title=written("methods.paragraph"), folded=(paragraphs(source),)),
        blocks.Part(title=written("methods.provenance"), folded=(origin, *_usage(source))),
    )
    terms = blocks.Definitions(written("methods.statistics"), _statistics(source))
    holm = source.analysis.decision.across_rubrics == "holm"
    about = [
        written("methods.intervals"),
        written("methods.verdicts", rule=source.analysis.rule),
        written("methods.level_holm" if holm else "methods.level"),
        written("methods.chance"),
        written("methods.files"),
    ]
    return blocks.ReportSection(
        "methods",
        written("methods.title"),
        answers=(blocks.Answer((written("report.methods"),)),),
        parts=parts,
        about=tuple(about),
        appendix=(blocks.Part(title=terms.title, folded=(terms,)),),
    )


def _usage(source: Source) -> list[blocks.Table]:
    """Tabulate what graders cost, with their attempts."""
    rows: list[FigureRow] = []
    for figures in source.rubrics:
        rows.append((figures.title, None))
        rows += [(figure.grader, [figure]) for figure in figures.select(COST)]
    spec = TableSpec(count=written("methods.attempts"))
    return make_table(written("methods.usage"), "Grader", [entry_for(COST).label], rows, spec)


def _statistics(source: Source) -> tuple[tuple[str, str], ...]:
    """Explain the statistics in use: those of the table in its order, then their variants."""
    used = source.figures.statistics
    named = [name for name in statistics() if name in used]
    entries = map(entry_for, [*named, *(name for name in used if name not in named)])
    return tuple(
        (f"{each.name} ({each.label})", ". ".join(filter(None, (each.meaning, each.source))) + ".")
        for each in entries
        if each.meaning
    )
