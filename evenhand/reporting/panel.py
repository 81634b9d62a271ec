"""Results as sentences and plain tables for terminals and notebooks; the last lines of `report`."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.texts import visible, written

if TYPE_CHECKING:
    from rich.table import Table

    from evenhand.analysis import Analysis
    from evenhand.analysis.report.sections.graders import TextTable

Line: TypeAlias = "str | TextTable"  # a sentence, or a table (title, columns, rows)
WIDTH, MOST_LINES = 100, 8
"""Limits of the last lines of `report`: characters in a line, and lines about verdicts."""
_TABLE_WIDTH = 200  # the largest width of a table in a text, in characters
_BETWEEN_CELLS = "   "


class Printable:
    """A result that prints what its command prints, also in notebooks: `notes`, then `lines`."""

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


def text_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", padding: int = 1
) -> Table:
    """Return a plain table, right-aligned after column 1, with `padding` spaces around cells."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=visible(title) or None, title_justify="left", box=box.SIMPLE_HEAD)
    table.padding = (0, padding)
    for number, column in enumerate(columns):
        table.add_column(visible(column), justify="right" if number else "left", no_wrap=number > 0)
    for row in rows:
        # As Text, a cell from a file is never read as markup.
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def blocks_of(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str, width: int
) -> list[str]:
    """Return the lines of a table as blocks, one for each row: its first cell, then the others with
    the names of their columns, as many in a line as have room. Empty cells are left out.

    >>> rows = [["ann", "8", "0.75 [0.32, 0.95]"]]
    >>> for line in blocks_of(["Who", "Units", "Agreement"], rows, title="Labels", width=39):
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
        for name, cell in zip(columns[1:], cells, strict=False):
            if not cell:
                continue
            field = f"{name} {cell}"
            if line and len(line) + len(_BETWEEN_CELLS) + len(field) >= width:
                lines.append(line)
                line = ""
            line = f"{line}{_BETWEEN_CELLS}{field}" if line else f"  {field}"
        lines += [line, ""]
    return lines


def verdict_lines(analysis: Analysis) -> list[str]:
    """Return notes, advice by rubric, verdicts, what they do not cover, and grades to trust."""
    from evenhand.analysis import rank_graders
    from evenhand.analysis.report import render_routing_text
    from evenhand.analysis.verdicts.judge import limits_of, recommendations

    ranking = rank_graders(analysis.rows, analysis.verdicts)
    return [
        *(written("terminal.note", note=note) for note in analysis.notes),
        *(advice.sentence for advice in recommendations(ranking)),
        *([verdict["sentence"] for verdict in analysis.verdicts] or [written("first.no_verdict")]),
        *limits_of(analysis.verdicts),
        *render_routing_text(analysis),
    ]


def last_lines(analysis: Analysis) -> list[str]:
    """Return a report's conclusions in a few short lines, at most `MOST_LINES` if the limits leave
    room: the advice on each rubric, the limits of all verdicts (what they do not cover), and the
    number of notes in the report.
    """
    from evenhand.analysis import rank_graders
    from evenhand.analysis.verdicts.judge import limits_of, recommendations

    ranking = rank_graders(analysis.rows, analysis.verdicts)
    advice = {entry.rubric: _wrapped(entry.head) for entry in recommendations(ranking)}
    limits = [line for limit in limits_of(analysis.verdicts) for line in _wrapped(limit)]
    limits = limits or ([] if advice else [written("first.no_verdict")])
    n_free_lines = MOST_LINES - len(limits) - 1  # the last line counts the notes
    lines: list[str] = []
    for n_done, rubric_lines in enumerate(advice.values()):
        n_left = len(advice) - n_done
        # Before the last rubric a line is kept free for the number of rubrics left out.
        n_kept_free = 1 if n_left > 1 else 0
        if len(lines) + len(rubric_lines) + n_kept_free > n_free_lines:
            lines.append(written("ending.rubrics", count=n_left))
            break
        lines += rubric_lines
    n_notes = len(analysis.notes)
    key = "rest_notes" if n_notes > 1 else "rest_note" if n_notes else "rest"
    return [*lines, *limits, written(f"ending.{key}", count=n_notes)]


def _wrapped(text: str) -> list[str]:
    """Return a sentence as lines that end between words."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def as_text(lines: Iterable[Line]) -> str:
    """Return sentences and tables as one text, in which sentences are not wrapped."""
    from rich.console import Console

    out = io.StringIO()
    as_they_are: dict[str, Any] = {"highlight": False, "emoji": False, "markup": False}
    # In a notebook rich would show the lines there instead of writing them.
    console = Console(file=out, width=_TABLE_WIDTH, force_jupyter=False, **as_they_are)
    for line in lines:
        if isinstance(line, str):
            console.print(visible(line), soft_wrap=True)
        else:
            title, columns, rows = line
            console.print(text_table(columns, rows, title=title))
    return out.getvalue().rstrip("\n")
