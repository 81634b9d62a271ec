r"""Tables of the report: made from figures, and written as files, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from evenhand.analysis.report.blocks import SYNTHETIC, Cell, Row, Table, Whisker
from evenhand.analysis.report.figures import Figure
from evenhand.study.tables.formats import guarded
from evenhand.texts import DASH, written
from evenhand.visible import visible

FigureRow = tuple[str, Sequence[Figure | None] | None]
"""Heading of a row, and a figure for each column; without figures it is over the rows that follow.
"""

_SHORT = 28
"""Letters of a reason in a cell at most: longer ones go below the table, to keep columns narrow."""


def make_table(
    caption: str,
    stub: str,
    columns: Sequence[str],
    rows: Iterable[FigureRow],
    *,
    count: str = "Units",
    drawn: bool = False,
    asides: bool = False,
) -> list[Table]:
    """Make a table of figures that shares footnotes; nothing if it has no rows.

    Left out are empty columns, rows without any figure and headings that no row follows. `count`
    heads a first column with the units of each row, and a cell on other units has how many it has;
    empty: no such column. With `drawn` the intervals of the first column are drawn, too. With
    `asides` remarks are in the cell instead of below the table.
    """
    known = [row for row in rows if row[1] is None or any(row[1])]
    filled = [figures for _, figures in known if figures is not None]
    used = [at for at in range(len(columns)) if any(row[at] for row in filled)]
    if not used:
        return []
    notes: dict[str, str] = {}
    place = _scale(row[0] for row in filled) if drawn else {}
    made = []
    for (heading, figures), (_, after) in pairwise([*known, ("", None)]):
        if figures is None:
            made += [Row(heading)] if after is not None else []
            continue
        chosen = [figures[at] for at in used]
        first = next(figure for figure in chosen if figure)
        own = first.n_clusters != first.n_units
        aside = written("naming.in_clusters", clusters=first.n_clusters) if own else ""
        number = Cell(str(first.n_units), aside=aside, key=first.key, line=first.line)
        cells = [number] if count else []
        for figure in chosen:
            also = f"{figure.n_units} {count.lower()}" if figure and count else ""
            also = also if figure and figure.n_units != first.n_units else ""
            cells.append(_cell(figure, also, notes, place, asides) if figure else Cell())
        made.append(Row(heading, tuple(cells)))
    heads = (*([count] if count else []), *(columns[at] for at in used))
    footnotes = tuple((mark, text) for text, mark in notes.items())
    return [Table(caption, stub, heads, tuple(made), footnotes)]


def _cell(
    figure: Figure,
    also: str,
    notes: dict[str, str],
    place: dict[tuple[str, ...], Whisker],
    asides: bool,
) -> Cell:
    """The figure as a cell; short remarks, and what it has `also`, stay next to the figure, other
    remarks become `notes`.
    """
    reason = figure.reason.words if figure.reason else ""
    near, below = [reason] if reason else [], [remark.words for remark in figure.remarks]
    if asides:
        near, below = [*near, *below], []
    elif len(reason) > _SHORT:
        near, below = [], [*near, *below]
    marks = [notes.setdefault(text, letters(len(notes))) for text in below]
    aside, marked = "; ".join([*near, *filter(None, [also])]), " ".join(marks)
    whisker = place.get(figure.key)
    return replace(figure.cell, aside=aside, reason=reason, marks=marked, whisker=whisker)


def _scale(column: Iterator[Figure | None]) -> dict[tuple[str, ...], Whisker]:
    """Return the place of each interval of a column, on an axis that holds them all and zero."""
    drawable = [each for each in column if each and each.interval and each.estimate != DASH]
    values = np.array([each.bounds for each in drawable]).reshape(-1, 3)
    start, end = min(values.min(initial=0.0), 0.0), max(values.max(initial=0.0), 0.0)
    if start == end:
        return {}
    places = np.round(4.0 + 92.0 * (values - start) / (end - start), 2)
    zero = round(4.0 + 92.0 * (0.0 - start) / (end - start), 2)
    return {
        figure.key: Whisker(low, estimate, high, zero)
        for figure, (low, estimate, high) in zip(drawable, places.tolist(), strict=True)
    }


def letters(number: int) -> str:
    """Return the mark of a footnote: a, b, ... z, aa, ab, ...

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'aa')
    """
    first, last = divmod(number, 26)
    return (letters(first - 1) if first else "") + chr(ord("a") + last)


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "[": "{[}", "*": "{*}",
    "κ": r"$\kappa$", "α": r"$\alpha$", "π": r"$\pi$", "ρ": r"$\rho$", "τ": r"$\tau$",
    "±": r"$\pm$", "→": r"$\to$", "≥": r"$\geq$", "≤": r"$\leq$", "−": "$-$", "–": "--",
    "—": "---", "…": r"\ldots{}", "·": r"$\cdot$", "’": "'", "“": "``", "”": "''",
    "‹": r"$\langle$", "›": r"$\rangle$",
}  # fmt: skip
"""A row that began with a bare [ or * would be read as an option of the line break before it."""
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")


def csv_of(table: Table, *, synthetic: bool) -> str:
    """The numbers as the page shows them: a column for each estimate and, where it has an interval,
    for either bound; `note` holds remarks on a number. A simulated table is marked so there.
    """
    grouped = any(not row.cells for row in table.rows)
    with_bounds = [
        any(row.cells and row.cells[at].interval for row in table.rows)
        for at in range(len(table.columns))
    ]
    header = ["Group"] * grouped + [table.stub]
    for name, bounds in zip(table.columns, with_bounds, strict=True):
        header += [name, f"{name}, low", f"{name}, high"] if bounds else [name]
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(map(guarded, [*header, "Note"]))
    group = ""
    for row in table.rows:
        if not row.cells:
            group = row.heading
            continue
        cells = [group] * grouped + [row.heading]
        notes = ["synthetic"] if synthetic else []
        for name, cell, bounds in zip(table.columns, row.cells, with_bounds, strict=True):
            interval = cell.interval[1:-1].split(", ") if cell.interval else ["", ""]
            cells += [cell.text, *interval] if bounds else [cell.text]
            notes += [f"{name}: {aside}"] if (aside := _aside(cell)) else []
        writer.writerow(map(guarded, [*cells, "; ".join(notes)]))
    return file.getvalue()


def _aside(cell: Cell) -> str:
    return "published" if cell.published else cell.aside


def tex_of(table: Table, *, synthetic: bool) -> str:
    r"""A LaTeX table, for \usepackage{booktabs}: caption, rules, footnotes below."""
    caption = table.caption + SYNTHETIC if synthetic else table.caption
    columns = "l" + "r" * len(table.columns)
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _tex_row([table.stub, *table.columns]),
        r"\midrule",
        *_tex_rows(table),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if table.footnotes:
        notes = " ".join(
            rf"\textsuperscript{{{tex(mark)}}} {tex(text)}." for mark, text in table.footnotes
        )
        lines.append(rf"\par\smallskip{{\footnotesize {notes}}}")
    return "\n".join([*lines, r"\end{table}", ""])


def _tex_rows(table: Table) -> Iterator[str]:
    for place, row in enumerate(table.rows):
        if row.cells:
            yield _tex_row([row.heading, *map(_tex_cell, row.cells)], escaped=1)
            continue
        if place:
            yield r"\addlinespace"
        span = len(table.columns) + 1
        yield rf"\multicolumn{{{span}}}{{l}}{{\textit{{{tex(row.heading)}}}}} \\"


def _tex_row(cells: list[str], *, escaped: int | None = None) -> str:
    """Cells of a row; those from `escaped` on are LaTeX already."""
    last = len(cells) if escaped is None else escaped
    return " & ".join([*map(tex, cells[:last]), *cells[last:]]) + r" \\"


def _tex_cell(cell: Cell) -> str:
    parts = [cell.text, cell.interval, _aside(cell)]
    marks = rf"\textsuperscript{{{tex(cell.marks)}}}" if cell.marks else ""
    return " ".join(tex(part) for part in parts if part) + marks


def tex(text: str) -> str:
    r"""A text as LaTeX shows it, whatever is in it.

    >>> print(tex("50% of _x_ & κ -0.1"))
    50\% of \_x\_ \& $\kappa$ $-$0.1
    """
    line = _NEGATIVE.sub("−", re.sub(r"\s+", " ", visible(text)))
    return "".join(_TEX.get(letter, letter) for letter in line)
