"""The source that every section is written from: the results as figures, each bound to its row,
the verdicts, and facts about the study; and the tables and charts made from figures.
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
from evenhand.analysis.report.charts import Datum, chart_spec, filled
from evenhand.analysis.results import BASELINES, ResultRow, TableRow, key_of
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

_FIRST_LINE = 2


class Key(NamedTuple):
    """Key that identifies a results row (`RESULTS_KEY`)."""

    rubric: str
    statistic: str
    rater_a: str
    rater_b: str = ""
    subset: str = ALL
    at: str = ""


@dataclass(frozen=True)
class Figure:
    """A results row, rounded for display.

    `grader` is the second rater, as of a figure that compares a grader with people. `line` is its
    row in results.csv as a spreadsheet counts; `bounds` are low, estimate, high as they are, NaN
    where undefined; `estimate` and `interval` are text, empty where there is no interval. `reason`
    is the remark on why the estimate is undefined, None where it is not; `remarks` are the row's
    others.
    """

    rubric: str
    statistic: str
    rater: str
    grader: str
    subset: str
    at: str
    line: int
    n_units: int
    n_clusters: int
    bounds: tuple[float, float, float]
    estimate: str
    interval: str
    reason: Remark | None
    remarks: Remarks

    @cached_property
    def key(self) -> Key:
        return Key(self.rubric, self.statistic, *self.raters, self.subset, self.at)

    @property
    def raters(self) -> tuple[str, str]:
        return self.rater, self.grader

    @property
    def is_binary(self) -> bool:
        """Return True if it is on the binary label."""
        return self.subset.endswith(BINARY)

    @property
    def part(self) -> str:
        """The part of the sample that it is on, as "column=value"; "all" for everything."""
        return self.subset.removesuffix(BINARY)

    @property
    def column(self) -> str:
        return self.part.partition("=")[0]

    @property
    def value(self) -> str:
        return self.part.partition("=")[2]

    @property
    def sides(self) -> tuple[str, str]:
        """The ends that it goes from and to, such as two sides of pairs, ("a", "b") at "a>b"."""
        first, _, second = self.at.partition(">")
        return first, second

    @property
    def is_clear(self) -> bool:
        """Return True if its interval leaves out zero."""
        return not self.bounds[0] <= 0 <= self.bounds[2]

    @property
    def text(self) -> str:
        """The estimate, with its interval if it has one."""
        return f"{self.estimate} {self.interval}".strip()

    def says(self, code: str) -> bool:
        """Return True if one of its remarks has this code."""
        return says(self.remarks, code)

    def without(self, code: str) -> Figure:
        """Return it without the remarks of this code."""
        return replace(self, remarks=tuple(note for note in self.remarks if note.code != code))

    @property
    def cell(self) -> Cell:
        """Cell for a sentence: the estimate with its interval, or why it is undefined."""
        reason = self.reason.words if self.reason else ""
        return Cell(self.estimate, self.interval, reason, key=self.key, line=self.line)

    def datum(self, **more: object) -> dict[str, object]:
        """Return a datum for a chart: the unrounded bounds, None where undefined, and the results
        row.
        """
        low, estimate, high = (None if math.isnan(bound) else bound for bound in self.bounds)
        numbers = {"estimate": estimate, "low": low, "high": high, "shown": self.estimate}
        return {**numbers, "row": self.line, **more}


def shown(value: float, statistic: str = "", limits: Iterable[float] = ()) -> str:
    """A number rounded for display: shares to three places, coefficients to two; a bound near one
    of the `limits` of a decision to as many as tell them apart.

    >>> shown(0.8482), shown(-0.004), shown(float("nan")), shown(0.0042, "prevalence")
    ('0.85', '0.00', '—', '0.004')
    >>> shown(0.021, "human_ceiling_difference"), shown(0.123456, "threshold")
    ('+0.02', '0.123')
    """
    if math.isnan(value):
        return DASH
    return entry_for(statistic).shown(value, limits)


def _figure(row: ResultRow, line: int) -> Figure:
    key = Key(*key_of(row))
    estimate, low, high = row["estimate"], row["low"], row["high"]
    remarks, reason = row["remarks"], None
    if math.isnan(estimate):
        reason, remarks = (remarks or (Remark("undefined"),))[0], remarks[1:]
    no_interval = math.isnan(low) or math.isnan(high)
    limits = row["deciding"].limits if row["deciding"] else ()
    ends = (shown(bound, key[1], limits) for bound in (low, high))
    interval = "" if no_interval else f"[{', '.join(ends)}]"
    counts, bounds = (row["n_units"], row["n_clusters"]), (low, estimate, high)
    return Figure(*key, line, *counts, bounds, shown(estimate, key[1]), interval, reason, remarks)


def lines_of(figures: Iterable[Figure | None]) -> str:
    """Return the rows of results.csv of figures, one after the other."""
    return ", ".join(str(figure.line) for figure in figures if figure)


def defined(figures: Iterable[Figure | None]) -> list[Figure]:
    """Return the figures that have an estimate, the largest first."""
    estimated = [figure for figure in figures if figure and not figure.reason]
    return sorted(estimated, key=lambda figure: -figure.bounds[1])


def grouped(things: Iterable[T], by: Callable[[T], K]) -> dict[K, list[T]]:
    """Return things by what they have in common, in the order in which they come.

    >>> grouped(["ab", "c", "de"], len)
    {2: ['ab', 'de'], 1: ['c']}
    """
    groups: dict[K, list[T]] = {}
    for thing in things:
        groups.setdefault(by(thing), []).append(thing)
    return groups


# Tables

FigureRow = tuple[str, Sequence[Figure | None] | None]
"""Heading of a row, and a figure for each column; without figures it is over the rows that follow.
"""

_SHORT = 28
"""Letters of a reason in a cell at most: longer ones go below the table, to keep columns narrow."""


@dataclass(frozen=True)
class TableSpec:
    """Declaration of a table: the head of `tables.toml` says what each field means."""

    stub: str = ""
    columns: Sequence[str | Mapping[str, str]] = ()
    rows: Sequence[str] = ()
    title: str = ""
    on: str = ALL
    views: bool = False
    count: str = "Items"
    asides: bool = False


def worded(text: str) -> str:
    """Return a word of `tables.toml`: itself, or the sentence whose key it is.

    >>> worded("Grader"), worded("injection.attack")
    ('Grader', 'Grader and attack')
    """
    return written(text) if "." in text else text


def make_table(
    caption: str, stub: str, columns: Sequence[str], rows: Iterable[FigureRow], spec: TableSpec
) -> list[Table]:
    """Make a table of figures that shares footnotes; nothing if it has no rows. Left out are empty
    columns, rows without any figure and headings that no row follows. A cell on other units than
    its row's first has how many it has.
    """
    given = [row for row in rows if row[1] is None or any(row[1])]
    filled = [figures for _, figures in given if figures is not None]
    used = [at for at in range(len(columns)) if any(row[at] for row in filled)]
    if not used:
        return []
    notes: dict[str, str] = {}
    count = worded(spec.count)
    made = []
    for (heading, figures), (_, after) in pairwise([*given, ("", None)]):
        if figures is None:
            made += [Row(heading)] if after is not None else []
            continue
        chosen = [figures[at] for at in used]
        first = next(figure for figure in chosen if figure)
        clustered = first.n_clusters != first.n_units
        aside = written("naming.in_clusters", clusters=first.n_clusters) if clustered else ""
        number = Cell(str(first.n_units), aside=aside, key=first.key, line=first.line)
        cells = [number] if count else []
        for figure in chosen:
            if figure is None:
                cells.append(Cell())
                continue
            differs = count and figure.n_units != first.n_units
            also = f"{figure.n_units} {count.lower()}" if differs else ""
            cells.append(_cell(figure, also, notes, asides=spec.asides))
        made.append(Row(heading, tuple(cells)))
    heads = (*([count] if count else []), *(columns[at] for at in used))
    footnotes = tuple((mark, text) for text, mark in notes.items())
    return [Table(caption, stub, heads, tuple(made), footnotes)]


def _cell(figure: Figure, also: str, notes: dict[str, str], *, asides: bool) -> Cell:
    """Make a cell of a figure; short remarks, and `also`, stay next to it, others are `notes`."""
    reason = figure.reason.words if figure.reason else ""
    near, below = [reason] if reason else [], [remark.words for remark in figure.remarks]
    if asides:
        near, below = [*near, *below], []
    elif len(reason) > _SHORT:
        near, below = [], [*near, *below]
    marks = [notes.setdefault(text, letters(len(notes))) for text in below]
    aside = "; ".join([*near, *filter(None, [also])])
    return replace(figure.cell, aside=aside, reason=reason, marks=" ".join(marks))


def letters(number: int) -> str:
    """Return the mark of a footnote: a, b, ... z, aa, ab, ...

    >>> letters(0), letters(25), letters(26)
    ('a', 'z', 'aa')
    """
    first, last = divmod(number, 26)
    return (letters(first - 1) if first else "") + chr(ord("a") + last)


# Sources


@dataclass(frozen=True)
class BesidePublished:
    """The figures of others that a study declares, the graders whose own stand beside them, and
    sentences on how the study differs from theirs.
    """

    published: PublishedFigures
    graders: Sequence[str] = ()
    differences: Sequence[str] = ()


@dataclass(frozen=True)
class ReportContext:
    """Description of the study behind the ratings.

    `facts` are provenance in reading order (sample, seeds, rubric hashes, dates, versions, margin);
    `notes` are warnings such as labels that were set aside; `rubric_titles` are by rubric;
    `published` are the figures of others on a rubric, `beside` those that the study declares.
    `label_names` are the options' names by rubric and category. `texts`, `remarks` and `marks` are
    by (rubric, unit id): what raters read, each text under its name; people's remarks with their
    labels, by rater; and (rater, words marked). `replies` and `sorted` are by (rubric, unit id,
    grader): the grader's replies, word for word, and how the lead sorted its disagreement with
    people (kind, note). `answered` are the models that answered, with their replies, by grader. A
    `synthetic` report is marked so in all of its files.
    """

    name: str
    synthetic: bool = False
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    rubric_titles: Mapping[str, str] = field(default_factory=dict)
    label_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    texts: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    remarks: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    marks: Mapping[tuple[str, str], Sequence[tuple[str, Mark]]] = field(default_factory=dict)
    replies: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)
    sorted: Mapping[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    beside: BesidePublished | None = None

    @property
    def said(self) -> list[str]:
        """The notes, and that the labels are synthetic where they are."""
        return [*self.notes, *([written("terminal.synthetic")] if self.synthetic else [])]

    def title_of(self, rubric: str) -> str:
        """Return the name of a rubric for headings.

        >>> ReportContext("study", rubric_titles={"tone": "Tone of voice"}).title_of("tone")
        'Tone of voice'
        """
        return self.rubric_titles.get(rubric) or rubric or "Labels"


READINGS = {ALL: written("naming.categories"), ALL_BINARY: written("naming.binary")}
"""Name of a subset in a caption."""
GROUPS = {
    "humans": written("naming.annotators_together"),
    "models": written("naming.graders_together"),
    "all": written("naming.everyone"),
}
_NAMES = {
    "humans": written("naming.annotators"),
    "models": written("naming.graders"),
    "all": written("naming.everyone"),
    BASELINES[0]: written("naming.constant"),
    BASELINES[1]: written("naming.random"),
}


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


MOST_NAMED = 3
"""Things named in an answer at most; the rest are in its tables."""


def sentences(*given: Sequence[object]) -> list[object]:
    """Join sentences in pieces to one answer.

    >>> sentences(["a."], [], ["b ", 1, "."])
    ['a.', ' ', 'b ', 1, '.']
    """
    return _joined([sentence for sentence in given if sentence], " ")


def listed(things: Sequence[Sequence[object]], between: str = ", ") -> list[object]:
    """Join things in pieces, only the first few of them."""
    more = [written("report.and_others")] if len(things) > MOST_NAMED else []
    return [*_joined(things[:MOST_NAMED], between), *(f" {text}" for text in more)]


def _joined(things: Sequence[Sequence[object]], between: str) -> list[object]:
    return [piece for thing in things for piece in (between, *thing)][1:]


Column = str | Mapping[str, str] | Callable[[Key], Figure | None]
"""Content of a column's cells: the row's figure of this statistic, or with these parts of the key
in place of the row's, or what a function finds for the row's key."""
RowPlace = tuple[str, Figure | Key | tuple[str, str] | None]
"""Title of a row, and where its figures are, or its two raters (or a group and ""); without, it is
a heading over the rows that follow."""
_TITLES: Mapping[str, Callable[[Figure], str]] = {
    "at": lambda figure: figure.at,
    "grader": lambda figure: figure.grader,
    "pair": lambda figure: pair_title(figure.raters),
}
"""Titles of rows that `tables.toml` declares."""


def rows_of(
    figures: Iterable[Figure],
    title: Callable[[Figure], str],
    under: Callable[[Figure], str] | None = None,
    *,
    by: Literal["raters", "statistic", "subset"] = "raters",
) -> list[RowPlace]:
    """Return a row for each figure, with its title; with a heading, `under` which stand those alike
    `by` a part of the key.
    """
    if under is None:
        return [(title(figure), figure) for figure in figures]
    alike = grouped(figures, attrgetter(by)).values()
    return [row for same in alike for row in ((under(same[0]), None), *rows_of(same, title))]


def distinct(
    figures: Iterable[Figure],
    by: Literal["rater", "subset", "at"],
    title: Callable[[str], str] = str,
) -> list[RowPlace]:
    """Return a row for all figures alike `by` a part of the key, with its title."""
    return [(title(name), same[0]) for name, same in grouped(figures, attrgetter(by)).items()]


@dataclass(frozen=True)
class Source:
    """An analysis, its results by key, and the facts known of the study."""

    analysis: Analysis
    context: ReportContext

    @cached_property
    def figures(self) -> dict[tuple[str, ...], Figure]:
        """All figures by their key, in the order of the table."""
        lines = enumerate(self.analysis.rows, start=_FIRST_LINE)
        return {figure.key: figure for figure in (_figure(row, line) for line, row in lines)}

    @cached_property
    def families(self) -> dict[tuple[str, ...], dict[str, list[Figure]]]:
        """All figures by rubric and statistic, then by subset."""
        families = grouped(self.figures.values(), lambda figure: figure.key[:2])
        return {name: grouped(family, attrgetter("subset")) for name, family in families.items()}

    def on(self, rubric: str) -> RubricFigures:
        """Return the figures of one rubric."""
        return RubricFigures(self, rubric)

    @property
    def rubrics(self) -> list[RubricFigures]:
        """The figures of every rubric, in the order of the table."""
        return [self.on(name) for name in dict.fromkeys(rubric for rubric, _ in self.families)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings of the study and of the analysis."""
        return tuple(dict.fromkeys([*self.context.notes, *self.analysis.notes]))

    @cached_property
    def ranking(self) -> Mapping[str, Sequence[Candidate]]:
        """All graders by rubric, the best choice first."""
        return rank_graders(self.analysis.rows, self.analysis.verdicts)

    def marked(self, caption: str) -> str:
        """The caption of a table shown outside its page, which would state once that it is
        synthetic.
        """
        return f"{caption}{SYNTHETIC}" if self.context.synthetic else caption


