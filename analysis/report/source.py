"""Figures and facts for the report's sections, and the tables and charts made of them.

A `Figure` is a results row rounded for display, with the number of its row in results.csv. A
`Source` holds the figures of an analysis, its verdicts, and facts about the study
(`ReportContext`). A section works on the `RubricFigures` of one rubric at a time, which selects
figures (`get`, `select`, ...) and makes blocks of them (`table`, `chart`). The steps from the
declaration of a table to its cells stand at the head of the part "Tables" below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.report.blocks import SYNTHETIC, Cell, Chart, Row, Table
from evenhand.analysis.report.charts import Datum, chart_spec, fill_template
from evenhand.analysis.results import BASELINES, ResultRow, TableRow, key_of, names_in
from evenhand.analysis.statistics import Remark, Remarks, entry_for, says
from evenhand.analysis.verdicts.judge import Candidate, rank_graders
from evenhand.texts import DASH, table_of, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis
    from evenhand.study.settings.analysis import PublishedFigures
    from evenhand.study.tables.ratings import Mark

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

ALL, ALL_BINARY = "all", "all" + BINARY
"""Subsets of all units: on the categories, and on the binary label."""

# Figures

_FIRST_LINE = 2  # of the rows of results.csv, below the header


class Key(NamedTuple):
    """Key that identifies a results row (`RESULTS_KEY`). `rater_b` is "" for a figure of one rater
    or group; `subset` is a part of the units ("column=value", with "|binary" for the binary label),
    `at` what else distinguishes the row, such as a category or a threshold.
    """

    rubric: str
    statistic: str
    rater_a: str
    rater_b: str = ""
    subset: str = ALL
    at: str = ""


class Exact(NamedTuple):
    """The numbers of a figure as in results.csv, not rounded; NaN where undefined."""

    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Figure:
    """A results row, rounded for display. The first six fields are its key (`Key`)."""

    rubric: str
    statistic: str
    rater: str  # `rater_a` of the key, or a group, such as "humans"
    grader: str  # `rater_b`: an annotator in a row on two annotators, "" in a row on one rater
    subset: str
    at: str
    line: int  # number of the row in results.csv, whose header is row 1
    n_units: int
    n_clusters: int
    exact: Exact
    estimate: str  # the number as text
    interval: str  # as text, such as "[0.81, 0.92]"; "" where there is none
    reason: Remark | None  # remark on an undefined estimate, else None
    remarks: Remarks  # the other remarks

    @cached_property
    def key(self) -> Key:
        """The key of the results row."""
        return Key(self.rubric, self.statistic, *self.raters, self.subset, self.at)

    @property
    def raters(self) -> tuple[str, str]:
        """Both raters; the second is "" for a figure of one rater or group."""
        return self.rater, self.grader

    @property
    def pair(self) -> str:
        """The display name of both raters."""
        return pair_title(self.raters)

    @property
    def is_binary(self) -> bool:
        """True for a figure of the binary label."""
        return self.subset.endswith(BINARY)

    @property
    def part(self) -> str:
        """The part of the sample, as "column=value"; "all" for the whole sample."""
        return self.subset.removesuffix(BINARY)

    @property
    def column(self) -> str:
        """The column of `part`."""
        return self.part.partition("=")[0]

    @property
    def value(self) -> str:
        """The value of `part`; "" for the whole sample."""
        return self.part.partition("=")[2]

    @property
    def sides(self) -> tuple[str, str]:
        """The two sides that are compared: ("a", "b") at "a>b"."""
        return names_in(self.at)

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes zero."""
        return not self.exact.low <= 0 <= self.exact.high

    @property
    def text(self) -> str:
        """The estimate with the interval, if there is one."""
        return f"{self.estimate} {self.interval}".strip()

    def has_remark(self, code: str) -> bool:
        """Return True if one of the remarks has this code."""
        return says(self.remarks, code)

    def without(self, code: str) -> Figure:
        """Return the figure without the remarks of this code."""
        remarks = tuple(remark for remark in self.remarks if remark.code != code)
        return replace(self, remarks=remarks)

    @property
    def cell(self) -> Cell:
        """Cell for a sentence: the estimate with its interval, or why it is undefined."""
        reason = self.reason.words if self.reason else ""
        return Cell(self.estimate, self.interval, reason, key=self.key, line=self.line)

    def datum(self, **fields: object) -> Datum:
        """Return a chart's datum: `fields`, the exact numbers or None, and the row's line."""
        low, estimate, high = (None if math.isnan(number) else number for number in self.exact)
        numbers = {"estimate": estimate, "low": low, "high": high, "shown": self.estimate}
        return {**numbers, "row": self.line, **fields}


