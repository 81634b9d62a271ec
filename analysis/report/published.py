"""The user's own raters beside the figures that others published on the same rubric."""

from __future__ import annotations

from analysis.report.blocks import Block, Cell, Paragraph, Row, Table
from analysis.report.drafting import TableDraft
from analysis.report.figures import ALL_BINARY, Figure
from analysis.report.source import GROUPS, Source

__all__ = ["beside_published"]

_COLUMNS = ("Per-sample agreement", "Cohen κ", "Overall scores, ρ")


def beside_published(source: Source, rubric: str) -> list[Block]:
    """Per-sample agreement, kappa and rho on the binary verdict, own and published; nothing for a
    rubric on which nothing was published."""
    published = source.context.published.get(rubric, ())
    if not published:
        return []
    draft = TableDraft(
        source.caption(rubric, "own raters beside published figures"), "Raters", _COLUMNS
    )
    draft.group("Here")
    draft.add(GROUPS["humans"], _own(source, rubric, "humans", ""))
    graders = source.graders(rubric, ALL_BINARY)
    for grader in graders:
        draft.add(f"People · {grader}", _own(source, rubric, "humans", grader))
    for first, second in source.pairs(rubric, "observed_agreement", ALL_BINARY):
        if {first, second} <= set(graders):
            draft.add(f"{first} · {second}", _own(source, rubric, first, second))
    return [
        *(_with_published(table, source, rubric) for table in draft.finish()),
        Paragraph(
            "Published figures are quoted as printed; they speak of other responses, other people "
            "and other graders, and most came without an interval. How alike the rows are is no "
            "test of anything: read them for the order of magnitude."
        ),
    ]


def _own(source: Source, rubric: str, first: str, second: str) -> list[Figure | None]:
    get = source.figures.get
    prefix = "pair_" if get(rubric, "pair_cohen_kappa", first, second, ALL_BINARY) else ""
    return [
        get(rubric, f"{prefix}observed_agreement", first, second, ALL_BINARY),
        get(rubric, f"{prefix}cohen_kappa", first, second, ALL_BINARY),
        get(rubric, "spearman", first, second, ALL_BINARY) if second else None,
    ]


def _with_published(table: Table, source: Source, rubric: str) -> Table:
    rows = [*table.rows, Row("Published")]
    for each in source.context.published[rubric]:
        printed = [each.agreement, each.kappa, each.rho]
        cells = [
            Cell(text, published=each.source if text else "")
            for text, column in zip(printed, _COLUMNS, strict=True)
            if column in table.columns
        ]
        rows.append(Row(each.raters, (Cell(), *cells)))
    sources = dict.fromkeys(each.source for each in source.context.published[rubric])
    return Table(
        caption=table.caption,
        stub=table.stub,
        columns=table.columns,
        rows=tuple(rows),
        footnotes=(*table.footnotes, *(("Published", text) for text in sources)),
    )
