"""The report as a whole, in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import ReportSection
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
    group_gap,
    methods,
    overall,
    raters,
    stability,
    thresholds,
    verdict_cards,
)
from evenhand.analysis.report.source import Source

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

SECTIONS = (
    verdict_cards.section,
    agreement.ceiling_section,
    agreement.pairs_section,
    overall.section,
    direction.section,
    thresholds.section,
    corrected_rates.section,
    bias.section,
    clarity.section,
    distributions.section,
    confidence_filter.section,
    stability.section,
    group_gap.section,
    raters.section,
    disagreements.section,
    methods.section,
)


def sections_of(analysis: Analysis, context: ReportContext) -> list[ReportSection]:
    """Every section, each with something to say or the reason why not; those that belong to some
    studies only are left out of others.
    """
    source = Source.of(analysis, context)
    written = (section(source) for section in SECTIONS)
    return named([section for section in written if section is not None])
