"""Exported files held against the report of the study they come from."""

from __future__ import annotations

import json
from pathlib import Path

from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.ratings_file.scales import ScaleOptions


def same_as_reported(ratings: Path, report: Path, rubric: str) -> bool:
    """Whether the files alone say of a rubric what the report says: every verdict with what it
    rests on, and every figure to the last digit.
    """
    told = json.loads((report / "report.json").read_text("utf-8"))
    analysis, context = analyse_file(ratings, ScaleOptions(rubric=rubric))
    verdicts = [each for each in told["verdicts"] if each["rubric"] == rubric]
    names = [name for name in analysis.results if name != "note"]
    rows = [[row[name] for name in names] for row in told["results"] if row["rubric"] == rubric]
    found = analysis.results[names].astype(object)
    return (
        context.synthetic
        and len(verdicts) > 0
        and analysis.verdicts == verdicts
        and found.where(found.notna(), None).to_numpy().tolist() == rows
    )
