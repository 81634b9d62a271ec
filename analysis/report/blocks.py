"""Content of a report as data, which templates render as HTML and Markdown.

A `ReportSection` has a `Part` for each rubric. A part has blocks (`Table`, `Chart`, ...), whose
cells refer to rows of results.csv by their `line`. `csv_of` and `tex` write tables for files.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.study.tables.formats import guarded
from evenhand.texts import visible, written

if TYPE_CHECKING:
    from evenhand.analysis.verdicts.judge import Verdict
    from evenhand.analysis.verdicts.wording import Title

SYNTHETIC = " (synthetic)"  # suffix of captions of simulated data


@dataclass(frozen=True)
class Cell:
    """A table cell: `text`, its `interval`, an `aside` after both, footnote `marks`, and the
    `reason` of an undefined number. `key` and `line` identify the results row that the numbers are
    from; a published figure has its source, `published`, instead.
    """

    text: str = ""
    interval: str = ""
    aside: str = ""
    marks: str = ""
    key: tuple[str, ...] = ()
    line: int = 0
    published: str = ""
    reason: str = ""

    @property
    def plain(self) -> str:
        """The cell in one line.

        >>> Cell("0.87", "[0.81, 0.92]", marks="a").plain
        '0.87 [0.81, 0.92] (a)'
        """
        marks = f"({self.marks})" if self.marks else ""
        aside = "(published)" if self.published else self.aside
        return " ".join(part for part in (self.text, self.interval, aside, marks) if part)


@dataclass(frozen=True)
class Row:
    """A row of a table; one without cells is a heading over the rows that follow."""

    heading: str
    cells: tuple[Cell, ...] = ()

    @property
    def lines(self) -> str:
        """The rows of results.csv that the row's numbers are from, such as "2-4, 9".

        >>> Row("", tuple(Cell(line=line) for line in (3, 2, 4, 9, 9, 0))).lines
        '2-4, 9'
        """
        return _in_runs(cell.line for cell in self.cells)


def _in_runs(lines: Iterable[int]) -> str:
    """Return line numbers as text in order, consecutive ones as "2-4"; 0 stands for no line."""
    runs = list[list[int]]()
    for line in sorted(set(lines) - {0}):
        if not (runs and line == runs[-1][-1] + 1):
            runs.append([])
        runs[-1].append(line)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def with_lines(sentence: str, lines: str) -> str:
    """Return a sentence that ends with the rows of results.csv that its numbers are from.

    >>> with_lines("Kappa is 0.8.", "7"), with_lines("Kappa rose.", "2-4, 9")
    ('Kappa is 0.8. (results.csv row 7)', 'Kappa rose. (results.csv rows 2-4, 9)')
    """
    if lines.isdigit():
        return written("naming.traced_row", sentence=sentence, lines=lines)
    return written("naming.traced", sentence=sentence, lines=lines)


class Block:
    """A piece of a section; templates render it by its `kind`."""

    @property
    def kind(self) -> str:
        """The name of the block's class."""
        return type(self).__name__


@dataclass
class Table(Block):
    """Numbers; `stub` is over the row headings. `sections_of` sets `name`, for anchor and file."""

    caption: str
    stub: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[tuple[str, str], ...] = ()
    name: str = ""

    @property
    def data(self) -> tuple[Table, ...]:
        """The table itself: it is its own data, where a chart has separate data tables."""
        return (self,)


@dataclass
class Chart(Block):
    """A picture: its Vega-Lite `spec`, description, `note` on omissions, and `data` as tables."""

    caption: str
    alt: str
    spec: Mapping[str, Any]
    data: tuple[Table, ...] = ()
    note: str = ""
    name: str = ""


@dataclass(frozen=True)
class Paragraph(Block):
    """A sentence or two, or a link to another page in the same folder."""

    text: str
    href: str = ""


@dataclass(frozen=True)
class Items(Block):
    """A list of texts under a title."""

    title: str
    items: tuple[str, ...]


def items(title: str, sentences: Iterable[str]) -> list[Items]:
    """Return sentences as a block with a title, in a list; an empty list if there are none."""
    texts = tuple(sentences)
    return [Items(title, texts)] if texts else []


