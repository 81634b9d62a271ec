"""The user's own raters and the figures that others published on the same rubric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evenhand.analysis.report.blocks import Block, Cell, Paragraph, Row, Table
from evenhand.analysis.report.figures import ALL_BINARY, Figure
from evenhand.analysis.report.source import GROUPS, Source, pair_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.texts import written

_COLUMNS = {
    "Per-sample agreement": "agreement",
    "Cohen κ": "kappa",
    "Overall scores, ρ": "rho",
}
"""Field of a published figure that each column of the table quotes."""


def beside_published(source: Source, rubric: str) -> list[Block]:
    """Per-sample agreement, kappa and rho on the binary verdict, own and published; empty for a
    rubric without published figures.
    """
    if not _quoted(source, rubric, _COLUMNS):
        return []
    draft = TableDraft(source.caption(rubric, written("published.caption")), "Raters", [*_COLUMNS])
    draft.group(written("published.here"))
    draft.add(GROUPS["humans"], _own(source, rubric, "humans", ""))
    graders = source.graders(rubric, ALL_BINARY)
    for grader in graders:
        draft.add(pair_title(("humans", grader)), _own(source, rubric, "humans", grader))
    for first, second in source.pairs(rubric, "observed_agreement", ALL_BINARY):
        if {first, second} <= set(graders):
            draft.add(pair_title((first, second)), _own(source, rubric, first, second))
    return [
        *(with_published(table, source, rubric, _COLUMNS) for table in draft.finish()),
        Paragraph(written("published.about")),
    ]


def _own(source: Source, rubric: str, first: str, second: str) -> list[Figure | None]:
    get = source.figures.get
    prefix = "pair_" if get(rubric, "pair_cohen_kappa", first, second, ALL_BINARY) else ""
    return [
        get(rubric, f"{prefix}observed_agreement", first, second, ALL_BINARY),
        get(rubric, f"{prefix}cohen_kappa", first, second, ALL_BINARY),
        get(rubric, "spearman", first, second, ALL_BINARY) if second else None,
    ]


def with_published(table: Table, source: Source, rubric: str, columns: Mapping[str, str]) -> Table:
    """The table with rows of published figures below; `columns` maps each column to the field it
    quotes.
    """
    rows, sources = [], []
    for raters, reference, printed in _quoted(source, rubric, columns):
        cells = [printed.get(column, "") for column in table.columns]
        rows.append(Row(raters, tuple(Cell(each, published=each and reference) for each in cells)))
        sources.append(reference)
    if not rows:
        return table
    heading = written("published.heading")
    return replace(
        table,
        rows=(*table.rows, Row(heading), *rows),
        footnotes=(*table.footnotes, *((heading, each) for each in dict.fromkeys(sources))),
    )


def _quoted(
    source: Source, rubric: str, columns: Mapping[str, str]
) -> list[tuple[str, str, dict[str, str]]]:
    """List published figures as (raters, source, figure by column), without empty ones."""
    found = []
    for each in source.context.published.get(rubric, ()):
        printed = {column: getattr(each, name) for column, name in columns.items()}
        if any(printed.values()):
            found.append((each.raters, each.source, printed))
    return found
