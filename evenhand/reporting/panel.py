"""What is shown of a result: sentences and plain tables, for a terminal and for a string alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.texts import written
from evenhand.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

    from evenhand.analysis import Analysis
    from evenhand.analysis.report.terminal_panel import TextTable

    Line = str | TextTable
    """A sentence, or a table (title, columns, rows)."""


class Shown:
    """A result that prints as its command does, and shows itself in a notebook: first `notes`, how
    the labels were read, then `lines`.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Notes to read before the rest."""
        return ()

    @property
    def lines(self) -> Sequence[Line]:
        """Sentences and tables, in order."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text([*self.notes, *self.lines])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from evenhand.analysis.report import render_lines

        return render_lines([*self.notes, *self.lines])


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> Table:
    """Return a plain table; all columns but the first are numbers, aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=visible(title) or None, title_justify="left", box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(visible(column), justify="right" if number else "left", no_wrap=number > 0)
    for row in rows:
        # Cells may hold anybody's text: never read as markup.
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def blocks_of(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str, width: int
) -> list[str]:
    """Return the lines of a table as blocks, one for each row: its first cell, then the others
    with the names of their columns, as many in a line as there is room for. Empty cells are left
    out.

    >>> rows = [["ann", "8", "0.75 [0.32, 0.95]"]]
    >>> for line in blocks_of(["Who", "Units", "Agreement"], rows, title="Labels", width=30):
    ...     print(line)
    Labels
    <BLANKLINE>
    ann
      Units 8
      Agreement 0.75 [0.32, 0.95]
    <BLANKLINE>
    """
    lines = [title, ""]
    for heading, *cells in rows:
        lines.append(heading)
        line = ""
        for name, cell in zip(columns[1:], cells, strict=True):
            if not cell:
                continue
            field = f"{name} {cell}"
            if line and len(line) + 4 + len(field) > width:
                lines.append(line)
                line = ""
            line = f"{line}   {field}" if line else f"  {field}"
        lines += [line, ""]
    return lines


def verdict_lines(analysis: Analysis) -> list[str]:
    """Return the notes, the advice on each rubric, the verdicts with their limits, a line for each,
    and the labels to trust.
    """
    from evenhand.analysis import rank_graders
    from evenhand.analysis.report import render_routing_text
    from evenhand.analysis.verdicts.judge import limits_of
    from evenhand.analysis.verdicts.ranking import recommendations

    ranking = rank_graders(analysis.results, analysis.verdicts)
    verdicts = [verdict["sentence"] for verdict in analysis.verdicts]
    return [
        *(written("terminal.note", note=note) for note in analysis.notes),
        *(each.sentence for each in recommendations(ranking)),
        *(verdicts or [written("first.no_verdict")]),
        *limits_of(analysis.verdicts),
        *render_routing_text(analysis),
    ]


def as_text(lines: Iterable[Line]) -> str:
    """Sentences and tables as one text, each as wide as it needs to be."""
    import io

    from rich.console import Console

    out = io.StringIO()
    # In a notebook rich would show the lines there instead of writing them.
    console = Console(
        file=out, width=200, highlight=False, emoji=False, markup=False, force_jupyter=False
    )
    for line in lines:
        if isinstance(line, str):
            console.print(visible(line), soft_wrap=True)
        else:
            title, columns, rows = line
            console.print(text_table(columns, rows, title=title))
    return out.getvalue().rstrip("\n")
