"""Writing a study's report: for a verb, the demo, or a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.workers import workers

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.study import Study


def report_study(
    study: Study,
    out: Path,
    *,
    figures: Path | None = None,
    full: bool = False,
    on_stage: Callable[[str], None] | None = None,
) -> Analysis:
    """Analyse a study on all cores and write report.html, .md, .json and results.csv into `out`,
    and into `figures`, where that is named, each figure and table as a file. On a `full` page
    everything is unfolded.

    `on_stage` is called with the name of each stage. Raises InputError where nothing is labelled
    yet.
    """
    from evenhand.analysis.report import write_figures, write_report

    tell = on_stage or (lambda stage: None)
    tell("reading the labels")
    with workers() as pool:
        analysis, context = analyse_study(study, pool=pool, on_stage=tell)
        tell("writing the report")
        write_report(analysis, context, out, full=full, pool=pool)
    if figures is not None:
        tell("drawing figures")
        write_figures(analysis, context, figures)
    return analysis
