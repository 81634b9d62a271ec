"""A study's figures for the lead's pages: made while people label, so soon and at little cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

QUALITY_FILE = "quality.csv"
DISAGREEMENTS_FILE = "disagreements.json"


def study_figures(folder: Path, out: Path) -> None:
    """Write a study's report files, its table of raters (`QUALITY_FILE`) and where graders and
    people differ, the widest first (`DISAGREEMENTS_FILE`), into `out`.

    The figures are those of the report, counted by this process alone and not held against other
    libraries: whoever decides on a report lets `evenhand report` write it. Raises InputError where
    nothing is labelled yet.
    """
    from evenhand.analysis.report import write_report
    from evenhand.analysis.report.disagreements_page import widest_first
    from evenhand.reporting.analysing import analyse_study
    from evenhand.reporting.quality import study_quality
    from evenhand.study import open_study
    from evenhand.study.tables.formats import write_table

    with open_study(folder) as study:
        analysis, context = analyse_study(study, verify=False, look=False)
        quality = study_quality(study)
    write_report(analysis, context, out)
    write_table(quality, out / QUALITY_FILE)
    found = [asdict(each) for each in widest_first(analysis.disagreements)]
    (out / DISAGREEMENTS_FILE).write_text(json.dumps(found), "utf-8")
