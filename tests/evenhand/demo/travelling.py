"""Exported files held against the report of the study they come from."""

import json
from pathlib import Path

from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.ratings_file.declared import ScaleOptions

OVER_RUBRICS = ("rate_difference_ppi", "rate_rank_set", "rate_side_difference_ppi")
"""Hold together over all rubrics that are analysed, and so are narrower for one alone."""


def same_as_reported(ratings: Path, report: Path, rubric: str) -> bool:
    """Whether the files alone say of a rubric what the report says: every verdict with what it
    rests on, and every figure to the last digit, save those that are about all rubrics.
    """
    told = json.loads((report / "report.json").read_text("utf-8"))
    analysis, context = analyse_file(ratings, ScaleOptions(rubric=rubric))
    verdicts = [each for each in told["verdicts"] if each["rubric"] == rubric]
    names = [name for name in analysis.results if name != "note"]
    own = (row for row in told["results"] if row["rubric"] == rubric)
    rows = [[row[name] for name in names] for row in own if row["statistic"] not in OVER_RUBRICS]
    results = analysis.results[~analysis.results["statistic"].isin(OVER_RUBRICS)]
    found = results[names].astype(object)
    return (
        context.synthetic
        and len(verdicts) > 0
        and analysis.verdicts == verdicts
        and found.where(found.notna(), None).to_numpy().tolist() == rows
    )
