"""Rendering an analysis: report.html, report.md, report.json, results.csv and a panel as text.

Every number in them is read off the `results` table; nothing is computed here but its rounding.
"""

from __future__ import annotations

from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.figure_files import write_figures
from evenhand.analysis.report.files import prepare_drawing, write_report
from evenhand.analysis.report.notebook import render_notebook
from evenhand.analysis.report.sections.confidence_filter import render_routing_text
from evenhand.analysis.report.sections.thresholds import render_thresholds_text
from evenhand.analysis.report.terminal_panel import render_table_text

__all__ = [
    "ReportContext",
    "prepare_drawing",
    "render_notebook",
    "render_routing_text",
    "render_table_text",
    "render_thresholds_text",
    "write_figures",
    "write_report",
]