@dataclass(frozen=True)
class Quotable(Block):
    """Paragraphs to paste into a paper, also as LaTeX, with their references as BibTeX."""

    title: str
    texts: tuple[str, ...]
    tex: str
    bibtex: str


@dataclass(frozen=True)
class Definitions(Block):
    """Terms and their meanings."""

    title: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Card:
    """A `verdict` in full: its `title`, the title of its `rubric`, grader-human and human-human
    kappa, the price of 1,000 units (each None where unknown), and the evidence as (title, cell).
    """

    verdict: Verdict
    title: Title
    rubric: str
    grader_kappa: Cell | None
    human_kappa: Cell | None
    price: Cell | None
    evidence: tuple[tuple[str, Cell], ...]

    @property
    def lines(self) -> list[int]:
        """The rows of results.csv that the kappas and the price are from."""
        return [cell.line for cell in (self.grader_kappa, self.human_kappa, self.price) if cell]

    @property
    def compared(self) -> str:
        """The two kappas in words; empty where the grader's is unknown.

        >>> Card({}, None, "", Cell("0.77"), Cell("0.82"), price=None, evidence=()).compared
        'κ 0.77 vs 0.82'
        """
        if self.grader_kappa is None:
            return ""
        human_kappa = f" vs {self.human_kappa.text}" if self.human_kappa else ""
        return f"κ {self.grader_kappa.text}{human_kappa}"


@dataclass(frozen=True)
class Advice:
    """Advice on one rubric in a `sentence`, with human agreement and its `sample`."""

    rubric: str
    sentence: str
    people: Cell | None
    sample: str


@dataclass(frozen=True)
class FirstPage(Block):
    """First page of the report: `advice` on every rubric, `facts` about the data, an overview of
    the verdicts, which the `legend` explains, and all verdicts in full (`cards`). One of the `rows`
    of the overview has a grader's name, and its card (or None) for each of the `rubrics`.
    """

    advice: tuple[Advice, ...]
    facts: tuple[str, ...]
    legend: str
    rubrics: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Card | None, ...]], ...]
    cards: tuple[Card, ...]


Texts = tuple[tuple[str, str], ...]
"""Pairs of (title, text)."""


@dataclass(frozen=True)
class GivenLabel:
    """A person's or a grader's `label` of a unit, and its `name` for readers. A person may give a
    `reason`, a grader has `replies`. If the study's lead has sorted a grader's disagreement with
    people, `kind` is a code, such as "grader_wrong", with its title, and `note` the lead's remark.
    """

    rater: str
    label: str
    name: str
    reason: str = ""
    replies: Sequence[str] = ()
    kind: str = ""
    kind_title: str = ""
    note: str = ""


@dataclass(frozen=True)
class DisagreedUnit:
    """A unit with the labels of people and of the graders that differ from them. `parts` are its
    values of units columns, `columns` its texts as the page shows them, a pair's responses in two.
    `marked` are texts in which people marked words, by title, as (piece, raters who marked it).
    """

    rubric: str
    title: str
    unit: str
    parts: Texts  # such as (("party", "left"),)
    people: Sequence[GivenLabel]
    graders: Sequence[GivenLabel]
    columns: Sequence[Texts]
    marked: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


@dataclass(frozen=True)
class UnitsToRead(Block):
    """Units to read, each with (title, cell) of the figures that it is an example of."""

    title: str
    units: tuple[tuple[DisagreedUnit, tuple[tuple[str, Cell], ...]], ...]


@dataclass(frozen=True)
class Answer:
    """A sentence with a finding, in pieces of text and cells; `rubric` is a title, "" for all."""

    pieces: tuple[str | Cell, ...]
    rubric: str = ""

    @property
    def plain(self) -> str:
        """The sentence as text.

        >>> Answer(("kappa ", Cell("0.83", "[0.81, 0.85]", line=7), ".")).plain
        'kappa 0.83 [0.81, 0.85].'
        """
        return "".join(piece if isinstance(piece, str) else piece.plain for piece in self.pieces)

    @property
    def lines(self) -> str:
        """The rows of results.csv that the sentence's numbers are from, such as "2-4, 9"."""
        return _in_runs(piece.line for piece in self.pieces if isinstance(piece, Cell))

    @property
    def traced(self) -> str:
        """The sentence as text, with the rows that its numbers are from, if any."""
        return with_lines(self.plain, self.lines) if self.lines else self.plain


