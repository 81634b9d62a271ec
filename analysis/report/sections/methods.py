"""Methods and provenance: where the labels come from and what each statistic is."""

from __future__ import annotations

from evenhand.analysis.report.blocks import (
    Answer,
    Block,
    Definitions,
    Paragraph,
    Part,
    ReportSection,
)
from evenhand.analysis.report.glossary import GLOSSARY, entry_for
from evenhand.analysis.report.sections.methods_text import methods_text
from evenhand.analysis.report.source import Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.usage import USAGE
from evenhand.texts import written

_INTERVALS = (
    "Brackets hold 95% intervals: percentiles of a bootstrap over clusters, the same resamples for "
    "every statistic of a rubric. Clusters are prompt pairs unless the facts below say otherwise. "
    "Quantiles are widened for few clusters; shares of few cases, and figures that are the same in "
    "every resample, have intervals that respect their limits. "
    "An interval speaks of other prompts from the same source, not of other raters. Where no "
    "interval or no estimate can be given, the reason stands with it."
)
_VERDICTS = (
    "A verdict is taken from bounds, never from an estimate. A grader may stand in for people if "
    "the lower bound of its difference to people lies above minus the margin, the lower bound of "
    "its kappa with people lies above both baselines, it scored nearly all it was asked, no bias "
    "was found whose whole interval lies beyond the bound, and its label does not move with the "
    "rubric's wording; at another threshold, if its binary verdicts do so with thresholds chosen "
    "on other units. A tuned threshold is never judged on the pairs it was tuned on: verdicts on "
    "these are made with thresholds tuned on other pairs. Only with correction: it clearly falls "
    "short of this, but its labels clearly carry a good part of what people's do. It should not be "
    "used if it clearly falls short and they do not. Otherwise the sample cannot tell. The rule "
    "here: "
)
_FILES = (
    "Every number here is a row of results.csv, which holds full precision; report.json holds the "
    "same rows. In results.csv a text cell that a spreadsheet would run as a formula has an "
    "apostrophe put before it; the exact texts are those of report.json."
)


def section(source: Source) -> ReportSection:
    """Provenance, conventions and the glossary of the statistics in use."""
    facts = [(name, _value(value)) for name, value in source.context.facts.items()]
    for each in source.analysis.thresholds:
        whose = f"threshold of {each.grader} on {source.context.title_of(each.rubric)}"
        facts.append((whose, f"{each.threshold:g} ({each.provenance})"))
    origin: Block = Paragraph("Nothing is known of where the labels come from.")
    if facts:
        origin = Definitions("Provenance", tuple(facts))
    parts: dict[str, list[Block]] = {
        "Methods paragraph": [methods_text(source)],
        "Provenance": [origin, *_usage(source)],
    }
    terms = Definitions("Statistics", _statistics(source))
    return ReportSection(
        "methods",
        "Methods and provenance",
        answers=(Answer((written("report.methods"),)),),
        parts=tuple(Part(title, "", folded=tuple(blocks)) for title, blocks in parts.items()),
        about=(_INTERVALS, f"{_VERDICTS}{source.analysis.rule}.", _FILES),
        appendix=(Part("Statistics", "", folded=(terms,)),),
    )


def _usage(source: Source) -> list[Block]:
    """What graders did and cost."""
    draft = TableDraft(
        "What graders did and cost",
        "Grader",
        [entry_for(name).label for name in USAGE.values()],
        count="",
    )
    for rubric in source.figures.rubrics:
        draft.group(source.context.title_of(rubric))
        for figure in source.figures.select(rubric, USAGE["attempts"]):
            grader = figure.raters[1]
            draft.add(
                grader, [source.figures.get(rubric, name, "", grader) for name in USAGE.values()]
            )
    return [*draft.finish()]


def _statistics(source: Source) -> tuple[tuple[str, str], ...]:
    used = set(source.figures.statistics)
    return tuple(
        (f"{entry.name} ({entry.label})", _sourced(entry.meaning, entry.source))
        for statistic, entry in GLOSSARY.items()
        if statistic in used
    )


def _sourced(meaning: str, source: str) -> str:
    return f"{meaning}. {source}." if source else f"{meaning}."


def _value(value: str | int | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