def format_number(value: float, statistic: str = "", limits: Iterable[float] = ()) -> str:
    """Round a number for display: shares to three places, coefficients to two, a bound near one of
    the `limits` of a decision to enough places to differ from it.

    >>> format_number(0.8482), format_number(-0.004), format_number(float("nan"))
    ('0.85', '0.00', '—')
    >>> format_number(0.021, "human_ceiling_difference"), format_number(0.0042, "prevalence")
    ('+0.02', '0.004')
    """
    return DASH if math.isnan(value) else entry_for(statistic).shown(value, limits)


def _figure_of(row: ResultRow, line: int) -> Figure:
    """Round a row for display; its first remark is the reason if the estimate is undefined."""
    key, exact = Key(*key_of(row)), Exact(row["low"], row["estimate"], row["high"])
    remarks, reason = row["remarks"], None
    if math.isnan(exact.estimate):
        reason = remarks[0] if remarks else Remark("undefined")
        remarks = remarks[1:]
    # A bound that a verdict compares with limits needs enough decimals to differ from them.
    limits = row["deciding"].limits if row["deciding"] else ()
    has_interval = not (math.isnan(exact.low) or math.isnan(exact.high))
    ends = (format_number(end, key.statistic, limits) for end in (exact.low, exact.high))
    return Figure(
        *key, line, row["n_units"], row["n_clusters"], exact,
        estimate=format_number(exact.estimate, key.statistic),
        interval=f"[{', '.join(ends)}]" if has_interval else "",
        reason=reason, remarks=remarks,
    )  # fmt: skip


def lines_of(figures: Iterable[Figure | None]) -> str:
    """Return the row numbers of figures in results.csv as text, such as "2, 7"."""
    return ", ".join(str(figure.line) for figure in figures if figure)