@dataclass(frozen=True)
class Part:
    """Part of a section on one `rubric` (its title; empty for all rubrics).

    The `answers` are sentences in pieces, ["kappa ", Figure, "."] for example, with figures of
    `source`; the section makes an `Answer` of each, with a `Cell` for a figure. `open` blocks are
    always visible; `folded` blocks, the evidence, unfold below the `title` or the rubric; the
    `appendix` has what no decision needs. `about` explains how to read the blocks.
    """

    answers: Sequence[Sequence[object]] = ()
    open: Sequence[Block] = ()
    folded: Sequence[Block] = ()
    appendix: Sequence[Block] = ()
    about: Sequence[str] = ()
    title: str = ""
    rubric: str = ""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, in reading order."""
        return (*self.open, *self.folded)


@dataclass(frozen=True)
class ReportSection:
    """A section of the report; `id` is its anchor. The `answers` come first, then `blocks` on all
    rubrics and the `parts` on each rubric. `about` explains how to read the section. The `appendix`
    has what no decision needs, and moves to the end of the report.
    """

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    answers: tuple[Answer, ...] = ()
    parts: tuple[Part, ...] = ()
    about: tuple[str, ...] = ()
    appendix: tuple[Part, ...] = ()

    def every_part(self) -> tuple[Part, ...]:
        """Return all parts, with the blocks on all rubrics first, without the appendix."""
        return (Part(folded=self.blocks), *self.parts)

    def every_block(self) -> Iterator[Block]:
        """Return all blocks, open or folded, in reading order; without the appendix."""
        return (block for part in self.every_part() for block in part.blocks)


# Tables as files, CSV and LaTeX

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
"""LaTeX of characters. [ and * are in braces, as at the beginning of a row they would be read as an
option of the line break before it."""
_NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")  # as in "-0.1", not in "2-4"


def csv_of(table: Table, *, synthetic: bool) -> str:
    """Write a table as CSV with the numbers of the page: a column for each estimate and, where it
    has an interval, for both bounds. The first column has the headings over rows, if the table has
    any; the last one has remarks, and "synthetic" if it applies.
    """
    cells_by_row = [row.cells for row in table.rows if row.cells]
    has_headings = len(cells_by_row) < len(table.rows)
    cells_by_column = zip(*cells_by_row, strict=True)
    has_interval = [any(cell.interval for cell in cells) for cells in cells_by_column]
    header = ["Group", table.stub] if has_headings else [table.stub]
    for name, with_bounds in zip(table.columns, has_interval, strict=True):
        header += [name, f"{name}, low", f"{name}, high"] if with_bounds else [name]
    lines, group = [[*header, "Note"]], ""
    for row in table.rows:
        if not row.cells:
            group = row.heading
            continue
        line = [group, row.heading] if has_headings else [row.heading]
        notes = ["synthetic"] if synthetic else []
        for name, cell, with_bounds in zip(table.columns, row.cells, has_interval, strict=True):
            bounds = cell.interval[1:-1].split(", ") if cell.interval else ["", ""]  # of "[a, b]"
            line += [cell.text, *bounds] if with_bounds else [cell.text]
            aside = "published" if cell.published else cell.aside
            notes += [f"{name}: {aside}"] if aside else []
        lines.append([*line, "; ".join(notes)])
    return csv_text(lines)


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Write lines as CSV, in which no text is a formula of a spreadsheet.

    >>> csv_text([["=1", None], [0.5, "a,b"]]).splitlines()
    ["'=1,", '0.5,"a,b"']
    """
    file = io.StringIO(newline="")
    # With the line ends of RFC 4180 the writer also quotes a lone carriage return within a cell.
    writer = csv.writer(file, lineterminator="\r\n")
    for line in lines:
        writer.writerow([guarded(cell) if isinstance(cell, str) else cell for cell in line])
    return file.getvalue()


def tex(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> print(tex("50% of _x_ & κ -0.1"))
    50\% of \_x\_ \& $\kappa$ $-$0.1
    """
    line = _NEGATIVE.sub("−", re.sub(r"\s+", " ", visible(text)))
    return "".join(_TEX.get(letter, letter) for letter in line)
