"""The main figures with and without the raters that were excluded, side by side."""

from __future__ import annotations

from evenhand.analysis.labels.counted import ALL_RATERS
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.report.blocks import Block, Paragraph
from evenhand.analysis.report.figures import ALL, ALL_BINARY
from evenhand.analysis.report.source import Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

_READINGS = {ALL: ALL_RATERS, ALL_BINARY: ALL_RATERS + BINARY}
_STATISTICS = ["observed_agreement", "cohen_kappa", "weighted_kappa_quadratic", CEILING]


def exclusion_blocks(source: Source, rubric: str) -> list[Block]:
    """People among themselves and every grader with them; empty where no rater is excluded."""
    draft = TableDraft(
        source.caption(rubric, written("exclusions.caption")),
        "Rater",
        [entry_for(name).label for name in _STATISTICS],
    )
    for main, everyone in _READINGS.items():
        found = source.figures.select(rubric, "observed_agreement", everyone)
        listed = [figure.raters for figure in found if figure.raters[0] == "humans"]
        for title, subset in (("without", main), ("with", everyone)):
            binary = subset.endswith(BINARY)
            draft.group(written(f"exclusions.{title}_binary" if binary else f"exclusions.{title}"))
            for raters in listed:
                name = rater_title(raters[1] or raters[0])
                draft.add(name, source.row(rubric, _STATISTICS, raters, subset))
    tables = draft.finish()
    return [Paragraph(written("exclusions.about")), *tables] if tables else []
