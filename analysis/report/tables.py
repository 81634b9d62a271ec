r"""Tables of the report: made from figures, and written as files, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from evenhand.analysis.report.blocks import Cell, Row, Table, Whisker
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.study.tables.formats import guarded
from evenhand.texts import DASH, table_of, written
from evenhand.visible import visible

FigureRow = tuple[str, Sequence[Figure | None] | None]
"""Heading of a row, and a figure for each column; without figures it is over the rows that follow.
"""

_SHORT = 28
"""Letters of a reason in a cell at most: longer ones go below the table, to keep columns narrow."""


@dataclass(frozen=True)
class TableSpec:
    """What is declared of a table: `tables.toml` says what each of these means."""

    stub: str = ""
    columns: Sequence[str | Mapping[str, str]] = ()
    rows: Sequence[str] = ()
    title: str = ""
    on: str = ALL
    views: bool = False
    count: str = "Items"
    drawn: bool = False
    asides: bool = False


def spec_of(name: str) -> TableSpec:
    """Return what `tables.toml` declares under the key of a caption."""
    return TableSpec(**table_of("evenhand.analysis.report", "tables.toml")[name])


def worded(text: str) -> str:
    """Return a word of `tables.toml`: itself, or the sentence whose key it is.

    >>> worded("Grader"), worded("injection.attack")
    ('Grader', 'Grader and attack')
    """
    return written(text) if "." in text else text


def make_table(
    caption: str, stub: str, columns: Sequence[str], rows: Iterable[FigureRow], spec: TableSpec
) -> list[Table]:
    """Make a table of figures that shares footnotes; nothing if it has no rows.

    Left out are empty columns, rows without any figure and headings that no row follows. A cell on
    other units than its row's first has how many it has.
    """
    known = [row for row in rows if row[1] is None or any(row[1])]
    filled = [figures for _, figures in known if figures is not None]
    used = [at for at in range(len(columns)) if any(row[at] for row in filled)]
    if not used:
        return []
    notes: dict[str, str] = {}
    place = _scale(row[0] for row in filled) if spec.drawn else {}
    count = worded(spec.count)
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
            cells.append(_cell(figure, also, notes, place, spec.asides) if figure else Cell())
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
    lines = [[*header, "Note"]]
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
            aside = "published" if cell.published else cell.aside
            notes += [f"{name}: {aside}"] if aside else []
        lines.append([*cells, "; ".join(notes)])
    return csv_text(lines)


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Lines as CSV, in which no text is a formula.

    >>> csv_text([["=1", None], [0.5, "a,b"]]).splitlines()
    ["'=1,", '0.5,"a,b"']
    """
    file = io.StringIO(newline="")
    # RFC 4180 line ends: with them the writer quotes a lone carriage return within a cell, too.
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerows([guarded(v) if isinstance(v, str) else v for v in line] for line in lines)
    return file.getvalue()


def tex(text: str) -> str:
    r"""A text as LaTeX shows it, whatever is in it.

    >>> print(tex("50% of _x_ & κ -0.1"))
    50\% of \_x\_ \& $\kappa$ $-$0.1
    """
    line = _NEGATIVE.sub("−", re.sub(r"\s+", " ", visible(text)))
    return "".join(_TEX.get(letter, letter) for letter in line)
