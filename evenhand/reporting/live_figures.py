"""A study's figures for the lead's pages: made while people label, so soon and at little cost."""

from __future__ import annotations

from pathlib import Path

QUALITY_FILE = "quality.csv"


def study_figures(folder: Path, out: Path) -> None:
    """Write a study's four report files and its table of raters (`QUALITY_FILE`) into `out`.

    The figures are those of the report, counted by this process alone and not held against other
    libraries: whoever decides on a report lets `evenhand report` write it. Raises InputError where
    nothing is labelled yet.
    """
    from evenhand.analysis.report import write_report
    from evenhand.reporting.analysing import analyse_study
    from evenhand.reporting.quality import study_quality
    from evenhand.study import open_study
    from evenhand.study.tables.formats import write_table

    with open_study(folder) as study:
        analysis, context = analyse_study(study, verify=False)
        quality = study_quality(study)
    write_report(analysis, context, out)
    write_table(quality, out / QUALITY_FILE)