def largest_first(figures: Iterable[Figure | None]) -> list[Figure]:
    """Return the figures that have an estimate, the largest first."""
    estimated = [figure for figure in figures if figure and not figure.reason]
    return sorted(estimated, key=lambda figure: -figure.exact.estimate)


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, in the order of the items.

    >>> group_by(["ab", "c", "de"], len)
    {2: ['ab', 'de'], 1: ['c']}
    """
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


# The study, names of raters, and joined sentences


@dataclass(frozen=True)
class Replication:
    """Published figures that a study declares, the graders whose figures are compared with them,
    and sentences on how the study differs from the published one.
    """

    published: PublishedFigures
    graders: Sequence[str] = ()
    differences: Sequence[str] = ()


@dataclass(frozen=True)
class ReportContext:
    """Description of the study behind the ratings."""

    name: str
    synthetic: bool = False  # all files of the report are then marked as synthetic
    # Provenance in reading order: sample, seeds, rubric hashes, dates, versions, margin.
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    notes: Sequence[str] = ()  # warnings, such as on labels that were set aside
    rubric_titles: Mapping[str, str] = field(default_factory=dict)  # by rubric
    # Names of the options, by rubric and category.
    label_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # By (rubric, unit id): the texts that raters read by name, annotators' reasons by rater, and
    # pairs of a rater and the words that the rater marked.
    texts: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    remarks: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    marks: Mapping[tuple[str, str], Sequence[tuple[str, Mark]]] = field(default_factory=dict)
    # By (rubric, unit id, grader): the grader's replies, and the (kind, note) as which the lead
    # sorted its disagreement with annotators.
    replies: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)
    sortings: Mapping[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    # Number of replies of each model, by grader.
    answered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    replication: Replication | None = None

    @property
    def all_notes(self) -> list[str]:
        """The notes, and a note that the labels are synthetic if they are."""
        return [*self.notes, *([written("terminal.synthetic")] if self.synthetic else [])]

    def title_of(self, rubric: str) -> str:
        """Return the name of a rubric for headings.

        >>> ReportContext("study", rubric_titles={"tone": "Tone of voice"}).title_of("tone")
        'Tone of voice'
        """
        return self.rubric_titles.get(rubric) or rubric or "Labels"


SUBSET_NAMES = {ALL: written("naming.categories"), ALL_BINARY: written("naming.binary")}
"""Name of a subset in a caption."""
GROUPS = {  # titles of rows ("Annotators with one another"); `_NAMES` ("Annotators") are general
    "humans": written("naming.annotators_together"),
    "models": written("naming.graders_together"), "all": written("naming.everyone"),
}  # fmt: skip
_NAMES = {
    "humans": written("naming.annotators"), "models": written("naming.graders"),
    "all": written("naming.everyone"), BASELINES[0]: written("naming.constant"),
    BASELINES[1]: written("naming.random"),
}  # fmt: skip


def rater_title(rater: str) -> str:
    """Return the display name of a rater, a group or a baseline.

    >>> rater_title("humans"), rater_title("baseline:constant"), rater_title("r07")
    ('Annotators', 'Baseline: constant', 'r07')
    """
    return _NAMES.get(rater, rater)


def pair_title(raters: tuple[str, str]) -> str:
    """Return the display name of a pair of raters.

    >>> pair_title(("humans", "g"))
    'Annotators · g'
    """
    return " · ".join(map(rater_title, raters))


def reference_title(rater: str) -> str:
    """Return the name of the raters that a grader is compared with, for use within a sentence.

    >>> reference_title("humans"), reference_title("r07")
    ('annotators', 'r07')
    """
    return written("naming.reference") if rater == "humans" else rater


def subject_title(subset: str) -> str:
    """Return the name of the subject of a subset, or the name of all subjects."""
    return written("stability.all_subjects") if subset == ALL else subset.removeprefix("subject=")


MAX_NAMED = 3  # the most items that an answer lists; the others are in tables


def join_sentences(*sentences: Sequence[object]) -> list[object]:
    """Join sentences, each a list of pieces (`texts.in_pieces`), to one list of pieces.

    >>> join_sentences(["a."], [], ["b ", 1, "."])
    ['a.', ' ', 'b ', 1, '.']
    """
    return _join([sentence for sentence in sentences if sentence], " ")


def join_listed(items: Sequence[Sequence[object]], separator: str = ", ") -> list[object]:
    """Join the first few items, each a list of pieces, and state that there are others."""
    others = [f" {written('report.and_others')}"] if len(items) > MAX_NAMED else []
    return [*_join(items[:MAX_NAMED], separator), *others]


def _join(items: Sequence[Sequence[object]], separator: str) -> list[object]:
    """Join lists of pieces with a separator between them."""
    return [piece for item in items for piece in (separator, *item)][1:]  # no separator first


# Tables
#
# `RubricFigures.table` makes a `Table` of the rows and columns that tables.toml declares
# (`TableSpec`) and those that a section adds. The forms of a row, for a column "cohen_kappa":
#
#   RowSpec    "gpt", Key("tone", "", "humans", "gpt"): its title, and the key of its cells
#   Column     "cohen_kappa": what a column replaces in this key, which gives the key of a figure
#   FigureRow  ("gpt", [Figure]): its title, and the figure found for each column
#   Row        ("gpt", (Cell, Cell)): the number of units, and each figure as a cell (`make_table`)

Column = str | Mapping[str, str] | Callable[[Key], Figure | None]
"""How a column's figure follows from the key of a row: by replacing its statistic, by replacing
these parts of it, or by calling a function with it."""
HeadedColumn = str | tuple[str, Column]  # a statistic under its own label, or (heading, column)


class RowSpec(NamedTuple):
    """Title of a row, and the key that its cells share, whose statistic may be "". Two raters (or a
    group and "") stand for their key on the table's subset; None makes a heading of the rows below.
    """

    title: str
    key: Key | tuple[str, str] | None = None


FigureRow = tuple[str, Sequence[Figure | None] | None]
"""Title of a row, and a figure for each column; without figures, a heading of the rows below."""


def rows_of(
    figures: Iterable[Figure],
    title: Callable[[Figure], str],
    heading: Callable[[Figure], str] | None = None,
    *,
    by: Literal["raters", "statistic", "subset"] = "raters",
) -> list[RowSpec]:
    """Return a row for each figure, with a `heading` over those with the same key part `by`."""
    if heading is None:
        return [RowSpec(title(figure), figure.key) for figure in figures]
    rows: list[RowSpec] = []
    for group in group_by(figures, attrgetter(by)).values():
        rows += [RowSpec(heading(group[0])), *rows_of(group, title)]
    return rows


def distinct_rows(
    figures: Iterable[Figure],
    by: Literal["rater", "subset", "at"],
    title: Callable[[str], str] = str,
) -> list[RowSpec]:
    """Return one row for all figures that share the part `by` of their key, titled by that part."""
    groups = group_by(figures, attrgetter(by))
    return [RowSpec(title(name), group[0].key) for name, group in groups.items()]


_MAX_REASON = 28  # letters of a reason in a cell: longer ones, below the table, keep it narrow


@dataclass(frozen=True)
class TableSpec:
    """Declaration of a table in `tables.toml`, whose head explains the values. The rows of
    `rows = ["people", "graders"]` are of raters, see `RubricFigures.rater_rows`; those of
    `rows = ["clear_agreement"]` with `title = "grader"` are the figures of this statistic.
    """

    stub: str = ""  # heading of the rows' titles
    columns: Sequence[str | Mapping[str, str]] = ()  # `Column`s, a mapping with its heading `head`
    rows: Sequence[str] = ()  # kinds of raters; with `title`, statistics
    title: str = ""  # the attribute of `Figure` that titles the row of each figure
    on: str = ALL  # the subset
    views: bool = False  # one table on the categories, one on the binary label
    count: str = "Items"  # heading of the column with the numbers of units, "" for none
    asides: bool = False  # True for remarks in the cells, not below the table


def label_text(text: str) -> str:
    """Return a text of `tables.toml`: itself, or if it has a dot, the sentence with that key.

    >>> label_text("Grader"), label_text("injection.attack")
    ('Grader', 'Grader and attack')
    """
    return written(text) if "." in text else text


def make_table(
    caption: str, stub: str, headings: Sequence[str], rows: Iterable[FigureRow], spec: TableSpec
) -> list[Table]:
    """Make a table of figures with shared footnotes; nothing if it has no rows. Empty columns, rows
    without any figure, and headings without rows are left out. The first column has the number of
    units of a row's first figure; a figure on another number of units states its own.
    """
    rows = [(title, figures) for title, figures in rows if figures is None or any(figures)]
    figures_by_row = [figures for _, figures in rows if figures is not None]
    used_columns = [n for n in range(len(headings)) if any(row[n] for row in figures_by_row)]
    if not used_columns:
        return []
    notes: dict[str, str] = {}  # marks of footnotes, by text
    noun, table_rows = label_text(spec.count), []
    # Each row with the next one, by which a heading without rows is known.
    for (title, figures), (_, next_figures) in pairwise([*rows, ("", None)]):
        if figures is not None:
            row_figures = [figures[n] for n in used_columns]
            table_rows.append(Row(title, _row_cells(row_figures, noun, notes, spec)))
        elif next_figures is not None:  # a heading with rows below it
            table_rows.append(Row(title))
    used_headings = (*([noun] if noun else []), *(headings[n] for n in used_columns))
    footnotes = tuple((mark, text) for text, mark in notes.items())
    return [Table(caption, stub, used_headings, tuple(table_rows), footnotes)]


def _row_cells(
    figures: Sequence[Figure | None], noun: str, notes: dict[str, str], spec: TableSpec
) -> tuple[Cell, ...]:
    """Make the cells of a row: the number of units, unless `noun` is "", and a cell for each
    figure. `notes` are as in `_table_cell`.
    """
    first = next(figure for figure in figures if figure)
    is_clustered = first.n_clusters != first.n_units
    aside = written("naming.in_clusters", clusters=first.n_clusters) if is_clustered else ""
    cells = [Cell(str(first.n_units), aside=aside, key=first.key, line=first.line)] if noun else []
    for figure in figures:
        if figure is None:
            cells.append(Cell())
        else:
            has_other_units = bool(noun) and figure.n_units != first.n_units
            units = f"{figure.n_units} {noun.lower()}" if has_other_units else ""
            cells.append(_table_cell(figure, units, notes, asides=spec.asides))
    return tuple(cells)


def _table_cell(figure: Figure, units: str, notes: dict[str, str], *, asides: bool) -> Cell:
    """Make a cell of a figure. A short reason and `units` ("40 items") go into the cell; a long
    reason and remarks go below the table (`notes`: marks by text), or with `asides` into the cell.
    """
    reason = figure.reason.words if figure.reason else ""
    inside = [reason] if reason else []
    below = [remark.words for remark in figure.remarks]
    if asides:
        inside, below = [*inside, *below], []
    elif len(reason) > _MAX_REASON:
        inside, below = [], [*inside, *below]
    marks = [notes.setdefault(text, footnote_mark(len(notes))) for text in below]
    aside = "; ".join([*inside, *filter(None, [units])])
    return replace(figure.cell, aside=aside, reason=reason, marks=" ".join(marks))


def footnote_mark(number: int) -> str:
    """Return the mark of a footnote: a, b, ... z, aa, ab, ...

    >>> footnote_mark(0), footnote_mark(25), footnote_mark(26)
    ('a', 'z', 'aa')
    """
    quotient, remainder = divmod(number, 26)
    return (footnote_mark(quotient - 1) if quotient else "") + chr(ord("a") + remainder)


# Sources


@dataclass(frozen=True)
class Source:
    """An analysis, its figures by key, and the description of the study."""

    analysis: Analysis
    context: ReportContext

    @cached_property
    def figures(self) -> dict[tuple[str, ...], Figure]:
        """All figures by their key, in the order of the table."""
        lines = enumerate(self.analysis.rows, start=_FIRST_LINE)
        return {figure.key: figure for figure in (_figure_of(row, line) for line, row in lines)}

    @cached_property
    def by_statistic(self) -> dict[tuple[str, str], dict[str, list[Figure]]]:
        """All figures by (rubric, statistic), then by subset."""
        groups = group_by(self.figures.values(), lambda figure: (figure.rubric, figure.statistic))
        return {key: group_by(figures, attrgetter("subset")) for key, figures in groups.items()}

    def rubric(self, name: str) -> RubricFigures:
        """Return the figures of one rubric."""
        return RubricFigures(self, name)

    @property
    def rubrics(self) -> list[RubricFigures]:
        """The figures of every rubric, in the order of the table."""
        return [self.rubric(name) for name in dict.fromkeys(name for name, _ in self.by_statistic)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the study and of the analysis."""
        return tuple(dict.fromkeys([*self.context.notes, *self.analysis.notes]))

    @cached_property
    def ranking(self) -> Mapping[str, Sequence[Candidate]]:
        """All graders by rubric, the best choice first."""
        return rank_graders(self.analysis.rows, self.analysis.verdicts)

    def marked(self, caption: str) -> str:
        """Return a caption for use outside the report, marked if the study is synthetic."""
        return f"{caption}{SYNTHETIC}" if self.context.synthetic else caption


