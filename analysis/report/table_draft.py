"""Tables as they grow, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from evenhand.analysis.report.blocks import Cell, Row, Table, Whisker
from evenhand.analysis.report.figures import Figure
from evenhand.texts import DASH, written

_SHORT = 28
"""Letters of a reason in a cell at most: longer ones go below the table, to keep columns narrow."""


@dataclass
class TableDraft:
    """A table as it grows: it shares footnotes and leaves out empty columns."""

    caption: str
    stub: str
    columns: Sequence[str]
    count: str = "Units"
    """Heads a first column that says how many units a row is on, and a cell on other units how many
    it has; empty: no such column.
    """
    drawn: str = ""
    """The column whose intervals are drawn, too."""
    asides: bool = False
    """True where remarks are in the cell instead of below the table."""
    _rows: list[tuple[str, Sequence[Figure | None] | None]] = field(default_factory=list)

    def group(self, title: str) -> None:
        """A heading over the rows that follow."""
        self._rows.append((title, None))

    def add(self, heading: str, figures: Sequence[Figure | None]) -> None:
        """A row, one figure for each column; one with no figure at all is left out."""
        if any(figures):
            self._rows.append((heading, figures))

    def finish(self) -> list[Table]:
        """The table, or nothing if it has no rows."""
        filled = [figures for _, figures in self._rows if figures is not None]
        used = [at for at in range(len(self.columns)) if any(row[at] for row in filled)]
        if not used:
            return []
        notes: dict[str, str] = {}
        place = _scale(row[self.columns.index(self.drawn)] for row in filled) if self.drawn else {}
        rows = []
        for heading, figures in self._rows_and_groups():
            chosen = [figures[at] for at in used] if figures else []
            first = next((figure for figure in chosen if figure), None)
            cells = [
                self._cell(figure, first, notes, place) if figure else Cell() for figure in chosen
            ]
            if self.count and first:
                cells.insert(0, _count(first))
            rows.append(Row(heading, tuple(cells)))
        names = [self.columns[at] for at in used]
        return [
            Table(
                caption=self.caption,
                stub=self.stub,
                columns=(self.count, *names) if self.count else tuple(names),
                rows=tuple(rows),
                footnotes=tuple((mark, text) for text, mark in notes.items()),
            )
        ]

    def _rows_and_groups(self) -> Iterator[tuple[str, Sequence[Figure | None] | None]]:
        """All rows but the headings that no row follows."""
        for row, after in pairwise([*self._rows, ("", None)]):
            if row[1] is not None or after[1] is not None:
                yield row

    def _cell(
        self,
        figure: Figure,
        first: Figure | None,
        notes: dict[str, str],
        place: dict[tuple[str, ...], Whisker],
    ) -> Cell:
        """The figure as a cell; short remarks stay next to the figure, others become `notes`.
        Counts are given only where they differ from those of the `first` in its row.
        """
        beside = [figure.reason.words] if figure.reason else []
        below = [remark.words for remark in figure.remarks]
        if self.asides:
            beside, below = [*beside, *below], []
        elif beside and len(beside[0]) > _SHORT:
            beside, below = [], [*beside, *below]
        if self.count and first and figure.n_units != first.n_units:
            beside = [*beside, f"{figure.n_units} {self.count.lower()}"]
        marks = [notes.setdefault(text, letters(len(notes))) for text in below]
        return Cell(
            text=figure.estimate,
            interval=figure.interval,
            aside="; ".join(beside),
            reason=figure.reason.words if figure.reason else "",
            marks=" ".join(marks),
            key=figure.key,
            line=figure.line,
            whisker=place.get(figure.key),
        )


def _count(figure: Figure) -> Cell:
    own = figure.n_clusters != figure.n_units
    clusters = written("naming.in_clusters", clusters=figure.n_clusters) if own else ""
    return Cell(str(figure.n_units), aside=clusters, key=figure.key, line=figure.line)


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
    """a, b, ... z, aa, ab, ...

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'aa')
    """
    first, last = divmod(number, 26)
    return (letters(first - 1) if first else "") + chr(ord("a") + last)