@dataclass(frozen=True)
class RubricFigures:
    """The figures of one rubric, with the study that they are of. A `subset` is of the units: all,
    on the categories, unless it is given.
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

    def get(self, statistic: str, rater_a: str, *others: str, **parts: str) -> Figure | None:
        """The figure with this key (see `key`)."""
        return self.by_key(self.key(statistic, rater_a, *others, **parts))

    def by_key(self, key: tuple[str, ...]) -> Figure | None:
        """The figure with this key, which names the rubric as well."""
        return self.source.figures.get(key)

    def of_row(self, row: TableRow) -> Figure:
        """The figure of a row of the results."""
        return self.source.figures[key_of(row)]

    def row(
        self, statistics: Iterable[str], raters: tuple[str, str], subset: str = ALL, at: str = ""
    ) -> list[Figure | None]:
        """The figures of two raters (or of a group), one for each statistic."""
        return [self.get(name, *raters, subset, at) for name in statistics]

    def by_subset(self, statistic: str) -> dict[str, list[Figure]]:
        """All figures of one statistic by subset, in the order of the table."""
        return self.source.families.get((self.rubric, statistic), {})

    def select(
        self, statistic: str, subset: str = ALL, raters: tuple[str, str] | None = None
    ) -> list[Figure]:
        """All figures of one statistic, of these two raters or all, in the order of the table."""
        rows = self.by_subset(statistic).get(subset, [])
        return [figure for figure in rows if raters in (None, figure.raters)]

    def everywhere(self, *statistics: str) -> list[Figure]:
        """All figures of each statistic, whatever they are on, in the order of the table."""
        families = (self.by_subset(name).values() for name in statistics)
        by_line = (sorted(chain.from_iterable(rows), key=attrgetter("line")) for rows in families)
        return list(chain.from_iterable(by_line))

    def parts(self, statistic: str) -> dict[str, list[Figure]]:
        """All figures of one statistic by part of the sample, on the binary label; the part as
        "column=value".
        """
        return {
            subset.removesuffix(BINARY): figures
            for subset, figures in self.by_subset(statistic).items()
            if "=" in subset and subset.endswith(BINARY)
        }

    def by_agreement(self, graders: Iterable[str], subset: str = ALL) -> list[str]:
        """Graders by their kappa with people, the largest first; those without one come last."""
        kappa = self.kappa(subset)

        def place(grader: str) -> float:
            figure = self.get(kappa, "humans", grader, subset)
            return -figure.bounds[1] if figure and not figure.reason else math.inf

        return sorted(graders, key=place)

    def in_order(self, figures: Iterable[Figure]) -> list[tuple[str, str]]:
        """The raters of figures on graders' probabilities, (reference, grader), by the grader's
        agreement with people.
        """
        by_grader = {figure.raters[1]: figure.raters for figure in figures}
        return [by_grader[grader] for grader in self.by_agreement(by_grader, ALL_BINARY)]

    def graders(self, subset: str = ALL) -> list[str]:
        """The graders that were compared with people, by their agreement with people."""
        named = (self.usual(subset), CEILING)
        compared = (figure for name in named for figure in self.select(name, subset))
        seen = dict.fromkeys(figure.grader for figure in compared if figure.rater == "humans")
        return self.by_agreement([g for g in seen if g and g not in BASELINES], subset)

    def pairs(self, statistic: str, subset: str = ALL) -> list[tuple[str, str]]:
        """The pairs of single raters that a statistic is given for."""
        figures = self.select(statistic, subset)
        return [figure.raters for figure in figures if figure.grader and figure.rater != "humans"]

    def graders_last(self, raters: Iterable[str]) -> list[str]:
        """Groups and people as they come, then graders by their agreement with people."""
        given, graders = dict.fromkeys(raters), self.graders()
        first = [name for name in given if name not in graders]
        return first + [name for name in graders if name in given]

    def groups(self, subset: str) -> list[str]:
        """The groups worth a row: those that have two raters and repeat no other group."""
        figures = self.select(self.usual(subset), subset)
        given = {figure.raters[0] for figure in figures if not figure.raters[1]}
        if {"humans", "models"} - given:
            given.discard("all")
        if len(self.graders(subset)) == 1:
            given.discard("models")
        return [name for name in GROUPS if name in given]

    def alphas(self, subset: str) -> list[str]:
        """The alphas worth a column: the nominal one only if it is the only one."""
        names = [f"krippendorff_alpha_{level}" for level in ("ordinal", "interval", "masi")]
        given = [name for name in names if self.select(name, subset)]
        return given or ["krippendorff_alpha_nominal"]

    def kappa(self, subset: str = ALL) -> str:
        """The kappa that decides: weighted where the categories are ordered."""
        weighted = f"weighted_kappa_{self.analysis.settings.ordered}"
        return weighted if self.select(weighted, subset) else "cohen_kappa"

    def usual(self, subset: str = ALL) -> str:
        """The statistic that all raters have who share units: of numbers there is no observed
        agreement.
        """
        return self.kappa(subset) if self.select("mean_number", subset) else "observed_agreement"

    def default_threshold(self, raters: tuple[str, str]) -> str:
        """Return the threshold that tuning is compared with, as the rows write it; empty where
        nothing could be tuned. It is the rubric's threshold, or the one that was declared.
        """
        figures = self.select("cohen_kappa_at_threshold", ALL_BINARY, raters)
        codes: tuple[str, ...] = ("default_threshold", "declared_threshold")
        return next((figure.at for figure in figures if any(map(figure.says, codes))), "")

    def caption(self, what: str) -> str:
        """The caption of a table or figure on the rubric."""
        return written("naming.about", whom=self.title, what=what)

    def who(self, kind: str, subset: str) -> list[RowPlace]:
        """Return rows of raters: people as a group, graders or baselines with people, every two
        single raters, or groups.
        """
        lists: dict[str, list[RowPlace]] = {
            "people": [(GROUPS["humans"], ("humans", ""))],
            "graders": [(name, ("humans", name)) for name in self.graders(subset)],
            "baselines": [(rater_title(name), ("humans", name)) for name in BASELINES],
            "pairs": [(pair_title(pair), pair) for pair in self.pairs(self.usual(subset), subset)],
            "groups": [(GROUPS[name], (name, "")) for name in self.groups(subset)],
        }
        return lists[kind]

    def table(
        self,
        name: str,
        rows: Iterable[RowPlace] = (),
        columns: Iterable[str | tuple[str, Column]] = (),
        *,
        on: str = "",
        stub: str = "",
        caption: str = "",
        **fields: object,
    ) -> list[Table]:
        """Make the table that `tables.toml` declares under a name, with the rows and columns that
        are not declared; nothing if it has no rows (see `make_table`).

        A column is a statistic under its own label, or a heading with what its cells show. Rows of
        raters are `on` a subset of the units. `fields` are those of the caption.
        """
        spec = TableSpec(**table_of("evenhand.analysis.report", "tables.toml")[name])
        if spec.views and not on:
            views = (self.table(name, on=view, reading=READINGS[view]) for view in READINGS)
            return list(chain.from_iterable(views))
        subset = on or spec.on
        placed = [*rows]
        for kind in spec.rows:
            if spec.title:
                placed += rows_of(self.select(kind, subset), _TITLES[spec.title])
            else:
                placed += self.who(kind, subset)
        heads = self._columns([*spec.columns, *columns], subset)
        made: list[FigureRow] = []
        for title, place in placed:
            key = place.key if isinstance(place, Figure) else place
            if key and not isinstance(key, Key):
                key = self.key("", *key, subset)
            made.append((title, key and [self._cell(column, key) for _, column in heads]))
        about = self.caption(caption or written(name, **fields))
        titles = [title for title, _ in heads]
        return make_table(about, stub or worded(spec.stub), titles, made, spec)

    def _columns(
        self, columns: Iterable[str | Mapping[str, str] | tuple[str, Column]], subset: str
    ) -> list[tuple[str, Column]]:
        """Columns with their headings; `tables.toml` says what is declared how."""
        alphas = self.alphas(subset)
        several = {"kappa": [self.kappa(subset)], "alpha": alphas[:1], "alphas": alphas}
        several["ranks"] = [] if subset == ALL_BINARY else ["spearman"]  # binary: subjects' scores
        heads: list[tuple[str, Column]] = []
        for column in columns:
            if isinstance(column, str):
                heads += [(entry_for(name).label, name) for name in several.get(column, [column])]
            elif isinstance(column, Mapping):
                parts = {name: part for name, part in column.items() if name != "head"}
                head = column.get("head")
                heads.append((worded(head) if head else entry_for(parts["statistic"]).label, parts))
            else:
                heads.append(column)
        return heads

    def _cell(self, column: Column, key: Key) -> Figure | None:
        if callable(column):
            return column(key)
        parts = {"statistic": column} if isinstance(column, str) else column
        return self.by_key(key._replace(**parts))

    def chart(
        self,
        name: str,
        values: Sequence[Datum],
        data: Iterable[Table],
        *notes: str,
        **parts: object,
    ) -> list[Chart]:
        """Draw values on the rubric as a template says (see `charts.filled`) that is filled in with
        these `parts`; its note is followed by those `notes` that are not empty.
        """
        made = filled(name, **parts)
        note = " ".join(filter(None, [made.get("note"), *notes]))
        spec = chart_spec(values, made["spec"])
        return [Chart(self.caption(made["caption"]), made["alt"], spec, tuple(data), note)]
