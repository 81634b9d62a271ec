"""Every figure and table of a report as files of their own, and the methods paragraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import SYNTHETIC, Block, Chart, Quotable, Table
from evenhand.analysis.report.charts.svg import standalone_spec, vega_svg
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.document import sections_of
from evenhand.analysis.report.names import METHODS
from evenhand.analysis.report.table_files import csv_of, tex_of
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.visible import KEPT, visible

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

_SCALE = 2
"""Pixels of a PNG for each of the figure: sharp in print."""


def write_figures(analysis: Analysis, context: ReportContext, out: Path) -> int:
    """Write every figure as SVG and PNG, every table as CSV and LaTeX, and the methods paragraph
    with its references, into a folder, made if need be; returns how many files that are.

    Each file is named after its anchor in report.html. A figure has the light colours, its caption
    and its note. Each is marked if it is synthetic.
    """
    new_folder(out)
    count = 0
    for section in sections_of(analysis, context):
        for name, content in _files(section.every_block(), synthetic=context.synthetic):
            atomic_write(out / name, content)
            count += 1
    return count


def _files(blocks: Iterable[Block], *, synthetic: bool) -> Iterator[tuple[str, bytes]]:
    for block in blocks:
        if isinstance(block, Chart):
            yield from _drawn(block, synthetic=synthetic)
        if isinstance(block, Chart | Table):
            for table in block.data:
                yield f"{table.name}.csv", csv_of(table, synthetic=synthetic).encode(errors=KEPT)
                yield f"{table.name}.tex", tex_of(table, synthetic=synthetic).encode()
        if isinstance(block, Quotable):
            yield f"{METHODS}.md", visible(f"{block.text}\n").encode()
            yield f"{METHODS}.tex", visible(f"{block.tex}\n").encode()
            yield "references.bib", block.bibtex.encode()


def _drawn(chart: Chart, *, synthetic: bool) -> Iterator[tuple[str, bytes]]:
    import vl_convert

    svg = vega_svg(standalone_spec(chart, SYNTHETIC if synthetic else ""))
    yield f"{chart.name}.svg", svg.encode()
    yield f"{chart.name}.png", vl_convert.svg_to_png(svg, scale=_SCALE)
