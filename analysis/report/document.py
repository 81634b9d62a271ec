"""The report as a whole, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import Answer, ReportSection
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.names import named
from evenhand.analysis.report.sections import (
    agreement,
    bias,
    clarity,
    confidence_filter,
    corrected_rates,
    direction,
    disagreements,
    distributions,
    group_performance,
    injection,
    methods,
    overall,
    preference,
    raters,
    reproduction,
    rewording,
    stability,
    thresholds,
    verdict_cards,
)
from evenhand.analysis.report.source import Source
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

SECTIONS = (
    verdict_cards.section,
    reproduction.section,
    agreement.ceiling_section,
    agreement.pairs_section,
    overall.section,
    preference.section,
    direction.section,
    thresholds.section,
    corrected_rates.section,
    bias.section,
    injection.section,
    clarity.section,
    distributions.section,
    confidence_filter.section,
    stability.section,
    rewording.section,
    group_performance.section,
    raters.section,
    disagreements.section,
    methods.section,
)


def sections_of(analysis: Analysis, context: ReportContext) -> list[ReportSection]:
    """List every section, each with findings or the reason why it has none; sections that only some
    studies need are left out of others.
    """
    source = Source.of(analysis, context)
    found = (section(source) for section in SECTIONS)
    sections = [section for section in found if section is not None]
    return named([*(replace(each, appendix=()) for each in sections), *_appendix(sections)])


def _appendix(sections: Sequence[ReportSection]) -> list[ReportSection]:
    """Collect the appendices of all sections into one; empty where there is none."""
    parts = tuple(part for section in sections for part in section.appendix)
    said = (Answer((written("report.appendix"),)),)
    return (
        [ReportSection("appendix", written("page.appendix"), answers=said, parts=parts)]
        if parts
        else []
    )
