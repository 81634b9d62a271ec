r"""A table of the report as a file of its own: CSV for programs, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from evenhand.analysis.report.blocks import SYNTHETIC, Cell, Table
from evenhand.study.tables.formats import guarded
from evenhand.visible import visible

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
            cells += [cell.text, *_bounds(cell)] if bounds else [cell.text]
            notes += [f"{name}: {aside}"] if (aside := _aside(cell)) else []
        writer.writerow(map(guarded, [*cells, "; ".join(notes)]))
    return file.getvalue()


def _bounds(cell: Cell) -> list[str]:
    return cell.interval[1:-1].split(", ") if cell.interval else ["", ""]


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