@dataclass(frozen=True)
class RubricFigures:
    """The figures of one rubric. By default the `subset` of a method is all units' categories. Two
    raters are those of a key: (reference, grader), two annotators, or (group, "").
    """

    source: Source
    rubric: str

    @property
    def analysis(self) -> Analysis:
        return self.source.analysis

    @property
    def context(self) -> ReportContext:
        return self.source.context

    @property
    def title(self) -> str:
        """The name of the rubric for headings."""
        return self.context.title_of(self.rubric)

    def key(
        self, statistic: str, rater_a: str, rater_b: str = "", subset: str = ALL, at: str = ""
    ) -> Key:
        """Return the key of a row of the rubric."""
        return Key(self.rubric, statistic, rater_a, rater_b, subset, at)

    def get(self, statistic: str, rater_a: str, *others: str, **key_parts: str) -> Figure | None:
        """Return the figure with the key of these parts (see `key`), None if there is none."""
        return self.by_key(self.key(statistic, rater_a, *others, **key_parts))

    def by_key(self, key: tuple[str, ...]) -> Figure | None:
        """Return the figure with this whole key, None if there is none."""
        return self.source.figures.get(key)

    def of_row(self, row: TableRow) -> Figure:
        """Return the figure of a results row."""
        return self.source.figures[key_of(row)]

    def by_subset(self, statistic: str) -> dict[str, list[Figure]]:
        """Return all figures of one statistic by subset, in the order of the results."""
        return self.source.by_statistic.get((self.rubric, statistic), {})

    def select(
        self, statistic: str, subset: str = ALL, raters: tuple[str, str] | None = None
    ) -> list[Figure]:
        """Return the figures of one statistic on one subset, of these two raters or of all."""
        figures = self.by_subset(statistic).get(subset, [])
        return [figure for figure in figures if raters in (None, figure.raters)]

    def select_all(self, *statistics: str) -> list[Figure]:
        """Return the figures on all subsets: by statistic, each in the order of the results."""
        on_subsets = (chain.from_iterable(self.by_subset(name).values()) for name in statistics)
        return list(
            chain.from_iterable(sorted(rows, key=attrgetter("line")) for rows in on_subsets)
        )

    def binary_parts(self, statistic: str) -> dict[str, list[Figure]]:
        """Return one statistic's figures on the binary label alone, by part ("column=value")."""
        return {
            subset.removesuffix(BINARY): figures
            for subset, figures in self.by_subset(statistic).items()
            if "=" in subset and subset.endswith(BINARY)
        }

    def sorted_by_agreement(self, graders: Iterable[str], subset: str = ALL) -> list[str]:
        """Sort graders by their kappa with people, the largest first; those without kappa last."""
        kappa = self.kappa(subset)

        def sort_key(grader: str) -> float:
            figure = self.get(kappa, "humans", grader, subset)
            return -figure.exact.estimate if figure and not figure.reason else math.inf

        return sorted(graders, key=sort_key)

    def rater_pairs(self, figures: Iterable[Figure]) -> list[tuple[str, str]]:
        """Return the raters (reference, grader) of figures, sorted by `sorted_by_agreement`."""
        by_grader = {figure.grader: figure.raters for figure in figures}
        return [by_grader[grader] for grader in self.sorted_by_agreement(by_grader, ALL_BINARY)]

    def graders(self, subset: str = ALL) -> list[str]:
        """Return the graders compared with people, sorted by `sorted_by_agreement`."""
        statistics = (self.agreement_or_kappa(subset), CEILING)
        figures = (figure for name in statistics for figure in self.select(name, subset))
        names = dict.fromkeys(figure.grader for figure in figures if figure.rater == "humans")
        graders = (name for name in names if name not in ("", *BASELINES))
        return self.sorted_by_agreement(graders, subset)

    def pairs(self, statistic: str, subset: str = ALL) -> list[tuple[str, str]]:
        """Return the pairs of single raters that a statistic is given for."""
        figures = self.select(statistic, subset)
        return [figure.raters for figure in figures if figure.grader and figure.rater != "humans"]

    def groups(self, subset: str) -> list[str]:
        """Return the groups with figures, without one of a single rater or of the same raters."""
        figures = self.select(self.agreement_or_kappa(subset), subset)
        names = {figure.rater for figure in figures if not figure.grader}
        if not {"humans", "models"} <= names:
            names.discard("all")  # has the raters of the one group that there is
        if len(self.graders(subset)) == 1:
            names.discard("models")  # one grader is no group
        return [name for name in GROUPS if name in names]

    def kappa(self, subset: str = ALL) -> str:
        """Return the kappa that verdicts rest on: weighted where the categories are ordered."""
        weighted = f"weighted_kappa_{self.analysis.settings.ordered}"
        return weighted if self.select(weighted, subset) else "cohen_kappa"

    def agreement_or_kappa(self, subset: str = ALL) -> str:
        """Return the statistic of any two raters with shared units: kappa on numeric labels, which
        have no observed agreement, and else that.
        """
        has_numbers = self.select("mean_number", subset)  # only numeric labels have a mean
        return self.kappa(subset) if has_numbers else "observed_agreement"

    def default_threshold(self, raters: tuple[str, str]) -> str:
        """Return the declared or the rubric's threshold that tuning starts from, "" without one."""
        figures = self.select("cohen_kappa_at_threshold", ALL_BINARY, raters)
        codes: tuple[str, ...] = ("default_threshold", "declared_threshold")
        return next((figure.at for figure in figures if any(map(figure.has_remark, codes))), "")

    def caption(self, what: str) -> str:
        """Return the caption of a table or figure on the rubric."""
        return written("naming.about", whom=self.title, what=what)

    def rater_rows(self, kind: str, subset: str) -> list[RowSpec]:
        """Return rows of raters of a kind: people, graders, baselines, pairs or groups."""
        pairs = self.pairs(self.agreement_or_kappa(subset), subset)
        rows: dict[str, list[RowSpec]] = {
            "people": [RowSpec(GROUPS["humans"], ("humans", ""))],
            "graders": [RowSpec(name, ("humans", name)) for name in self.graders(subset)],
            "baselines": [RowSpec(rater_title(name), ("humans", name)) for name in BASELINES],
            "pairs": [RowSpec(pair_title(pair), pair) for pair in pairs],
            "groups": [RowSpec(GROUPS[name], (name, "")) for name in self.groups(subset)],
        }
        return rows[kind]

    def table(
        self,
        name: str,
        rows: Iterable[RowSpec] = (),
        columns: Iterable[HeadedColumn] = (),
        *,
        on: str = "",
        stub: str = "",
        caption: str = "",
        **fields: object,
    ) -> list[Table]:
        """Make the table that `tables.toml` declares under a name, with further rows and columns;
        nothing if it has no rows (see `make_table`). Rows of raters are `on` a subset. The caption
        is the text `name`, filled with `fields`, or `caption`. A declaration with `views` makes a
        table on each subset of `SUBSET_NAMES`; all other arguments are then ignored, unless `on` is
        given.
        """
        spec = TableSpec(**table_of("evenhand.analysis.report", "tables.toml")[name])
        if spec.views and not on:
            views = SUBSET_NAMES.items()  # the field `subset` of the caption has the view's name
            tables = (self.table(name, on=view, subset=view_name) for view, view_name in views)
            return list(chain.from_iterable(tables))
        subset = on or spec.on
        row_specs = [*rows]
        if spec.title:
            for statistic in spec.rows:
                row_specs += rows_of(self.select(statistic, subset), attrgetter(spec.title))
        else:
            for kind in spec.rows:
                row_specs += self.rater_rows(kind, subset)
        headed = self._columns([*spec.columns, *columns], subset)
        figure_rows: list[FigureRow] = []
        for title, key in row_specs:
            if key and not isinstance(key, Key):  # two raters, as columns have the statistic
                key = self.key("", *key, subset)
            figures = [self._figure_at(key, column) for _, column in headed] if key else None
            figure_rows.append((title, figures))
        full_caption = self.caption(caption or written(name, **fields))
        headings = [heading for heading, _ in headed]
        return make_table(full_caption, stub or label_text(spec.stub), headings, figure_rows, spec)

    def _columns(
        self, columns: Iterable[Mapping[str, str] | HeadedColumn], subset: str
    ) -> list[tuple[str, Column]]:
        """Return each column with its heading; a name such as "alphas" stands for statistics."""
        by_level = (f"krippendorff_alpha_{level}" for level in ("ordinal", "interval", "masi"))
        alphas = [name for name in by_level if self.select(name, subset)]
        alphas = alphas or ["krippendorff_alpha_nominal"]  # this only if there is no other
        # Names of `tables.toml` for statistics that depend on the labels. On the binary label the
        # rank correlation is one of subjects' scores, not of labels: `ranks` has no column there.
        statistics_by_name = {
            "kappa": [self.kappa(subset)], "alpha": alphas[:1], "alphas": alphas,
            "ranks": [] if subset == ALL_BINARY else ["spearman"],
        }  # fmt: skip
        headed: list[tuple[str, Column]] = []
        for column in columns:
            if isinstance(column, str):
                names = statistics_by_name.get(column, [column])
                headed += [(entry_for(name).label, name) for name in names]
            elif isinstance(column, Mapping):
                key_parts = {name: part for name, part in column.items() if name != "head"}
                head = column.get("head")
                heading = label_text(head) if head else entry_for(key_parts["statistic"]).label
                headed.append((heading, key_parts))
            else:
                headed.append(column)
        return headed

    def _figure_at(self, key: Key, column: Column) -> Figure | None:
        """Return the figure of a column in the row with this key."""
        if callable(column):
            return column(key)
        key_parts = {"statistic": column} if isinstance(column, str) else column
        return self.by_key(key._replace(**key_parts))

    def chart(
        self,
        name: str,
        values: Sequence[Datum],
        data: Iterable[Table],
        *notes: str,
        **fields: object,
    ) -> list[Chart]:
        """Draw values by a template that is filled with `fields` (see `charts.fill_template`).
        `data` are the tables with the same figures; `notes` follow the template's note.
        """
        template = fill_template(name, **fields)
        note = " ".join(filter(None, [template.get("note"), *notes]))
        spec = chart_spec(values, template["spec"])
        return [Chart(self.caption(template["caption"]), template["alt"], spec, tuple(data), note)]
